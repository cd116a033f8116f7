package plan

import (
	"fmt"
	"slices"
	"strings"

	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// LeftOut is what a run is not about, though it is declared or in force.
type LeftOut struct {
	Targets  []string  `json:"targets"`
	Excludes []string  `json:"excludes"`
	Glyphs   []LeftKey `json:"glyphs"`
	// Due are triggers and checks that stay due for a run that takes them in.
	Due []string `json:"due"`

	// Leaves are those that are left out with all they have.
	Leaves []string `json:"leaves"`

	inForce int
}

// A LeftKey is one glyph that a run is not about.
type LeftKey struct {
	Leaf string      `json:"leaf"`
	Key  scrolls.Key `json:"key"`
	// InForce says that the journal has it, and that it stays as it is; else it is declared
	// and not applied yet.
	InForce bool `json:"in_force"`
}

// leaveOut works out what the run is about.
func (m *maker) leaveOut() error {
	picks, err := m.in.Choice.Pick(m.in.Scroll, m.in.Lineage, m.snap.Applied)
	if err != nil || picks == nil {
		return err
	}
	m.picks = picks
	left := &LeftOut{
		Targets: append([]string{}, m.in.Choice.Targets...), Excludes: append([]string{}, m.in.Choice.Excludes...),
		Glyphs: []LeftKey{}, Due: []string{}, Leaves: []string{},
	}
	partly := map[string]bool{} // by leaf
	for _, n := range namedBy(m.in.Scroll, m.in.Lineage, m.snap.Applied) {
		if picks[n.key] {
			partly[n.leaf] = true
			continue
		}
		_, inForce := m.own[n.key]
		left.Glyphs = append(left.Glyphs, LeftKey{n.leaf, n.key, inForce})
		if inForce {
			left.inForce++
		}
	}
	for _, k := range left.Glyphs {
		if !partly[k.Leaf] {
			partly[k.Leaf] = true // it is listed
			left.Leaves = append(left.Leaves, k.Leaf)
		}
	}
	m.plan.LeftOut = left
	return nil
}

// stages says whether the run is about something in a leaf.
func (m *maker) stages(leaf *scrolls.Leaf) bool {
	if m.picks == nil {
		return true
	}
	if slices.ContainsFunc(leaf.Glyphs, func(g *scrolls.Glyph) bool { return m.picks[g.Key] }) {
		return true
	}
	return slices.ContainsFunc(m.ownIn[leaf.Path], func(a state.Applied) bool { return m.picks[a.Key] })
}

// whole says whether a leaf is as the scroll has it once the run settles it: the run is
// about it, and what it leaves out of it is in force as it is declared.
func (m *maker) whole(leaf *scrolls.Leaf) bool {
	if m.picks == nil {
		return true
	}
	if !m.stages(leaf) {
		return false
	}
	declared := map[scrolls.Key]bool{}
	for _, g := range leaf.Glyphs {
		declared[g.Key] = true
		was, inForce := m.own[g.Key]
		if !m.picks[g.Key] && (!inForce || was.Leaf != leaf.Path || reconcilers.CID(was.Glyph) != reconcilers.CID(g)) {
			return false
		}
	}
	return !slices.ContainsFunc(m.ownIn[leaf.Path], func(a state.Applied) bool { return !declared[a.Key] && !m.picks[a.Key] })
}

// Whole says whether the run leaves a leaf as the scroll has it, if it settles.
func (p *Plan) Whole(leaf string) bool { return p.LeftOut == nil || p.wholes[leaf] }

// displaced refuses a glyph that would take the place of one that is left out: that one
// would go, and was not to be touched.
func (m *maker) displaced() {
	if m.picks == nil {
		return
	}
	held := map[string]state.Applied{} // by resource; of paths, the base
	for _, a := range m.own {
		if m.picks[a.Key] {
			continue
		}
		if kind, ok := reconcilers.KindOf(a.Glyph.Kind); a.Sort != reconcilers.PathSort || ok && kind.IsBase() {
			held[reconcilers.RecordKey(a.Sort, a.Resource)] = a
		}
	}
	for _, g := range m.glyphs {
		kind, _ := reconcilers.KindOf(g.Kind)
		was, taken := held[reconcilers.RecordKey(kind.Sort, m.spots[g].Resource)]
		if !taken || was.Key == g.Key || kind.Sort == reconcilers.PathSort && !kind.IsBase() {
			continue
		}
		m.blame(g, scrolls.Problem{
			Summary: "Takes the place of what is left out",
			Detail: fmt.Sprintf("%s takes the place of %s, which is in force and left out of this run. Take both in, or neither.",
				g.Key, was.Key),
		}, nil)
	}
}

// besideLeft tells of what goes and cannot, that something lies on it which is left out.
func (m *maker) besideLeft(r reconcilers.Request, err error) error {
	x := m.things[reconcilers.RecordKey(r.Sort, r.Resource)]
	if m.picks == nil || x == nil || x.record == nil {
		return err
	}
	for _, layer := range x.record.Layers {
		if layer.Lineage == m.in.Lineage && !m.picks[layer.Key] {
			return fmt.Errorf("take away what %s lies on, which is left out of this run: %w", layer.Key, err)
		}
	}
	return err
}

// stayDue notes what is due and stays so, since the run is not about it.
func (m *maker) stayDue() {
	left := m.plan.LeftOut
	if left == nil {
		return
	}
	for _, t := range m.plan.Triggers {
		if t.Left && m.due[t.Name()] != nil {
			left.Due = append(left.Due, t.Name())
		}
	}
	for _, c := range m.plan.AllChecks {
		if c.Left && (m.changes(c.Leaf) || m.plan.isLeft(c.Leaf, c.Name())) {
			left.Due = append(left.Due, c.Name())
		}
	}
	for _, d := range m.plan.LeftDue { // of what the scroll does not declare any more
		named := m.plan.Trigger(d.Name) != nil ||
			slices.ContainsFunc(m.plan.AllChecks, func(c Check) bool { return c.Leaf == d.Leaf && c.Name() == d.Name })
		if !named && !slices.Contains(left.Due, d.Name) {
			left.Due = append(left.Due, d.Name)
		}
	}
}

// maxLeftTold is how many names a sentence about what is left out holds.
const maxLeftTold = 8

// Sentences tell what is left out; none for nothing.
func (l *LeftOut) Sentences() []string {
	if l == nil || len(l.Glyphs) == 0 {
		return nil
	}
	all := []string{fmt.Sprintf("Left out: %s, as %s: %s.", count(len(l.Glyphs), "glyph stays", "glyphs stay"), l.asTheyAre(), few(l.names()))}
	if len(l.Due) > 0 {
		all = append(all, fmt.Sprintf("Due, and left to a run that takes it in: %s.", few(l.Due)))
	}
	return all
}

func (l *LeftOut) asTheyAre() string {
	if len(l.Glyphs) == 1 {
		return "it is"
	}
	return "they are"
}

// names are the leaves that are left out whole, and the keys of the others.
func (l *LeftOut) names() []string {
	names := slices.Clone(l.Leaves)
	whole := map[string]bool{}
	for _, leaf := range l.Leaves {
		whole[leaf] = true
	}
	for _, k := range l.Glyphs {
		if !whole[k.Leaf] {
			names = append(names, string(k.Key))
		}
	}
	return names
}

// few joins names, up to as many as one reads.
func few(names []string) string {
	if more := len(names) - maxLeftTold; more > 1 {
		names = append(slices.Clone(names[:maxLeftTold]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// StaysInForce counts what is in force and left out.
func (l *LeftOut) StaysInForce() int {
	if l == nil {
		return 0
	}
	return l.inForce
}

// leftOut writes what the run is not about.
func (out *Printer) leftOut(b *strings.Builder, l *LeftOut) {
	for i, sentence := range l.Sentences() {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "%s\n", strings.Join(Wrap(Printable(sentence), out.wrapAt(0)), "\n"))
	}
}
