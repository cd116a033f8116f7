package reconcilers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// What dpkg has a package down as.
const (
	dpkgInstalled   = "installed"
	dpkgConfigFiles = "config-files"
	dpkgAbsent      = "not-installed"
	// dpkgLeaving is golem's word for what is installed, and what dselect was told to
	// remove the next time.
	dpkgLeaving = "to be removed"
)

// A Pkg is the state of one package.
type Pkg struct {
	// Status is dpkg's: installed, config-files, not-installed, or what an interrupted
	// dpkg left.
	Status string `json:"status"`
	// Triple is the whole of it: what is wanted, the error flag, and the status.
	Triple  string `json:"triple,omitempty"`
	Version string `json:"version,omitempty"`
	Auto    bool   `json:"auto,omitempty"`
	Hold    bool   `json:"hold,omitempty"`
}

// Same implements Sight.
func (p Pkg) Same(other any) bool {
	was, ok := other.(Pkg)
	return !ok || p.same(was)
}

func (p Pkg) same(o Pkg) bool {
	p.Triple, o.Triple = "", ""
	return p == o
}

// there says that the package is installed, whole and meant to be.
func (p Pkg) there() bool { return p.Status == dpkgInstalled }

// left is a package that is not there, its configuration perhaps.
func absentPkg() Pkg { return Pkg{Status: dpkgAbsent} }

// installedPkg is a package as golem brings it.
func installedPkg(version string) Pkg {
	return Pkg{Status: dpkgInstalled, Triple: "install ok installed", Version: version}
}

// A dpkgEntry is what dpkg knows of one package.
type dpkgEntry struct {
	Pkg
	name, arch string
	essential  bool
	priority   string // required, important, standard, optional, extra
	provides   []relation
	// depends are what it cannot do without, pulls what apt keeps for its sake besides:
	// recommends, and what it suggests.
	depends, pulls, recommends [][]relation
	conflicts                  [][]relation
	conffiles                  []conffile
}

// A conffile is a configuration file of a package, with the hash that it shipped it with.
type conffile struct{ path, md5 string }

// A dpkgView is what dpkg knows of all packages, by resource: the name, and for a
// foreign architecture "name:arch".
type dpkgView struct {
	native   string
	packages map[string]*dpkgEntry
}

const dpkgTimeout = time.Minute

var dpkgFields = []string{
	"Package", "Architecture", "Version", "Status", "Essential", "Protected", "Provides", "Pre-Depends", "Depends", "Recommends", "Suggests",
	"Conflicts", "Breaks", "Conffiles", "Priority",
}

// What ends a field and a package in dpkg-query's answer: conffiles take several lines.
const (
	fieldEnd  = "\x1f"
	recordEnd = "\x1e"
)

// readDpkg asks for all packages in one query, and reads apt's marks beside it. No name
// is asked for, so none can be unknown.
func readDpkg(ctx context.Context, h *Host) (*dpkgView, error) {
	format := "${" + strings.Join(dpkgFields, "}"+fieldEnd+"${") + "}" + recordEnd
	out, err := h.Run(ctx, dpkgTimeout, "dpkg-query", "-W", "-f", format)
	if errors.Is(err, exec.ErrNotFound) {
		return nil, errText("look at the packages: there is no dpkg here; a package needs a live Debian host")
	}
	if err != nil {
		return nil, fmt.Errorf("look at the packages: %w", err)
	}
	v := &dpkgView{packages: map[string]*dpkgEntry{}}
	var all []*dpkgEntry
	for _, line := range strings.Split(strings.TrimSuffix(string(out.Stdout), recordEnd), recordEnd) {
		field := strings.Split(line, fieldEnd)
		if len(field) != len(dpkgFields) {
			return nil, fmt.Errorf("look at the packages: dpkg-query answered %q", line)
		}
		e := newEntry(field)
		if e.name == "dpkg" {
			v.native = e.arch // dpkg itself is of the host's own architecture
		}
		all = append(all, e)
	}
	if v.native == "" {
		return nil, errText("look at the packages: dpkg does not know itself, so that the host's architecture is not known")
	}
	for _, e := range all {
		v.packages[v.resource(e.name, e.arch)] = e
	}
	return v, v.readMarks(h)
}

// newEntry reads one package from the fields that dpkg-query was asked for (dpkgFields).
func newEntry(field []string) *dpkgEntry {
	e := &dpkgEntry{name: field[0], arch: field[1], essential: field[4] == "yes" || field[5] == "yes"}
	e.Triple, e.Version = field[3], field[2]
	want, status := "", ""
	if part := strings.Fields(field[3]); len(part) == 3 {
		want, status = part[0], part[2]
		if part[1] != "ok" && status == dpkgInstalled {
			status = part[1] // installed, and to be installed anew
		}
	}
	e.Status, e.Hold = status, want == "hold"
	if status == dpkgInstalled && want != "install" && want != "hold" {
		e.Status = dpkgLeaving
	}
	if status == dpkgAbsent {
		e.Version = ""
	}
	e.provides = slices.Concat(parseRelations(field[6])...)
	e.depends = append(parseRelations(field[7]), parseRelations(field[8])...)
	e.recommends = parseRelations(field[9])
	e.pulls = slices.Concat(e.recommends, parseRelations(field[10]))
	e.conflicts = append(parseRelations(field[11]), parseRelations(field[12])...)
	e.priority = field[14]
	for _, line := range strings.Split(field[13], "\n") {
		if part := strings.Fields(line); len(part) >= 2 && part[len(part)-1] != "obsolete" {
			e.conffiles = append(e.conffiles, conffile{part[0], part[1]})
		}
	}
	return e
}

// resource spells a package as the journal and apt do.
func (v *dpkgView) resource(name, arch string) string {
	if arch == "" || arch == "all" || arch == v.native {
		return name
	}
	return name + ":" + arch
}

// state is a package's state; one that dpkg does not know is not installed.
func (v *dpkgView) state(resource string) Pkg {
	if e := v.packages[resource]; e != nil {
		return e.Pkg
	}
	return absentPkg()
}

const extendedStates = "/var/lib/apt/extended_states"

// readMarks reads which packages apt installed for the sake of others.
func (v *dpkgView) readMarks(h *Host) error {
	f, err := h.openAt(extendedStates)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	name, arch := "", ""
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		switch value = strings.TrimSpace(value); field {
		case "Package":
			name, arch = value, ""
		case "Architecture":
			arch = value
		case "Auto-Installed":
			if e := v.packages[v.resource(name, arch)]; e != nil && value == "1" && e.there() {
				e.Auto = true
			}
		}
	}
	return wrap(lines.Err(), "read", extendedStates)
}

// architectures are the foreign ones that dpkg takes.
func (h *Host) architectures() ([]string, error) {
	f, err := h.openAt("/var/lib/dpkg/arch")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	all := strings.Fields(string(text))
	if len(all) > 0 {
		all = all[1:] // the first is the host's own
	}
	return all, wrap(errors.Join(err, f.Close()), "read", "/var/lib/dpkg/arch")
}

// A BrokenPackagesError says that dpkg was interrupted, or a package could not be
// configured: nothing can be installed or removed before that is settled.
type BrokenPackagesError struct{ Packages []string }

func (e *BrokenPackagesError) Error() string {
	return "dpkg has left packages half done: " + strings.Join(e.Packages, ", ")
}

// Hint says how to settle it.
func (*BrokenPackagesError) Hint() string {
	return "settle them first, with: dpkg --configure -a (and, if that is not enough: apt-get --fix-broken install)"
}

// unfinished says that an interrupted or failed dpkg left a package half done.
func (e *dpkgEntry) unfinished() bool {
	switch e.Status {
	case dpkgInstalled, dpkgConfigFiles, dpkgAbsent, dpkgLeaving, "triggers-awaited", "triggers-pending":
		return false
	}
	return true
}

// broken lists the packages that are half done.
func (v *dpkgView) broken() []string {
	var bad []string
	for resource, e := range v.packages {
		if e.unfinished() {
			bad = append(bad, resource+" ("+e.Triple+")")
		}
	}
	slices.Sort(bad)
	return bad
}

// A relation is one alternative of a dependency, or one thing that is provided.
type relation struct {
	name, op, version string
}

// parseRelations reads a list of dependencies: all of the list, one of each entry.
func parseRelations(field string) [][]relation {
	var all [][]relation
	for _, entry := range strings.Split(field, ",") {
		var any []relation
		for _, alternative := range strings.Split(entry, "|") {
			name, condition, _ := strings.Cut(strings.TrimSpace(alternative), "(")
			name, _, _ = strings.Cut(strings.TrimSpace(name), ":") // an architecture is apt's business
			if name == "" {
				continue
			}
			r := relation{name: name}
			condition = strings.TrimSuffix(strings.TrimSpace(condition), ")")
			r.op = strings.TrimRight(condition[:len(condition)-len(strings.TrimLeft(condition, "<>="))], " ")
			r.version = strings.TrimSpace(condition[len(r.op):])
			any = append(any, r)
		}
		if len(any) > 0 {
			all = append(all, any)
		}
	}
	return all
}

// dpkgDeb looks into a package file. What it unpacks for that lies where a killed run's
// leavings are cleared.
func (h *Host) dpkgDeb(ctx context.Context, args ...string) (Output, error) {
	c := Command{Argv: append([]string{"dpkg-deb"}, args...), Timeout: dpkgTimeout}
	if h.Scratch == "" {
		return h.Do(ctx, c)
	}
	dir, err := h.scratchDir("deb")
	if err != nil {
		return Output{}, err
	}
	c.Env = []string{"TMPDIR=" + dir}
	out, err := h.Do(ctx, c)
	return out, errors.Join(err, os.RemoveAll(dir))
}
