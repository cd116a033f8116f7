package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/urfave/cli/v3"
	"golang.org/x/sys/unix"

	"golem/apply"
	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

var (
	jsonFlag    = &cli.BoolFlag{Name: "json", Usage: "print JSON"}
	blindFlag   = &cli.BoolFlag{Name: "no-observe", Usage: "compare with the journal only; look for no drift"}
	approveFlag = &cli.BoolFlag{Name: "auto-approve", Usage: "do not ask before changing the host"}
	targetFlag  = &cli.StringSliceFlag{Name: "target", Usage: "only `WHAT`: a key, a pattern of keys, or a leaf"}
	excludeFlag = &cli.StringSliceFlag{Name: "exclude", Usage: "all but `WHAT`; both may be repeated"}
	quietFlag   = &cli.BoolFlag{Name: "quiet", Usage: "print nothing when there is nothing to do"}
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

func (a *app) plan(ctx context.Context, c *cli.Command) error {
	s, err := open(c)
	if err != nil {
		return err
	}
	if c.Bool("drift") {
		if c.IsSet("out") {
			return &usageError{command: c.FullName(), err: errors.New("--drift makes no plan, so that there is none to save with --out")}
		}
		return a.drift(ctx, c, s)
	}
	if c.Bool("markdown") && c.Bool("json") {
		return &usageError{command: c.FullName(), err: errors.New("--markdown does not go with --json")}
	}
	g, err := s.goal("plan", c.Bool("destroy"))
	if err != nil {
		return err
	}
	var key plan.SealKey
	if c.IsSet("out") {
		if key, err = s.makeSealKey(ctx); err != nil {
			return err
		}
	}
	p, err := s.plan(ctx, g)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if c.IsSet("out") {
		if err := s.savePlan(c.String("out"), g, p, key); err != nil {
			return err
		}
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

// A goal is what a run is to reach.
type goal struct {
	command string
	scroll  *scrolls.Scroll // what was read; nil: none was
	lineage string
	destroy bool
	back    *apply.Back // of a rollback
	// policies are those under which a scroll is destroyed.
	policies map[string]scrolls.Policy
	saved    *plan.Saved // the plan file that it is from; nil: none
	moved    []string    // how that is known not to stand any more
}

// wanted is the scroll to bring the host to; nil is the empty one.
func (g goal) wanted() *scrolls.Scroll {
	if g.destroy {
		return nil
	}
	return g.scroll
}

// goal is the scroll a command acts on, with its lineage. A destroy that is told the
// lineage needs no readable scroll.
func (s *session) goal(command string, destroy bool) (goal, error) {
	g := goal{command: command, lineage: s.c.String("name"), destroy: destroy}
	var err error
	if destroy && g.lineage != "" {
		g.policies, err = scrolls.HostPolicy(s.hostPolicy(), s.host.Facts())
		return g, err
	}
	if g.scroll, err = s.load(); err != nil {
		if destroy {
			err = errors.Join(err, &unnamedError{})
		}
		return g, err
	}
	g.lineage, g.policies = g.scroll.Name, g.scroll.Policies
	return g, nil
}

// An unnamedError says that destroy cannot tell what to destroy.
type unnamedError struct{}

func (*unnamedError) Error() string {
	return "destroy: the scroll cannot be read, so its name is not known"
}

func (*unnamedError) Hint() string { return "golem destroy --name NAME needs no scroll" }

func (a *app) applyCommand() *cli.Command {
	return &cli.Command{
		Name: "apply", Usage: "bring the host to the scroll", ArgsUsage: "[PATH | PLANFILE]",
		Description: "Without a terminal and without --auto-approve it stops and says so.\n" +
			"Exit codes: 0 settled, 1 error before anything was touched, 3 partial: a leaf\n" +
			"was rolled back or a reverse failed, 4 another run holds the journal,\n" +
			"5 the saved plan is stale, 130 interrupted.",
		Flags: []cli.Flag{jsonFlag, quietFlag, approveFlag, blindFlag, confirmFlag, targetFlag, excludeFlag},
		Action: func(ctx context.Context, c *cli.Command) error {
			if plan.IsSaved(c.Args().First()) {
				return a.applySaved(ctx, c)
			}
			return a.enactScroll(ctx, c, "apply")
		},
	}
}

func (a *app) destroyCommand() *cli.Command {
	return &cli.Command{
		Name: "destroy", Usage: "take back everything a scroll did", ArgsUsage: "[PATH]",
		Description: "Reconciles to the empty scroll. With --name it needs no readable scroll.\n" +
			"Exit codes are those of apply.",
		Flags:  []cli.Flag{jsonFlag, quietFlag, approveFlag, blindFlag, confirmFlag, targetFlag, excludeFlag},
		Action: func(ctx context.Context, c *cli.Command) error { return a.enactScroll(ctx, c, "destroy") },
	}
}

// enactScroll is apply and destroy.
func (a *app) enactScroll(ctx context.Context, c *cli.Command, command string) error {
	s, err := open(c)
	if err != nil {
		return err
	}
	g, err := s.goal(command, command == "destroy")
	if err != nil {
		return err
	}
	return a.enact(ctx, s, g)
}

// enact shows a plan, asks, and enacts it.
func (a *app) enact(ctx context.Context, s *session, g goal) error {
	c := s.c
	if g.saved == nil {
		if err := a.checkAsking(c); err != nil {
			return err
		}
	}
	confirm, err := s.confirming()
	if err != nil {
		return err
	}
	events := a.newEventWriter(c.Bool("quiet"), c.Bool("json"))
	defer events.close()
	if err := s.checkLineage(g); err != nil {
		return err
	}
	if g.saved == nil {
		if err := a.checkApproval(ctx, s, events, g); err != nil {
			return err
		}
	}
	journal, err := s.write(ctx)
	if err != nil {
		return err
	}
	defer journal.Close()
	o := apply.Options{
		Journal: journal, Host: s.host, HostName: s.host.Name(), Scroll: g.wanted(), Policies: g.policies, Lineage: g.lineage, Back: g.back, Confirm: confirm,
		Blind: c.Bool("no-observe"), Destroy: g.destroy, Choice: s.choice(), Unattended: c.Bool("auto-approve"),
		Approve: func(p *plan.Plan) (bool, error) { return a.approve(ctx, c, p, events) },
		Tell:    events.tell, Watch: events.watch, Run: s.whoRuns(g.command, g.scroll),
	}
	if g.saved != nil {
		g.enactSaved(&o, func(p *plan.Plan) error { return events.plan(p) })
	}
	report, err := apply.Run(ctx, o)
	err = a.conclude(c, events, report, errors.Join(err, report.Closed(journal.Close())))
	if err == nil && confirm != nil && report.Plan.Empty() && report.Plan.Pending == nil && !events.quiet && !events.asJSON {
		return a.printer(a.out).Printf("So there is nothing to confirm, either.\n")
	}
	return err
}

// checkLineage refuses a name that is bound elsewhere, and to destroy what was never
// applied, which would only make a journal.
func (s *session) checkLineage(g goal) error {
	reader, err := s.read()
	if err != nil {
		return err
	}
	snap, err := reader.Snapshot()
	if err = errors.Join(err, reader.Close()); err != nil {
		return err
	}
	if err := checkName(g.scroll, snap); err != nil {
		return err
	}
	if (g.destroy || g.back != nil) && snap.Lineages[g.lineage] == nil {
		return newUnknownLineage(g.command, g.lineage, snap)
	}
	return nil
}

// An unknownLineage is a name that the journal has nothing of.
type unknownLineage struct {
	command, name string
	known         []string
}

func newUnknownLineage(command, name string, snap *state.Snapshot) error {
	return &unknownLineage{command, name, slices.Collect(maps.Keys(snap.Lineages))}
}

func (e *unknownLineage) Error() string {
	return fmt.Sprintf("%s: nothing was ever applied under the name %q here", e.command, e.name)
}

func (e *unknownLineage) Hint() string {
	return meant(e.name, e.known, "golem history lists the names there are")
}

// conclude prints how a run ended.
func (a *app) conclude(c *cli.Command, events *eventWriter, report *apply.Report, err error) error {
	if report.Plan == nil {
		return err
	}
	werr := events.report(report)
	if report.Ran() || report.Recovered != nil {
		werr = a.untold(werr)
	}
	if err == nil {
		err = werr
	}
	if err == nil && report.Partial() {
		return exitCode(exitPartial)
	}
	if apply.Interrupted(err) && !errors.As(err, new(*apply.TouchedError)) {
		if !report.Ran() {
			return err
		}
		if !events.quiet {
			fmt.Fprintln(a.err, "golem: interrupted; what was in flight is rolled back")
		}
		return exitCode(exitInterrupted)
	}
	return err
}

// untold is what becomes of an error to tell what was done: it stands, and so does its exit
// code. Where somebody may still read that it could not be told, it is said.
func (a *app) untold(err error) error {
	if err != nil && !errors.Is(err, unix.EPIPE) {
		a.print(fmt.Errorf("print what was done: %w", err))
	}
	return nil
}

func (a *app) recoverCommand() *cli.Command {
	return &cli.Command{
		Name: "recover", Usage: "settle an interrupted run; apply does it by itself",
		Flags: []cli.Flag{
			jsonFlag,
			&cli.BoolFlag{Name: "unconfirmed", Usage: "take back now a run that waits to be confirmed"},
		},
		Action: withoutArgs(a.recover),
	}
}

func (a *app) recover(ctx context.Context, c *cli.Command) error {
	s, err := open(c)
	if err != nil {
		return err
	}
	reader, err := s.read()
	if err != nil {
		return err
	}
	snap, err := reader.Snapshot()
	pinned := reader.Pinned()
	if err = errors.Join(err, reader.Close()); err != nil {
		return err
	}
	unconfirmed := c.Bool("unconfirmed")
	if unconfirmed && snap.Pending == nil {
		return apply.ErrNothingPending
	}
	if !snap.Unsettled() && !unconfirmed && !pinned {
		return a.tellRecovered(c, nil)
	}
	journal, err := s.write(ctx)
	if err != nil {
		return err
	}
	if unconfirmed {
		return a.takeBack(ctx, s, journal, false)
	}
	defer journal.Close()
	signs := a.newEventWriter(c.Bool("json"), false)
	r, err := apply.Recover(ctx, apply.Options{
		Journal: journal, Host: s.host, Run: s.whoRuns("recover", nil), Tell: signs.alive, Watch: signs.watch,
	})
	signs.close()
	if err != nil {
		return err
	}
	if err = a.tellRecovered(c, r); r != nil {
		return a.untold(err)
	}
	return err
}

func (a *app) tellRecovered(c *cli.Command, r *apply.Recovered) error {
	if c.Bool("json") {
		return plan.WriteJSON(a.out, map[string]any{"format_version": plan.FormatVersion, "recovered": r})
	}
	if r == nil {
		return a.printer(a.out).Printf("Nothing to recover: no run was interrupted.\n")
	}
	return a.printer(a.out).Printf("%s\n", plan.Printable(r.Sentence()))
}
