package reconcilers

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// helperState is what deb-systemd-helper remembers of how packages left their units.
const helperState = "/var/lib/systemd/deb-systemd-helper-"

// enablesUnit finds what scripts of packages enable without deb-systemd-helper.
var enablesUnit = regexp.MustCompile(`systemctl [^\n#]*\benable ([^\s|;&"']+)`)

// units lists units that are not enabled as their package left them, masked ones, and links
// among the units that are no unit's own.
func (s *scanner) units() ([]Proposal, error) {
	out, err := s.w.Host.Run(s.ctx, lookTime, "systemctl", "list-unit-files", "--no-legend", "--no-pager", "--plain")
	if err != nil {
		return nil, err
	}
	left, err := s.leftEnabled()
	if err != nil {
		return nil, err
	}
	state := map[string]string{}
	var all []Proposal
	for line := range strings.Lines(string(out.Stdout)) {
		part := strings.Fields(line)
		if len(part) < 2 {
			continue
		}
		unit, is := part[0], part[1]
		state[unit] = is
		if strings.Contains(unit, "@.") {
			continue
		}
		switch {
		case is == "masked" && s.w.maskedHere(unit) && !s.maskedByPackage(unit):
			all = append(all, Proposal{"service", unit, "masked"})
		case is == "enabled" && s.own(unit):
			all = append(all, Proposal{"service", unit, "enabled, and of no package"})
		case is == "enabled" && !left[unit] && s.installs(unit):
			all = append(all, Proposal{"service", unit, "enabled, and not by its package"})
		case is == "disabled" && left[unit]:
			all = append(all, Proposal{"service", unit, "disabled, and enabled by its package"})
		}
	}
	more, err := s.unitLinks(unitDir, state, left)
	if err != nil {
		return nil, err
	}
	users, err := s.userLinks(userUnitDir)
	return slices.Concat(all, more, users), err
}

// userUnitDir is where an administrator's units for the managers of all users are, and the links
// that enable them.
const userUnitDir = "/etc/systemd/user"

// userLinks lists the links there that no package's script made.
func (s *scanner) userLinks(dir string) ([]Proposal, error) {
	names, err := s.w.namesIn(dir)
	slices.Sort(names)
	var all []Proposal
	for _, name := range names {
		p := path.Join(dir, name)
		n, err := s.w.look(p)
		if err != nil {
			return nil, err
		}
		left, err := s.w.look(strings.Replace(p, userUnitDir, "/var/lib/systemd/deb-systemd-user-helper-enabled", 1))
		if err != nil {
			return nil, err
		}
		if n.Type == Dir && isWantsDir(name) {
			more, err := s.userLinks(p)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
		if n.Type == Link && left.Type == Absent && s.owner(p) == "" && !s.log.ran(time.Unix(0, n.Mtime)) {
			why := "enabled for the managers of all users"
			if string(n.Target) == "/dev/null" {
				why = "masked for the managers of all users"
			}
			all = append(all, Proposal{"link", p, why})
		}
	}
	return all, err
}

// leftEnabled are the units that packages enabled when they were installed.
func (s *scanner) leftEnabled() (map[string]bool, error) {
	left := map[string]bool{}
	for _, script := range s.scripts {
		for _, m := range enablesUnit.FindAllStringSubmatch(script, -1) {
			left[m[1]] = true
		}
	}
	dir := helperState + "enabled"
	names, err := s.w.namesIn(dir)
	for _, name := range names {
		if !isWantsDir(name) {
			continue
		}
		units, err := s.w.namesIn(path.Join(dir, name))
		if err != nil {
			return nil, err
		}
		for _, unit := range units {
			left[unit] = true
		}
	}
	return left, err
}

// namesIn are the names in a directory; none where there is none.
func (w *World) namesIn(dir string) ([]string, error) {
	if n, err := w.look(dir); err != nil || n.Type != Dir {
		return nil, err
	}
	return w.Host.readDir(dir)
}

func isWantsDir(name string) bool {
	return strings.HasSuffix(name, ".wants") || strings.HasSuffix(name, ".requires") || strings.HasSuffix(name, ".upholds")
}

// maskedByPackage says that a package which is gone but for its configuration left its unit
// masked.
func (s *scanner) maskedByPackage(unit string) bool {
	n, err := s.w.look(helperState + "masked/" + unit)
	return err == nil && n.Type != Absent
}

// own says whether a unit's file lies where an operator's do, and no package has it.
func (s *scanner) own(unit string) bool {
	p := path.Join(unitDir, unit)
	n, err := s.w.look(p)
	return err == nil && n.Type == File && s.shipped[p] == ""
}

// installs says whether a unit's file says how it is enabled.
func (s *scanner) installs(unit string) bool {
	found := false
	for _, dir := range []string{unitDir, "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"} {
		p := path.Join(dir, unit)
		if n, err := s.w.look(p); found || err != nil || n.Type != File {
			continue
		}
		err := s.lines(p, func(line string) { found = found || strings.TrimSpace(line) == "[Install]" })
		if err != nil {
			return true // what cannot be read is systemd's to say
		}
	}
	return found
}

// unitLinks lists the links beneath a directory of units that no enabling made: the default
// target, units that lie elsewhere, and what is wanted though it has no [Install] section; and
// instances that somebody enabled.
func (s *scanner) unitLinks(dir string, state map[string]string, left map[string]bool) ([]Proposal, error) {
	names, err := s.w.namesIn(dir)
	slices.Sort(names)
	var all []Proposal
	for _, name := range names {
		p := path.Join(dir, name)
		n, err := s.w.look(p)
		if err != nil {
			return nil, err
		}
		if n.Type == Dir && isWantsDir(name) {
			more, err := s.unitLinks(p, state, left)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
		if n.Type != Link || s.shipped[p] != "" || string(n.Target) == "/dev/null" {
			continue
		}
		is := state[name]
		template, instance := templateOf(name)
		switch {
		case dir == unitDir && name == "default.target":
			all = append(all, Proposal{"link", p, "the host starts into it"})
		case dir == unitDir && is == "linked":
			all = append(all, Proposal{"link", p, "a unit that lies elsewhere"})
		case dir == unitDir: // an alias, made with its unit
		case instance && !left[name]:
			all = append(all, Proposal{"service", name, fmt.Sprintf("an instance of %s, enabled by hand", template)})
		case !instance && !left[name] && is != "alias" && !s.installs(name):
			all = append(all, Proposal{"link", p, "made by hand: the unit does not say how it is enabled"})
		}
	}
	return all, err
}

// templateOf is the template that a unit is an instance of.
func templateOf(unit string) (template string, instance bool) {
	name, kind, _ := cutLast(unit, '.')
	prefix, of, ok := strings.Cut(name, "@")
	return prefix + "@." + kind, ok && of != ""
}
