package reconcilers

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

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
