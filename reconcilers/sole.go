package reconcilers

import (
	"context"

	"golem/scrolls"
	"golem/state"
)

// A sole keeps a sort of resource of which each is one thing that one glyph declares: a
// user, a network, a container. S is all that golem knows of such a thing: what it looks
// at, records, compares and gives back. Its zero value says that there is none, and two
// that are encoded alike are the same.
//
// A kind says how the thing is looked at, what a glyph makes of it, what undeclaring leaves
// of it, and how one becomes the other; turns, steps and records are worked out here.
type sole[S any] struct {
	sort string
	own  owner[S]
}

// An owner is what a kind tells of the one thing that its glyphs declare.
type owner[S any] interface {
	// resource names the thing that a glyph is about. It asks nobody.
	resource(g *scrolls.Glyph) string
	// prepare is told all glyphs of a run and all resources that it is about: what can be
	// asked of the host in one query is asked here, and kept on the world's desk. It tells
	// what cannot be planned on this host.
	prepare(ctx context.Context, w *World, glyphs []*scrolls.Glyph, resources []string) ([]Mistake, error)
	// look observes a thing.
	look(ctx context.Context, w *World, resource string) (S, error)
	// want is what a declared glyph makes of the thing. An error refuses it.
	want(ctx context.Context, w *World, v view[S]) (goal[S], error)
	// back is what undeclaring leaves of it.
	back(ctx context.Context, w *World, v view[S]) (goal[S], error)
	// move brings the thing from one state to another, and looks itself where it is. It is
	// called again after a crash or a failure in its midst, and with from and to changed over to
	// take it back: what is right already is left alone, and what somebody else changed
	// beside it too.
	move(ctx context.Context, w *World, store Store, m motion[S]) error
	// show is the thing in a plan's JSON, without secrets; nil where there is none.
	show(s S) map[string]any
}

// A capturer is an owner that has more to be made durable than its state before a step.
type capturer[S any] interface {
	capture(ctx context.Context, w *World, store Store, m motion[S]) error
}

// A fitter is an owner that has to see what the turns before leave: what it needs of the
// host is checked, and by-products are noted, in the order of the run.
type fitter[S any] interface {
	fit(w *World, t *Turn, m motion[S]) error
}

// A glancer is an owner whose look depends on the glyph and on what is on record.
type glancer[S any] interface {
	glance(ctx context.Context, w *World, v view[S]) (S, error)
}

// A stayer is an owner of things that cannot always be taken back: of a motion that takes
// one back it says what of it stays; "" for nothing. whole says that what is taken back had
// come to its end.
type stayer[S any] interface {
	stays(m motion[S], whole bool) string
}

// A noter is an owner whose S holds more than what is compared: notes of what golem did,
// which no look can tell.
type noter[S any] interface {
	// carry puts the notes of what golem left on what is seen now.
	carry(now, left S) S
	// sight is the part of a thing that is compared; it is encoded.
	sight(s S) any
}

// A presence is an owner of things that are only a part of what is shown of them.
type presence[S any] interface {
	// there says whether the thing is there.
	there(v view[S]) bool
}

// A settler is an owner that has to see what the turns before leave before it knows what
// becomes of a thing.
type settler[S any] interface {
	// settle has another look at what was worked out, in the order of the run. Where that is
	// enacted, planned is what it had settled in the plan, which was approved.
	settle(w *World, v view[S], g goal[S], planned *goal[S]) (goal[S], error)
}

// A view is all there is to know of a thing when a turn is worked out.
type view[S any] struct {
	Request
	glyph *scrolls.Glyph // the declared one, or the one that goes
	old   *scrolls.Glyph // the record's; nil for none
	// found is the thing before golem, known says whether that is on record.
	found S
	known bool
	// left is the thing as golem left it, now as it is.
	left, now S
}

// first says that golem has no record of the thing yet.
func (v view[S]) first() bool { return v.Record == nil }

// renamed says that the thing went by another key.
func (v view[S]) renamed() bool { return v.old != nil && v.Record.Layers[0].Key != v.glyph.Key }

// A goal is what a turn makes of a thing, and how a person is told.
type goal[S any] struct {
	to S
	// effect is the plan's word for it: write, delete, restore, forget, start, stop, …
	effect Effect
	// reason says what is done and why: the whole of it in an install, a replacement and a
	// removal, and what was changed by somebody else in a repair.
	reason string
	diff   string
	// irreversible are the parts of it that cannot be taken back.
	irreversible []string
	// destroys says that the thing is made anew, and something of it lost.
	destroys bool
	keeps    []state.Kept
	// touches are paths that the step makes or changes.
	touches []string
	// forget leaves the thing as it is and drops it from the journal.
	forget bool
	// postpone leaves it to the run's last wave, which works the turn out anew: what is in
	// the way goes in this run.
	postpone bool
	// wild says that the step may change anything on the host.
	wild  bool
	units []UnitEffect
	// fresh says that the step meets the glyph's triggers that are due by then.
	fresh bool
	// far says that more than the thing was looked at: any step before this one may have
	// moved what was seen.
	far bool
	// record, where set, is put on record as what golem left in place of to, of which a part
	// is golem's no more.
	record *S
	// restless says that what was seen changes by itself, and proves nothing about the host.
	restless bool
	// lacks is what stands in the way of the step unless an earlier one of the run takes it
	// out of it.
	lacks error
	// found, where set, is put on record as what was there before golem in place of what
	// was seen.
	found *S
}

// A motion is one change of a thing.
type motion[S any] struct {
	resource string
	from, to S
	// glyph is the declared one, or the one that goes; nil where a by-product is swept.
	glyph *scrolls.Glyph
	// old is the glyph in force before the step; nil for none.
	old *scrolls.Glyph
	// reverse says that a step is taken back, or a record's found state given back by one.
	reverse bool
	undo    bool // a step is taken back
	step    *state.Step
}

// parts are the glyphs of a motion's step: what stood before it, and what it declares.
func (m motion[S]) parts() (old, next *scrolls.Glyph) {
	if len(m.step.Glyphs) > 0 {
		old, next = m.step.Glyphs[0].Old, m.step.Glyphs[0].New
	}
	return old, next
}

// glyphOf is the glyph that the state to come is made of.
func (m motion[S]) glyphOf() *scrolls.Glyph {
	if m.reverse && m.old != nil {
		return m.old
	}
	return m.glyph
}
