package fake

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A relation is one alternative of a dependency.
type relation struct{ name, op, version string }

func relations(field string) [][]relation {
	var all [][]relation
	for _, entry := range strings.Split(field, ",") {
		var any []relation
		for _, alt := range strings.Split(entry, "|") {
			f := strings.Fields(strings.NewReplacer("(", " ", ")", " ").Replace(alt))
			switch len(f) {
			case 1:
				any = append(any, relation{name: f[0]})
			case 3:
				any = append(any, relation{f[0], f[1], f[2]})
			}
		}
		if len(any) > 0 {
			all = append(all, any)
		}
	}
	return all
}

// Compare orders the plain versions that tests use: numbers with dots.
func Compare(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for n := range max(len(as), len(bs)) {
		var x, y int
		if n < len(as) {
			x, _ = strconv.Atoi(as[n])
		}
		if n < len(bs) {
			y, _ = strconv.Atoi(bs[n])
		}
		if c := cmp.Compare(x, y); c != 0 {
			return c
		}
	}
	return 0
}

func (r relation) holds(version string) bool {
	c := Compare(version, r.version)
	switch r.op {
	case "":
		return true
	case "=":
		return c == 0
	case ">=":
		return c >= 0
	case "<=":
		return c <= 0
	case "<<":
		return c < 0
	case ">>":
		return c > 0
	}
	return false
}

// is says whether a package is, or provides, what a relation names.
func (p *Package) is(r relation) bool {
	if p.Name == r.name && r.holds(p.Version) {
		return true
	}
	for _, any := range relations(p.Provides) {
		if any[0].name == r.name && r.op == "" {
			return true
		}
	}
	return false
}

// A set is a choice of packages, by id.
type set map[string]*Package

func (s set) satisfies(any []relation) bool {
	for _, r := range any {
		for _, p := range s {
			if p.is(r) {
				return true
			}
		}
	}
	return false
}

// candidate is the newest version of a name in the archive.
func (m *Machine) candidate(name string) *Package {
	var best *Package
	for _, p := range m.Archive {
		if m.id(p) == name && (best == nil || Compare(p.Version, best.Version) > 0) {
			best = p
		}
	}
	return best
}

// A solver works out what apt would do.
type solver struct {
	m       *Machine
	next    set
	keep    map[string]bool // asked for by name: stays what it is
	refused map[string]bool // asked away
	brought map[string]bool
	// recommends says that what is recommended comes, too.
	recommends bool
	said       string // why it cannot be
}

// solve brings wanted packages and takes others away.
func (m *Machine) solve(want set, away []string, recommends bool) (set, string) {
	s := &solver{m: m, next: m.installed(), keep: map[string]bool{}, refused: map[string]bool{}, brought: map[string]bool{}, recommends: recommends}
	for _, id := range away {
		delete(s.next, id)
		s.refused[id] = true
	}
	for id, p := range want {
		s.next[id], s.keep[id] = p, true
		if have := m.Packages[id]; !have.there() {
			s.brought[id] = true
		}
	}
	for range 200 {
		if s.said != "" || !s.fix() {
			break
		}
	}
	return s.next, s.said
}

func (m *Machine) installed() set {
	s := set{}
	for id, i := range m.Packages {
		if i.there() {
			s[id] = i.Package
		}
	}
	return s
}

// fix repairs one thing that is wrong; false where nothing is.
func (s *solver) fix() bool {
	for _, id := range slices.Sorted(maps.Keys(s.next)) {
		p := s.next[id]
		for _, any := range relations(p.Conflicts) {
			for _, other := range slices.Sorted(maps.Keys(s.next)) {
				if other == id || !s.next[other].is(any[0]) {
					continue
				}
				s.part(id, other)
				return true
			}
		}
		for _, any := range relations(p.Depends) {
			if !s.next.satisfies(any) {
				s.bring(id, any)
				return true
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.brought)) {
		p := s.next[id]
		if p == nil || !s.recommends {
			continue
		}
		for _, any := range relations(p.Recommends) {
			if s.next.satisfies(any) || s.refused[id+" recommends"] {
				continue
			}
			if c := s.m.candidate(any[0].name); c != nil && s.fits(c) {
				s.next[s.m.id(c)], s.brought[s.m.id(c)] = c, true
				return true
			}
			s.refused[id+" recommends"] = true
		}
	}
	return false
}

// fits says whether a package can come without anything else having to go.
func (s *solver) fits(p *Package) bool {
	if s.refused[s.m.id(p)] || s.next[s.m.id(p)] != nil {
		return false
	}
	for id, other := range s.next {
		for _, any := range relations(p.Conflicts) {
			if other.is(any[0]) {
				return false
			}
		}
		for _, any := range relations(other.Conflicts) {
			if id != s.m.id(p) && p.is(any[0]) {
				return false
			}
		}
	}
	for _, any := range relations(p.Depends) {
		if !s.next.satisfies(any) {
			return false
		}
	}
	return true
}

// part takes one of two packages away that conflict.
func (s *solver) part(id, other string) {
	switch {
	case !s.keep[other] && !s.brought[other]:
		delete(s.next, other)
		s.refused[other] = true
	case !s.keep[id] && !s.brought[id]:
		delete(s.next, id)
		s.refused[id] = true
	default:
		s.said = " " + id + " : Conflicts: " + other
	}
}

// bring satisfies a dependency, or takes the package that has it away.
func (s *solver) bring(id string, any []relation) {
	for _, r := range any {
		var best *Package
		for _, p := range s.m.Archive {
			at := s.m.id(p)
			if !p.is(r) || s.refused[at] || s.keep[at] || p != s.m.candidate(at) && s.next[at] != nil {
				continue
			}
			if best == nil || at == best.Name && Compare(p.Version, best.Version) > 0 {
				best = p
			}
		}
		if best != nil {
			at := s.m.id(best)
			if s.next[at] == nil {
				s.brought[at] = true
			}
			s.next[at] = best
			return
		}
	}
	if s.keep[id] || s.brought[id] {
		s.said = " " + id + " : Depends: " + any[0].name + " but it is not going to be installed"
		return
	}
	delete(s.next, id)
	s.refused[id] = true
}

// unneeded are the packages that apt would remove of its own accord.
func (m *Machine) unneeded(s set, important bool, auto func(id string) bool) []string {
	needed := map[string]bool{}
	var visit func(id string)
	visit = func(id string) {
		if needed[id] {
			return
		}
		needed[id] = true
		all := relations(s[id].Depends)
		if important {
			all = append(all, relations(s[id].Recommends)...)
		}
		for _, any := range all {
			for _, r := range any {
				for _, other := range slices.Sorted(maps.Keys(s)) {
					if s[other].is(r) {
						visit(other)
					}
				}
			}
		}
	}
	for id, p := range s {
		if !auto(id) || p.Essential {
			visit(id)
		}
	}
	var gone []string
	for _, id := range slices.Sorted(maps.Keys(s)) {
		if !needed[id] {
			gone = append(gone, id)
		}
	}
	return gone
}
