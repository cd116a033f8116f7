package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v3"

	"golem/apply"
	"golem/plan"
	"golem/state"
)

var confirmFlag = &cli.DurationFlag{
	Name: "confirm-within", Usage: "take it back unless golem confirm is called in `TIME`", HideDefault: true,
}

// confirming is what --confirm-within asks for; nil: it was not given.
func (s *session) confirming() (*apply.Confirm, error) {
	if !s.c.IsSet("confirm-within") {
		return nil, nil
	}
	within := s.c.Duration("confirm-within")
	if within < time.Second {
		return nil, &usageError{command: s.c.FullName(), err: fmt.Errorf("--confirm-within %s: it is a duration of a second or more, like 5m", within)}
	}
	if err := s.host.CanReturn(); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find golem itself: %w", err)
	}
	return &apply.Confirm{Within: within, Program: program, Args: []string{"return", "--state", s.journal}}, nil
}

func (a *app) confirmCommand() *cli.Command {
	return &cli.Command{
		Name: "confirm", Usage: "keep a run made with --confirm-within",
		Description: "Without it the run is taken back when its time is over, or at the next boot.\n" +
			"Exits 1 where no run waits to be confirmed.",
		Flags: []cli.Flag{jsonFlag}, Action: withoutArgs(a.confirm),
	}
}

func (a *app) confirm(ctx context.Context, c *cli.Command) error {
	s, err := open(c)
	if err != nil {
		return err
	}
	if err := s.checkPending(); err != nil {
		return err
	}
	journal, err := s.write(ctx)
	if err != nil {
		return err
	}
	confirmed, err := apply.ConfirmRun(ctx, apply.Options{Journal: journal, Host: s.host, Run: s.whoRuns("confirm", nil)})
	closed := journal.Close()
	if errors.Is(err, apply.ErrNothingPending) && closed == nil {
		return s.checkPending() // it was taken back while this waited
	}
	if err = errors.Join(err, closed); err != nil {
		return err
	}
	return a.untold(a.tellConfirmed(c, confirmed))
}

func (a *app) tellConfirmed(c *cli.Command, confirmed *apply.Confirmed) error {
	if c.Bool("json") {
		return plan.WriteJSON(a.out, map[string]any{"format_version": plan.FormatVersion, "confirmed": confirmed})
	}
	out := a.printer(a.out)
	if r := confirmed.Recovered; r != nil {
		if err := out.Printf("%s\n", plan.Printable(r.Sentence())); err != nil {
			return err
		}
	}
	if confirmed.Part != 0 {
		return out.Printf("Confirmed, what is left of revision %d of %s: a part had been taken back already. Revision %d says what stands.\n",
			confirmed.Revision, plan.Printable(confirmed.Lineage), confirmed.Part)
	}
	return out.Printf("Confirmed: revision %d of %s stays.\n", confirmed.Revision, plan.Printable(confirmed.Lineage))
}

// checkPending says so where nothing waits to be confirmed, before a journal is made or
// locked.
func (s *session) checkPending() error {
	r, err := s.read()
	if err != nil {
		return err
	}
	snap, err := r.Snapshot()
	var p *plan.Pending
	if err == nil {
		p, err = plan.ReadPending(snap.Pending)
	}
	switch name := s.c.String("name"); {
	case err != nil:
	case p == nil:
		err = s.nothingPending(r)
	case name != "" && name != p.Lineage:
		err = fmt.Errorf("confirm: it is a run of %s that waits to be confirmed, and none of %s", p.Lineage, name)
	}
	return errors.Join(err, r.Close())
}

// nothingPending says that nothing waits, and what became of what did.
func (s *session) nothingPending(r *state.Reader) error {
	all, err := r.Revisions(s.c.String("name"))
	if err != nil {
		return err
	}
	for i := len(all) - 1; i >= 0; i-- {
		if rev := all[i]; rev.Run.Command == state.CommandReturn {
			return fmt.Errorf("%w; the last that did was taken back at %s, as %s@%d", apply.ErrNothingPending,
				rev.At.UTC().Format("2006-01-02T15:04:05Z"), rev.Lineage, rev.Number)
		}
	}
	return apply.ErrNothingPending
}

// returnCommand is what the units of an unconfirmed run call: it waits for the time, and
// takes the run back if it still waits to be confirmed.
func (a *app) returnCommand() *cli.Command {
	return &cli.Command{
		Name: "return", Hidden: true, Usage: "take an unconfirmed run back when its time is over; systemd calls this",
		Action: func(ctx context.Context, c *cli.Command) error {
			s, err := open(c)
			if err != nil {
				return err
			}
			journal, err := apply.Wait(ctx, s.host, func() (*state.Journal, error) { return s.writeAfter(ctx, time.Hour) })
			if err != nil {
				return err
			}
			return a.takeBack(ctx, s, journal, true)
		},
	}
}

// takeBack takes back the run that waits to be confirmed. inside says that its units do.
func (a *app) takeBack(ctx context.Context, s *session, journal *state.Journal, inside bool) error {
	signs := a.newEventWriter(s.c.Bool("json"), false)
	r, err := apply.Return(ctx, apply.Options{
		Journal: journal, Host: s.host, Run: s.whoRuns(state.CommandReturn, nil), Tell: signs.alive, Watch: signs.watch,
	}, inside)
	signs.close()
	if err = errors.Join(err, journal.Close()); err != nil {
		return err
	}
	if err = a.tellReturned(s.c, r); r != nil {
		return a.untold(err)
	}
	return err
}

func (a *app) tellReturned(c *cli.Command, r *apply.Returned) error {
	if c.Bool("json") {
		return plan.WriteJSON(a.out, map[string]any{"format_version": plan.FormatVersion, "returned": r})
	}
	if r == nil {
		return a.printer(a.out).Printf("Nothing to take back: no run waits to be confirmed.\n")
	}
	return a.printer(a.out).Printf("%s\n", plan.Printable(r.Sentence()))
}
