package reconcilers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golem/scrolls"
	"golem/state"
)

// judge works out each glyph's op: what of the step is whose, and how it is told.
func (k *work) judge() {
	for _, layer := range k.dropped() {
		if k.r.Moves[layer.Key] {
			k.parted = true
			continue
		}
		kind, _ := KindOf(layer.Glyph.Kind)
		if kind.base != nil && k.base != nil {
			// Another base takes its place: one replace, told under the new key.
			k.t.Step.Glyphs = append(k.t.Step.Glyphs, state.StepGlyph{
				Op: state.Remove, Key: layer.Key, CID: CID(layer.Glyph), Old: layer.Glyph, Leaf: k.r.Leaf,
				Reason: "another glyph takes its place",
			})
			continue
		}
		k.judgeRemove(layer, kind)
	}
	drifted := false
	for _, g := range k.r.Set {
		kind, _ := KindOf(g.Kind)
		before := len(k.t.Step.Glyphs)
		if kind.base != nil {
			k.judgeBase(g, kind)
		} else {
			k.judgeEdit(g)
		}
		if len(k.t.Step.Glyphs) == before {
			k.t.Noops = append(k.t.Noops, g.Key)
		} else {
			drifted = true
		}
	}
	if !drifted && len(k.t.Step.Glyphs) == 0 && k.t.Acts && !k.r.Blind {
		k.judgeDisorder()
	}
}

// judgeDisorder blames the base for bytes that differ though every layer shows: under
// a base, everything else in the file is drift.
func (k *work) judgeDisorder() {
	for _, g := range k.r.Set {
		if kind, _ := KindOf(g.Kind); kind.base != nil {
			k.t.Noops = slices.DeleteFunc(k.t.Noops, func(key scrolls.Key) bool { return key == g.Key })
			k.repair(g, "drifted: bytes, changed by hand")
			return
		}
	}
}

func (k *work) repair(g *scrolls.Glyph, reason string) {
	c := Change{Effect: EffectWrite, Reason: reason, Drift: true, Diff: k.diff(k.now, k.want)}
	c.Before, c.After = k.view(k.now), k.view(k.want)
	k.hide(&c, g)
	k.tell(g.Key, g, g, state.Repair, c, true)
}

// judgeBase tells what the turn does about its base.
func (k *work) judgeBase(g *scrolls.Glyph, kind Kind) {
	why := differs(k.bare, k.mid)
	c := Change{Effect: EffectWrite, Diff: k.diff(k.bare, k.mid)}
	if k.bare.Type != Absent {
		c.Before, c.There = k.view(k.bare), true
	}
	c.After = k.view(k.mid)
	k.hide(&c, g)
	acts := why != ""
	old := k.s.base
	switch {
	case old == nil:
		c.Reason = k.installReason(g)
		if !acts {
			c.Effect, c.Reason = EffectRecord, "it is so already; nothing to change"
		}
		k.tell(g.Key, nil, g, state.Install, c, acts)
	case old.Key != g.Key || CID(old.Glyph) != CID(g):
		c.Reason = k.changeReason(g)
		if !acts {
			c.Effect, c.Reason = EffectRecord, "the host is so already; nothing to change"
		}
		k.tell(g.Key, old.Glyph, g, state.Replace, c, acts)
	case acts && !k.r.Blind:
		c.Reason, c.Drift = "drifted: "+k.driftText(g, why), true
		k.tell(g.Key, old.Glyph, g, state.Repair, c, true)
	}
}

// driftText tells what drifted, and to what, for a person.
func (k *work) driftText(g *scrolls.Glyph, why string) string {
	switch {
	case k.now.Type == Absent:
		return "it is gone, removed by hand"
	case why == "type":
		why = k.now.Type.noun() + " is there"
	case why == "mode":
		why = "mode " + argText(g, "mode", fmt.Sprintf("%04o", k.now.Mode))
	case why == "target":
		why = "it leads to " + k.targetText(k.now, g)
	case why == "owner":
		why = "owner " + argText(g, "owner", k.userText(k.now.UID))
	case why == "group":
		why = "group " + argText(g, "group", k.groupText(k.now.GID))
	}
	return why + ", changed by hand"
}

// installReason says what an install of a base puts there, and over what.
func (k *work) installReason(g *scrolls.Glyph) string {
	if k.bare.Type == Absent || k.s.before != nil && k.made {
		return k.brief(k.mid, g)
	}
	if k.bare.Type == Dir {
		return fmt.Sprintf("an existing directory: %s", k.changeReason(g))
	}
	if h := k.letGo(); h != nil {
		return k.brief(k.mid, g) + "; takes the place of what " + string(h.layer.Key) + " had there"
	}
	was := fmt.Sprintf("an existing %s not made by golem", k.bare.Type)
	detail := "→ " + k.targetText(k.bare, g)
	if k.bare.Type == File {
		detail = fmt.Sprintf("%04o %s", k.bare.Mode, k.ownerText(k.bare))
		if !secret(g) {
			detail = fmt.Sprintf("%s, sha256 %s, %04o %s", bytesText(k.bare.Size), short(k.bare.Hash), k.bare.Mode, k.ownerText(k.bare))
		}
	}
	return fmt.Sprintf("%s; replaces %s (%s); the original is kept", k.brief(k.mid, g), was, detail)
}

// brief says what an object is, in a few words.
func (k *work) brief(n Node, g *scrolls.Glyph) string {
	var parts []string
	switch n.Type {
	case Link:
		parts = append(parts, "→ "+k.targetText(n, g))
	case File, Dir:
		if n.Mode != Any {
			parts = append(parts, "mode "+argText(g, "mode", fmt.Sprintf("%04o", n.Mode)))
		}
	}
	if _, ok := g.Attrs["owner"]; ok {
		parts = append(parts, "owner "+argText(g, "owner", k.userText(n.UID)))
	}
	if _, ok := g.Attrs["group"]; ok {
		parts = append(parts, "group "+argText(g, "group", k.groupText(n.GID)))
	}
	if n.Type == File && !secret(g) {
		parts = append(parts, bytesText(n.Size))
	}
	return strings.Join(append(parts, k.viaText(g)...), ", ")
}

func (k *work) viaText(g *scrolls.Glyph) []string {
	via := k.r.Via[g.Key]
	if len(via) == 0 {
		return nil
	}
	return []string{"through the link " + quote(via[0]) + ", editing " + quote(k.r.Resource)}
}

// changeReason says what differs between what is there and what is wanted.
func (k *work) changeReason(g *scrolls.Glyph) string {
	from, to := k.bare, k.mid
	if from.Type != to.Type {
		if from.Type == Absent {
			return k.brief(to, g)
		}
		return fmt.Sprintf("%s → %s, %s", from.Type, to.Type, k.brief(to, g))
	}
	var parts []string
	if to.Type != Link && to.Mode != Any {
		parts = append(parts, change("mode", argText(g, "mode", fmt.Sprintf("%04o", from.Mode)), argText(g, "mode", fmt.Sprintf("%04o", to.Mode))))
	}
	if to.UID != Any && from.UID != to.UID {
		parts = append(parts, change("owner", argText(g, "owner", k.userText(from.UID)), argText(g, "owner", k.userText(to.UID))))
	}
	if to.GID != Any && from.GID != to.GID {
		parts = append(parts, change("group", argText(g, "group", k.groupText(from.GID)), argText(g, "group", k.groupText(to.GID))))
	}
	switch {
	case to.Type == Link:
		parts = append(parts, k.targetText(from, g)+" → "+k.targetText(to, g))
	case to.Type == File && k.secretNear(g):
		parts = append(parts, "content is secret")
	case to.Type == File && from.Hash != to.Hash:
		parts = append(parts, sizes(from.Size, to.Size))
	}
	return strings.Join(append(parts, k.viaText(g)...), ", ")
}

func change(what, from, to string) string {
	if from == to {
		return what + " " + to
	}
	return what + " " + from + " → " + to
}

// judgeEdit tells what the turn does about one edit.
func (k *work) judgeEdit(g *scrolls.Glyph) {
	kind, _ := KindOf(g.Kind)
	var old *scrolls.Glyph
	if i := k.was.of(g.Key, k.s.edits); i >= 0 {
		old = k.s.edits[i].Glyph
	}
	diff, put := k.putOn(g.Key)
	c := Change{Effect: EffectWrite, Diff: diff, After: k.pathView()}
	k.hide(&c, g)
	switch {
	case old == nil:
		did := k.did(g, kind)
		if k.want.Type == File && k.now.Type == Absent && k.base == nil {
			did += "; " + madeForIt
		}
		c.Reason = strings.Join(append([]string{did}, k.viaText(g)...), ", ")
		c.There = !put || !strings.HasPrefix(did, editAdds)
		if !put {
			c.Effect, c.Reason = EffectRecord, "it is there already; nothing to change"
			if takesAway(g.Attrs) {
				c.Reason = "it is so already; nothing to change"
			}
		}
		k.tell(g.Key, nil, g, state.Install, c, put)
	case CID(old) != CID(g):
		c.Reason = "changed"
		k.diffEdit(&c, kind, g)
		k.tell(g.Key, old, g, state.Replace, c, k.t.Acts)
	case k.t.Acts && !k.r.Blind && !k.shows(kind, g):
		c.Reason, c.Drift = "drifted: it is gone, removed by hand", true
		if off := k.peelOf(g.Key); off.tail >= 0 || len(off.lost) > 0 || takesAway(g.Attrs) || !strings.HasPrefix(k.did(g, kind), editAdds) {
			c.Reason = "drifted: it is not so any more, changed by hand"
		}
		k.diffEdit(&c, kind, g)
		k.tell(g.Key, old, g, state.Repair, c, true)
	case k.t.Acts && !k.steadies(g.Key):
		c.Reason = "moves: its place among what golem edits here changed"
		k.tell(g.Key, old, g, state.Replace, c, true)
	}
}

// diffEdit shows what becomes of an edit that is there in one form or another: what is on
// the disk against the same with the edit taken off and put on as it is to be.
func (k *work) diffEdit(c *Change, kind Kind, g *scrolls.Glyph) {
	if c.Diff == "" || c.Secret || k.now.Type != File || k.now.data == nil {
		return
	}
	at := k.was.of(g.Key, k.s.edits)
	if at < 0 {
		return
	}
	layer := k.s.edits[at]
	next := k.want.data
	if len(k.s.edits) > 1 || len(k.edits) > 1 || k.base != nil { // others change too
		off := k.without(layer, kind)
		put, err := kind.edit.put(g, off.content, off.tail)
		if err != nil {
			return
		}
		next = put.content
	}
	if diff := k.editDiff(k.now.data, next); diff != "" {
		c.Diff = diff
	}
}

// takesAway says whether an edit is one of what is not to be there.
func takesAway(a scrolls.Attrs) bool { return goes(a) || a["absent"] == true }

// judgeRemove tells what undeclaring one layer gives back.
func (k *work) judgeRemove(layer state.Layer, kind Kind) {
	c := Change{}
	acts := k.t.Acts && layer.Changed
	if kind.base != nil {
		c.Effect, c.Reason = k.removeBase(layer)
		if acts {
			c.Before = k.view(k.bare)
			if k.mid.Type != Absent {
				c.After = k.view(k.mid)
			}
			c.Diff = k.diff(k.bare, k.mid)
		}
	} else {
		c.Effect, c.Reason = k.removeEdit(layer)
		if acts {
			c.Before = k.pathView()
			c.Diff = k.peelDiff(layer, kind)
		}
	}
	k.hide(&c, layer.Glyph)
	k.tell(layer.Key, layer.Glyph, nil, state.Remove, c, acts)
}

// removeBase says what becomes of a path whose base goes.
func (k *work) removeBase(layer state.Layer) (effect Effect, reason string) {
	if !layer.Changed {
		return EffectForget, "it was so before golem; left as it is"
	}
	drift := ""
	if left := k.left(); k.now.Type == File && left.Type == File && left.Hash != k.now.Hash {
		drift = "; what was changed by hand is kept"
	}
	switch k.mid.Type {
	case Absent:
		if k.now.Type == Absent {
			return EffectForget, "it is gone already"
		}
		return EffectDelete, "it was not there before golem" + drift
	case File:
		if k.now.Type == File && differs(k.bare, k.mid) == "" {
			return EffectForget, "it is as golem found it"
		}
		size := bytesText(k.mid.Size) + ", "
		if k.secretNear(layer.Glyph) {
			size = ""
		}
		return EffectRestore, fmt.Sprintf("the original is put back (%s%04o %s)%s", size, k.mid.Mode, k.ownerText(k.mid), drift)
	case Link:
		return EffectRestore, "the original link is put back (→ " + k.targetText(k.mid, layer.Glyph) + ")" + drift
	}
	return EffectRestore, fmt.Sprintf("its found mode and owner are given back (%04o %s)", k.mid.Mode, k.ownerText(k.mid))
}

// removeEdit says what becomes of a file that an edit comes off.
func (k *work) removeEdit(layer state.Layer) (effect Effect, reason string) {
	kind, _ := KindOf(layer.Glyph.Kind)
	off := k.peelOf(layer.Key)
	_, back := kind.edit.tell(layer.Glyph, layer.Inverse)
	if len(off.lost) > 0 {
		back += "; what was changed by hand is kept"
	}
	switch {
	case !layer.Changed:
		return EffectForget, "it was there before golem; left as it is"
	case k.want.Type == Absent && k.now.Type != Absent:
		return EffectDelete, back + ", and with it the file, which golem made"
	case off.why != "":
		return EffectForget, "left as it is: " + off.why
	case off.tail < 0 || k.now.Type != File:
		return EffectForget, "it is gone already"
	}
	return EffectRestore, back
}

// peelDiff shows what taking one edit off does, other edits aside.
func (k *work) peelDiff(layer state.Layer, kind Kind) string {
	if k.now.Type != File || k.now.data == nil || k.r.Untold {
		return ""
	}
	return k.editDiff(k.now.data, k.without(layer, kind).content)
}

// left is what the record says golem left at the path.
func (k *work) left() Node {
	var last trace
	if k.s.before == nil || json.Unmarshal(k.s.before.After, &last) != nil {
		return absent()
	}
	return last.Node
}
