package reconcilers

import (
	"context"
	"fmt"
	"iter"
	"path"
	"slices"

	"golem/scrolls"
)

// steering are the paths at which archives bring links and directories, or take links
// away, as the run leaves them: they lead others.
func (w *World) steering() map[string]Node {
	return keepAt(w, "archive links", func() map[string]Node { return map[string]Node{} })
}

// dresses says that an archive makes a directory, or gives one of golem's its permissions.
func (w *World) dresses(g *scrolls.Glyph, dir string) bool {
	if n, err := w.look(dir); err != nil || n.Type == Absent {
		return err == nil
	}
	body, ok := w.ledger(dir)
	return ok && body.Made && !w.isSurface(dir) && !slices.ContainsFunc(w.heldAt(dir), func(h holding) bool { return h.entry.Type == Dir && h.layer.Key < g.Key })
}

// A dirClaim is the archive that gives a directory its permissions.
type dirClaim struct {
	by   *scrolls.Glyph
	mode int
}

// dirClaims are those of the archives that the scroll declares.
func (w *World) dirClaims() map[string]dirClaim {
	return keepAt(w, "archive directories", func() map[string]dirClaim { return map[string]dirClaim{} })
}

// archiveDir is how a directory that golem made is to be for the archives that have it;
// false if none does.
func (w *World) archiveDir(dir string) (Node, bool) {
	claim := w.dirClaims()[dir]
	for _, h := range w.heldAt(dir) {
		if h.entry.Type == Dir && w.stays(h.layer) && (claim.by == nil || h.layer.Key < claim.by.Key) {
			claim = dirClaim{h.layer.Glyph, h.entry.Mode}
		}
	}
	if claim.by == nil {
		return Node{}, false
	}
	n := Node{Type: Dir, Mode: claim.mode, UID: w.Host.UID, GID: w.newGroup(path.Dir(dir)), Flags: Any}
	if w.Host.UID != 0 {
		n.UID, n.GID = Any, Any
	}
	return n, w.setOwner(&n, claim.by) == nil
}

// noteLinks fills steering and dirClaims, before the paths are located.
func (w *World) noteLinks(ctx context.Context, glyphs []*scrolls.Glyph, spots map[*scrolls.Glyph]Spot, gone []Gone) {
	links, dirs := w.steering(), w.dirClaims()
	release := func(resource string, key scrolls.Key) {
		r := w.Record(archiveSort, resource)
		if r == nil {
			return
		}
		for _, l := range r.Layers {
			held, err := readHeld(l)
			if l.Key != key || err != nil {
				continue
			}
			for _, e := range held.Entries {
				if e.Type == Link {
					links[path.Join(resource, string(e.Path))] = e.found()
				}
			}
		}
	}
	for _, g := range gone {
		if g.Glyph.OnUndeclare != "leave" {
			release(g.Resource, g.Key)
		}
	}
	for _, g := range glyphs {
		release(w.Where(g.Key), g.Key)
	}
	for g, entries := range w.unpacked(ctx, glyphs, spots) {
		for at, e := range entries {
			if was := dirs[at]; e.Type == Dir && (was.by == nil || g.Key < was.by.Key) {
				dirs[at] = dirClaim{g, e.Mode}
			}
			n := Node{Type: e.Type, Mode: e.Mode, UID: w.Host.UID, GID: w.Host.GID, Target: e.Target, Flags: Any}
			if _, was := links[at]; was || e.Type == Link || e.Type == Dir && w.dresses(g, at) {
				if w.setOwner(&n, g) != nil {
					continue // Turn comes to it, too, and tells
				}
				links[at] = n
			}
		}
	}
}

// unpacked tells of each archive that can be read what it has at which path. Of the others
// Turn tells why, when it comes to them.
func (w *World) unpacked(ctx context.Context, glyphs []*scrolls.Glyph, spots map[*scrolls.Glyph]Spot) iter.Seq2[*scrolls.Glyph, iter.Seq2[string, archiveEntry]] {
	return func(yield func(*scrolls.Glyph, iter.Seq2[string, archiveEntry]) bool) {
		for _, g := range glyphs {
			spot, ok := spots[g]
			if !ok {
				continue
			}
			entries, err := w.entriesOf(ctx, spot.Resource, g)
			if err != nil {
				continue
			}
			all := func(yield func(string, archiveEntry) bool) {
				for _, e := range entries {
					if !yield(path.Join(spot.Resource, string(e.Path)), e) {
						return
					}
				}
			}
			if !yield(g, all) {
				return
			}
		}
	}
}

// overlaps finds files that two archives would unpack.
func (w *World) overlaps(ctx context.Context, glyphs []*scrolls.Glyph, spots map[*scrolls.Glyph]Spot, gone []Gone) []Mistake {
	own := map[scrolls.Key]bool{}
	for _, g := range glyphs {
		own[g.Key] = true
	}
	for _, g := range gone {
		own[g.Key] = true
	}
	first := map[string]*scrolls.Glyph{}
	var mistakes []Mistake
	for g, entries := range w.unpacked(ctx, glyphs, spots) {
		for p, e := range entries {
			if e.Type == Dir {
				continue
			}
			other := first[p]
			for _, h := range w.heldAt(p) {
				if h.entry.Type != Dir && !own[h.layer.Key] { // another lineage's
					other = h.layer.Glyph
				}
			}
			if other != nil {
				mistakes = append(mistakes, twoArchives(g, other, p))
				break
			}
			first[p] = g
		}
	}
	return mistakes
}

func twoArchives(g, other *scrolls.Glyph, p string) Mistake {
	m := Mistake{Glyph: g, Problem: scrolls.Problem{
		Attr: "source", Summary: "Two archives with one file",
		Detail: fmt.Sprintf("Both this one and %s have %s. Leave it out of one of the two with exclude.", other.Key, quote(p)),
	}}
	if other.At.Filename != "" {
		m.Other = other
	}
	return m
}
