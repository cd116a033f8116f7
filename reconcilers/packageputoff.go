package reconcilers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// putOff finds the versions given back that others stand in the way of, and lets those
// packages stay as they are for now. One that something of golem's needs goes on the
// ledger, and gets its version back when that is gone; for a stranger's sake it is
// forgotten. It says whether there was any.
func (j *joining) putOff() (bool, error) {
	any := false
	for _, k := range j.works {
		if !k.brings() || len(k.r.Set) > 0 || k.sweeps {
			continue
		}
		who, said, err := j.inTheWay(k)
		if err != nil {
			return any, err
		}
		if len(who) > 0 || said != "" {
			k.putOff(j, who, said)
			any = true
		}
	}
	return any, nil
}

// inTheWay lists the packages that would have to go, or to change though they are on hold,
// for a version that is given back; or what apt says why it cannot be at all.
func (j *joining) inTheWay(k *pkgWork) (who []string, said string, err error) {
	lone := *j
	lone.returns = nil
	lines, err := lone.ask([]*pkgWork{k})
	var refused *AptError
	if errors.As(err, &refused) {
		return nil, refused.Said, nil
	}
	if err != nil {
		return nil, "", err
	}
	for _, l := range lines {
		goes := l.version == "" && !slices.Contains(j.along, l.resource)
		if own := j.work(l.resource); own != nil && own.takes() {
			goes = false
		}
		if l.resource != k.r.Resource && (goes || j.d.state(l.resource).Hold) {
			who = append(who, l.resource)
		}
	}
	slices.Sort(who)
	return who, "", nil
}

// putOff lets the package stay in the version that it has.
func (k *pkgWork) putOff(j *joining, who []string, said string) {
	found, now := k.want.Version, k.now.Version
	k.want.Version = now
	if !k.acts() {
		k.effect = EffectForget
	}
	if len(who) == 0 {
		k.reason = fmt.Sprintf("it was there before golem; version %s cannot be given back, and it stays at %s: %s", found, now, said)
		k.irreversible = append(k.irreversible, fmt.Sprintf("version %s cannot be given back", found))
		return
	}
	k.reason = fmt.Sprintf("it was there before golem; %s would have to go for version %s, so it stays at %s", strings.Join(who, ", "), found, now)
	if len(k.remaining()) > 0 || !slices.ContainsFunc(who, j.golems) {
		k.irreversible = append(k.irreversible, fmt.Sprintf("version %s is not given back", found))
		return
	}
	k.reason += " until then"
	later := &pkgLedger{pkgTrace: k.rec.pkgTrace, Found: *k.rec.found}
	later.Left = k.want
	for _, other := range who {
		later.For = append(later.For, other+"="+j.d.state(other).Version)
	}
	k.stays = later
}
