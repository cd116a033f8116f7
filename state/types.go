// Package state is golem's memory of its own edits: the journal, an append-only
// SQLite database beside which large originals lie by hash. It knows no host and no
// kind: what a reconciler captured is bytes to it.
package state

import (
	"encoding/json"
	"slices"
	"time"

	"golem/scrolls"
)

// An Op is what one run does about one key.
type Op string

// The ops, in the order a summary counts them.
const (
	Install Op = "install"
	Replace Op = "replace"
	Repair  Op = "repair"
	Remove  Op = "remove"
	Noop    Op = "noop"
)

// A Layer is one glyph on a resource, with the receipt that takes just it off again.
type Layer struct {
	Key     scrolls.Key
	Lineage string
	Glyph   *scrolls.Glyph // as stored: kind, key, attributes, secrets, version
	// Changed is true once any step did something to the host for this glyph. While
	// it is false, undeclaring forgets the glyph, drifted or not.
	Changed bool
	Inverse json.RawMessage // the reconciler's own; may be nil
}

// A Record is what the journal holds of one resource: all that golem put there, of
// every lineage. The record of a path is its surface.
type Record struct {
	Sort     string // which reconciler keeps it ("path")
	Resource string // what it is about, as the host spells it; any bytes
	// Found is what golem saw before its first touch. It is recorded once and never
	// overwritten while the record lives.
	Found  json.RawMessage
	Layers []Layer // oldest first
	After  json.RawMessage
}

// An Entry is one by-product in the host-wide ledger: something a step made, or had
// to remember, beside its glyphs.
type Entry struct {
	Sort     string
	Resource string
	Body     json.RawMessage
}

// A LedgerChange is what a step does to one line of the ledger; a nil Entry is none.
type LedgerChange struct {
	Sort, Resource string
	Before, After  *Entry
}

// A StepGlyph is one glyph's part in a step.
type StepGlyph struct {
	Op      Op
	Key     scrolls.Key
	CID     scrolls.ContentID // of New, or of Old for a remove
	Old     *scrolls.Glyph    // nil for an install
	New     *scrolls.Glyph    // nil for a remove
	Leaf    string            // where it stands after the step
	Changed bool
	Reason  string
}

// A Step is one atomic act on one resource, in one leaf's turn. Its intent is
// committed whole, both inverses in it, before the host is touched.
type Step struct {
	ID      int64 // given by Intend
	Run     int64
	Lineage string
	Leaf    string // the failure boundary it belongs to
	Sort    string
	// Resource is the record's.
	Resource string
	// Before and After are the whole record before and after; nil: none.
	Before, After *Record
	// Inverse is what the host had just before this step, for rollback and recovery.
	// (The inverse to before golem is the record's Found.)
	Inverse json.RawMessage
	// Expect is what the host will have after it.
	Expect json.RawMessage
	Ledger []LedgerChange
	Glyphs []StepGlyph
	Status Status
	Detail string // what was said when it failed or was reversed
}

// A Status is how far a step came.
type Status string

// A step is intended until it has an end; a done step may later be reversed.
const (
	Intended Status = "intended"
	Done     Status = "done"
	Failed   Status = "failed" // tried, and taken back or never begun
	Reversed Status = "reversed"
)

// An Applied is one key in force: the last done step for it that was not reversed.
type Applied struct {
	Lineage  string
	Key      scrolls.Key
	Leaf     string
	Glyph    *scrolls.Glyph
	Resource string
	Sort     string
	Step     int64 // the step that last applied it
	Position int   // within that step
	Revision int   // of the lineage: the run that last applied it; 0 while it runs
	Changed  bool
}

// A Lineage is one scroll's line of revisions.
type Lineage struct {
	Name string
	// Dir is the directory that a defaulted name is bound to; "" for a written name.
	Dir      string
	Revision int // the newest; 0 for none
}

// A Run says who ran golem, from where, and on what.
type Run struct {
	ID       int64
	Lineage  string
	Command  string // "apply", "destroy", "rollback", …
	Started  time.Time
	UID      int
	SudoUser string
	Version  string // golem's
	BootID   string
	Machine  string
	PID      int
	Source   string // the scroll's path; "" for a destroy by name
	Digest   string
	// Target is the revision that a rollback or a return goes back to; 0 for none.
	Target int
}

// GoesBack says that the run brings back what an earlier one left: its own revision is
// no place to go back to.
func (r *Run) GoesBack() bool { return r.Command == CommandRollback || r.Command == CommandReturn }

// The commands of runs that go back.
const (
	CommandRollback = "rollback"
	CommandReturn   = "return" // of a run that nobody confirmed
)

// An Outcome says how a glyph, a leaf, a run or a revision ended. What there is beside Settled
// is apply's.
type Outcome string

// Settled is the outcome of a leaf, and of a run, of which every step is done and on disk.
const Settled Outcome = "settled"

// A LeafOutcome is how one leaf of a run ended.
type LeafOutcome struct {
	Leaf     string   `json:"leaf"`
	Outcome  Outcome  `json:"outcome"` // settled, rolled_back, kept, skipped
	Failures []string `json:"failures,omitempty"`
}

// A Declared is one leaf's glyphs in a revision, in source order.
type Declared struct {
	Leaf   string
	Glyphs []*scrolls.Glyph
	// Checks and Policy are the leaf's; no policy is the built-in one.
	Checks []*scrolls.Glyph
	Policy *scrolls.Policy
}

// A Revision is one committed run.
type Revision struct {
	ID      int64
	Lineage string
	Number  int
	Kind    string // "init" for the first, "reconcile" after that
	Run     Run
	At      time.Time
	Outcome Outcome // settled, partial, rolled_back, recovered
	Leaves  []LeafOutcome
	// Declared is what is in force after the revision, whole.
	Declared []Declared
	// Counts of the steps' glyphs by op, for lists.
	Counts map[Op]int
}

// A Kept is something that golem displaced and that nobody declared: a human's edit,
// an original that could not go back.
type Kept struct {
	ID     int64
	At     time.Time
	Run    int64
	Step   int64 // 0 for none
	Path   string
	Node   json.RawMessage // the reconciler's description: type, mode, owner, …
	Blob   string          // hash of its bytes; "" for what has none (a link)
	Size   int64
	Reason string
}

// A Due is a trigger or check that must still run. Lineage, leaf and name tell one from
// another; the body is the engine's own.
type Due struct {
	Lineage, Leaf, Name string
	Step                int64 // the step that called for it; 0 for none
	Body                json.RawMessage
}

// A Pending is a run that waits to be confirmed; the body is the engine's own.
type Pending struct {
	Run  int64
	Body json.RawMessage
}

// A Dead is a run that ended without saying so.
type Dead struct {
	Run Run
	// Leaves are those that had ended by then.
	Leaves []LeafOutcome
	// Steps are the steps of leaves that had not, intended and done, oldest first.
	// They are what recovery takes back.
	Steps []*Step
	// Settled are the done steps of the leaves that had settled, oldest first.
	Settled []*Step
}

// A Snapshot is everything a plan needs of the journal, read at one instant.
type Snapshot struct {
	Journal  string // its id; "" where there is no journal yet
	Lineages map[string]*Lineage
	Applied  []Applied          // all lineages, in the order of application
	Records  map[string]*Record // by Sort + ":" + Resource
	Ledger   map[string]*Entry  // by Sort + ":" + Resource
	Due      []Due
	Pending  *Pending // nil: no run waits to be confirmed
	Dead     *Dead
	// Busy is another golem that holds the journal while this one reads; nil: none is known.
	Busy *Holder
	// Owed are the steps of ended runs that could not be taken back, oldest first.
	Owed []*Step
	// Unknown are keys whose kind's record this golem cannot read; left alone.
	Unknown []scrolls.Key
}

// InForce is what a key stands for, in whatever lineage; false where it is not in force.
func (s *Snapshot) InForce(key scrolls.Key) (Applied, bool) {
	i := slices.IndexFunc(s.Applied, func(a Applied) bool { return a.Key == key })
	if i < 0 {
		return Applied{}, false
	}
	return s.Applied[i], true
}

// Revision is the number of a lineage's newest revision; 0 for none.
func (s *Snapshot) Revision(lineage string) int {
	if l := s.Lineages[lineage]; l != nil {
		return l.Revision
	}
	return 0
}

// Unsettled says that a run died, or that an ended one could not take something back.
func (s *Snapshot) Unsettled() bool { return s.Dead != nil || len(s.Owed) > 0 }
