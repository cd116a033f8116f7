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

// enact runs the plan, leaf by leaf, then the last wave, and commits the revision.
func (e *engine) enact(ctx context.Context) error {
	stages := make([]*plan.Leaf, 0, len(e.plan.Leaves)+1)
	for _, leaf := range e.plan.Leaves {
		if acting(leaf.Turns) || e.fires(leaf) {
			stages = append(stages, leaf)
			continue
		}
		e.report.leaf(leaf.Path).Outcome = Settled
	}
	for i, leaf := range stages {
		if ctx.Err() != nil {
			e.skip(leaf)
			continue
		}
		if err := e.leaf(ctx, leaf, i == len(stages)-1 && len(e.plan.Wave) == 0); err != nil {
			return e.fatal(err)
		}
	}
	if err := e.wave(ctx); err != nil {
		return e.fatal(err)
	}
	e.fireLate(ctx)
	if err := e.commit(); err != nil {
		return e.fatal(err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return nil
}

// wave takes away the directories that golem made and that nothing needs any more,
// deepest first. What belongs to a leaf that failed or was not reached stays; and what
// is left of by-products is looked up again, since such a leaf may need them.
func (e *engine) wave(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	e.stand()
	var turns []*reconcilers.Turn
	for _, t := range e.plan.Wave {
		if !t.ByProduct() && (t.Sort != reconcilers.PathSort || !e.needed(t.Resource)) {
			turns = append(turns, t)
		}
	}
	for _, rec := range reconcilers.Reconcilers {
		swept, err := rec.Sweep(ctx, e.w)
		if err != nil {
			return err
		}
		for _, t := range swept {
			t.Lineage, t.Step.Lineage = e.o.Lineage, e.o.Lineage
		}
		turns = append(turns, swept...)
	}
	if len(turns) == 0 {
		return nil
	}
	reconcilers.SortLate(turns)
	return e.leaf(ctx, &plan.Leaf{Path: plan.WaveLeaf, Policy: e.plan.PolicyAt(""), Turns: turns}, true)
}

// acting says whether a leaf has anything to write or do in its own turn.
func acting(turns []*reconcilers.Turn) bool {
	for _, t := range turns {
		if t.Step != nil {
			return true
		}
	}
	return false
}

// fires says whether a leaf has triggers that an earlier run left due, or that this one
// makes due before its turn ends.
func (e *engine) fires(leaf *plan.Leaf) bool {
	return slices.ContainsFunc(e.plan.Due, func(d plan.Due) bool { return d.Leaf == leaf.Path && !d.Late }) ||
		slices.ContainsFunc(e.plan.Checks, func(c plan.Check) bool { return c.Leaf == leaf.Path })
}

// fatal marks an error of the journal itself: golem must not act without it.
func (e *engine) fatal(err error) error {
	if e.begun || e.report.Recovered != nil {
		return &TouchedError{err}
	}
	return err
}

// skip notes a leaf that was not reached. What stands there stays.
func (e *engine) skip(leaf *plan.Leaf) {
	e.report.leaf(leaf.Path).Outcome = Skipped
	e.stay(leaf.Turns)
	e.ended(leaf, Skipped)
}

// stay remembers that what these turns would have taken away is still there.
func (e *engine) stay(turns []*reconcilers.Turn) {
	for _, t := range turns {
		record := e.records[reconcilers.RecordKey(t.Sort, t.Resource)]
		if record == nil {
			continue
		}
		e.stuck = append(e.stuck, plan.NeedName(t.Sort, t.Resource))
		for _, layer := range record.Layers {
			e.stuck = append(e.stuck, reconcilers.Keeps(layer.Glyph)...)
		}
	}
}

// leaf enacts one leaf. An error of the leaf is the leaf's own and is reported; what
// comes back is an error of the journal, which ends the run.
func (e *engine) leaf(ctx context.Context, leaf *plan.Leaf, last bool) error {
	e.tell(Event{Type: "leaf_started", Leaf: leaf.Path, Glyphs: glyphsOf(leaf.Turns)})
	e.under(leaf.Path, leaf.Policy)
	var done []*state.Step
	rest := leaf.Turns
	for len(rest) > 0 {
		if rest[0].Step == nil {
			rest = rest[1:]
			continue
		}
		batch := reconcilers.Batch(rest)
		rest = rest[len(batch):]
		steps, failure, err := e.batch(ctx, leaf, batch)
		if err != nil {
			return err
		}
		if failure != nil {
			return e.exhausted(ctx, leaf, batch, done, steps, failure)
		}
		done = append(done, steps...)
	}
	if err := e.fire(ctx, leaf.Path); err != nil {
		return e.exhausted(ctx, leaf, nil, done, nil, err)
	}
	return e.settle(leaf, done, last)
}

// glyphsOf counts what turns are about.
func glyphsOf(turns []*reconcilers.Turn) int {
	n := 0
	for _, t := range turns {
		if t.Step != nil {
			n += len(t.Step.Glyphs)
		}
	}
	return n
}

// A batch is the turns that share one commit of their intents, on their way.
type batch struct {
	leaf    *plan.Leaf
	rec     reconcilers.Reconciler
	planned []*reconcilers.Turn
	// What they are on the host as it is now; empty: nothing is left to do.
	turns []*reconcilers.Turn
	steps []*state.Step // whose intents are on disk
}

// batch looks again, writes the intents, and enacts. failure is the leaf's error; the
// steps then still have to be taken back.
func (e *engine) batch(ctx context.Context, leaf *plan.Leaf, planned []*reconcilers.Turn) (steps []*state.Step, failure, err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err(), nil
	}
	defer e.pulse.begin(Doing{Leaf: leaf.Path, Key: keyOf(planned[0])})()
	b := &batch{leaf: leaf, rec: reconcilers.Reconcilers[planned[0].Sort], planned: planned}
	at, failure := e.enactAgain(ctx, b)
	var journal *journalError
	if errors.As(failure, &journal) {
		return nil, nil, journal.err
	}
	if len(b.steps) == 0 {
		return nil, failure, nil
	}
	if failure != nil {
		e.broke(leaf, b.turns, at, failure)
		return b.steps, &stepError{keyOf(b.turns[at]), failure}, nil
	}
	for _, t := range b.turns {
		e.remember(t.Step)
		e.meet(t)
	}
	e.enacted(leaf, b.turns)
	return b.steps, nil, nil
}

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
		r.Record, r.Now, r.Leaf, r.Untold = e.records[name], nil, leaf.Path, true
		t, err := rec.Turn(ctx, e.w, r)
		if err == nil && !e.wild && !e.touched[name] && t.Moved(e.foremost(p)) {
			err = fmt.Errorf("enact %s: %w", keyOf(p), reconcilers.ErrMoved)
		}
		if leaf, barred := e.barred[name]; err == nil && barred {
			err = &barredError{p.Resource, leaf}
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

// intend writes everything about the turns that must outlive a crash.
func (e *engine) intend(tx *state.Tx, turns []*reconcilers.Turn, steps []*state.Step) error {
	if !e.begun {
		if err := e.begin(tx); err != nil {
			return err
		}
	}
	for _, s := range steps {
		s.Run = e.run.ID
	}
	if err := tx.Intend(steps); err != nil {
		return err
	}
	if err := e.call(tx, steps); err != nil {
		return err
	}
	for _, t := range turns {
		for i := range t.Keeps {
			k := t.Keeps[i]
			k.Run, k.Step = e.run.ID, t.Step.ID
			if err := tx.Keep(&k); err != nil {
				return err
			}
			e.report.Kept = append(e.report.Kept, k)
		}
	}
	return nil
}

func (e *engine) begin(tx *state.Tx) error {
	e.run.ID = 0
	e.run.Lineage = e.o.Lineage
	if err := tx.Begin(&e.run); err != nil {
		return err
	}
	if err := e.await(tx); err != nil {
		return err
	}
	if e.o.Scroll != nil && e.o.Scroll.Defaulted && e.plan.Revision == 0 {
		return tx.BindLineage(e.o.Lineage, e.o.Scroll.Dir)
	}
	return nil
}

// remember brings the live records up to what a step left.
func (e *engine) remember(s *state.Step) {
	setRecord(e.records, s, s.After)
}

func setRecord(records map[string]*state.Record, s *state.Step, r *state.Record) {
	name := reconcilers.RecordKey(s.Sort, s.Resource)
	if r == nil {
		delete(records, name)
		return
	}
	records[name] = r
}

// settle writes the ends of a leaf's steps and the leaf's own.
func (e *engine) settle(leaf *plan.Leaf, done []*state.Step, last bool) error {
	e.queue = append(e.queue, func(tx *state.Tx) error {
		for _, s := range done {
			if err := tx.Done(s); err != nil {
				return err
			}
		}
		return e.leafEnd(tx, leaf, Settled, nil)
	})
	e.report.leaf(leaf.Path).Outcome = Settled
	if last {
		return nil // the revision's commit makes it durable; then it is told
	}
	if err := e.do(nil); err != nil {
		return err
	}
	e.ended(leaf, Settled)
	return nil
}

func (e *engine) leafEnd(tx *state.Tx, leaf *plan.Leaf, outcome string, failures []string) error {
	if !e.begun {
		return nil
	}
	return tx.LeafEnd(e.run.ID, state.LeafOutcome{Leaf: leaf.Path, Outcome: outcome, Failures: failures})
}
