package apply

import (
	"context"
	"fmt"
	"slices"

	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// An UnknownKeyError says that no lineage holds a key.
type UnknownKeyError struct {
	Verb string
	Key  scrolls.Key
}

func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("%s %s: no such key is in force", e.Verb, e.Key)
}

// Hint says where the keys are.
func (*UnknownKeyError) Hint() string { return "golem state list shows the keys there are" }

// Forget takes a key out of the journal and leaves the host as it is; the thing is
// nobody's from then on. With foundOnly the key stays in force and only what golem
// found before it is forgotten: undeclaring it will then leave it as it is.
//
// It is a run like any other in the journal, with a step that does nothing to the host. What
// an earlier run could not take back of the key is given up with it.
func Forget(ctx context.Context, o Options, key scrolls.Key, foundOnly bool) (*state.Revision, error) {
	e := newEngine(o)
	if _, err := e.recover(ctx); err != nil {
		return nil, err
	}
	snap, err := e.j.Snapshot()
	if err != nil {
		return nil, err
	}
	if err := pendingNow(snap); err != nil {
		return nil, err
	}
	a, ok := snap.InForce(key)
	owed := OwedOf(snap, key)
	if !ok && len(owed) == 0 {
		return nil, &UnknownKeyError{"forget", key}
	}
	var step *state.Step
	if ok {
		step, err = forgetting(a, snap.Records[reconcilers.RecordKey(a.Sort, a.Resource)], foundOnly)
	} else {
		a.Lineage, a.Leaf = owed[0].Lineage, owed[0].Leaf
	}
	if err != nil {
		return nil, err
	}
	e.run.Lineage = a.Lineage
	rev := &state.Revision{
		Lineage: a.Lineage, Outcome: Settled,
		Leaves: []state.LeafOutcome{{Leaf: a.Leaf, Outcome: Settled}},
	}
	before, err := rulesBefore(e.j, a.Lineage, snap.Revision(a.Lineage))
	if err != nil {
		return nil, err
	}
	err = e.j.Do(func(tx *state.Tx) error { return writeForgotten(tx, &e.run, step, owed, rev, before) })
	return rev, err
}

// OwedOf are the steps about a key that ended runs could not take back, oldest first.
func OwedOf(snap *state.Snapshot, key scrolls.Key) []*state.Step {
	var owed []*state.Step
	for _, s := range snap.Owed {
		if slices.ContainsFunc(s.Glyphs, func(g state.StepGlyph) bool { return g.Key == key }) {
			owed = append(owed, s)
		}
	}
	return owed
}

// forgetting is the step that takes a key, or what was found before it, out of its
// record.
func forgetting(a state.Applied, record *state.Record, foundOnly bool) (*state.Step, error) {
	step := &state.Step{Lineage: a.Lineage, Leaf: a.Leaf, Sort: a.Sort, Resource: a.Resource, Before: record}
	if record == nil {
		return nil, fmt.Errorf("forget %s: the journal has no record of it", a.Key)
	}
	after := *record
	if foundOnly {
		if a.Sort == reconcilers.PathSort {
			return nil, &layersError{a.Key}
		}
		after.Found = nil
		step.After = &after
		return step, nil
	}
	if kind, ok := reconcilers.KindOf(a.Glyph.Kind); ok && kind.IsBase() && len(record.Layers) > 1 {
		return nil, fmt.Errorf("forget %s: %s lies on it; forget that first", a.Key, record.Layers[len(record.Layers)-1].Key)
	}
	after.Layers = slices.DeleteFunc(slices.Clone(record.Layers), func(l state.Layer) bool { return l.Key == a.Key })
	if len(after.Layers) > 0 {
		step.After = &after
	}
	step.Glyphs = []state.StepGlyph{{
		Op: state.Remove, Key: a.Key, CID: reconcilers.CID(a.Glyph), Old: a.Glyph, Leaf: a.Leaf,
		Reason: "forgotten by golem state forget; left as it is",
	}}
	return step, nil
}

// A layersError says that what was found beneath layers cannot be forgotten alone.
type layersError struct{ key scrolls.Key }

func (e *layersError) Error() string {
	return fmt.Sprintf("forget what was found before %s: the layers on its path stand on it", e.key)
}

func (e *layersError) Hint() string {
	return fmt.Sprintf("golem state forget %s forgets it whole", e.key)
}

// writeForgotten journals the whole run in one transaction.
func writeForgotten(tx *state.Tx, run *state.Run, step *state.Step, owed []*state.Step, rev *state.Revision, before rules) error {
	err := tx.Begin(run)
	for _, s := range slices.Backward(owed) {
		if err == nil {
			err = tx.Reverse(s, "given up by golem state forget; left as it is")
		}
	}
	if err == nil && step != nil {
		step.Run = run.ID
		if err = tx.Intend([]*state.Step{step}); err == nil {
			err = tx.Done(step)
		}
	}
	if err == nil {
		err = tx.LeafEnd(run.ID, rev.Leaves[0])
	}
	if err != nil {
		return err
	}
	rev.Run = *run
	return commitInForce(tx, rev, before)
}
