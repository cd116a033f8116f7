package reconcilers

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// files lists what in /etc and /usr/local is not as packages have it, and what somebody
// changed of packages' files elsewhere.
func (s *scanner) files() ([]Proposal, error) {
	var all []Proposal
	for _, dir := range []string{"/etc", "/usr/local"} {
		if _, err := s.walk(dir, &all); err != nil {
			return nil, err
		}
	}
	for _, p := range slices.Sorted(maps.Keys(s.conffiles)) {
		if n, err := s.w.look(p); err != nil {
			return nil, err
		} else if n.Type == Absent {
			s.note("%s of %s was removed by hand", quote(p), s.conffiles[p].owner)
		}
	}
	for _, more := range []func(*[]Proposal) error{s.alternatives, s.changedFiles, s.changedDirectories, s.strays} {
		if err := more(&all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// alternatives lists the links that somebody chose (update-alternatives(1)).
func (s *scanner) alternatives(all *[]Proposal) error {
	const dir = "/var/lib/dpkg/alternatives"
	names, err := s.w.namesIn(dir)
	slices.Sort(names)
	for _, name := range names {
		first := true
		err = errors.Join(err, s.lines(path.Join(dir, name), func(line string) {
			if first && line == "manual" {
				*all = append(*all, Proposal{"link", "/etc/alternatives/" + name, "chosen by hand among the alternatives"})
			}
			first = false
		}))
	}
	return err
}

// walk looks at every file beneath a directory, in the order of their names. It says whether
// anything there is proposed, or belongs to a package.
func (s *scanner) walk(dir string, all *[]Proposal) (known bool, err error) {
	names, err := s.w.Host.readDir(dir)
	if err != nil {
		return false, err
	}
	slices.Sort(names)
	for _, name := range names {
		p := path.Join(dir, name)
		n, err := s.w.look(p)
		if err != nil {
			return known, err
		}
		before := len(*all)
		if n.Type == Dir {
			err = s.directory(p, n, all)
		} else {
			err = s.file(p, n, all)
		}
		if err != nil {
			return known, err
		}
		known = known || len(*all) > before || s.owner(p) != "" || s.bulks[p]
	}
	return known, nil
}

// localBase are the directories in /usr/local that every Debian has.
var localBase = regexp.MustCompile(`^/usr/local/(bin|etc|games|include|lib|man|sbin|share|share/man|src)$`)

// versioned are directories that hold the history of others: etckeeper's.
var versioned = []string{"/.git", "/.hg", "/.bzr", "/.svn"}

// maxBeneath is how many proposals one directory that no package has may bring, and
// maxProposed how many bytes one file.
const (
	maxBeneath  = 100
	maxProposed = 64 << 10
)

// directory looks into one, and proposes it where no package has it and nothing else makes it
// as it is.
func (s *scanner) directory(p string, n Node, all *[]Proposal) error {
	if selfMade.MatchString(p+"/") || slices.Contains(versioned, strings.TrimPrefix(p, "/etc")) {
		return nil
	}
	at, notes := len(*all), len(s.found.Notes)
	known, err := s.walk(p, all)
	if more := len(*all) - at; err == nil && more > maxBeneath && s.shipped[p] == "" && !localBase.MatchString(p) {
		*all, s.found.Notes, s.bulks[p] = (*all)[:at], s.found.Notes[:notes], true
		s.note("%s (no package has it): there are %d files, links and directories in it, too many to propose each; an archive may hold them", quote(p), more)
		return nil
	}
	if err != nil || s.shipped[p] != "" || unitLinksDir.MatchString(p+"/") || s.log.ran(time.Unix(0, n.Mtime)) {
		return err
	}
	if localBase.MatchString(p) {
		return nil
	}
	plain := n.Mode == defaultDirMode && n.UID == 0 && n.GID == 0
	if !known || !plain {
		*all = slices.Insert(*all, at, Proposal{"directory", p, "no package has it"})
	}
	return nil
}

// selfMade are files in /etc that programs write by themselves: what they are made from is
// declared instead, or nothing.
var selfMade = regexp.MustCompile(`^/etc/(passwd|shadow|group|gshadow|subuid|subgid)-?$|^/etc/security/opasswd$|` +
	`^/etc/(machine-id|mtab|adjtime|ld\.so\.cache|\.pwd\.lock|\.updated|resolv\.conf|ld\.so\.conf\.d/.*)$|^/etc/ssh/ssh_host_.*_key(\.pub)?$|` +
	`^/etc/(alternatives|ssl/certs|rc[0-9S]\.d|containers/networks)/|^/etc/.*\.(dpkg-[a-z]+|ucf-[a-z]+)$|^/etc/(golem)/|^/etc/(ca-certificates\.conf|shells|.*~)$`)

// unitLinksDir is where the links lie that enabling a unit makes: those of a service glyph.
var unitLinksDir = regexp.MustCompile(`^/etc/systemd/(system|user)/`)

// file adds what is to be proposed of one file, if anything.
func (s *scanner) file(p string, n Node, all *[]Proposal) error {
	owned, conffile := s.conffiles[p]
	if selfMade.MatchString(p) || p == s.golem || s.owner(p) != "" && !conffile {
		return nil
	}
	if n.Type != Link && n.Type != File {
		s.note("%s (no package has it): a pipe, a socket or a device, which golem does not declare", quote(p))
		return nil
	}
	if n.Type == Link && unitLinksDir.MatchString(p) {
		return nil // the services' part
	}
	why := "no package has it"
	switch {
	case conffile && n.Type == Link:
		why = "a link, where " + owned.owner + " has a file"
	case conffile:
		sum, err := s.w.Host.md5(p)
		if err != nil {
			return err
		}
		if why = "changed since " + owned.owner + " brought it"; sum == owned.sum {
			if !s.dressed(p, owned.owner) {
				return nil
			}
			why = fmt.Sprintf("its mode or owner was changed since %s brought it", owned.owner)
		}
	default:
		made, changed, err := s.scripted(p, n)
		if err != nil || made {
			return err
		}
		if changed != "" {
			why = changed
		}
	}
	s.propose(p, n, why, all)
	return nil
}

// propose adds a file or link, or a note where its bytes are not for everybody, or it has been
// proposed by another of its names.
func (s *scanner) propose(p string, n Node, why string, all *[]Proposal) {
	switch {
	case n.Type == Link:
		*all = append(*all, Proposal{"link", p, why})
	case n.Mode&0o004 == 0:
		s.note("%s (%s): not everybody may read it, so its bytes are not printed; declare it with sensitive = true, from a source", quote(p), why)
	case n.Size > maxProposed:
		s.note("%s (%s): its %s are too many for a scroll; copy it beside the scroll, and declare it with a source", quote(p), why, bytesText(n.Size))
	case n.Links > 1:
		s.note("%s (%s): it has other names (hard links)", quote(p), why)
	default:
		*all = append(*all, Proposal{"file", p, why})
	}
}

// scripted says whether a file that no package has is as a script of a package made it: it was
// last written while dpkg ran, it is a copy of a sample in /usr/share, or ucf knows its bytes.
// changed says whose it is, where somebody changed it since.
func (s *scanner) scripted(p string, n Node) (made bool, changed string, err error) {
	if s.log.ran(time.Unix(0, n.Mtime)) {
		return true, "", nil
	}
	if n.Type != File {
		return false, "", nil
	}
	want, known := s.ucf[p]
	samples := s.samples[path.Base(p)]
	if !known && len(samples) == 0 {
		return false, "", nil
	}
	sum, err := s.w.Host.md5(p)
	if err != nil || known && sum == want {
		return err == nil, "", err
	}
	for _, sample := range samples {
		at, err := s.w.look(sample)
		if err != nil || at.Type != File || at.Size != n.Size && at.Size != 0 {
			continue
		}
		if of, err := s.w.Host.md5(sample); err == nil && of == sum {
			return true, "", nil
		}
	}
	if known {
		return false, "changed since a package's script made it", nil
	}
	return false, "", nil
}
