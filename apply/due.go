package apply

import (
	"context"
	"errors"
	"slices"

	"golem/plan"
	"golem/reconcilers"
	"golem/state"
)

// A duty is one trigger or check of the lineage: two leaves may make the same check.
type duty struct{ leaf, name string }

// An earlierRun stands for the step that called for what an earlier run left due.
const earlierRun int64 = 0

// recall takes up what earlier runs left due, where it now stands. What nobody declares
// any more is cleared with the next revision.
func (e *engine) recall(due []state.Due) {
	e.due, e.callers, e.undone = map[duty]state.Due{}, map[duty][]int64{}, map[int64]bool{}
	for _, d := range due {
		if d.Lineage == e.o.Lineage {
			e.due[duty{d.Leaf, d.Name}] = d
		}
	}
	for _, d := range e.plan.LeftDue {
		at := duty{d.Leaf, d.Name}
		if e.callers[at] = []int64{earlierRun}; !e.isDue(at) {
			e.owe(d)
		}
	}
	for at := range e.due {
		if len(e.callers[at]) == 0 {
			e.met(at)
		}
	}
}

func (e *engine) isDue(at duty) bool {
	_, ok := e.due[at]
	return ok
}

// triggerDue is isDue of a declared trigger.
func (e *engine) triggerDue(name string) bool {
	t := e.plan.Trigger(name)
	return t != nil && e.isDue(duty{t.Leaf, name})
}

// owe notes that something must still run, with what is written next.
func (e *engine) owe(d state.Due) {
	e.due[duty{d.Leaf, d.Name}] = d
	e.queue = append(e.queue, func(tx *state.Tx) error { return tx.SetDue(d) })
}

// met notes that a trigger or check ran, or needs to no more.
func (e *engine) met(at duty) {
	if d, ok := e.due[at]; ok {
		e.queue = append(e.queue, func(tx *state.Tx) error { return tx.ClearDue(d) })
		delete(e.due, at)
	}
}

// setDue journals that a step calls for something. What is due already stays due for the
// sake of the step that called for it first.
func (e *engine) setDue(tx *state.Tx, d state.Due) error {
	at := duty{d.Leaf, d.Name}
	e.callers[at] = append(e.callers[at], d.Step)
	if e.isDue(at) {
		return nil
	}
	if err := tx.SetDue(d); err != nil {
		return err
	}
	e.due[at] = d
	return nil
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
				e.met(duty{trigger.Leaf, trigger.Name()})
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
	fire, met := e.plan.Firing(e.triggerDue, leaf, false)
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
		e.met(duty{t.Leaf, t.Name()})
	}
	e.callChecksAfter(leaf, fire)
	return e.check(ctx, leaf)
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
	e.met(duty{t.Leaf, t.Name()})
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
		return e.triggerDue(name) && e.report.leaf(t.Leaf).Outcome == Settled
	}
	fire, met := e.plan.Firing(settled, "", true)
	for _, t := range met {
		e.met(duty{t.Leaf, t.Name()})
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
	var fired []plan.Trigger
	for _, t := range fire {
		if t.Leaf != leaf {
			continue
		}
		if err := e.pull(ctx, t); err != nil {
			e.late(leaf, err)
			continue
		}
		fired = append(fired, t)
	}
	if len(fired) == 0 {
		return
	}
	e.callChecksAfter(leaf, fired)
	if err := e.check(ctx, leaf); err != nil {
		e.late(leaf, err)
	}
}

// checksDue says whether an earlier run, or this one, left checks of a leaf due.
func (e *engine) checksDue(leaf string) bool {
	return slices.ContainsFunc(e.plan.ChecksOf(leaf), func(c plan.Check) bool { return !c.Left && e.isDue(duty{leaf, c.Name()}) })
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
		if !e.triggerDue(t.Name()) {
			e.owe(state.Due{Lineage: e.o.Lineage, Leaf: t.Leaf, Name: t.Name()})
		}
		if failed := e.pull(ctx, t); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		e.report.leaf(leaf.Path).again[t.Glyph.Key]++
	}
	return err
}
