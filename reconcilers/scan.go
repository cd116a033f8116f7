package reconcilers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A Proposal is one thing that differs from what the host's packages would have.
type Proposal struct{ Kind, ID, Why string }

// A Part is the proposals for one leaf.
type Part struct {
	Leaf      string
	Proposals []Proposal
}

// Scanned is what a look through a whole host found.
type Scanned struct {
	Parts []Part
	// Notes tell what differs and cannot be proposed, or is not.
	Notes []string
}

// Scan looks through a Debian host for what somebody made of it: packages that were
// installed by hand, files in /etc and /usr/local that no package has, or that were changed
// since, crontabs, and units whose enablement is not their preset. It only reads.
func Scan(ctx context.Context, w *World) (*Scanned, error) {
	if !w.Host.Live() || !w.Host.systemd() {
		return nil, errors.New("scan the host: that needs a Debian host that systemd runs, and no other root")
	}
	own, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("scan the host: %w", err)
	}
	d, err := w.aptDesk(ctx)
	if err != nil {
		return nil, fmt.Errorf("scan the host: %w", err)
	}
	s := &scanner{ctx: ctx, w: w, found: &Scanned{}, golem: own, dpkg: d.real}
	for _, part := range []struct {
		leaf string
		look func() ([]Proposal, error)
	}{
		{"packages", s.packages}, {"files", s.files}, {"crontabs", s.crontabs}, {"services", s.units},
	} {
		found, err := part.look()
		if err != nil {
			return nil, fmt.Errorf("scan the host's %s: %w", part.leaf, err)
		}
		s.found.Parts = append(s.found.Parts, Part{part.leaf, found})
	}
	return s.found, nil
}

type scanner struct {
	ctx   context.Context
	w     *World
	found *Scanned
	golem string // this program's own file
	dpkg  *dpkgView
	// shipped are the paths that packages have, and conffiles the configuration among them.
	shipped   map[string]bool
	conffiles map[string]ownedFile
}

// An ownedFile is a configuration file of a package.
type ownedFile struct{ sum, owner string }

// packages lists those that are marked as installed by hand, but for what every Debian has.
func (s *scanner) packages() ([]Proposal, error) {
	var all []Proposal
	for _, resource := range slices.Sorted(maps.Keys(s.dpkg.packages)) {
		e := s.dpkg.packages[resource]
		if e.there() && !e.Auto && !e.essential && e.priority != "required" && e.priority != "important" {
			all = append(all, Proposal{aptKindName, resource, "installed by hand"})
		}
	}
	return all, nil
}

// files lists what in /etc and /usr/local is not as packages have it.
func (s *scanner) files() ([]Proposal, error) {
	if err := s.readPackages(); err != nil {
		return nil, err
	}
	var all []Proposal
	for _, dir := range []string{"/etc", "/usr/local"} {
		if err := s.walk(dir, &all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// walk looks at every file beneath a directory, in the order of their names.
func (s *scanner) walk(dir string, all *[]Proposal) error {
	names, err := s.w.Host.readDir(dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		p := path.Join(dir, name)
		n, err := s.w.look(p)
		switch {
		case err != nil:
		case n.Type == Dir:
			err = s.walk(p, all)
		default:
			err = s.file(p, n, all)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// selfMade are files in /etc that programs write by themselves: what they are made from is
// declared instead, or nothing.
var selfMade = regexp.MustCompile(`^/etc/(passwd|shadow|group|gshadow|subuid|subgid)-?$|^/etc/(machine-id|mtab|adjtime|ld\.so\.cache|\.pwd\.lock|resolv\.conf|ld\.so\.conf\.d/.*)$|` +
	`^/etc/(alternatives|ssl/certs|rc[0-9S]\.d)/|^/etc/.*\.(dpkg-[a-z]+|ucf-[a-z]+)$|^/etc/(golem)/|^/etc/(ca-certificates\.conf|shells|.*~)$`)

// unitLinks are the links that enabling a unit makes: those of a service glyph.
var unitLinksDir = regexp.MustCompile(`^/etc/systemd/(system|user)/`)

// file adds what is to be proposed of one file, if anything.
func (s *scanner) file(p string, n Node, all *[]Proposal) error {
	owned, conffile := s.conffiles[p]
	if selfMade.MatchString(p) || p == s.golem || s.shipped[p] && !conffile {
		return nil
	}
	why := "no package has it"
	switch {
	case n.Type == Link && unitLinksDir.MatchString(p):
		return nil
	case n.Type == Link && conffile:
		why = "a link, where " + owned.owner + " has a file"
	case n.Type != Link && n.Type != File:
		return nil
	case n.Type == File && conffile:
		if sum, err := s.w.Host.md5(p); err != nil || sum == owned.sum {
			return err
		}
		why = "changed since " + owned.owner + " brought it"
	}
	switch {
	case n.Type == Link:
		*all = append(*all, Proposal{"link", p, why})
	case n.Mode&0o004 == 0:
		s.note("%s (%s): not everybody may read it, so its bytes are not printed; declare it with sensitive = true, from a source", quote(p), why)
	default:
		*all = append(*all, Proposal{"file", p, why})
	}
	return nil
}

func (s *scanner) note(format string, args ...any) {
	s.found.Notes = append(s.found.Notes, fmt.Sprintf(format, args...))
}

// readPackages reads what paths packages have, from dpkg's own lists.
func (s *scanner) readPackages() error {
	s.shipped, s.conffiles = map[string]bool{}, map[string]ownedFile{}
	for _, resource := range slices.Sorted(maps.Keys(s.dpkg.packages)) {
		e := s.dpkg.packages[resource]
		for _, c := range e.conffiles {
			if e.there() {
				s.conffiles[c.path] = ownedFile{c.md5, e.name}
			}
		}
	}
	const info = "/var/lib/dpkg/info"
	names, err := s.w.Host.readDir(info)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".list") {
			continue
		}
		if err := s.readList(path.Join(info, name)); err != nil {
			return err
		}
	}
	for _, p := range slices.Sorted(maps.Keys(s.conffiles)) {
		if n, err := s.w.look(p); err != nil {
			return err
		} else if n.Type == Absent {
			s.note("%s of %s was removed by hand", quote(p), s.conffiles[p].owner)
		}
	}
	return nil
}

// readList reads the paths of one package.
func (s *scanner) readList(list string) error {
	f, err := s.w.Host.openAt(list)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		s.shipped[lines.Text()] = true
	}
	return wrap(lines.Err(), "read", list)
}

// crontabs lists the crontabs of users. They lie where only root reads, and are what they
// are for.
func (s *scanner) crontabs() ([]Proposal, error) {
	const dir = "/var/spool/cron/crontabs"
	names, err := s.w.Host.readDir(dir)
	slices.Sort(names)
	var all []Proposal
	for _, name := range names {
		all = append(all, Proposal{"file", path.Join(dir, name), "the crontab of " + name})
	}
	return all, err
}

// units lists units whose enablement is not their preset, and masked ones.
func (s *scanner) units() ([]Proposal, error) {
	out, err := s.w.Host.Run(s.ctx, lookTime, "systemctl", "list-unit-files", "--no-legend", "--no-pager", "--plain")
	if err != nil {
		return nil, err
	}
	var all []Proposal
	for line := range strings.Lines(string(out.Stdout)) {
		part := strings.Fields(line)
		if len(part) < 2 || strings.Contains(part[0], "@.") {
			continue
		}
		preset := ""
		if len(part) > 2 {
			preset = part[2]
		}
		switch state := part[1]; {
		case state == "masked" && s.w.maskedHere(part[0]):
			all = append(all, Proposal{"service", part[0], "masked"})
		case state == "enabled" && preset == "disabled", state == "disabled" && preset == "enabled":
			all = append(all, Proposal{"service", part[0], state + ", and " + preset + " by its preset"})
		case state == "enabled" && s.own(part[0]):
			all = append(all, Proposal{"service", part[0], "enabled, and of no package"})
		}
	}
	return all, nil
}

// own says whether a unit's file lies where an operator's do, and no package has it.
func (s *scanner) own(unit string) bool {
	p := "/etc/systemd/system/" + unit
	n, err := s.w.look(p)
	return err == nil && n.Type == File && !s.shipped[p]
}
