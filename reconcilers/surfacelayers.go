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
	sum     string // the hash of content, where another turn of the run may ask
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
		kind := kindNamed(rec.Layers[i].Glyph.Kind)
		if kind == nil || kind.Sort != PathSort {
			return nil, fmt.Errorf("read the layers of %s: this golem does not know the kind %q", quote(path), rec.Layers[i].Glyph.Kind)
		}
		if kind.base == nil {
			continue
		}
		layer := rec.Layers[i]
		s.base = &layer
		var inv baseInverse
		if err := json.Unmarshal(layer.Inverse, &inv); err != nil {
			return nil, fmt.Errorf("read what lies beneath %s: %w", quote(path), err)
		}
		s.under = inv.Beneath.whole()
		s.made = inv.Made
	}
	s.edits = editsOf(rec.Layers)
	return s, nil
}

// shows says whether what stands there shows an edit.
func (k *work) shows(kind Kind, g *scrolls.Glyph) bool {
	return k.now.Type == File && k.now.data != nil && kind.edit.holds(g, k.now.data)
}

// did says what putting an edit on did, and what a person should know of it.
func (k *work) did(g *scrolls.Glyph, kind Kind) string {
	did := editAdds
	if i := k.is.of(g.Key, k.edits); i >= 0 {
		did, _ = kind.edit.tell(g, k.edits[i].Inverse)
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
