package reconcilers

import (
	"cmp"
	"context"
	"fmt"
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
	effect                   Effect
	reason                   string
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
	} else if k.now.there() && versionFits(wish, k.now.Version) && k.providesNames() {
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

// providesNames says whether the version that is there provides the names that glyphs
// know the package by; of one that this run brings, apt was asked before.
func (k *pkgWork) providesNames() bool {
	if is := k.d.real.state(k.r.Resource); is.Version != k.now.Version {
		return true
	}
	return !slices.ContainsFunc(k.r.Set, func(g *scrolls.Glyph) bool {
		return k.d.real.own(g) != k.r.Resource && !k.d.real.provides(k.r.Resource, g)
	})
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
			"package %s is on hold at %s, and this needs %s. Write hold = false to lift the hold", k.r.Resource, cmp.Or(k.now.Version, "none"), version))}
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
