package apply

import (
	"fmt"
	"maps"
	"slices"

	"golem/plan"
	"golem/scrolls"
	"golem/state"
)

// commit makes the run a revision, with every leaf's outcome, partial ones too.
func (e *engine) commit() error {
	if !e.begun {
		// Every leaf failed, or was not reached, before the first intent.
		e.report.finish(e.plan.Revision)
		e.report.untouched = e.report.Recovered == nil
		return e.report.firstFailure()
	}
	if e.stuckOn != nil {
		// The run is not over: its receipts are what the next one recovers by.
		if err := e.do(nil); err != nil {
			return err
		}
		e.report.finish(e.plan.Revision)
		return fmt.Errorf("take back what failed: %w; the next run tries again", e.stuckOn)
	}
	rev := &state.Revision{Lineage: e.o.Lineage, Run: e.run, Outcome: e.report.outcome(), Leaves: e.report.outcomes()}
	err := e.do(func(tx *state.Tx) error {
		if err := e.writeUpdates(tx); err != nil {
			return err
		}
		var err error
		if rev.Declared, err = e.inForce(tx); err != nil {
			return err
		}
		return tx.Commit(rev)
	})
	if err != nil {
		return err
	}
	e.report.finish(rev.Number)
	for _, leaf := range e.report.Leaves {
		if !leaf.told {
			e.ended(&plan.Leaf{Path: leaf.Leaf}, leaf.Outcome)
		}
	}
	return nil
}

// inForce lists what is declared and holds after the run: the scroll's own order for
// what it declares, and behind it what a failed removal left.
func (e *engine) inForce(tx *state.Tx) ([]state.Declared, error) {
	applied, err := tx.Applied(e.o.Lineage)
	if err != nil {
		return nil, err
	}
	byKey := map[scrolls.Key]state.Applied{}
	for _, a := range applied {
		byKey[a.Key] = a
	}
	var all []state.Declared
	add := func(leaf string, g *scrolls.Glyph) {
		if n := len(all); n > 0 && all[n-1].Leaf == leaf {
			all[n-1].Glyphs = append(all[n-1].Glyphs, g)
			return
		}
		all = append(all, state.Declared{Leaf: leaf, Glyphs: []*scrolls.Glyph{g}})
	}
	for _, leaf := range e.plan.Declared {
		for _, g := range leaf.Glyphs {
			if a, ok := byKey[g.Key]; ok {
				add(a.Leaf, a.Glyph)
				delete(byKey, g.Key)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		add(byKey[key].Leaf, byKey[key].Glyph)
	}
	return all, nil
}
