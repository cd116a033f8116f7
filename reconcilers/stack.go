package reconcilers

import (
	"cmp"
	"slices"

	"golem/scrolls"
	"golem/state"
)

// An index finds layers by key. Who looks for a few reads through them, who looks for many
// makes a map of them first; so neither a turn about one of a thousand layers nor one about
// all of them takes more than it must. Its layers keep their places.
type index struct {
	asked int
	at    map[scrolls.Key]int
}

// fewAsked is how many layers an index looks for without a map.
const fewAsked = 4

// of is the place of a key among layers, which are the same each time; -1 for none.
func (x *index) of(key scrolls.Key, layers []state.Layer) int {
	if x.asked++; x.asked <= fewAsked {
		return slices.IndexFunc(layers, func(l state.Layer) bool { return l.Key == key })
	}
	if x.at == nil {
		x.at = make(map[scrolls.Key]int, len(layers))
		for i := range layers {
			x.at[layers[i].Key] = i
		}
	}
	if i, ok := x.at[key]; ok {
		return i
	}
	return -1
}

func isBaseLayer(l state.Layer) bool { return kindNamed(l.Glyph.Kind).IsBase() }

// editsOf are the edits among layers, in their order. They are the very slice where the base,
// if there is one, is the first.
func editsOf(layers []state.Layer) []state.Layer {
	if len(layers) > 0 && isBaseLayer(layers[0]) {
		layers = layers[1:]
	}
	if slices.ContainsFunc(layers, isBaseLayer) {
		layers = slices.DeleteFunc(slices.Clone(layers), isBaseLayer)
	}
	return slices.Clip(layers)
}

// stack returns the layers as they are to be after the turn, oldest first: what is
// there, less what drops, with what is set in its place, in the run's final order. Keys
// that the order does not name stand behind those that it does, in the record's order and
// then the request's.
func (s *surface) stack(r Request) (base *state.Layer, edits []state.Layer) {
	var layers []state.Layer
	if s.before != nil {
		layers = slices.Clone(s.before.Layers)
		if len(r.Drop) > 0 {
			layers = slices.DeleteFunc(layers, func(l state.Layer) bool { return r.Drop[l.Key] != nil })
		}
	}
	var at index
	there := layers
	for _, g := range r.Set {
		i := at.of(g.Key, there)
		if i < 0 {
			i, layers = len(layers), append(layers, state.Layer{})
		}
		layers[i].Key, layers[i].Lineage, layers[i].Glyph = g.Key, r.Lineage, g
	}
	layersInOrder(layers, r.Order)
	for _, layer := range layers {
		if isBaseLayer(layer) && (base == nil || s.base != nil && base.Key == s.base.Key) {
			base = &layer // one base replaces another under the new key
		}
	}
	return base, editsOf(layers)
}

// layersInOrder puts layers into an order, in place.
func layersInOrder(layers []state.Layer, order map[scrolls.Key]int) {
	if len(order) == 0 {
		return
	}
	place := make([]int, len(layers))
	sorted := true
	for i := range layers {
		at, named := order[layers[i].Key]
		if !named {
			at = len(order)
		}
		place[i] = at
		sorted = sorted && (i == 0 || place[i-1] <= at)
	}
	if sorted {
		return
	}
	by := make([]int, len(layers))
	for i := range by {
		by[i] = i
	}
	slices.SortStableFunc(by, func(a, b int) int { return cmp.Compare(place[a], place[b]) })
	was := slices.Clone(layers)
	for i, from := range by {
		layers[i] = was[from]
	}
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
	return sameBottom(s.edits, edits) == len(edits)
}

func sameLayer(a, b state.Layer) bool {
	return a.Key == b.Key && (a.Glyph == b.Glyph || CID(a.Glyph) == CID(b.Glyph))
}

// sameBottom is how many of the oldest layers of two stacks are the same.
func sameBottom(a, b []state.Layer) int {
	n := 0
	for n < len(a) && n < len(b) && sameLayer(a[n], b[n]) {
		n++
	}
	return n
}

// peelAll takes every edit off content, newest first, and says what became of each.
func (s *surface) peelAll(content []byte) (bare []byte, peels []peelResult) {
	peels = make([]peelResult, len(s.edits))
	for i := len(s.edits) - 1; i >= 0; i-- {
		off := s.peelOne(i, content)
		content, off.content = off.content, nil
		peels[i] = off
	}
	return content, peels
}

// stood says where in content the edits stand, for putting those that stay back where they
// were.
func (s *surface) stood(content []byte) *spots {
	all := &spots{}
	for i := len(s.edits) - 1; i >= 0; i-- {
		off := s.peelOne(i, content)
		all.take(s.edits[i].Key, content, off.content, off.tail)
		content = off.content
	}
	return all
}

// peelOne takes one edit, by its place, off content.
func (s *surface) peelOne(i int, content []byte) peelResult {
	layer := &s.edits[i]
	return kindNamed(layer.Glyph.Kind).edit.peel(layer.Glyph, layer.Inverse, content)
}
