package reconcilers

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"golem/scrolls"
	"golem/state"
)

// expectation is what a path step's Expect holds: what will be there, the name used
// beside it, and the directories made on the way.
type expectation struct {
	Node    Node     `json:"node"`
	Temp    string   `json:"temp"`
	Parents []upward `json:"parents,omitempty"` // outermost first
}

// upward is a parent in JSON.
type upward struct {
	Path Bytes `json:"path"`
	Node Node  `json:"node"`
}

func tempName() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return tempPrefix + hex.EncodeToString(b[:])
}

// finish makes the step of what was worked out, unless none of this leaf's glyphs has
// a part in it.
func (k *work) finish() error {
	k.want.Links, k.want.Mount = 0, false
	if k.now.Type == File && k.want.Type == File && (k.now.Links > 1 || k.now.Mount) {
		k.want.Links, k.want.Mount = k.now.Links, k.now.Mount // written over, not swapped
	}
	host, want := k.host, k.regrant(k.want)
	k.t.Acts = differs(host, want) != ""
	if k.t.Acts {
		if err := checkFlags(k.r.Resource, k.now); err != nil {
			return err
		}
	}
	if k.postpones() {
		return nil
	}
	k.t.Step = &state.Step{
		Lineage: k.r.Lineage, Leaf: k.r.Leaf, Sort: PathSort, Resource: k.r.Resource,
		Before: k.r.Record,
	}
	k.judge()
	if len(k.t.Step.Glyphs) == 0 && !k.parted {
		k.t.Step, k.t.Acts = nil, false
		k.t.Seen, k.t.Leaves = k.now, host
		return nil
	}
	k.displace()
	k.keepLost()
	k.t.shift = &shift{path: k.r.Resource, from: host, to: want, temp: tempName(), tests: k.tests()}
	if len(k.t.shift.tests) > 0 {
		k.t.shift.temp += extension(k.r.Resource) // by which some programs know what a file is
	}
	k.tellTests(k.t.shift)
	k.t.Seen, k.t.Leaves = k.now, want
	k.t.Step.After = k.record()
	k.t.staysMade = k.keepsDir()
	k.t.encodeStep(host)
	return nil
}

// encodeStep writes both inverses of the step: what is there, and what will be.
func (t *Turn) encodeStep(now Node) {
	t.Step.Inverse = encode(stored(now))
	want := t.shift.to
	exp := expectation{Node: want, Temp: t.shift.temp}
	for _, up := range t.shift.parents {
		exp.Parents = append(exp.Parents, upward{Bytes(up.path), up.node})
	}
	t.Step.Expect = encode(exp)
}

// stored is a node as the journal has it: its bytes are a blob there.
func stored(n Node) Node {
	if n.Type == File {
		n.Blob = n.Hash
	}
	return n
}

// record is the surface after the turn; nil when no layer is left.
func (k *work) record() *state.Record {
	if k.base == nil && len(k.edits) == 0 {
		return nil
	}
	rec := &state.Record{Sort: PathSort, Resource: k.r.Resource}
	if k.r.Record != nil {
		rec.Found = k.r.Record.Found
	} else {
		rec.Found = encode(stored(k.foundNow()))
	}
	made := k.made
	if k.base != nil {
		layer := *k.base
		layer.Changed = layer.Changed || k.s.base != nil && k.s.base.Changed || k.baseActs()
		under := k.beneath
		k.t.under = &under
		layer.Inverse = encode(baseInverse{Beneath: stored(k.beneath), Made: k.made})
		rec.Layers = append(rec.Layers, layer)
		made = false
	}
	rec.Layers = append(rec.Layers, k.edits...)
	rec.After = encode(trace{Node: slim(k.want), Made: made})
	return rec
}

// slim is a node as a fingerprint: without a claim on bytes.
func slim(n Node) Node {
	n.Blob, n.Links, n.Mount = "", 0, false
	return n
}

// foundNow is what golem found at a path that it has no record of. A directory that
// golem made on the way to something else was not there before golem.
func (k *work) foundNow() Node {
	if k.inherits() {
		return absent()
	}
	return k.borrowed(k.now)
}

// inherits says that the path is a directory that golem made on the way to something:
// a glyph for it inherits that it was not there.
func (k *work) inherits() bool {
	body, ok := k.w.ledger(k.r.Resource)
	return k.r.Record == nil && ok && body.Made
}

// baseActs says whether the base itself changes anything, edits aside: what is there,
// or what was there before golem.
func (k *work) baseActs() bool {
	return differs(k.bare, k.mid) != "" || differs(k.beneath, k.mid) != ""
}

// displace notes bytes that go and that neither golem nor the found state had.
func (k *work) displace() {
	if h := k.letGo(); h != nil && k.t.Acts && (k.now.Type == File || k.now.Type == Link) {
		if !h.entry.left(k.now) && !knows(k.now, h.entry.found(), k.want) {
			k.t.Keeps = append(k.t.Keeps, kept(k.r.Resource, k.now, "changed by hand since golem wrote it"))
		}
		return
	}
	if !k.t.Acts || k.s.before == nil || k.s.base == nil || k.now.Type != File && k.now.Type != Link {
		return
	}
	if !knows(k.now, k.left(), k.s.under, k.s.found, k.want) {
		k.t.Keeps = append(k.t.Keeps, kept(k.r.Resource, k.now, "changed by hand since golem wrote it"))
	}
}

// knows says whether the bytes or the target of what is there are those of something that
// golem has.
func knows(now Node, known ...Node) bool {
	return slices.ContainsFunc(known, func(n Node) bool { return n.Type == now.Type && n.Hash == now.Hash && n.Target == now.Target })
}

// keepLost notes what edits had replaced and cannot give back, and what a stranger had put
// in the place of golem's: a text that changed since has no place for it.
func (k *work) keepLost() {
	if k.s.base != nil {
		return // the whole of what is there is kept, if it is not golem's
	}
	for _, off := range k.peels {
		if len(off.lost) == 0 {
			continue
		}
		n := fileNode(off.lost)
		n.Mode, n.UID, n.GID, n.Flags = 0o600, k.w.Host.UID, k.w.Host.GID, Any
		k.t.lost = append(k.t.lost, n)
		k.t.Keeps = append(k.t.Keeps, kept(k.r.Resource, n, "lines of it that have no place in it any more: it was changed by hand"))
	}
}

// kept is the journal's note of something displaced.
func kept(path string, n Node, reason string) state.Kept {
	n = stored(n)
	return state.Kept{Path: path, Node: encode(n), Blob: n.Blob, Size: n.Size, Reason: reason}
}

// leave gives up a path where something stands that is not golem's to displace. The
// found original, which cannot go back, is kept.
func (k *work) leave() error {
	k.want, k.mid, k.bare = k.now, k.now, k.now
	k.t.Step = &state.Step{
		Lineage: k.r.Lineage, Leaf: k.r.Leaf, Sort: PathSort, Resource: k.r.Resource, Before: k.r.Record,
	}
	reason := fmt.Sprintf("left as it is: a %s is there now that is not golem's", k.now.Type)
	if found := k.s.found; found.Type == File && found.Blob != "" {
		k.t.Keeps = append(k.t.Keeps, kept(k.r.Resource, found, homeless(k.now.Type)))
		reason += "; the original goes to golem kept"
	}
	for _, layer := range k.dropped() {
		k.tell(layer.Key, layer.Glyph, nil, state.Remove, Change{Effect: EffectForget, Reason: reason}, false)
	}
	k.t.shift = &shift{path: k.r.Resource, from: k.host, to: k.host, temp: tempName()}
	k.t.Seen, k.t.Leaves = k.now, k.host
	k.t.encodeStep(k.host)
	return nil
}

// homeless is why an original is kept that cannot go back.
func homeless(now Type) string {
	return fmt.Sprintf("the original could not be put back: a %s is in its place", now)
}

// dropped are the layers that go in this turn, newest first. A glyph whose layer went
// before, with the base it lay on, has one that never changed anything.
func (k *work) dropped() []state.Layer {
	var gone []state.Layer
	found := map[scrolls.Key]bool{}
	if k.s.before != nil {
		for i := len(k.s.before.Layers) - 1; i >= 0; i-- {
			if layer := k.s.before.Layers[i]; k.r.Drop[layer.Key] != nil {
				gone = append(gone, layer)
				found[layer.Key] = true
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(k.r.Drop)) {
		if !found[key] {
			gone = append(gone, state.Layer{Key: key, Lineage: k.r.Lineage, Glyph: k.r.Drop[key]})
		}
	}
	return gone
}

// postpones says that this turn takes a directory that golem made, which the run's
// last wave does. Its change is told here all the same.
func (k *work) postpones() bool {
	if k.r.Late || k.base != nil || len(k.edits) > 0 || k.s.base == nil || k.now.Type != Dir ||
		k.want.Type != Absent || k.w.Needed(k.r.Resource) {
		return false
	}
	k.t.Postpone, k.t.Acts = true, false
	k.t.Seen, k.t.Leaves = k.now, k.host
	return true
}

// keepsDir says that a directory which golem made goes as a glyph, but still holds
// something declared.
func (k *work) keepsDir() bool {
	return k.t.Step.After == nil && k.now.Type == Dir && k.s.base != nil && k.s.base.Changed &&
		k.s.under.Type == Absent && k.w.Needed(k.r.Resource)
}

// fitLedger brings the ledger's line about the turn's own path up to date: a record
// knows more than it; and a directory that golem made and that still holds something
// declared stays as a made parent, with a made parent's mode and owner.
func (w *World) fitLedger(t *Turn) error {
	dir := t.Resource
	if !t.staysMade {
		if _, ok := w.ledger(dir); ok && t.Step.After != nil {
			t.setLedger(w, dir, nil)
		}
		return nil
	}
	above, _ := split(dir)
	up, err := w.look(above)
	if err != nil {
		return err
	}
	node := parentNode(w.Host, up)
	body := ledgerBody{Made: true, Node: node}
	if n, ok := w.archiveDir(dir); ok {
		node, body.Node = n, Node{Type: Dir, Mode: n.Mode, UID: Any, GID: Any, Flags: Any}
	}
	t.Acts = differs(t.shift.from, node) != ""
	t.shift.to, t.Leaves = node, node
	t.setLedger(w, dir, &body)
	for i := range t.Changes {
		t.Changes[i].Effect = EffectWrite
		t.Changes[i].Reason = "stays for what is declared in it, as a directory made on the way: mode " + fmt.Sprintf("%04o", node.Mode)
		t.Changes[i].After = map[string]any{"type": string(Dir), "mode": fmt.Sprintf("%04o", node.Mode)}
	}
	return nil
}

// tell adds one glyph's part to the turn.
func (k *work) tell(key scrolls.Key, old, next *scrolls.Glyph, op state.Op, c Change, changed bool) {
	g := next
	if g == nil {
		g = old
	}
	c.Key, c.Kind, c.Op = key, g.Kind, op
	k.t.Changes = append(k.t.Changes, c)
	part := state.StepGlyph{
		Op: op, Key: key, CID: CID(g), Old: old, New: next, Leaf: k.r.Leaf, Changed: changed, Reason: c.Reason,
	}
	k.t.Step.Glyphs = append(k.t.Step.Glyphs, part)
}
