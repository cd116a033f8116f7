package reconcilers

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
)

// spare leaves out what others need of the packages that are to go, and finds golem's
// by-products that have to go with them. Nothing of a stranger's is ever taken along.
func (j *joining) spare() error {
	for {
		gone, cause := map[string]bool{}, map[string]string{}
		for _, k := range j.works {
			if k.takes() && k.now.there() {
				gone[k.r.Resource], cause[k.r.Resource] = true, k.r.Resource
			}
		}
		j.along, j.returns, j.comes = nil, nil, nil
		if len(gone) == 0 {
			return nil
		}
		if err := j.comeback(gone); err != nil {
			return err
		}
		blocked, err := j.spread(gone, cause)
		if err != nil {
			return err
		}
		if len(blocked) > 0 {
			for _, resource := range slices.Sorted(maps.Keys(blocked)) {
				j.leave(j.work(resource), blocked[resource])
			}
			continue
		}
		for _, resource := range slices.Sorted(maps.Keys(gone)) {
			if cause[resource] != resource {
				j.along = append(j.along, resource)
			}
		}
		return nil
	}
}

// spread adds golem's own by-products that cannot be without what goes. It returns those
// of what goes that something else needs, with what that is.
func (j *joining) spread(gone map[string]bool, cause map[string]string) (map[string]string, error) {
	blocked := map[string]string{}
	for more := true; more; {
		more = false
		broken, err := j.d.broken(j.ctx, j.w, gone, j.comes...)
		if err != nil {
			return nil, err
		}
		for _, who := range slices.Sorted(maps.Keys(broken)) {
			root := cause[broken[who]]
			goes, err := j.goesAlong(who, gone)
			if err != nil {
				return nil, err
			}
			if goes {
				gone[who], cause[who], more = true, root, true
			} else if _, known := blocked[root]; !known {
				blocked[root] = who
			}
		}
	}
	return blocked, nil
}

// goesAlong says that a package is golem's by-product, and that nothing which stays leads
// to it.
func (j *joining) goesAlong(who string, gone map[string]bool) (bool, error) {
	if !j.w.idle(who, j.d.state(who)) {
		return false, nil
	}
	there, err := j.d.entries(j.ctx, j.w)
	if err != nil {
		return false, err
	}
	maps.DeleteFunc(there, func(resource string, _ *dpkgEntry) bool { return gone[resource] })
	s := &sweeping{ctx: j.ctx, w: j.w, d: j.d}
	for resource := range there {
		if j.w.idle(resource, j.d.state(resource)) {
			s.idle = append(s.idle, resource)
		}
	}
	return s.unneeded(there)[who], nil
}

// comeback finds the packages that made way for what goes now, all of it: the way back
// from one transaction is one transaction.
func (j *joining) comeback(gone map[string]bool) error {
	if j.alone {
		return nil
	}
	if j.works[0].sweeps { // in the last wave what comes back has a turn of its own
		for _, k := range j.works {
			if k.brings() {
				j.comes = append(j.comes, k)
			}
		}
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(j.w.Ledger)) {
		entry := j.w.Ledger[key]
		if entry == nil || entry.Sort != PackageSort {
			continue
		}
		body, ok := j.w.pkgLedger(entry.Resource)
		now := j.d.state(entry.Resource)
		if !ok || !body.Found.there() || now.there() || len(body.For) == 0 || j.w.Needed(RecordKey(PackageSort, entry.Resource)) {
			continue
		}
		stays := func(pinned string) bool {
			other := pinnedName(pinned)
			return !gone[other] && body.madeWayFor(other, j.d.state(other))
		}
		if slices.ContainsFunc(body.For, stays) || !slices.ContainsFunc(body.For, func(pinned string) bool { return gone[pinnedName(pinned)] }) {
			continue
		}
		k := &pkgWork{
			ctx: j.ctx, w: j.w, d: j.d, r: Request{Sort: PackageSort, Resource: entry.Resource}, now: now, want: body.Found,
			rec: &pkgRecord{pkgTrace: body.pkgTrace, found: &body.Found},
		}
		if had, err := k.canBeHad(); err != nil {
			return err
		} else if had {
			j.returns, j.comes = append(j.returns, k), append(j.comes, k)
		}
	}
	return nil
}

// canBeHad says whether there is a source of the version that is wanted.
func (k *pkgWork) canBeHad() (bool, error) {
	if k.source() != nil {
		return true, nil
	}
	said, err := k.w.Host.list(k.ctx, k.r.Resource)
	return said != nil && slices.Contains(said.versions, k.want.Version), err
}

// leave lets a package stay that something needs. For golem's own sake it becomes a
// by-product again; for a stranger's it is forgotten.
func (j *joining) leave(k *pkgWork, who string) {
	k.want = k.now
	k.irreversible = nil
	if k.now.Hold && k.rec.Left.Hold && !k.rec.found.Hold {
		k.want.Hold = false
	}
	k.effect = EffectForget
	if k.sweeps {
		body, _ := j.w.pkgLedger(k.r.Resource)
		k.stays = &body
		return
	}
	if j.golems(who) || j.standsIn(k.r.Resource) {
		k.want.Auto = true
		k.effect, k.reason = "mark", string(j.d.key(who))+" needs it: marked automatic again"
		k.stays = &pkgLedger{pkgTrace: k.rec.pkgTrace, Found: *k.rec.found}
		return
	}
	k.reason = who + " needs it now; left as it is"
}

// standsIn says that another package made way for this one, and is to come back: who
// needs this one now may have had that one before.
func (j *joining) standsIn(resource string) bool {
	for _, entry := range j.w.Ledger {
		if entry == nil || entry.Sort != PackageSort {
			continue
		}
		if body, ok := j.w.pkgLedger(entry.Resource); ok && slices.ContainsFunc(body.For, func(pinned string) bool { return pinnedName(pinned) == resource }) {
			return true
		}
	}
	return false
}

// golems says that a package is golem's: declared when the run is over, or brought by
// it, or in a version that golem brought and has not given back yet.
func (j *joining) golems(resource string) bool {
	if j.w.Needed(RecordKey(PackageSort, resource)) || j.earlier(resource) != "" {
		return true
	}
	if body, ok := j.w.pkgLedger(resource); ok {
		return !body.Found.there() || body.Found.Version != j.d.state(resource).Version
	}
	record := j.w.Record(PackageSort, resource)
	var found Pkg
	return record != nil && !IsUnknown(record.Found) && json.Unmarshal(record.Found, &found) == nil &&
		(!found.there() || found.Version != j.d.state(resource).Version)
}

// broken finds the packages that would miss something if those that go were gone, each
// with one that it would miss.
func (d *aptDesk) broken(ctx context.Context, w *World, gone map[string]bool, comes ...*pkgWork) (map[string]string, error) {
	there, err := d.entries(ctx, w)
	if err != nil {
		return nil, err
	}
	for _, k := range comes {
		if there[k.r.Resource], err = d.entry(ctx, w, k.r.Resource, k.want.Version); err != nil {
			return nil, err
		}
	}
	offers := offersOf(there)
	missing := map[string]string{}
	for _, resource := range slices.Sorted(maps.Keys(there)) {
		if gone[resource] {
			continue
		}
		for _, any := range there[resource].depends {
			if lost := loses(there, offers, any, gone); lost != "" {
				missing[resource] = lost
				break
			}
		}
	}
	return missing, nil
}

// offersOf says for each name who is called so, or provides it.
func offersOf(there map[string]*dpkgEntry) map[string][]string {
	offers := map[string][]string{}
	for _, resource := range slices.Sorted(maps.Keys(there)) {
		offers[there[resource].name] = append(offers[there[resource].name], resource)
		for _, r := range there[resource].provides {
			offers[r.name] = append(offers[r.name], resource)
		}
	}
	return offers
}

// loses names what a dependency loses that holds now and would not without those that
// go; "" if it does not.
func loses(there map[string]*dpkgEntry, offers map[string][]string, any []relation, gone map[string]bool) string {
	lost := ""
	for _, r := range any {
		for _, resource := range offers[r.name] {
			if !there[resource].satisfies(r) {
				continue
			}
			if !gone[resource] {
				return ""
			}
			if lost == "" || resource < lost {
				lost = resource
			}
		}
	}
	return lost
}

// satisfies says whether a package is, or provides, what a dependency asks for.
func (e *dpkgEntry) satisfies(r relation) bool {
	if e.name == r.name && relationHolds(e.Version, r.op, r.version) {
		return true
	}
	return slices.ContainsFunc(e.provides, func(p relation) bool {
		return p.name == r.name && (r.op == "" || p.version != "" && relationHolds(p.version, r.op, r.version))
	})
}
