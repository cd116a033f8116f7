package reconcilers

import (
	"encoding/json"
	"fmt"

	"golem/scrolls"
	"golem/state"
)

// A base says what the whole object at a path is.
type base struct {
	typ Type
	// make returns the wanted object. beneath is what golem's layers lie on, now
	// what stands there with the edits peeled off, was the base glyph before this
	// turn (nil for none).
	make func(w *World, g *scrolls.Glyph, was *scrolls.Glyph, beneath, now Node) (Node, error)
}

// editAdds is what an edit tells that it did where nothing of it was there before.
const editAdds = "added"

// An edit is a pair of pure functions on a file's bytes. For every content c,
// peel(put(c)) is c.
type edit struct {
	// put makes the edit true of content. hint is the number of bytes that lay
	// behind the edit when it was last peeled off, -1 if it was not there.
	put func(g *scrolls.Glyph, content []byte, hint int) (putResult, error)
	// peel takes off what an inverse says was put on. Content in which that cannot
	// be found any more is returned as it is.
	peel func(g *scrolls.Glyph, inverse json.RawMessage, content []byte) peelResult
	// holds says whether content shows the edit.
	holds func(g *scrolls.Glyph, content []byte) bool
	// tell says in a few words what a put with this inverse did, and what peeling it off
	// gives back.
	tell func(g *scrolls.Glyph, inverse json.RawMessage) (did, back string)
	// note, where set, is what a person should know of the glyph before it is put on; ""
	// for nothing.
	note func(g *scrolls.Glyph) string
}

type putResult struct {
	content []byte
	inverse json.RawMessage
	changed bool
}

type peelResult struct {
	content []byte
	tail    int // bytes of content behind the place where the edit was; -1 if it was not there
	// lost are bytes that content had before the edit, or a stranger's in its place, which
	// it does not have again.
	lost []byte
	// why says what was in the way where the edit could not be taken off; "" otherwise.
	why string
}

// lose notes a line that is lost.
func (p *peelResult) lose(line Bytes) {
	p.lost = append(append(p.lost, line...), '\n')
}

// A surface is the path reconciler's reading of a record: one path, what was found
// there, and golem's layers on it.
type surface struct {
	path   string
	found  Node
	base   *state.Layer
	edits  []state.Layer
	before *state.Record
	// made is true when the object that edits lie on was made by golem.
	made bool
	// under is what lay beneath the base when it was put on.
	under Node
}

// baseInverse is the receipt of a base layer.
type baseInverse struct {
	Beneath Node `json:"beneath"`
	Made    bool `json:"made,omitempty"` // golem's own edits had made what lay beneath
}

// trace is what a record says golem left at a path.
type trace struct {
	Node Node `json:"node"`
	Made bool `json:"made,omitempty"`
}

// readSurface decodes a record; a nil one is a path golem never touched.
func readSurface(path string, rec *state.Record) (*surface, error) {
	s := &surface{path: path, before: rec, found: absent()}
	if rec == nil {
		return s, nil
	}
	if err := json.Unmarshal(rec.Found, &s.found); err != nil {
		return nil, fmt.Errorf("read what was found at %s: %w", quote(path), err)
	}
	s.found = s.found.whole()
	var left trace
	if len(rec.After) > 0 {
		if err := json.Unmarshal(rec.After, &left); err != nil {
			return nil, fmt.Errorf("read what was left at %s: %w", quote(path), err)
		}
	}
	s.made = left.Made
	for i := range rec.Layers {
		layer := rec.Layers[i]
		kind, ok := KindOf(layer.Glyph.Kind)
		if !ok || kind.Sort != PathSort {
			return nil, fmt.Errorf("read the layers of %s: this golem does not know the kind %q", quote(path), layer.Glyph.Kind)
		}
		if kind.base == nil {
			s.edits = append(s.edits, layer)
			continue
		}
		s.base = &layer
		var inv baseInverse
		if err := json.Unmarshal(layer.Inverse, &inv); err != nil {
			return nil, fmt.Errorf("read what lies beneath %s: %w", quote(path), err)
		}
		s.under = inv.Beneath.whole()
		s.made = inv.Made
	}
	return s, nil
}

// peelAll takes every edit off content, newest first, and says what became of each.
func (s *surface) peelAll(content []byte) (bare []byte, peels map[scrolls.Key]peelResult) {
	peels = map[scrolls.Key]peelResult{}
	bare = s.peel(content, func(key scrolls.Key, _ []byte, off peelResult) {
		off.content = nil
		peels[key] = off
	})
	return bare, peels
}

// stood says where in content the edits stand, for putting those that stay back where they
// were.
func (s *surface) stood(content []byte) *spots {
	all := &spots{}
	s.peel(content, func(key scrolls.Key, from []byte, off peelResult) { all.take(key, from, off.content, off.tail) })
	return all
}

// peel takes every edit off content, newest first, and tells of each what it was taken off.
func (s *surface) peel(content []byte, tell func(key scrolls.Key, from []byte, off peelResult)) []byte {
	for i := len(s.edits) - 1; i >= 0; i-- {
		layer := s.edits[i]
		kind, _ := KindOf(layer.Glyph.Kind)
		off := kind.edit.peel(layer.Glyph, layer.Inverse, content)
		tell(layer.Key, content, off)
		content = off.content
	}
	return content
}

// stack returns the layers as they are to be after the turn, oldest first: what is
// there, less what drops, with what is set in its place, in the run's final order.
func (s *surface) stack(r Request) (base *state.Layer, edits []state.Layer) {
	have := map[scrolls.Key]state.Layer{}
	if s.before != nil {
		for _, layer := range s.before.Layers {
			if r.Drop[layer.Key] == nil {
				have[layer.Key] = layer
			}
		}
	}
	for _, g := range r.Set {
		layer := have[g.Key]
		layer.Key, layer.Lineage, layer.Glyph = g.Key, r.Lineage, g
		if kind, _ := KindOf(g.Kind); kind.base != nil {
			if s.base != nil && s.base.Key != g.Key {
				delete(have, s.base.Key) // one base replaces another under the new key
			}
		}
		have[g.Key] = layer
	}
	for _, key := range s.order(r, have) {
		layer := have[key]
		if kind, _ := KindOf(layer.Glyph.Kind); kind.base != nil {
			base = &layer
			continue
		}
		edits = append(edits, layer)
	}
	return base, edits
}

// order lists the keys in have by the request's order; keys it does not name keep
// their place at the end, in the record's order.
func (s *surface) order(r Request, have map[scrolls.Key]state.Layer) []scrolls.Key {
	var keys []scrolls.Key
	done := map[scrolls.Key]bool{}
	add := func(key scrolls.Key) {
		if _, ok := have[key]; ok && !done[key] {
			done[key] = true
			keys = append(keys, key)
		}
	}
	for _, key := range r.Order {
		add(key)
	}
	if s.before != nil {
		for _, layer := range s.before.Layers {
			add(layer.Key)
		}
	}
	for _, g := range r.Set {
		add(g.Key)
	}
	return keys
}

// sameStack says whether the layers after the turn are those before it, by key,
// content id and order.
func (s *surface) sameStack(base *state.Layer, edits []state.Layer) bool {
	if (s.base == nil) != (base == nil) || len(s.edits) != len(edits) {
		return false
	}
	if base != nil && !sameLayer(*s.base, *base) {
		return false
	}
	for i := range edits {
		if !sameLayer(s.edits[i], edits[i]) {
			return false
		}
	}
	return true
}

func sameLayer(a, b state.Layer) bool {
	return a.Key == b.Key && (a.Glyph == b.Glyph || CID(a.Glyph) == CID(b.Glyph))
}

// shows says whether what stands there shows an edit.
func (k *work) shows(kind Kind, g *scrolls.Glyph) bool {
	return k.now.Type == File && k.now.data != nil && kind.edit.holds(g, k.now.data)
}

// did says what putting an edit on did, and what a person should know of it.
func (k *work) did(g *scrolls.Glyph, kind Kind) string {
	did := editAdds
	if layer, there := k.stacks().is[g.Key]; there {
		did, _ = kind.edit.tell(g, layer.Inverse)
	}
	if kind.edit.note != nil {
		if note := kind.edit.note(g); note != "" {
			did += "; " + note
		}
	}
	if did == editAdds && kind.Name != entryKind.Name && k.mid.Type == File {
		if note := unplaced(g.Attrs, k.want.data); note != "" {
			did += "; " + note
		}
	}
	return did
}
