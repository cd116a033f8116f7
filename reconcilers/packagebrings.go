package reconcilers

import (
	"maps"
	"path"
	"slices"
	"strings"

	"golem/scrolls"
)

// madeForIt says of an edit that there is no file yet.
const madeForIt = "the file is made for it, mode 0644"

// tellBrought says of an edit, for which a file would be made, which packages may bring
// that file before its turn. What is in a package is not known before it is fetched.
func (w *World) tellBrought(t *Turn) {
	if w.Acts || t.shift == nil || t.shift.from.Type != Absent || !shippable(t.Resource) {
		return
	}
	who := w.bringers(t.Resource)
	if len(who) == 0 {
		return
	}
	for i := range t.Changes {
		c := &t.Changes[i]
		c.Reason = strings.Replace(c.Reason, madeForIt, madeForIt+", unless "+someOr(who)+" brings it", 1)
	}
}

// shippable says whether a package may hold a file of this path: some directories are the
// host's own (Debian's policy).
func shippable(p string) bool {
	for _, dir := range []string{"/home", "/media", "/mnt", "/root", "/run", "/srv", "/tmp", "/usr/local", "/var/tmp"} {
		if beneath(p, dir) {
			return false
		}
	}
	return true
}

// bringers are the glyphs for which the run so far brings packages that were not there:
// if a package is named like a part of the path, those for which such a one comes.
func (w *World) bringers(p string) []string {
	d := w.bareAptDesk()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.real == nil {
		return nil
	}
	all, named := map[scrolls.Key]bool{}, map[scrolls.Key]bool{}
	for _, resource := range d.done {
		if !d.over[resource].there() || d.real.state(resource).there() {
			continue
		}
		key := d.by[resource]
		if all[key] = true; namedLike(resource, p) {
			named[key] = true
		}
	}
	if len(named) > 0 {
		all = named
	}
	var who []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		who = append(who, string(key))
	}
	return who
}

// namedLike says whether a part of a path is a package's name, or that name's beginning:
// /etc/nginx/nginx.conf is of nginx-light, more likely than not.
func namedLike(resource, p string) bool {
	name, _, _ := strings.Cut(resource, ":")
	for part := range strings.SplitSeq(strings.TrimPrefix(p, "/"), "/") {
		part = strings.TrimSuffix(part, path.Ext(part))
		if part == name || part != "" && strings.HasPrefix(name, part+"-") {
			return true
		}
	}
	return false
}

// someOr joins a few names.
func someOr(names []string) string {
	if len(names) > 3 {
		return "a package that comes before it"
	}
	return strings.Join(names, " or ")
}
