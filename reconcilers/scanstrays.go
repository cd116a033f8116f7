package reconcilers

import (
	"path"
	"slices"
	"strings"
	"time"
)

// trees are directories of packages' into which somebody puts things of their own all the same.
var trees = []string{
	"/usr/bin", "/usr/sbin", "/usr/lib/systemd/system", "/usr/lib/systemd/user", "/usr/lib/udev/rules.d",
	"/usr/lib/modprobe.d", "/usr/lib/modules-load.d", "/usr/lib/sysctl.d", "/usr/lib/tmpfiles.d", "/usr/share/keyrings",
}

// owner is the package that has a path; "" for none.
func (s *scanner) owner(p string) string {
	if of := s.shipped[p]; of != "" {
		return of
	}
	if bare := strings.TrimPrefix(p, "/usr"); bare != p && s.w.Host.merged(bare) == p {
		return s.shipped[bare]
	}
	return ""
}

// readDiversions reads where files of packages were moved aside to (dpkg-divert(1)), and notes
// those that somebody moved.
func (s *scanner) readDiversions() error {
	s.diverted = map[string]bool{}
	var of []string
	return s.lines("/var/lib/dpkg/diversions", func(line string) { // three lines for each
		if of = append(of, line); len(of) < 3 {
			return
		}
		s.diverted[s.w.Host.merged(of[1])] = true
		if of[2] == ":" {
			s.note("%s is diverted to %s by hand (dpkg-divert --local)", quote(of[0]), quote(of[1]))
		}
		of = nil
	})
}

// strays lists what lies among the files of packages and is none, as far back as dpkg's log goes;
// who may log in without ever doing so; and it notes what lies in /opt and /srv.
func (s *scanner) strays(all *[]Proposal) error {
	for _, dir := range trees {
		names, err := s.w.namesIn(dir)
		if err != nil {
			return err
		}
		slices.Sort(names)
		for _, name := range names {
			if err := s.stray(path.Join(dir, name), all); err != nil {
				return err
			}
		}
	}
	for _, dir := range []string{"/opt", "/srv"} {
		names, err := s.w.namesIn(dir)
		if err != nil {
			return err
		}
		slices.Sort(names)
		for _, name := range names {
			p := path.Join(dir, name)
			if s.owner(p) == "" && s.mine(directoryKind.Name, p) == "" {
				s.note("%s (no package has it): what lies in %s is not looked into; an archive may hold it, or directories and files", quote(p), dir)
			}
		}
	}
	const linger = "/var/lib/systemd/linger"
	names, err := s.w.namesIn(linger)
	slices.Sort(names)
	for _, name := range names {
		*all = append(*all, Proposal{"file", path.Join(linger, name), "units of the user " + name + " run without a login"})
	}
	return err
}

// stray proposes what no package has, and no script of one made.
func (s *scanner) stray(p string, all *[]Proposal) error {
	n, err := s.w.look(p)
	if err != nil || n.Type == Dir || s.diverted[p] || len(s.log.runs) == 0 || n.Type == Link && beneath(string(n.Target), "/etc/alternatives") {
		return err
	}
	st, err := s.w.statOf(p)
	if err != nil {
		return err
	}
	if at := time.Unix(st.Ctim.Unix()); s.copied || at.Before(s.log.runs[0].from) || s.log.ran(at) {
		return nil
	}
	return s.file(p, n, all)
}
