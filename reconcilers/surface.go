package reconcilers

import (
	"context"
	"fmt"
	"slices"

	"golem/scrolls"
	"golem/state"
)

// PathSort is the sort of the records of paths.
const PathSort = "path"

// maxEdit is the largest file whose bytes are edited. An edit holds the file in
// memory a few times over; a larger one is a database, not a configuration.
const maxEdit = 64 << 20

// surfaces keeps paths: the kinds file, directory, link and line are layers on them.
type surfaces struct{}

func (surfaces) Sort() string { return PathSort }

// A work is one turn on one surface while it is worked out.
type work struct {
	w *World
	r Request
	s *surface
	t *Turn

	now     Node // what stands there, less golem's grants on it
	host    Node // the same with them
	grants  grants
	bare    Node         // the same with golem's edits peeled off
	beneath Node         // what golem's layers lie on
	peels   []peelResult // of the record's edits; none where there is nothing to peel

	base  *state.Layer
	edits []state.Layer
	same  bool // the stack does not change
	want  Node // what is to stand there
	mid   Node // the same before the edits are put on
	made  bool
	diffs map[scrolls.Key]string // of edits that are told and change something
	was   index                  // of the record's edits
	is    index                  // of edits, once they are final
	// secrets says whether any edit is secret, before the turn or after it, and steady which
	// of those that stay have the same edits before them as they had; nil until somebody asks.
	secrets *bool
	steady  map[scrolls.Key]bool
	// parted says that a layer leaves for another resource.
	parted bool
	// orphan is what a package that is gone had put there; not present, if there is none.
	orphan Node
}

// Turn implements Reconciler.
func (s surfaces) Turn(_ context.Context, w *World, r Request) (*Turn, error) { return s.turn(w, r) }

// turn is Turn, which takes no context: it asks no program.
func (surfaces) turn(w *World, r Request) (*Turn, error) {
	s, err := readSurface(r.Resource, r.Record)
	if err != nil {
		return nil, err
	}
	k := &work{w: w, r: r, s: s, t: &Turn{Request: r}, diffs: map[scrolls.Key]string{}}
	k.t.Last = nil // it is of use here alone
	k.t.reckoned.inherit(k.last())
	k.base, k.edits = s.stack(r)
	k.same = len(r.Drop) == 0 && s.sameStack(k.base, k.edits)
	if r.Blind && k.same {
		k.noops(r.Set)
		return k.t, nil
	}
	if err := k.observe(); err != nil {
		return nil, err
	}
	if err := k.stripGrants(); err != nil {
		return nil, fmt.Errorf("read the grants on %s: %w", quote(r.Resource), err)
	}
	if err := k.callIn(); err != nil {
		return nil, err
	}
	if k.strange() {
		return k.t, k.leave()
	}
	k.findBeneath()
	if err := k.refuse(); err != nil {
		return nil, err
	}
	if k.same && k.holds() {
		k.noops(r.Set)
		k.t.Seen, k.t.Leaves = k.now, k.host
		return k.t, nil
	}
	if err := k.build(); err != nil {
		return nil, err
	}
	return k.t, k.finish()
}

func (k *work) noops(set []*scrolls.Glyph) {
	for _, g := range set {
		k.t.Noops = append(k.t.Noops, g.Key)
	}
}

// holdsSecret says whether any edit is secret, before the turn or after it.
func (k *work) holdsSecret() bool {
	if k.secrets == nil {
		is := func(l state.Layer) bool { return secret(l.Glyph) }
		any := slices.ContainsFunc(k.s.edits, is) || slices.ContainsFunc(k.edits, is)
		k.secrets = &any
	}
	return *k.secrets
}

// peelOf is what became of a layer when golem's edits were peeled off.
func (k *work) peelOf(key scrolls.Key) peelResult {
	if i := k.was.of(key, k.s.edits); i >= 0 && i < len(k.peels) {
		return k.peels[i]
	}
	return peelResult{}
}
