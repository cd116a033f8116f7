package reconcilers

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"golem/state"
)

// A debControl is what a package file says of itself that a step on it needs to know.
type debControl struct {
	conffiles []string
	postrm    string // its removal script
}

// asked is how the glyphs of the batch say that a package goes which it brings: its own,
// and for one that comes along those that bring it.
func asked(turns []*Turn, e *pkgEffect) string {
	mode := ""
	for _, t := range turns {
		for _, g := range t.Set {
			if e.Own && t.Resource != e.Resource {
				continue
			}
			if m := purgeOf(g); m == purgeTrue || m == purgeFalse && mode == "" {
				mode = m
			}
		}
	}
	return mode
}

// wayBack is how a package that a step brings, and of which there is nothing yet, goes
// again if the step is taken back. Undeclared much later it may hold what others put in
// it since; here it has had no time to, and what its removal script could delete besides
// is what was there before.
func (w *World) wayBack(e *pkgEffect, mode string, c *debControl) (string, error) {
	switch {
	case e.From.Status != dpkgAbsent || !e.To.there():
		return "", nil
	case mode != "" || c == nil:
		return mode, nil
	}
	harmless, err := w.harmless(c.postrm)
	if err != nil || !harmless {
		return "", err
	}
	return purgeTrue, nil
}

var (
	// A path in a script, and what follows it if that makes it many.
	scriptPath = regexp.MustCompile(`(?:^|[^\w.$}*/+-])(/[\w.+/-]*)([$*?\[{]?)`)
	scriptUse  = regexp.MustCompile(`\$\{?([A-Za-z_]\w*)`)
	scriptSet  = regexp.MustCompile("(?m)(?:^|[\\s;])([A-Za-z_]\\w*)=([^`$;]*)(?:$|;)|\\bfor ([A-Za-z_]\\w*) in\\b")
	scriptWord = regexp.MustCompile(`[\w-]+`)
	outsAnyone = regexp.MustCompile(`\b(deluser|userdel|delgroup|groupdel)\b`)
)

// programs are where scripts find what they call: they delete nothing there.
var programs = []string{"/bin", "/sbin", "/lib", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/share", "/dev", "/proc", "/sys", "/run", "/var/lib/dpkg"}

// harmless says whether a removal script, run for a purge, could take nothing that is on
// the host now: all that its own lines name is not there. One that works with what only
// it knows is not harmless.
func (w *World) harmless(script string) (bool, error) {
	own := handwritten(script)
	set := map[string]bool{}
	for _, m := range scriptSet.FindAllStringSubmatch(own, -1) {
		set[m[1]], set[m[3]] = true, true
	}
	for _, m := range scriptUse.FindAllStringSubmatch(own, -1) {
		if !set[m[1]] && !strings.HasPrefix(m[1], "DPKG_") {
			return false, nil
		}
	}
	if outsAnyone.MatchString(own) {
		known := w.Host.names()
		for _, word := range scriptWord.FindAllString(own, -1) {
			if _, user := known.users[word]; user {
				return false, nil
			}
			if _, group := known.groups[word]; group {
				return false, nil
			}
		}
	}
	overridden, err := w.Host.overridden()
	if err != nil {
		return false, err
	}
	for _, path := range scriptPaths(own) {
		if overridden[path] {
			return false, nil
		}
		if slices.ContainsFunc(programs, func(dir string) bool { return path == dir || beneath(path, dir) }) {
			continue
		}
		if free, err := w.free(path); err != nil || !free {
			return false, err
		}
	}
	return true, nil
}

// scriptPaths are the paths that a script names; of one that stands for several, the
// directory that they are in.
func scriptPaths(script string) []string {
	var paths []string
	for _, m := range scriptPath.FindAllStringSubmatch(script, -1) {
		p := m[1]
		if m[2] != "" {
			p = p[:strings.LastIndexByte(p, '/')]
		}
		paths = append(paths, strings.TrimRight(p, "/"))
	}
	return paths
}

// strangers are the files in /etc that a package's removal script takes at a purge and
// that are none of dpkg's: somebody put them there since the package came.
func (w *World) strangers(e *dpkgEntry, effect *pkgEffect) ([]state.Kept, error) {
	if !effect.Purge || e == nil {
		return nil, nil
	}
	script, err := w.Host.script(e, "postrm")
	if err != nil {
		return nil, err
	}
	own := e.conffilesOf()
	var keeps []state.Kept
	for _, dir := range scriptPaths(handwritten(script)) {
		if !beneath(dir, "/etc") {
			continue
		}
		err := w.walk(dir, func(p string) error {
			if slices.Contains(own, p) || strings.HasSuffix(p, besideConffile) {
				return nil
			}
			n, err := w.Host.observe(w.d, p, 0)
			if err == nil && n.Type == File {
				keeps = append(keeps, kept(p, n, "put there since, and purged with "+e.name))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return keeps, nil
}

// walk calls visit with every path at and below one that is no directory; links are not
// followed.
func (w *World) walk(dir string, visit func(p string) error) error {
	at, err := w.resolve(dir, false)
	if err != nil {
		return nil // where golem follows no link, no script of a package's leads
	}
	return filepath.WalkDir(filepath.Join(w.Host.Root, at.real), func(full string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || entry.IsDir():
			return err
		}
		rel, err := filepath.Rel(w.Host.Root, full)
		if err != nil {
			return err
		}
		return visit("/" + rel)
	})
}

// handwritten is a script without comments and what debhelper generated.
func handwritten(script string) string {
	var own []string
	inside := false
	for _, line := range strings.Split(script, "\n") {
		switch trimmed := strings.TrimSpace(line); {
		case strings.HasPrefix(trimmed, generatedStart):
			inside = true
		case strings.HasPrefix(trimmed, generatedEnd):
			inside = false
		case inside, strings.HasPrefix(trimmed, "#"):
		default:
			own = append(own, line)
		}
	}
	return strings.Join(own, "\n")
}

// free says that there is nothing at a path.
func (w *World) free(path string) (bool, error) {
	if path == "" {
		return false, nil
	}
	at, err := w.resolve(path, false)
	if err != nil {
		return false, nil // where golem follows no link, it does not know
	}
	n, err := w.Host.observe(w.d, at.real, 0)
	return n.Type == Absent, err
}

// overridden are the paths for which somebody told dpkg something: another mode, or
// another place.
func (h *Host) overridden() (map[string]bool, error) {
	all := map[string]bool{}
	for _, name := range []string{"/var/lib/dpkg/statoverride", "/var/lib/dpkg/diversions"} {
		f, err := h.openAt(name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(io.LimitReader(f, maxInfo))
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, wrap(err, "read", name)
		}
		for _, line := range strings.Split(string(text), "\n") {
			if at := strings.IndexByte(line, '/'); at >= 0 {
				all[line[at:]] = true
			}
		}
	}
	return all, nil
}
