package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"

	"golem/state"
)

// Capture implements Reconciler: a step's inverse is in its intent.
func (r sole[S]) Capture(ctx context.Context, w *World, store Store, turns []*Turn) error {
	c, ok := r.own.(capturer[S])
	if !ok {
		return nil
	}
	for _, t := range turns {
		k, ok := t.work.(*soleWork[S])
		if !ok || !t.Acts {
			continue
		}
		k.m.step = t.Step
		if err := c.capture(ctx, w, store, k.m); err != nil {
			return err
		}
	}
	return nil
}

// Enact implements Reconciler.
func (r sole[S]) Enact(ctx context.Context, w *World, store Store, turns []*Turn) (int, error) {
	defer w.forget()
	for i, t := range turns {
		k, ok := t.work.(*soleWork[S])
		if !ok || !t.Acts {
			continue
		}
		k.m.step = t.Step
		if err := r.own.move(ctx, w, store, k.m); err != nil {
			return i, err
		}
	}
	return -1, nil
}

// Undo implements Reconciler.
func (r sole[S]) Undo(ctx context.Context, w *World, store Store, s *state.Step) error {
	m, acts, err := r.inverse(s)
	if err != nil || !acts {
		return err
	}
	defer w.forget()
	w.forget()
	return r.own.move(ctx, w, store, m)
}

// inverse is the motion that takes a step back, and whether the step did anything.
func (r sole[S]) inverse(s *state.Step) (m motion[S], acts bool, err error) {
	if len(s.Inverse) == 0 {
		return m, false, nil
	}
	m = motion[S]{resource: s.Resource, reverse: true, undo: true, step: s}
	for _, part := range s.Glyphs {
		m.old = part.Old
		if m.glyph = part.New; m.glyph == nil {
			m.glyph = part.Old
		}
	}
	if len(s.Glyphs) == 0 && s.Before != nil && len(s.Before.Layers) > 0 {
		m.old = s.Before.Layers[0].Glyph
	}
	err = json.Unmarshal(s.Inverse, &m.to)
	if err == nil {
		err = json.Unmarshal(s.Expect, &m.from)
	}
	if err != nil {
		return m, false, fmt.Errorf("read the step on %s %s: %w", r.sort, s.Resource, err)
	}
	return m, r.sight(m.from) != r.sight(m.to), nil // else only its record changed
}

// Foresee implements Reconciler.
func (r sole[S]) Foresee(w *World, s *state.Step) error {
	m, acts, err := r.inverse(s)
	if err == nil && acts {
		r.foresee(w, s.Resource, m.to)
	}
	return err
}

// Stays implements Stayer.
func (r sole[S]) Stays(s *state.Step, whole bool) string {
	own, ok := r.own.(stayer[S])
	if !ok {
		return ""
	}
	m, acts, err := r.inverse(s)
	if err != nil || !acts {
		return "" // Undo says what is wrong with it
	}
	return own.stays(m, whole)
}

// TellFound implements Teller.
func (r sole[S]) TellFound(found json.RawMessage) string {
	shown := r.ShowFound(found)
	if string(shown) == "null" {
		return "nothing"
	}
	return string(shown)
}

// ShowFound implements Shower.
func (r sole[S]) ShowFound(found json.RawMessage) json.RawMessage {
	var s S
	if json.Unmarshal(found, &s) != nil {
		return encode("something this golem cannot read")
	}
	return encode(r.own.show(s))
}

// A soleSight is what a turn saw of a thing.
type soleSight string

// Same implements Sight.
func (s soleSight) Same(other any) bool {
	was, ok := other.(soleSight)
	return !ok || s == was
}
