package reconcilers

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// fewTouched is the most files of packages that somebody is taken to have changed: where it
// is more than this part of all, the host was copied, and its times say nothing.
const fewTouched = 0.02

// findTouched finds the files of packages outside of /etc that somebody changed since dpkg was
// done with them.
func (s *scanner) findTouched() {
	for _, p := range slices.Sorted(maps.Keys(s.shipped)) {
		if strings.HasPrefix(p, "/etc/") || p == "/." {
			continue
		}
		real := s.w.Host.merged(p)
		if n, err := s.w.lstat(real); err == nil && n.Type == File && s.dressed(real, s.shipped[p]) {
			s.touched = append(s.touched, p)
		}
	}
	if n := len(s.touched); float64(n) > fewTouched*float64(len(s.shipped)) {
		s.touched, s.copied = nil, true
		s.note("%d files of packages are younger than dpkg's last work on them: this host was copied, and what was changed of them but their bytes is not told", n)
	}
}

// dressed says whether mode, owner or anything else of a package's file but its bytes was
// changed since dpkg was done with it, as far as its log goes back.
func (s *scanner) dressed(p, resource string) bool {
	name, arch, _ := strings.Cut(resource, ":") // dpkg's lists say the architecture where there may be several
	done, ok := s.log.done[s.dpkg.resource(name, arch)]
	if !ok || s.copied {
		return false
	}
	st, err := s.w.statOf(p)
	if err != nil {
		return false
	}
	at := time.Unix(st.Ctim.Unix())
	return at.After(done.Add(time.Second)) && !s.log.ran(at)
}

// statOf is stat(2) of a path, which knows when a file was last changed in any way.
func (w *World) statOf(p string) (st unix.Stat_t, err error) {
	dir, name := split(p)
	fd, err := w.d.fd(dir)
	if err == nil {
		err = unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	return st, err
}

// changedFiles proposes the files that were touched: their bytes, by dpkg's sums, or it notes
// that only mode, owner or what else a file has were changed.
func (s *scanner) changedFiles(all *[]Proposal) error {
	sums := map[string]map[string]string{}
	for _, p := range s.touched {
		owner := s.shipped[p]
		if sums[owner] == nil {
			sums[owner] = map[string]string{}
			err := s.lines(path.Join(dpkgInfo, owner+".md5sums"), func(line string) {
				if sum, file, ok := strings.Cut(line, "  "); ok {
					sums[owner]["/"+file] = sum
				}
			})
			if err != nil {
				return err
			}
		}
		real := s.w.Host.merged(p)
		sum, err := s.w.Host.md5(real)
		if err != nil {
			return err
		}
		n, err := s.w.Host.observe(s.w.d, real, 0)
		if err != nil {
			return err
		}
		if want := sums[owner][p]; want == "" || want == sum {
			s.note("%s of %s: %s", quote(real), owner, s.dress(n))
			continue
		}
		s.propose(real, n, "changed since "+owner+" brought it", all)
	}
	return nil
}

// dress tells what may have been changed of a file or directory but its bytes.
func (s *scanner) dress(n Node) string {
	more := ""
	if names := slices.Sorted(maps.Keys(n.Xattrs)); len(names) > 0 {
		more = ", with " + sentence(names)
	}
	return fmt.Sprintf("its mode, owner or attributes were changed, it is %04o %s:%s%s now", n.Mode, s.w.Host.userName(n.UID), s.w.Host.groupName(n.GID), more)
}

// programsOwn are the directories whose mode and owner services set by themselves.
var programsOwn = regexp.MustCompile(`^/(dev|proc|run|sys|tmp|var/(cache|lib|log|run|tmp))(/|$)`)

// changedDirectories proposes the directories of packages whose mode or owner was changed after
// what is in them was.
func (s *scanner) changedDirectories(all *[]Proposal) error {
	kept, err := s.tmpfiles()
	if err != nil {
		return err
	}
	for _, p := range slices.Sorted(maps.Keys(s.shipped)) {
		if programsOwn.MatchString(p) || kept[p] || s.w.Host.merged(p) != p || p == "/." {
			continue
		}
		if n, err := s.w.look(p); err != nil || n.Type != Dir || !s.dressed(p, s.shipped[p]) {
			continue
		}
		if st, err := s.w.statOf(p); err != nil || st.Ctim == st.Mtim {
			continue
		}
		n, err := s.w.Host.observe(s.w.d, p, 0)
		if err != nil {
			return err
		}
		if n.Mode == defaultDirMode && n.UID == 0 && n.GID == 0 && len(n.Xattrs) == 0 {
			continue // as packages have nearly all of them: something else was changed
		}
		if protected[p] {
			s.note("%s of %s: %s", quote(p), s.shipped[p], s.dress(n))
			continue
		}
		*all = append(*all, Proposal{"directory", p, "its mode, owner or attributes were changed since " + s.shipped[p] + " brought it"})
	}
	return nil
}

// tmpfiles are the paths that systemd-tmpfiles(8) sees to at each boot.
func (s *scanner) tmpfiles() (map[string]bool, error) {
	kept := map[string]bool{}
	for _, dir := range []string{"/usr/lib/tmpfiles.d", "/etc/tmpfiles.d"} {
		names, err := s.w.namesIn(dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			err := s.lines(path.Join(dir, name), func(line string) {
				if part := strings.Fields(line); len(part) > 1 {
					kept[part[1]] = true
				}
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return kept, nil
}

// merged is where a path of a package really lies on a host whose /bin, /sbin and /lib lead
// into /usr.
func (h *Host) merged(p string) string {
	for _, dir := range []string{"/bin/", "/sbin/", "/lib/", "/lib64/", "/lib32/", "/libx32/"} {
		if strings.HasPrefix(p, dir) {
			return "/usr" + p
		}
	}
	return p
}
