package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"golem/scrolls"
)

// A TurnError is what is wrong with one turn of a batch.
type TurnError struct {
	At  int // in the batch
	Err error
}

func (e *TurnError) Error() string { return e.Err.Error() }

func (e *TurnError) Unwrap() error { return e.Err }

// A transaction is what one run of apt does for the turns of a batch.
type transaction struct {
	effects []pkgEffect
	lift    bool // something of it is on hold, and may be changed
}

// Same implements Sight.
func (t *transaction) Same(other any) bool {
	was, ok := other.(*transaction)
	return !ok || slices.EqualFunc(t.effects, was.effects, sameEffect)
}

// Among implements Parted: whatever a package is now, it becomes what was shown.
func (t *transaction) Among(others []any) bool {
	shown := func(e pkgEffect) bool {
		for _, other := range others {
			if o, ok := other.(*transaction); ok && slices.ContainsFunc(o.effects, func(b pkgEffect) bool {
				b.From = e.From
				return sameEffect(e, b)
			}) {
				return true
			}
		}
		return false
	}
	return !slices.ContainsFunc(t.effects, func(e pkgEffect) bool { return !shown(e) })
}

func sameEffect(a, b pkgEffect) bool {
	return a.Resource == b.Resource && a.From.Version == b.From.Version && a.From.Status == b.From.Status &&
		a.To.Version == b.To.Version && a.To.Status == b.To.Status && a.Purge == b.Purge
}

// effect finds what happens to a package; nil for nothing.
func (t *transaction) effect(resource string) *pkgEffect {
	for i := range t.effects {
		if t.effects[i].Resource == resource {
			return &t.effects[i]
		}
	}
	return nil
}

// Batch implements Reconciler: one transaction takes packages away or brings them, not
// both.
func (packages) Batch(turns []*Turn) int {
	brings, takes := false, false
	for i, t := range turns {
		if t.Late != turns[0].Late {
			return i
		}
		k := t.work.(*pkgWork)
		if first := turns[0].work.(*pkgWork); first.tx != nil { // the plan has joined them
			if k.tx != first.tx {
				return i
			}
			continue
		}
		if k.sweeps { // what goes makes room for what comes back
			continue
		}
		brings, takes = brings || k.brings(), takes || k.takes()
		if brings && takes {
			return i
		}
	}
	return len(turns)
}

// brings says that apt has to install something, a version of it or all.
func (k *pkgWork) brings() bool {
	return !k.beside && k.want.there() && (!k.now.there() || k.now.Version != k.want.Version)
}

// takes says that apt has to remove something, its configuration or all.
func (k *pkgWork) takes() bool { return !k.beside && !k.want.there() && k.now.Status != k.want.Status }

// A joining is a batch while its transaction is worked out.
type joining struct {
	ctx   context.Context
	w     *World
	d     *aptDesk
	turns []*Turn
	works []*pkgWork
	tx    *transaction
	// along are golem's by-products that go with what is taken away, since they need it.
	along []string
	// returns are packages that had made way for what goes, and come back with that;
	// comes are all that come while something goes.
	returns, comes []*pkgWork
	alone          bool // nothing comes back in this transaction
}

// Join implements Reconciler.
func (packages) Join(ctx context.Context, w *World, turns []*Turn) error {
	d, err := w.aptDesk(ctx)
	if err != nil {
		return err
	}
	j := &joining{ctx: ctx, w: w, d: d, turns: turns, tx: &transaction{}}
	for _, t := range turns {
		k := t.work.(*pkgWork)
		k.d = d // what it was worked out on may be of before a transaction
		j.works = append(j.works, k)
	}
	err = j.workOut()
	if err != nil && len(j.returns) > 0 {
		j.alone, j.tx = true, &transaction{}
		err = j.workOut() // they come back by themselves, if they can
	}
	if err != nil {
		return err
	}
	if err := j.finish(); err != nil {
		return err
	}
	return j.tellUnits()
}

// workOut has apt say what it would do for the batch.
func (j *joining) workOut() error {
	if err := j.spare(); err != nil {
		return err
	}
	if !slices.ContainsFunc(j.works, func(k *pkgWork) bool { return k.brings() || k.takes() }) {
		return nil
	}
	if bad := j.d.real.broken(); len(bad) > 0 && !j.d.recovers {
		if locked := j.w.Host.dpkgLocked(); locked != nil {
			return locked // somebody is in the middle of it
		}
		return &BrokenPackagesError{bad}
	}
	err := j.simulate()
	if err == nil {
		err = j.check()
	}
	if err == nil {
		return nil
	}
	put, asked := j.putOff()
	if asked != nil {
		return asked
	}
	if !put {
		return err
	}
	j.tx = &transaction{}
	return j.workOut()
}

// work finds the batch's own work on a package.
func (j *joining) work(resource string) *pkgWork {
	return workOn(j.works, resource)
}

func workOn(works []*pkgWork, resource string) *pkgWork {
	for _, k := range works {
		if k.r.Resource == resource {
			return k
		}
	}
	return nil
}

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

// finish writes what the transaction does into the turns, and takes it for done.
func (j *joining) finish() error {
	first := j.asker()
	if err := j.waysBack(); err != nil {
		return err
	}
	if err := j.files(first); err != nil {
		return err
	}
	for _, k := range j.works {
		if e := j.tx.effect(k.r.Resource); e != nil && e.Own && e.To.there() && !e.From.there() && k.rec.Without == nil {
			k.rec.Without = j.without(k.r.Resource, e.To.Version)
		}
	}
	for _, k := range j.works {
		j.tx.lift = j.tx.lift || (k.brings() || k.takes()) && k.now.Hold
	}
	for i, k := range j.works {
		k.tx, k.leads, k.ends = j.tx, k == first, i == len(j.works)-1
		k.build(j.turns[i])
	}
	j.turns[0].Joint = j.tx
	for i, k := range j.works {
		if j.turns[i].Step != nil {
			k.ownLedger(j.turns[i])
		}
	}
	j.ledger(j.turns[slices.Index(j.works, first)])
	if j.w.Acts {
		return nil
	}
	for _, e := range j.tx.effects {
		j.d.predict(e.Resource, e.To)
		j.d.take(e, first.key())
	}
	for _, k := range j.works {
		if j.tx.effect(k.r.Resource) == nil {
			j.d.predict(k.r.Resource, k.want)
		}
	}
	return nil
}

// files works out what becomes of the configuration files of packages that go, or give
// their version back.
func (j *joining) files(first *pkgWork) error {
	first.keeps = nil
	for i := range j.tx.effects {
		e := &j.tx.effects[i]
		entry := j.d.real.packages[e.Resource]
		if entry == nil {
			continue
		}
		found, before := e.To, []pkgFile(nil)
		if body, ok := j.w.pkgLedger(e.Resource); ok {
			found, before = body.Found, body.Before
		}
		if k := j.work(e.Resource); k != nil && k.rec.found != nil {
			found, before = *k.rec.found, k.rec.Before
			if len(k.r.Set) > 0 {
				continue // it is declared, and dpkg's to see to
			}
		}
		if err := j.w.settleFiles(entry, e, found, before); err != nil {
			return err
		}
		keeps, err := j.w.changedConffiles(entry, e)
		if err != nil {
			return err
		}
		first.keeps = append(first.keeps, keeps...)
	}
	return nil
}

// take notes that a transaction of this run touches a package.
func (d *aptDesk) take(e pkgEffect, key scrolls.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.done, e.Resource) {
		d.done = append(d.done, e.Resource)
	}
	d.by[e.Resource], d.debs[e.Resource] = key, e.Deb
}
