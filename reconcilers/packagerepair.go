package reconcilers

import (
	"errors"
	"slices"
	"time"
)

// repair settles what dpkg left half done: what was not there before goes, the rest is
// configured. It says whether it did all that this round can do; what is still broken
// and was there before is best installed anew, and that is not for it.
func (r *restoring) repair() (done bool, err error) {
	if !r.interrupted() {
		return false, nil
	}
	remove, purge := r.halfDone()
	for _, args := range [][]string{append([]string{"--force-remove-reinstreq", "--remove"}, remove...), append([]string{"--force-remove-reinstreq", "--purge"}, purge...)} {
		if len(args) > 2 {
			if err := r.try(r.dpkg(args...)); err != nil {
				return false, err
			}
		}
	}
	for _, next := range []func() error{
		func() error { return r.dpkg("--force-confdef", "--force-confold", "--configure", "-a") },
		func() error { return r.w.apt(r.ctx, "--fix-broken", "install") },
	} {
		if r.v, err = readDpkg(r.ctx, r.w.Host); err != nil {
			return false, err
		}
		if !r.interrupted() {
			return len(remove)+len(purge) > 0, nil
		}
		if !r.pending() && r.canInstall() {
			return false, nil
		}
		if err := r.try(next()); err != nil {
			return false, err
		}
	}
	return true, nil
}

// try takes a refusal for what it is: the next thing may help, and if none does it is
// told. Any other error ends the restoring.
func (r *restoring) try(err error) error {
	var said *AptError
	if errors.As(err, &said) {
		r.said = append(r.said, err)
		return nil
	}
	return err
}

// canInstall says that all that is broken was there before, and is installed anew.
func (r *restoring) canInstall() bool {
	for resource, e := range r.v.packages {
		if e.unfinished() && (r.targets[resource] == nil || !r.targets[resource].there() || e.Status != "half-installed") {
			return false
		}
	}
	return true
}

// halfDone are the packages that were not there before and that dpkg has left half done
// or, in the same breath, whole.
func (r *restoring) halfDone() (remove, purge []string) {
	for resource, t := range r.targets {
		e := r.v.packages[resource]
		if t.there() || e == nil || !e.unfinished() {
			continue
		}
		if t.Status == dpkgAbsent && r.w.purges(e, t.purge).yes {
			purge = append(purge, resource)
		} else {
			remove = append(remove, resource)
		}
	}
	slices.Sort(remove)
	slices.Sort(purge)
	return remove, purge
}

// dpkg runs dpkg itself, which does not wait for whoever holds its lock: golem does.
func (r *restoring) dpkg(args ...string) error {
	wait := r.w.lockWait()
	for {
		out, err := r.w.Host.Do(r.ctx, Command{Argv: append([]string{"dpkg"}, args...), Env: aptQuiet, Changes: true, Timeout: r.w.Timeout})
		if err == nil {
			return nil
		}
		locked := r.w.Host.locked(out)
		if locked == nil {
			return aptSaid(out, err)
		}
		if wait -= time.Second; wait <= 0 {
			return locked
		}
		select {
		case <-r.ctx.Done():
			return r.ctx.Err()
		case <-time.After(time.Second):
		}
	}
}
