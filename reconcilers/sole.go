package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

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
	// move brings the thing, which is now as given, from one state to another. It is called
	// again after a crash or a failure in its midst, and with from and to changed over to
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

// A firing is an owner whose glyphs have triggers.
type firing interface {
	foretell(w *World, g *scrolls.Glyph, resource, action string) (*UnitEffect, error)
	fire(ctx context.Context, w *World, g *scrolls.Glyph, resource, action string) error
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
	effect string
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
	resource      string
	from, to, now S
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

// soleWork is what one turn does, and what it was worked out from.
type soleWork[S any] struct {
	m     motion[S]
	v     view[S]
	g     goal[S]
	lacks error
}

// soleDesk is where what the run leaves of a sort's things is noted.
type soleDesk[S any] struct {
	mu   sync.Mutex
	will map[string]S
}

func (r sole[S]) desk(w *World) *soleDesk[S] {
	return keepAt(w, "sole:"+r.sort, func() *soleDesk[S] { return &soleDesk[S]{will: map[string]S{}} })
}

// foreseen is what the run leaves of a thing by now, where it was worked out.
func (r sole[S]) foreseen(w *World, resource string) (S, bool) {
	d := r.desk(w)
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.will[resource]
	return s, ok
}

func (r sole[S]) foresee(w *World, resource string, s S) {
	d := r.desk(w)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.will[resource] = s
}

// Sort implements Reconciler.
func (r sole[S]) Sort() string { return r.sort }

// Locate implements Reconciler.
func (r sole[S]) Locate(ctx context.Context, w *World, glyphs []*scrolls.Glyph, gone []Gone) (map[*scrolls.Glyph]Spot, []Mistake, error) {
	spots, all := map[*scrolls.Glyph]Spot{}, map[string]bool{}
	for _, g := range glyphs {
		spots[g] = Spot{Resource: r.resource(w, g)}
		all[spots[g].Resource] = true
	}
	for _, a := range gone {
		all[a.Resource] = true
	}
	mistakes, err := r.own.prepare(ctx, w, glyphs, slices.Sorted(maps.Keys(all)))
	return spots, mistakes, err
}

// resource is the thing that a glyph is about. Of a kind whose key is but a name it is the
// one that the key, or the key that it had, already stands for; and what was given another
// name is not another's by that.
func (r sole[S]) resource(w *World, g *scrolls.Glyph) string {
	own := r.own.resource(g)
	if kind, _ := KindOf(g.Kind); !kind.Renames {
		return own
	}
	for _, key := range []scrolls.Key{g.Key, g.MovedFrom} {
		if at := w.Where(key); key != "" && at != "" {
			return at
		}
	}
	if rec := w.Record(r.sort, own); rec != nil && len(rec.Layers) > 0 && rec.Layers[0].Key != g.Key {
		return own + "'"
	}
	return own
}

// Turn implements Reconciler.
func (r sole[S]) Turn(ctx context.Context, w *World, req Request) (*Turn, error) {
	v, err := r.view(ctx, w, req)
	if err != nil {
		return nil, err
	}
	t := &Turn{Request: req, Seen: r.sight(v.now)}
	if len(req.Set) > 0 && req.Blind && v.old != nil && CID(v.old) == CID(v.glyph) && !v.renamed() {
		t.Noops = []scrolls.Key{v.glyph.Key}
		return t, nil
	}
	var g goal[S]
	switch {
	case len(req.Set) > 0:
		g, err = r.own.want(ctx, w, v)
	case !v.known:
		g = goal[S]{forget: true, reason: "nothing is known of it before golem; left as it is"}
	default:
		g, err = r.own.back(ctx, w, v)
	}
	if err != nil {
		return nil, err
	}
	if g.postpone {
		t.Postpone = true
		return t, nil
	}
	if g.forget {
		g.to = v.now
	}
	r.judge(t, v, g)
	return t, nil
}

// view reads the record and looks at the thing.
func (r sole[S]) view(ctx context.Context, w *World, req Request) (view[S], error) {
	v := view[S]{Request: req, known: true}
	for _, g := range req.Drop {
		v.glyph = g
	}
	if len(req.Set) > 0 {
		v.glyph = req.Set[0]
	}
	var err error
	if rec := req.Record; rec != nil {
		if len(rec.Layers) > 0 {
			v.old = rec.Layers[0].Glyph
		}
		v.known = !IsUnknown(rec.Found)
		if v.known {
			err = json.Unmarshal(rec.Found, &v.found)
		}
		if err == nil && len(rec.After) > 0 {
			err = json.Unmarshal(rec.After, &v.left)
		}
		if err != nil {
			return v, fmt.Errorf("read the record of %s %s: %w", r.sort, req.Resource, err)
		}
	}
	if s, ok := req.Now.(S); ok {
		v.now = s
	} else if s, ok := r.foreseen(w, req.Resource); ok {
		v.now = s
	} else if g, ok := r.own.(glancer[S]); ok {
		v.now, err = g.glance(ctx, w, v)
	} else {
		v.now, err = r.own.look(ctx, w, req.Resource)
	}
	if v.first() {
		v.found = v.now
	} else if n, ok := r.own.(noter[S]); ok {
		v.now = n.carry(v.now, v.left)
	}
	return v, err
}

// sight is what is compared of a thing.
func (r sole[S]) sight(s S) soleSight {
	if n, ok := r.own.(noter[S]); ok {
		return soleSight(encode(n.sight(s)))
	}
	return soleSight(encode(s))
}

// judge makes the step and tells it.
func (r sole[S]) judge(t *Turn, v view[S], g goal[S]) {
	t.Acts = r.sight(v.now) != r.sight(g.to)
	t.Leaves, t.Wild, t.Keeps, t.Units = g.to, g.wild && t.Acts, g.keeps, g.units
	t.Fresh, t.Far, t.Touches = g.fresh && t.Acts, g.far, g.touches
	if g.restless {
		t.Seen = nil
	}
	m := motion[S]{resource: t.Resource, from: v.now, to: g.to, now: v.now, glyph: v.glyph, old: v.old, reverse: len(t.Set) == 0}
	t.work = &soleWork[S]{m, v, g, g.lacks}
	step := &state.Step{
		Lineage: t.Lineage, Leaf: t.Leaf, Sort: r.sort, Resource: t.Resource, Before: t.Record,
		Inverse: encode(v.now), Expect: encode(g.to),
	}
	c := Change{
		Effect: g.effect, Reason: g.reason, Diff: g.diff, Irreversible: g.irreversible, Destroys: g.destroys,
		Before: r.own.show(v.now), After: r.own.show(g.to),
	}
	if secret(v.glyph) || v.old != nil && secret(v.old) {
		c.Secret, c.Diff = true, ""
	}
	if len(t.Set) == 0 {
		r.judgeDrop(t, step, c, g)
		return
	}
	op := state.Op("")
	switch {
	case v.old == nil:
		op = state.Install
	case CID(v.old) != CID(v.glyph), v.renamed():
		op = state.Replace
	case t.Acts:
		op, c.Drift, c.Reason = state.Repair, true, "drifted: "+g.reason
	default:
		t.Noops = []scrolls.Key{v.glyph.Key}
		return
	}
	if !t.Acts {
		c.Effect = "record"
	}
	t.Step = step
	t.Step.After = r.record(v, g, t.Acts)
	t.part(v.glyph.Key, v.old, v.glyph, op, c, t.Acts)
	for key, g := range t.Drop { // the key that it had
		t.Step.Glyphs = append(t.Step.Glyphs, state.StepGlyph{
			Op: state.Remove, Key: key, CID: CID(g), Old: g, Leaf: t.Leaf, Reason: "it goes on as " + string(v.glyph.Key),
		})
	}
}

// judgeDrop tells a removal.
func (r sole[S]) judgeDrop(t *Turn, step *state.Step, c Change, g goal[S]) {
	t.Step = step
	if !t.Acts {
		c.Effect, c.After = "forget", nil
		if c.Reason == "" {
			c.Reason = "it is as it was already"
		}
	}
	for key, glyph := range t.Drop {
		if t.Late && t.Moves[key] {
			continue // it is in force on another resource by now
		}
		t.part(key, glyph, nil, state.Remove, c, t.Acts)
	}
}

// record is the journal's record after a declared glyph's turn.
func (r sole[S]) record(v view[S], g goal[S], changed bool) *state.Record {
	rec := &state.Record{Sort: r.sort, Resource: v.Resource, Found: encode(v.found), After: encode(g.to)}
	if v.Record != nil {
		rec.Found = v.Record.Found
		if len(v.Record.Layers) > 0 {
			changed = changed || v.Record.Layers[0].Changed
		}
	}
	if g.found != nil {
		rec.Found = encode(*g.found)
	}
	if g.record != nil {
		rec.After = encode(*g.record)
	}
	rec.Layers = []state.Layer{{Key: v.glyph.Key, Lineage: v.Lineage, Glyph: v.glyph, Changed: changed}}
	return rec
}

// Fit implements Reconciler: what comes after takes the turn for done.
func (r sole[S]) Fit(w *World, t *Turn) error {
	if err := r.settle(w, t); err != nil {
		return err
	}
	if k, ok := t.work.(*soleWork[S]); ok && t.Acts {
		if k.lacks != nil && !w.Stirred {
			return k.lacks
		}
		if f, ok := r.own.(fitter[S]); ok {
			if err := f.fit(w, t, k.m); err != nil {
				return err
			}
		}
	}
	if s, ok := t.Leaves.(S); ok && t.Acts && !w.Acts {
		r.foresee(w, t.Resource, s)
	}
	return nil
}

// settle lets the owner have another look at a turn, with what the run does before it.
func (r sole[S]) settle(w *World, t *Turn) error {
	f, ok := r.own.(settler[S])
	k, works := t.work.(*soleWork[S])
	if !ok || !works {
		return nil
	}
	var planned *goal[S]
	if p := t.Planned; p != nil {
		if k, ok := p.work.(*soleWork[S]); ok {
			planned = &k.g
		}
	}
	g, err := f.settle(w, k.v, k.g, planned)
	if err != nil {
		return err
	}
	if g.forget {
		g.to = k.v.now
	}
	t.Changes, t.Noops, t.Step = nil, nil, nil
	r.judge(t, k.v, g)
	if g.postpone {
		t.Postpone, t.Acts, t.Step, t.Leaves = true, false, nil, k.v.now
	}
	return nil
}

// Sweep implements Reconciler: there are no by-products.
func (sole[S]) Sweep(context.Context, *World) ([]*Turn, error) { return nil, nil }

// Batch implements Reconciler.
func (sole[S]) Batch([]*Turn) int { return 1 }

// Join implements Reconciler.
func (sole[S]) Join(context.Context, *World, []*Turn) error { return nil }

// Capture implements Reconciler: a step's inverse is in its intent.
func (r sole[S]) Capture(ctx context.Context, w *World, store Store, turns []*Turn) error {
	c, ok := r.own.(capturer[S])
	if !ok {
		return nil
	}
	for _, t := range turns {
		k, ok := t.work.(*soleWork[S])
		if !ok || !t.Acts {
			continue
		}
		k.m.step = t.Step
		if err := c.capture(ctx, w, store, k.m); err != nil {
			return err
		}
	}
	return nil
}

// Enact implements Reconciler.
func (r sole[S]) Enact(ctx context.Context, w *World, store Store, turns []*Turn) (int, error) {
	defer w.forget()
	for i, t := range turns {
		k, ok := t.work.(*soleWork[S])
		if !ok || !t.Acts {
			continue
		}
		k.m.step = t.Step
		if err := r.own.move(ctx, w, store, k.m); err != nil {
			return i, err
		}
	}
	return -1, nil
}

// Undo implements Reconciler.
func (r sole[S]) Undo(ctx context.Context, w *World, store Store, s *state.Step) error {
	m, acts, err := r.inverse(s)
	if err != nil || !acts {
		return err
	}
	defer w.forget()
	w.forget()
	if m.now, err = r.own.look(ctx, w, s.Resource); err != nil {
		return err
	}
	return r.own.move(ctx, w, store, m)
}

// inverse is the motion that takes a step back, and whether the step did anything.
func (r sole[S]) inverse(s *state.Step) (m motion[S], acts bool, err error) {
	if len(s.Inverse) == 0 {
		return m, false, nil
	}
	m = motion[S]{resource: s.Resource, reverse: true, undo: true, step: s}
	for _, part := range s.Glyphs {
		m.old = part.Old
		if m.glyph = part.New; m.glyph == nil {
			m.glyph = part.Old
		}
	}
	if len(s.Glyphs) == 0 && s.Before != nil && len(s.Before.Layers) > 0 {
		m.old = s.Before.Layers[0].Glyph
	}
	err = json.Unmarshal(s.Inverse, &m.to)
	if err == nil {
		err = json.Unmarshal(s.Expect, &m.from)
	}
	if err != nil {
		return m, false, fmt.Errorf("read the step on %s %s: %w", r.sort, s.Resource, err)
	}
	return m, r.sight(m.from) != r.sight(m.to), nil // else only its record changed
}

// Foresee implements Reconciler.
func (r sole[S]) Foresee(w *World, s *state.Step) error {
	m, acts, err := r.inverse(s)
	if err == nil && acts {
		r.foresee(w, s.Resource, m.to)
	}
	return err
}

// Foretell implements Firer.
func (r sole[S]) Foretell(w *World, g *scrolls.Glyph, resource, action string) (*UnitEffect, error) {
	return r.own.(firing).foretell(w, g, resource, action)
}

// Fire implements Firer.
func (r sole[S]) Fire(ctx context.Context, w *World, g *scrolls.Glyph, resource, action string) error {
	defer w.forget()
	return r.own.(firing).fire(ctx, w, g, resource, action)
}

// Stays implements Stayer.
func (r sole[S]) Stays(s *state.Step, whole bool) string {
	own, ok := r.own.(stayer[S])
	if !ok {
		return ""
	}
	m, acts, err := r.inverse(s)
	if err != nil || !acts {
		return "" // Undo says what is wrong with it
	}
	return own.stays(m, whole)
}

// TellFound implements Teller.
func (r sole[S]) TellFound(found json.RawMessage) string {
	shown := r.ShowFound(found)
	if string(shown) == "null" {
		return "nothing"
	}
	return string(shown)
}

// ShowFound implements Shower.
func (r sole[S]) ShowFound(found json.RawMessage) json.RawMessage {
	var s S
	if json.Unmarshal(found, &s) != nil {
		return encode("something this golem cannot read")
	}
	return encode(r.own.show(s))
}

// A soleSight is what a turn saw of a thing.
type soleSight string

// Same implements Sight.
func (s soleSight) Same(other any) bool {
	was, ok := other.(soleSight)
	return !ok || s == was
}
