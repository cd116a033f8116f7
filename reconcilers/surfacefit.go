package reconcilers

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Fit implements Reconciler: it finds the parents to be made, and everything around
// the path that would stop the turn half way.
func (s surfaces) Fit(w *World, t *Turn) error {
	if err := s.overtaken(w, t); err != nil || t.Step == nil {
		return err
	}
	w.tellBrought(t)
	if !t.ByProduct() {
		if err := w.fitLedger(t); err != nil {
			return err
		}
	}
	sh := t.shift
	defer func() { t.encodeStep(sh.from) }() // with the parents found here
	if t.Late && sh.from.Type == Dir && sh.to.Type == Absent {
		if left, err := s.leftIn(w, t); err != nil || left {
			return err
		}
	}
	if sh.way() != wayNone {
		if err := w.fitShift(t); err != nil {
			return err
		}
	}
	w.predict(sh.path, sh.to)
	return nil
}

// overtaken works a turn out again where turns before it, which are fitted by now, leave its
// path otherwise than it was taken to be.
func (s surfaces) overtaken(w *World, t *Turn) error {
	if t.lender != "" {
		there, err := w.lenderThere(t.lender)
		if err != nil {
			return err
		}
		if there != t.lent { // an earlier turn brings the package, or takes it
			again, err := s.turn(w, t.Request)
			if err != nil {
				return err
			}
			*t = *again
		}
	}
	if t.Step == nil || t.ByProduct() {
		return nil
	}
	if n, ok := w.over[t.Resource]; ok && !sameSight(n, t.shift.from) {
		// An earlier turn makes the path on the way to something else.
		r := t.Request
		r.Now = n
		again, err := s.turn(w, r)
		if err != nil {
			return err
		}
		*t = *again
	}
	return nil
}

// fitShift looks for what would stop a change to a path, and finds the parents to be made.
func (w *World) fitShift(t *Turn) error {
	sh := t.shift
	if sh.from.Type == Dir && sh.to.Type != Dir && !t.Late {
		names, err := w.names(sh.path)
		if err != nil {
			return err
		}
		if len(names) > 0 {
			return fmt.Errorf("%s is not empty: it holds %s", quote(sh.path), someNames(names))
		}
	}
	if err := checkFlags(sh.path, sh.from); err != nil {
		return err
	}
	if err := w.findParents(t); err != nil {
		return err
	}
	return w.mayWrite(t)
}

// findParents lists the directories that must be made first, and notes in the ledger
// what golem will have made, and what it found of those that are there.
func (w *World) findParents(t *Turn) error {
	sh := t.shift
	if sh.to.Type == Absent {
		return nil
	}
	up := ancestors(sh.path)
	owner, err := w.look("/")
	if err != nil {
		return err
	}
	for i := len(up) - 1; i >= 0; i-- {
		dir := up[i]
		n, err := w.look(dir)
		if err != nil {
			return err
		}
		switch n.Type {
		case Dir:
			owner = n
			if err := w.noteParent(t, dir); err != nil {
				return err
			}
			continue
		case Absent:
		default:
			return fmt.Errorf("%s cannot be: %s is a %s, not a directory", quote(sh.path), quote(dir), n.Type)
		}
		made := w.madeParent(t, dir, owner)
		sh.parents = append(sh.parents, parent{dir, made})
		w.predict(dir, made)
		owner = made
	}
	return nil
}

// madeParent works out the directory to make: what was found there once, if a
// stranger removed it, or 0755 and the owner of the nearest directory that exists.
func (w *World) madeParent(t *Turn, dir string, above Node) Node {
	if body, ok := w.ledger(dir); ok && !body.Made {
		return body.Node
	}
	n := parentNode(w.Host, above)
	t.setLedger(w, dir, &ledgerBody{Made: true, Node: n})
	return n
}

// parentNode is a directory made on the way: 0755, owned like what it lies in.
func parentNode(h *Host, above Node) Node {
	n := Node{Type: Dir, Mode: defaultDirMode, UID: above.UID, GID: above.GID, Flags: Any}
	if h.UID != 0 {
		n.UID, n.GID = Any, Any // nobody but root gives files away
	}
	return n
}

// noteParent remembers the metadata of a directory that is there, so that a repair
// can remake it.
func (w *World) noteParent(t *Turn, dir string) error {
	if t.Step.After == nil {
		return nil // golem leaves nothing here that it would ever repair
	}
	if _, ok := w.ledger(dir); ok {
		return nil
	}
	if _, ok := w.over[dir]; ok {
		return nil // this run makes it: a glyph or an entry of its own
	}
	if w.isSurface(dir) {
		return nil
	}
	n, err := w.Host.observe(w.d, dir, 0)
	if err != nil {
		return err
	}
	n.Links, n.Mtime, n.Mount = 0, 0, false
	body := &ledgerBody{Node: n}
	if l := w.loans()[dir]; l != nil && l.Package != "" && l.Before.Type == Absent {
		body.Lent = l.Package
	}
	t.setLedger(w, dir, body)
	return nil
}

// mayWrite finds a read-only mount, a missing permission, a protected parent or a
// full disk before the first change rather than in the middle.
func (w *World) mayWrite(t *Turn) error {
	sh := t.shift
	dir, name := split(sh.path)
	for {
		n, seen := w.over[dir]
		if !seen || n.Type == Dir && w.onHost(dir) {
			break
		}
		if dir == "/" {
			break
		}
		dir, _ = split(dir)
	}
	fd, err := w.d.fd(dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", quote(dir), err)
	}
	if w.Host.UID != 0 && sh.to.Type != Absent && sh.to.UID != Any && sh.to.UID != w.Host.UID && sh.way() != wayOver {
		return fmt.Errorf("%s would belong to %s; only root gives files to others", quote(sh.path), w.Host.userName(sh.to.UID))
	}
	if sh.way() == wayMeta || sh.way() == wayOver {
		return w.mayChange(fd, name, sh)
	}
	if err := w.checkDir(fd, dir); err != nil {
		return err
	}
	return w.checkRoom(fd, sh)
}

func (w *World) onHost(dir string) bool {
	fd, err := w.Host.openDir(dir)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// mayChange checks an object that is changed where it is.
func (w *World) mayChange(fd int, name string, sh *shift) error {
	err := unix.Faccessat(fd, name, unix.W_OK, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.EROFS) || sh.way() == wayOver && errors.Is(err, unix.EACCES) {
		return fmt.Errorf("write %s: %w", quote(sh.path), err)
	}
	if sh.way() == wayMeta && w.Host.UID != 0 && sh.from.UID != w.Host.UID {
		return fmt.Errorf("change %s: it belongs to %s", quote(sh.path), w.Host.userName(sh.from.UID))
	}
	return nil
}

// checkDir checks that names in a directory can be changed. Each is asked once.
func (w *World) checkDir(fd int, dir string) error {
	if err, ok := w.dirOK[dir]; ok {
		return err
	}
	err := unix.Faccessat(fd, ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	if err != nil {
		err = fmt.Errorf("write in %s: %w", quote(dir), err)
	} else if n, lerr := observeAt(fd, ".", 0); lerr == nil {
		err = checkFlags(dir, n)
	}
	w.dirOK[dir] = err
	return err
}

// checkRoom refuses a large file that the file system has no room for.
func (w *World) checkRoom(fd int, sh *shift) error {
	const large = 1 << 20
	if sh.to.Type != File || sh.to.Size < large {
		return nil
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return nil // nothing known is no reason to refuse
	}
	if free := int64(st.Bavail) * st.Bsize; st.Blocks > 0 && free < sh.to.Size {
		return fmt.Errorf("write %s: no room for %s, only %s free", quote(sh.path), bytesText(sh.to.Size), bytesText(free))
	}
	return nil
}
