package reconcilers

import (
	"context"
	"fmt"
	"maps"

	"golem/scrolls"
)

// Locate implements Reconciler. Links are resolved as this run leaves them: a declared
// link counts as made, a link that goes counts as gone.
func (s surfaces) Locate(_ context.Context, w *World, glyphs []*scrolls.Glyph, gone []Gone) (map[*scrolls.Glyph]Spot, []Mistake, error) {
	final := w.after(gone)
	spots := map[*scrolls.Glyph]Spot{}
	var mistakes []Mistake
	// A declared link may lie on the way to another glyph's path, whatever their
	// order: resolve until nothing moves.
	for range 4 {
		next := map[*scrolls.Glyph]Spot{}
		mistakes = nil
		for _, g := range glyphs {
			at, err := final.locate(g)
			if err != nil {
				mistakes = append(mistakes, Mistake{Glyph: g, Problem: scrolls.Problem{
					Attr: "path", Summary: "Path cannot be used", Detail: Sentence(err),
				}})
				continue
			}
			next[g] = Spot{Resource: at.real, Via: at.via}
		}
		changed := final.declare(next)
		same := maps.EqualFunc(spots, next, func(a, b Spot) bool { return a.Resource == b.Resource })
		spots = next
		if same || !changed {
			break
		}
	}
	mistakes = append(append(mistakes, doubleBases(glyphs, spots)...), atOdds(glyphs, spots)...)
	return spots, append(mistakes, w.twins(glyphs, spots)...), nil
}

// Sentence makes an error's text one, as a diagnostic's detail is.
func Sentence(err error) string { return scrolls.Sentence(err) }

// after is a world in which the glyphs that go have given back what they found.
func (w *World) after(gone []Gone) *World {
	final := *w
	final.over = maps.Clone(w.over)
	final.seen = map[string]Node{}
	maps.Copy(final.over, w.steering())
	for _, g := range gone {
		kind, ok := KindOf(g.Glyph.Kind)
		if !ok || kind.base == nil || g.Record == nil {
			continue
		}
		s, err := readSurface(g.Resource, g.Record)
		if err != nil || s.base == nil || !s.base.Changed {
			continue // Turn reads it too, and reports what is wrong
		}
		final.over[g.Resource] = s.under
	}
	return &final
}

// locate resolves one glyph's path.
func (w *World) locate(g *scrolls.Glyph) (place, error) {
	kind, _ := KindOf(g.Kind)
	p := str(g.Attrs, "path")
	follow, _ := g.Attrs["follow"].(bool)
	if kind.base != nil && !follow {
		at, err := w.resolve(p, false)
		if err != nil {
			return at, err
		}
		return at, w.checkSpot(at)
	}
	at, err := w.resolve(p, true)
	if err != nil {
		return at, err
	}
	return at, w.checkSpot(at)
}

// checkSpot checks where a path led, as the path itself was checked when loaded.
func (w *World) checkSpot(at place) error {
	if len(at.via) > 0 {
		for _, problem := range checkPath("path", at.real) {
			return &AttrError{Attr: "path", Err: errText("it leads to " + quote(at.real) + ": " + problem.Detail)}
		}
	}
	for _, own := range w.Host.Own {
		if dir, _ := split(own); at.real == own || beneath(at.real, own) || at.real == dir {
			return errText(quote(at.real) + " is golem's own journal")
		}
	}
	return w.mayTouch(at)
}

type errText string

func (e errText) Error() string { return string(e) }

// declare notes the declared bases in the world, and says whether a link was among
// them that was not known before.
func (w *World) declare(spots map[*scrolls.Glyph]Spot) bool {
	changed := false
	for g, spot := range spots {
		kind, _ := KindOf(g.Kind)
		if kind.base == nil {
			continue
		}
		n := w.declared(g, kind, spot.Resource)
		if was, ok := w.over[spot.Resource]; !ok || was.Type != n.Type || was.Target != n.Target {
			// Only a link steers; but a file may take a link's place.
			changed = true
		}
		w.over[spot.Resource] = n
	}
	return changed
}

// doubleBases finds two bases that reach one real path by different names.
func doubleBases(glyphs []*scrolls.Glyph, spots map[*scrolls.Glyph]Spot) []Mistake {
	first := map[string]*scrolls.Glyph{}
	var mistakes []Mistake
	for _, g := range glyphs {
		kind, _ := KindOf(g.Kind)
		spot, ok := spots[g]
		if kind.base == nil || !ok {
			continue
		}
		other, taken := first[spot.Resource]
		if !taken {
			first[spot.Resource] = g
			continue
		}
		mistakes = append(mistakes, Mistake{Glyph: g, Other: other, Problem: scrolls.Problem{
			Attr: "path", Summary: "Two glyphs for one path",
			Detail: "Both lead to " + quote(spot.Resource) + " on this host. Remove one of the two.",
		}})
	}
	return mistakes
}

// declared is what a base glyph will leave, as far as it steers others: its type, a
// link's text, a directory's mode and owner.
func (w *World) declared(g *scrolls.Glyph, kind Kind, resource string) Node {
	n := Node{Type: kind.base.typ, Mode: defaultDirMode, UID: w.Host.UID, GID: w.Host.GID, Flags: Any}
	if there, err := w.lstat(resource); err == nil && there.Type == n.Type {
		n.Mode, n.UID, n.GID = there.Mode, there.UID, there.GID
	}
	if mode, ok := modeOf(g.Attrs); ok {
		n.Mode = mode
	}
	if w.setOwner(&n, g) != nil {
		n.UID = w.Host.standIn(userSort, str(g.Attrs, "owner")) // Turn reports an unknown one
	}
	if n.Type == Link {
		n.Target = Bytes(str(g.Attrs, "target"))
	}
	return n
}

// twins finds glyphs on two names of one file: whatever is written through the one is
// written through the other.
func (w *World) twins(glyphs []*scrolls.Glyph, spots map[*scrolls.Glyph]Spot) []Mistake {
	type inode struct{ dev, ino uint64 }
	first := map[inode]*scrolls.Glyph{}
	var mistakes []Mistake
	for _, g := range glyphs {
		spot, ok := spots[g]
		if !ok {
			continue
		}
		n, err := w.look(spot.Resource)
		if err != nil || n.Type != File || n.Links < 2 || n.ino == 0 {
			continue
		}
		other, taken := first[inode{n.dev, n.ino}]
		if !taken {
			first[inode{n.dev, n.ino}] = g
			continue
		}
		if spots[other].Resource == spot.Resource {
			continue
		}
		mistakes = append(mistakes, Mistake{Glyph: g, Other: other, Problem: scrolls.Problem{
			Attr: "path", Summary: "Two glyphs for one file",
			Detail: fmt.Sprintf("%s and %s are two names (hard links) of one file on this host: what one says, the other undoes. Declare one of them.",
				quote(spots[other].Resource), quote(spot.Resource)),
		}})
	}
	return mistakes
}
