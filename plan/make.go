package plan

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strings"

	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// A maker holds what is worked out on the way to a plan.
type maker struct {
	in   Input
	snap *state.Snapshot
	w    *reconcilers.World
	plan *Plan

	own     map[scrolls.Key]state.Applied
	ownIn   map[string][]state.Applied // the same, by leaf
	picks   Picks                      // what the run is about
	leaves  []*Leaf                    // gone ones first
	leafAt  map[string]int
	glyphs  []*scrolls.Glyph // declared, of those the run is about
	spots   map[*scrolls.Glyph]reconcilers.Spot
	sources map[scrolls.Key]int // place in the scroll, from 0
	things  map[string]*thing
	order   []string        // the things' keys in order of first mention
	due     map[string]*Due // what is due at this point of the run, by name
	wrong   []scrolls.PlacedProblem
	failed  error // what has no place in the scroll
}

// A thing is one resource with what each leaf wants of it.
type thing struct {
	sort, resource string
	record         *state.Record
	asks           map[int]*ask // by leaf
	turns          map[int][]*reconcilers.Turn
}

// An ask is what one leaf wants of one thing.
type ask struct {
	set  []*scrolls.Glyph
	drop map[scrolls.Key]*scrolls.Glyph
	// leave are those that go from the journal alone, after all else.
	leave map[scrolls.Key]*scrolls.Glyph
	via   map[scrolls.Key][]string
	last  int64 // the newest step among the dropped, for the order of removal
	at    int   // the first set glyph's place in the scroll
	// moves names dropped keys that the same run sets elsewhere.
	moves map[scrolls.Key]bool
}

// Make works out a plan. What is wrong with a glyph on this host comes back as
// diagnostics, all of it at once.
func Make(in Input) (*Plan, error) {
	m, err := newMaker(in)
	if err != nil {
		return nil, err
	}
	for _, phase := range []func() error{m.recall, m.leaveOut, m.place, m.workOut, m.putInOrder, m.complete} {
		if err := phase(); err != nil {
			return nil, err
		}
	}
	return m.plan, nil
}

func newMaker(in Input) (*maker, error) {
	if in.Context == nil {
		in.Context = context.Background()
	}
	m := &maker{
		in: in, w: in.World, leafAt: map[string]int{},
		own: map[scrolls.Key]state.Applied{}, ownIn: map[string][]state.Applied{}, sources: map[scrolls.Key]int{}, things: map[string]*thing{},
		plan: &Plan{Name: in.Lineage, Host: in.Host, Unknown: in.Snapshot.Unknown, Busy: in.Snapshot.Busy, Destroy: in.Destroy, wholes: map[string]bool{}},
	}
	var err error
	if m.plan.Pending, err = ReadPending(in.Snapshot.Pending); err != nil {
		return nil, err
	}
	if in.Back != nil {
		m.plan.Back, m.w.TakenBack = in.Back.Revision, in.Back.Since
	}
	if m.plan.policies = in.Policies; in.Scroll != nil {
		m.plan.policies = in.Scroll.Policies
	}
	return m, nil
}

// place finds the run's leaves and glyphs, and the resource that each glyph is about.
func (m *maker) place() error {
	m.listLeaves()
	m.glyphs = m.claim()
	m.locate()
	m.displaced()
	return m.mistakes()
}

// workOut works out every resource's turns, each resource's by itself.
func (m *maker) workOut() error {
	m.gather()
	m.triggers()
	m.listChecks()
	m.recallDue()
	m.work()
	return m.mistakes()
}

// putInOrder puts the turns into the order of the run, where each is fitted to what the
// turns before it leave.
func (m *maker) putInOrder() error {
	m.assemble()
	m.wave()
	return m.mistakes()
}

// complete adds what is told of the whole run, and refuses what it must not do.
func (m *maker) complete() error {
	m.retell()
	m.checks()
	m.stayDue()
	m.adopts()
	m.protect()
	if err := m.mistakes(); err != nil {
		return err
	}
	m.updates()
	m.plan.Leaves = m.leaves
	m.hush()
	return nil
}

// hush takes what is sensitive out of what is told of the turns, and notes what must not be told
// of the run.
func (m *maker) hush() {
	for _, leaf := range m.leaves {
		for _, t := range leaf.Turns {
			t.Hush()
		}
	}
	note := func(g *scrolls.Glyph) {
		if g != nil {
			m.plan.secrets = append(m.plan.secrets, g.SecretTexts()...)
		}
	}
	for _, g := range m.glyphs {
		note(g)
	}
	for _, was := range m.in.Snapshot.Applied {
		note(was.Glyph)
	}
	const telling = 6 // shorter ones are words of anybody's
	m.plan.secrets = slices.DeleteFunc(m.plan.secrets, func(text string) bool { return len(text) < telling })
	slices.SortFunc(m.plan.secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	m.plan.secrets = slices.Compact(m.plan.secrets)
}

// recall reads the snapshot, as it will be once an interrupted run is settled.
func (m *maker) recall() error {
	snap := *m.in.Snapshot
	snap.Records, snap.Ledger = maps.Clone(snap.Records), maps.Clone(snap.Ledger)
	m.snap = &snap
	if err := m.foresee(); err != nil {
		return err
	}
	for _, a := range snap.Applied {
		if a.Lineage == m.in.Lineage {
			m.own[a.Key] = a
			m.ownIn[a.Leaf] = append(m.ownIn[a.Leaf], a)
		}
	}
	m.plan.Revision = snap.Revision(m.in.Lineage)
	m.w.Ledger = snap.Ledger
	if m.w.Ledger == nil {
		m.w.Ledger = map[string]*state.Entry{}
	}
	m.w.Records = snap.Records
	m.w.Where = func(key scrolls.Key) string { return m.own[key].Resource }
	m.w.Before = func(key, other scrolls.Key) bool {
		a, ok := m.sources[key]
		b, all := m.sources[other]
		return ok && all && a < b
	}
	return nil
}

// listLeaves names the run's leaves: those that are gone, last applied first, then
// the scroll's in source order.
func (m *maker) listLeaves() {
	declared := map[string]bool{}
	if m.in.Scroll != nil {
		for _, leaf := range m.in.Scroll.Leaves {
			declared[leaf.Path] = true
		}
	}
	newest := map[string]int64{}
	for _, a := range m.own {
		if !declared[a.Leaf] && m.picks.Has(a.Key) {
			newest[a.Leaf] = max(newest[a.Leaf], a.Step)
		}
	}
	gone := slices.Sorted(maps.Keys(newest))
	sort.SliceStable(gone, func(i, j int) bool { return newest[gone[i]] > newest[gone[j]] })
	for _, path := range gone {
		m.addLeaf(&Leaf{Path: path, Gone: true, Policy: m.plan.PolicyAt(path)})
	}
	if m.in.Scroll == nil {
		return
	}
	for _, leaf := range m.in.Scroll.Leaves {
		if m.stages(leaf) {
			m.addLeaf(&Leaf{Path: leaf.Path, Policy: leaf.Policy})
		}
		m.plan.wholes[leaf.Path] = m.whole(leaf)
		m.plan.Declared = append(m.plan.Declared, state.Declared{Leaf: leaf.Path, Glyphs: leaf.Glyphs})
	}
}

func (m *maker) addLeaf(leaf *Leaf) {
	m.leafAt[leaf.Path] = len(m.leaves)
	m.leaves = append(m.leaves, leaf)
}

// PolicyAt is the policy of the scroll at a path, or of its nearest ancestor that there
// is: that of a leaf that is gone.
func (p *Plan) PolicyAt(path string) scrolls.Policy {
	for {
		if policy, ok := p.policies[path]; ok {
			return policy
		}
		if path == "" {
			return scrolls.BuiltinPolicy
		}
		path = parentLeaf(path)
	}
}

func parentLeaf(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[:i]
		}
	}
	return ""
}

// claim lists the declared glyphs that the run is about and refuses keys that another
// lineage holds.
func (m *maker) claim() []*scrolls.Glyph {
	if m.in.Scroll == nil {
		return nil
	}
	others := map[scrolls.Key]string{}
	for _, a := range m.snap.Applied {
		if a.Lineage != m.in.Lineage {
			others[a.Key] = a.Lineage
		}
	}
	for i, g := range m.in.Scroll.Glyphs() {
		m.sources[g.Key] = i
	}
	glyphs := m.picks.Of(m.in.Scroll.Glyphs())
	for _, g := range glyphs {
		if lineage, taken := others[g.Key]; taken {
			m.blame(g, scrolls.Problem{
				Summary: "Key belongs to another lineage",
				Detail: string(g.Key) + " is in force in the lineage \"" + lineage + "\". A key belongs to at most one: " +
					"undeclare it there first, or leave it out here.",
			}, nil)
		}
	}
	return glyphs
}

// blame notes a mistake at a glyph's place.
func (m *maker) blame(g *scrolls.Glyph, p scrolls.Problem, other *scrolls.Glyph) {
	if g.At.Filename == "" && !strings.HasPrefix(p.Detail, string(g.Key)) { // it comes from the journal
		p.Detail = string(g.Key) + ": " + p.Detail
	}
	p.Detail = other.Hush(g.Hush(p.Detail))
	placed := scrolls.PlacedProblem{Problem: p, At: g.At}
	if at, ok := g.Where[p.Attr]; ok {
		placed.At = at
	}
	if other != nil {
		also := other.At
		placed.Also = &also
	}
	m.wrong = append(m.wrong, placed)
}

// fail notes an error of one leaf's turn: at its first glyph, or, for a glyph that is
// gone, as it is.
func (m *maker) fail(r reconcilers.Request, err error) {
	if len(r.Set) == 0 {
		m.failed = errors.Join(m.failed, m.besideLeft(r, err))
		return
	}
	g := r.Set[0]
	p := scrolls.Problem{Attr: "path", Summary: "Glyph cannot be enacted here", Detail: reconcilers.Sentence(err)}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		p.Detail += " " + reconcilers.Sentence(errors.New(hinted.Hint()))
	}
	var ae *reconcilers.AttrError
	var other *scrolls.Glyph
	if errors.As(err, &ae) {
		other = ae.Other
		p.Attr, p.Summary = ae.Attr, ae.Summary
		for _, set := range r.Set {
			if ae.Glyph != nil {
				g = ae.Glyph
				break
			}
			if _, ok := set.Attrs[ae.Attr]; ok {
				g = set
			}
		}
	}
	m.blame(g, p, other)
}

// mistakes are all that were noted up to here, as one error; nil for none.
func (m *maker) mistakes() error {
	if len(m.wrong) > 0 {
		if err := m.in.Context.Err(); err != nil {
			return err // what it kept from being looked at is no mistake
		}
		return errors.Join(m.in.Scroll.Diagnose(m.wrong...), m.failed)
	}
	return m.failed
}

// updates finds what lies outside the content id and differs from the journal.
func (m *maker) updates() {
	noop := map[scrolls.Key]bool{}
	for _, leaf := range m.leaves {
		for _, t := range leaf.Turns {
			for _, key := range t.Noops {
				noop[key] = true
			}
		}
	}
	m.plan.unchanged = len(noop)
	for _, g := range m.glyphs {
		was, ok := m.own[g.Key]
		if ok && noop[g.Key] && (was.Leaf != g.Leaf || !sameWritten(was.Glyph, g)) {
			m.plan.Updates = append(m.plan.Updates, Update{Key: g.Key, Leaf: g.Leaf, Glyph: g})
		}
	}
}

// sameWritten says whether two glyphs of one content id are written alike.
func sameWritten(a, b *scrolls.Glyph) bool {
	return a.Protect == b.Protect && a.OnUndeclare == b.OnUndeclare && slices.Equal(a.Secret, b.Secret) && reflect.DeepEqual(plainRefs(a.Attrs), plainRefs(b.Attrs))
}

// plainRefs leaves out where a local file's bytes were read from.
func plainRefs(a scrolls.Attrs) scrolls.Attrs {
	c := maps.Clone(a)
	for name, value := range c {
		if ref, ok := value.(map[string]any); ok && ref["sha256"] != nil {
			c[name] = ref["sha256"]
		}
	}
	return c
}
