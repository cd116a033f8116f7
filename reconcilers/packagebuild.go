package reconcilers

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"golem/scrolls"
	"golem/state"
)

// tellDeclared says in words what becomes of a declared package.
func (k *pkgWork) tellDeclared() {
	now, want := k.now, k.want
	var what []string
	switch {
	case !now.there():
		k.effect = "install"
		what = append(what, "version "+want.Version)
	case compareVersions(want.Version, now.Version) > 0:
		k.effect = "upgrade"
		what = append(what, "version "+now.Version+" → "+want.Version)
	case now.Version != want.Version:
		k.effect = "downgrade"
		what = append(what, "version "+now.Version+" → "+want.Version+", a downgrade")
	}
	if now.there() && now.Auto {
		k.effect = cmp.Or(k.effect, "mark")
		what = append(what, markText(false))
	}
	if now.Hold != want.Hold {
		k.effect = cmp.Or(k.effect, "hold")
		what = append(what, map[bool]string{true: "put on hold", false: "its hold is lifted"}[want.Hold])
	}
	k.effect = cmp.Or(k.effect, EffectRecord)
	k.reason = strings.Join(what, ", ")
}

// acts says whether the host is changed.
func (k *pkgWork) acts() bool { return !k.now.same(k.want) }

// build makes the turn of what is worked out, unless none of its glyphs has a part in
// it.
func (k *pkgWork) build(t *Turn) {
	if k.sweeps && t.Step != nil { // the engine has said whose run this is
		k.r.Lineage, k.r.Leaf = t.Step.Lineage, t.Step.Leaf
	}
	t.Step, t.Changes, t.Noops = nil, nil, nil
	t.Acts, t.Seen, t.Leaves = false, k.now, k.want
	step := &state.Step{
		Lineage: k.r.Lineage, Leaf: k.r.Leaf, Sort: PackageSort, Resource: k.r.Resource, Before: k.r.Record,
	}
	t.Step = step
	for _, key := range slices.Sorted(maps.Keys(k.r.Drop)) {
		k.dropPart(t, key)
	}
	for _, g := range k.r.Set {
		k.setPart(t, g)
	}
	if len(step.Glyphs) == 0 && len(k.r.Drop) == 0 && !k.sweeps {
		t.Step = nil
		t.Leaves = k.now
		return
	}
	t.Acts, t.Wild = k.acts(), k.acts()
	t.Keeps = k.keeps
	k.tellBeside(t)
	step.After = k.after()
	k.encodeStep(t)
}

// dropPart tells a glyph that goes. One that another spelling of the package takes over
// from, or that goes on with another package, is told there.
func (k *pkgWork) dropPart(t *Turn, key scrolls.Key) {
	g := k.r.Drop[key]
	if k.r.Moves[key] {
		return
	}
	part := state.StepGlyph{Op: state.Remove, Key: key, CID: CID(g), Old: g, Leaf: k.r.Leaf}
	if len(k.r.Set) > 0 {
		part.Reason = "another glyph takes its place"
		t.Step.Glyphs = append(t.Step.Glyphs, part)
		return
	}
	part.Reason, part.Changed = k.reason, k.acts()
	c := Change{Key: key, Kind: g.Kind, Op: state.Remove, Effect: k.effect, Reason: k.reason, Irreversible: k.irreversible}
	c.Before = viewPkg(k.r.Resource, k.now)
	if k.acts() {
		c.After = viewPkg(k.r.Resource, k.want)
	}
	t.Step.Glyphs = append(t.Step.Glyphs, part)
	t.Changes = append(t.Changes, c)
}

// setPart tells what the turn does for one declared glyph.
func (k *pkgWork) setPart(t *Turn, g *scrolls.Glyph) {
	c := Change{
		Key: g.Key, Kind: g.Kind, Effect: k.effect, Reason: k.reason, Irreversible: k.irreversible,
		Before: viewPkg(k.r.Resource, k.now), After: viewPkg(k.r.Resource, k.want),
		There: k.now.there(),
	}
	var old *scrolls.Glyph
	layer := k.rec.layer(g.Key)
	if layer != nil {
		old = layer.Glyph
	} else if len(k.r.Drop) > 0 && k.d.real.own(g) == k.r.Resource {
		for _, key := range slices.Sorted(maps.Keys(k.r.Drop)) { // another spelling of it
			if l := k.rec.layer(key); l != nil && !k.r.Moves[key] {
				old = l.Glyph
			}
		}
	}
	provided := ""
	if k.d.real.own(g) != k.r.Resource {
		provided = k.r.Resource + " provides it"
	}
	acts := k.acts()
	switch {
	case old == nil:
		c.Op = state.Install
		if !acts {
			c.Reason = "it is so already (version " + k.now.Version + "); nothing to change"
		}
	case old.Key != g.Key || CID(old) != CID(g):
		c.Op = state.Replace
		if !acts {
			c.Reason = "the host is so already; nothing to change"
		}
	case acts && !k.r.Blind:
		c.Op, c.Drift = state.Repair, true
		c.Reason = "drifted: " + k.driftText() + "; " + k.reason
	default:
		t.Noops = append(t.Noops, g.Key)
		return
	}
	c.Reason = strings.Join(slices.DeleteFunc([]string{provided, c.Reason}, func(s string) bool { return s == "" }), ": ")
	t.Changes = append(t.Changes, c)
	t.Step.Glyphs = append(t.Step.Glyphs, state.StepGlyph{
		Op: c.Op, Key: g.Key, CID: CID(g), Old: old, New: g, Leaf: k.r.Leaf, Changed: acts, Reason: c.Reason,
	})
}

// driftText names what is not as golem left it.
func (k *pkgWork) driftText() string {
	switch left := k.rec.Left; {
	case !k.now.there():
		return "it is gone"
	case k.now.Version != k.want.Version:
		return "another version is there"
	case k.now.Auto != left.Auto:
		return "its mark was changed"
	}
	return "its hold was changed"
}

// viewPkg is a package as JSON shows it.
func viewPkg(resource string, p Pkg) map[string]any {
	v := map[string]any{"package": resource, "status": p.Status}
	if p.there() {
		v["version"], v["auto"], v["hold"] = p.Version, p.Auto, p.Hold
	}
	return v
}

// after is the record after the turn; nil when no glyph is left on the package.
func (k *pkgWork) after() *state.Record {
	layers := k.remaining()
	for _, g := range k.r.Set {
		at := slices.IndexFunc(layers, func(l state.Layer) bool { return l.Key == g.Key })
		if at < 0 {
			at = len(layers)
			layers = append(layers, state.Layer{Key: g.Key, Lineage: k.r.Lineage, Changed: k.rec.lent || k.rec.changed()})
		}
		layers[at].Glyph = g
		layers[at].Changed = layers[at].Changed || k.acts()
	}
	if len(layers) == 0 {
		return nil
	}
	for i := range layers { // what was done for one is done for all: the last gives it back
		layers[i].Changed = layers[i].Changed || k.rec.changed()
	}
	rec := &state.Record{Sort: PackageSort, Resource: k.r.Resource, Layers: layers}
	if k.rec.found != nil {
		rec.Found = encode(k.rec.found)
	}
	trace := k.rec.pkgTrace
	trace.Left = k.want
	rec.After = encode(trace)
	return rec
}
