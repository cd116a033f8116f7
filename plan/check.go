package plan

import (
	"fmt"
	"strings"

	"golem/reconcilers"
	"golem/scrolls"
)

// A Check is a check that the run has to make, at the end of its leaf's turn.
type Check struct {
	Leaf  string
	Glyph *scrolls.Glyph
	// Skipped says that it cannot be made here.
	Skipped bool
	// Left says that something of its leaf is left out of the run, or all of it: it stays
	// due.
	Left bool
}

// checkPrefix is what no trigger's name begins with.
const checkPrefix = "check "

// Name is how the journal and JSON call a check in its leaf.
func (c Check) Name() string { return checkPrefix + string(c.Glyph.Key) }

// ChecksOf lists the declared checks of a leaf.
func (p *Plan) ChecksOf(leaf string) []Check {
	var all []Check
	for _, c := range p.AllChecks {
		if c.Leaf == leaf {
			all = append(all, c)
		}
	}
	return all
}

// listChecks notes the scroll's checks.
func (m *maker) listChecks() {
	if m.in.Scroll == nil {
		return
	}
	for _, leaf := range m.in.Scroll.Leaves {
		for _, g := range leaf.Checks {
			m.plan.AllChecks = append(m.plan.AllChecks, Check{leaf.Path, g, !reconcilers.Checkable(m.w.Host, g), !m.plan.Whole(leaf.Path)})
		}
	}
}

// checks works out which checks the run makes: those of the leaves that it changes or
// fires a trigger of, and those that an earlier run left due.
func (m *maker) checks() {
	for _, c := range m.plan.AllChecks {
		if !c.Left && (m.changes(c.Leaf) || m.plan.isLeft(c.Leaf, c.Name())) {
			m.plan.Checks = append(m.plan.Checks, c)
		}
	}
}

func (m *maker) changes(leaf string) bool {
	for _, d := range m.plan.Due {
		if d.Leaf == leaf {
			return true
		}
	}
	at, ok := m.leafAt[leaf]
	if !ok {
		return false
	}
	for _, t := range m.leaves[at].Turns {
		if t.Step == nil {
			continue
		}
		for _, part := range t.Step.Glyphs {
			if part.Changed {
				return true
			}
		}
	}
	return false
}

// checks writes what has to hold when the run is done.
func (out *Printer) checks(b *strings.Builder, all []CheckView) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", out.bold.Render("Checks"))
	for _, c := range all {
		fmt.Fprintf(b, "  %s\n", out.beside(Printable(c.Leaf), Printable(c.Text), 2))
	}
}
