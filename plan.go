package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v3"

	"golem/apply"
	"golem/plan"
	"golem/reconcilers"
)

func (a *app) planCommand() *cli.Command {
	return &cli.Command{
		Name: "plan", Usage: "show what apply would do; change nothing", ArgsUsage: "[PATH]",
		Description: "--target and --exclude plan a part: a key, a pattern of keys, or a leaf.\n" +
			"--out saves the plan: golem apply FILE does just that, without asking again.\n" +
			"Exit codes: 0 done (with --detailed-exitcode: no changes), 1 error,\n" +
			"2 changes (only with --detailed-exitcode), 130 interrupted.",
		Flags: []cli.Flag{
			jsonFlag, blindFlag, targetFlag, excludeFlag,
			&cli.BoolFlag{Name: "destroy", Usage: "plan what destroy would do"},
			&cli.StringFlag{Name: "out", Usage: "save the plan to `FILE`, for golem apply FILE"},
			&cli.BoolFlag{Name: "drift", Usage: "show only what moved since then, and who moved it"},
			&cli.BoolFlag{Name: "markdown", Usage: "print Markdown, for a comment on a pull request"},
			&cli.BoolFlag{Name: "detailed-exitcode", Usage: "exit 2 when there are changes"},
		},
		Action: a.plan,
	}
}

// plan shows what apply would do.
func (a *app) plan(ctx context.Context, c *cli.Command) error {
	if err := checkPlanFlags(c); err != nil {
		return err
	}
	s, err := open(c)
	if err != nil {
		return err
	}
	if c.Bool("drift") {
		return a.drift(ctx, c, s)
	}
	g, err := s.goal(ctx, "plan", c.Bool("destroy"))
	if err == nil && g.destroy {
		err = s.checkLineage(g)
	}
	if err != nil {
		return err
	}
	var p *plan.Plan
	if c.IsSet("out") {
		p, err = s.planAndSave(ctx, g, c.String("out"))
	} else if p, err = s.plan(ctx, g); err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	if err := a.show(c, p); err != nil {
		return err
	}
	if c.IsSet("out") && !c.Bool("json") && !c.Bool("markdown") {
		if err := a.printer(a.out).Printf("Saved: golem apply %s does this.\n", plan.Printable(c.String("out"))); err != nil {
			return err
		}
	}
	if c.Bool("detailed-exitcode") && !p.Empty() {
		return exitCode(exitChanges)
	}
	return nil
}

// checkPlanFlags refuses flags of golem plan that do not go together.
func checkPlanFlags(c *cli.Command) error {
	var err error
	switch {
	case c.Bool("drift") && c.IsSet("out"):
		err = errors.New("--drift makes no plan, so that there is none to save with --out")
	case !c.Bool("drift") && c.Bool("markdown") && c.Bool("json"):
		err = errors.New("--markdown does not go with --json")
	}
	if err != nil {
		return &usageError{command: c.FullName(), err: err}
	}
	return nil
}

// planAndSave is plan, with the result in a file, too. The key that seals the file comes
// first: where there is none, making it writes to the journal that the plan is of.
func (s *session) planAndSave(ctx context.Context, g goal, file string) (*plan.Plan, error) {
	key, err := s.makeSealKey(ctx)
	if err != nil {
		return nil, err
	}
	p, err := s.plan(ctx, g)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return p, s.savePlan(file, g, p, key)
}

// plan works out what a run would do, and writes nothing.
func (s *session) plan(ctx context.Context, g goal) (*plan.Plan, error) {
	journal, err := s.read()
	if err != nil {
		return nil, err
	}
	defer journal.Close()
	snap, err := journal.Snapshot()
	if err == nil {
		err = checkName(g.scroll, snap)
	}
	if err != nil {
		return nil, err
	}
	world := reconcilers.NewWorld(s.host, journal)
	defer world.Close()
	in := plan.Input{
		Context: ctx,
		Scroll:  g.wanted(), Policies: g.policies, Lineage: g.lineage, Host: s.host.Name(), Snapshot: snap, World: world,
		Blind: s.c.Bool("no-observe"), Destroy: g.destroy, Choice: s.choice(),
	}
	if g.back != nil {
		interrupted := snap.Dead != nil && snap.Dead.Run.Lineage == g.lineage
		t, err := apply.FindTarget(journal, g.lineage, *g.back, interrupted)
		if err != nil {
			return nil, err
		}
		in.Scroll, in.Back = t.Scroll, t.Back()
	}
	return plan.Make(in)
}

func (a *app) show(c *cli.Command, p *plan.Plan) error {
	switch {
	case c.Bool("json"):
		return p.JSON(a.out)
	case c.Bool("markdown"):
		return p.Markdown(a.out)
	}
	return p.Text(a.printer(a.out))
}

// choice is what of the scroll the flags choose.
func (s *session) choice() *plan.Choice {
	return plan.MakeChoice(s.c.StringSlice("target"), s.c.StringSlice("exclude"))
}
