package reconcilers

import (
	"context"
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
		if len(gone) == 0 {
			j.along = nil
			return nil
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
		j.along = nil
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
		broken, err := j.d.broken(j.ctx, j.w, gone)
		if err != nil {
			return nil, err
		}
		for _, who := range slices.Sorted(maps.Keys(broken)) {
			root := cause[broken[who]]
			if j.w.brought(who, j.d.state(who)) && !j.w.Needed(RecordKey(PackageSort, who)) {
				gone[who], cause[who], more = true, root, true
			} else if _, known := blocked[root]; !known {
				blocked[root] = who
			}
		}
	}
	return blocked, nil
}

// leave lets a package stay that something needs. For golem's own sake it becomes a
// by-product again; for a stranger's it is forgotten.
func (j *joining) leave(k *pkgWork, who string) {
	k.want = k.now
	k.irreversible = nil
	if k.now.Hold && k.rec.Left.Hold && !k.rec.found.Hold {
		k.want.Hold = false
	}
	k.effect = "forget"
	_, beside := j.w.pkgLedger(who)
	if beside || j.w.Record(PackageSort, who) != nil || j.w.Needed(RecordKey(PackageSort, who)) || j.earlier(who) != "" {
		k.want.Auto = true
		k.effect, k.reason = "mark", string(j.d.key(who))+" needs it: marked automatic again"
		k.stays = &pkgLedger{pkgTrace: k.rec.pkgTrace, Found: *k.rec.found}
		return
	}
	k.reason = who + " needs it now; left as it is"
}

// broken finds the packages that would miss something if those that go were gone, each
// with one that it would miss.
func (d *aptDesk) broken(ctx context.Context, w *World, gone map[string]bool) (map[string]string, error) {
	there, err := d.entries(ctx, w)
	if err != nil {
		return nil, err
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
