package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sort"

	"golem/scrolls"
	"golem/state"
)

// A Kind is one kind of glyph: what the language needs to know of it, and which
// reconciler keeps the resources it is about. A kind that is a layer on a path also
// says how it is put on and peeled off.
type Kind struct {
	scrolls.Kind
	Sort string
	base *base
	edit *edit
	// triggers lists what a glyph wants done when other keys change; nil for none.
	triggers func(*scrolls.Glyph) []Trigger
	// keeps lists the paths that a glyph of another sort than paths keeps.
	keeps func(*scrolls.Glyph) []string
	// hidden are the attributes that sensitive = true hides, beside those that are sensitive
	// by themselves.
	hidden []string
	// shape is how the key is written, for the docs, where not every argument is in it.
	shape string
}

// A Reconciler keeps all resources of one sort. It looks, works out what a turn would
// do, does it, and takes it back.
//
// The engine asks for a Turn, has it captured, commits the step's intent to the
// journal, and only then calls Enact: a crash at any point leaves a step that Undo
// accepts.
type Reconciler interface {
	// Sort names the sort of resource, as the journal does.
	Sort() string
	// Locate finds the resource each glyph acts on, as this run leaves the host.
	// Mistakes are told for each glyph, and all of them.
	// It is called once a run, with all there are: whatever can be asked in one query
	// is asked here.
	Locate(ctx context.Context, w *World, glyphs []*scrolls.Glyph, gone []Gone) (map[*scrolls.Glyph]Spot, []Mistake, error)
	// Turn works out what one leaf's turn does to one resource. It only reads. With
	// a Request whose Now is set it takes that for the host and does not look.
	Turn(ctx context.Context, w *World, r Request) (*Turn, error)
	// Fit checks a turn against what stands around its resource, and completes it:
	// what has to be made first, what is in the way. Turns are fitted in the order
	// in which they will run; each is taken for done by the next.
	Fit(w *World, t *Turn) error
	// Sweep works out the turns that take away by-products that nothing needs.
	Sweep(ctx context.Context, w *World) ([]*Turn, error)
	// Batch says how many of the leading turns can share a batch: one commit of
	// their intents, and one set of syncs or one transaction. At least one.
	Batch(turns []*Turn) int
	// Join completes the fitted turns of one batch with what they do together: what
	// one transaction brings, changes and takes beside them. It only reads. Turns
	// after the batch take what it says for done.
	Join(ctx context.Context, w *World, turns []*Turn) error
	// Capture makes durable, or queues for the intent's transaction, every byte
	// that taking the turns back would need.
	Capture(ctx context.Context, w *World, store Store, turns []*Turn) error
	// Enact makes the turns true of the host, in order. On an error it says which
	// turn failed; every turn of the batch then has to be taken back or found done
	// by Undo.
	Enact(ctx context.Context, w *World, store Store, turns []*Turn) (failed int, err error)
	// Undo returns a resource to what it was just before a step. It succeeds when
	// Enact never ran, ran half way, or Undo ran before.
	Undo(ctx context.Context, w *World, store Store, s *state.Step) error
	// Foresee puts into the world what Undo of a step would leave.
	Foresee(w *World, s *state.Step) error
}

// A Store takes bytes that must outlive a change to the host.
type Store interface {
	Blobs
	// Put stores bytes; they are durable with the next commit of an intent.
	Put(data []byte) (hash string, err error)
	// PutFile stores a file's bytes, streamed. want is the hash they must have, or "".
	PutFile(f *os.File, want string) (hash string, err error)
	// Keep stores what golem displaces, durable on return.
	Keep(k state.Kept, open func() (*os.File, error)) error
}

// A Gone is a glyph in force that the scroll no longer declares, with its record.
type Gone struct {
	state.Applied
	Record *state.Record
}

// A Spot is where a glyph acts.
type Spot struct {
	Resource string
	// Via are the links that led there, if any.
	Via []string
}

// A Mistake is a glyph that cannot be planned on this host.
type Mistake struct {
	Glyph *scrolls.Glyph
	// Other, where set, is the glyph it clashes with.
	Other *scrolls.Glyph
	scrolls.Problem
}

// A Request is what one leaf wants of one resource in its turn.
type Request struct {
	Lineage, Leaf string
	Sort          string
	Resource      string
	// Record is what the journal holds of the resource now; nil for nothing.
	Record *state.Record
	// Set are the leaf's glyphs on the resource, in source order.
	Set []*scrolls.Glyph
	// Drop are the glyphs that go in this turn, by key.
	Drop map[scrolls.Key]*scrolls.Glyph
	// Moves says which of them this run sets on another resource: they leave without
	// a word of their own here.
	Moves map[scrolls.Key]bool
	// Order is the place of each layer, from the oldest on, when the whole run is over;
	// keys that a later turn drops are in it too.
	Order map[scrolls.Key]int
	// Shares says that the run has other turns on the resource, too, and Last is the one
	// that was worked out before this one, if any: what both reckon of the same bytes is
	// reckoned once.
	Shares bool
	Last   *Turn
	// Via are the links that led a glyph to the resource, for the plan to tell.
	Via map[scrolls.Key][]string
	// Blind asks for no repair: a glyph whose content id is the same is taken for
	// right (--no-observe).
	Blind bool
	// Untold asks for no diffs: nobody will read them.
	Untold bool
	// Leave says that what is dropped is to be left as it is (on_undeclare = "leave").
	Leave bool
	// Late marks a turn of the run's last wave.
	Late bool
	// Now, where set, is what the resource will be by then.
	Now any
	// Planned, where set, is the turn as the plan worked it out: this is a second look.
	Planned *Turn
}

// A Turn is what one leaf's turn does to one resource: the step as the journal will
// have it, and how a person is told.
type Turn struct {
	Request
	// Step is nil when there is nothing to do and nothing to write down.
	Step *state.Step
	// Changes tell each glyph's part; a noop has none.
	Changes []Change
	// Noops are the glyphs that hold already.
	Noops []scrolls.Key
	// Postpone says that the run's last wave has to do this, not the leaf.
	Postpone bool
	// Seen and Leaves are what the resource was and will be, the reconciler's own. A
	// Seen that can be compared is a Sight.
	Seen, Leaves any
	// Joint, on the first turn of a batch, is what the batch does together, a Sight.
	Joint any
	// Units are the systemd units that the turn stops, starts or leaves.
	Units []UnitEffect
	// Wild says that the turn runs programs that may change anything on the host.
	Wild bool
	// Fresh says that what the turn starts, or starts anew, has read everything that
	// was changed before it: the triggers of its glyph that are due by then are met.
	Fresh bool
	// Far says that the turn looked at more than its resource: any step before it in the
	// run may have moved what it saw.
	Far bool
	// Touches are paths that the turn makes or changes beside its resource.
	Touches []string
	// Keeps are what the turn displaces that nobody declared.
	Keeps []state.Kept
	// Acts says whether the host is changed at all.
	Acts bool

	reckoned reckoning // what was worked out of bytes alone
	work     any       // what a reconciler other than surfaces works with
	// lender is the package or user whose file was found at the path, and lent says that it is
	// there.
	lender string
	lent   bool
	shift  *shift
	under  *Node  // what lies beneath the base after the turn
	lost   []Node // bytes that go and are no file's: they are kept
	// staysMade says that a directory stays as a made parent.
	staysMade bool
}

// ByProduct says that a turn is about no glyph, but about what golem made beside one.
func (t *Turn) ByProduct() bool { return len(t.Set) == 0 && len(t.Drop) == 0 }

// An Effect is what a change does to the host. Those of every sort are named here; units have
// others of their own (start, stop, enable, …), and so have packages (upgrade, hold, …) and
// commands (run, undo).
type Effect string

const (
	EffectWrite   Effect = "write"
	EffectDelete  Effect = "delete"
	EffectRestore Effect = "restore" // what was found, or was there before a step
	EffectForget  Effect = "forget"  // the journal drops it; the host is left alone
	EffectRecord  Effect = "record"  // it is so already
)

// A Change is one glyph's part in a turn, as plan tells it.
type Change struct {
	Key    scrolls.Key
	Kind   string
	Op     state.Op
	Effect Effect
	Reason string
	// Before and After are the object for JSON; nil where there is none.
	Before, After map[string]any
	Diff          string
	Drift         bool
	Irreversible  []string
	// Destroys says that what is there is made anew, and something of it lost.
	Destroys bool
	Secret   bool
	// There says that the thing was there, made by somebody else, before golem's first step on
	// it.
	There bool
	// Adopts says that an adopt block lets golem take it over.
	Adopts bool
}

// All are the kinds of glyph there are. A new kind is one line here.
var All = []Kind{
	fileKind, directoryKind, linkKind, lineKind, regionKind, entryKind, aptKind, serviceKind, processKind, commandKind,
	containerKind, networkKind, userKind, groupKind, accessKind, archiveKind,
}

// Reconcilers are the keepers of resources, by sort.
var Reconcilers = map[string]Reconciler{
	PathSort: surfaces{}, PackageSort: packages{}, UnitSort: units{}, processSort: processes{},
	commandSort:   commandKeeper{sole[commandState]{sort: commandSort, own: commands{}}},
	ContainerSort: containerKeeper, NetworkSort: networkKeeper, imageSort: imageKeeper,
	userSort: userKeeper{soleUsers}, groupSort: soleGroups, accessSort: sole[grantState]{sort: accessSort, own: accesses{}}, archiveSort: unpackings{},
}

// Kinds returns what the language needs of every kind.
func Kinds() []scrolls.Kind {
	kinds := make([]scrolls.Kind, len(All))
	for i, k := range All {
		kinds[i] = k.Kind
	}
	return kinds
}

// KindOf finds a kind by name.
func KindOf(name string) (Kind, bool) {
	if k := kindNamed(name); k != nil {
		return *k, true
	}
	return Kind{}, false
}

// kindNamed is KindOf without a copy; nil for none.
func kindNamed(name string) *Kind {
	for i := range All {
		if All[i].Name == name {
			return &All[i]
		}
	}
	return nil
}

// NeedsPlace says whether what a glyph declares is to be there: one that only wants
// something to be gone from a file needs neither the file nor a directory for it.
func NeedsPlace(g *scrolls.Glyph) bool { return !takesAway(g.Attrs) }

// HiddenAttrs names the attributes of a glyph that are not to be shown.
func HiddenAttrs(g *scrolls.Glyph) []string {
	if marked, _ := g.Attrs["sensitive"].(bool); !marked {
		return g.Secret
	}
	kind, _ := KindOf(g.Kind)
	return slices.Concat(g.Secret, kind.hidden)
}

// Keeps lists the paths that a glyph keeps beside its resource: what they lie in is
// needed while it is in force.
func Keeps(w *World, resource string, g *scrolls.Glyph) []string {
	kind, ok := KindOf(g.Kind)
	if !ok {
		return nil
	}
	if k, ok := Reconcilers[kind.Sort].(Keeper); ok {
		return k.Keeps(w, resource, g)
	}
	if kind.keeps == nil {
		return nil
	}
	return kind.keeps(g)
}

// A Keeper is a reconciler whose glyphs keep paths that they do not say themselves.
type Keeper interface {
	Keeps(w *World, resource string, g *scrolls.Glyph) []string
}

// Shared says whether a resource of a sort holds several glyphs, each of them whole by
// itself.
func Shared(sort string) bool { return sort == PathSort || sort == archiveSort }

// CID is the content id of a glyph as this golem encodes it.
func CID(g *scrolls.Glyph) scrolls.ContentID {
	k, ok := KindOf(g.Kind)
	if !ok {
		return ""
	}
	return scrolls.CID(k.Kind, g)
}

// Batch cuts turns after those that can share a batch with the first.
func Batch(turns []*Turn) []*Turn {
	end := 1
	for end < len(turns) && turns[end].Step != nil && turns[end].Sort == turns[0].Sort && turns[end].Leave == turns[0].Leave {
		end++
	}
	return turns[:Of(turns[0].Request).Batch(turns[:end])]
}

// lateRank is a sort's place in the last wave: accounts go behind what belongs to them, and
// groups behind users.
func lateRank(sort string) int { return slices.Index([]string{PathSort, userSort, groupSort}, sort) }

// SortLate puts the turns of a last wave in order: what may hold files first, then
// paths, deepest first, then users and groups, and what lies above the users' homes.
func SortLate(turns []*Turn) {
	homes := homesOf(turns)
	rank := func(t *Turn) int {
		if t.Sort == PathSort && slices.ContainsFunc(homes, func(home string) bool { return beneath(home, t.Resource) }) {
			return lateRank(groupSort) + 1
		}
		return lateRank(t.Sort)
	}
	sort.SliceStable(turns, func(i, j int) bool {
		a, b := turns[i], turns[j]
		if by := rank(a) - rank(b); by != 0 {
			return by < 0
		}
		if a.Sort != b.Sort {
			return a.Sort < b.Sort
		}
		return a.Resource > b.Resource
	})
}

// RecordKey is how a snapshot's records and ledger are keyed.
func RecordKey(sort, resource string) string { return sort + ":" + resource }

// encode is json.Marshal for the reconcilers' own plain values, which cannot fail.
func encode(v any) json.RawMessage {
	out, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // a type that has no JSON: a bug
	}
	return out
}

// IsBase says whether a glyph is the whole object at a path, not an edit of it.
func (k Kind) IsBase() bool { return k.base != nil }

// Loosens says whether a turn may have something on the host let go of what it holds, and
// not only what the turn is about. Containers and networks tell themselves what they do.
func Loosens(t *Turn) bool {
	return t.Acts && t.Wild && t.Sort != ContainerSort && t.Sort != NetworkSort
}
