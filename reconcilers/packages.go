package reconcilers

import (
	"context"
	"slices"
	"sync"

	"golem/scrolls"
)

// packages keeps Debian packages: the kind apt.
type packages struct{}

func (packages) Sort() string { return PackageSort }

// An aptDesk is what the reconciler has of the packages on a world's desk: what dpkg
// says, and over that what the run has worked out so far.
type aptDesk struct {
	once sync.Once
	real *dpkgView
	err  error

	mu   sync.Mutex
	over map[string]Pkg
	// done are the packages that the transactions so far bring, change or take, in that
	// order, and who asked for it.
	done []string
	by   map[string]scrolls.Key
	debs map[string]*deb // those that come from the journal
	// declared are the scroll's glyphs, by resource.
	declared map[string][]*scrolls.Glyph
	// recovers says that an interrupted run has to be taken back first.
	recovers bool
}

// aptDesk returns what is known of the packages, asking dpkg if nobody did.
func (w *World) aptDesk(ctx context.Context) (*aptDesk, error) {
	d := w.bareAptDesk()
	d.once.Do(func() {
		if !w.Host.Live() {
			d.err = errText("a package needs a live Debian host, not a file tree")
			return
		}
		d.real, d.err = readDpkg(ctx, w.Host)
	})
	return d, d.err
}

func (w *World) bareAptDesk() *aptDesk {
	return keepAt(w, "packages", func() *aptDesk {
		return &aptDesk{over: map[string]Pkg{}, by: map[string]scrolls.Key{}, debs: map[string]*deb{}, declared: map[string][]*scrolls.Glyph{}}
	})
}

// state is a package's state as the run so far leaves it.
func (d *aptDesk) state(resource string) Pkg {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p, ok := d.over[resource]; ok {
		return p
	}
	return d.real.state(resource)
}

func (d *aptDesk) predict(resource string, p Pkg) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over[resource] = p
}

// pendingPackages are the packages that the run will have installed by this point and
// that are not there yet.
func pendingPackages(w *World) []string {
	d := w.bareAptDesk()
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for resource, p := range d.over {
		if p.there() && d.real != nil && !d.real.state(resource).there() {
			names = append(names, resource)
		}
	}
	slices.Sort(names)
	return names
}
