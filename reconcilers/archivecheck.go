package reconcilers

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// cleanEntry is an entry's name without what changes nothing, or why it is none that
// golem unpacks.
func cleanEntry(name string) (clean, why string) {
	if strings.HasPrefix(name, "/") {
		return "", "is an absolute name"
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", "holds a control character"
	}
	parts := strings.Split(name, "/")
	for _, part := range parts {
		switch {
		case part == "..":
			return "", "leads out of the directory"
		case len(part) > 255:
			return "", "is longer than a file's name can be"
		}
	}
	clean = path.Clean(name)
	if len(clean) > 3000 {
		return "", "is longer than a path can be"
	}
	if clean == "." {
		clean = ""
	}
	return clean, ""
}

// want notes an entry that is to be unpacked.
func (l *lister) want(name, rel string, e archiveEntry) {
	if e.Type == Dir {
		if mode, twice := l.dirModes[rel]; twice && mode != e.Mode {
			l.fault(name, "is in it twice, with the modes %04o and %04o", mode, e.Mode)
		}
		l.dirModes[rel] = e.Mode
		return
	}
	if _, twice := l.wanted[rel]; twice {
		l.fault(name, "is in it twice")
		return
	}
	e.Path = Bytes(rel)
	l.wanted[rel] = e
	l.order = append(l.order, rel)
}

// finish checks the entries together, and lists them with the directories that they need.
func (l *lister) finish() (*archiveList, error) {
	dirs := map[string]bool{"": true}
	for _, rel := range l.order {
		for up := path.Dir(rel); up != "." && !dirs[up]; up = path.Dir(up) {
			if over, taken := l.wanted[up]; taken {
				l.fault(rel, "lies beneath %s, which is a %s in it", quoted(up), over.Type)
				break
			}
			dirs[up] = true
		}
	}
	for rel := range l.dirModes {
		for up := rel; up != "." && up != ""; up = path.Dir(up) {
			if over, taken := l.wanted[up]; taken && up == rel {
				l.fault(rel, "is a %s and a directory in it", over.Type)
			} else if taken {
				l.fault(rel, "lies beneath %s, which is a %s in it", quoted(up), over.Type)
			}
			if len(l.include) == 0 || matchesAny(l.include, rel) {
				dirs[up] = true
			}
		}
	}
	for _, rel := range l.order {
		if e := l.wanted[rel]; e.Type == Link {
			l.checkLink(rel, string(e.Target))
		}
	}
	if len(l.faults) > 0 {
		return nil, &HostileError{Archive: l.from, Faults: l.faults, More: l.more}
	}
	if len(l.order) == 0 && len(dirs) == 1 {
		return nil, fmt.Errorf("%s: nothing of it is to be unpacked: strip, include and exclude leave nothing, or it is empty", l.from)
	}
	return l.listed(dirs)
}

func (l *lister) listed(dirs map[string]bool) (*archiveList, error) {
	out := &archiveList{dirs: len(dirs) - 1, files: len(l.order)}
	if len(l.order)+len(dirs) > l.bounds.entries {
		return nil, &HostileError{Archive: l.from, Faults: []string{fmt.Sprintf("it unpacks to more than %d files and directories", l.bounds.entries)}}
	}
	for rel := range dirs {
		mode, said := l.dirModes[rel]
		if !said {
			mode = defaultDirMode
		}
		out.entries = append(out.entries, archiveEntry{Path: Bytes(rel), Type: Dir, Mode: mode})
	}
	for _, rel := range l.order {
		e := l.wanted[rel]
		out.size += e.Size
		out.entries = append(out.entries, e)
	}
	// A hard link makes a file of its own: what is written may be more than what was read.
	if most := l.bounds.most(0); out.size > most && out.size > 4*l.read() {
		return nil, &HostileError{Archive: l.from, Faults: []string{(&boundError{most}).Error()}}
	}
	slices.SortFunc(out.entries, func(a, b archiveEntry) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return out, nil
}

// read is how many bytes of files the archive itself holds.
func (l *lister) read() int64 {
	seen, sum := map[int]bool{}, int64(0)
	for _, listed := range l.raw {
		if e := listed.entry; e.Type == File && !seen[e.at] {
			seen[e.at] = true
			sum += e.Size
		}
	}
	return sum
}

// checkLink sees to it that a link leads to nothing outside of the directory, through
// whatever other links of the archive.
func (l *lister) checkLink(rel, target string) {
	switch {
	case target == "":
		l.fault(rel, "is a link without a target")
		return
	case len(target) > maxTarget || strings.ContainsFunc(target, func(r rune) bool { return r < ' ' || r == 0x7f }):
		l.fault(rel, "is a link whose target is too long or holds a control character")
		return
	}
	at, todo := path.Dir(rel), strings.Split(target, "/")
	if at == "." {
		at = ""
	}
	if strings.HasPrefix(target, "/") {
		inside, ok := strings.CutPrefix(path.Clean(target)+"/", l.dest+"/")
		if !ok || slices.Contains(todo, "..") {
			l.fault(rel, "is a link to %s, outside of the directory", quoted(target))
			return
		}
		at, todo = "", strings.Split(strings.TrimSuffix(inside, "/"), "/")
	}
	switch l.follow(at, todo) {
	case leadsOut:
		l.fault(rel, "is a link to %s, outside of the directory", quoted(target))
	case leadsTooFar:
		l.fault(rel, "is a link that leads through too many others")
	}
}

// Where a link of an archive leads to.
type leads int

const (
	leadsInside leads = iota
	leadsOut
	leadsTooFar // through more links than the kernel follows
)

// follow goes from a directory of the archive along some names, through the links that are
// wanted. Where the last name leads is checked for that link itself.
func (l *lister) follow(at string, todo []string) leads {
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			if at == "" {
				return leadsOut
			}
			if at = path.Dir(at); at == "." {
				at = ""
			}
			continue
		}
		next := path.Join(at, name)
		e, there := l.wanted[next]
		if !there || e.Type != Link || len(todo) == 0 {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return leadsTooFar
		}
		target := string(e.Target)
		if strings.HasPrefix(target, "/") { // it was checked, or will be: inside
			at, target = "", strings.TrimPrefix(path.Clean(target), l.dest)
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return leadsInside
}
