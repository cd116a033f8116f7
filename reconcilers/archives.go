package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golem/scrolls"
	"golem/state"
)

// archiveSort is the sort of what archives are unpacked into; a resource is the real path
// of a directory, and a layer on it is one archive's files.
const archiveSort = "archive"

// unpackings keeps the files that archives brought, all of a directory as one. The
// directories that they needed are by-products, as those of any path.
type unpackings struct{}

// Sort implements Reconciler.
func (unpackings) Sort() string { return archiveSort }

// A heldEntry is one entry of an archive in force, with what was there before it.
type heldEntry struct {
	archiveEntry
	Found *Node `json:"found,omitempty"` // of a file or link; nil: nothing
	Wrote bool  `json:"wrote,omitempty"` // golem changed it, or what was found there
}

func (h heldEntry) found() Node {
	if h.Found == nil {
		return absent()
	}
	return *h.Found
}

// left says whether a path is as golem left it, metadata aside.
func (e archiveEntry) left(now Node) bool {
	return now.Type == e.Type && now.Hash == e.Hash && now.Target == e.Target
}

// A heldArchive is a layer's inverse: all that one archive has in the directory.
type heldArchive struct {
	Entries []heldEntry `json:"entries"`
	Blob    string      `json:"blob"` // the archive's own bytes
}

// readHeld decodes a layer's inverse.
func readHeld(l state.Layer) (*heldArchive, error) {
	var h heldArchive
	if err := json.Unmarshal(l.Inverse, &h); err != nil {
		return nil, fmt.Errorf("read the record of %s: %w", l.Key, err)
	}
	return &h, nil
}

// A holding is who of the archives in force has a path.
type holding struct {
	resource string
	layer    *state.Layer
	entry    *heldEntry
}

// heldAt lists the archives that have a path, as the journal knows them.
func (w *World) heldAt(p string) []holding {
	index := keepAt(w, "archives", func() map[string][]holding {
		all := map[string][]holding{}
		for _, r := range w.Records {
			if r.Sort != archiveSort {
				continue
			}
			for i := range r.Layers {
				held, err := readHeld(r.Layers[i])
				if err != nil {
					continue // Turn reads it too, and says what is wrong
				}
				for j := range held.Entries {
					at := path.Join(r.Resource, string(held.Entries[j].Path))
					all[at] = append(all[at], holding{r.Resource, &r.Layers[i], &held.Entries[j]})
				}
			}
		}
		return all
	})
	return index[p]
}

// unpackedAt says whether an archive in force has a file or a link at a path.
func (w *World) unpackedAt(p string) bool {
	return slices.ContainsFunc(w.heldAt(p), func(h holding) bool { return h.entry.Type != Dir })
}

// stays says whether a layer is in force as it is when the run is over.
func (w *World) stays(l *state.Layer) bool {
	g := w.InForce(l.Key)
	return g != nil && CID(g) == CID(l.Glyph)
}

// entriesOf are the entries of a glyph on a resource: as the journal has them, or as the
// archive itself has.
func (w *World) entriesOf(ctx context.Context, resource string, g *scrolls.Glyph) ([]archiveEntry, error) {
	if r := w.Record(archiveSort, resource); r != nil {
		for _, l := range r.Layers {
			if l.Key != g.Key || CID(l.Glyph) != CID(g) {
				continue
			}
			held, err := readHeld(l)
			if err != nil {
				return nil, err
			}
			entries := make([]archiveEntry, len(held.Entries))
			for i, h := range held.Entries {
				entries[i] = h.archiveEntry
			}
			return entries, nil
		}
	}
	list, err := w.unpackList(ctx, g)
	if err != nil {
		return nil, err
	}
	return list.entries, nil
}

// Keeps implements Keeper: the directories that an archive needs, as far as it is known.
func (unpackings) Keeps(w *World, resource string, g *scrolls.Glyph) []string {
	dirs := []string{resource}
	entries, err := w.entriesOf(context.Background(), resource, g)
	if err != nil {
		return dirs // Turn comes to it, too, and tells
	}
	for _, e := range entries {
		if e.Type == Dir && e.Path != "" {
			dirs = append(dirs, path.Join(resource, string(e.Path)))
		}
	}
	return dirs
}

// Locate implements Reconciler.
func (unpackings) Locate(ctx context.Context, w *World, glyphs []*scrolls.Glyph, gone []Gone) (map[*scrolls.Glyph]Spot, []Mistake, error) {
	spots := map[*scrolls.Glyph]Spot{}
	var mistakes []Mistake
	for _, g := range glyphs {
		at, err := w.resolve(str(g.Attrs, "path"), true)
		if err == nil {
			err = w.checkSpot(at)
		}
		if err != nil {
			mistakes = append(mistakes, Mistake{Glyph: g, Problem: scrolls.Problem{Attr: "path", Summary: "Path cannot be used", Detail: Sentence(err)}})
			continue
		}
		spots[g] = Spot{Resource: at.real, Via: at.via}
	}
	w.noteLinks(ctx, glyphs, spots, gone)
	return spots, append(mistakes, w.overlaps(ctx, glyphs, spots, gone)...), ctx.Err()
}

// Batch implements Reconciler: what an archive brings is one batch of its own.
func (unpackings) Batch([]*Turn) int { return 1 }

// Join implements Reconciler.
func (unpackings) Join(context.Context, *World, []*Turn) error { return nil }

// Sweep implements Reconciler: the directories it made are the paths' by-products.
func (unpackings) Sweep(context.Context, *World) ([]*Turn, error) { return nil, nil }

// TellFound implements Teller.
func (unpackings) TellFound(json.RawMessage) string {
	return "each file by itself; golem keeps what it replaced"
}

// Capture implements Reconciler: what goes, what was found, and the archive itself, so
// that a repair or a rollback needs no network and no file beside the scroll.
func (unpackings) Capture(_ context.Context, w *World, store Store, turns []*Turn) error {
	for _, t := range turns {
		k, ok := t.work.(*archiveWork)
		if !ok || t.Step == nil {
			continue
		}
		for _, s := range k.shifts {
			if k.isArchives(k.paths[below(k.r.Resource, s.path)], s.from) {
				continue
			}
			if err := w.store(store, s.path, s.from); err != nil {
				return err
			}
		}
		for _, p := range k.order {
			if p.first && p.found.Type == File {
				if err := w.store(store, p.abs, p.found); err != nil {
					return err
				}
			}
		}
		for _, g := range k.r.Set {
			if err := w.storeArchive(store, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// storeArchive gives the journal a glyph's archive, if it has it not yet.
func (w *World) storeArchive(store Store, g *scrolls.Glyph) error {
	if file := w.archiveFile(g); file != "" {
		return storeLocal(store, file, archiveSum(g.Attrs))
	}
	o, err := w.keptArchive(g)
	if err != nil {
		return err
	}
	return o.Close()
}

// archiveError is what is wrong with a glyph's archive, as a mistake in the scroll.
func archiveError(g *scrolls.Glyph, err error) error {
	var hostile *HostileError
	var ae *AttrError
	var down *DownloadError
	switch {
	case errors.As(err, &ae), errors.As(err, &down):
		return err
	case errors.As(err, &hostile):
		return &AttrError{Glyph: g, Attr: "source", Summary: "Archive is refused", Err: err}
	}
	return &AttrError{Glyph: g, Attr: "source", Summary: "Archive cannot be unpacked", Err: err}
}

// inOwn says that a path is golem's own journal, or leads to it.
func (w *World) inOwn(p string) bool {
	return slices.ContainsFunc(w.Host.Own, func(own string) bool { return p == own || beneath(p, own) || beneath(own, p) })
}

// shownNames lists names for a person, in order, the first few of them.
func shownNames(names []string) string { return someNames(slices.Clone(names)) }

// below is a path as it is called inside a directory.
func below(dir, p string) string { return strings.TrimPrefix(strings.TrimPrefix(p, dir), "/") }
