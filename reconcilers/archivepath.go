package reconcilers

import (
	"fmt"
	"path"
	"slices"

	"golem/scrolls"
)

// file works out what becomes of a path where an archive has a file or a link.
func (k *archiveWork) file(p *archivePath) error {
	if claims := k.w.Claims(p.abs); len(claims) > 0 {
		return k.shared(p.by, claims[0], p.abs)
	}
	if err := k.reach(p); err != nil {
		return k.wrong(p, err)
	}
	ours := p.old != nil && p.old.Type != Dir
	if err := k.refuse(p, ours); err != nil {
		return k.wrong(p, err)
	}
	found, err := k.beneath(p, ours)
	if err != nil {
		return err
	}
	p.found, p.first = found, !ours
	if p.to, err = k.dress(p); err != nil {
		return err
	}
	p.wrote = ours && p.old.Wrote || differs(p.now, p.to) != "" || differs(found, p.to) != ""
	if p.changes() && ours {
		k.displace(p)
	}
	return nil
}

// wrong is an error about a path, for the glyph that wants it.
func (k *archiveWork) wrong(p *archivePath, err error) error {
	return &AttrError{Glyph: p.by, Attr: "path", Summary: "Archive does not fit here", Err: err}
}

// refuse says what golem does not replace with a file or link of an archive.
func (k *archiveWork) refuse(p *archivePath, ours bool) error {
	at := quote(p.abs)
	switch {
	case k.w.inOwn(p.abs):
		return fmt.Errorf("%s is golem's own journal, and in the archive", at)
	case p.now.Type == Special:
		return fmt.Errorf("%s is a device, a socket or a pipe, and a %s in the archive; golem replaces none", at, p.want.Type)
	case p.now.Type == Dir && (p.old == nil || p.old.Type != Dir || !k.madeDir(p.abs)):
		return fmt.Errorf("%s is a directory, and a %s in the archive; golem replaces no directory that was there", at, p.want.Type)
	case p.want.Type == Link && p.now.Type == File && p.now.Links > 1 && !ours:
		return fmt.Errorf("%s has %d names (hard links); a link in its place would part it from the others for good", at, p.now.Links)
	}
	return checkFlags(p.abs, p.now)
}

// madeDir says that golem made a directory, so that it is no found one.
func (k *archiveWork) madeDir(dir string) bool {
	body, ok := k.w.ledger(dir)
	return ok && body.Made && !k.w.isSurface(dir)
}

// reach sees to it that a path's directory is where it seems to be, and that what is in it
// may be touched.
func (k *archiveWork) reach(p *archivePath) error {
	dir := path.Dir(p.abs)
	at, known := k.owners[dir]
	if !known {
		for up := dir; beneath(up, k.r.Resource); up = path.Dir(up) {
			over := k.paths[below(k.r.Resource, up)]
			if over != nil && over.now.Type != Dir && over.now.Type != Absent {
				if over.old != nil && over.old.Type != Dir {
					return nil // an archive's own, which goes for it
				}
				return fmt.Errorf("%s cannot be: %s is a %s, not a directory", quote(p.abs), quote(up), over.now.Type)
			}
		}
		var err error
		if at, err = k.w.resolve(path.Join(dir, tempPrefix), false); err != nil {
			return err
		}
		k.owners[dir] = at
	}
	if p.old != nil || p.now.Type == Absent {
		return nil
	}
	at.real = p.abs
	return k.w.mayTouch(at)
}

// beneath is what lies beneath golem's at a path: what was found there once, or what is
// there now.
func (k *archiveWork) beneath(p *archivePath, ours bool) (Node, error) {
	if ours {
		return k.w.given(p.old.found())
	}
	if p.now.Type == Dir || p.now.Type == Absent {
		return absent(), nil
	}
	n := p.now
	n.Lent = k.w.loans()[p.abs]
	return n, nil
}

// given is a found state as it counts now: one that was a package's only while golem has
// that there.
func (w *World) given(n Node) (Node, error) {
	if n.Lent == nil {
		return n, nil
	}
	there, err := w.lenderThere(n.Lent.lender())
	if err != nil || there {
		return n, err
	}
	return n.Lent.Before, nil
}

// dress is what is to be at a path: the archive's bytes and permissions; what else the
// scroll leaves open stays as it is.
func (k *archiveWork) dress(p *archivePath) (Node, error) {
	var was *scrolls.Glyph
	if p.old != nil && p.old.Type != Dir {
		was = p.was
	}
	n := Node{Type: p.want.Type, Mode: Any, UID: Any, GID: Any, Flags: Any, Size: p.want.Size, Hash: p.want.Hash, Target: p.want.Target}
	if n.Type == File && n.Size == 0 {
		n.data = []byte{}
	}
	n, err := dress(k.w, n, p.by, was, p.found, p.now, p.want.Mode)
	if n.GID == Any {
		n.GID = k.w.newGroup(path.Dir(p.abs))
	}
	if n.Type == Link {
		n.Mode, n.Flags = Any, Any
	}
	if err != nil || n.Type == Link {
		return n, err
	}
	n.Mode = p.want.Mode
	if n.Xattrs != nil {
		n.Xattrs = withMode(n.Xattrs, n.Mode)
	}
	if p.now.Type == File && (p.now.Links > 1 || p.now.Mount) {
		n.Links, n.Mount = p.now.Links, p.now.Mount // written over, not swapped
	}
	if p.now.Type != File || p.now.Hash != n.Hash {
		n.Mtime = p.want.Mtime // only where bytes are written: a touched file is no drift
		if p.found.Type == File && p.found.Hash == n.Hash {
			n.Mtime = p.found.Mtime
		}
	}
	return n, nil
}

// newGroup is the group that the system gives to what golem makes in a directory.
func (w *World) newGroup(dir string) int {
	if n, err := w.look(dir); err == nil && n.Type == Dir && n.Mode != Any && n.Mode&0o2000 != 0 {
		return n.GID
	}
	return w.Host.GID
}

// displace notes bytes that go and that neither golem nor what was found there had.
func (k *archiveWork) displace(p *archivePath) {
	if (p.now.Type == File || p.now.Type == Link) && !p.old.left(p.now) && !knows(p.now, p.old.found(), p.to) {
		k.t.Keeps = append(k.t.Keeps, kept(p.abs, p.now, "changed by hand since golem wrote it"))
	}
}

// release works out what becomes of a path that an archive no longer has: what was there
// before it comes back.
func (k *archiveWork) release(p *archivePath) error {
	if len(k.w.Claims(p.abs)) > 0 {
		_, predicted := k.w.over[p.abs]
		if k.w.isSurface(p.abs) || k.fitted && predicted {
			p.stays, p.handed = true, true // the glyph's turn was before this one
			return nil
		}
	}
	if !p.old.Wrote {
		p.stays = true
		return nil
	}
	found, err := k.w.given(p.old.found())
	if err != nil {
		return err
	}
	if p.now.Type == Dir || p.now.Type == Special {
		p.stays = true
		if found.Type == File && found.Blob != "" {
			k.t.Keeps = append(k.t.Keeps, kept(p.abs, found, homeless(p.now.Type)))
		}
		return nil
	}
	if err := checkFlags(p.abs, p.now); err != nil {
		return err
	}
	p.found, p.to = found, found
	p.to.Lent, p.to.Links, p.to.Mount = nil, 0, false
	if p.now.Type == File && found.Type == File && (p.now.Links > 1 || p.now.Mount) {
		p.to.Links, p.to.Mount = p.now.Links, p.now.Mount
	}
	if p.changes() {
		k.displace(p)
	}
	return nil
}

// dir works out what becomes of a path where an archive has a directory. One that was
// there is left as it is.
func (k *archiveWork) dir(p *archivePath) error {
	declared := k.w.isSurface(p.abs)
	for _, key := range k.w.Claims(p.abs) {
		if g := k.w.InForce(key); g != nil && g.Kind != directoryKind.Name {
			return k.shared(p.by, key, p.abs)
		}
		declared = true
	}
	if err := k.reach(p); p.abs != k.r.Resource && err != nil {
		return k.wrong(p, err)
	}
	ours := p.old != nil && p.old.Type != Dir
	want, err := k.dirNode(p)
	if err != nil {
		return err
	}
	switch p.now.Type {
	case Absent:
		p.to = want
		if body, ok := k.w.ledger(p.abs); ok && !body.Made {
			p.to = body.Node // found once, and removed by a stranger
		} else if declared {
			p.to = want
		}
	case Dir:
		if !declared && k.madeDir(p.abs) && !k.yields(p) {
			p.to.Mode, p.to.UID, p.to.GID = want.Mode, want.UID, want.GID
			p.to.Xattrs, p.to.Flags, p.to.Mtime = nil, Any, 0
		}
	default:
		if !ours {
			return k.wrong(p, fmt.Errorf("%s is a %s, and a directory in the archive", quote(p.abs), p.now.Type))
		}
		found, err := k.w.given(p.old.found())
		if err != nil {
			return err
		}
		if found.Type != Absent {
			return k.wrong(p, fmt.Errorf("%s was a %s before golem, and is a directory in the archive", quote(p.abs), found.Type))
		}
		p.to = want
		k.displace(p)
	}
	return nil
}

// dirNode is a directory as an archive has it.
func (k *archiveWork) dirNode(p *archivePath) (Node, error) {
	n := Node{Type: Dir, Mode: p.want.Mode, UID: k.w.Host.UID, GID: k.w.newGroup(path.Dir(p.abs)), Flags: Any}
	if k.w.Host.UID != 0 {
		n.UID, n.GID = Any, Any // nobody but root gives files away
	}
	return n, k.w.setOwner(&n, p.by)
}

// yields says that another archive has the same directory, and gives it its permissions:
// of several, the first by key.
func (k *archiveWork) yields(p *archivePath) bool {
	return slices.ContainsFunc(k.sharers(p), func(key scrolls.Key) bool { return key < p.by.Key })
}

// sharers are the other archives that stay and have a directory, too.
func (k *archiveWork) sharers(p *archivePath) []scrolls.Key {
	var all []scrolls.Key
	add := func(key scrolls.Key) {
		if k.r.Drop[key] == nil && k.wants[key] == nil && k.w.InForce(key) != nil {
			all = append(all, key)
		}
	}
	for key, held := range k.held {
		if slices.ContainsFunc(held.Entries, func(e heldEntry) bool { return e.Type == Dir && string(e.Path) == below(k.r.Resource, p.abs) }) {
			add(key)
		}
	}
	for _, h := range k.w.heldAt(p.abs) {
		if h.resource != k.r.Resource && h.entry.Type == Dir {
			add(h.layer.Key)
		}
	}
	return all
}
