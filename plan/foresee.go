package plan

import (
	"slices"

	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// foresee plays the recovery of an interrupted run, and of what earlier ones owe, on the
// snapshot and the world.
func (m *maker) foresee() error {
	dead := m.snap.Dead
	told := &Recovery{Leaves: []string{}, Keys: []scrolls.Key{}, Owed: dead == nil}
	steps := m.snap.Owed
	if dead != nil {
		told.Command, told.Started = dead.Run.Command, dead.Run.Started.UTC().Format("2006-01-02T15:04:05Z")
		steps = slices.DeleteFunc(slices.Clone(steps), func(s *state.Step) bool { return s.Run == dead.Run.ID })
		steps = append(steps, dead.Steps...)
	} else if len(steps) == 0 {
		return nil
	}
	applied := slices.Clone(m.snap.Applied)
	for i := len(steps) - 1; i >= 0; i-- {
		step := steps[i]
		if !slices.Contains(told.Leaves, step.Leaf) {
			told.Leaves = append(told.Leaves, step.Leaf)
		}
		if rec := reconcilers.OfStep(step); rec != nil {
			if err := rec.Foresee(m.w, step); err != nil {
				return err
			}
		}
		restore(m.snap.Records, reconcilers.RecordKey(step.Sort, step.Resource), step.Before)
		for _, change := range step.Ledger {
			restore(m.snap.Ledger, reconcilers.RecordKey(change.Sort, change.Resource), change.Before)
		}
		for _, part := range step.Glyphs {
			told.Keys = append(told.Keys, part.Key)
			if step.Status == state.Done {
				applied = unapply(applied, step, part)
			}
		}
	}
	m.snap.Applied = applied
	if busy := m.snap.Busy; busy == nil || dead == nil || busy.PID != dead.Run.PID { // else it is not dead
		m.plan.Recovers = told
	}
	return nil
}

// restore puts a value back into a map, or takes the key out for none.
func restore[T any](in map[string]*T, key string, value *T) {
	if value == nil {
		delete(in, key)
		return
	}
	in[key] = value
}

// unapply takes back what a done step did to the list of applied glyphs.
func unapply(applied []state.Applied, step *state.Step, part state.StepGlyph) []state.Applied {
	i := slices.IndexFunc(applied, func(a state.Applied) bool {
		return a.Lineage == step.Lineage && a.Key == part.Key
	})
	switch {
	case part.Old == nil && i >= 0:
		return slices.Delete(applied, i, i+1)
	case part.Old == nil:
		return applied
	case i >= 0:
		applied[i].Glyph = part.Old
		return applied
	}
	return append(applied, state.Applied{
		Lineage: step.Lineage, Key: part.Key, Leaf: part.Leaf, Glyph: part.Old,
		Sort: step.Sort, Resource: step.Resource, Changed: true,
	})
}
