package reconcilers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"golem/scrolls"
	"golem/state"
)

// A unitInverse is what a unit's step remembers of the moment before it.
type unitInverse struct {
	State unitState `json:"state"`
}

// A unitExpect is what a unit's step does: which facts it touches, and so which its
// undoing gives back.
type unitExpect struct {
	Runs  bool     `json:"runs,omitempty"`  // it starts or stops
	Links bool     `json:"links,omitempty"` // it changes links
	Again []string `json:"again,omitempty"` // triggers that it starts
}

// A unitSight is what a turn saw of what it is about.
type unitSight string

// Same implements Sight.
func (s unitSight) Same(other any) bool {
	was, ok := other.(unitSight)
	return !ok || s == was || was == unseen
}

// unseen is the sight of a unit that comes with the run, in whatever state.
const unseen unitSight = "unseen"

// sight is what must not have moved between a plan and its enactment.
func (k *unitWork) sight() unitSight {
	var parts []string
	if k.wish.state != "" || k.acting("stop") {
		parts = append(parts, fmt.Sprintf("running %v", k.up()), "beside "+string(encode(k.now.Beside)))
	}
	if k.wish.enabled != nil || k.wish.masked != nil || k.acting("take") || k.acting("put") {
		parts = append(parts, "file "+k.now.File, "links "+string(encode(k.now.Links)))
	}
	if !k.u.known() {
		return unseen
	}
	return unitSight(strings.Join(parts, "; "))
}

// judge works out the op, the step, and how both are told.
func (k *unitWork) judge() {
	k.t.Acts = len(k.acts) > 0
	k.t.Seen = k.sight()
	k.t.Fresh = k.acting("start")
	if k.g != nil && !k.judgeSet() {
		return
	}
	if k.g == nil {
		k.judgeDrop()
	}
	for _, key := range sortedKeys(k.r.Drop) {
		if k.g != nil || k.was == nil || key != k.was.Key {
			k.part(state.Remove, key, k.r.Drop[key], nil, false, "another glyph takes its place")
		}
	}
	k.t.Step.Inverse = encode(unitInverse{k.now})
	expect := unitExpect{Again: k.again}
	for _, a := range k.acts {
		switch a.do {
		case "start", "stop":
			expect.Runs = true
		default:
			expect.Links = true
		}
	}
	k.t.Step.Expect = encode(expect)
	k.tellUnits()
}

func sortedKeys(drop map[scrolls.Key]*scrolls.Glyph) []scrolls.Key {
	var keys []scrolls.Key
	for key := range drop {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (k *unitWork) newStep() {
	k.t.Step = &state.Step{
		Lineage: k.r.Lineage, Leaf: k.r.Leaf, Sort: UnitSort, Resource: k.r.Resource, Before: k.r.Record,
	}
}

func (k *unitWork) part(op state.Op, key scrolls.Key, old, next *scrolls.Glyph, changed bool, reason string) {
	g := next
	if g == nil {
		g = old
	}
	k.t.Step.Glyphs = append(k.t.Step.Glyphs, state.StepGlyph{
		Op: op, Key: key, CID: CID(g), Old: old, New: next, Leaf: k.r.Leaf, Changed: changed, Reason: reason,
	})
}

func (k *unitWork) tell(op state.Op, c Change, old *scrolls.Glyph) {
	g := k.g
	if g == nil {
		g = old
	}
	c.Key, c.Kind, c.Op = g.Key, g.Kind, op
	k.t.Changes = append(k.t.Changes, c)
	k.part(op, g.Key, old, k.g, k.t.Acts, c.Reason)
}

// judgeSet tells what is done for a declared glyph. It says false for nothing.
func (k *unitWork) judgeSet() bool {
	c := Change{Effect: k.effect(), Reason: k.does(), After: k.after()}
	if k.u.known() {
		c.Before, c.There = k.before(), true
	}
	var old *scrolls.Glyph
	if k.was != nil {
		old = k.was.Glyph
	}
	op := state.Install
	switch {
	case old == nil && !k.t.Acts:
		c.Reason = "it is so already; nothing to change"
		if k.wish.state == "" && k.wish.enabled == nil && k.wish.masked == nil {
			c.Reason = "golem only reloads it; left as it is"
		}
	case old == nil:
	case k.was.Key != k.g.Key || CID(old) != CID(k.g):
		op = state.Replace
		if !k.t.Acts {
			c.Reason = "the host is so already; nothing to change"
		}
	case k.t.Acts:
		op = state.Repair
		c.Drift, c.Reason = true, "drifted: "+k.drifted()
	default:
		k.t.Noops = []scrolls.Key{k.g.Key}
		return false
	}
	if via := k.alias(); via != "" {
		c.Reason = via + "; " + c.Reason
	}
	k.newStep()
	k.tell(op, c, old)
	k.t.Step.After = k.record()
	return true
}

// record is the unit's record after the turn.
func (k *unitWork) record() *state.Record {
	done := k.recordDoings()
	rec := &state.Record{Sort: UnitSort, Resource: k.r.Resource, Found: encode(k.found)}
	if k.r.Record != nil {
		rec.Found = k.r.Record.Found
	}
	changed := k.t.Acts || k.was != nil && k.was.Changed || done.left() || done.Started
	rec.Layers = []state.Layer{{Key: k.g.Key, Lineage: k.r.Lineage, Glyph: k.g, Changed: changed, Inverse: encode(done)}}
	rec.After = encode(k.now)
	return rec
}

// recordDoings is what stands of golem's doing after the turn, links aside.
func (k *unitWork) recordDoings() unitDoings {
	done := k.done
	if k.acting("stop") {
		if k.up() {
			done.stopped(k.wish.state == "stopped")
		}
		if k.wish.state == "stopped" {
			done.With = slices.Concat(done.With, k.stopsWith())
			slices.Sort(done.With)
			done.With = slices.Compact(done.With)
		}
	}
	if k.neededBy() != "" {
		done.Started = false // the ledger has that now
	}
	done.Fresh = k.acting("start")
	if done.Fresh {
		done.started(k.u.running())
		done.With = slices.DeleteFunc(slices.Clone(done.With), func(id string) bool {
			return slices.Contains(k.again, id) || k.w.Ledger[RecordKey(UnitSort, id)] == nil
		})
	}
	return done
}

// pulls lists the units that the turn's start may start with it, and rivals those that
// it stops.
func (k *unitWork) pulls() []string {
	if !k.acting("start") || k.u.running() {
		return nil
	}
	return k.now.Pulls
}

func (k *unitWork) rivals() []string {
	if !k.acting("start") || k.u.running() {
		return nil
	}
	return k.now.Rivals
}

// stopsWith lists the units that stop in this turn beside its own.
func (k *unitWork) stopsWith() []string {
	var ids []string
	if k.wish.state == "stopped" {
		ids = k.u.triggers(k.now)
	}
	if k.up() {
		ids = append(ids, k.u.dependents(k.now)...)
	}
	return ids
}

// started notes that the unit is started.
func (d *unitDoings) started(ran bool) {
	if !ran {
		d.Started, d.Stopped = !d.Stopped, false
	}
}

// stopped notes that the unit is stopped: because that was declared, or because
// golem's start of it is taken back.
func (d *unitDoings) stopped(declared bool) {
	d.Stopped = !d.Started && declared
	d.Started = false
}

// left says whether golem left the unit stopped, or another with it.
func (d *unitDoings) left() bool { return d.Stopped || len(d.With) > 0 }

// before and after describe the unit for JSON.
func (k *unitWork) before() map[string]any {
	return map[string]any{"active": k.now.Active, "sub": k.now.Sub, "file": k.now.File}
}

func (k *unitWork) after() map[string]any {
	after := map[string]any{}
	if k.wish.state != "" {
		after["state"] = k.wish.state
	}
	if k.wish.enabled != nil {
		after["enabled"] = *k.wish.enabled
	}
	if k.wish.masked != nil {
		after["masked"] = *k.wish.masked
	}
	return after
}

// effect is the strongest thing the turn does.
func (k *unitWork) effect() Effect {
	for _, does := range []struct {
		do     string
		effect Effect
	}{
		{"stop", "stop"},
		{"start", "start"},
		{"take", EffectRestore},
		{"put", EffectRestore},
		{"enable", "enable"},
		{"disable", "disable"},
		{"mask", "mask"},
		{"unmask", "unmask"},
	} {
		if k.acting(does.do) {
			return does.effect
		}
	}
	return EffectRecord
}

// does tells what the turn does, in the order in which it does it.
func (k *unitWork) does() string {
	var parts []string
	for _, a := range k.acts {
		switch a.do {
		case "take", "put":
			parts = append(parts, k.linksBack(a)...)
		case "unmask":
			parts = append(parts, "its mask is lifted")
		case "disable":
			parts = append(parts, "disabled")
		case "enable":
			parts = append(parts, "enabled")
		case "mask":
			parts = append(parts, "masked")
		case "start":
			if !k.u.running() {
				parts = append(parts, cmp.Or(k.now.Active, "inactive")+" → running")
			}
			if len(k.again) > 0 {
				parts = append(parts, list(k.again)+" started again, which golem stopped with it")
			}
		case "stop":
			parts = append(parts, k.stopText())
		}
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

func (k *unitWork) stopText() string {
	if k.wish.state != "stopped" {
		return givenBack
	}
	text := ""
	if k.up() {
		text = "running → stopped"
	}
	if up := k.u.triggers(k.now); len(up) > 0 {
		if text == "" {
			return list(up) + " stopped, which would start it again"
		}
		text += ", and " + list(up) + " too, which would start it again"
	}
	return text
}

func list(names []string) string { return strings.Join(names, ", ") }

// givenBack is why a unit that golem started stops when its glyph goes.
const givenBack = "stopped again, as golem found it"

// linksBack tells what giving links back means.
func (k *unitWork) linksBack(a unitAct) []string {
	var masks, wants bool
	for _, l := range a.links {
		masks = masks || l.masks()
		wants = wants || !l.masks()
	}
	var parts []string
	if wants {
		parts = append(parts, map[string]string{"take": "disabled again", "put": "enabled again"}[a.do])
	}
	if masks {
		parts = append(parts, map[string]string{"take": "its mask is lifted again", "put": "masked again"}[a.do])
	}
	return parts
}

// drifted tells what is no longer as declared.
func (k *unitWork) drifted() string {
	var parts []string
	if k.acting("start") && !k.u.running() {
		parts = append(parts, "it is "+k.now.Active)
	}
	if k.acting("start") && k.u.running() {
		parts = append(parts, "what golem stopped with it is not running")
	}
	if k.acting("stop") && k.up() {
		parts = append(parts, "it is running")
	} else if k.acting("stop") {
		parts = append(parts, list(k.u.triggers(k.now))+" would start it again")
	}
	for _, does := range []struct{ do, says string }{
		{"enable", "it is not enabled any more"},
		{"disable", "it is enabled"},
		{"mask", "its mask is gone"},
		{"unmask", "it is masked"},
		{"take", "links stand that were to go"},
		{"put", "links are gone that were to stand"},
	} {
		if k.acting(does.do) {
			parts = append(parts, does.says)
		}
	}
	return strings.Join(parts, ", ")
}
