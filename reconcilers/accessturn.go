package reconcilers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"golem/scrolls"
)

// want works out the lists of every path that the grant is on or was on.
func (accesses) want(_ context.Context, w *World, v view[grantState]) (goal[grantState], error) {
	if v.now.Awaits != "" {
		what, who := granteeOf(v.glyph.Attrs)
		if err := w.tooEarly(v.glyph, what, who, map[string]string{"path": str(v.glyph.Attrs, "path")}); err != nil {
			return goal[grantState]{}, err
		}
		return awaitedGrant(w, v), nil
	}
	k := &granting{w: w, v: v, to: goal[grantState]{effect: EffectWrite, far: true, restless: isTrue(v.glyph, "recursive")}}
	at, _, err := w.target(v.glyph)
	if err != nil {
		return k.to, err
	}
	k.at = at
	k.to.to = grantState{Tag: v.now.Tag, ID: v.now.ID}
	k.found, k.keeps = k.to.to, k.to.to
	for _, p := range v.now.Paths {
		if err := k.path(p); err != nil {
			return k.to, err
		}
	}
	k.to.found, k.to.record = &k.found, &k.keeps
	k.to.reason = k.reason()
	return k.to, nil
}

// awaitedGrant is the goal of a grant to somebody, or on something, that an earlier glyph of
// this run makes.
func awaitedGrant(w *World, v view[grantState]) goal[grantState] {
	to := goal[grantState]{effect: EffectWrite, far: true, to: grantState{Tag: aclUser}}
	to.reason = grantText(v.glyph) + "; the " + v.now.Awaits + " is not there yet, so what it changes is known at apply"
	if _, _, to.lacks = w.grantee(v.glyph); to.lacks == nil {
		_, _, to.lacks = w.target(v.glyph)
	}
	return to
}

// grantText says what a glyph grants, and to whom.
func grantText(g *scrolls.Glyph) string {
	what, who := granteeOf(g.Attrs)
	return "grants " + what + " " + quote(who) + " " + str(g.Attrs, "perms")
}

// A granting is what the goal of one grant is worked out with, path by path.
type granting struct {
	w  *World
	v  view[grantState]
	at place // what the glyph names
	to goal[grantState]
	// found are the lists before golem, keeps those that stay golem's: both of declared
	// paths only.
	found, keeps grantState
	lacking      int      // paths whose lists are not as they are to be
	more         []string // to be told of the glyph's own path
}

// path works out what one path's lists are to be: with the glyph's entry where it is
// declared, without it where it was.
func (k *granting) path(p grantedPath) error {
	path := string(p.Path)
	var next grantedPath
	var err error
	if path == k.at.real || isTrue(k.v.glyph, "recursive") && beneath(path, k.at.real) {
		next, err = k.declared(p)
	} else {
		next, err = k.w.regranted(k.v, p, nil)
	}
	if err != nil {
		return err
	}
	k.to.to.Paths = append(k.to.to.Paths, next)
	// A surface there is seen without golem's entries, whether or not this one was there.
	k.to.touches = append(k.to.touches, path)
	if bytes.Equal(next.Access, p.Access) && bytes.Equal(next.Default, p.Default) {
		return nil
	}
	if k.lacking++; path == k.at.real {
		if k.more, err = k.w.tellGrant(k.v, p, next); err != nil {
			return err
		}
	}
	if k.lacking > 1 {
		return nil
	}
	if err := k.w.mayGrant(path); err != nil {
		return &AttrError{Attr: "path", Summary: "Access cannot be granted here", Err: err}
	}
	return nil
}

// declared gives a path the glyph's entry, and notes what was there before golem.
func (k *granting) declared(p grantedPath) (grantedPath, error) {
	was, ok := k.v.found.at(string(p.Path))
	if !ok || k.v.first() {
		var err error
		if was, err = k.w.withoutGrants(p); err != nil {
			return p, err
		}
	}
	next, err := k.w.grantAt(k.v, was, p)
	k.found.Paths = append(k.found.Paths, was)
	k.keeps.Paths = append(k.keeps.Paths, next)
	return next, err
}

// reason tells a person what the grant does.
func (k *granting) reason() string {
	told := append([]string{grantText(k.v.glyph) + onText(k.v.glyph, len(k.v.now.Paths))}, k.more...)
	switch {
	case k.lacking == 0:
		told = append(told, "it is so already")
	case k.lacking == 1 || k.v.old == nil:
	case CID(k.v.old) != CID(k.v.glyph):
		told = append(told, fmt.Sprintf("%d paths change", k.lacking))
	default:
		told = append(told, fmt.Sprintf("%d paths are not as declared", k.lacking))
	}
	text := strings.Join(told, "; ")
	if len(k.at.via) > 0 {
		text += "; through the link " + quote(k.at.via[0]) + ", on " + quote(k.at.real)
	}
	return text
}

// onText says how far a grant reaches, where that is more than its path.
func onText(g *scrolls.Glyph, n int) string {
	text := ""
	if isTrue(g, "recursive") {
		text = " on it and all beneath (" + counted(n, "path") + ")"
	}
	if isTrue(g, "default") {
		text += ", and on what is made there later"
	}
	return text
}

// mayGrant says what keeps golem from changing a path's lists, before it tries.
func (w *World) mayGrant(path string) error {
	dir, name := split(path)
	fd, err := w.d.fd(dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", quote(dir), err)
	}
	if err := unix.Faccessat(fd, name, unix.W_OK, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW); errors.Is(err, unix.EROFS) {
		return fmt.Errorf("change %s: %w", quote(path), err)
	}
	f, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // it need not be readable
	}
	defer unix.Close(f)
	return checkFlags(path, Node{Flags: readFlags(f)})
}

// grantAt is a path with a glyph's entry, or the path as it is where that shows. A default
// list that there was not begins as what was found says of the owner, the group and others.
func (w *World) grantAt(v view[grantState], found, p grantedPath) (grantedPath, error) {
	g, s := v.glyph, v.now
	access, standard, err := p.lists()
	before, _, err1 := found.lists()
	if err := errors.Join(err, err1); err != nil {
		return p, err
	}
	perm, inherits := permsOf(g, p.Dir, access), isTrue(g, "default") && p.Dir
	shows := func(a acl, perm int) bool { return a.perm(s.Tag, s.ID) == perm && perm&^a.mask() == 0 }
	stale := p.Dir && !inherits && v.old != nil && isTrue(v.old, "default") || !v.first() && (v.left.Tag != s.Tag || v.left.ID != s.ID)
	if shows(access, perm) && (!inherits || standard != nil && shows(standard, permsOf(g, true, access))) && !stale {
		return p, nil
	}
	return w.regranted(v, p, func(a, d acl) (acl, acl) {
		if inherits {
			if d == nil {
				d = before.base()
			}
			d = d.put(s.Tag, s.ID, permsOf(g, true, access))
		}
		return a.put(s.Tag, s.ID, perm), d
	})
}

// tellGrant says what beside the entry changes on a path: what it takes the place of, and
// who else gains by a wider mask.
func (w *World) tellGrant(v view[grantState], was, next grantedPath) ([]string, error) {
	s := v.now
	old, _, err := was.lists()
	if err != nil {
		return nil, err
	}
	is, _, err := next.lists()
	if err != nil {
		return nil, err
	}
	var more []string
	switch had, has := old.perm(s.Tag, s.ID), is.perm(s.Tag, s.ID); {
	case had >= 0 && had != has:
		more = append(more, "in place of "+permText(had))
	case had < 0 && v.old != nil:
		more = append(more, "the entry was gone")
	case had >= 0 && had&^old.mask() != 0:
		more = append(more, "the mask kept "+strings.ReplaceAll(permText(had&^old.mask()), "-", "")+" from it")
	}
	for _, e := range is {
		if e.tag == s.Tag && e.id == s.ID || e.tag != aclUser && e.tag != aclGroup && e.tag != aclGroupObj || old.mask() < 0 {
			continue
		}
		who := "the file's own group"
		switch e.tag {
		case aclUser:
			who = "user " + quote(w.Host.userName(int(e.id)))
		case aclGroup:
			who = "group " + quote(w.Host.groupName(int(e.id)))
		}
		if gains := int(e.perm) & is.mask() &^ old.mask(); gains != 0 {
			more = append(more, who+" gains "+strings.ReplaceAll(permText(gains), "-", "")+", which the mask kept from it")
		}
	}
	return more, nil
}

func (accesses) back(_ context.Context, w *World, v view[grantState]) (goal[grantState], error) {
	what, who := granteeOf(v.glyph.Attrs)
	to := goal[grantState]{effect: EffectRestore, far: true, to: v.now, restless: isTrue(v.glyph, "recursive")}
	to.to.Paths = slices.Clone(v.now.Paths)
	for i, p := range v.now.Paths {
		next, err := w.regranted(v, p, nil)
		if err != nil {
			return to, err
		}
		to.to.Paths[i] = next
		to.touches = append(to.touches, string(p.Path))
	}
	if len(v.now.Paths) == 0 {
		to.reason = "nothing is there any more"
		return to, nil
	}
	to.reason = "the entry of " + what + " " + quote(who) + " goes"
	if was, ok := v.found.at(string(v.now.Paths[0].Path)); ok {
		if a, _, err := was.lists(); err == nil && a.perm(v.left.Tag, v.left.ID) >= 0 {
			to.reason = what + " " + quote(who) + " has " + permText(a.perm(v.left.Tag, v.left.ID)) + " again, as golem found it"
		}
	}
	if n := len(v.now.Paths); n > 1 {
		to.reason += fmt.Sprintf(", on %d paths", n)
	}
	return to, nil
}

// there implements presence: the path's own list has an entry for whom the glyph is about.
func (accesses) there(v view[grantState]) bool {
	if len(v.now.Paths) == 0 {
		return false
	}
	access, _, err := v.now.Paths[0].lists()
	return err == nil && access.perm(v.now.Tag, v.now.ID) >= 0
}

func (accesses) show(s grantState) map[string]any {
	if len(s.Paths) == 0 {
		return nil
	}
	a, d, err := s.Paths[0].lists()
	if err != nil {
		return nil
	}
	shown := map[string]any{"path": string(s.Paths[0].Path), "acl": a.text(nil)}
	if d != nil {
		shown["default_acl"] = d.text(nil)
	}
	return shown
}
