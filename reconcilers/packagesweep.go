package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Sweep implements Reconciler: packages that golem brought along and that nothing needs
// any more go; those that made way for what is gone come back.
func (packages) Sweep(ctx context.Context, w *World) ([]*Turn, error) {
	var lines []string
	for _, entry := range w.Ledger {
		if entry != nil && entry.Sort == PackageSort {
			lines = append(lines, entry.Resource)
		}
	}
	if len(lines) == 0 {
		return nil, nil
	}
	d, err := w.aptDesk(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(lines)
	s := &sweeping{ctx: ctx, w: w, d: d}
	for _, resource := range lines {
		s.line(resource)
	}
	if err := s.spareBrought(); err != nil {
		return nil, err
	}
	for _, resource := range s.away {
		if err := s.madeWay(resource); err != nil {
			return nil, err
		}
	}
	return s.turns, nil
}

// A sweeping is a look through the ledger.
type sweeping struct {
	ctx   context.Context
	w     *World
	d     *aptDesk
	turns []*Turn
	// idle are the packages that golem brought and that may go if nothing needs them.
	idle []string
	// away are those that had to go for others, goes those that go now.
	away, goes []string
}

// line looks at one line of the ledger.
func (s *sweeping) line(resource string) {
	body, ok := s.w.pkgLedger(resource)
	if !ok || s.w.Needed(RecordKey(PackageSort, resource)) {
		return
	}
	now := s.d.state(resource)
	switch {
	case body.Found.there():
		s.away = append(s.away, resource)
	case now.there() && now.Auto && !now.Hold:
		s.idle = append(s.idle, resource)
	case now.there(), now.Status == body.Found.Status:
		s.add(resource, body, now, now) // somebody wants it for its own sake, or took it away
	default:
		to := body.Found
		if e := s.d.real.packages[resource]; to.Status == dpkgAbsent && e != nil && !s.w.purges(e, body.mode()).yes {
			to = now
		}
		s.add(resource, body, now, to)
	}
}

// madeWay looks whether a package that had to go can come back.
func (s *sweeping) madeWay(resource string) error {
	body, _ := s.w.pkgLedger(resource)
	now := s.d.state(resource)
	if now.same(body.Found) || now.there() && now.Version == body.Found.Version {
		s.add(resource, body, now, now) // it is back
		return nil
	}
	for _, other := range body.For {
		if s.d.state(other).there() && !slices.Contains(s.goes, other) {
			return nil
		}
	}
	if len(body.For) == 0 {
		return nil // lent to a glyph that has not had its turn
	}
	k := s.work(resource, body, now, body.Found)
	if had, err := k.canBeHad(); err != nil || !had {
		return err // it cannot be had, as the plan that took it said
	}
	j := &joining{ctx: s.ctx, w: s.w, d: s.d.without(s.goes), works: []*pkgWork{k}, turns: []*Turn{{}}, tx: &transaction{}}
	if err := errors.Join(j.simulate(), j.check()); err != nil {
		var said *AptError
		var turn *TurnError
		if errors.As(err, &said) || errors.As(err, &turn) {
			return nil // it does not fit: it stays on the ledger until it does
		}
		return err
	}
	s.put(k)
	return nil
}

func (s *sweeping) work(resource string, body pkgLedger, now, to Pkg) *pkgWork {
	r := Request{Sort: PackageSort, Resource: resource, Late: true}
	found := body.Found
	return &pkgWork{
		ctx: s.ctx, w: s.w, d: s.d, r: r, now: now, want: to, sweeps: true,
		rec: &pkgRecord{pkgTrace: body.pkgTrace, found: &found},
	}
}

func (s *sweeping) add(resource string, body pkgLedger, now, to Pkg) {
	s.put(s.work(resource, body, now, to))
}

func (s *sweeping) put(k *pkgWork) {
	t := &Turn{Request: k.r, work: k}
	k.build(t)
	s.turns = append(s.turns, t)
}

// spareBrought finds the idle packages that nothing needs, and that can go without
// anything else having to.
func (s *sweeping) spareBrought() error {
	there, err := s.d.entries(s.ctx, s.w)
	if err != nil {
		return err
	}
	gone := s.unneeded(there)
	if len(gone) > 0 {
		if err := s.protect(gone); err != nil {
			return err
		}
	}
	for len(gone) > 0 {
		broken, err := s.d.broken(s.ctx, s.w, gone)
		if err != nil {
			return err
		}
		if len(broken) == 0 {
			break
		}
		for _, needed := range broken {
			delete(gone, needed)
		}
	}
	if err := s.agree(gone); err != nil {
		return err
	}
	for _, resource := range slices.Sorted(maps.Keys(gone)) {
		body, _ := s.w.pkgLedger(resource)
		now, to := s.d.state(resource), absentPkg()
		e := there[resource]
		if s.w.leavesTrace(e) && (body.Found.Status == dpkgConfigFiles || !s.w.purges(e, body.mode()).yes) {
			to.Status, to.Version = dpkgConfigFiles, now.Version
		}
		s.add(resource, body, now, to)
		s.goes = append(s.goes, resource)
	}
	return nil
}

// protect spares what apt is told never to remove of its own accord, and the kernel that
// runs.
func (s *sweeping) protect(gone map[string]bool) error {
	out, err := s.w.Host.Run(s.ctx, dpkgTimeout, "apt-config", "dump", "APT::NeverAutoRemove")
	if err != nil {
		return fmt.Errorf("ask apt what it never removes: %w", err)
	}
	var never []*regexp.Regexp
	for _, line := range strings.Split(string(out.Stdout), "\n") {
		_, quoted, _ := strings.Cut(line, " \"")
		pattern, _, ok := strings.Cut(quoted, "\";")
		if r, err := regexp.CompilePOSIX(pattern); ok && pattern != "" && err == nil {
			never = append(never, r)
		}
	}
	kernel := "linux-image-" + s.w.Host.kernel()
	maps.DeleteFunc(gone, func(resource string, _ bool) bool {
		name, _, _ := strings.Cut(resource, ":")
		return name == kernel || slices.ContainsFunc(never, func(r *regexp.Regexp) bool { return r.MatchString(name) })
	})
	return nil
}

// kernel is the release of the kernel that runs.
func (h *Host) kernel() string {
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease") // without one, no package is its
	return strings.TrimSpace(string(release))
}

// agree has apt say that the packages can go and nothing else goes or comes with them;
// else those stay that cannot go so by themselves.
func (s *sweeping) agree(gone map[string]bool) error {
	if len(gone) == 0 {
		return nil
	}
	clean, err := s.clean(slices.Sorted(maps.Keys(gone)))
	if err != nil || clean {
		return err
	}
	for _, resource := range slices.Sorted(maps.Keys(gone)) {
		if clean, err = s.clean([]string{resource}); err != nil {
			return err
		}
		if !clean {
			delete(gone, resource)
		}
	}
	return nil
}

// clean says whether apt would take just these packages.
func (s *sweeping) clean(names []string) (bool, error) {
	j := &joining{ctx: s.ctx, w: s.w, d: s.d, along: names}
	lines, err := j.ask(nil)
	var said *AptError
	if errors.As(err, &said) {
		return false, nil
	}
	return len(lines) == len(names), err
}

// unneeded are the idle packages that nothing leads to: no dependency, recommendation or
// suggestion but those of packages that did without before.
func (s *sweeping) unneeded(there map[string]*dpkgEntry) map[string]bool {
	idle := map[string]map[string]bool{}
	for _, resource := range s.idle {
		body, _ := s.w.pkgLedger(resource)
		idle[resource] = map[string]bool{}
		for _, who := range body.Without {
			idle[resource][who] = true
		}
	}
	offers := offersOf(there)
	needed := map[string]bool{}
	var visit func(resource string)
	visit = func(resource string) {
		if needed[resource] {
			return
		}
		needed[resource] = true
		e := there[resource]
		for _, any := range slices.Concat(e.depends, e.pulls) {
			for _, r := range any {
				for _, other := range offers[r.name] {
					if there[other].satisfies(r) && !idle[other][resource] {
						visit(other)
					}
				}
			}
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(there)) {
		if idle[resource] == nil {
			visit(resource)
		}
	}
	gone := map[string]bool{}
	for resource := range idle {
		if !needed[resource] {
			gone[resource] = true
		}
	}
	return gone
}

// sweepText says what becomes of a package that golem brought along.
func (k *pkgWork) sweepText() string {
	text := "removed: nothing needs it any more"
	if k.want.Status == dpkgConfigFiles && k.rec.found.Status == dpkgAbsent {
		return text + "; its configuration stays: its removal script might delete data"
	}
	return text
}

// marks are the marks as the run so far leaves them, as apt has them.
func (d *aptDesk) marks() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	auto := map[string]bool{}
	for resource, e := range d.real.packages {
		auto[resource] = e.Auto
	}
	for resource, p := range d.over {
		auto[resource] = p.Auto
	}
	var b strings.Builder
	for _, resource := range slices.Sorted(maps.Keys(auto)) {
		if name, arch, foreign := strings.Cut(resource, ":"); auto[resource] {
			if !foreign {
				arch = d.real.native
			}
			fmt.Fprintf(&b, "Package: %s\nArchitecture: %s\nAuto-Installed: 1\n\n", name, arch)
		}
	}
	return b.String()
}
