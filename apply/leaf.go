package apply

import (
	"context"
	"errors"
	"slices"

	"golem/plan"
	"golem/reconcilers"
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
		if !t.ByProduct() && !e.staysPut(t) {
			turns = append(turns, t)
		}
	}
	for _, rec := range reconcilers.Reconcilers {
		swept, err := rec.Sweep(ctx, e.w)
		if ctx.Err() != nil {
			return nil // what is left of the wave is the next run's; this one is committed
		}
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

// staysPut says that what a turn of the last wave is about is still needed, or belongs to a
// leaf that failed or was not reached.
func (e *engine) staysPut(t *reconcilers.Turn) bool {
	if t.Sort == reconcilers.PathSort {
		return e.needed(t.Resource)
	}
	return slices.Contains(e.stuck, plan.NeedName(t.Sort, t.Resource))
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
			e.stuck = append(e.stuck, reconcilers.Keeps(e.w, record.Resource, layer.Glyph)...)
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
	b := &batch{leaf: leaf, rec: reconcilers.Of(planned[0].Request), planned: planned}
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
		return b.steps, &stepError{culprit(b.turns[at], failure), failure}, nil
	}
	for _, t := range b.turns {
		e.remember(t.Step)
		e.meet(t)
	}
	e.enacted(leaf, b.turns)
	return b.steps, nil, nil
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
	for _, t := range turns {
		t.Hush()
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
			if err := t.Conceal(&k); err != nil {
				return err
			}
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

func (e *engine) leafEnd(tx *state.Tx, leaf *plan.Leaf, outcome state.Outcome, failures []string) error {
	if !e.begun {
		return nil
	}
	return tx.LeafEnd(e.run.ID, state.LeafOutcome{Leaf: leaf.Path, Outcome: outcome, Failures: failures})
}
