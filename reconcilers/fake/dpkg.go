package fake

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Package is one version of a package.
type Package struct {
	Name, Version, Arch            string
	Depends, Recommends, Conflicts string            `json:",omitempty"`
	Provides                       string            `json:",omitempty"`
	Essential                      bool              `json:",omitempty"`
	Conffiles                      map[string]string `json:",omitempty"` // what it ships
	// Postrm is its removal script, of which a purge runs every "rm -rf PATH"; Makes is what
	// its other scripts make.
	Postrm                          string            `json:",omitempty"`
	Makes                           map[string]string `json:",omitempty"`
	Files                           []string          `json:",omitempty"`
	FailsToConfigure, FailsToRemove bool              `json:",omitempty"`
}

func (p *Package) file() string {
	return p.Name + "_" + strings.ReplaceAll(p.Version, ":", "%3a") + "_" + p.Arch + ".deb"
}

// An Installed is what dpkg knows of one package on the host.
type Installed struct {
	*Package
	Want, Status string
	Auto         bool
	// Shipped are the configuration files as the version that is there shipped them.
	Shipped map[string]string `json:",omitempty"`
}

// A Machine is a host with dpkg and apt.
type Machine struct {
	Root string
	// Step, where set, is asked before each part of a transaction; an error ends it
	// there, as a kill does.
	Step func(what string) error `json:"-"`

	Native string
	// Archive are the packages that the lists know; Next, where set, takes its place
	// with an update.
	Archive, Next []*Package
	// Packages is what is on the host, by "name" or "name:arch".
	Packages map[string]*Installed
	// Deny, where set, is what apt's hooks refuse with.
	Deny string
	// Unreachable says that nothing can be fetched.
	Unreachable bool
	Runs        [][]string // what was run that changes the host
}

// New makes a machine with dpkg on it and nothing else.
func New(root string) *Machine {
	m := &Machine{Root: root, Native: "amd64", Packages: map[string]*Installed{}}
	m.Install(&Package{Name: "dpkg", Version: "1.22", Arch: "amd64", Essential: true}, false)
	return m
}

// Install puts a package on the host as if somebody had, long before.
func (m *Machine) Install(p *Package, auto bool) {
	m.put(m.id(p), p)
	i := m.Packages[m.id(p)]
	i.Want, i.Status, i.Auto = "install", "installed", auto
	i.Shipped = maps.Clone(p.Conffiles)
	for name, text := range p.Conffiles {
		if err := m.write(name, text); err != nil {
			panic(err) // a test's own directory
		}
	}
	if p.Postrm != "" {
		if err := m.write("/var/lib/dpkg/info/"+m.id(p)+".postrm", p.Postrm); err != nil {
			panic(err)
		}
	}
}

func (m *Machine) path(p string) string { return filepath.Join(m.Root, p) }

// Save writes the files of the machine that golem reads.
func (m *Machine) Save() error {
	var marks strings.Builder
	for _, id := range slices.Sorted(maps.Keys(m.Packages)) {
		if i := m.Packages[id]; i.Auto {
			fmt.Fprintf(&marks, "Package: %s\nArchitecture: %s\nAuto-Installed: 1\n\n", i.Name, m.realArch(i.Package))
		}
	}
	var status strings.Builder
	for _, id := range slices.Sorted(maps.Keys(m.Packages)) {
		i := m.Packages[id]
		status.WriteString(i.stanza("Status: "+i.Want+" ok "+i.Status+"\n") + "\n")
	}
	return errors.Join(m.write("/var/lib/apt/extended_states", marks.String()), m.write("/var/lib/dpkg/status", status.String()))
}

// stanza is what a package says of itself.
func (p *Package) stanza(more string) string {
	text := "Package: " + p.Name + "\n" + more + "Architecture: " + p.Arch + "\nVersion: " + p.Version + "\n"
	for _, field := range [][2]string{{"Depends", p.Depends}, {"Recommends", p.Recommends}, {"Conflicts", p.Conflicts}, {"Provides", p.Provides}} {
		if field[1] != "" {
			text += field[0] + ": " + field[1] + "\n"
		}
	}
	if p.Essential {
		text += "Essential: yes\n"
	}
	return text
}

// readStatus reads packages as a status file has them.
func readStatus(text string) map[string]*Installed {
	all := map[string]*Installed{}
	for _, stanza := range strings.Split(text, "\n\n") {
		i := &Installed{Package: &Package{}}
		for _, line := range strings.Split(stanza, "\n") {
			field, value, _ := strings.Cut(line, ": ")
			switch field {
			case "Package":
				i.Name = value
			case "Version":
				i.Version = value
			case "Architecture":
				i.Arch = value
			case "Depends":
				i.Depends = value
			case "Recommends":
				i.Recommends = value
			case "Conflicts":
				i.Conflicts = value
			case "Provides":
				i.Provides = value
			case "Essential":
				i.Essential = value == "yes"
			case "Status":
				if f := strings.Fields(value); len(f) == 3 {
					i.Want, i.Status = f[0], f[2]
				}
			}
		}
		if i.Name != "" {
			all[i.Name] = i // of the native architecture, as everything in tests of this
		}
	}
	return all
}

func (m *Machine) realArch(p *Package) string {
	if p.Arch == "all" {
		return m.Native
	}
	return p.Arch
}

func (m *Machine) write(p, text string) error {
	if err := os.MkdirAll(filepath.Dir(m.path(p)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(m.path(p), []byte(text), 0o644)
}

// id is how dpkg and apt call a package here.
func (m *Machine) id(p *Package) string {
	if p.Arch == "all" || p.Arch == m.Native {
		return p.Name
	}
	return p.Name + ":" + p.Arch
}

// find is the id that a name given on a command line means.
func (m *Machine) find(name string) string {
	return strings.TrimSuffix(name, ":"+m.Native)
}

// there says that a package is unpacked and configured.
func (i *Installed) there() bool { return i != nil && i.Status == "installed" }

// unfinished says that dpkg left a package half done.
func (i *Installed) unfinished() bool {
	return i.Status == "half-installed" || i.Status == "unpacked" || i.Status == "half-configured"
}

// Print is the machine's fingerprint: every package's state, and every file that is not
// dpkg's own.
func (m *Machine) Print() (map[string]string, error) {
	prints := map[string]string{}
	for id, i := range m.Packages {
		if i.Status == "not-installed" && i.Want != "hold" {
			continue
		}
		text := i.Want + " " + i.Status
		if i.Status != "not-installed" && i.Status != "config-files" {
			text += " " + i.Version // of what is gone, dpkg keeps the last
		}
		if i.there() && i.Auto {
			text += " auto"
		}
		prints["package "+id] = text
	}
	err := filepath.WalkDir(m.Root, func(p string, e fs.DirEntry, err error) error {
		name := strings.TrimPrefix(p, m.Root)
		switch {
		case err != nil:
			return err
		case name == "/var/lib/dpkg" || name == "/var/lib/apt" || name == "/var/cache":
			return fs.SkipDir
		case e.Type().IsRegular():
			data, err := os.ReadFile(p)
			prints[name] = string(data)
			return err
		}
		return nil
	})
	return prints, err
}

// A killed error is Step's: the program dies where it is.
type killed struct{ err error }

func (k killed) Error() string { return k.err.Error() }

// step saves the machine as it is and asks whether to go on.
func (m *Machine) step(what string) error {
	if err := m.Save(); err != nil {
		return err
	}
	if m.Step == nil {
		return nil
	}
	if err := m.Step(what); err != nil {
		return killed{err}
	}
	return nil
}

// put notes a package as unpacked, with what dpkg keeps of it.
func (m *Machine) put(id string, p *Package) {
	was := m.Packages[id]
	i := &Installed{Package: p, Want: "install", Status: "unpacked"}
	if was != nil {
		i.Auto, i.Shipped = was.Auto, was.Shipped
	}
	m.Packages[id] = i
}

// unpack is dpkg --unpack.
func (m *Machine) unpack(id string, p *Package) error {
	m.put(id, p)
	m.Packages[id].Status = "half-installed"
	if err := m.step("unpack " + id); err != nil {
		return err
	}
	m.Packages[id].Status = "unpacked"
	base := "/var/lib/dpkg/info/" + id
	err := m.write(base+".list", strings.Join(p.Files, "\n"))
	if p.Postrm != "" {
		return errors.Join(err, m.write(base+".postrm", p.Postrm))
	}
	return errors.Join(err, m.drop(base+".postrm"))
}

func (m *Machine) drop(p string) error {
	err := os.Remove(m.path(p))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// configure is dpkg --configure of one package. What it says is told on an error.
func (m *Machine) configure(id string) (said string, err error) {
	i := m.Packages[id]
	i.Status = "half-configured"
	if err := m.step("configure " + id); err != nil {
		return "", err
	}
	for p, text := range i.Conffiles {
		if err := m.conffile(i, p, text); err != nil {
			return "", err
		}
	}
	if i.FailsToConfigure {
		return "dpkg: error processing package " + id + " (--configure):\n installed " + id + " package post-installation script subprocess returned error exit status 3\n", nil
	}
	for p, text := range i.Makes {
		if err := m.write(p, text); err != nil {
			return "", err
		}
	}
	i.Status = "installed"
	return "", nil
}

// conffile puts a configuration file in place, as --force-confdef --force-confold do:
// what somebody changed, or had before, stays.
func (m *Machine) conffile(i *Installed, p, text string) error {
	have, err := os.ReadFile(m.path(p))
	shipped, known := i.Shipped[p]
	if i.Shipped == nil {
		i.Shipped = map[string]string{}
	}
	i.Shipped[p] = text
	switch {
	case errors.Is(err, fs.ErrNotExist) && known && shipped == text:
		return nil // somebody removed it: that stays so
	case errors.Is(err, fs.ErrNotExist):
		return m.write(p, text)
	case err != nil:
		return err
	case string(have) == text:
		return nil
	case known && string(have) == shipped:
		return m.write(p, text)
	case known && shipped == text:
		return nil // somebody changed it, and the package did not
	}
	return m.write(p+".dpkg-dist", text)
}

// remove is dpkg --remove, and with purge --purge.
func (m *Machine) remove(id string, purge bool) error {
	i := m.Packages[id]
	if i.Status != "config-files" {
		i.Status = "half-configured"
		if err := m.step("remove " + id); err != nil {
			return err
		}
		i.Want, i.Status, i.Auto = "deinstall", "config-files", false
		if len(i.Shipped) == 0 && i.Postrm == "" {
			purge = true // nothing is left of it
		}
	}
	if !purge {
		return m.drop("/var/lib/dpkg/info/" + id + ".list")
	}
	if err := m.step("purge " + id); err != nil {
		return err
	}
	for p := range i.Shipped {
		if err := errors.Join(m.drop(p), m.drop(p+".dpkg-dist")); err != nil {
			return err
		}
		_ = os.Remove(filepath.Dir(m.path(p))) // if nothing else is in it
	}
	for line := range strings.Lines(i.Postrm) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "rm -rf "); ok {
			if err := os.RemoveAll(m.path(p)); err != nil {
				return err
			}
		}
	}
	delete(m.Packages, id)
	return errors.Join(m.drop("/var/lib/dpkg/info/"+id+".list"), m.drop("/var/lib/dpkg/info/"+id+".postrm"))
}
