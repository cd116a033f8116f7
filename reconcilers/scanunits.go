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
	more, err := s.unitLinks(state, left)
	if err != nil {
		return nil, err
	}
	users, err := s.userLinks()
	return slices.Concat(all, more, users), err
}

// userUnitDir is where an administrator's units for the managers of all users are, and the links
// that enable them.
const userUnitDir = "/etc/systemd/user"

// unitLinksIn are the links in a directory of units, and in the directories in it in which a link
// stands for a want.
func (s *scanner) unitLinksIn(dir string) ([]unitLink, error) {
	names, err := s.w.namesIn(dir)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []unitLink
	for _, name := range names {
		at := path.Join(dir, name)
		n, err := s.w.look(at)
		if err == nil && n.Type == Dir && isWantDir(name) {
			var more []unitLink
			more, err = s.unitLinksIn(at)
			all = append(all, more...)
		}
		if err != nil {
			return nil, err
		}
		if n.Type == Link {
			all = append(all, unitLink{at, n})
		}
	}
	return all, nil
}

// userLinks lists the links for the managers of all users that no package's script made.
func (s *scanner) userLinks() ([]Proposal, error) {
	links, err := s.unitLinksIn(userUnitDir)
	var all []Proposal
	for _, l := range links {
		left, err := s.w.look(strings.Replace(l.Path, userUnitDir, "/var/lib/systemd/deb-systemd-user-helper-enabled", 1))
		if err != nil {
			return nil, err
		}
		if left.Type != Absent || s.owner(l.Path) != "" || s.log.ran(time.Unix(0, l.Node.Mtime)) {
			continue
		}
		why := "enabled for the managers of all users"
		if string(l.Node.Target) == "/dev/null" {
			why = "masked for the managers of all users"
		}
		all = append(all, Proposal{"link", l.Path, why})
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
		if !isWantDir(name) {
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
func (s *scanner) unitLinks(state map[string]string, left map[string]bool) ([]Proposal, error) {
	links, err := s.unitLinksIn(unitDir)
	var all []Proposal
	for _, l := range links {
		if s.shipped[l.Path] != "" || string(l.Node.Target) == "/dev/null" {
			continue
		}
		dir, name := split(l.Path)
		template, instance := templateOf(name)
		switch is := state[name]; {
		case dir == unitDir && name == "default.target":
			all = append(all, Proposal{"link", l.Path, "the host starts into it"})
		case dir == unitDir && is == "linked":
			all = append(all, Proposal{"link", l.Path, "a unit that lies elsewhere"})
		case dir == unitDir: // an alias, made with its unit
		case instance && !left[name]:
			all = append(all, Proposal{"service", name, fmt.Sprintf("an instance of %s, enabled by hand", template)})
		case !instance && !left[name] && is != "alias" && !s.installs(name):
			all = append(all, Proposal{"link", l.Path, "made by hand: the unit does not say how it is enabled"})
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
