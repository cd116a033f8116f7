package apply

import (
	"context"
	"errors"
	"slices"

	"golem/plan"
	"golem/reconcilers"
	"golem/state"
)

// recall takes up the triggers that an earlier run left due. What nobody declares any
// more is cleared with the next revision.
func (e *engine) recall(due []state.Due) {
	e.due = map[string]state.Due{}
	for _, d := range due {
		if d.Lineage != e.o.Lineage {
			continue
		}
		if !e.plan.IsDeclared(d.Leaf, d.Name) {
			e.clearDue(d)
			continue
		}
		e.due[d.Name] = d
	}
}

func (e *engine) isDue(name string) bool {
	_, ok := e.due[name]
	return ok
}

func (e *engine) clearDue(d state.Due) {
	e.queue = append(e.queue, func(tx *state.Tx) error { return tx.ClearDue(d) })
}

// met notes that a trigger or check ran, or needs to no more.
func (e *engine) met(name string) {
	if d, ok := e.due[name]; ok {
		e.clearDue(d)
		delete(e.due, name)
	}
}

// call journals what steps make due, with their intent.
func (e *engine) call(tx *state.Tx, steps []*state.Step) error {
	if err := e.callChecks(tx, steps); err != nil {
		return err
	}
	for _, t := range e.plan.Triggers {
		for _, s := range steps {
			for _, part := range s.Glyphs {
				if !t.Calls(part) {
					continue
				}
				if err := e.setDue(tx, state.Due{Lineage: e.o.Lineage, Leaf: t.Leaf, Name: t.Name(), Step: s.ID}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// meet clears what a turn has met that started its unit after all changes so far.
func (e *engine) meet(t *reconcilers.Turn) {
	if !t.Fresh {
		return
	}
	for _, part := range t.Step.Glyphs {
		for _, trigger := range e.plan.Triggers {
			if trigger.Glyph.Key == part.Key {
				e.met(trigger.Name())
			}
		}
	}
}

// fire runs the due triggers of a leaf, and then its due checks.
func (e *engine) fire(ctx context.Context, leaf string) error {
	if e.begun || len(e.due) > 0 {
		if err := e.flush(ctx, leaf); err != nil {
			return err
		}
	}
	fire, met := e.plan.Firing(e.isDue, leaf, false)
	if (len(fire) > 0 || e.checksDue(leaf)) && !e.begun {
		if err := e.do(e.begin); err != nil {
			return err
		}
		e.begun = true
	}
	for _, t := range fire {
		if err := e.pull(ctx, t); err != nil {
			return err
		}
	}
	for _, t := range met {
		e.met(t.Name())
	}
	return e.check(ctx, leaf, len(fire) > 0)
}

// flush does what the changes so far call for, as often as the leaf's policy lets it.
func (e *engine) flush(ctx context.Context, leaf string) error {
	return e.persist(ctx, leaf, "", func() error { return reconcilers.Flush(ctx, e.w) })
}

// pull fires one trigger and notes that it ran.
func (e *engine) pull(ctx context.Context, t plan.Trigger) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e.wild = true
	defer e.pulse.begin(Doing{Leaf: t.Leaf, Key: t.Glyph.Key, What: t.Action})()
	firer := reconcilers.Reconcilers[t.Sort].(reconcilers.Firer)
	err := e.persist(ctx, t.Leaf, t.Glyph.Key, func() error { return firer.Fire(ctx, e.w, t.Glyph, t.Resource, t.Action) })
	if err != nil {
		return &stepError{t.Glyph.Key, err}
	}
	e.report.leaf(t.Leaf).fired[t.Glyph.Key]++
	e.tell(Event{Type: "triggered", Leaf: t.Leaf, Key: string(t.Glyph.Key), Message: t.Action})
	e.met(t.Name())
	return nil
}

// fireLate fires what steps of later leaves made due again, each leaf's under its policy.
// A leaf whose trigger fails here had settled: it keeps what it did, and the trigger stays
// due. What a leaf that did not settle left due is the next run's.
func (e *engine) fireLate(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	e.under(plan.WaveLeaf, e.plan.PolicyAt(""))
	if err := e.flush(ctx, plan.WaveLeaf); err != nil {
		e.late(plan.WaveLeaf, err)
	}
	settled := func(name string) bool {
		t := e.plan.Trigger(name)
		return e.isDue(name) && t != nil && e.report.leaf(t.Leaf).Outcome == Settled
	}
	fire, met := e.plan.Firing(settled, "", true)
	for _, t := range met {
		e.met(t.Name())
	}
	for _, leaf := range e.plan.Leaves {
		if slices.ContainsFunc(fire, func(t plan.Trigger) bool { return t.Leaf == leaf.Path }) {
			e.under(leaf.Path, leaf.Policy)
			e.fireLateOf(ctx, leaf.Path, fire)
		}
	}
}

// fireLateOf fires what of one leaf is late, and makes its checks again.
func (e *engine) fireLateOf(ctx context.Context, leaf string, fire []plan.Trigger) {
	again := false
	for _, t := range fire {
		if t.Leaf != leaf {
			continue
		}
		if err := e.pull(ctx, t); err != nil {
			e.late(leaf, err)
			continue
		}
		again = true
	}
	if !again {
		return
	}
	if err := e.check(ctx, leaf, true); err != nil {
		e.late(leaf, err)
	}
}

// checksDue says whether an earlier run, or this one, left checks of a leaf due.
func (e *engine) checksDue(leaf string) bool {
	return slices.ContainsFunc(e.plan.ChecksOf(leaf), func(c plan.Check) bool { return e.isDue(c.Name()) })
}

func (e *engine) late(leaf string, err error) {
	r := e.report.leaf(leaf)
	r.fail(err)
	r.Outcome = Kept
	e.tellFailed(leaf, err)
}

// refire lets what runs read what a rollback put back: the leaf's triggers that its
// steps had pulled. What cannot be fired stays due.
func (e *engine) refire(ctx context.Context, leaf *plan.Leaf, steps []*state.Step) error {
	err := e.flush(ctx, leaf.Path)
	pulled := map[string]bool{}
	for _, t := range e.plan.Triggers {
		for _, s := range steps {
			for _, part := range s.Glyphs {
				pulled[t.Name()] = pulled[t.Name()] || t.Leaf == leaf.Path && t.Calls(part)
			}
		}
	}
	fire, _ := e.plan.Firing(func(name string) bool { return pulled[name] }, leaf.Path, false)
	for _, t := range fire {
		if _, ok := e.due[t.Name()]; !ok {
			e.due[t.Name()] = state.Due{Lineage: e.o.Lineage, Leaf: t.Leaf, Name: t.Name()}
		}
		if failed := e.pull(ctx, t); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		e.report.leaf(leaf.Path).again[t.Glyph.Key]++
	}
	return err
}
