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
	if err := s.workOut(); err != nil {
		return nil, err
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
	// away are those that had to go for others.
	away []string
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
	case s.w.idle(resource, now):
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

// workOut finds the idle packages that nothing needs once those are back that made way
// for them, and that can go without anything else having to.
func (s *sweeping) workOut() error {
	if len(s.idle)+len(s.away) == 0 {
		return nil
	}
	there, err := s.d.entries(s.ctx, s.w)
	if err != nil {
		return err
	}
	stays := map[string]bool{} // of either kind: it has been tried
	for {
		comes, err := s.comes(stays)
		if err != nil {
			return err
		}
		gone, err := s.gone(there, comes, stays)
		if err != nil {
			return err
		}
		blocked := s.blocked(gone, comes)
		if len(blocked) == 0 {
			clean, err := s.clean(gone, comes)
			if err != nil {
				return err
			}
			if clean {
				s.settle(there, gone, comes)
				return nil
			}
			if blocked, err = s.culprits(gone, comes); err != nil {
				return err
			}
		}
		for _, resource := range blocked {
			stays[resource] = true
		}
	}
}

// comes are the packages that made way and may come back.
func (s *sweeping) comes(stays map[string]bool) ([]*pkgWork, error) {
	var comes []*pkgWork
	for _, resource := range s.away {
		body, _ := s.w.pkgLedger(resource)
		now := s.d.state(resource)
		if now.there() && (now.Version == body.Found.Version || body.Left.there() && now.Version != body.Left.Version) {
			s.add(resource, body, now, now) // it is back, or somebody brought another version
			stays[resource] = true
		}
		if stays[resource] || len(body.For) == 0 { // or lent to a glyph that has not had its turn
			continue
		}
		k := s.work(resource, body, now, body.Found)
		had, err := k.canBeHad()
		if err != nil {
			return nil, err
		}
		if !had { // as the plan that took it said
			stays[resource] = true
			continue
		}
		comes = append(comes, k)
	}
	return comes, nil
}

// gone are the idle packages that can go if others come.
func (s *sweeping) gone(there map[string]*dpkgEntry, comes []*pkgWork, stays map[string]bool) (map[string]bool, error) {
	after := maps.Clone(there)
	for _, k := range comes {
		e, err := s.d.entry(s.ctx, s.w, k.r.Resource, k.want.Version)
		if err != nil {
			return nil, err
		}
		after[k.r.Resource] = e
	}
	gone := s.unneeded(after)
	maps.DeleteFunc(gone, func(resource string, _ bool) bool { return stays[resource] })
	if len(gone) > 0 {
		if err := s.protect(gone); err != nil {
			return nil, err
		}
	}
	for len(gone) > 0 {
		broken, err := s.d.broken(s.ctx, s.w, gone, comes...)
		if err != nil {
			return nil, err
		}
		if len(broken) == 0 {
			break
		}
		for _, needed := range broken {
			delete(gone, needed)
		}
	}
	return gone, nil
}

// blocked are those of what would come that something which stays still stands in the
// place of.
func (s *sweeping) blocked(gone map[string]bool, comes []*pkgWork) []string {
	var blocked []string
	for _, k := range comes {
		body, _ := s.w.pkgLedger(k.r.Resource)
		if slices.ContainsFunc(body.For, func(pinned string) bool {
			other := pinnedName(pinned)
			return body.madeWayFor(other, s.d.state(other)) && !gone[other]
		}) {
			blocked = append(blocked, k.r.Resource)
		}
	}
	return blocked
}

// culprits are those of what would go and come that cannot do so by themselves; all, if
// each can.
func (s *sweeping) culprits(gone map[string]bool, comes []*pkgWork) ([]string, error) {
	var bad, all []string
	for _, resource := range slices.Sorted(maps.Keys(gone)) {
		all = append(all, resource)
		clean, err := s.clean(map[string]bool{resource: true}, nil)
		if err != nil {
			return nil, err
		}
		if !clean {
			bad = append(bad, resource)
		}
	}
	for _, k := range comes {
		all = append(all, k.r.Resource)
		clean, err := s.clean(gone, []*pkgWork{k})
		if err != nil {
			return nil, err
		}
		if !clean {
			bad = append(bad, k.r.Resource)
		}
	}
	if len(bad) > 0 {
		return bad, nil
	}
	return all, nil
}

// clean says whether apt would do just this.
func (s *sweeping) clean(gone map[string]bool, comes []*pkgWork) (bool, error) {
	if len(gone)+len(comes) == 0 {
		return true, nil
	}
	j := &joining{ctx: s.ctx, w: s.w, d: s.d, along: slices.Sorted(maps.Keys(gone))}
	lines, err := j.ask(comes)
	var said *AptError
	if errors.As(err, &said) {
		return false, nil
	}
	return len(lines) == len(gone)+len(comes), err
}

// settle makes turns of what goes and of what comes.
func (s *sweeping) settle(there map[string]*dpkgEntry, gone map[string]bool, comes []*pkgWork) {
	for _, resource := range slices.Sorted(maps.Keys(gone)) {
		body, _ := s.w.pkgLedger(resource)
		now, to := s.d.state(resource), absentPkg()
		e := there[resource]
		if s.w.leavesTrace(e) && (body.Found.Status == dpkgConfigFiles || !s.w.purges(e, body.mode()).yes) {
			to.Status, to.Version = dpkgConfigFiles, now.Version
		}
		s.add(resource, body, now, to)
	}
	for _, k := range comes {
		s.put(k)
	}
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

// There implements Lasting.
func (packages) There(w *World, resource string) (bool, error) {
	v, err := readDpkg(context.Background(), w.Host)
	if err != nil {
		return false, err
	}
	return v.state(resource).there(), nil
}
