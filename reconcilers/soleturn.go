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

// soleWork is what one turn does, and what it was worked out from.
type soleWork[S any] struct {
	m motion[S]
	v view[S]
	g goal[S]
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
	m := motion[S]{resource: t.Resource, from: v.now, to: g.to, glyph: v.glyph, old: v.old, reverse: len(t.Set) == 0}
	t.work = &soleWork[S]{m, v, g}
	step := &state.Step{
		Lineage: t.Lineage, Leaf: t.Leaf, Sort: r.sort, Resource: t.Resource, Before: t.Record,
		Inverse: encode(v.now), Expect: encode(g.to),
	}
	c := r.change(v, g)
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
		c.Effect = EffectRecord
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

// change tells what becomes of the thing; what op that is comes later.
func (r sole[S]) change(v view[S], g goal[S]) Change {
	c := Change{
		Effect: g.effect, Reason: g.reason, Diff: g.diff, Irreversible: g.irreversible, Destroys: g.destroys,
		Before: r.own.show(v.now), After: r.own.show(g.to),
	}
	c.There = c.Before != nil
	if p, ok := r.own.(presence[S]); ok {
		c.There = p.there(v)
	}
	if secret(v.glyph) || v.old != nil && secret(v.old) {
		c.Secret, c.Diff = true, ""
		omitSecret(&c, v.glyph, v.old)
	}
	return c
}

// judgeDrop tells a removal.
func (r sole[S]) judgeDrop(t *Turn, step *state.Step, c Change, g goal[S]) {
	t.Step = step
	if !t.Acts {
		c.Effect, c.After = EffectForget, nil
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
		if k.g.lacks != nil && !w.Stirred {
			return k.g.lacks
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
