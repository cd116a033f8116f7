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

// A journalError is the journal's, and ends the run: it is not the leaf's, and no retry
// mends it.
type journalError struct{ err error }

func (e *journalError) Error() string { return e.err.Error() }

// prepare looks again and writes the intents. Where it fails nothing is changed yet, and
// it can be called again.
func (e *engine) prepare(ctx context.Context, b *batch) error {
	turns, err := e.refresh(ctx, b.rec, b.leaf, b.planned)
	if err != nil || len(turns) == 0 {
		e.unfit(turns)
		return err
	}
	var steps []*state.Step
	for _, t := range turns {
		steps = append(steps, t.Step)
	}
	var own error // what the host said while its bytes were captured: the leaf's error
	err = e.do(func(tx *state.Tx) error {
		if own = b.rec.Capture(ctx, e.w, e.store, turns); own != nil {
			return own
		}
		return e.intend(tx, turns, steps)
	})
	if own != nil {
		e.unfit(turns)
		return blamed(turns, own)
	}
	if err != nil {
		return &journalError{err}
	}
	e.begun = true
	for _, t := range turns {
		e.wild = e.wild || t.Wild
		for _, resource := range append(t.Makes(), t.Resource) {
			e.touched[reconcilers.RecordKey(t.Sort, resource)] = true
		}
		for _, path := range t.Touches {
			e.touched[reconcilers.RecordKey(reconcilers.PathSort, path)] = true
		}
	}
	b.turns, b.steps = turns, steps
	e.tellEnacting(b.leaf, turns)
	return nil
}

// blamed says at which glyph of a batch something went wrong; if that is not known, at the
// first.
func blamed(turns []*reconcilers.Turn, err error) error {
	at := 0
	var turn *reconcilers.TurnError
	if errors.As(err, &turn) {
		at = turn.At
	}
	return &stepError{keyOf(turns[at]), err}
}

// unfit takes back what turns that are not enacted noted in the ledger, newest first.
func (e *engine) unfit(turns []*reconcilers.Turn) {
	for i := len(turns) - 1; i >= 0; i-- {
		e.unremember(turns[i].Step)
	}
}

// A stepError is what went wrong, and at which glyph.
type stepError struct {
	key scrolls.Key
	err error
}

func (e *stepError) Error() string { return e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

func keyOf(t *reconcilers.Turn) scrolls.Key {
	if t.Step != nil && len(t.Step.Glyphs) > 0 {
		return t.Step.Glyphs[0].Key
	}
	return scrolls.Key(t.Resource)
}

// culprit is the glyph of a turn that went wrong: the one that the error is about, else the
// first.
func culprit(t *reconcilers.Turn, failure error) scrolls.Key {
	var about interface{ About() []scrolls.Key }
	if errors.As(failure, &about) && t.Step != nil {
		for _, part := range t.Step.Glyphs {
			if slices.Contains(about.About(), part.Key) {
				return part.Key
			}
		}
	}
	return keyOf(t)
}

// holdsKey says whether a turn has a part of a glyph.
func holdsKey(t *reconcilers.Turn, key scrolls.Key) bool {
	return keyOf(t) == key || t.Step != nil && slices.ContainsFunc(t.Step.Glyphs, func(part state.StepGlyph) bool { return part.Key == key })
}

// refresh works the turns out again from the host as it is now, and compares with
// what the plan saw: plan and apply share one code path, and nothing is enacted that
// nobody approved.
func (e *engine) refresh(ctx context.Context, rec reconcilers.Reconciler, leaf *plan.Leaf, planned []*reconcilers.Turn) ([]*reconcilers.Turn, error) {
	var turns []*reconcilers.Turn
	for _, p := range planned {
		if p.ByProduct() { // worked out once, and looked at again when it goes
			p.Step.Leaf = leaf.Path
			if err := rec.Fit(e.w, p); err != nil {
				return turns, &stepError{keyOf(p), err}
			}
			turns = append(turns, p)
			continue
		}
		name := reconcilers.RecordKey(p.Sort, p.Resource)
		r := p.Request
		r.Record, r.Now, r.Leaf, r.Untold, r.Planned = e.records[name], nil, leaf.Path, true, p
		r.Last = e.last[name]
		t, err := rec.Turn(ctx, e.w, r)
		if err == nil {
			t.Hush()
		}
		if err == nil && r.Shares {
			e.last[name] = t
		}
		if err == nil && !e.wild && !e.touched[name] && !(t.Far && len(e.touched) > 0) && t.Moved(e.foremost(p)) {
			err = fmt.Errorf("enact %s: %w", keyOf(p), reconcilers.ErrMoved)
		}
		if leaf, barred := e.barred[name]; err == nil && barred {
			what := p.Resource
			if p.Sort != reconcilers.PathSort {
				what = string(keyOf(p))
			}
			err = &barredError{what, leaf}
		}
		if err == nil {
			err = rec.Fit(e.w, t)
		}
		if err != nil {
			if t != nil && t.Step != nil {
				turns = append(turns, t)
			}
			return turns, &stepError{keyOf(p), err}
		}
		if t.Step == nil {
			continue // an earlier leaf's failure left nothing to do here
		}
		turns = append(turns, t)
	}
	if len(turns) == 0 {
		return nil, nil
	}
	return turns, e.join(ctx, leaf, rec, turns, planned)
}

// join works out again what the batch does together. It must be what was approved.
func (e *engine) join(ctx context.Context, leaf *plan.Leaf, rec reconcilers.Reconciler, turns, planned []*reconcilers.Turn) error {
	err := rec.Join(ctx, e.w, turns)
	if err == nil && len(turns) == len(planned) {
		if is, ok := turns[0].Joint.(reconcilers.Sight); ok && planned[0].Joint != nil && !is.Same(planned[0].Joint) && !e.takesOver(is) {
			err = fmt.Errorf("enact %s: %w", keyOf(turns[0]), reconcilers.ErrMoved)
		}
	}
	if err == nil {
		for _, t := range turns { // one that is about no glyph was worked out for no leaf
			t.Step.Lineage, t.Step.Leaf = e.o.Lineage, leaf.Path
		}
		return nil
	}
	return blamed(turns, err)
}

// foremost is the first turn that the plan has on a turn's resource, which saw it as the
// host had it: where nothing has touched it, an earlier leaf that was to has failed.
func (e *engine) foremost(planned *reconcilers.Turn) *reconcilers.Turn {
	if e.firsts == nil {
		e.firsts = map[string]*reconcilers.Turn{}
		for _, leaf := range e.plan.Leaves {
			for _, t := range leaf.Turns {
				if name := reconcilers.RecordKey(t.Sort, t.Resource); e.firsts[name] == nil {
					e.firsts[name] = t
				}
			}
		}
	}
	if first := e.firsts[reconcilers.RecordKey(planned.Sort, planned.Resource)]; first != nil {
		return first
	}
	return planned
}

// takesOver says whether what a batch does together is all in the plan, though in another
// leaf's turn: one that failed left it undone, and that is not this leaf's failure.
func (e *engine) takesOver(is reconcilers.Sight) bool {
	parts, ok := is.(reconcilers.Parted)
	if !ok || !slices.ContainsFunc(e.report.Leaves, func(l *LeafReport) bool { return l.Outcome == RolledBack || l.Outcome == Kept }) {
		return false
	}
	var planned []any
	for _, leaf := range e.plan.Leaves {
		for _, t := range leaf.Turns {
			if t.Joint != nil {
				planned = append(planned, t.Joint)
			}
		}
	}
	return parts.Among(planned)
}
