package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golem/plan"
	"golem/reconcilers"
	"golem/state"
)

// Confirm says that a run is taken back unless somebody confirms it within a time, which
// counts from the run's end (design: "--confirm-within").
type Confirm struct {
	Within time.Duration
	// Program is this golem, which is pinned; Args are what the pinned one is to do.
	Program string
	Args    []string
}

// arm makes everything stand ready that takes the run back, before its first change.
func (e *engine) arm(ctx context.Context) error {
	c := e.o.Confirm
	if c == nil {
		return nil
	}
	program, err := e.j.Pin(c.Program)
	if err != nil {
		return err
	}
	about := fmt.Sprintf("the %s of %s", e.run.Command, e.o.Lineage)
	armed := &plan.Pending{
		Lineage: e.o.Lineage, Command: e.run.Command, Revision: e.plan.Revision + 1, Unit: pendingUnit(e.j.Path()), Within: c.Within,
	}
	err = e.o.Host.Arm(ctx, reconcilers.Return{
		Name: armed.Unit, Argv: append([]string{program}, c.Args...), About: about, Delay: c.Within,
	})
	if err != nil {
		return errors.Join(err, e.o.Host.Disarm(context.WithoutCancel(ctx), armed.Unit, true), e.j.Unpin())
	}
	e.armed = armed
	e.tell(Event{Type: "armed", Message: fmt.Sprintf("taken back unless confirmed within %s", plan.Lasting(c.Within))})
	return nil
}

// await journals that the run waits to be confirmed, from now on; at its end it no longer
// does if nothing that it did stands.
func (e *engine) await(tx *state.Tx) error {
	if e.armed == nil {
		return nil
	}
	if e.begun {
		stands, err := tx.Standing(e.run.ID)
		if err != nil {
			return err
		}
		if !stands {
			return tx.SetPending(nil)
		}
	}
	e.armed.Boot, e.armed.Due = reconcilers.BootID(), e.o.Host.Uptime()+e.armed.Within
	e.armed.Until = e.o.Now().Add(e.armed.Within)
	return writePending(tx, e.run.ID, e.armed)
}

// disarmIdle takes away what stood ready for a run of which nothing stands; of any other
// the report says that it waits.
func (e *engine) disarmIdle(ctx context.Context) error {
	if e.armed == nil {
		return nil
	}
	snap, err := e.j.Snapshot()
	if err != nil {
		return err
	}
	if snap.Pending != nil {
		e.report.Pending = e.armed.JSON()
		return nil
	}
	unit := e.armed.Unit
	e.armed = nil
	return disarm(context.WithoutCancel(ctx), e.j, e.o.Host, unit, true)
}

// returnOverdue takes back a run whose time to be confirmed is over, though nothing did:
// what stood ready is gone.
func (e *engine) returnOverdue(ctx context.Context) (*Returned, error) {
	snap, err := e.j.Snapshot()
	if err != nil || snap.Pending == nil {
		return nil, err
	}
	p, err := plan.ReadPending(snap.Pending)
	if err != nil || timeLeft(p, e.o.Host) > 0 {
		return nil, err
	}
	r, err := newEngine(e.o).takeRunBack(snap)
	if err != nil {
		return nil, &TouchedError{err}
	}
	e.tell(Event{Type: "returned", Message: r.Sentence()})
	return r, disarm(ctx, e.j, e.o.Host, p.Unit, true)
}

// sweepReturn takes away what a confirmation or a return that died has left behind.
func (e *engine) sweepReturn(ctx context.Context) error {
	if !e.j.Pinned() || e.o.Host.CanReturn() != nil {
		return nil
	}
	snap, err := e.j.Snapshot()
	if err != nil || snap.Pending != nil {
		return err
	}
	return disarm(ctx, e.j, e.o.Host, pendingUnit(e.j.Path()), true)
}

// disarm takes away what would take a run back.
func disarm(ctx context.Context, j *state.Journal, h *reconcilers.Host, unit string, waiting bool) error {
	if err := h.Disarm(ctx, unit, waiting); err != nil {
		return err
	}
	return j.Unpin()
}

// A ReturnedError says that a scroll was taken back because nobody confirmed it.
type ReturnedError struct{ Revision *state.Revision }

func (e *ReturnedError) Error() string {
	return fmt.Sprintf("not applied: this very scroll was taken back at %s, because nobody confirmed it (%s@%d)",
		e.Revision.At.UTC().Format("2006-01-02T15:04:05Z"), e.Revision.Lineage, e.Revision.Number)
}

// Hint says how it is applied all the same.
func (*ReturnedError) Hint() string {
	return "change it; or say \"yes\" at a terminal, or apply it with --confirm-within again"
}

// returned refuses an unattended run of a scroll that was taken back because nobody
// confirmed it, so that cron does not bring it back. Somebody's "yes" since then counts.
func (e *engine) returned() error {
	if !e.o.Unattended || e.o.Confirm != nil || e.run.Digest == "" || e.o.Destroy {
		return nil
	}
	all, err := e.j.Revisions(e.o.Lineage)
	if err != nil {
		return err
	}
	for i := len(all) - 1; i >= 0; i-- {
		switch rev := all[i]; {
		case rev.Run.Digest != e.run.Digest || rev.Run.Command == "destroy":
		case rev.Run.Command == state.CommandReturn:
			return &ReturnedError{rev}
		case rev.Outcome == Settled || rev.Outcome == partial:
			return nil // it stands: somebody said yes, or confirmed it
		}
	}
	return nil
}

// ErrNothingPending says that no run waits to be confirmed.
var ErrNothingPending = errors.New("no run waits to be confirmed")

// A Confirmed is a run that somebody confirmed.
type Confirmed struct {
	Lineage  string `json:"lineage"`
	Revision int    `json:"revision"`
	// Recovered is set where the run had been interrupted: what was in flight is taken
	// back, and what had settled stays.
	Recovered *Recovered `json:"recovered"`
	// Part is the revision that says what is left of it, where a part had been taken back
	// already; 0: it stays whole.
	Part int `json:"part,omitempty"`
}

// ConfirmRun keeps the run that waits to be confirmed, and takes away what would have
// taken it back.
//
// A return that could not come to its end may have taken a part of it back: then a revision
// says what is left.
func ConfirmRun(ctx context.Context, o Options) (*Confirmed, error) {
	e := newEngine(o)
	recovered, err := e.recover(ctx)
	if err != nil {
		return nil, err
	}
	snap, err := e.j.Snapshot()
	if err != nil {
		return nil, err
	}
	if snap.Pending == nil {
		return nil, ErrNothingPending
	}
	p, err := plan.ReadPending(snap.Pending)
	if err != nil {
		return nil, err
	}
	// From the commit on nothing takes the run back: a return that begins later finds
	// nothing that waits.
	c := &Confirmed{Lineage: p.Lineage, Revision: p.Revision, Recovered: recovered}
	if c.Part, err = e.confirmPart(p, snap.Pending.Run); err != nil {
		return nil, err
	}
	return c, disarm(ctx, e.j, o.Host, p.Unit, true)
}

// confirmPart journals that a run waits no more. Where a return took a part of it back it
// makes a revision of the rest, and gives its number.
func (e *engine) confirmPart(p *plan.Pending, run int64) (int, error) {
	steps, err := e.j.StepsOf(run)
	if err != nil {
		return 0, err
	}
	gone := slices.DeleteFunc(steps, func(s *state.Step) bool {
		return s.Status != state.Reversed || s.Detail != errUnconfirmed.Error()
	})
	before, err := rulesBefore(e.j, p.Lineage, p.Revision)
	if err != nil {
		return 0, err
	}
	rev := &state.Revision{Lineage: p.Lineage, Outcome: partial}
	rev.Leaves, _ = takenBackOf(gone)
	err = e.j.Do(func(tx *state.Tx) error {
		if err := tx.SetPending(nil); err != nil || len(gone) == 0 {
			return err
		}
		e.run.Lineage = p.Lineage
		if err := tx.Begin(&e.run); err != nil {
			return err
		}
		rev.Run = e.run
		return commitInForce(tx, rev, before)
	})
	return rev.Number, err
}
