package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// exhausted ends a leaf that failed, as its policy has it: taken back, or kept as far
// as it came. An interrupted leaf is taken back in any case.
func (e *engine) exhausted(ctx context.Context, leaf *plan.Leaf, batch []*reconcilers.Turn, done, failed []*state.Step, failure error) error {
	if leaf.Policy.OnExhaust == "keep" && ctx.Err() == nil {
		return e.keep(ctx, leaf, batch, done, failed, failure)
	}
	return e.fail(leaf, append(done, failed...), failure)
}

// fail takes a leaf back to its last committed state, newest step first, and writes
// down what could not be taken back.
func (e *engine) fail(leaf *plan.Leaf, steps []*state.Step, failure error) error {
	r := e.report.leaf(leaf.Path)
	e.failed(leaf, failure)
	// The way back is not to be interrupted: it ends where the leaf was whole.
	ctx := context.Background()
	e.report.takenBack(leaf.Path, steps)
	e.report.blame(leaf.Path, failure)
	stuck := e.undo(ctx, r, steps, failedKey(failure))
	e.forgetTaken(steps, stuck)
	if err := e.refire(ctx, leaf, steps); err != nil {
		r.fail(fmt.Errorf("after taking it back: %w", err))
	}
	e.resetChecks(leaf.Path, slices.DeleteFunc(slices.Clone(steps), func(s *state.Step) bool { return stuck[s] != nil }))
	if e.begun {
		err := e.do(func(tx *state.Tx) error {
			if err := reverse(tx, steps, stuck, failure); err != nil {
				return err
			}
			return e.leafEnd(tx, leaf, RolledBack, r.texts())
		})
		if err != nil {
			return errors.Join(failure, err)
		}
	}
	e.stay(leaf.Turns)
	r.Outcome = RolledBack
	e.ended(leaf, RolledBack)
	return nil
}

// failed notes and tells what stopped a leaf.
func (e *engine) failed(leaf *plan.Leaf, failure error) {
	e.report.leaf(leaf.Path).fail(failure)
	e.tellFailed(leaf.Path, failure)
}

// undo takes steps back, newest first. What it could not, and what stays of a step all the
// same, it names. broken is the key of the one that did not come to its end.
func (e *engine) undo(ctx context.Context, r *LeafReport, steps []*state.Step, broken scrolls.Key) map[*state.Step]error {
	if len(steps) > 0 {
		defer e.pulse.begin(Doing{Leaf: r.Leaf, What: "taking it back"})()
	}
	stuck := reconcilers.TakeBack(ctx, e.w, e.store, steps, func(_ *state.Step, act func() error) error { return act() })
	for _, s := range steps {
		if err := stuck[s]; err != nil {
			e.report.stuck(r.Leaf, s)
			r.fail(&takeBackError{s, err})
			continue
		}
		key := keyOfStep(s)
		if stays := reconcilers.Stays(s, key != broken); stays != "" {
			r.stays = true
			r.fail(&stepError{key, errors.New(stays)})
		}
	}
	return stuck
}

// reverse journals that steps were taken back; one that could not be keeps its receipt,
// and the next run tries again.
func reverse(tx *state.Tx, steps []*state.Step, stuck map[*state.Step]error, failure error) error {
	for i := len(steps) - 1; i >= 0; i-- {
		if stuck[steps[i]] != nil {
			if err := tx.Owe(steps[i]); err != nil {
				return err
			}
			continue
		}
		if err := tx.Reverse(steps[i], failure.Error()); err != nil {
			return err
		}
	}
	return nil
}

// keep leaves what a failed leaf has done and stops it there. The batch that failed is
// taken back, and the glyphs before the one that failed in it are enacted once more on
// their own. What is due stays due: the next run fires it.
func (e *engine) keep(ctx context.Context, leaf *plan.Leaf, batch []*reconcilers.Turn, done, failed []*state.Step, failure error) error {
	r := e.report.leaf(leaf.Path)
	e.failed(leaf, failure)
	e.report.blame(leaf.Path, failure)
	stuck := e.undo(context.WithoutCancel(ctx), r, failed, failedKey(failure))
	if e.begun && len(failed) > 0 {
		if err := e.do(func(tx *state.Tx) error { return reverse(tx, failed, stuck, failure) }); err != nil {
			return errors.Join(failure, err)
		}
	}
	e.forgetTaken(failed, stuck)
	at := slices.IndexFunc(batch, func(t *reconcilers.Turn) bool { return holdsKey(t, failedKey(failure)) })
	if at > 0 && len(stuck) == 0 {
		batch[0].Joint = nil // what a smaller batch does together, the plan did not see
		steps, again, err := e.batch(ctx, leaf, batch[:at])
		if err != nil {
			return err
		}
		if again != nil {
			return e.keep(ctx, leaf, batch[:at], done, steps, again)
		}
		done = append(done, steps...)
	}
	return e.keepDone(leaf, done)
}

// keepDone writes the ends of a kept leaf's steps, and its own.
func (e *engine) keepDone(leaf *plan.Leaf, done []*state.Step) error {
	r := e.report.leaf(leaf.Path)
	r.Outcome = Kept
	e.stayUndone(leaf.Turns, done)
	if e.begun {
		err := e.do(func(tx *state.Tx) error {
			for _, s := range done {
				if err := tx.Done(s); err != nil {
					return err
				}
			}
			return e.leafEnd(tx, leaf, Kept, r.texts())
		})
		if err != nil {
			return err
		}
	}
	e.ended(leaf, Kept)
	return nil
}

// stayUndone remembers what the turns that were not reached would have taken away.
func (e *engine) stayUndone(turns []*reconcilers.Turn, done []*state.Step) {
	reached := map[string]bool{}
	for _, s := range done {
		reached[reconcilers.RecordKey(s.Sort, s.Resource)] = true
	}
	e.stay(slices.DeleteFunc(slices.Clone(turns), func(t *reconcilers.Turn) bool {
		return reached[reconcilers.RecordKey(t.Sort, t.Resource)]
	}))
}

// forgetTaken brings the live records back to what was before steps that were taken back.
// Of one that could not be, the ledger keeps what is still there, and no later leaf may
// touch what it is about.
func (e *engine) forgetTaken(steps []*state.Step, stuck map[*state.Step]error) {
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		if stuck[s] == nil {
			e.unremember(s)
			continue
		}
		setRecord(e.records, s, s.Before)
		e.barred[reconcilers.RecordKey(s.Sort, s.Resource)] = s.Leaf
	}
}

// A takeBackError says that a step could not be taken back.
type takeBackError struct {
	step *state.Step
	err  error
}

func (e *takeBackError) Error() string { return fmt.Sprintf("take back %s: %v", about(e.step), e.err) }
func (e *takeBackError) Unwrap() error { return e.err }

// Hint says how it goes on.
func (e *takeBackError) Hint() string {
	var inner interface{ Hint() string }
	if errors.As(e.err, &inner) {
		return inner.Hint()
	}
	return fmt.Sprintf("the next run tries again; golem state forget %s gives it up", keyOfStep(e.step))
}

// about names what a step is about: a path, or a key.
func about(s *state.Step) string {
	if s.Sort == reconcilers.PathSort {
		return s.Resource
	}
	return string(keyOfStep(s))
}

// A barredError says that a resource waits for the next run to take it back.
type barredError struct{ resource, leaf string }

func (e *barredError) Error() string {
	return fmt.Sprintf("%s is not as it was: what %s did to it could not be taken back; the next run tries that again", e.resource, e.leaf)
}

// unremember brings the live records back to what was before a step.
func (e *engine) unremember(s *state.Step) {
	setRecord(e.records, s, s.Before)
	for _, change := range s.Ledger {
		name := reconcilers.RecordKey(change.Sort, change.Resource)
		if change.Before == nil {
			delete(e.w.Ledger, name)
		} else {
			e.w.Ledger[name] = change.Before
		}
	}
}
