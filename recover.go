package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v3"

	"golem/apply"
	"golem/plan"
)

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

// recover settles what an interrupted run left; where nothing is to be done it takes no lock.
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
