package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"golem/scrolls"
)

// A Refresher is a reconciler that sees to it, before an apply plans, that what it plans
// from is at rest and up to date. A plan alone waits for nobody and refreshes nothing.
type Refresher interface {
	// Refresh is told what is declared, and what is in force of the same lineage.
	Refresh(ctx context.Context, w *World, declared, applied []*scrolls.Glyph) error
}

// Refresh lets every reconciler make itself ready.
func Refresh(ctx context.Context, w *World, declared, applied []*scrolls.Glyph) error {
	for _, rec := range Reconcilers {
		if r, ok := rec.(Refresher); ok {
			if err := r.Refresh(ctx, w, declared, applied); err != nil {
				return err
			}
		}
	}
	return nil
}

// Refresh implements Refresher: another's dpkg is waited for, and a name or a version
// that apt's lists do not know is looked for in new ones, once.
func (packages) Refresh(ctx context.Context, w *World, declared, applied []*scrolls.Glyph) error {
	ofApt := func(g *scrolls.Glyph) bool { return g.Kind == aptKindName }
	if !w.Host.Live() || !slices.ContainsFunc(declared, ofApt) && !slices.ContainsFunc(applied, ofApt) {
		return nil
	}
	v, err := w.Host.awaitDpkg(ctx, w.lockWait())
	if err != nil {
		return err
	}
	d := w.bareAptDesk()
	d.once.Do(func() { d.real = v }) // the plan rests on the same look
	var names []string
	wishes := map[string]string{}
	for _, g := range declared {
		if g.Kind != aptKindName {
			continue
		}
		resource, wish := v.own(g), str(g.Attrs, "version")
		if is := v.state(resource); is.there() && versionFits(wish, is.Version) {
			continue
		}
		if wish == "" && slices.ContainsFunc(v.there(), func(other string) bool { return v.provides(other, g) }) {
			continue
		}
		names, wishes[resource] = append(names, resource), wish
	}
	if len(names) == 0 {
		return nil
	}
	lists, err := w.Host.lists(ctx, names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		if said := lists[name]; said == nil || !said.virtual && said.pick(wishes[name]) == "" {
			return w.Host.update(ctx, w.Timeout)
		}
	}
	return nil
}

// there lists the packages that are there.
func (v *dpkgView) there() []string {
	var all []string
	for resource, e := range v.packages {
		if e.there() {
			all = append(all, resource)
		}
	}
	return all
}

// update fetches new package lists, once a run.
func (h *Host) update(ctx context.Context, timeout time.Duration) error {
	if h.apt.updated {
		return nil
	}
	out, err := h.Do(ctx, Command{Argv: []string{"apt-get", "-q", "-o", "APT::Update::Error-Mode=any", "update"}, Env: aptQuiet, Changes: true, Timeout: timeout})
	if err != nil {
		return fmt.Errorf("refresh apt's lists: %w", aptSaid(out, err))
	}
	h.apt.updated = true
	h.forgetLists()
	return nil
}

// lockWait is how long whoever holds a lock is waited for.
func (w *World) lockWait() time.Duration { return min(lockTimeout, w.Timeout/2) }

// awaitDpkg reads dpkg's status once nobody is in the middle of changing it.
func (h *Host) awaitDpkg(ctx context.Context, wait time.Duration) (*dpkgView, error) {
	const pause = 500 * time.Millisecond
	for {
		v, err := readDpkg(ctx, h)
		if err != nil || len(v.broken()) == 0 {
			return v, err
		}
		locked := h.dpkgLocked()
		if locked == nil {
			return v, nil // left half done; whoever has to change something says so
		}
		if wait -= pause; wait <= 0 {
			return nil, locked
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// dpkgLocked says who is at work on the packages now; nil for nobody.
func (h *Host) dpkgLocked() error {
	for _, path := range dpkgLocks[:2] {
		f, err := h.openAt(path)
		if err != nil {
			continue // nobody ever locked it
		}
		lock := unix.Flock_t{Type: unix.F_WRLCK}
		err = unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock)
		_ = f.Close()
		if err == nil && lock.Type != unix.F_UNLCK {
			return &DpkgLockedError{Path: path, PID: int(lock.Pid), Command: commandOf(int(lock.Pid))}
		}
	}
	return nil
}

// alsoHeld says which of the packages that a refusal names are on hold, which apt does not
// tell.
func (d *aptDesk) alsoHeld(said string) string {
	var held []string
	for _, resource := range d.real.there() {
		if e := d.real.packages[resource]; e.Hold && strings.Contains(said, " "+e.name+" ") {
			held = append(held, resource+" is on hold at "+e.Version)
		}
	}
	slices.Sort(held)
	return strings.Join(held, ", ")
}
