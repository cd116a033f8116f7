package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golem/scrolls"
	"golem/state"
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
// installed by hand or are held, users, groups and memberships that no package made, files in
// /etc and /usr/local that no package has, files of packages that were changed since, crontabs,
// and units that are not enabled as their package left them. It only reads. What golem has in
// force, applied, is left out.
func Scan(ctx context.Context, w *World, applied []state.Applied) (*Scanned, error) {
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
	mine := inForceOn(w, applied)
	s := &scanner{ctx: ctx, w: w, found: &Scanned{}, golem: own, dpkg: d.real, mine: mine, bulks: map[string]bool{}}
	if err := s.read(); err != nil {
		return nil, fmt.Errorf("scan the host: %w", err)
	}
	for _, part := range []struct {
		leaf string
		look func() ([]Proposal, error)
	}{
		{"packages", s.packages}, {"accounts", s.accounts}, {"files", s.files}, {"crontabs", s.crontabs}, {"services", s.units}, {"containers", s.containers},
	} {
		found, err := part.look()
		if err != nil {
			return nil, fmt.Errorf("scan the host's %s: %w", part.leaf, err)
		}
		found = slices.DeleteFunc(found, func(p Proposal) bool { return mine(p.Kind, p.ID) != "" })
		s.found.Parts = append(s.found.Parts, Part{part.leaf, found})
	}
	return s.found, nil
}

// inForceOn says of a thing that a scan came upon which key in force has it: by its path, or
// by its kind and id; "" for none.
func inForceOn(w *World, applied []state.Applied) func(kind, id string) string {
	paths, keys := map[string]string{}, map[scrolls.Key]bool{}
	for _, was := range applied {
		keys[was.Key] = true
		if was.Sort == PathSort {
			paths[was.Resource] = string(was.Key)
		}
		for _, p := range Keeps(w, was.Resource, was.Glyph) {
			paths[p] = string(was.Key)
		}
	}
	return func(kind, id string) string {
		if by := paths[id]; by != "" {
			return by
		}
		if by := paths[unitDir+"/"+id]; kind == serviceKind.Name && by != "" {
			return by
		}
		if key := scrolls.MakeKey(kind, strings.Split(id, ":")...); keys[key] {
			return string(key)
		}
		return ""
	}
}

// A scanner is one look through a host.
type scanner struct {
	ctx   context.Context
	w     *World
	found *Scanned
	golem string // this program's own file
	dpkg  *dpkgView
	mine  func(kind, id string) string
	log   *dpkgLog
	// shipped are the paths that packages have, each with its package, and conffiles the
	// configuration among them.
	shipped   map[string]string
	conffiles map[string]ownedFile
	// samples are the files in /usr/share by their last name: scripts of packages copy them.
	samples map[string][]string
	scripts []string // what packages run when they are configured, each without its comments
	ucf     map[string]string
	bulks   map[string]bool // directories that hold too much to propose each
	// unpacked is when each package was last unpacked, by its resource.
	unpacked map[string]time.Time
	// touched are packages' files outside of /etc that were changed in any way since dpkg was done
	// with them. Where that is so of too many for somebody's hands, this host was copied, and
	// its times say nothing.
	touched  []string
	copied   bool
	diverted map[string]bool // where files of packages were moved aside to
}

// An ownedFile is a configuration file of a package.
type ownedFile struct{ sum, owner string }

func (s *scanner) note(format string, args ...any) {
	s.found.Notes = append(s.found.Notes, fmt.Sprintf(format, args...))
}

// packages lists those that somebody installed, but for what every Debian has, and those that
// are held. Where an installer marked all of them as installed by hand, what others need is
// none of somebody's, unless apt's history names it.
func (s *scanner) packages() ([]Proposal, error) {
	needed := map[string]bool{}
	for _, e := range s.dpkg.packages {
		if !e.there() {
			continue
		}
		for _, any := range slices.Concat(e.depends, e.recommends) {
			for _, r := range any {
				if r.name != e.name {
					needed[r.name] = true
				}
			}
		}
	}
	asked, err := s.askedOfApt()
	if err != nil {
		return nil, err
	}
	foreign, err := s.w.Host.architectures()
	if err != nil {
		return nil, err
	}
	if len(foreign) > 0 {
		s.note("dpkg also takes packages of the architecture %s (dpkg --add-architecture)", sentence(foreign))
	}
	var all []Proposal
	for _, resource := range slices.Sorted(maps.Keys(s.dpkg.packages)) {
		e := s.dpkg.packages[resource]
		base := e.essential || e.priority == "required" || e.priority == "important"
		switch {
		case !e.there():
		case e.Hold:
			all = append(all, Proposal{aptKindName, resource, "held"})
		case e.Auto || base:
		case asked[resource]:
			all = append(all, Proposal{aptKindName, resource, "installed by hand"})
		case !s.neededBy(e, needed):
			all = append(all, Proposal{aptKindName, resource, "installed by hand, and no package needs it"})
		}
	}
	return all, nil
}

// neededBy says whether another package may need this one, or what it provides.
func (*scanner) neededBy(e *dpkgEntry, needed map[string]bool) bool {
	return needed[e.name] || slices.ContainsFunc(e.provides, func(r relation) bool { return needed[r.name] })
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
