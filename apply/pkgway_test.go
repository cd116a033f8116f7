package apply_test

import (
	"maps"
	"strings"
	"testing"

	"golem/plan"
	"golem/reconcilers/fake"
	"golem/scrolls"
	"golem/state"
)

// aptHost is a host with packages on it, by hand those named with a "!", and an archive.
func aptHost(t *testing.T, archive []*fake.Package, there ...string) *pkgHost {
	t.Helper()
	h := newPkgHost(t)
	t.Cleanup(h.remove)
	h.m.Archive = archive
	for _, is := range there {
		is, byHand := strings.CutSuffix(is, "!")
		for _, p := range archive {
			if p.Name+"="+p.Version == is {
				h.m.Install(p, !byHand)
			}
		}
	}
	if err := h.m.Save(); err != nil {
		t.Fatal(err)
	}
	return h
}

func pkg(name, version string, more ...string) *fake.Package {
	p := &fake.Package{Name: name, Version: version, Arch: "all"}
	for _, m := range more {
		switch field, value, _ := strings.Cut(m, " "); field {
		case "depends":
			p.Depends = value
		case "conflicts":
			p.Conflicts = value
		case "provides":
			p.Provides = value
		case "recommends":
			p.Recommends = value
		}
	}
	return p
}

// wantsOf is a scroll of packages; a word that ends in a slash begins another leaf.
func wantsOf(words ...string) *scrolls.Scroll {
	leaf := leafOf("a")
	leaves := []*scrolls.Leaf{leaf}
	for _, word := range words {
		if path, begins := strings.CutSuffix(word, "/"); begins {
			leaf = leafOf(path)
			leaves = append(leaves, leaf)
			continue
		}
		name, version, _ := strings.Cut(word, "=")
		attrs := scrolls.Attrs{"name": name, "allow_removal": true, "allow_downgrade": true}
		if version != "" {
			attrs["version"] = version
		}
		g := glyph("apt", attrs)
		g.Leaf = leaf.Path
		leaf.Glyphs = append(leaf.Glyphs, g)
	}
	return scrollOf(leaves...)
}

// TestPackagesGoBackWhicheverWay: whatever stands in the way of one step of the way back, a
// destroy is not refused, and the host is as it was found.
func TestPackagesGoBackWhicheverWay(t *testing.T) {
	cases := []struct {
		name    string
		archive []*fake.Package
		there   []string
		ways    [][]string
		// between is what is on the host before the destroy.
		between map[string]string
	}{
		{
			name:    "what needs the newer version is taken back after it",
			archive: []*fake.Package{pkg("p1", "1.0"), pkg("p1", "2.0"), pkg("p3", "2.0", "depends p1 (>= 2.0)")},
			there:   []string{"p1=1.0"},
			ways:    [][]string{{"p3", "p1"}},
		}, {
			name:    "what needs the newer version is still declared",
			archive: []*fake.Package{pkg("p1", "1.0"), pkg("p1", "2.0"), pkg("p3", "2.0", "depends p1 (>= 2.0)")},
			there:   []string{"p1=1.0"},
			ways:    [][]string{{"p3", "p1"}, {"p3"}},
			between: map[string]string{"package p1": "install installed 2.0 auto", "package p3": "install installed 2.0"},
		}, {
			name: "what had made way comes back in the older version, which does not go with what golem brought",
			archive: []*fake.Package{
				pkg("p1", "1.0"), pkg("p1", "2.0", "conflicts mta"), pkg("p5", "1.0", "provides mta"), pkg("p5", "2.0"),
			},
			there: []string{"p1=1.0", "p5=1.0"},
			ways:  [][]string{{"p1=2.0"}, {"p1=2.0", "c/", "p5"}},
		}, {
			name:    "a package that golem dropped and that comes back as another's keeps what it needs",
			archive: []*fake.Package{pkg("p1", "1.0"), pkg("p2", "1.0", "depends p1"), pkg("p3", "1.0", "recommends p2")},
			ways:    [][]string{{"c/", "p1", "b/", "p2"}, {"b/", "p3", "c/"}},
			between: map[string]string{"package p1": "install installed 1.0 auto", "package p2": "install installed 1.0 auto", "package p3": "install installed 1.0"},
		}, {
			name: "what made way for one version, and then for another package, is not blocked by the version found",
			archive: []*fake.Package{
				pkg("p0", "1.0", "conflicts p1"), pkg("p0", "2.0"), pkg("p1", "1.0", "depends p0"), pkg("p2", "1.0", "conflicts p1"), pkg("p3", "1.0", "depends p2"),
			},
			there: []string{"p0=2.0", "p1=1.0!"},
			ways:  [][]string{{"p0=1.0"}, {"p3", "p0"}},
		}, {
			name: "a version given back takes what it did without before for as long as it must",
			archive: []*fake.Package{
				pkg("p0", "1.0"), pkg("p0", "2.0"), pkg("p2", "1.0"), pkg("p3", "1.0", "conflicts p0"), pkg("p3", "2.0", "depends p2 | p0"),
			},
			there: []string{"p0=2.0", "p3=2.0"},
			ways:  [][]string{{"c/", "p3=1.0"}, {"b/", "p0=1.0"}},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := aptHost(t, c.archive, c.there...)
			found := h.print(t)
			for _, way := range c.ways {
				h.mustApply(t, wantsOf(way...))
			}
			is := h.print(t)
			for name, want := range c.between {
				if is[name] != want {
					t.Errorf("between, %s is %q, not %q", name, is[name], want)
				}
			}
			h.mustApply(t, nil)
			if diff := compare(found, h.print(t)); diff != "" {
				t.Errorf("destroy did not give the host back:\n%s\n%s", diff, strings.Join(runsOf(h.m), "\n"))
			}
		})
	}
}

// A version that a stranger's package needs is not given back, and the plan says so.
func TestAVersionThatAStrangerNeedsIsForgotten(t *testing.T) {
	archive := []*fake.Package{pkg("p1", "1.0"), pkg("p1", "2.0"), pkg("p3", "2.0", "depends p1 (>= 2.0)")}
	h := aptHost(t, archive, "p1=1.0")
	h.mustApply(t, wantsOf("p1=2.0"))
	h.m.Install(archive[2], false)
	if err := h.m.Save(); err != nil {
		t.Fatal(err)
	}
	before := maps.Clone(h.print(t))
	report := h.mustApply(t, nil)
	if len(report.Plan.Changes()) != 1 {
		t.Fatalf("planned %s", changes(report))
	}
	c := report.Plan.Changes()[0]
	if c.Op != state.Remove || !strings.Contains(c.Reason, "p3 would have to go for version 1.0, so it stays at 2.0") || len(c.Irreversible) == 0 {
		t.Errorf("told %+v", c)
	}
	before["package p1"] = "install installed 2.0 auto" // the mark is given back all the same
	if diff := compare(before, h.print(t)); diff != "" {
		t.Error(diff)
	}
}

// A name that only a newer version of a package provides has that version come.
func TestANameThatOnlyANewerVersionProvides(t *testing.T) {
	h := aptHost(t, []*fake.Package{pkg("p0", "1.0"), pkg("p0", "2.0", "provides role")}, "p0=1.0")
	found := h.print(t)
	s := func() *scrolls.Scroll {
		leaf := leafOf("a", glyph("apt", scrolls.Attrs{"name": "role"}))
		return scrollOf(leaf)
	}
	h.mustApply(t, s())
	if is := h.print(t)["package p0"]; is != "install installed 2.0" {
		t.Errorf("p0 is %s", is)
	}
	var again *plan.Plan
	if report := h.mustApply(t, s()); !report.Plan.Empty() {
		again = report.Plan
		t.Errorf("a second apply finds %+v", again.Changes())
	}
	h.mustApply(t, nil)
	if diff := compare(found, h.print(t)); diff != "" {
		t.Error(diff)
	}
}
