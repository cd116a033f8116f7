package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"golem/apply"
	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// adoptedLeaf is where adopted glyphs stand until a scroll declares them.
const adoptedLeaf = "adopted"

func (a *app) adoptCommand() *cli.Command {
	return &cli.Command{
		Name: "adopt", Usage: "record what is there, and print the scroll that declares it", ArgsUsage: "KIND ID…",
		Description: "The printed scroll changes nothing. What is adopted goes into the lineage\n" +
			"that --name names, and is left as it is if that no longer declares it.\n" +
			"--scan proposes a scroll for what differs from the host's packages, and\n" +
			"records nothing.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "print-only", Usage: "record nothing"},
			&cli.BoolFlag{Name: "scan", Usage: "look through the whole host, and record nothing"},
		},
		Action: a.adopt,
	}
}

func (a *app) adopt(ctx context.Context, c *cli.Command) error {
	s, err := open(c)
	if err != nil {
		return err
	}
	if c.Bool("scan") {
		if c.Args().Present() {
			return &usageError{command: c.FullName(), err: errors.New("--scan takes no arguments")}
		}
		return a.scan(ctx, s)
	}
	if c.Args().Len() < 2 {
		return &usageError{command: c.FullName(), err: errors.New("a kind, and at least one thing of it")}
	}
	kind := c.Args().First()
	if _, ok := reconcilers.KindOf(kind); !ok {
		return &unknownKind{"adopt", kind}
	}
	if !c.Bool("print-only") && c.String("name") == "" {
		return &usageError{command: c.FullName(), err: errors.New("--name says which lineage it goes into; with --print-only nothing is recorded")}
	}
	world := reconcilers.NewWorld(s.host, nil)
	defer world.Close()
	var text strings.Builder
	for _, id := range c.Args().Slice()[1:] {
		attrs, err := reconcilers.Adopt(ctx, world, kind, id)
		if err != nil {
			return err
		}
		text.Write(reconcilers.AdoptedText(kind, attrs))
		text.WriteByte('\n')
	}
	found := strings.TrimSuffix(text.String(), "\n")
	if !c.Bool("print-only") {
		if err := s.record(ctx, found); err != nil {
			return err
		}
	}
	_, err = a.out.WriteString(found)
	return err
}

// record puts glyphs that are as they are into a lineage, beside what is in force there. It
// is a run that changes nothing: one that would change something is refused.
func (s *session) record(ctx context.Context, text string) error {
	adopted, err := scrolls.LoadText(text, scrolls.Options{Kinds: reconcilers.Kinds(), Checks: reconcilers.Checks, Facts: s.host.Facts(), Name: s.c.String("name")})
	if err != nil {
		return fmt.Errorf("read what would be printed: %w", err)
	}
	journal, err := s.write(ctx)
	if err != nil {
		return err
	}
	err = s.recordIn(ctx, journal, adopted)
	return errors.Join(err, journal.Close())
}

func (s *session) recordIn(ctx context.Context, journal *state.Journal, adopted *scrolls.Scroll) error {
	snap, err := journal.Snapshot()
	if err != nil {
		return err
	}
	name := adopted.Name
	whole := &scrolls.Scroll{Name: name, Policies: map[string]scrolls.Policy{"": scrolls.BuiltinPolicy}}
	if newest := snap.Revision(name); newest > 0 {
		t, err := apply.FindTarget(journal, name, apply.Back{To: newest}, false)
		if err != nil {
			return err
		}
		whole = t.Scroll
	}
	leaf := &scrolls.Leaf{Path: adoptedLeaf, Policy: scrolls.BuiltinPolicy}
	var keys []string
	for _, g := range adopted.Glyphs() {
		if err := notOurs(g, snap); err != nil {
			return err
		}
		g.Leaf = adoptedLeaf
		leaf.Glyphs = append(leaf.Glyphs, g)
		keys = append(keys, string(g.Key))
	}
	if at := leafNamed(whole, adoptedLeaf); at != nil {
		at.Glyphs = append(at.Glyphs, leaf.Glyphs...)
	} else {
		whole.Leaves = append(whole.Leaves, leaf)
	}
	report, err := apply.Run(ctx, apply.Options{
		Journal: journal, Host: s.host, HostName: s.host.Name(), Scroll: whole, Lineage: name, Unattended: true,
		Choice: plan.MakeChoice(keys, nil), Run: s.whoRuns("adopt", nil),
		Approve: func(p *plan.Plan) (bool, error) { return true, changesNothing(p) },
	})
	if err == nil && report.Partial() {
		err = errors.New("adopt: what is there could not be recorded; golem history tells why")
	}
	return err
}

// notOurs refuses to adopt what is in force already, and a whole file that golem edits: what
// it holds is not only the host's own.
func notOurs(g *scrolls.Glyph, snap *state.Snapshot) error {
	kind, _ := reconcilers.KindOf(g.Kind)
	for _, was := range snap.Applied {
		if was.Key == g.Key {
			return fmt.Errorf("adopt %s: it is in force already, in the lineage %q", g.Key, was.Lineage)
		}
		if kind.IsBase() && was.Sort == kind.Sort && was.Resource == g.Attrs["path"] {
			return fmt.Errorf("adopt %s: golem has %s there already, in the lineage %q", g.Key, was.Key, was.Lineage)
		}
	}
	return nil
}

func leafNamed(s *scrolls.Scroll, path string) *scrolls.Leaf {
	for _, leaf := range s.Leaves {
		if leaf.Path == path {
			return leaf
		}
	}
	return nil
}

// changesNothing refuses a plan that would do more than record what is there.
func changesNothing(p *plan.Plan) error {
	for _, c := range p.Changes() {
		if c.Effect != "record" {
			return fmt.Errorf("adopt %s: it is not as it was a moment ago: %s", c.Key, c.Reason)
		}
	}
	return nil
}
