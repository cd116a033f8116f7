package apply

import (
	"context"

	"golem/reconcilers"
	"golem/state"
)

// callChecks journals, with the intent of steps that change something, that their leaf's
// checks are due.
func (e *engine) callChecks(tx *state.Tx, steps []*state.Step) error {
	for _, s := range steps {
		changes := false
		for _, part := range s.Glyphs {
			changes = changes || part.Changed
		}
		if !changes {
			continue
		}
		for _, c := range e.plan.ChecksOf(s.Leaf) {
			if err := e.setDue(tx, state.Due{Lineage: e.o.Lineage, Leaf: c.Leaf, Name: c.Name(), Step: s.ID}); err != nil {
				return err
			}
		}
	}
	return nil
}

// setDue journals that something must still run.
func (e *engine) setDue(tx *state.Tx, d state.Due) error {
	if was, ok := e.due[d.Name]; ok {
		d.Leaf = was.Leaf
	}
	if err := tx.SetDue(d); err != nil {
		return err
	}
	e.due[d.Name] = d
	return nil
}

// dropChecks clears the due checks of a leaf.
func (e *engine) dropChecks(leaf string) {
	for _, c := range e.plan.ChecksOf(leaf) {
		e.met(c.Name())
	}
}

// check makes a leaf's due checks, each as often as the leaf's policy lets it. fired
// says that a trigger of the leaf was fired, which makes them all due.
func (e *engine) check(ctx context.Context, leaf string, fired bool) error {
	for _, c := range e.plan.ChecksOf(leaf) {
		if !fired && !e.isDue(c.Name()) {
			continue
		}
		if c.Skipped {
			e.met(c.Name())
			continue
		}
		text := reconcilers.CheckText(c.Glyph)
		e.tell(Event{Type: "checking", Leaf: leaf, Message: text})
		end := e.pulse.begin(Doing{Leaf: leaf, What: "check " + text})
		err := e.persist(ctx, leaf, "", func() error { return reconcilers.RunCheck(ctx, e.w, c.Glyph) })
		end()
		if err != nil {
			return err
		}
		e.report.leaf(leaf).held++
		e.met(c.Name())
	}
	return nil
}
