package fake

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Run answers one command. An error is Step's: the command was killed.
func (m *Machine) Run(argv []string, dir string) (Answer, error) {
	a, err := m.run(argv, dir)
	var dead killed
	if errors.As(err, &dead) {
		return a, dead.err
	}
	if reads(argv) {
		return a, err
	}
	return a, errors.Join(err, m.Save())
}

// reads says that a command changes nothing.
func reads(argv []string) bool {
	switch argv[0] {
	case "dpkg-query", "apt-cache", "apt-config", "dpkg-deb":
		return true
	}
	return argv[0] == "apt-get" && (slices.Contains(argv, "-s") || slices.Contains(argv, "download"))
}

func (m *Machine) run(argv []string, dir string) (Answer, error) {
	flags, words := parseArgs(argv[1:])
	switch argv[0] {
	case "dpkg-query":
		return m.query(flags["-f"]), nil
	case "apt-cache":
		return m.cache(words), nil
	case "apt-config":
		return Answer{Out: "APT::NeverAutoRemove \"\";\nAPT::NeverAutoRemove:: \"^kernel-.*\";\n"}, nil
	case "dpkg-deb":
		return inspect(argv), nil
	case "apt-mark":
		m.Runs = append(m.Runs, argv)
		return m.mark(words), nil
	case "dpkg":
		m.Runs = append(m.Runs, argv)
		return m.dpkg(flags, words)
	case "apt-get":
		_, sim := flags["-s"]
		if _, only := flags["--download-only"]; !sim && !only && words[0] != "download" {
			m.Runs = append(m.Runs, argv)
		}
		return m.aptGet(flags, words, dir)
	}
	return Answer{Err: argv[0] + ": not found", Code: 127}, nil
}

// parseArgs splits arguments into flags and words. "-o" and "-f" take one more.
func parseArgs(args []string) (flags map[string]string, words []string) {
	flags = map[string]string{}
	for n := 0; n < len(args); n++ {
		switch a := args[n]; {
		case a == "-f" && n+1 < len(args):
			n++
			flags[a] = args[n]
		case a == "-o" && n+1 < len(args):
			n++
			name, value, _ := strings.Cut(args[n], "=")
			flags[name] = value
		case a == "--":
		case strings.HasPrefix(a, "-"):
			flags[a] = ""
		default:
			words = append(words, a)
		}
	}
	return flags, words
}

func (m *Machine) query(format string) Answer {
	var out strings.Builder
	for _, id := range slices.Sorted(maps.Keys(m.Packages)) {
		i := m.Packages[id]
		want := i.Want
		var conffiles strings.Builder
		for _, p := range slices.Sorted(maps.Keys(i.Shipped)) {
			fmt.Fprintf(&conffiles, "\n %s %s", p, md5Text(i.Shipped[p]))
		}
		version := i.Version
		if i.Status == "not-installed" {
			version = ""
		}
		fields := []string{
			"${Package}", i.Name, "${Architecture}", i.Arch, "${Version}", version, "${Status}", want + " ok " + i.Status,
			"${Essential}", map[bool]string{true: "yes", false: "no"}[i.Essential], "${Provides}", i.Provides,
			"${Depends}", i.Depends, "${Recommends}", i.Recommends, "${Conflicts}", i.Conflicts, "${Conffiles}", conffiles.String(),
			"${Priority}", "optional", "${Protected}", "", "${Pre-Depends}", "", "${Suggests}", "", "${Breaks}", "", `\n`, "\n", `\t`, "\t",
		}
		out.WriteString(strings.NewReplacer(fields...).Replace(format))
	}
	return Answer{Out: out.String()}
}

func (m *Machine) cache(words []string) Answer {
	var out strings.Builder
	switch words[0] {
	case "policy":
		for _, name := range words[1:] {
			m.policy(&out, name)
		}
	case "showpkg":
		fmt.Fprintf(&out, "Package: %s\nVersions: \n\nReverse Provides: \n", words[1])
		for _, p := range m.Archive {
			if p.Name != words[1] && p.is(relation{name: words[1]}) {
				fmt.Fprintf(&out, "%s %s (= )\n", p.Name, p.Version)
			}
		}
	case "show":
		name, version, _ := strings.Cut(words[1], "=")
		for _, p := range m.Archive {
			if m.id(p) == name && p.Version == version {
				out.WriteString(p.stanza("") + "\n")
				return Answer{Out: out.String()}
			}
		}
		return Answer{Err: "E: No packages found", Code: 100}
	}
	return Answer{Out: out.String()}
}

// inspect is dpkg-deb: -I FILE conffiles, and -f FILE.
func inspect(argv []string) Answer {
	p, err := readDeb(argv[2])
	switch {
	case err != nil:
		return Answer{Err: "dpkg-deb: error: " + err.Error(), Code: 2}
	case argv[1] == "-f":
		return Answer{Out: p.stanza("")}
	case argv[3] == "postrm" && p.Postrm != "":
		return Answer{Out: p.Postrm}
	case argv[3] == "postrm" || len(p.Conffiles) == 0:
		return Answer{Err: "dpkg-deb: error: open component '" + argv[3] + "' failed: No such file or directory", Code: 2}
	}
	return Answer{Out: strings.Join(slices.Sorted(maps.Keys(p.Conffiles)), "\n") + "\n"}
}

func (m *Machine) policy(out *strings.Builder, name string) {
	id := m.find(name)
	versions := map[string]bool{}
	for _, p := range m.Archive {
		if m.id(p) == id {
			versions[p.Version] = true
		}
	}
	known := len(versions) > 0
	have := m.Packages[id]
	for _, p := range m.Archive {
		known = known || p.is(relation{name: name})
	}
	if !known && have == nil {
		return
	}
	installed, candidate := "(none)", "(none)"
	all := slices.Collect(maps.Keys(versions))
	if have.there() {
		installed = have.Version
		if !versions[installed] {
			all = append(all, installed)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return Compare(b, a) })
	if len(all) > 0 {
		candidate = all[0]
	}
	fmt.Fprintf(out, "%s:\n  Installed: %s\n  Candidate: %s\n  Version table:\n", name, installed, candidate)
	for _, v := range all {
		mark := "     "
		if v == installed {
			mark = " *** "
		}
		fmt.Fprintf(out, "%s%s 500\n", mark, v)
		if versions[v] {
			out.WriteString("        500 file:/repo ./ Packages\n")
		}
		if v == installed {
			out.WriteString("        100 /var/lib/dpkg/status\n")
		}
	}
}

func (m *Machine) mark(words []string) Answer {
	for _, name := range words[1:] {
		i := m.Packages[m.find(name)]
		if i == nil {
			return Answer{Err: "E: Unable to locate package " + name, Code: 100}
		}
		switch words[0] {
		case "auto":
			i.Auto = true
		case "manual":
			i.Auto = false
		case "hold":
			i.Want = "hold"
		case "unhold":
			if i.Want == "hold" {
				i.Want = map[bool]string{true: "install", false: "deinstall"}[i.there()]
			}
		case "install":
			i.Want = "install"
		}
	}
	return Answer{}
}

const updates = "/var/lib/dpkg/updates/0000"

func (m *Machine) dpkg(flags map[string]string, words []string) (Answer, error) {
	if err := m.drop(updates); err != nil {
		return Answer{}, err
	}
	_, configure := flags["--configure"]
	_, purge := flags["--purge"]
	if configure {
		return m.configureAll()
	}
	ids := map[string]bool{}
	for _, name := range words {
		ids[m.find(name)] = true
	}
	left := m.installed()
	for id := range ids {
		delete(left, id)
	}
	for id, p := range left {
		for _, any := range relations(p.Depends) {
			if m.installed().satisfies(any) && !left.satisfies(any) {
				return Answer{Err: "dpkg: dependency problems prevent removal of what " + id + " needs", Code: 1}, nil
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if m.Packages[id] == nil {
			continue
		}
		if err := m.remove(id, purge); err != nil {
			return Answer{}, err
		}
	}
	return Answer{}, nil
}

func (m *Machine) configureAll() (Answer, error) {
	said := ""
	for again := true; again; {
		again = false
		for _, id := range slices.Sorted(maps.Keys(m.Packages)) {
			i := m.Packages[id]
			if i.Status != "unpacked" && i.Status != "half-configured" {
				continue
			}
			if !m.ready(i.Package) {
				continue
			}
			text, err := m.configure(id)
			if err != nil {
				return Answer{}, err
			}
			if text == "" {
				again = true
			} else {
				said = text
			}
		}
	}
	for id, i := range m.Packages {
		if i.Status == "unpacked" {
			said += "dpkg: dependency problems prevent configuration of " + id + "\n"
		}
	}
	if said != "" {
		return Answer{Err: said, Code: 1}, nil
	}
	return Answer{}, nil
}

func (m *Machine) ready(p *Package) bool {
	for _, any := range relations(p.Depends) {
		if !m.installed().satisfies(any) {
			return false
		}
	}
	return true
}

func md5Text(s string) string { return fmt.Sprintf("%x", md5sum(s)) }

// readDeb reads a package file as the machine writes it.
func readDeb(file string) (*Package, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p := &Package{}
	return p, json.Unmarshal(data, p)
}

func (m *Machine) download(words []string, dir string) (Answer, error) {
	if m.Unreachable {
		return Answer{Err: "E: Failed to fetch file:/repo  Could not resolve host", Code: 100}, nil
	}
	name, version, _ := strings.Cut(words[1], "=")
	for _, p := range m.Archive {
		if m.id(p) == m.find(name) && p.Version == version {
			data, err := json.Marshal(p)
			return Answer{}, errors.Join(err, os.WriteFile(filepath.Join(dir, p.file()), data, 0o644))
		}
	}
	return Answer{Err: fmt.Sprintf("E: Version '%s' for '%s' was not found", version, name), Code: 100}, nil
}

// Cache puts a package's file into apt's cache.
func (m *Machine) Cache(p *Package) error {
	data, err := json.Marshal(p)
	return errors.Join(err, m.write("/var/cache/apt/archives/"+p.file(), string(data)))
}
