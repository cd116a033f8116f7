package plan

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// A Choice says which part of a scroll a run is about, by keys, patterns of keys, and
// leaves with what lies beneath them. Nil is all of it.
type Choice struct {
	Targets  []string // --target; none: everything
	Excludes []string // --exclude
}

// MakeChoice is the choice that flags make; nil where there are none.
func MakeChoice(targets, excludes []string) *Choice {
	if len(targets)+len(excludes) == 0 {
		return nil
	}
	return &Choice{Targets: targets, Excludes: excludes}
}

// An UnmatchedError says that a choice names what there is not.
type UnmatchedError struct {
	Flag, Pattern string
	Like          string // what was meant most likely; "" for nothing
}

func (e *UnmatchedError) Error() string {
	return fmt.Sprintf("%s %q: no glyph in the scroll or in force is called so, and no leaf", e.Flag, e.Pattern)
}

// Hint says what can be named.
func (e *UnmatchedError) Hint() string {
	if e.Like != "" {
		return "did you mean " + e.Like + "? golem state list shows what is in force"
	}
	return `name a key ("file:/etc/motd"), a pattern of keys ("file:/etc/nginx/*"; "/**" takes all beneath) or a leaf ("base"); golem state list shows what is in force`
}

// errNothingChosen says that a choice leaves nothing.
var errNothingChosen = errors.New("--target and --exclude: together they leave nothing to do")

// A named is one glyph that a choice may name: one that is declared, or in force.
type named struct {
	key  scrolls.Key
	leaf string
}

// Picks are the keys of a lineage that a run is about; nil stands for all of them.
type Picks map[scrolls.Key]bool

// Has says whether the run is about a key.
func (p Picks) Has(key scrolls.Key) bool { return p == nil || p[key] }

// Of are those of some glyphs that the run is about.
func (p Picks) Of(glyphs []*scrolls.Glyph) []*scrolls.Glyph {
	if p == nil {
		return glyphs
	}
	return slices.DeleteFunc(slices.Clone(glyphs), func(g *scrolls.Glyph) bool { return !p[g.Key] })
}

// Pick finds what a choice names in a scroll (nil is the empty one), and of what is in
// force in the lineage.
func (c *Choice) Pick(scroll *scrolls.Scroll, lineage string, applied []state.Applied) (Picks, error) {
	if c == nil {
		return nil, nil
	}
	all := namedBy(scroll, lineage, applied)
	var leaves []string
	if scroll != nil {
		for _, leaf := range scroll.Leaves {
			leaves = append(leaves, leaf.Path)
		}
	}
	for _, flag := range []struct {
		name     string
		patterns []string
	}{{"--target", c.Targets}, {"--exclude", c.Excludes}} {
		for _, pattern := range flag.patterns {
			known := slices.ContainsFunc(all, func(n named) bool { return n.matches(pattern) }) ||
				slices.ContainsFunc(leaves, func(leaf string) bool { return inLeaf(leaf, pattern) })
			if known && pattern != "" {
				continue
			}
			if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
				return nil, fmt.Errorf("%s %q: it is not a pattern", flag.name, pattern)
			}
			return nil, &UnmatchedError{flag.name, pattern, likeliest(pattern, all, leaves)}
		}
	}
	picks := Picks{}
	for _, n := range all {
		if c.picks(n) {
			picks[n.key] = true
		}
	}
	c.pair(picks, scroll, all)
	if len(picks) == 0 {
		return nil, errNothingChosen
	}
	return picks, nil
}

// likeliest is what a pattern that matches nothing stands for most likely; "" for nothing. A
// star crosses no slash, as people expect of "file:*".
func likeliest(pattern string, all []named, leaves []string) string {
	if kind, ok := strings.CutSuffix(pattern, ":*"); ok {
		if deep := kind + ":/**"; slices.ContainsFunc(all, func(n named) bool { return n.matches(deep) }) {
			return deep
		}
	}
	known := slices.Clone(leaves)
	for _, n := range all {
		known = append(known, string(n.key), n.leaf)
	}
	return scrolls.Likeliest(pattern, known)
}

// picks says whether any of some glyphs is chosen, and none excluded.
func (c *Choice) picks(of ...named) bool {
	names := func(patterns []string) bool {
		return slices.ContainsFunc(of, func(n named) bool { return slices.ContainsFunc(patterns, n.matches) })
	}
	return (len(c.Targets) == 0 || names(c.Targets)) && !names(c.Excludes)
}

// pair keeps a glyph and the key that it takes the record over from (moved_from) together:
// who names one names both.
func (c *Choice) pair(picks Picks, scroll *scrolls.Scroll, all []named) {
	if scroll == nil {
		return
	}
	at := map[scrolls.Key]named{}
	for _, n := range all {
		at[n.key] = n
	}
	for _, g := range scroll.Glyphs() {
		old, inForce := at[g.MovedFrom]
		if g.MovedFrom == "" || !inForce {
			continue
		}
		for _, key := range []scrolls.Key{g.Key, old.key} {
			if delete(picks, key); c.picks(at[g.Key], old) {
				picks[key] = true
			}
		}
	}
}

// namedBy lists what a choice may name: the scroll's glyphs in source order, then what is
// in force and not declared any more, in the order of application.
func namedBy(scroll *scrolls.Scroll, lineage string, applied []state.Applied) []named {
	var all []named
	declared := map[scrolls.Key]bool{}
	if scroll != nil {
		for _, leaf := range scroll.Leaves {
			for _, g := range leaf.Glyphs {
				declared[g.Key] = true
				all = append(all, named{g.Key, leaf.Path})
			}
		}
	}
	for _, a := range applied {
		if a.Lineage == lineage && !declared[a.Key] {
			all = append(all, named{a.Key, a.Leaf})
		}
	}
	return all
}

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
func (m *maker) displaced(glyphs []*scrolls.Glyph) {
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
	for _, g := range glyphs {
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
