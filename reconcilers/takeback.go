package reconcilers

import (
	"context"
	"fmt"

	"golem/state"
)

// A Halter is a reconciler of what runs. What a step started has to stop before what is
// beneath it is taken back, and what it stopped is started only when all that is back: a
// service must not come up with the files that go.
type Halter interface {
	// Halt does of Undo what comes first: what the step started is stopped, and no longer
	// enabled. It may be done twice, and Undo after it does the rest.
	Halt(ctx context.Context, w *World, s *state.Step) error
}

// TakeBack undoes steps, newest first, and names those that could not be. Beneath such a
// one the older steps on the same resource are left, too. What runs is halted in its turn
// and brought back behind all else. Each act is done through try, which may do it again.
func TakeBack(ctx context.Context, w *World, store Store, steps []*state.Step, try func(s *state.Step, act func() error) error) map[*state.Step]error {
	stuck := map[*state.Step]error{}
	held := map[string]error{}
	do := func(s *state.Step, act func() error) {
		name := RecordKey(s.Sort, s.Resource)
		err := held[name]
		if err == nil {
			err = try(s, act)
		}
		if err != nil {
			held[name], stuck[s] = err, err
		}
	}
	var runs []*state.Step // newest first
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		rec := OfStep(s)
		if rec == nil {
			stuck[s] = fmt.Errorf("take back %s: this golem does not know how to take back a %q", s.Resource, s.Sort)
			continue
		}
		if h, ok := rec.(Halter); ok {
			runs = append(runs, s)
			do(s, func() error { return h.Halt(ctx, w, s) })
			continue
		}
		do(s, func() error { return rec.Undo(ctx, w, store, s) })
	}
	for _, s := range runs {
		do(s, func() error { return OfStep(s).Undo(ctx, w, store, s) })
	}
	return stuck
}

// A Stayer is a reconciler of steps that cannot always be taken back.
type Stayer interface {
	// Stays says what of a step stays though it was taken back; "" for nothing. whole says
	// that the step had come to its end.
	Stays(s *state.Step, whole bool) string
}

// Stays says what of a step stays though it was taken back; "" for nothing.
func Stays(s *state.Step, whole bool) string {
	if own, ok := Reconcilers[s.Sort].(Stayer); ok {
		return own.Stays(s, whole)
	}
	return ""
}
