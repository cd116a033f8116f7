package plan

import (
	"fmt"
	"slices"
	"strings"

	"golem/reconcilers"
	"golem/scrolls"
)

// protect refuses a plan that would take away what is protected: by its block, or, where
// the block is gone, by the journal.
func (m *maker) protect() {
	var gone []scrolls.Key
	for _, leaf := range append(slices.Clone(m.leaves), &Leaf{Turns: m.plan.Wave}) {
		for _, t := range leaf.Turns {
			for _, key := range m.protectedRemoves(t) {
				if !slices.Contains(gone, key) {
					gone = append(gone, key)
				}
			}
			for _, g := range t.Set {
				if at := slices.IndexFunc(t.Changes, func(c reconcilers.Change) bool { return c.Key == g.Key }); g.Protect && at >= 0 && t.Changes[at].Destroys {
					m.blame(g, scrolls.Problem{
						Attr: "protect", Summary: "Glyph is protected",
						Detail: fmt.Sprintf("To bring it to what is declared would destroy it (%s), and it is protected. To do that, declare it without protect.", strings.Join(t.Changes[at].Irreversible, "; ")),
					}, nil)
				}
			}
		}
	}
	if len(gone) > 0 && m.failed == nil {
		m.failed = &ProtectedError{gone}
	}
}

// protectedRemoves are the protected keys that a turn removes. What was said of a key last
// is in force with it, not in its step. One that goes on under another key is not removed.
func (m *maker) protectedRemoves(t *reconcilers.Turn) []scrolls.Key {
	var keys []scrolls.Key
	if t.Step == nil {
		return nil
	}
	for _, part := range t.Step.Glyphs {
		if was, ok := m.own[part.Key]; ok && part.New == nil && was.Glyph.Protect && !t.Moves[part.Key] &&
			!slices.ContainsFunc(t.Set, func(g *scrolls.Glyph) bool { return g.MovedFrom == part.Key }) {
			keys = append(keys, part.Key)
		}
	}
	return keys
}

// A ProtectedError says that a plan would remove what is protected.
type ProtectedError struct{ Keys []scrolls.Key }

func (e *ProtectedError) Error() string {
	if len(e.Keys) == 1 {
		return fmt.Sprintf("plan: %s is protected, and this would remove it", e.Keys[0])
	}
	shown := make([]string, len(e.Keys))
	for i, key := range e.Keys {
		shown[i] = string(key)
	}
	return fmt.Sprintf("plan: %s are protected, and this would remove them", strings.Join(shown, ", "))
}

// Hint says how a protection ends.
func (e *ProtectedError) Hint() string {
	return "a protection outlives its block: declare it without protect, apply that, and then it can go"
}
