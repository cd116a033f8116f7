package reconcilers

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// strange says that golem's layers all go and that something stands at the path which
// golem did not put there and does not displace: somebody else's interest.
func (k *work) strange() bool {
	if k.s.before == nil || k.base != nil || len(k.edits) > 0 {
		return false
	}
	ours := File
	if k.s.base != nil {
		kind, _ := KindOf(k.s.base.Glyph.Kind)
		ours = kind.base.typ
	}
	switch k.now.Type {
	case Special:
		return true
	case Dir:
		return ours != Dir
	case File, Link:
		return ours == Dir
	}
	return false
}

// refuse says what golem will not do at this path, whatever the scroll says.
func (k *work) refuse() error {
	p := quote(k.r.Resource)
	if k.base == nil && len(k.edits) == 0 {
		return nil
	}
	for _, h := range k.w.heldAt(k.r.Resource) {
		if h.entry.Type != Dir && k.w.stays(h.layer) {
			return fmt.Errorf("%s belongs to %s of the lineage %q; it has to be left out there, with exclude", p, h.layer.Key, h.layer.Lineage)
		}
	}
	if k.now.Type == Special {
		return fmt.Errorf("%s is a device, a socket or a pipe; golem neither replaces nor edits one", p)
	}
	if k.base == nil {
		return k.refuseEdits(p)
	}
	if err := k.refuseForeign(p); err != nil {
		return err
	}
	kind, _ := KindOf(k.base.Glyph.Kind)
	ownDir := k.s.base != nil && k.s.under.Type == Absent && k.s.base.Glyph.Kind == directoryKind.Name
	switch want := kind.base.typ; {
	case k.beneath.Type == Special:
		return fmt.Errorf("%s was a device, a socket or a pipe; golem replaces none", p)
	case want != Dir && k.beneath.Type == Dir, want != Dir && k.now.Type == Dir && !ownDir:
		return fmt.Errorf("%s is a directory; a %s is declared there. Golem replaces no directory that was there, or that holds something; declare another path", p, kind.Name)
	case want == Dir && (k.beneath.Type == File || k.beneath.Type == Link):
		return fmt.Errorf("%s is a %s; a directory is declared there. Move it away, or declare another path", p, k.beneath.Type)
	case want == Link && k.beneath.Type == File && k.beneath.Links > 1:
		return fmt.Errorf("%s has %d names (hard links); a link in its place would part it from the others for good", p, k.beneath.Links)
	}
	return nil
}

// refuseForeign refuses a new base where another lineage holds a layer.
func (k *work) refuseForeign(p string) error {
	if k.s.before == nil || k.base.Lineage != k.r.Lineage || k.s.base != nil && k.s.base.Key == k.base.Key {
		return nil
	}
	for _, layer := range k.s.before.Layers {
		if layer.Lineage != k.r.Lineage {
			return fmt.Errorf("%s holds %s of the lineage %q; what lies beneath it cannot be declared by another", p, layer.Key, layer.Lineage)
		}
	}
	return nil
}

func (k *work) refuseEdits(p string) error {
	switch {
	case k.now.Type == Dir:
		return fmt.Errorf("%s is a directory, and cannot be edited as a file", p)
	case k.now.Type == Link:
		return fmt.Errorf("%s became a link while golem looked", p)
	case k.now.Type == File && k.now.Size > maxEdit:
		return fmt.Errorf("%s is too large to be edited (%s; the limit is %s)", p, bytesText(k.now.Size), bytesText(maxEdit))
	}
	return nil
}

// checkFlags refuses to change what chattr(1) protects.
func checkFlags(p string, n Node) error {
	switch {
	case n.Flags == Any:
		return nil
	case n.Flags&flagImmutable != 0:
		return fmt.Errorf("%s is immutable; lift that with: chattr -i %s", quote(p), quote(p))
	case n.Flags&flagAppend != 0:
		return fmt.Errorf("%s is append-only; lift that with: chattr -a %s", quote(p), quote(p))
	}
	return nil
}

// Fit implements Reconciler: it finds the parents to be made, and everything around
// the path that would stop the turn half way.
func (s surfaces) Fit(w *World, t *Turn) error {
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
	if t.Step == nil {
		return nil
	}
	if n, ok := w.over[t.Resource]; ok && !sameSight(n, t.shift.from) && !t.ByProduct() {
		// An earlier turn makes the path on the way to something else.
		r := t.Request
		r.Now = n
		again, err := s.turn(w, r)
		if err != nil {
			return err
		}
		if *t = *again; t.Step == nil {
			return nil
		}
	}
	sh := t.shift
	w.tellBrought(t)
	if !t.ByProduct() {
		if err := w.fitLedger(t); err != nil {
			return err
		}
	}
	defer func() { t.encodeStep(sh.from) }() // with the parents found here
	if t.Late && sh.from.Type == Dir && sh.to.Type == Absent {
		if left, err := s.leftIn(w, t); err != nil || left {
			return err
		}
	}
	if sh.way() == wayNone {
		w.predict(sh.path, sh.to)
		return nil
	}
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
	if err := w.mayWrite(t); err != nil {
		return err
	}
	w.predict(sh.path, sh.to)
	return nil
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

// A ledgerBody is a by-product of paths: a directory golem made on the way to
// something, or what it found of one that was there.
type ledgerBody struct {
	Made bool `json:"made"`
	Node Node `json:"node"`
	// Lent is the package that golem brought and that made the directory; "" for none.
	Lent string `json:"lent,omitempty"`
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
