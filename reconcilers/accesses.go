package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"golem/scrolls"
)

// accesses own golem's entries in access lists.
type accesses struct{}

func (accesses) resource(g *scrolls.Glyph) string {
	what, who := granteeOf(g.Attrs)
	return str(g.Attrs, "path") + " " + what + ":" + who
}

// prepare finds two glyphs that grant the same on one host, by whatever names.
func (accesses) prepare(_ context.Context, w *World, glyphs []*scrolls.Glyph, _ []string) ([]Mistake, error) {
	first := map[string]*scrolls.Glyph{}
	var mistakes []Mistake
	for _, g := range glyphs {
		at, err := w.resolve(str(g.Attrs, "path"), true)
		tag, id, err2 := w.grantee(g)
		if err != nil || err2 != nil {
			continue // Turn tells
		}
		name := fmt.Sprintf("%s %d %d", at.real, tag, id)
		if other := first[name]; other != nil {
			mistakes = append(mistakes, Mistake{Glyph: g, Other: other, Problem: scrolls.Problem{
				Attr: "path", Summary: "Two glyphs for one grant",
				Detail: "Both are about " + quote(at.real) + " and the same " + whom(tag) + " on this host. Remove one of the two.",
			}})
			continue
		}
		first[name] = g
	}
	return mistakes, nil
}

func whom(tag uint16) string {
	if tag == aclGroup {
		return "group"
	}
	return "user"
}

// grantee is whom a glyph is about.
func (w *World) grantee(g *scrolls.Glyph) (tag uint16, id uint32, err error) {
	what, who := granteeOf(g.Attrs)
	number := 0
	if tag = aclUser; what == "group" {
		tag = aclGroup
		number, err = w.Host.groupID(who)
	} else {
		number, err = w.Host.userID(who)
	}
	if err != nil {
		return tag, 0, &AttrError{Attr: what, Summary: "Unknown " + what, Err: fmt.Errorf("%w, and no earlier glyph of this run can bring one", err)}
	}
	return tag, uint32(number), nil
}

// target is where a glyph's path leads. It is an error if there is nothing.
func (w *World) target(g *scrolls.Glyph) (place, Node, error) {
	at, err := w.resolve(str(g.Attrs, "path"), true)
	if err == nil {
		err = w.checkSpot(at)
	}
	if err != nil {
		return at, Node{}, &AttrError{Attr: "path", Summary: "Access cannot be granted here", Err: err}
	}
	n, err := w.look(at.real)
	if err != nil {
		return at, n, err
	}
	wrong := func(summary, format string, args ...any) error {
		return &AttrError{Attr: "path", Summary: summary, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case n.Type == Absent:
		return at, n, wrong("Path is not there", "nothing is at %s, and no earlier glyph of this run makes it; access is granted on what is there", quote(at.real))
	case n.Type != File && n.Type != Dir:
		return at, n, wrong("Access cannot be granted here", "%s is a device, a socket or a pipe", quote(at.real))
	case n.Type != Dir && (isTrue(g, "default") || isTrue(g, "recursive")):
		return at, n, wrong("Not a directory", "%s is a file: neither default nor recursive means anything there", quote(at.real))
	case n.Type == File && n.Links > 1 && at.owners != nil:
		return at, n, wrong("Access cannot be granted here", "%s has %d names (hard links), and others than root may write where it lies: it may be anybody's", quote(at.real), n.Links)
	case w.Host.UID != 0 && n.UID != w.Host.UID:
		return at, n, wrong("Access cannot be granted here", "%s belongs to %s; only its owner and root change its ACL", quote(at.real), w.Host.userName(n.UID))
	}
	return at, n, nil
}

// isTrue says whether a boolean attribute is written, and true.
func isTrue(g *scrolls.Glyph, attr string) bool { b := boolOf(g.Attrs, attr); return b != nil && *b }

func (accesses) look(context.Context, *World, string) (grantState, error) { return grantState{}, nil }

// glance reads the lists of every path that the grant is on, or is to be.
func (accesses) glance(ctx context.Context, w *World, v view[grantState]) (grantState, error) {
	now := grantState{Tag: v.left.Tag, ID: v.left.ID}
	var paths []string
	if len(v.Set) > 0 {
		tag, id, err := w.grantee(v.glyph)
		if err != nil {
			now.Awaits = whom(tag)
			return now, nil
		}
		at, n, err := w.target(v.glyph)
		if err != nil && n.Type == Absent && at.real != "" {
			now.Awaits = "path"
			return now, nil
		}
		if err != nil {
			return now, err
		}
		now.Tag, now.ID = tag, id
		if paths, err = w.grantedTo(ctx, v.glyph, at); err != nil {
			return now, err
		}
	}
	before, err := w.grantedBefore(ctx, v)
	if err != nil {
		return now, err
	}
	seen := map[string]bool{}
	for i, path := range slices.Concat(paths, before) {
		if seen[path] {
			continue
		}
		seen[path] = true
		p, there, err := w.Host.listsAt(w.d, path)
		if err != nil {
			err = fmt.Errorf("read the ACL of %s: %w", quote(path), err)
			if i == 0 && len(v.Set) > 0 {
				err = &AttrError{Attr: "path", Summary: "Access cannot be granted here", Err: err}
			}
			return now, err
		}
		if there {
			now.Paths = append(now.Paths, p)
		}
	}
	return now, nil
}

// grantedTo are the paths that a glyph grants access to.
func (w *World) grantedTo(ctx context.Context, g *scrolls.Glyph, at place) ([]string, error) {
	if !isTrue(g, "recursive") {
		return []string{at.real}, nil
	}
	all, err := w.below(ctx, at)
	return append([]string{at.real}, all...), err
}

// grantedBefore are the paths that a grant on record is on. Where it goes, what was made
// since has the entry from golem's default list, too.
func (w *World) grantedBefore(ctx context.Context, v view[grantState]) ([]string, error) {
	var paths []string
	for _, p := range v.left.Paths {
		paths = append(paths, string(p.Path))
	}
	if len(v.Set) > 0 || len(paths) == 0 || !isTrue(v.glyph, "recursive") || !isTrue(v.glyph, "default") {
		return paths, nil
	}
	all, err := w.belowAgain(ctx, paths[0])
	return append(paths, all...), err
}

// listsAt reads the lists of a real path. Of a link, or something that is no file, there are
// none.
func (h *Host) listsAt(d *dirs, path string) (p grantedPath, there bool, err error) {
	dir, name := split(path)
	fd, err := d.fd(dir)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return p, false, nil
	}
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if errors.Is(err, unix.ENOENT) {
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFREG && kind != unix.S_IFDIR {
		return p, false, nil
	}
	access, standard, err := readACLs(linkXattrs{procName(fd, name)}, int(st.Mode))
	if err != nil {
		return p, false, err
	}
	return granted(path, kind == unix.S_IFDIR, access, standard), true, nil
}

// maxGranted is how many paths one grant may be on: each stands in the journal.
const maxGranted = 50_000

// below lists what is beneath a directory, on its file system: files and directories. A file
// with several names is passed over where others than root may write: its other name may
// stand anywhere.
func (w *World) below(ctx context.Context, top place) ([]string, error) {
	var all []string
	root, err := w.Host.deviceOf(w.d, top.real)
	if err != nil {
		return nil, err
	}
	var walk func(at place) error
	walk = func(at place) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.enter(&at); err != nil {
			return &AttrError{Attr: "recursive", Summary: "Access cannot be granted beneath", Err: err}
		}
		names, err := w.Host.readDir(at.real)
		if err != nil {
			return err
		}
		slices.Sort(names)
		for _, name := range names {
			path := strings.TrimSuffix(at.real, "/") + "/" + name
			n, err := w.lstat(path)
			if err != nil {
				return err
			}
			if n.Type == File && n.Links > 1 && at.owners != nil || n.Type != File && n.Type != Dir || n.dev != root || strings.HasPrefix(name, tempPrefix) {
				continue
			}
			if all = append(all, path); len(all) > maxGranted {
				return &AttrError{Attr: "recursive", Summary: "Too much to grant", Err: fmt.Errorf("there are more than %d files and directories beneath %s", maxGranted, quote(top.real))}
			}
			if n.Type == Dir {
				if err := walk(place{real: path, owners: clonedOwners(at.owners)}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return all, walk(top)
}

// belowAgain is below a path where golem granted before; nothing where that is gone.
func (w *World) belowAgain(ctx context.Context, top string) ([]string, error) {
	at, err := w.resolve(top, false)
	if err != nil {
		return nil, err
	}
	if n, err := w.lstat(at.real); err != nil || n.Type != Dir {
		return nil, err
	}
	return w.below(ctx, at)
}

func clonedOwners(owners map[int]bool) map[int]bool {
	if owners == nil {
		return nil
	}
	c := map[int]bool{}
	for uid := range owners {
		c[uid] = true
	}
	return c
}

func (h *Host) deviceOf(d *dirs, path string) (uint64, error) {
	fd, err := d.fd(path)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", quote(path), err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, fmt.Errorf("look at %s: %w", quote(path), err)
	}
	return uint64(st.Dev), nil
}

// ownGrants are all of golem's grants on a path, and this one among them as it was left.
func (w *World) ownGrants(v view[grantState], path string, p grantedPath) (on grants, own grants, err error) {
	if on, err = w.grantsOn(path); err != nil {
		return on, own, err
	}
	found, known := v.found.at(path)
	left, was := v.left.at(path)
	switch {
	case !was && len(v.Set) > 0:
		return on, own, nil // it is not on it yet
	case !was:
		left = p // what golem's default list gave to what was made there since
	}
	a, d, err := grantOf(v.Resource, grantState{Tag: v.left.Tag, ID: v.left.ID}, left, found, known && !v.first())
	if err != nil {
		return on, own, err
	}
	if a.perm >= 0 {
		own.access = []grant{a}
	}
	if d.perm >= 0 && v.old != nil && isTrue(v.old, "default") {
		own.standard = []grant{d}
	}
	with := func(all []grant, g []grant) []grant {
		for _, one := range g {
			if !slices.ContainsFunc(all, func(o grant) bool { return o.by == one.by }) {
				all = append(slices.Clone(all), one)
			}
		}
		return all
	}
	on.access, on.standard = with(on.access, own.access), with(on.standard, own.standard)
	of := func(all []grant) []grant {
		shared := slices.ContainsFunc(all, func(o grant) bool { return o.by != v.Resource && o.tag == v.left.Tag && o.id == v.left.ID })
		if shared {
			return nil // another glyph of golem's says the same by now
		}
		return slices.DeleteFunc(slices.Clone(all), func(o grant) bool { return o.by != v.Resource })
	}
	own.access, own.standard = of(on.access), of(on.standard)
	return on, own, nil
}

// regranted is a path with this grant as wanted, or without it where give is nil: all of
// golem's grants are taken off, and those that stay are put on what is left. So a mode that
// somebody set meanwhile becomes what lies beneath them.
func (w *World) regranted(v view[grantState], p grantedPath, give func(access, standard acl) (acl, acl)) (grantedPath, error) {
	path := string(p.Path)
	had, hadStandard, err := p.lists()
	if err != nil {
		return p, err
	}
	on, own, err := w.ownGrants(v, path, p)
	if err != nil {
		return p, err
	}
	ma, md, err := w.masksBeneath(path, on)
	if err != nil {
		return p, err
	}
	again := func(a, had acl, all, own []grant) acl {
		for _, g := range all {
			if perm := had.perm(g.tag, g.id); perm >= 0 && !slices.Contains(own, g) {
				if a == nil {
					a = had.base()
				}
				a = a.put(g.tag, g.id, perm)
			}
		}
		return a
	}
	access := again(had.strip(on.access, on.access, ma), had, on.access, own.access)
	standard := again(stripDefault(hadStandard, on.standard, on.standard, md), hadStandard, on.standard, own.standard)
	if give != nil {
		access, standard = give(access, standard)
	}
	return granted(path, p.Dir, access, standard), nil
}

// withoutGrants is a path as it was without any grant of golem's: before them, and before a
// surface that golem keeps there.
func (w *World) withoutGrants(p grantedPath) (grantedPath, error) {
	path := string(p.Path)
	if rec := w.Record(PathSort, path); rec != nil {
		s, err := readSurface(path, rec)
		if err != nil {
			return p, err
		}
		if (s.found.Type == Dir) == p.Dir && (s.found.Type == Dir || s.found.Type == File) {
			q := granted(path, p.Dir, nodeACL(s.found), nil)
			q.Default = s.found.Xattrs[aclDefault]
			return q, nil
		}
	}
	access, standard, err := p.lists()
	if err != nil {
		return p, err
	}
	on, err := w.grantsOn(path)
	if err != nil {
		return p, err
	}
	ma, md, err := w.masksBeneath(path, on)
	if err != nil {
		return p, err
	}
	return granted(path, p.Dir, access.strip(on.access, on.access, ma), stripDefault(standard, on.standard, on.standard, md)), nil
}
