package reconcilers

import (
	"context"
	"fmt"
	"path"
	"slices"

	"golem/scrolls"
	"golem/state"
)

// Of is the reconciler that a request is for.
func Of(r Request) Reconciler {
	rec := Reconcilers[r.Sort]
	if r.Leave && rec != nil {
		return leaving{rec}
	}
	return rec
}

// OfStep is the reconciler that takes a step back; nil for a sort that this golem does not
// know.
func OfStep(s *state.Step) Reconciler {
	rec := Reconcilers[s.Sort]
	if rec != nil && len(s.Inverse) == 0 {
		return leaving{rec}
	}
	return rec
}

// A leaving drops glyphs whose on_undeclare is "leave": the journal forgets them, and the
// host stays as it is. What golem found before them is forgotten with the last of them.
type leaving struct{ Reconciler }

// Turn implements Reconciler.
func (l leaving) Turn(_ context.Context, _ *World, r Request) (*Turn, error) {
	t := &Turn{Request: r}
	if r.Record == nil || len(r.Drop) == 0 {
		return t, nil
	}
	after := *r.Record
	after.Layers = slices.DeleteFunc(slices.Clone(after.Layers), func(layer state.Layer) bool { return r.Drop[layer.Key] != nil })
	step := &state.Step{Lineage: r.Lineage, Leaf: r.Leaf, Sort: r.Sort, Resource: r.Resource, Before: r.Record}
	if len(after.Layers) > 0 {
		step.After = &after
	}
	t.Step = step
	for _, layer := range r.Record.Layers {
		g := r.Drop[layer.Key]
		if g == nil {
			continue
		}
		if kind, ok := KindOf(g.Kind); ok && kind.IsBase() && len(after.Layers) > 0 {
			return nil, &LeaveError{layer.Key, after.Layers[0].Key}
		}
		t.part(layer.Key, g, nil, state.Remove, Change{Effect: EffectForget, Reason: `left as it is: it was declared with on_undeclare = "leave"`}, false)
		l.tellUnit(t, layer.Key)
	}
	if len(t.Changes) == 0 {
		t.Step = nil
	}
	return t, nil
}

// A LeaveError says that a whole file cannot be left to itself while edits of golem lie on
// it: without it they could not be taken back.
type LeaveError struct{ Base, On scrolls.Key }

func (e *LeaveError) Error() string {
	return fmt.Sprintf("leave %s: %s is declared on it, and could not be taken back without it", e.Base, e.On)
}

// Hint says what can be done.
func (e *LeaveError) Hint() string {
	return fmt.Sprintf("undeclare %s too, or keep %s declared", e.On, e.Base)
}

// tellUnit lists a unit that is left to itself.
func (l leaving) tellUnit(t *Turn, key scrolls.Key) {
	unit := ""
	switch l.Sort() {
	case UnitSort:
		unit = t.Resource
	case processSort:
		unit = serviceOf(t.Resource)
	default:
		return
	}
	t.Units = append(t.Units, UnitEffect{Do: "forget", Unit: unit, Key: key, Reason: `left as it is: on_undeclare = "leave"`})
}

// Fit implements Reconciler: directories that were made for what is left are left, too.
func (l leaving) Fit(w *World, t *Turn) error {
	if l.Sort() != archiveSort || t.Step == nil {
		return nil
	}
	for _, layer := range t.Record.Layers {
		if t.Drop[layer.Key] == nil {
			continue
		}
		held, err := readHeld(layer)
		if err != nil {
			return err
		}
		for _, e := range held.Entries {
			dir := path.Join(t.Resource, string(e.Path))
			if body, ok := w.ledger(dir); e.Type == Dir && ok && body.Made && !w.Needed(dir) {
				t.setLedger(w, dir, nil)
			}
		}
	}
	return nil
}

// Join implements Reconciler.
func (leaving) Join(context.Context, *World, []*Turn) error { return nil }

// Batch implements Reconciler.
func (leaving) Batch(turns []*Turn) int { return len(turns) }

// Capture implements Reconciler: the host is not touched.
func (leaving) Capture(context.Context, *World, Store, []*Turn) error { return nil }

// Enact implements Reconciler.
func (leaving) Enact(context.Context, *World, Store, []*Turn) (int, error) { return -1, nil }

// Undo implements Reconciler.
func (leaving) Undo(context.Context, *World, Store, *state.Step) error { return nil }

// Foresee implements Reconciler.
func (leaving) Foresee(*World, *state.Step) error { return nil }
