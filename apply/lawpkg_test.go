package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"golem/apply"
	"golem/plan"
	"golem/reconcilers"
	"golem/reconcilers/fake"
	"golem/scrolls"
	"golem/state"
)

// runByApt lets a fake dpkg and apt answer for a host. No apt-get may outlive a killed golem
// unawaited: all but a simulation take apt's locks.
func runByApt(host *reconcilers.Host, m *fake.Machine) {
	host.Booted = true
	host.Exec = func(_ context.Context, c reconcilers.Command) (reconcilers.Output, error) {
		if c.Argv[0] == "apt-get" && !slices.Contains(c.Argv, "-s") && !c.Changes && !c.Awaited {
			return reconcilers.Output{}, fmt.Errorf("the next run would not wait for %q", c.Argv)
		}
		a, err := m.Run(c.Argv, c.Dir)
		out := reconcilers.Output{Stdout: []byte(a.Out), Stderr: []byte(a.Err)}
		if err == nil && a.Code != 0 {
			err = &reconcilers.CommandError{Argv: c.Argv, Code: a.Code, Said: a.Err, Err: fmt.Errorf("exit status %d", a.Code)}
		}
		return out, err
	}
}

// A pkgHost is a law host with packages.
type pkgHost struct {
	*lawHost
	m *fake.Machine
	// stays are packages that a transaction upgraded for another's sake, as the plan
	// said.
	stays map[string]bool
}

func newPkgHost(t tester) *pkgHost {
	h := &pkgHost{lawHost: newLawHost(t), stays: map[string]bool{}}
	h.m = fake.New(h.root)
	if err := h.m.Save(); err != nil {
		t.Fatal(err)
	}
	h.arrange = func(host *reconcilers.Host) { runByApt(host, h.m) }
	return h
}

// print is the fingerprint of packages and files, less what the plans said would stay.
func (h *pkgHost) print(t tester) map[string]string {
	prints, err := h.m.Print()
	if err != nil {
		t.Fatal(err)
	}
	return h.less(prints)
}

// drawArchive draws packages that need, suggest, provide and exclude each other.
func drawArchive(t *rapid.T, plain bool) []*fake.Package {
	var all []*fake.Package
	n := rapid.IntRange(2, 7).Draw(t, "packages")
	for i := range n {
		versions := rapid.IntRange(1, 2).Draw(t, "versions")
		conffile := rapid.Bool().Draw(t, "conffile")
		other := func(what string) string {
			if i == 0 || rapid.IntRange(0, 2).Draw(t, what) == 0 {
				return ""
			}
			return fmt.Sprintf("p%d", rapid.IntRange(0, i-1).Draw(t, what))
		}
		for v := range versions {
			p := &fake.Package{Name: fmt.Sprintf("p%d", i), Version: fmt.Sprintf("%d.0", v+1), Arch: rapid.SampledFrom([]string{"all", "amd64"}).Draw(t, "arch")}
			p.Depends = other("depends")
			if p.Depends != "" {
				switch rapid.IntRange(0, 4).Draw(t, "condition") {
				case 0:
					p.Depends += fmt.Sprintf(" (>= %d.0)", v+1)
				case 1:
					if alt := other("alternative"); alt != "" && !plain {
						p.Depends += " | " + alt
					}
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "recommends") == 0 && n > 1 && !plain {
				if q := rapid.IntRange(0, n-1).Draw(t, "recommended"); q != i {
					p.Recommends = fmt.Sprintf("p%d", q)
				}
			}
			if rapid.IntRange(0, 4).Draw(t, "provides") == 0 && !plain {
				p.Provides = rapid.SampledFrom([]string{"role", "mta"}).Draw(t, "provided")
			}
			if rapid.IntRange(0, 7).Draw(t, "conflicts") == 0 && !plain {
				p.Conflicts = rapid.SampledFrom([]string{"mta", "p1", "p0"}).Draw(t, "conflicted")
				if p.Conflicts == p.Name {
					p.Conflicts = ""
				}
			}
			if conffile {
				p.Conffiles = map[string]string{"/etc/" + p.Name + ".conf": "shipped by " + p.Name + " " + p.Version + "\n"}
			}
			all = append(all, p)
		}
	}
	return all
}

// drawPackages draws what is on the host before golem.
func (h *pkgHost) drawPackages(t *rapid.T, plain bool) {
	h.m.Archive = drawArchive(t, plain)
	run := func(argv ...string) {
		if _, err := h.m.Run(argv, ""); err != nil {
			t.Fatal(err)
		}
	}
	names := map[string]bool{}
	for _, p := range h.m.Archive {
		names[p.Name] = true
	}
	for range rapid.IntRange(0, 3).Draw(t, "there") {
		p := rapid.SampledFrom(h.m.Archive).Draw(t, "installed")
		run("apt-get", "install", p.Name+"="+p.Version) // what cannot be is not
	}
	for _, id := range slices.Sorted(maps.Keys(h.m.Packages)) {
		i := h.m.Packages[id]
		if id == "dpkg" || i == nil || i.Status != "installed" {
			continue
		}
		switch rapid.IntRange(0, 6).Draw(t, "fate of "+id) {
		case 0:
			run("apt-mark", "hold", id)
		case 1, 2:
			run("apt-mark", "auto", id)
		case 3:
			run("apt-get", "remove", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(h.m.Packages)) {
		// Of the way there, dpkg's own note of what an older version shipped as
		// configuration would show: nobody but dpkg can write that again.
		if i := h.m.Packages[id]; plain && i.Status == "config-files" && i.Version != h.newest(id) {
			run("apt-get", "purge", id)
		}
	}
	h.m.Runs = nil
}

// newest is the newest version of a package in the archive.
func (h *pkgHost) newest(name string) string {
	best := ""
	for _, p := range h.m.Archive {
		if p.Name == name && (best == "" || fake.Compare(p.Version, best) > 0) {
			best = p.Version
		}
	}
	return best
}

// drawPackageScroll draws a scroll of one to three leaves.
func (h *pkgHost) drawPackageScroll(t *rapid.T, name string, mine func(i int) bool) *scrolls.Scroll {
	s := &scrolls.Scroll{Name: name, Policies: map[string]scrolls.Policy{}, Dir: "/law"}
	seen := map[scrolls.Key]bool{}
	order := rapid.Permutation([]string{"a", "b", "c"}).Draw(t, "leaf order")
	for i := range rapid.IntRange(1, 3).Draw(t, "leaves") {
		leaf := &scrolls.Leaf{Path: order[i], Policy: scrolls.BuiltinPolicy}
		for range rapid.IntRange(0, 3).Draw(t, "glyphs") {
			g := glyph("apt", h.drawAttrs(t, mine))
			if seen[g.Key] {
				continue
			}
			seen[g.Key], g.Leaf = true, leaf.Path
			leaf.Glyphs = append(leaf.Glyphs, g)
		}
		s.Leaves = append(s.Leaves, leaf)
	}
	return s
}

func (h *pkgHost) drawAttrs(t *rapid.T, mine func(i int) bool) scrolls.Attrs {
	var names, versions []string
	for _, p := range h.m.Archive {
		if mine(int(p.Name[1] - '0')) {
			names, versions = append(names, p.Name), append(versions, p.Version)
		}
		if p.Provides != "" && mine(len(p.Provides)) {
			names, versions = append(names, p.Provides), append(versions, "")
		}
	}
	if len(names) == 0 || rapid.IntRange(0, 19).Draw(t, "unknown") == 0 {
		names, versions = append(names, "nobody-knows"), append(versions, "1.0")
	}
	n := rapid.IntRange(0, len(names)-1).Draw(t, "name")
	if versions[n] == "" {
		return scrolls.Attrs{"name": names[n]}
	}
	a := scrolls.Attrs{"name": names[n]}
	if rapid.IntRange(0, 9).Draw(t, "spelled") == 0 {
		a["name"] = names[n] + ":amd64"
	}
	if rapid.IntRange(0, 2).Draw(t, "pinned") == 0 {
		a["version"] = rapid.SampledFrom([]string{versions[n], versions[n], versions[n][:2] + "*", "2.0"}).Draw(t, "version")
	}
	if rapid.IntRange(0, 3).Draw(t, "held") == 0 {
		a["hold"] = rapid.IntRange(0, 3).Draw(t, "hold") == 0
	}
	a["allow_downgrade"] = rapid.IntRange(0, 3).Draw(t, "downgrade") > 0
	a["allow_removal"] = rapid.IntRange(0, 2).Draw(t, "removal") > 0
	return a
}

// run applies a scroll. One that this host refuses is refused before anything is
// touched.
func (h *pkgHost) run(t *rapid.T, s *scrolls.Scroll, lineage string) (refused bool) {
	t.Logf("%s: %s", lineage, describe(s))
	before := h.print(t)
	report, err := h.apply(s, lineage)
	var diags *scrolls.Diagnostics
	switch {
	case err != nil && errors.As(err, &diags):
		if diff := compare(before, h.print(t)); diff != "" {
			t.Fatalf("a refused scroll changed the host: %v\n%s", err, diff)
		}
		return true
	case err != nil:
		t.Fatalf("apply %s: %v", describe(s), err)
	case report.Partial():
		t.Fatalf("apply %s: %s: %+v\n%s", describe(s), report.Outcome, failures(report), h.told(report))
	}
	t.Logf("%s", h.told(report))
	h.note(report)
	h.inForce(t, s, lineage)
	return false
}

func (h *pkgHost) told(r *apply.Report) string {
	return changes(r) + "\n" + strings.Join(runsOf(h.m), "\n")
}

func runsOf(m *fake.Machine) []string {
	var all []string
	for _, argv := range m.Runs {
		all = append(all, strings.Join(slices.DeleteFunc(slices.Clone(argv), func(a string) bool { return strings.HasPrefix(a, "Dpkg::") || a == "-o" }), " "))
	}
	return all
}

// note remembers what the plan said would stay.
func (h *pkgHost) note(r *apply.Report) {
	for _, c := range r.Plan.Changes() {
		upgrades, _ := c.After["upgrades"].([]string)
		for _, u := range upgrades {
			id, _, _ := strings.Cut(u, " ")
			h.stays[id] = true
		}
	}
}

// settled fails unless a second apply finds nothing to do, and starts no apt to learn it.
func (h *pkgHost) settled(t *rapid.T, s *scrolls.Scroll, lineage string) {
	before, runs := h.print(t), len(h.m.Runs)
	report, err := h.apply(s, lineage)
	if err != nil {
		t.Fatalf("apply again %s: %v", describe(s), err)
	}
	if !report.Plan.Empty() {
		t.Fatalf("a second apply of %s finds something to do: %s", describe(s), changes(report))
	}
	if diff := compare(before, h.print(t)); diff != "" || len(h.m.Runs) != runs {
		t.Fatalf("a second apply changed the host:\n%s", diff)
	}
}

// TestLawPackagesExactReturn: whatever scrolls were applied, destroy gives the host's
// packages back: which are there, their versions, marks and holds.
func TestLawPackagesExactReturn(t *testing.T) {
	lawChecks(t)
	rapid.Check(t, func(t *rapid.T) {
		h := newPkgHost(t)
		defer h.remove()
		h.drawPackages(t, false)
		found := h.print(t)
		t.Logf("found: %v", found)
		for _, p := range h.m.Archive {
			t.Logf("archive: %+v", *p)
		}
		for range rapid.IntRange(1, 4).Draw(t, "scrolls") {
			s := h.drawPackageScroll(t, "law", everything)
			if !h.run(t, s, "law") {
				h.settled(t, s, "law")
			}
		}
		h.run(t, nil, "law")
		if diff := compare(h.less(found), h.print(t)); diff != "" {
			t.Fatalf("destroy did not give the host back:\n%s", diff)
		}
		h.check(t)
	})
}

// less takes what the plans said would stay out of a fingerprint.
func (h *pkgHost) less(prints map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range prints {
		if id, ok := strings.CutPrefix(name, "package "); ok && h.stays[id] {
			text = strings.Join(slices.Delete(strings.Fields(text), 2, 3), " ")
		}
		if id, ok := strings.CutPrefix(name, "/etc/"); ok && h.stays[strings.TrimSuffix(id, ".conf")] {
			text = "of what stays"
		}
		out[name] = text
	}
	return out
}

// copyOf is another host with the same packages.
func (h *pkgHost) copyOf(t tester) *pkgHost {
	c := newPkgHost(t)
	data, err := json.Marshal(h.m)
	if err == nil {
		c.m = &fake.Machine{}
		err = json.Unmarshal(data, c.m)
		c.m.Root = c.root
	}
	prints, more := h.m.Print()
	for name, text := range prints {
		if strings.HasPrefix(name, "/") {
			more = errors.Join(more, os.MkdirAll(filepath.Dir(c.root+name), 0o755), os.WriteFile(c.root+name, []byte(text), 0o644))
		}
	}
	if err := errors.Join(err, more, c.m.Save()); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestLawPackagesPathIndependence: the packages after S1 … Sn are those after Sn alone,
// where no dependency leaves a choice.
func TestLawPackagesPathIndependence(t *testing.T) {
	lawChecks(t)
	rapid.Check(t, func(t *rapid.T) {
		long := newPkgHost(t)
		defer long.remove()
		long.drawPackages(t, true)
		short := long.copyOf(t)
		defer short.remove()
		for _, p := range long.m.Archive {
			t.Logf("archive: %+v", *p)
		}
		t.Logf("found: %v", long.print(t))
		for range rapid.IntRange(1, 3).Draw(t, "scrolls before") {
			long.run(t, long.drawPackageScroll(t, "law", everything), "law")
		}
		last := long.drawPackageScroll(t, "law", everything)
		if long.run(t, last, "law") || short.run(t, last, "law") {
			return
		}
		maps.Copy(long.stays, short.stays)
		short.stays = long.stays
		if diff := compare(short.print(t), long.print(t)); diff != "" {
			t.Fatalf("the way there shows:\n%s", diff)
		}
	})
}

// TestLawPackagesTwoLineages: two scrolls on one host, applied and destroyed in any
// order: what one brought along and the other needs stays until neither does.
func TestLawPackagesTwoLineages(t *testing.T) {
	lawChecks(t)
	rapid.Check(t, func(t *rapid.T) {
		h := newPkgHost(t)
		defer h.remove()
		h.drawPackages(t, false)
		found := h.print(t)
		for _, p := range h.m.Archive {
			t.Logf("archive: %+v", *p)
		}
		t.Logf("found: %v", found)
		names := []string{"even", "odd"}
		for range rapid.IntRange(2, 6).Draw(t, "runs") {
			who := rapid.IntRange(0, 1).Draw(t, "lineage")
			s := h.drawPackageScroll(t, names[who], func(i int) bool { return i%2 == who })
			if rapid.IntRange(0, 3).Draw(t, "destroy") == 0 {
				s = nil
			}
			if !h.run(t, s, names[who]) && s != nil {
				h.settled(t, s, names[who])
			}
		}
		for _, who := range rapid.Permutation([]int{0, 1}).Draw(t, "last") {
			h.run(t, nil, names[who])
		}
		if diff := compare(h.less(found), h.print(t)); diff != "" {
			t.Fatalf("destroying both did not give the host back:\n%s", diff)
		}
		h.check(t)
	})
}

// A dead is what a killed golem panics with in these tests.
type dead struct{ at string }

// killedAt applies a scroll with a golem that dies at its n-th change, or dies with an
// apt that dies at the n-th part of its work, or sees apt die there. It says where; ""
// if the run ended before.
func (h *pkgHost) killedAt(t *rapid.T, s *scrolls.Scroll, n int, way string) (at string) {
	host, err := reconcilers.OpenHost(h.root)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	h.arrange(host)
	calls, armed := 0, false
	strike := func(what string) {
		if !armed {
			return
		}
		if calls++; calls == n {
			at = way + ": " + what
			panic(dead{what})
		}
	}
	so := state.Options{Root: h.root, LockTimeout: 10 * time.Second}
	switch way {
	case "golem":
		host.Fault = func(op, path string) error { strike(op + " " + path); return nil }
		so.Fault = func(op string) error { strike("journal " + op); return nil }
	case "golem and apt":
		h.m.Step = func(what string) error { strike(what); return nil }
	case "apt":
		h.m.Step = func(what string) error {
			if calls++; calls == n {
				at = way + ": " + what
				return errors.New("signal: killed")
			}
			return nil
		}
	}
	journal, err := state.Open(filepath.Join(h.dir, "journal", "planroom.db"), so)
	if err != nil {
		t.Fatal(err)
	}
	armed = true
	defer func() {
		armed = false
		h.m.Step = nil
		why := recover()
		if _, ours := why.(dead); why != nil && !ours {
			panic(why)
		}
		_ = journal.Close() // as the kernel does
		if err := h.m.Save(); err != nil {
			t.Fatal(err)
		}
	}()
	_, _ = apply.Run(context.Background(), apply.Options{
		Scroll: s, Lineage: "law", Journal: journal, Host: host, HostName: "law", Destroy: s == nil,
		Approve: func(*plan.Plan) (bool, error) { return true, nil },
	})
	return at
}

// TestLawPackagesCrash: golem, or apt under it, is killed at any point of a run. The next
// run takes the leaf in flight back and goes on; in the end the host is as if nothing had
// happened, and destroy gives it back.
func TestLawPackagesCrash(t *testing.T) {
	lawChecks(t)
	rapid.Check(t, func(t *rapid.T) {
		h := newPkgHost(t)
		defer h.remove()
		h.drawPackages(t, false)
		found := h.print(t)
		for _, p := range h.m.Archive {
			t.Logf("archive: %+v", *p)
		}
		t.Logf("found: %v", found)
		first := h.drawPackageScroll(t, "law", everything)
		h.run(t, first, "law")
		second := h.drawPackageScroll(t, "law", everything)
		if rapid.IntRange(0, 3).Draw(t, "destroy") == 0 {
			second = nil
		}
		before := h.print(t)
		n := rapid.IntRange(1, 18).Draw(t, "n")
		at := h.killedAt(t, second, n, rapid.SampledFrom([]string{"golem", "golem and apt", "apt"}).Draw(t, "way"))
		t.Logf("%s: killed at %s\n%s", describe(second), at, strings.Join(runsOf(h.m), "\n"))
		if at == "" {
			return // refused, or done before
		}
		h.recovers(t, before)
		if !h.run(t, second, "law") && second != nil {
			h.settled(t, second, "law")
		}
		h.run(t, nil, "law")
		if diff := compare(h.less(found), h.print(t)); diff != "" {
			t.Fatalf("destroy did not give the host back:\n%s", diff)
		}
		h.check(t)
	})
}

// recovers settles the interrupted run. Where its first leaf was in flight, the host is
// what it was before.
func (h *pkgHost) recovers(t *rapid.T, before map[string]string) {
	host, err := reconcilers.OpenHost(h.root)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	h.arrange(host)
	journal, err := state.Open(filepath.Join(h.dir, "journal", "planroom.db"), state.Options{Root: h.root, LockTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	r, err := apply.Recover(context.Background(), apply.Options{Journal: journal, Host: host, HostName: "law"})
	if err := errors.Join(err, journal.Close()); err != nil {
		t.Fatalf("recover: %v\n%s", err, strings.Join(runsOf(h.m), "\n"))
	}
	if r != nil && len(r.Leaves) == 1 && r.Leaves[0].Outcome == apply.RolledBack && r.Leaves[0].Leaf != plan.WaveLeaf {
		if diff := compare(h.less(before), h.print(t)); diff != "" {
			t.Fatalf("recovery did not give the host back:\n%s\n%s", diff, strings.Join(runsOf(h.m), "\n"))
		}
	}
}
