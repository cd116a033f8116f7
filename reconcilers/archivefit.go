package reconcilers

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"golem/scrolls"
	"golem/state"
)

// Fit implements Reconciler: it finds the directories to be made and those that go, and
// what is in the way.
func (unpackings) Fit(w *World, t *Turn) error {
	k, ok := t.work.(*archiveWork)
	if !ok {
		return nil
	}
	k.w = w
	if k.moved() {
		again, err := archiveTurn(k.ctx, w, k.unaware(), true)
		if err != nil {
			return err
		}
		*t = *again
		k = t.work.(*archiveWork)
		k.t = t
	}
	seen, looked := k.t.Seen.(archiveSight)
	if !looked || seen.unseen {
		return nil
	}
	maps.DeleteFunc(seen.now, func(p string, _ Node) bool {
		_, foreseen := w.over[p]
		return foreseen // it is as an earlier turn leaves it
	})
	if t.Step == nil {
		return nil
	}
	k.fitted = true
	if err := k.clashes(); err != nil {
		return err
	}
	return k.fit(t)
}

// unaware is the request without what the turn before left: the world knows more.
func (k *archiveWork) unaware() Request {
	r := k.r
	r.Now = nil
	return r
}

// moved says whether an earlier turn changes one of the paths.
func (k *archiveWork) moved() bool {
	for _, p := range k.order {
		if n, ok := k.w.over[p.abs]; ok && !sameSight(n, p.now) {
			return true
		}
		if p.old != nil && p.old.Found != nil && p.old.Found.Lent != nil {
			return true // whether its package is there, the turns before decide
		}
	}
	return false
}

// clashes refuses what something else has until later in the run.
func (k *archiveWork) clashes() error {
	for _, p := range k.order {
		if p.want == nil || p.want.Type == Dir || p.old != nil {
			continue
		}
		var holder scrolls.Key
		if r := k.w.Record(PathSort, p.abs); r != nil && len(r.Layers) > 0 {
			holder = r.Layers[0].Key
		}
		for _, h := range k.w.heldAt(p.abs) {
			if h.resource == k.r.Resource || h.entry.Type == Dir {
				continue
			}
			if holder = h.layer.Key; k.w.stays(h.layer) {
				return k.shared(p.by, holder, p.abs)
			}
		}
		if _, released := k.w.over[p.abs]; holder != "" && (k.w.Acts || !released) {
			return k.wrong(p, fmt.Errorf("%s is in the archive, and belongs to %s until that goes, later in this run; "+
				"declare the archive behind it, or apply once without", quote(p.abs), holder))
		}
	}
	return nil
}

// fit completes a turn: parents, room, the ledger and the directories that go.
func (k *archiveWork) fit(t *Turn) error {
	for _, s := range k.shifts[:k.clear] {
		k.w.predict(s.path, s.to)
	}
	if err := k.releaseDirs(t); err != nil {
		return err
	}
	k.arrange() // with the directories that go
	k.made = nil
	defer func() { t.shift = nil }()
	var room int64
	for _, s := range k.shifts {
		s.parents = nil
		if err := k.fitShift(t, s); err != nil {
			return err
		}
		if s.to.Type == File && s.from.Hash != s.to.Hash {
			room += s.to.Size
		}
	}
	if err := k.checkRoom(room); err != nil {
		return err
	}
	k.noteDirs(t)
	t.Acts, t.Touches = len(k.shifts) > 0, slices.Clone(k.made)
	for _, s := range k.shifts {
		t.Touches = append(t.Touches, s.path)
	}
	t.Step.After = k.record()
	t.Changes, t.Step.Glyphs = nil, nil
	k.judge()
	k.encode()
	k.leaves()
	return nil
}

// fitShift looks for what would stop the change to one path of the archive, and notes the
// parents to be made.
func (k *archiveWork) fitShift(t *Turn, s *shift) error {
	t.shift = s
	if s.from.Type == Dir && s.to.Type != Dir && !s.yields {
		names, err := k.w.names(s.path)
		if err == nil && len(names) > 0 {
			err = fmt.Errorf("%s is not empty: it holds %s", quote(s.path), someNames(names))
		}
		if err != nil {
			return err
		}
	}
	if err := checkFlags(s.path, s.from); err != nil {
		return err
	}
	if err := k.w.findParents(t); err != nil {
		return err
	}
	if err := k.w.mayWrite(t); err != nil {
		return err
	}
	for _, up := range s.parents {
		k.made = append(k.made, up.path)
	}
	if s.to.Type == Dir && s.from.Type == Absent {
		k.made = append(k.made, s.path)
	}
	k.w.predict(s.path, s.to)
	return nil
}

// noteDirs notes in the ledger the directories that golem makes for the archive, and
// forgets those that go. Their owner is the archive's to say.
func (k *archiveWork) noteDirs(t *Turn) {
	for _, p := range k.order {
		if p.want == nil || p.want.Type != Dir || p.now.Type != Dir || !k.madeDir(p.abs) {
			continue
		}
		if body, _ := k.w.ledger(p.abs); body.Node.UID != Any || body.Node.Mode != p.want.Mode {
			body.Node = Node{Type: Dir, Mode: p.want.Mode, UID: Any, GID: Any, Flags: Any}
			t.setLedger(k.w, p.abs, &body)
		}
	}
	for _, s := range k.shifts {
		switch {
		case s.from.Type == Absent && s.to.Type == Dir:
			if body, ok := k.w.ledger(s.path); ok && !body.Made {
				continue
			}
			n := Node{Type: Dir, Mode: s.to.Mode, UID: Any, GID: Any, Flags: Any}
			t.setLedger(k.w, s.path, &ledgerBody{Made: true, Node: n})
		case s.from.Type == Dir && s.to.Type != Dir:
			t.setLedger(k.w, s.path, nil)
		}
	}
}

// releaseDirs works out what becomes of the directories that an archive no longer has:
// what golem made goes if it is empty by then, and is like any other made parent if
// something else needs it. What holds something else waits for the run's last wave.
func (k *archiveWork) releaseDirs(t *Turn) error {
	for _, p := range k.order { // what goes, before the directories are looked at
		if p.changes() && p.to.Type == Absent {
			k.w.predict(p.abs, p.to)
		}
	}
	for _, p := range slices.Backward(k.order) {
		if p.want != nil || p.old == nil || p.old.Type != Dir {
			continue
		}
		p.to = p.now
		if p.now.Type != Dir || !k.madeDir(p.abs) || len(k.w.Claims(p.abs)) > 0 {
			continue
		}
		if k.w.Needed(p.abs) {
			if err := k.plain(t, p); err != nil {
				return err
			}
			continue
		}
		names, err := k.w.names(p.abs)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			p.to = absent()
			k.w.predict(p.abs, p.to)
		}
	}
	return nil
}

// plain makes a directory that stays for something else like one made on the way to it,
// unless that is another archive, which has its own mind about it.
func (k *archiveWork) plain(t *Turn, p *archivePath) error {
	if len(k.sharers(p)) > 0 {
		return nil
	}
	uid, gid, err := k.w.madeOwner(p.abs)
	if err != nil {
		return err
	}
	n := parentNode(k.w.Host, Node{UID: uid, GID: gid})
	p.to.Mode, p.to.UID, p.to.GID = n.Mode, n.UID, n.GID
	p.to.Xattrs, p.to.Flags, p.to.Mtime = nil, Any, 0
	t.setLedger(k.w, p.abs, &ledgerBody{Made: true, Node: n})
	return nil
}

// checkRoom refuses an archive that the file system has no room for.
func (k *archiveWork) checkRoom(size int64) error {
	for dir := k.r.Resource; ; dir = path.Dir(dir) {
		fd, err := k.w.d.fd(dir)
		if err == nil {
			return k.w.checkRoom(fd, &shift{path: k.r.Resource, to: Node{Type: File, Size: size}})
		}
		if dir == "/" {
			return fmt.Errorf("open %s: %w", dir, err)
		}
	}
}

// record is the directory's record after the turn; nil when no archive is left.
func (k *archiveWork) record() *state.Record {
	rec := &state.Record{Sort: archiveSort, Resource: k.r.Resource, Found: encode(Node{Type: Dir}), After: encode(struct{}{})}
	set := map[scrolls.Key]*scrolls.Glyph{}
	for _, g := range k.r.Set {
		set[g.Key] = g
	}
	if k.r.Record != nil {
		for _, l := range k.r.Record.Layers {
			switch {
			case k.r.Drop[l.Key] != nil:
			case set[l.Key] != nil:
				rec.Layers = append(rec.Layers, k.newLayer(set[l.Key], l.Changed))
				delete(set, l.Key)
			default:
				rec.Layers = append(rec.Layers, k.lessTaken(l))
			}
		}
	}
	for _, g := range k.r.Set {
		if set[g.Key] != nil {
			rec.Layers = append(rec.Layers, k.newLayer(g, false))
		}
	}
	if len(rec.Layers) == 0 {
		return nil
	}
	return rec
}

// newLayer is a glyph's layer after the turn.
func (k *archiveWork) newLayer(g *scrolls.Glyph, changed bool) state.Layer {
	held := heldArchive{Blob: archiveSum(g.Attrs), Entries: make([]heldEntry, 0, len(k.wants[g.Key]))}
	for _, e := range k.wants[g.Key] {
		h := heldEntry{archiveEntry: e}
		p := k.paths[string(e.Path)]
		changed = changed || p.changes()
		if e.Type != Dir {
			h.Wrote = p.wrote
			changed = changed || p.wrote
			if p.found.Type != Absent {
				n := stored(p.found)
				h.Found = &n
			}
		}
		held.Entries = append(held.Entries, h)
	}
	return state.Layer{Key: g.Key, Lineage: k.r.Lineage, Glyph: g, Changed: changed, Inverse: encode(held)}
}

// lessTaken is another leaf's layer without what this turn takes over from it.
func (k *archiveWork) lessTaken(l state.Layer) state.Layer {
	if taken := k.taken[l.Key]; taken != nil {
		held := *k.held[l.Key]
		held.Entries = slices.DeleteFunc(slices.Clone(held.Entries), func(e heldEntry) bool { return taken[e.Path] })
		l.Inverse = encode(held)
	}
	return l
}

// An archiveState is what a step found at the paths that it changes, or leaves there.
type archiveState struct {
	Paths []archiveNode `json:"paths,omitempty"`
	Made  []Bytes       `json:"made,omitempty"` // directories, outermost first
}

type archiveNode struct {
	Path Bytes  `json:"path"`
	Node Node   `json:"node"`
	Temp string `json:"temp,omitempty"` // the name used beside it
}

// encode writes the step's inverses.
func (k *archiveWork) encode() {
	var before, after archiveState
	seen := map[string]bool{}
	for i, s := range k.shifts {
		if seen[s.path] {
			continue // it made way first
		}
		seen[s.path] = true
		from, to := s.from, s.to
		if i < k.clear {
			to = k.paths[below(k.r.Resource, s.path)].to
		}
		if p := k.paths[below(k.r.Resource, s.path)]; !k.isArchives(p, from) {
			from = stored(from)
		}
		before.Paths = append(before.Paths, archiveNode{Path: Bytes(s.path), Node: from})
		after.Paths = append(after.Paths, archiveNode{Path: Bytes(s.path), Node: slim(to), Temp: s.temp})
	}
	for _, dir := range k.made {
		after.Made = append(after.Made, Bytes(dir))
	}
	k.t.Step.Inverse, k.t.Step.Expect = encode(before), encode(after)
}

// isArchives says that what is there has the bytes of an archive in force, which the
// journal has: they need not be kept once more.
func (k *archiveWork) isArchives(p *archivePath, n Node) bool {
	return n.Type == File && n.Size > 0 && p.old != nil && p.old.Type == File && p.old.Hash == n.Hash && k.held[p.was.Key].Blob != ""
}

// readUnpacking decodes a step's inverses.
func readUnpacking(s *state.Step) (before, after archiveState, err error) {
	err = errors.Join(json.Unmarshal(s.Inverse, &before), json.Unmarshal(s.Expect, &after))
	if err == nil && len(before.Paths) != len(after.Paths) {
		err = errors.New("its two sides differ")
	}
	if err != nil {
		err = fmt.Errorf("read the step on %s: %w", quote(s.Resource), err)
	}
	return before, after, err
}
