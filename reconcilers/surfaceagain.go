package reconcilers

import (
	"bytes"
	"slices"

	"golem/state"
)

// A reckoning is what a turn worked out of a file's bytes and golem's layers alone. Peeling
// and putting are pure: whoever finds the very bytes and layers again, a second look or the
// run's next turn on the path, has no need to do them once more. Nothing here is taken on
// trust: bytes are compared, or their hashes.
type reckoning struct {
	record *state.Record
	was    []state.Layer // golem's edits on what stood there
	from   []byte        // what stood there
	bare   []byte        // the same with the edits peeled off
	peels  []peelResult  // of each of them, without their contents
	// rest is from without all but the oldest stay of the edits, which the turn leaves as
	// they are; nil where nobody will ask.
	rest  []byte
	stay  int
	stood *spots // where the edits stood in what is bare; nil until somebody asks

	on    Node // what the edits were put on
	layer []state.Layer
	hints []int
	puts  []putResult // without their contents
	all   Node        // the bytes with all of them
}

// Spent lets go of what a turn reckoned, when the run's next turn on the resource has made
// use of it.
func (t *Turn) Spent() { t.reckoned = reckoning{} }

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

// peeled is peelAll of what stands there, as far as the plan or the run's last turn on the
// path did not do that with the same bytes and layers.
func (k *work) peeled() ([]byte, []peelResult) {
	r := &k.t.reckoned
	if p := k.planned(); p != nil && p.bare != nil && p.record == k.s.before {
		r.record, r.was, r.from, r.bare, r.peels, r.rest, r.stay, r.stood = p.record, p.was, p.from, p.bare, p.peels, p.rest, p.stay, p.stood
		return r.bare, r.peels
	}
	r.record, r.was, r.from = k.s.before, k.s.edits, k.now.data
	if !k.r.Shares {
		r.bare, r.peels = k.s.peelAll(k.now.data)
		return r.bare, r.peels
	}
	r.stay = sameBottom(k.s.edits, k.edits)
	k.peelOnto(k.last())
	return r.bare, r.peels
}

// peelOnto peels the edits off what stands there, newest first, until what is left is what
// an earlier turn saw under the same layers.
func (k *work) peelOnto(last *reckoning) {
	r := &k.t.reckoned
	known := last.peeledSame(k.s.edits)
	r.peels = make([]peelResult, len(k.s.edits))
	content, met := k.now.data, false
	for i := len(k.s.edits); ; i-- { // content has the i oldest edits on
		if i == r.stay {
			r.rest = nonNil(content)
		}
		met = met || i <= known && last.saw(i, content)
		if met && i <= r.stay {
			copy(r.peels, last.peels[:i])
			r.bare = last.bare
			return
		}
		if i == 0 {
			r.bare = nonNil(content)
			return
		}
		off := k.s.peelOne(i-1, content)
		content, off.content = off.content, nil
		r.peels[i-1] = off
	}
}

// last is what the run's last turn on the path reckoned; nil for none.
func (k *work) last() *reckoning {
	if k.r.Last == nil {
		return nil
	}
	return &k.r.Last.reckoned
}

// peeledSame is how many of the oldest edits are, with their inverses, those that it peeled off.
func (p *reckoning) peeledSame(edits []state.Layer) int {
	n := 0
	for p != nil && p.from != nil && n < min(len(edits), len(p.was)) && sameLayer(edits[n], p.was[n]) && bytes.Equal(edits[n].Inverse, p.was[n].Inverse) {
		n++
	}
	return n
}

// saw says whether content is what it had with the n oldest edits on.
func (p *reckoning) saw(n int, content []byte) bool {
	return p != nil && p.from != nil && (n == len(p.was) && bytes.Equal(content, p.from) || p.rest != nil && n == p.stay && bytes.Equal(content, p.rest))
}

// resume is how many of the edits the run's last turn has put on the same bytes at the same
// places, and those bytes with them on: nothing before that has to be done once more.
func (k *work) resume(at *spots, content []byte) (n int, with []byte) {
	r, p := &k.t.reckoned, k.last()
	if p == nil || len(at.at) > 0 || p.on.Type != File || p.on.Hash != r.on.Hash || p.all.data == nil {
		return 0, content // where spots move with each edit, all of them are looked at
	}
	for n < min(len(p.puts), len(k.edits)) && p.hints[n] == r.hints[n] && sameLayer(p.layer[n], k.edits[n]) {
		n++
	}
	switch {
	case n == len(p.puts):
		return n, p.all.data
	case r.rest != nil && 0 < r.stay && r.stay <= n && p.puts[r.stay-1].sum == fileNode(r.rest).Hash:
		return r.stay, r.rest
	}
	return 0, content
}

// inherit takes over what the run's last turn put, for the next one: a turn that finds
// nothing to do puts nothing itself.
func (p *reckoning) inherit(last *reckoning) {
	if last != nil {
		p.on, p.layer, p.hints, p.puts, p.all = last.on, last.layer, last.hints, last.puts, last.all
	}
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
		off := k.peels[0]
		off.content = k.t.reckoned.bare
		return off
	}
	return kind.edit.peel(layer.Glyph, layer.Inverse, k.now.data)
}
