package apply

import (
	"golem/plan"
	"golem/scrolls"
	"golem/state"
)

// commit makes the run a revision, with every leaf's outcome, partial ones too.
func (e *engine) commit() error {
	e.tellOwed()
	if !e.begun {
		// Every leaf failed, or was not reached, before the first intent.
		e.report.finish(e.plan.Revision)
		if len(e.owed) > 0 {
			return nil // it is told as a leaf that is not whole
		}
		e.report.untouched = e.report.Recovered == nil
		return e.report.firstFailure()
	}
	rev := &state.Revision{Lineage: e.o.Lineage, Run: e.run, Outcome: e.report.outcome(), Leaves: e.report.outcomes()}
	rules, err := e.rules()
	if err != nil {
		return err
	}
	err = e.do(func(tx *state.Tx) error {
		if err := e.writeUpdates(tx); err != nil {
			return err
		}
		var err error
		if rev.Declared, err = e.inForce(tx); err != nil {
			return err
		}
		rules.lay(rev.Declared)
		if err := e.await(tx); err != nil {
			return err
		}
		return tx.Commit(rev)
	})
	if err != nil {
		return err
	}
	e.report.finish(rev.Number)
	for _, leaf := range e.report.Leaves {
		if !leaf.ended {
			e.ended(&plan.Leaf{Path: leaf.Leaf}, leaf.Outcome)
		}
	}
	return nil
}

// inForce lists what is declared and holds after the run: the scroll's own order for
// what it declares, and behind it, in the order of application, what a failed removal left
// and what the run was not about.
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
	for _, a := range applied {
		if _, left := byKey[a.Key]; left {
			add(a.Leaf, a.Glyph)
		}
	}
	return all, nil
}

// rules are the policy and the checks of leaves, by path: what a revision declares beside
// glyphs.
type rules map[string]state.Declared

// rules are those that hold after the run: the scroll's for leaves that settled, and what
// held before for those that did not, or of which the run left out something.
func (e *engine) rules() (rules, error) {
	all := rules{}
	for _, leaf := range e.plan.Leaves {
		if leaf.Gone {
			continue
		}
		d := state.Declared{Policy: &leaf.Policy}
		for _, c := range e.plan.ChecksOf(leaf.Path) {
			d.Checks = append(d.Checks, c.Glyph)
		}
		all[leaf.Path] = d
	}
	if e.report.outcome() == Settled && e.plan.LeftOut == nil {
		return all, nil // nothing of before is left
	}
	before, err := rulesBefore(e.j, e.o.Lineage, e.plan.Revision)
	for leaf, was := range before {
		if l := e.report.at[leaf]; l == nil || l.Outcome != Settled || !e.plan.Whole(leaf) {
			all[leaf] = was
		}
	}
	return all, err
}

// rulesBefore are the rules that a revision holds; none of revision 0.
func rulesBefore(h history, lineage string, revision int) (rules, error) {
	all := rules{}
	if revision == 0 {
		return all, nil
	}
	before, err := h.Revision(lineage, revision)
	if err != nil {
		return nil, err
	}
	for _, was := range before.Declared {
		if _, ok := all[was.Leaf]; !ok {
			all[was.Leaf] = state.Declared{Policy: was.Policy, Checks: was.Checks}
		}
	}
	return all, nil
}

// lay puts the rules on what is declared, once for each leaf.
func (r rules) lay(declared []state.Declared) {
	laid := map[string]bool{}
	for i, d := range declared {
		if !laid[d.Leaf] {
			laid[d.Leaf] = true
			declared[i].Policy, declared[i].Checks = r[d.Leaf].Policy, r[d.Leaf].Checks
		}
	}
}

// commitInForce commits a revision that declares what is in force in its lineage, under the
// rules that held before.
func commitInForce(tx *state.Tx, rev *state.Revision, before rules) error {
	applied, err := tx.Applied(rev.Lineage)
	if err != nil {
		return err
	}
	rev.Declared = declaredOf(applied)
	before.lay(rev.Declared)
	return tx.Commit(rev)
}

// declaredOf lists what is in force, leaf by leaf, in the order of application.
func declaredOf(applied []state.Applied) []state.Declared {
	var all []state.Declared
	byLeaf := map[string]int{}
	for _, a := range applied {
		at, ok := byLeaf[a.Leaf]
		if !ok {
			at = len(all)
			byLeaf[a.Leaf] = at
			all = append(all, state.Declared{Leaf: a.Leaf, Glyphs: []*scrolls.Glyph{}})
		}
		all[at].Glyphs = append(all[at].Glyphs, a.Glyph)
	}
	return all
}
