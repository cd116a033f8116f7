package reconcilers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"golem/state"
)

// A pkgTarget is what one package is to be again.
type pkgTarget struct {
	Pkg
	back  *deb
	purge string
	// given is a state that is taken for it: nothing better can be had.
	given bool
}

// Undo implements Reconciler.
func (packages) Undo(ctx context.Context, w *World, store Store, s *state.Step) error {
	inv, exp, err := readPkgStep(s)
	if err != nil {
		return err
	}
	targets := map[string]*pkgTarget{}
	var files []pkgFile
	for _, e := range slices.Concat(exp.Effects, inv.Whole) {
		if !e.stays() {
			files = append(files, e.Files...)
			targets[e.Resource] = &pkgTarget{Pkg: e.From, back: e.Back, purge: cmp.Or(e.Unmade, purgeAuto)}
		}
	}
	own := targets[s.Resource]
	if own == nil {
		own = &pkgTarget{purge: inv.Purge}
		targets[s.Resource] = own
	}
	own.Pkg = inv.Now
	w.forget()
	defer w.forget()
	r := &restoring{ctx: ctx, w: w, targets: targets, keep: keepWith(store, s), files: files}
	if err := r.run(); err != nil {
		return err
	}
	// A stranger's work at these paths is not to be lost; the packages' own is.
	return w.putFiles(ctx, r.keep, r.unowned(), r.known)
}

// unowned are the files less those of packages that stay, or go no further than their
// removal: dpkg still has the configuration down as theirs, and takes what is missing of it
// for what somebody deleted for good.
func (r *restoring) unowned() []pkgFile {
	owned := map[string]bool{}
	for resource, t := range r.targets {
		if e := r.v.packages[resource]; e != nil && (t.given || r.left(resource, e.Pkg, t)) {
			for _, name := range e.conffilesOf() {
				if at, err := r.w.resolve(name, false); err == nil {
					owned[at.real] = true
				}
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(r.files), func(f pkgFile) bool { return owned[f.Path] && f.Node.Type == Absent })
}

// known says whether a file has bytes that are known: a package's, or those that it is
// to have again.
func (r *restoring) known(path string, n Node) bool {
	for _, f := range r.files {
		if f.Path == path && f.Node.Hash == n.Hash {
			return true
		}
	}
	return slices.ContainsFunc(slices.Collect(maps.Values(r.v.packages)), func(e *dpkgEntry) bool { return r.w.shipped(e, path) })
}

// A restoring brings packages back to what they were, from whatever a transaction or
// its death left.
type restoring struct {
	ctx     context.Context
	w       *World
	targets map[string]*pkgTarget
	v       *dpkgView
	keep    keeper
	files   []pkgFile // as they were before
	said    []error   // what a repair said that did not get far
}

// rounds bounds a restoring: what one repair leaves half done, the next settles.
const rounds = 4

// run goes on, round by round, until every package is what it was, or nothing more can be done.
func (r *restoring) run() error {
	var err error
	for range rounds {
		if r.v, err = readDpkg(r.ctx, r.w.Host); err != nil {
			return err
		}
		if len(r.open()) == 0 && !r.interrupted() {
			return nil
		}
		if err = r.step(); err != nil {
			return err
		}
	}
	if r.v, err = readDpkg(r.ctx, r.w.Host); err != nil {
		return err
	}
	var left []string
	for _, resource := range r.open() {
		left = append(left, fmt.Sprintf("%s is %s, and was %s", resource, r.v.state(resource).text(), r.targets[resource].text()))
	}
	left = append(left, r.v.broken()...)
	if len(left) == 0 {
		return nil
	}
	return errors.Join(append([]error{fmt.Errorf("bring packages back: %s", strings.Join(left, "; "))}, r.said...)...)
}

// open lists the packages that are not what they were.
func (r *restoring) open() []string {
	var open []string
	for resource, t := range r.targets {
		if is := r.v.state(resource); !t.given && !is.reached(t.Pkg) && !r.left(resource, is, t) {
			open = append(open, resource)
		}
	}
	slices.Sort(open)
	return open
}

// left says that all that is left of a package is configuration that is not purged.
func (r *restoring) left(resource string, is Pkg, t *pkgTarget) bool {
	return t.Status == dpkgAbsent && is.Status == dpkgConfigFiles && !is.Hold && !r.w.purges(r.v.packages[resource], t.purge).yes
}

// interrupted says that dpkg was killed or failed on the way.
func (r *restoring) interrupted() bool { return len(r.v.broken()) > 0 || r.pending() }

// pending says that dpkg was killed before it had written down what it did.
func (r *restoring) pending() bool {
	names, err := r.w.Host.readDir("/var/lib/dpkg/updates")
	return err == nil && slices.ContainsFunc(names, func(n string) bool { return strings.Trim(n, "0123456789") == "" })
}

// step does the next thing that can be done.
func (r *restoring) step() error {
	if done, err := r.repair(); done || err != nil {
		return err
	}
	effects, err := r.effects()
	if err != nil {
		return err
	}
	if len(effects) > 0 {
		if err := r.keepChanged(effects); err != nil {
			return err
		}
		if err := r.clearNew(effects); err != nil {
			return err
		}
		lift := slices.ContainsFunc(effects, func(e pkgEffect) bool { return e.From.Hold })
		return r.try(r.w.transact(r.ctx, effects, lift))
	}
	want := map[string]Pkg{}
	for _, resource := range r.open() {
		want[resource] = r.targets[resource].Pkg
	}
	return r.w.mark(r.ctx, want)
}

// clearNew takes away configuration files that were not there before, of packages that get
// another version back: one that is there, dpkg would have down as theirs for good, and
// once it is gone, as what somebody deleted.
func (r *restoring) clearNew(effects []pkgEffect) error {
	own := map[string]bool{}
	for _, e := range effects {
		if !e.To.there() || !e.From.there() {
			continue
		}
		for _, name := range r.v.packages[e.Resource].conffilesOf() {
			if at, err := r.w.resolve(name, false); err == nil {
				own[at.real] = true
			}
		}
	}
	news := slices.DeleteFunc(slices.Clone(r.files), func(f pkgFile) bool { return f.Node.Type != Absent || !own[f.Path] })
	return r.w.putFiles(r.ctx, r.keep, news, r.known)
}

// keepChanged keeps the configuration files that a purge is about to take and that
// somebody changed since.
func (r *restoring) keepChanged(effects []pkgEffect) error {
	d := r.w.Host.newDirs()
	defer d.close()
	for i := range effects {
		e := r.v.packages[effects[i].Resource]
		changed, err := r.w.changedConffiles(e, &effects[i])
		if err != nil {
			return err
		}
		strangers, err := r.w.strangers(e, &effects[i])
		if err != nil {
			return err
		}
		for _, k := range slices.Concat(changed, strangers) {
			var n Node
			if err := json.Unmarshal(k.Node, &n); err != nil {
				return fmt.Errorf("keep %s: %w", quote(k.Path), err)
			}
			if r.known(k.Path, n) {
				continue
			}
			if err := r.keep(k.Path, n, k.Reason, func() (*os.File, error) { return r.w.Host.openAt(k.Path) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// effects are what apt has to do. A stranger's package is never taken along: what it
// needs stays.
func (r *restoring) effects() ([]pkgEffect, error) {
	gone := map[string]bool{}
	for _, resource := range r.open() {
		gone[resource] = r.v.state(resource).there() && !r.targets[resource].there()
	}
	maps.DeleteFunc(gone, func(_ string, yes bool) bool { return !yes })
	comes := r.comes()
	for len(gone) > 0 {
		broken, err := r.desk().broken(r.ctx, r.w, gone, comes...)
		if err != nil {
			return nil, err
		}
		if len(broken) == 0 {
			break
		}
		for who, needs := range broken {
			if t := r.targets[who]; t != nil && !t.there() {
				continue
			}
			delete(gone, needs)
			r.targets[needs].given = true
		}
	}
	var effects []pkgEffect
	for _, resource := range r.open() {
		t, is := r.targets[resource], r.v.state(resource)
		e := pkgEffect{Resource: resource, From: is, To: t.Pkg, Deb: t.back, Own: true}
		switch {
		case t.there() && is.Status == dpkgLeaving && is.Version == t.Version:
			continue // it is only marked so
		case t.there() && (!is.there() || is.Version != t.Version):
			if t.back == nil && !r.archived(resource, t.Version) {
				t.given = true // as the plan said
				continue
			}
		case is.there() && gone[resource]:
			e.Purge = t.Status == dpkgAbsent && r.v.packages[resource] != nil && r.w.leavesTrace(r.v.packages[resource]) &&
				r.w.purges(r.v.packages[resource], t.purge).yes
		case is.Status == dpkgConfigFiles && t.Status == dpkgAbsent:
			e.Purge = true
		default:
			continue
		}
		effects = append(effects, e)
	}
	return effects, nil
}

// desk is what dpkg says now, with the package files that the journal has.
func (r *restoring) desk() *aptDesk {
	d := &aptDesk{real: r.v, debs: map[string]*deb{}}
	for resource, t := range r.targets {
		d.debs[resource] = t.back
	}
	return d
}

// comes are the packages that get their version back: what needs what is to be judged by
// that.
func (r *restoring) comes() []*pkgWork {
	var comes []*pkgWork
	d := r.desk()
	for _, resource := range r.open() {
		t, is := r.targets[resource], r.v.state(resource)
		if !t.there() || is.there() && is.Version == t.Version {
			continue
		}
		if _, err := d.entry(r.ctx, r.w, resource, t.Version); err != nil {
			continue // it cannot be had, as the plan said
		}
		comes = append(comes, &pkgWork{r: Request{Resource: resource}, want: t.Pkg})
	}
	return comes
}

func (r *restoring) archived(resource, version string) bool {
	said, err := r.w.Host.list(r.ctx, resource)
	return err == nil && said != nil && slices.Contains(said.versions, version)
}
