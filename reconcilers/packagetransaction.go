package reconcilers

import (
	"context"
	"slices"

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
