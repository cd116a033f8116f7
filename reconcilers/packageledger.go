package reconcilers

import (
	"maps"
	"slices"
)

// purge is how the batch's glyphs say that their packages go, and so what they bring: of
// several, without a trace before the others.
func (j *joining) purge() string {
	mode := ""
	for _, k := range j.works {
		for _, g := range k.r.Set {
			if m := purgeOf(g); m == purgeTrue || m == purgeFalse && mode == "" {
				mode = m
			}
		}
	}
	return mode
}

// goes says that a by-product which golem takes along goes without a trace.
func (j *joining) goes(resource string) bool {
	body, ok := j.w.pkgLedger(resource)
	e := j.d.real.packages[resource]
	return ok && e != nil && body.Found.Status == dpkgAbsent && j.w.purges(e, body.mode()).yes
}

// leaves says whether a removed package leaves something that only a purge takes.
func (j *joining) leaves(resource string, was Pkg) bool {
	if was.Status == dpkgConfigFiles {
		return true
	}
	e := j.d.real.packages[resource]
	return e != nil && j.w.leavesTrace(e)
}

// ledger notes what the transaction brings and takes beside its glyphs, on the step that
// is taken back last.
func (j *joining) ledger(t *Turn) {
	var brings []string
	for _, e := range j.tx.effects {
		if e.Own && e.To.there() {
			brings = append(brings, e.Resource+"="+e.To.Version)
		}
	}
	j.follow(t)
	for _, e := range j.tx.effects {
		if e.Own {
			continue
		}
		body, known := j.w.pkgLedger(e.Resource)
		switch {
		case e.To.there() && !e.From.there() && known && body.Found.there():
			if body.For = brings; e.To.same(body.Found) {
				t.setPkgLedger(j.w, e.Resource, nil) // it had made way, and is back
			} else {
				t.setPkgLedger(j.w, e.Resource, &body)
			}
		case e.To.there() && !e.From.there() && !known:
			t.setPkgLedger(j.w, e.Resource, &pkgLedger{Found: e.From, Purge: j.purge(), pkgTrace: pkgTrace{Without: j.without(e.Resource, e.To.Version)}})
		case !e.To.there() && known && e.To.Status == body.Found.Status:
			t.setPkgLedger(j.w, e.Resource, nil)
		case !e.To.there() && !known:
			went := &pkgLedger{Found: e.From, For: brings}
			if k := j.work(e.Resource); k != nil {
				went.Found = k.want // what its own turn, in this batch, gives back
			}
			if e.Back != nil {
				went.Debs = map[string]deb{e.From.Version: *e.Back}
			}
			t.setPkgLedger(j.w, e.Resource, went)
		}
	}
}

// follow lets the ledger know of new versions of what packages made way for.
func (j *joining) follow(t *Turn) {
	for _, key := range slices.Sorted(maps.Keys(j.w.Ledger)) {
		entry := j.w.Ledger[key]
		if entry == nil || entry.Sort != PackageSort {
			continue
		}
		body, ok := j.w.pkgLedger(entry.Resource)
		changed := false
		for i, pinned := range body.For {
			e := j.tx.effect(pinnedName(pinned))
			if e == nil || !e.To.there() || !body.madeWayFor(e.Resource, e.From) {
				continue
			}
			if k := j.work(e.Resource); k != nil && (len(k.r.Set) == 0 || k.rec.found != nil && k.rec.found.Version == e.To.Version) {
				continue // it gets the version back that others were there beside
			}
			body.For[i], changed = e.Resource+"="+e.To.Version, true
		}
		if ok && changed {
			t.setPkgLedger(j.w, entry.Resource, &body)
		}
	}
}

// without lists the packages on the host that name one which is not there, or something
// that it provides: all of them do without it.
func (j *joining) without(resource, version string) []string {
	e, err := j.d.entry(j.ctx, j.w, resource, version)
	if err != nil {
		return nil // nothing is known to do without it, and it stays as long as anything names it
	}
	names := func(have *dpkgEntry) bool {
		return slices.ContainsFunc(slices.Concat(have.depends, have.pulls), func(any []relation) bool { return slices.ContainsFunc(any, e.satisfies) })
	}
	var who []string
	for other, have := range j.d.real.packages {
		if have.there() && j.d.state(other).there() && names(have) {
			who = append(who, other)
		}
	}
	for _, k := range j.works { // in the version that is given back it did without, too
		if len(k.r.Set) > 0 || !k.brings() || slices.Contains(who, k.r.Resource) {
			continue
		}
		if have, err := j.d.entry(j.ctx, j.w, k.r.Resource, k.want.Version); err == nil && names(have) {
			who = append(who, k.r.Resource)
		}
	}
	slices.Sort(who)
	return who
}

// ownLedger brings the ledger's line about the turn's own package up to date: a record
// knows more than it.
func (k *pkgWork) ownLedger(t *Turn) {
	if k.stays != nil {
		t.setPkgLedger(k.w, k.r.Resource, k.stays)
		return
	}
	if _, ok := k.w.pkgLedger(k.r.Resource); ok && (len(k.r.Set) > 0 || !k.want.there() || k.sweeps) {
		t.setPkgLedger(k.w, k.r.Resource, nil)
	}
}

// setPkgLedger notes a change of the ledger in the step and in the world. A nil body
// takes the line out.
func (t *Turn) setPkgLedger(w *World, resource string, body *pkgLedger) {
	setEntry(t, w, PackageSort, resource, body)
}
