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

func (accesses) want(_ context.Context, w *World, v view[grantState]) (goal[grantState], error) {
	g, now := v.glyph, v.now
	to := goal[grantState]{effect: "write", far: true}
	what, who := granteeOf(g.Attrs)
	tells := "grants " + what + " " + quote(who) + " " + str(g.Attrs, "perms")
	if now.Awaits != "" {
		to.to, to.reason = grantState{}, tells+"; what was there is known at apply: "+now.Awaits+" is not there yet"
		to.to.Tag = aclUser
		if _, _, to.lacks = w.grantee(g); to.lacks == nil {
			_, _, to.lacks = w.target(g)
		}
		return to, nil
	}
	at, _, err := w.target(g)
	if err != nil {
		return to, err
	}
	to.to = grantState{Tag: now.Tag, ID: now.ID}
	found, keeps := grantState{Tag: now.Tag, ID: now.ID}, grantState{Tag: now.Tag, ID: now.ID}
	var more []string
	lacking := 0
	for _, p := range now.Paths {
		path := string(p.Path)
		next := p
		declared := path == at.real || isTrue(g, "recursive") && beneath(path, at.real)
		if !declared {
			if next, err = w.regranted(v, p, nil); err != nil {
				return to, err
			}
		} else {
			was, ok := v.found.at(path)
			if !ok || v.first() {
				if was, err = w.withoutGrants(p); err != nil {
					return to, err
				}
			}
			found.Paths = append(found.Paths, was)
			if next, err = w.grantAt(v, was, p); err != nil {
				return to, err
			}
		}
		to.to.Paths = append(to.to.Paths, next)
		if declared {
			keeps.Paths = append(keeps.Paths, next)
		}
		// A surface there is seen without golem's entries, whether or not this one was there.
		to.touches = append(to.touches, path)
		if bytes.Equal(next.Access, p.Access) && bytes.Equal(next.Default, p.Default) {
			continue
		}
		if lacking++; path == at.real {
			if more, err = w.tellGrant(v, p, next); err != nil {
				return to, err
			}
		}
		if err := w.mayGrant(path); err != nil && lacking == 1 {
			return to, &AttrError{Attr: "path", Summary: "Access cannot be granted here", Err: err}
		}
	}
	if v.old != nil && lacking > 1 {
		more = append(more, fmt.Sprintf("%d paths are not as declared", lacking))
	}
	to.found, to.record = &found, &keeps
	to.reason = strings.Join(append([]string{tells + onText(g, len(now.Paths))}, more...), "; ")
	if len(at.via) > 0 {
		to.reason += "; through the link " + quote(at.via[0]) + ", on " + quote(at.real)
	}
	to.restless = isTrue(g, "recursive")
	return to, nil
}

func onText(g *scrolls.Glyph, n int) string {
	text := ""
	if isTrue(g, "recursive") {
		text = fmt.Sprintf(" on it and all beneath (%d paths)", n)
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
	to := goal[grantState]{effect: "restore", far: true, to: v.now, restless: isTrue(v.glyph, "recursive")}
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

// move changes the lists of each path. Where they are not as they were seen, because somebody
// changed them since, only golem's own entry moves.
func (accesses) move(ctx context.Context, w *World, _ Store, m motion[grantState]) error {
	if m.to.Paths == nil && m.from.Awaits != "" && !m.undo {
		return errors.New("what was not there at plan is not there now")
	}
	changed := map[string]bool{}
	for _, next := range m.to.Paths {
		path := string(next.Path)
		was, ok := m.from.at(path)
		if !ok || bytes.Equal(was.Access, next.Access) && bytes.Equal(was.Default, next.Default) {
			continue
		}
		now, there, err := w.Host.listsAt(w.d, path)
		if err != nil {
			return fmt.Errorf("read the ACL of %s: %w", quote(path), err)
		}
		if !there {
			continue // it went, and all that golem granted on it
		}
		if !bytes.Equal(now.Access, was.Access) || !bytes.Equal(now.Default, was.Default) {
			if next, err = merged(m, now, was, next); err != nil {
				return fmt.Errorf("read the ACL of %s: %w", quote(path), err)
			}
		}
		if bytes.Equal(now.Access, next.Access) && bytes.Equal(now.Default, next.Default) {
			continue
		}
		if err := w.Host.setLists(w.d, now, next); err != nil {
			return fmt.Errorf("set the ACL of %s: %w", quote(path), err)
		}
		changed[path] = true
	}
	return w.Host.syncLists(w.d, changed)
}

// merged is what a path becomes that is not as it was seen.
func merged(m motion[grantState], now, was, next grantedPath) (grantedPath, error) {
	if bytes.Equal(now.Access, next.Access) && bytes.Equal(now.Default, next.Default) {
		return now, nil
	}
	a, d, err := now.lists()
	wa, wd, err1 := was.lists()
	na, nd, err2 := next.lists()
	if err := errors.Join(err, err1, err2); err != nil {
		return now, err
	}
	one := func(a, was, next acl, standard bool) acl {
		for _, s := range []grantState{m.from, m.to} {
			had, gets := was.perm(s.Tag, s.ID), next.perm(s.Tag, s.ID)
			switch {
			case had == gets || a == nil && gets < 0:
			case gets >= 0 && !m.reverse:
				if a == nil {
					a = next.base()
				}
				a = a.put(s.Tag, s.ID, gets)
			default:
				own := []grant{{s.Tag, s.ID, had, gets, next.mask(), ""}}
				if standard {
					own[0].mask = maskOf(next)
					a = stripDefault(a, own, own, maskOf(next))
				} else {
					a = a.strip(own, own, next.mask())
				}
			}
		}
		return a
	}
	return granted(string(now.Path), now.Dir, one(a, wa, na, false), one(d, wd, nd, true)), nil
}

// setLists writes the lists that differ. An access list of three entries makes the kernel
// set the mode and drop the attribute, in one.
func (h *Host) setLists(d *dirs, now, next grantedPath) error {
	path := string(next.Path)
	dir, name := split(path)
	fd, err := d.fd(dir)
	if err != nil {
		return err
	}
	x := linkXattrs{procName(fd, name)}
	if !bytes.Equal(now.Access, next.Access) {
		if err := h.fault("acl", path); err != nil {
			return err
		}
		if err := x.set(aclAccess, next.Access); err != nil {
			return err
		}
	}
	if bytes.Equal(now.Default, next.Default) {
		return nil
	}
	if err := h.fault("default acl", path); err != nil {
		return err
	}
	if len(next.Default) > 0 {
		return x.set(aclDefault, next.Default)
	}
	if err := x.remove(aclDefault); !errors.Is(err, unix.ENODATA) {
		return err
	}
	return nil
}

// syncLists makes the lists of paths durable.
func (h *Host) syncLists(d *dirs, paths map[string]bool) error {
	synced := map[uint64]bool{}
	for path := range paths {
		dir, _ := split(path)
		fd, err := d.fd(dir)
		if err != nil {
			return fmt.Errorf("open %s: %w", quote(dir), err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return fmt.Errorf("look at %s: %w", quote(dir), err)
		}
		if synced[uint64(st.Dev)] {
			continue
		}
		synced[uint64(st.Dev)] = true
		if err := h.fault("syncfs", path); err != nil {
			return err
		}
		if err := unix.Syncfs(fd); err != nil {
			return fmt.Errorf("sync %s: %w", quote(dir), err)
		}
	}
	return nil
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
