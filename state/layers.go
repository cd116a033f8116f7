package state

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
)

// manyLayers is from how many layers on a record's spelling is remembered: a step on a file
// that many leaves edit writes all of its layers before and after, and but a few are new.
const manyLayers = 8

// A spelled is a layer with its JSON, as this process wrote it last.
type spelled struct {
	layer Layer
	text  []byte
}

// is says whether a layer is the one that was spelled. Glyphs never change once they are
// loaded, and are told apart by where they are.
func (s *spelled) is(l *Layer) bool {
	return s.layer.Key == l.Key && s.layer.Glyph == l.Glyph && s.layer.Lineage == l.Lineage && s.layer.Changed == l.Changed &&
		bytes.Equal(s.layer.Inverse, l.Inverse)
}

// encodeRecord returns a record's column, a recordBody: NULL for none.
func (tx *Tx) encodeRecord(r *Record) (sql.NullString, error) {
	if r == nil {
		return sql.NullString{}, nil
	}
	layers, err := tx.spellLayers(r)
	found, err1 := encode(r.Found)
	after, err2 := encode(r.After)
	if err := errors.Join(err, err1, err2); err != nil {
		return sql.NullString{}, fmt.Errorf("journal record of %q: %w", r.Resource, err)
	}
	size := len(found) + len(after) + 40
	for _, l := range layers {
		size += len(l.text) + 1
	}
	text := append(make([]byte, 0, size), '{')
	field := func(name string, body []byte) {
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(append(text, name...), body...)
	}
	if len(r.Found) > 0 {
		field(`"found":`, found)
	}
	if len(layers) > 0 {
		field(`"layers":[`, layers[0].text)
		for _, l := range layers[1:] {
			field("", l.text)
		}
		text = append(text, ']')
	}
	if len(r.After) > 0 {
		field(`"after":`, after)
	}
	return sql.NullString{String: string(append(text, '}')), Valid: true}, nil
}

// spellLayers spells a record's layers, those anew that are not as they were last.
func (tx *Tx) spellLayers(r *Record) ([]spelled, error) {
	name := r.Sort + ":" + r.Resource
	was, all := tx.j.layers[name], make([]spelled, len(r.Layers))
	at := 0 // in what was spelled last, which has the same order
	for i := range r.Layers {
		l := &r.Layers[i]
		if at+1 < len(was) && was[at].layer.Key != l.Key && was[at+1].layer.Key == l.Key {
			at++ // the one between is gone
		}
		if at < len(was) && was[at].is(l) {
			all[i], at = was[at], at+1
			continue
		}
		if at < len(was) && was[at].layer.Key == l.Key {
			at++
		}
		text, err := tx.spellLayer(l)
		if err != nil {
			return nil, err
		}
		all[i] = spelled{*l, text}
	}
	if len(all) >= manyLayers {
		tx.j.layers[name] = all
	}
	return all, nil
}

func (tx *Tx) spellLayer(l *Layer) ([]byte, error) {
	if err := checkJSON("layer", l.Inverse); err != nil {
		return nil, err
	}
	lineage, err := tx.lineage(l.Lineage)
	if err != nil {
		return nil, err
	}
	glyph, err := tx.glyph(l.Glyph)
	if err != nil {
		return nil, err
	}
	return encode(layerBody{l.Key, lineage, glyph.Int64, l.Changed, l.Inverse})
}
