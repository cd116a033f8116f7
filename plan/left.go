package plan

import (
	"slices"
	"strings"

	"golem/state"
)

// left lists what earlier runs left due, as the scroll now has it: a trigger is its
// glyph's, wherever that stands, and a check its leaf's.
func (m *maker) left() {
	for _, d := range m.snap.Due {
		if d.Lineage != m.in.Lineage {
			continue
		}
		if !strings.HasPrefix(d.Name, checkPrefix) {
			if t := m.plan.Trigger(d.Name); t != nil {
				m.leave(d, t.Leaf, t.Name())
			} else if m.picks != nil {
				m.leave(d, d.Leaf, d.Name) // a run that is about everything clears it
			}
			continue
		}
		heirs := m.heirs(d)
		if m.picks != nil && (len(heirs) == 0 || slices.ContainsFunc(heirs, func(c Check) bool { return c.Left })) {
			m.leave(d, d.Leaf, d.Name)
			continue
		}
		for _, c := range heirs {
			m.leave(d, c.Leaf, c.Name())
		}
	}
}

func (m *maker) leave(d state.Due, leaf, name string) {
	if !m.plan.isLeft(leaf, name) {
		d.Leaf, d.Name = leaf, name
		m.plan.LeftDue = append(m.plan.LeftDue, d)
	}
}

// isLeft says whether an earlier run left a trigger or a check due.
func (p *Plan) isLeft(leaf, name string) bool {
	return slices.ContainsFunc(p.LeftDue, func(d state.Due) bool { return d.Leaf == leaf && d.Name == name })
}

// heirs are the checks that stand for one that is due: itself, where its leaf has it
// still. A failure that was kept does not go away when the leaf gets another name or the
// check other words: then it is the same check of the leaves that hold what that leaf
// held, or else all of theirs.
func (m *maker) heirs(d state.Due) []Check {
	leaves := []string{d.Leaf}
	for _, leaf := range m.plan.Declared {
		for _, g := range leaf.Glyphs {
			if was, ok := m.own[g.Key]; ok && was.Leaf == d.Leaf {
				leaves = append(leaves, leaf.Leaf)
			}
		}
	}
	var same, others []Check
	for _, c := range m.plan.AllChecks {
		succeeds, named := slices.Contains(leaves, c.Leaf), c.Name() == d.Name
		switch {
		case named && c.Leaf == d.Leaf:
			return []Check{c}
		case named && succeeds:
			same = append(same, c)
		case named || succeeds:
			others = append(others, c)
		}
	}
	if len(same) > 0 {
		return same
	}
	return others
}
