package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"golem/apply"
	"golem/plan"
	"golem/scrolls"
	"golem/state"
)

// arranging are the commands that arrange the journal and leave the host as it is.
func (a *app) arranging() []*cli.Command {
	return []*cli.Command{
		{
			Name: "rename", Usage: "give a lineage another name", ArgsUsage: "OLD NEW", Action: a.stateRename,
			Description: "Then write name = \"NEW\" in the scroll. The host stays as it is.",
		},
		{
			Name: "move", Usage: "give a key to another lineage", ArgsUsage: "KEY LINEAGE", Action: a.stateMove,
			Description: "Then take the glyph to the other scroll. The host stays as it is.",
		},
		{
			Name: "rebind", Usage: "make a copied journal belong to this host", Action: a.stateRebind,
			Description: "For a clone of the host: what the journal says must be true of this one, too.",
		},
		{
			Name: "export", Usage: "print the journal as JSON, without secrets", Action: a.stateExport,
			Description: "docs/export.schema.json describes it.",
		},
		{
			Name: "prune", Usage: "drop old history that nothing needs any more", Action: a.statePrune,
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "keep", Usage: "keep what is younger than `TIME`, like 720h or 30d"},
				jsonFlag,
			},
			Description: "Never drops what an undo needs: what is in force, and was found before golem.",
		},
	}
}

// errNoJournal says that there is nothing to arrange.
func errNoJournal(what, path string) error {
	return fmt.Errorf("%s: there is no journal at %s", what, path)
}

func (a *app) stateRename(ctx context.Context, c *cli.Command) error {
	old, name, err := twoArgs(c, "the lineage's name, and the new one")
	if err != nil {
		return err
	}
	_, journal, err := checked(ctx, c, func(_ *session, snap *state.Snapshot) error {
		if err := knownLineage(fmt.Sprintf("rename %q to %q", old, name), old, snap); err != nil {
			return err
		}
		return apply.CheckRename(snap, old, name)
	})
	if err != nil {
		return err
	}
	if err := errors.Join(apply.Rename(journal, old, name), journal.Close()); err != nil {
		return err
	}
	return a.printer(a.out).Say("Renamed: %s is %s from now on. Write name = %q in its scroll.", plan.Printable(old), name, name)
}

// stateMove gives a key in force to another lineage.
func (a *app) stateMove(ctx context.Context, c *cli.Command) error {
	text, to, err := twoArgs(c, "one key, and the name of a lineage")
	if err != nil {
		return err
	}
	key := scrolls.Key(text)
	s, journal, err := checked(ctx, c, func(_ *session, snap *state.Snapshot) error {
		if _, ok := snap.InForce(key); !ok {
			return unknownKey("move", key, snap)
		}
		return apply.CheckMove(snap, key, to)
	})
	if err != nil {
		return err
	}
	moved, err := apply.Move(apply.Options{Journal: journal, Host: s.host, Run: s.whoRuns("state move", nil)}, key, to)
	if err = errors.Join(err, journal.Close()); err != nil {
		return err
	}
	fresh := ""
	if moved.To.Number == 1 {
		fresh = ", a new lineage"
	}
	return a.printer(a.out).Say("Moved: %s is of %s%s. The host is as it was; %s@%d and %s@%d say so.", plan.Printable(text), to, fresh,
		plan.Printable(moved.From.Lineage), moved.From.Number, to, moved.To.Number)
}

// stateRebind lets a journal that was copied from another host, or root, belong to this one.
func (a *app) stateRebind(ctx context.Context, c *cli.Command) error {
	if err := noArgs(c); err != nil {
		return err
	}
	s, err := open(c)
	if err != nil {
		return err
	}
	o := s.options()
	r, err := s.readAnybodys()
	if err != nil {
		return err
	}
	exists := r.Exists()
	machine, err1 := r.Meta("machine")
	root, err2 := r.Meta("root")
	if err := errors.Join(err1, err2, r.Close()); err != nil {
		return err
	}
	if !exists {
		return errNoJournal("rebind the journal", s.journal)
	}
	if machine == o.Machine && root == o.Root {
		return a.printer(a.out).Printf("Nothing to do: the journal belongs here already.\n")
	}
	o.Rebind, o.Interrupt = true, ctx.Done()
	journal, err := state.Open(s.journal, o)
	if err != nil {
		return err
	}
	if err := journal.Close(); err != nil {
		return err
	}
	return a.printer(a.out).Say("Rebound: the journal belongs to %s from now on; it was %s.", placed(o.Machine, o.Root), placed(machine, root))
}

// placed names where a journal belongs.
func placed(machine, root string) string {
	if machine == "" { // of an image that is built
		return fmt.Sprintf("no machine, root %s", plan.Printable(root))
	}
	return fmt.Sprintf("machine %s, root %s", plan.Printable(machine), plan.Printable(root))
}

func (a *app) stateExport(_ context.Context, c *cli.Command) error {
	if err := noArgs(c); err != nil {
		return err
	}
	return reading(c, func(s *session, r *state.Reader) error {
		if !r.Exists() {
			return errNoJournal("export the journal", s.journal)
		}
		e, err := plan.MakeExport(r)
		if err != nil {
			return err
		}
		return plan.WriteJSON(a.out, e)
	})
}

// ago is a duration as a person writes it: also in days, and in weeks.
func ago(text string) (time.Duration, error) {
	for unit, hours := range map[string]int{"d": 24, "w": 7 * 24} {
		var n int
		if _, err := fmt.Sscanf(text, "%d"+unit, &n); err == nil && text == fmt.Sprintf("%d%s", n, unit) {
			if n < 0 || n > 100000 {
				return 0, errors.New("it is out of range")
			}
			return time.Duration(n*hours) * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = errors.New("it is less than nothing")
	}
	return d, err
}

// statePrune drops history that no undo needs.
func (a *app) statePrune(ctx context.Context, c *cli.Command) error {
	if err := noArgs(c); err != nil {
		return err
	}
	if !c.IsSet("keep") {
		return &usageError{command: c.FullName(), err: errors.New("--keep says how much history to keep, like 90d")}
	}
	keep, err := ago(c.String("keep"))
	if err != nil {
		return &usageError{command: c.FullName(), err: fmt.Errorf("--keep %q is no time, like 90d or 720h", c.String("keep"))}
	}
	_, journal, err := checked(ctx, c, func(s *session, snap *state.Snapshot) error {
		if snap.Journal == "" {
			return errNoJournal("prune the journal", s.journal)
		}
		return nil
	})
	if err != nil {
		return err
	}
	pruned, err := apply.Prune(journal, time.Now().Add(-keep))
	if err = errors.Join(err, journal.Close()); err != nil {
		return err
	}
	return a.list(c, "pruned", pruned, func(out *plan.Printer) error { return out.Say("%s", pruned.Sentence()) })
}
