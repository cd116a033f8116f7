package apply

import (
	"context"
	"slices"

	"golem/plan"
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

// callChecksAfter makes a leaf's checks due after triggers of the leaf were fired, for the
// sake of what called for those.
func (e *engine) callChecksAfter(leaf string, fired []plan.Trigger) {
	if len(fired) == 0 {
		return
	}
	for _, c := range e.plan.ChecksOf(leaf) {
		at := duty{leaf, c.Name()}
		for _, t := range fired {
			e.callers[at] = append(e.callers[at], e.callers[duty{leaf, t.Name()}]...)
		}
		if !e.isDue(at) {
			e.owe(state.Due{Lineage: e.o.Lineage, Leaf: leaf, Name: c.Name()})
		}
	}
}

// resetChecks brings a leaf's checks back to what is due once its steps are taken back:
// what only such steps called for goes. What an earlier run left due, or another leaf's
// step calls for, is due, and be it that it held meanwhile: it was not of what stands now.
func (e *engine) resetChecks(leaf string, undone []*state.Step) {
	for _, s := range undone {
		e.undone[s.ID] = true
	}
	for _, c := range e.plan.ChecksOf(leaf) {
		at := duty{leaf, c.Name()}
		stands := func(step int64) bool { return !e.undone[step] }
		switch owed := slices.ContainsFunc(e.callers[at], stands); {
		case !owed:
			e.met(at)
		case len(undone) > 0 && !e.isDue(at):
			e.owe(state.Due{Lineage: e.o.Lineage, Leaf: leaf, Name: c.Name()})
		}
	}
}

// check makes a leaf's due checks, each as often as the leaf's policy lets it.
func (e *engine) check(ctx context.Context, leaf string) error {
	for _, c := range e.plan.ChecksOf(leaf) {
		at := duty{leaf, c.Name()}
		if c.Left || !e.isDue(at) {
			continue
		}
		if c.Skipped {
			e.met(at)
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
		e.met(at)
	}
	return nil
}
