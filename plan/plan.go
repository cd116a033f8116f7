// Package plan works out what a run would do: from a scroll, the journal and the host
// to a plan value, and from that to text or JSON. It reads and never writes.
package plan

import (
	"context"
	"slices"
	"sort"

	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// An Input is everything a plan is made from.
type Input struct {
	// Context ends the look at the host; nil never does.
	Context context.Context
	// Scroll is what is wanted; nil is the empty scroll.
	Scroll *scrolls.Scroll
	// Policies are those of the scrolls there are, where Scroll is nil: of the one that
	// is to be destroyed, or "" for the host's own.
	Policies map[string]scrolls.Policy
	Lineage  string
	Host     string // the host's name, for people
	Snapshot *state.Snapshot
	World    *reconcilers.World
	// Blind leaves out looking for drift (--no-observe).
	Blind bool
	// Destroy says that the empty scroll was asked for in so many words.
	Destroy bool
	// Choice says which part of it the run is about; nil: all.
	Choice *Choice
	// Back says that the scroll is what an earlier revision declared; nil: it is not.
	Back *Back
}

// Back is where a rollback goes.
type Back struct {
	Revision int
	// Since are the lineage's steps after it, oldest first: what they stopped is started.
	Since []*state.Step
}

// A Plan is what a run will do, leaf by leaf, in the order of the run.
type Plan struct {
	Name     string
	Host     string
	Revision int // the current one; 0 for none
	Back     int // the revision that a rollback goes to; 0: it is none
	Leaves   []*Leaf
	// Wave are the turns of the run's last wave.
	Wave []*reconcilers.Turn
	// AllChecks are those that the scroll declares, and Checks those that the run makes.
	AllChecks, Checks []Check
	// Updates are keys whose record changes without an op.
	Updates []Update
	// Triggers are all that the scroll declares, and those in force of what is left out.
	Triggers []Trigger
	// LeftDue are the scroll's triggers and checks that earlier runs left due, each in the
	// leaf where it now stands.
	LeftDue []state.Due
	// Due are the triggers that the run has to fire, in the order in which it does.
	Due []Due
	// Recovers tells what an interrupted run left to be taken back first; nil: none.
	Recovers *Recovery
	// Busy is another golem that is at work: what is seen is a state in between; nil: none is.
	Busy *state.Holder
	// Pending is a run that waits to be confirmed, so that no other is let; nil: none does.
	Pending *Pending
	Unknown []scrolls.Key
	Destroy bool
	// LeftOut is what the run is not about; nil: it is about everything.
	LeftOut *LeftOut
	// Declared is the scroll's own account of what is in force after the run.
	Declared []state.Declared

	unchanged int
	wholes    map[string]bool // leaves that are as the scroll has them after the run
	policies  map[string]scrolls.Policy
	needed    []string
	declares  map[string]*scrolls.Glyph // by the resource's RecordKey; of what is no path
	inForce   map[scrolls.Key]*scrolls.Glyph
	secrets   []string                 // the longest first
	claims    map[string][]scrolls.Key // the layers on a path
}

// WaveLeaf is the name under which the journal has the steps of the last wave: a
// failure boundary of its own. No declared leaf can be called so.
const WaveLeaf = "(last wave)"

// A Leaf is one leaf's part of a plan.
type Leaf struct {
	Path   string
	Gone   bool // no longer declared
	Policy scrolls.Policy
	Turns  []*reconcilers.Turn
}

// An Update is a key that stands in another leaf, or is written differently, though it
// means the same.
type Update struct {
	Key   scrolls.Key
	Leaf  string
	Glyph *scrolls.Glyph
}

// A Recovery is what is left of an interrupted run.
type Recovery struct {
	Command string        `json:"command"`
	Started string        `json:"started"`
	Leaves  []string      `json:"leaves"`
	Keys    []scrolls.Key `json:"keys"`
	// Owed says that no run was interrupted: an ended one could not take these back.
	Owed bool `json:"owed"`
}

// Changes lists every glyph's part but noops, in the order of the run.
func (p *Plan) Changes() []Told {
	var all []Told
	for _, leaf := range p.Leaves {
		all = append(all, leaf.Changes()...)
	}
	return all
}

// A Told is a change with the leaf it belongs to.
type Told struct {
	Leaf string
	reconcilers.Change
}

// Changes lists the leaf's changes.
func (l *Leaf) Changes() []Told {
	var all []Told
	for _, t := range l.Turns {
		for _, c := range t.Changes {
			all = append(all, Told{Leaf: l.Path, Change: c})
		}
	}
	return all
}

// Unchanged counts the leaf's glyphs that hold already.
func (l *Leaf) Unchanged() int {
	noop := map[scrolls.Key]bool{}
	for _, t := range l.Turns {
		for _, key := range t.Noops {
			noop[key] = true
		}
	}
	return len(noop)
}

// A Summary counts the plan's glyphs by op.
type Summary struct {
	Install   int `json:"install"`
	Replace   int `json:"replace"`
	Repair    int `json:"repair"`
	Remove    int `json:"remove"`
	Unchanged int `json:"unchanged"`
}

// Summary counts the plan.
func (p *Plan) Summary() Summary {
	s := Summary{Unchanged: p.unchanged}
	for _, c := range p.Changes() {
		s.Add(c.Op)
	}
	return s
}

// Add counts one glyph.
func (s *Summary) Add(op state.Op) {
	switch op {
	case state.Install:
		s.Install++
	case state.Replace:
		s.Replace++
	case state.Repair:
		s.Repair++
	case state.Remove:
		s.Remove++
	case state.Noop:
		s.Unchanged++
	}
}

// Empty says that a run would do nothing to the host and write nothing about it.
func (p *Plan) Empty() bool {
	if p.Recovers != nil || len(p.Due)+len(p.Checks) > 0 {
		return false
	}
	for _, t := range p.Wave {
		if t.Acts || !t.ByProduct() {
			return false // what is only forgotten waits for a run that does something
		}
	}
	for _, leaf := range p.Leaves {
		for _, t := range leaf.Turns {
			if t.Step != nil || t.Postpone {
				return false
			}
		}
	}
	return true
}

// Needed says whether something is declared when the run is over: at or beneath a path,
// or of another sort under its reconcilers.RecordKey.
func (p *Plan) Needed(path string) bool { return Covers(p.needed, path) }

// Declares is the glyph in force on a resource that has but one, when the run is over;
// nil for none.
func (p *Plan) Declares(sort, resource string) *scrolls.Glyph {
	return p.declares[reconcilers.RecordKey(sort, resource)]
}

// InForce is the glyph that a key stands for when the run is over, of any lineage; nil for
// none.
func (p *Plan) InForce(key scrolls.Key) *scrolls.Glyph { return p.inForce[key] }

// Hush takes out of a text of the run, as a program's last words, what is sensitive in any glyph.
func (p *Plan) Hush(text string) string { return scrolls.Hush(text, p.secrets) }

// Claims lists the glyphs that will be layers on a path when the run is over, of any
// lineage.
func (p *Plan) Claims(path string) []scrolls.Key { return p.claims[path] }

// Covers says whether a sorted list holds a path or something inside it.
func Covers(paths []string, path string) bool {
	i, found := slices.BinarySearch(paths, path)
	if found {
		return true
	}
	inside := path + "/"
	i = i + sort.SearchStrings(paths[i:], inside)
	return i < len(paths) && len(paths[i]) > len(inside) && paths[i][:len(inside)] == inside
}
