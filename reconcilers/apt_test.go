package reconcilers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"golem/reconcilers/fake"
	"golem/scrolls"
)

// fakeExec has a fake machine answer a host's commands.
func fakeExec(m *fake.Machine) func(context.Context, Command) (Output, error) {
	return func(_ context.Context, c Command) (Output, error) {
		a, err := m.Run(c.Argv, c.Dir)
		out := Output{[]byte(a.Out), []byte(a.Err)}
		if err == nil && a.Code != 0 {
			err = &CommandError{Argv: c.Argv, Code: a.Code, Said: a.Err, Err: fmt.Errorf("exit status %d", a.Code)}
		}
		return out, err
	}
}

// aptHost makes a host of a fake machine.
func aptHost(t interface{ Fatal(...any) }, h *Host) *fake.Machine {
	m := fake.New(h.Root)
	h.Booted, h.Exec = true, fakeExec(m)
	if err := m.Save(); err != nil {
		t.Fatal(err)
	}
	return m
}

// bootApt makes the suite's host of packages: it, what it needs, and a bystander.
func (b *bench) bootApt(h *Host) {
	b.machine = aptHost(b.t, h)
	m := b.machine
	it := func(version string) *fake.Package {
		return &fake.Package{
			Name: "it", Version: version, Arch: "amd64", Depends: "lib (>= " + version + ")", Provides: "role",
			Conffiles: map[string]string{"/etc/it.conf": "shipped " + version},
		}
	}
	lib := func(version string) *fake.Package { return &fake.Package{Name: "lib", Version: version, Arch: "all"} }
	m.Archive = []*fake.Package{it("1.0"), it("2.0"), lib("1.0"), lib("2.0")}
	m.Install(&fake.Package{Name: "bystander", Version: "1.0", Arch: "all"}, rapid.Bool().Draw(b.t, "auto bystander"))
	switch rapid.SampledFrom([]string{"none", "installed", "auto", "held", "config"}).Draw(b.t, "found") {
	case "installed":
		m.Install(lib("2.0"), true)
		m.Install(it("1.0"), false)
	case "auto":
		m.Install(lib("2.0"), true)
		m.Install(it("2.0"), true)
	case "held":
		m.Install(lib("2.0"), false)
		m.Install(it("1.0"), false)
		m.Packages["it"].Want = "hold"
	case "config":
		m.Install(it("2.0"), false)
		m.Packages["it"].Want, m.Packages["it"].Status = "deinstall", "config-files"
	}
	if err := m.Save(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) printApt() string {
	prints, err := b.machine.Print()
	if err != nil {
		b.t.Fatal(err)
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(prints)) {
		fmt.Fprintf(&out, "%s: %q\n", name, prints[name])
	}
	return out.String()
}

func samplePackage(t *rapid.T) scrolls.Attrs {
	a := scrolls.Attrs{"name": rapid.SampledFrom([]string{"it", "it", "it", "role", "it:amd64"}).Draw(t, "name")}
	if a["name"] != "role" && rapid.Bool().Draw(t, "pinned") {
		a["version"] = rapid.SampledFrom([]string{"1.0", "2.0", "2.*"}).Draw(t, "version")
		a["allow_downgrade"] = true
		a["hold"] = false
	}
	if a["name"] != "role" && rapid.Bool().Draw(t, "held") {
		a["hold"] = rapid.Bool().Draw(t, "hold")
		if a["version"] != nil {
			a["hold"] = false
		}
	}
	return a
}

func TestAptNames(t *testing.T) {
	for name, want := range map[string]string{
		"nginx": "", "libc6:i386": "", "g++": "", "0ad": "", "libstdc++6": "",
		"": "Name is empty", "x": "Not a package's name", "Nginx": "Not a package's name", "a b": "Not a package's name", "-q": "Not a package's name",
		"nginx=1.2": "Version in the name", "nginx/stable": "Release in the name", "nginx:": "Not an architecture", "nginx:amd64:x": "Not an architecture",
		"nginx:any": "Not an architecture of its own",
	} {
		problems := checkApt(scrolls.Attrs{"name": name})
		got := ""
		if len(problems) > 0 {
			got = problems[0].Summary
		}
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
