package reconcilers

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

const dpkgInfo = "/var/lib/dpkg/info"

// read reads what dpkg and the tools around it know of the host.
func (s *scanner) read() error {
	if err := s.readPackages(); err != nil {
		return err
	}
	var err error
	if s.log, err = s.readLog(); err != nil {
		return err
	}
	if err := s.readDiversions(); err != nil {
		return err
	}
	s.findTouched()
	s.ucf = map[string]string{}
	return s.lines("/var/lib/ucf/hashfile", func(line string) {
		if sum, file, ok := strings.Cut(line, "  "); ok {
			s.ucf[file] = sum
		}
	})
}

// readPackages reads what paths packages have, from dpkg's own lists, and what they run.
func (s *scanner) readPackages() error {
	s.shipped, s.conffiles, s.samples = map[string]string{}, map[string]ownedFile{}, map[string][]string{}
	s.unpacked = map[string]time.Time{}
	for _, resource := range slices.Sorted(maps.Keys(s.dpkg.packages)) {
		e := s.dpkg.packages[resource]
		for _, c := range e.conffiles {
			if e.there() {
				s.conffiles[c.path] = ownedFile{c.md5, e.name}
			}
		}
	}
	names, err := s.w.Host.readDir(dpkgInfo)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		switch of, what, _ := cutLast(name, '.'); what {
		case "list":
			if n, err := s.w.lstat(path.Join(dpkgInfo, name)); err == nil {
				plain, arch, _ := strings.Cut(of, ":") // the architecture is told where there may be several
				s.unpacked[s.dpkg.resource(plain, arch)] = time.Unix(0, n.Mtime)
			}
			err = s.lines(path.Join(dpkgInfo, name), func(p string) {
				s.shipped[p] = of
				if strings.HasPrefix(p, "/usr/share/") {
					s.samples[path.Base(p)] = append(s.samples[path.Base(p)], p)
				}
			})
		case "postinst", "preinst", "config":
			var script strings.Builder
			err = s.lines(path.Join(dpkgInfo, name), func(line string) {
				if !strings.HasPrefix(strings.TrimSpace(line), "#") {
					script.WriteString(line + "\n")
				}
			})
			s.scripts = append(s.scripts, script.String())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func cutLast(text string, sep byte) (before, after string, found bool) {
	at := strings.LastIndexByte(text, sep)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+1:], true
}

// lines reads a file line by line, a log that was rotated away and packed too. One that is
// not there has none.
func (s *scanner) lines(file string, take func(line string)) error {
	f, err := s.w.Host.openAt(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasPrefix(file, "/var/log/") && strings.HasSuffix(file, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return wrap(err, "read", file)
		}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 4<<20) // apt's history has a run's packages in one line
	for lines.Scan() {
		take(string(bytes.ToValidUTF8(lines.Bytes(), []byte("?"))))
	}
	return wrap(lines.Err(), "read", file)
}

// rotated is what logrotate(8) adds to a log's name.
var rotated = regexp.MustCompile(`^\.[0-9]+(\.gz)?$`)

// logLines reads a log line by line. It only helps to tell what scripts made: one that cannot be
// read to its end is noted.
func (s *scanner) logLines(file string, take func(line string)) {
	if err := s.lines(file, take); err != nil {
		s.note("%v: what was changed by hand may be told less well", err)
	}
}

// logs are a log and those of it that were rotated away.
func (s *scanner) logs(file string) ([]string, error) {
	dir, name := path.Split(file)
	names, err := s.w.Host.readDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []string
	for _, n := range names {
		if n == name || rotated.MatchString(strings.TrimPrefix(n, name)) && strings.HasPrefix(n, name) {
			all = append(all, path.Join(dir, n))
		}
	}
	return all, nil
}

// askedOfApt are the packages that somebody named to apt, as far as its history goes back.
func (s *scanner) askedOfApt() (map[string]bool, error) {
	asked := map[string]bool{}
	files, err := s.logs("/var/log/apt/history.log")
	for _, file := range files {
		s.logLines(file, func(line string) {
			list, ok := strings.CutPrefix(line, "Install: ")
			if !ok {
				return
			}
			for _, one := range strings.Split(list, "), ") {
				name, version, _ := strings.Cut(one, " (")
				if name, arch, _ := strings.Cut(name, ":"); !strings.Contains(version, ", automatic") {
					asked[s.dpkg.resource(name, arch)] = true
				}
			}
		})
	}
	return asked, err
}
