package apply_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"golem/reconcilers"
	"golem/scrolls"
)

// leave returns a scroll whose glyphs are left as they are when they go, where pick says so.
func leave(s *scrolls.Scroll, pick func(*scrolls.Glyph) bool) *scrolls.Scroll {
	next := *s
	next.Leaves = nil
	for _, leaf := range s.Leaves {
		other := *leaf
		other.Glyphs = nil
		for _, g := range leaf.Glyphs {
			left := *g
			if pick(g) {
				left.OnUndeclare = "leave"
			}
			other.Glyphs = append(other.Glyphs, &left)
		}
		next.Leaves = append(next.Leaves, &other)
	}
	return &next
}

// TestLawLeave: what is left as it is when it goes stays to the last byte, and nothing of
// it stays in the journal.
func TestLawLeave(t *testing.T) {
	lawChecks(t)
	rapid.Check(t, func(t *rapid.T) {
		h := drawHost(t)
		defer h.remove()
		s := drawScroll(t, "law", everything)
		if h.run(t, s, "law") {
			return
		}
		applied := h.fingerprint(t, true)
		s = leave(s, func(*scrolls.Glyph) bool { return true })
		if h.run(t, s, "law") {
			t.Fatal("the same scroll, whose glyphs are to be left, is refused")
		}
		h.settled(t, s, "law")
		if h.run(t, nil, "law") {
			t.Fatal("destroy was refused")
		}
		if diff := compare(applied, h.fingerprint(t, true)); diff != "" {
			t.Fatalf("what was to be left is not as it was:\n%s", diff)
		}
		h.settled(t, nil, "law")
	})
}

// TestLawLeaveSome: whatever is left and whatever is given back, it either can be done or
// is refused before anything is touched; and a host on which nothing that lies beneath
// something else is left comes back where nothing was left.
func TestLawLeaveSome(t *testing.T) {
	lawChecks(t)
	rapid.Check(t, func(t *rapid.T) {
		h := drawHost(t)
		defer h.remove()
		s := leave(drawScroll(t, "law", everything), func(*scrolls.Glyph) bool { return rapid.IntRange(0, 2).Draw(t, "leave") == 0 })
		if h.run(t, s, "law") {
			return
		}
		next, before := drawScroll(t, "law", everything), h.fingerprint(t, true)
		var under *reconcilers.LeaveError
		switch _, err := h.apply(next, "law"); {
		case errors.As(err, &under):
			if diff := compare(before, h.fingerprint(t, true)); diff != "" {
				t.Fatalf("a refused scroll changed the host: %v\n%s", err, diff)
			}
		case err == nil:
			h.settled(t, next, "law")
		}
		h.run(t, nil, "law")
	})
}
