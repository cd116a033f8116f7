package reconcilers

import (
	"slices"

	"golem/scrolls"
	"golem/state"
)

// A reckoning is what a turn worked out of a file's bytes and golem's layers alone. Peeling
// and putting are pure: a second look that finds the very bytes has no need to do them, and
// hold all of a large file, once more.
type reckoning struct {
	record *state.Record
	bare   []byte // what stood there with golem's edits peeled off
	peels  map[scrolls.Key]peelResult
	stood  *spots // where the edits stood in what is bare; nil until somebody asks

	on    Node // what the edits were put on
	layer []state.Layer
	hints []int
	puts  []putResult // without their contents
	all   Node        // the bytes with all of them
}

// lookAgain looks at the path where the plan looked before: as long as the bytes are those
// that the plan has at hand, they are only hashed.
func (k *work) lookAgain(keep int64) (Node, error) {
	planned := k.r.Planned
	if planned == nil {
		return k.w.Host.observe(k.w.d, k.r.Resource, keep)
	}
	was, ok := planned.Seen.(Node)
	if !ok || was.Type != File || was.data == nil || was.Size <= keepBytes || was.Size > keep {
		return k.w.Host.observe(k.w.d, k.r.Resource, keep)
	}
	now, err := k.w.Host.observe(k.w.d, k.r.Resource, 0)
	if err != nil || now.Type != File || now.Size > keep {
		return now, err
	}
	if now.Hash != was.Hash {
		return k.w.Host.observe(k.w.d, k.r.Resource, keep)
	}
	now.data = was.data
	return now, nil
}

// peeled is peelAll of what stands there, unless the plan did that with the same bytes and
// layers.
func (k *work) peeled() ([]byte, map[scrolls.Key]peelResult) {
	r := &k.t.reckoned
	r.record = k.s.before
	if p := k.planned(); p != nil && p.bare != nil && p.record == k.s.before {
		r.bare, r.peels, r.stood = p.bare, p.peels, p.stood
	} else {
		r.bare, r.peels = k.s.peelAll(k.now.data)
	}
	return r.bare, r.peels
}

// stood is where the edits stood in what is there without them.
func (k *work) stood() *spots {
	r := &k.t.reckoned
	if r.stood == nil && r.bare != nil {
		r.stood = k.s.stood(k.now.data)
	}
	if r.stood == nil {
		return &spots{}
	}
	return r.stood
}

// planned is what the plan reckoned of the bytes that are there now; nil where it saw
// others, or nothing.
func (k *work) planned() *reckoning {
	if k.r.Planned == nil {
		return nil
	}
	was, ok := k.r.Planned.Seen.(Node)
	if !ok || was.Type != File || k.now.Type != File || was.Hash != k.now.Hash {
		return nil
	}
	return &k.r.Planned.reckoned
}

// putsAgain says whether the plan put the same edits on the same bytes, at the same places.
func (p *reckoning) putsAgain(on Node, edits []state.Layer, hints []int) bool {
	return p != nil && on.Type == File && p.on.Type == File && p.on.Hash == on.Hash && p.all.data != nil &&
		slices.Equal(p.hints, hints) && slices.EqualFunc(p.layer, edits, sameLayer)
}

// without is what stands there with one edit taken off, others aside.
func (k *work) without(layer state.Layer, kind Kind) peelResult {
	if len(k.s.edits) == 1 && k.t.reckoned.bare != nil {
		off := k.peels[layer.Key]
		off.content = k.t.reckoned.bare
		return off
	}
	return kind.edit.peel(layer.Glyph, layer.Inverse, k.now.data)
}
