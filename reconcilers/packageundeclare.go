package reconcilers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golem/state"
)

// undeclare works out what is given back.
func (k *pkgWork) undeclare() error {
	k.effect = EffectForget
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
		wish = cmp.Or(str(l.Glyph.Attrs, "version"), wish)
		if h, ok := l.Glyph.Attrs["hold"].(bool); ok {
			k.want.Hold = h
		}
	}
	if wish == "" && k.rec.found.there() && k.unpinned() {
		k.want.Version = k.rec.found.Version
	}
	if k.acts() {
		k.effect = EffectRestore
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
		k.effect, k.reason = EffectRestore, "it was there before golem; given back: "+strings.Join(what, ", ")
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
	for _, account := range k.rec.Accounts {
		k.irreversible = append(k.irreversible, "the "+account+", which scripts made at its installation, stays unless they take it away")
	}
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
		k.effect, k.reason = EffectForget, "it is gone already; its configuration stays: "+purge.why
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
