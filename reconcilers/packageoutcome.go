package reconcilers

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
)

// simulate has apt say what it would do, to what the transactions before this one leave.
func (j *joining) simulate() error {
	lines, err := j.ask(j.works)
	if err != nil {
		return j.blame(err)
	}
	for _, l := range lines {
		if err := j.note(l); err != nil {
			return err
		}
	}
	for _, k := range j.works {
		switch {
		case k.takes() && !k.now.there(): // only its configuration is left
			j.tx.effects = append(j.tx.effects, pkgEffect{Resource: k.r.Resource, From: k.now, To: k.want, Own: true})
		case (k.takes() || k.brings()) && j.tx.effect(k.r.Resource) == nil:
			return j.at(k, fmt.Errorf("apt would do nothing about %s", k.r.Resource))
		}
	}
	for i := range j.tx.effects {
		e := &j.tx.effects[i]
		e.Purge = e.To.Status == dpkgAbsent && j.leaves(e.Resource, e.From)
	}
	slices.SortStableFunc(j.tx.effects, func(a, b pkgEffect) int {
		if a.Own != b.Own {
			return map[bool]int{true: -1, false: 1}[a.Own]
		}
		return strings.Compare(a.Resource, b.Resource)
	})
	return nil
}

// note takes a line of what apt would do into the transaction, and refuses what is not as it
// is declared.
func (j *joining) note(l simLine) error {
	was := j.d.state(l.resource)
	to := j.outcome(l)
	if !to.there() && !was.there() {
		return nil
	}
	e := pkgEffect{Resource: l.resource, From: was, To: to}
	k := j.work(l.resource)
	switch {
	case k == nil:
		if back := j.returning(l.resource); back != nil && back.want.Version == to.Version {
			e.To, e.Deb = back.want, back.source()
		}
	case !k.brings() && !k.takes():
		// Its own turn asked for less: a mark, or nothing.
		k.beside = true
		if to.there() {
			k.want.Version = to.Version
			e.To = k.want
		}
	default:
		e.To, e.Own = k.want, true
		if e.To.Version != to.Version && to.there() || e.To.there() != to.there() {
			return j.at(k, fmt.Errorf("apt would not do what is declared for %s: it would leave %s", l.resource, cmp.Or(l.version, "none")))
		}
	}
	j.tx.effects = append(j.tx.effects, e)
	return nil
}

// ask simulates the turns of some works.
func (j *joining) ask(works []*pkgWork, more ...string) ([]simLine, error) {
	dir, err := j.w.Host.scratchDir("apt")
	if err != nil {
		return nil, fmt.Errorf("ask apt: %w", err)
	}
	defer os.RemoveAll(dir)
	files := &debFiles{h: j.w.Host, blobs: j.w.Blobs, dir: dir}
	var args []string
	for _, k := range slices.Concat(works, j.returns) {
		if !k.brings() && (!k.takes() || !k.now.there()) {
			continue
		}
		arg, err := pkgEffect{Resource: k.r.Resource, To: k.want, Deb: k.source()}.arg(files)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	for _, resource := range j.along {
		args = append(args, resource+"-")
	}
	options, err := j.d.predicted(j.ctx, j.w, dir)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(works, func(k *pkgWork) bool { return k.brings() && len(k.r.Set) > 0 }) {
		options = append(options, "--no-install-recommends") // what is given back did without
	}
	return j.d.real.simulate(j.ctx, j.w.Host, "install", slices.Concat(options, more, args)...)
}

// source is the journal's own package of the version that is wanted, where no archive
// has that.
func (k *pkgWork) source() *deb {
	d, kept := k.rec.Debs[k.want.Version]
	if !kept {
		return nil
	}
	if said, err := k.w.Host.list(k.ctx, k.r.Resource); err == nil && said != nil && slices.Contains(said.versions, k.want.Version) {
		return nil
	}
	return &d
}

// outcome is the state that a line of apt's leaves.
func (j *joining) outcome(l simLine) Pkg {
	was := j.d.state(l.resource)
	if l.version == "" {
		to := absentPkg()
		if j.leaves(l.resource, was) && !j.goes(l.resource) {
			to.Status, to.Version = dpkgConfigFiles, was.Version
		}
		return to
	}
	to := installedPkg(l.version)
	to.Auto = !was.there() || was.Auto
	to.Hold = was.Hold
	if body, ok := j.w.pkgLedger(l.resource); ok && body.Found.there() && !was.there() {
		to.Auto = body.Found.Auto // it had made way, and is back
	}
	return to
}

// returning finds a package that comes back.
func (j *joining) returning(resource string) *pkgWork {
	return workOn(j.returns, resource)
}
