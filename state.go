package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"golem/apply"
	"golem/plan"
	"golem/scrolls"
	"golem/state"
)

func (a *app) stateCommand() *cli.Command {
	return &cli.Command{
		Name: "state", Usage: "look into the journal, and arrange it",
		Commands: append([]*cli.Command{
			{Name: "list", Usage: "list the keys in force", Flags: []cli.Flag{jsonFlag}, Action: withoutArgs(a.stateList)},
			{Name: "show", Usage: "show what the journal holds of a key", ArgsUsage: "KEY", Flags: []cli.Flag{jsonFlag}, Action: a.stateShow},
			{
				Name: "forget", Usage: "drop a key from the journal and leave the host as it is", ArgsUsage: "KEY", Action: a.stateForget,
				Description: "What an earlier run could not take back of it is given up, too.",
				Flags:       []cli.Flag{&cli.BoolFlag{Name: "found", Usage: "forget only what was there before it"}},
			},
			{Name: "check", Usage: "verify the journal", Flags: []cli.Flag{jsonFlag}, Action: withoutArgs(a.stateCheck)},
		}, a.arranging()...),
		Action: onlySubcommands,
	}
}

func (a *app) stateList(_ context.Context, c *cli.Command) error {
	return reading(c, func(_ *session, r *state.Reader) error {
		snap, err := r.Snapshot()
		if err != nil {
			return err
		}
		if err := knownLineage("list keys", c.String("name"), snap); err != nil {
			return err
		}
		rows := plan.Keys(snap, c.String("name"))
		return a.list(c, "keys", rows, func(out *plan.Printer) error { return plan.KeyTable(out, rows) })
	})
}

func (a *app) stateShow(_ context.Context, c *cli.Command) error {
	if c.Args().Len() != 1 {
		return &usageError{command: c.FullName(), err: errors.New("one key")}
	}
	return reading(c, func(_ *session, r *state.Reader) error {
		snap, err := r.Snapshot()
		if err != nil {
			return err
		}
		key := scrolls.Key(c.Args().First())
		if _, ok := snap.InForce(key); !ok {
			return unknownKey("show", key, snap)
		}
		doc, err := plan.ShowKey(snap, key)
		if err != nil {
			return err
		}
		return a.list(c, "key", doc, func(out *plan.Printer) error { return doc.Text(out) })
	})
}

// stateForget drops a key from the journal and leaves the host as it is.
func (a *app) stateForget(ctx context.Context, c *cli.Command) error {
	if c.Args().Len() != 1 {
		return &usageError{command: c.FullName(), err: errors.New("one key")}
	}
	key := scrolls.Key(c.Args().First())
	s, journal, err := checked(ctx, c, func(_ *session, snap *state.Snapshot) error {
		if _, ok := snap.InForce(key); !ok && (c.Bool("found") || len(apply.OwedOf(snap, key)) == 0) {
			return unknownKey("forget", key, snap)
		}
		return nil
	})
	if err != nil {
		return err
	}
	rev, err := apply.Forget(ctx, apply.Options{Journal: journal, Host: s.host, Run: s.whoRuns("state forget", nil)}, key, c.Bool("found"))
	if err = errors.Join(err, journal.Close()); err != nil {
		return err
	}
	what := string(key)
	if c.Bool("found") {
		what = "what was there before " + what
	}
	return a.printer(a.out).Printf("Forgotten: %s. The host is as it was; revision %d of %s says so.\n",
		plan.Printable(what), rev.Number, plan.Printable(rev.Lineage))
}

func (a *app) stateCheck(_ context.Context, c *cli.Command) error {
	return reading(c, func(s *session, r *state.Reader) error {
		if !r.Exists() {
			return fmt.Errorf("check journal %s: there is none", s.journal)
		}
		findings, err := r.Check()
		if err != nil {
			return err
		}
		rows := plan.Findings(findings)
		err = a.list(c, "findings", rows, func(out *plan.Printer) error { return plan.FindingTable(out, s.journal, rows) })
		for _, f := range findings {
			if f.Level == state.Damage && err == nil {
				return exitCode(exitError)
			}
		}
		return err
	})
}
