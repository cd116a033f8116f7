package reconcilers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golem/scrolls"
	"golem/state"
)

// A pkgWork is one turn on one package while it is worked out. What a transaction turns
// out to do with it is added by Join.
type pkgWork struct {
	ctx context.Context
	w   *World
	d   *aptDesk
	r   Request
	rec *pkgRecord

	now, want Pkg
	// Consents: to the removal of others, to an older version, to a change of what is
	// on hold.
	removal, downgrade, lift bool
	effect, reason           string
	irreversible             []string
	// stays says that the package is golem's by-product from here on, lent to what
	// needs it: a line of the ledger takes the record's place.
	stays *pkgLedger
	// tx is what apt does for the turn and the others of its batch. One of them leads,
	// with what happens beside them all; the one that ends them is taken back first.
	tx          *transaction
	leads, ends bool
	// keeps are files that the transaction takes and that somebody changed.
	keeps []state.Kept
	// beside says that the transaction does more to the package than its turn asks for.
	beside bool
	// sweeps says that no glyph is about it.
	sweeps bool
}

// Turn implements Reconciler.
func (p packages) Turn(ctx context.Context, w *World, r Request) (*Turn, error) {
	d, err := w.aptDesk(ctx)
	if err != nil {
		return nil, err
	}
	now := d.state(r.Resource)
	if is, ok := r.Now.(Pkg); ok {
		now = is
	}
	return p.turn(ctx, w, d, r, now)
}

func (packages) turn(ctx context.Context, w *World, d *aptDesk, r Request, now Pkg) (*Turn, error) {
	rec, err := readPkgRecord(w, r, now)
	if err != nil {
		return nil, err
	}
	k := &pkgWork{ctx: ctx, w: w, d: d, r: r, rec: rec, now: now, want: now}
	if len(r.Set) > 0 {
		err = k.declare()
	} else {
		err = k.undeclare()
	}
	if err != nil {
		return nil, err
	}
	t := &Turn{Request: r, work: k}
	k.build(t)
	return t, nil
}

// Fit implements Reconciler: the turn is worked out again on what the turns before it
// leave.
func (p packages) Fit(w *World, t *Turn) error {
	if t.ByProduct() {
		return nil
	}
	k := t.work.(*pkgWork)
	now := k.d.state(t.Resource)
	if w.Acts || now.same(k.now) {
		return nil
	}
	again, err := p.turn(k.ctx, w, k.d, t.Request, now)
	if err != nil {
		return err
	}
	*t = *again
	return nil
}

// declare works out what the glyphs of this turn want of the package.
func (k *pkgWork) declare() error {
	if k.r.Blind && k.same() {
		return nil
	}
	if err := k.foreign(); err != nil {
		return err
	}
	wish, hold := "", k.restHold()
	for _, g := range k.r.Set {
		k.removal = k.removal || allows(g, "allow_removal")
		k.downgrade = k.downgrade || allows(g, "allow_downgrade")
		if h, ok := g.Attrs["hold"].(bool); ok {
			hold, k.lift = h, !h
		}
		if v := str(g.Attrs, "version"); v != "" {
			wish = v
		}
	}
	for _, l := range k.others() {
		if wish == "" {
			wish = str(l.Glyph.Attrs, "version")
		}
		if h, ok := l.Glyph.Attrs["hold"].(bool); ok && !slices.ContainsFunc(k.r.Set, saysHold) {
			hold = h
		}
	}
	version, err := k.version(wish)
	if err != nil {
		return err
	}
	k.want = installedPkg(version)
	k.want.Hold = hold
	k.tellDeclared()
	return nil
}

func saysHold(g *scrolls.Glyph) bool {
	_, says := g.Attrs["hold"]
	return says
}

// others are the layers on the package that this turn is not about.
func (k *pkgWork) others() []state.Layer {
	return slices.DeleteFunc(k.remaining(), func(l state.Layer) bool {
		return slices.ContainsFunc(k.r.Set, func(g *scrolls.Glyph) bool { return g.Key == l.Key })
	})
}

// same says that the glyphs of this turn are in force already, and nothing goes.
func (k *pkgWork) same() bool {
	if len(k.r.Drop) > 0 {
		return false
	}
	for _, g := range k.r.Set {
		if l := k.rec.layer(g.Key); l == nil || CID(l.Glyph) != CID(g) {
			return false
		}
	}
	return true
}

// foreign refuses a package that another lineage declares by its own name.
func (k *pkgWork) foreign() error {
	for _, l := range k.rec.layers {
		if l.Lineage == k.r.Lineage || k.d.real.own(l.Glyph) != k.r.Resource {
			continue
		}
		for _, g := range k.r.Set {
			if k.d.real.own(g) == k.r.Resource {
				return &AttrError{Attr: "name", Summary: "Package belongs to another lineage", Err: errText(fmt.Sprintf(
					"%s is in force in the lineage %q, and is the same package. Undeclare it there first, or leave it out here", l.Key, l.Lineage))}
			}
		}
	}
	return nil
}

// version is the version to have: what is there if it fits, else one that can be had.
func (k *pkgWork) version(wish string) (string, error) {
	if wish == "" && k.unpinned() {
		if k.rec.found.there() {
			return k.rec.found.Version, nil // as it would be had it never been pinned
		}
	} else if k.now.there() && versionFits(wish, k.now.Version) {
		return k.now.Version, nil
	}
	said, err := k.w.Host.list(k.ctx, k.r.Resource)
	if err != nil {
		return "", err
	}
	version := said.pick(wish)
	if version == "" {
		version = k.kept(wish)
	}
	if version == "" {
		return "", k.missing(wish, said)
	}
	if err := k.mayMove(version); err != nil {
		return "", err
	}
	return version, nil
}

// unpinned says that golem brought the version that is there for a glyph that asks for
// none any more.
func (k *pkgWork) unpinned() bool {
	if k.rec.found == nil || !k.now.there() || k.now.Version != k.rec.Left.Version || k.rec.found.Version == k.now.Version {
		return false
	}
	return slices.ContainsFunc(k.rec.layers, func(l state.Layer) bool {
		return l.Lineage == k.r.Lineage && str(l.Glyph.Attrs, "version") != ""
	})
}

// restHold is the hold where no glyph says what it is to be: what is there, or what was
// found if golem set it for a glyph that has nothing to say of it any more.
func (k *pkgWork) restHold() bool {
	set := slices.ContainsFunc(k.rec.layers, func(l state.Layer) bool { return saysHold(l.Glyph) && l.Lineage == k.r.Lineage })
	if set && k.rec.found != nil && k.now.Hold == k.rec.Left.Hold {
		return k.rec.found.Hold
	}
	return k.now.Hold
}

// kept finds a version that fits among those that the journal has.
func (k *pkgWork) kept(wish string) string {
	best := ""
	for v := range k.rec.Debs {
		if wish != "" && versionFits(wish, v) && (best == "" || compareVersions(v, best) > 0) {
			best = v
		}
	}
	return best
}

// missing says that no version fits, and which there are.
func (k *pkgWork) missing(wish string, said *aptName) error {
	switch {
	case said == nil || len(said.versions) == 0:
		return &AttrError{Attr: "name", Summary: "Package cannot be had", Err: errText(fmt.Sprintf(
			"no archive on this host has %s any more. If the lists are old, run apt-get update", k.r.Resource))}
	case wish == "":
		return &AttrError{Attr: "name", Summary: "Package cannot be had", Err: errText(fmt.Sprintf(
			"apt would install no version of %s: its preferences (see apt-cache policy %s) forbid %s", k.r.Resource, k.r.Resource, strings.Join(said.versions, ", ")))}
	}
	return &AttrError{Attr: "version", Summary: "Version cannot be had", Err: errText(fmt.Sprintf(
		"no archive on this host has %s %s; there is %s. If the lists are old, run apt-get update", k.r.Resource, wish, strings.Join(said.versions, ", ")))}
}

// mayMove refuses to bring another version of what is on hold, or an older one, without
// consent.
func (k *pkgWork) mayMove(version string) error {
	if k.now.Hold && !k.lift && !k.ownHold() {
		return &AttrError{Attr: "version", Summary: "Package is on hold", Err: errText(fmt.Sprintf(
			"package %s is on hold at %s, and this needs %s. Write hold = false to lift the hold", k.r.Resource, orNone(k.now.Version), version))}
	}
	if k.now.there() && compareVersions(version, k.now.Version) < 0 && !k.downgrade {
		return &AttrError{Attr: "version", Summary: "Version is older than what is there", Err: errText(fmt.Sprintf(
			"package %s is at %s, and this wants %s. Write allow_downgrade = true if that is meant", k.r.Resource, k.now.Version, version))}
	}
	return nil
}

// ownHold says that the hold is golem's own.
func (k *pkgWork) ownHold() bool {
	return k.rec.found != nil && !k.rec.found.Hold && k.rec.Left.Hold
}

func orNone(version string) string {
	if version == "" {
		return "none"
	}
	return version
}

// undeclare works out what is given back.
func (k *pkgWork) undeclare() error {
	k.effect = "forget"
	rest := k.remaining()
	switch found := k.rec.found; {
	case len(rest) > 0:
		return k.hand(rest)
	case found == nil:
		k.reason = "nothing is known of it before golem; left as it is"
	case k.w.Needed(RecordKey(PackageSort, k.r.Resource)):
		k.reason = "another glyph of this scroll is the same package"
		k.stays = &pkgLedger{pkgTrace: k.rec.pkgTrace, Found: *found}
	case !k.rec.changed():
		k.reason = "it was so before golem; left as it is"
	case found.there():
		return k.giveBack(*found)
	case k.now.Status == found.Status && !k.now.there(), k.now.Status == dpkgAbsent:
		k.reason = "it is gone already"
	case k.now.Hold && !k.rec.Left.Hold:
		k.reason = "somebody put it on hold since; left as it is"
	default:
		k.takeAway(*found)
	}
	return nil
}

// hand leaves a package to the glyphs that stay on it: what none of those asks for is
// given back.
func (k *pkgWork) hand(rest []state.Layer) error {
	k.reason = fmt.Sprintf("%s is the same package", rest[0].Key)
	if k.rec.found == nil || !k.now.there() {
		return nil
	}
	wish := ""
	k.want.Hold = k.restHold()
	for _, l := range rest {
		wish = orText(str(l.Glyph.Attrs, "version"), wish)
		if h, ok := l.Glyph.Attrs["hold"].(bool); ok {
			k.want.Hold = h
		}
	}
	if wish == "" && k.rec.found.there() && k.unpinned() {
		k.want.Version = k.rec.found.Version
	}
	if k.acts() {
		k.effect = "restore"
	}
	return nil
}

// remaining are the layers that stay on the package.
func (k *pkgWork) remaining() []state.Layer {
	return slices.DeleteFunc(slices.Clone(k.rec.layers), func(l state.Layer) bool { return k.r.Drop[l.Key] != nil })
}

// giveBack gives a package that was there its version, mark and hold back, each if it
// still is what golem set.
func (k *pkgWork) giveBack(found Pkg) error {
	left := k.rec.Left
	if body, ok := k.w.pkgLedger(k.r.Resource); ok && len(body.For) > 0 && !k.now.there() {
		var names []string
		for _, pinned := range body.For {
			names = append(names, pinnedName(pinned))
		}
		k.reason = fmt.Sprintf("it made way for %s, and comes back when that goes", strings.Join(names, ", "))
		body.Found = found
		k.stays = &body
		return nil
	}
	if !k.now.there() {
		k.reason = "it is gone, removed by hand; left so"
		return nil
	}
	var what []string
	stays := ""
	if left.Version != found.Version && k.now.Version == left.Version {
		can, err := k.canHave(found.Version)
		if err != nil {
			return err
		}
		if can {
			k.want.Version = found.Version
			what = append(what, "version "+found.Version)
		} else {
			stays = fmt.Sprintf("version %s, which it had before, is nowhere to be had; it stays at %s", found.Version, k.now.Version)
		}
	}
	if left.Auto != found.Auto && k.now.Auto == left.Auto {
		k.want.Auto = found.Auto
		what = append(what, markText(found.Auto))
	}
	if left.Hold != found.Hold && k.now.Hold == left.Hold {
		k.want.Hold = found.Hold
		what = append(what, map[bool]string{true: "on hold", false: "no hold"}[found.Hold])
	}
	k.reason = "it was there before golem; left as it is"
	if len(what) > 0 {
		k.effect, k.reason = "restore", "it was there before golem; given back: "+strings.Join(what, ", ")
	}
	if stays != "" {
		k.reason += "; " + stays
		k.irreversible = append(k.irreversible, stays)
	}
	return nil
}

// canHave says whether a version of the package can be installed: from the journal, from
// apt's cache, or from an archive.
func (k *pkgWork) canHave(version string) (bool, error) {
	if _, kept := k.rec.Debs[version]; kept {
		return true, nil
	}
	name, arch, foreign := strings.Cut(k.r.Resource, ":")
	if !foreign {
		arch = k.d.real.native
	}
	for _, a := range []string{arch, "all"} {
		if k.w.Host.cached(name, version, a) != "" {
			return true, nil
		}
	}
	said, err := k.w.Host.list(k.ctx, k.r.Resource)
	return said != nil && slices.Contains(said.versions, version), err
}

func markText(auto bool) string {
	if auto {
		return "marked as installed for another's sake"
	}
	return "marked as installed by hand"
}

// takeAway removes a package that was not there.
func (k *pkgWork) takeAway(found Pkg) {
	k.want = absentPkg()
	k.lift = k.now.Hold // golem's own
	k.effect, k.reason = "remove", "it was not there before golem"
	e := k.d.real.packages[k.r.Resource]
	if e == nil || !k.w.leavesTrace(e) {
		return
	}
	if found.Status == dpkgConfigFiles {
		k.reason = "it was not installed before golem, but its configuration was there, and stays"
		k.want.Status, k.want.Version = dpkgConfigFiles, k.now.Version
		return
	}
	purge := k.w.purges(e, k.purgeMode())
	if purge.yes {
		k.effect, k.reason = "purge", k.reason+"; its configuration goes, too"
		return
	}
	k.want.Status, k.want.Version = dpkgConfigFiles, k.now.Version
	if k.now.Status == dpkgConfigFiles {
		k.effect, k.reason = "forget", "it is gone already; its configuration stays: "+purge.why
		k.want = k.now
		return
	}
	k.reason += "; its configuration stays: " + purge.why
	k.irreversible = append(k.irreversible, "its configuration stays: "+purge.why)
}

// purgeMode is how the glyphs that go say that their package goes.
func (k *pkgWork) purgeMode() string {
	mode := purgeAuto
	for _, key := range slices.Sorted(maps.Keys(k.r.Drop)) {
		if m := purgeOf(k.r.Drop[key]); m != purgeAuto {
			mode = m
		}
	}
	return mode
}

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
		k.effect = orText(k.effect, "mark")
		what = append(what, markText(false))
	}
	if now.Hold != want.Hold {
		k.effect = orText(k.effect, "hold")
		what = append(what, map[bool]string{true: "put on hold", false: "its hold is lifted"}[want.Hold])
	}
	k.effect = orText(k.effect, "record")
	k.reason = strings.Join(what, ", ")
}

func orText(text, other string) string {
	if text == "" {
		return other
	}
	return text
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
