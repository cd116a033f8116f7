package fake

import (
	"crypto/md5"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

func md5sum(s string) [md5.Size]byte { return md5.Sum([]byte(s)) }

// A request is what one apt-get is asked to do.
type request struct {
	m     *Machine
	flags map[string]string
	want  set
	away  []string
	named []string // installed by name, and so by hand
	purge map[string]bool
	files map[string]string // given as files
}

func (r *request) has(flag string) bool { _, ok := r.flags[flag]; return ok }

func (m *Machine) aptGet(flags map[string]string, words []string, dir string) (Answer, error) {
	switch words[0] {
	case "update":
		if m.Unreachable {
			return Answer{Err: "E: Failed to fetch file:/repo/Packages  Could not resolve host", Code: 100}, nil
		}
		if m.Next != nil {
			m.Archive, m.Next = m.Next, nil
		}
		return Answer{}, nil
	case "download":
		return m.download(words, dir)
	}
	if file := flags["Dir::State::status"]; file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return Answer{Err: "E: " + err.Error(), Code: 100}, nil
		}
		m = &Machine{Root: m.Root, Native: m.Native, Archive: m.Archive, Packages: readStatus(string(text))}
	}
	r := &request{m: m, flags: flags, want: set{}, purge: map[string]bool{}, files: map[string]string{}}
	for _, word := range words[1:] {
		if a := r.word(words[0], word); a.Code != 0 {
			return a, nil
		}
	}
	return r.act(words[0])
}

// word takes one argument.
func (r *request) word(verb, word string) Answer {
	m := r.m
	if strings.HasPrefix(word, "/") {
		p, err := readDeb(word)
		if err != nil {
			return Answer{Err: "E: Unsupported file " + word, Code: 100}
		}
		r.want[m.id(p)], r.files[m.id(p)] = p, word
		r.named = append(r.named, m.id(p))
		return Answer{}
	}
	name, version, pinned := strings.Cut(word, "=")
	id := m.find(name)
	known := m.Packages[id] != nil || m.candidate(id) != nil
	if bare := strings.TrimSuffix(id, "-"); !known && bare != id || verb == "remove" || verb == "purge" {
		if m.Packages[bare] == nil && m.candidate(bare) == nil {
			return Answer{Err: "E: Unable to locate package " + bare, Code: 100}
		}
		r.away = append(r.away, bare)
		r.purge[bare] = verb == "purge"
		return Answer{}
	}
	p := m.candidate(id)
	if have := m.Packages[id]; have.there() && (p == nil || Compare(have.Version, p.Version) >= 0) {
		p = have.Package
	}
	if pinned {
		p = nil
		for _, q := range m.Archive {
			if m.id(q) == id && q.Version == version {
				p = q
			}
		}
		if have := m.Packages[id]; have.there() && have.Version == version {
			p = have.Package
		}
		if p == nil {
			return Answer{Err: fmt.Sprintf("E: Version '%s' for '%s' was not found", version, name), Code: 100}
		}
	}
	if p == nil {
		return Answer{Err: "E: Unable to locate package " + name, Code: 100}
	}
	r.want[id] = p
	r.named = append(r.named, id)
	return Answer{}
}

// act works the transaction out, and does it unless it is only asked for.
func (r *request) act(verb string) (Answer, error) {
	m := r.m
	next, said := m.solve(r.want, r.away, !r.has("--no-install-recommends"))
	if said != "" {
		return Answer{Out: "The following packages have unmet dependencies:\n" + said + "\n", Err: "E: Unable to correct problems, you have held broken packages.", Code: 100}, nil
	}
	auto, err := r.marks()
	if err != nil {
		return Answer{}, err
	}
	if r.has("--auto-remove") || verb == "autoremove" {
		for _, id := range m.unneeded(next, r.flags["APT::AutoRemove::RecommendsImportant"] != "false", func(id string) bool {
			return auto[id] && !slices.Contains(r.named, id) || !m.Packages[id].there() && !slices.Contains(r.named, id)
		}) {
			delete(next, id)
		}
	}
	brings, takes := r.difference(next)
	if a := r.refuse(brings, takes, next); a.Code != 0 {
		return a, nil
	}
	if r.has("-s") {
		return Answer{Out: r.simulated(brings, takes, next)}, nil
	}
	if m.Unreachable {
		for _, id := range brings {
			if _, err := os.Stat(m.path("/var/cache/apt/archives/" + next[id].file())); err != nil && r.files[id] == "" {
				return Answer{Err: "E: Failed to fetch " + next[id].file(), Code: 100}, nil
			}
		}
	}
	for _, id := range brings {
		if err := m.Cache(next[id]); err != nil {
			return Answer{}, err
		}
	}
	if r.has("--download-only") {
		return Answer{}, nil
	}
	return r.run(brings, takes, next)
}

// marks are the marks that count: those on the host, or those in a file.
func (r *request) marks() (map[string]bool, error) {
	auto := map[string]bool{}
	file, other := r.flags["Dir::State::extended_states"]
	if !other {
		for id, i := range r.m.Packages {
			auto[id] = i.Auto
		}
		return auto, nil
	}
	text, err := os.ReadFile(file)
	for _, stanza := range strings.Split(string(text), "\n\n") {
		name := ""
		for _, line := range strings.Split(stanza, "\n") {
			if n, ok := strings.CutPrefix(line, "Package: "); ok {
				name = n
			}
			if a, ok := strings.CutPrefix(line, "Architecture: "); ok && a != r.m.Native {
				name += ":" + a
			}
			auto[name] = auto[name] || line == "Auto-Installed: 1"
		}
	}
	return auto, err
}

// difference lists what comes, or comes in another version, and what goes.
func (r *request) difference(next set) (brings, takes []string) {
	now := r.m.installed()
	for _, id := range slices.Sorted(maps.Keys(next)) {
		if now[id] == nil || now[id].Version != next[id].Version {
			brings = append(brings, id)
		}
	}
	return brings, now.without(next)
}

// without lists what is not in another set, what needs another before that, as apt has
// dpkg remove it.
func (s set) without(next set) []string {
	var takes []string
	seen := map[string]bool{}
	var visit func(id string)
	visit = func(id string) {
		if seen[id] || next[id] != nil {
			return
		}
		seen[id] = true
		for _, who := range slices.Sorted(maps.Keys(s)) {
			for _, any := range relations(s[who].Depends) {
				if slices.ContainsFunc(any, s[id].is) {
					visit(who)
				}
			}
		}
		takes = append(takes, id)
	}
	for _, id := range slices.Sorted(maps.Keys(s)) {
		visit(id)
	}
	return takes
}

func (r *request) refuse(brings, takes []string, next set) Answer {
	refuse := func(text string) Answer { return Answer{Err: "E: " + text, Code: 100} }
	m := r.m
	for _, id := range slices.Concat(brings, takes) {
		i := m.Packages[id]
		switch {
		case i == nil:
		case i.Want == "hold" && !r.has("--allow-change-held-packages"):
			return refuse("Held packages were changed and -y was used without --allow-change-held-packages.")
		case next[id] == nil && i.Essential && !r.has("--allow-remove-essential"):
			return refuse("Essential packages were removed and -y was used without --allow-remove-essential.")
		case next[id] != nil && i.there() && Compare(next[id].Version, i.Version) < 0 && !r.has("--allow-downgrades"):
			return refuse("Packages were downgraded and -y was used without --allow-downgrades.")
		}
	}
	if len(takes) > 0 && r.has("--no-remove") {
		return refuse("Packages need to be removed but remove is disabled.")
	}
	return Answer{}
}

func (r *request) simulated(brings, takes []string, next set) string {
	var out strings.Builder
	for _, id := range takes {
		fmt.Fprintf(&out, "%s %s [%s]\n", map[bool]string{true: "Purg", false: "Remv"}[r.purge[id]], id, r.m.Packages[id].Version)
	}
	for _, id := range brings {
		old := ""
		if i := r.m.Packages[id]; i.there() {
			old = " [" + i.Version + "]"
		}
		fmt.Fprintf(&out, "Inst %s%s (%s localhost [%s])\n", id, old, next[id].Version, next[id].Arch)
	}
	return out.String()
}

// run does the transaction: unpacked and taken away one by one, then configured.
func (r *request) run(brings, takes []string, next set) (Answer, error) {
	m := r.m
	if m.Deny != "" {
		return Answer{Err: m.Deny + "\nE: Problem executing scripts DPkg::Pre-Install-Pkgs", Code: 100}, nil
	}
	if _, err := os.Stat(m.path(updates)); err == nil {
		return Answer{Err: "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem.", Code: 100}, nil
	}
	for id, i := range m.Packages {
		if i.unfinished() && !slices.Contains(r.away, id) && r.want[id] == nil && !r.has("--fix-broken") {
			return Answer{Err: "E: Unmet dependencies. Try 'apt --fix-broken install' with no packages (or specify a solution).", Code: 100}, nil
		}
	}
	auto := map[string]bool{}
	for _, id := range brings {
		i := m.Packages[id]
		auto[id] = !slices.Contains(r.named, id) && (!i.there() || i.Auto)
	}
	if err := m.write(updates, ""); err != nil {
		return Answer{}, err
	}
	for _, id := range takes {
		if err := m.remove(id, r.purge[id]); err != nil {
			return Answer{}, err
		}
	}
	for _, id := range r.away {
		if i := m.Packages[id]; i != nil && i.Status != "not-installed" && r.purge[id] {
			if err := m.remove(id, true); err != nil {
				return Answer{}, err
			}
		}
	}
	for _, id := range brings {
		if err := m.unpack(id, next[id]); err != nil {
			return Answer{}, err
		}
		m.Packages[id].Auto = auto[id]
	}
	for _, id := range r.named {
		m.Packages[id].Auto = false
	}
	a, err := m.configureAll()
	if err != nil {
		return a, err
	}
	if a.Code != 0 {
		a.Err += "E: Sub-process /usr/bin/dpkg returned an error code (1)"
		a.Code = 100
	}
	return a, errors.Join(m.drop(updates), m.step("end"))
}
