package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golem/scrolls"
	"golem/state"
)

// Enact implements Reconciler: all files of the turn share their syncs, however many
// there are. The archive is gone through once; what is written comes from the journal.
func (unpackings) Enact(ctx context.Context, w *World, store Store, turns []*Turn) (int, error) {
	for i, t := range turns {
		k, ok := t.work.(*archiveWork)
		if !ok || len(k.shifts) == 0 {
			continue
		}
		if err := k.enact(ctx, w, store, t); err != nil {
			return i, err
		}
	}
	return -1, nil
}

func (k *archiveWork) enact(ctx context.Context, w *World, store Store, t *Turn) error {
	defer w.forget()
	feeds, err := k.feed(ctx, w)
	defer func() {
		for _, f := range feeds {
			f.close()
		}
	}()
	if err != nil {
		return err
	}
	b := w.Host.newBatch(w.Blobs, keepWith(store, t.Step), len(k.shifts))
	defer b.close()
	for _, part := range [][]*shift{k.shifts[:k.clear], k.shifts[k.clear:]} {
		if len(part) == 0 {
			continue
		}
		if _, err := b.run(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// feed lets the files to be written come from their archives, in the archives' order.
func (k *archiveWork) feed(ctx context.Context, w *World) ([]*archiveFeed, error) {
	byPath := map[string]*archivePath{}
	for _, p := range k.order {
		if p.want != nil && p.want.Type == File {
			byPath[p.abs] = p
		}
	}
	feeds := map[scrolls.Key]*archiveFeed{}
	var all []*archiveFeed
	for _, s := range k.shifts {
		p := byPath[s.path]
		if p == nil || s.to.Type != File || s.to.Size == 0 || s.from.Type == File && s.from.Hash == s.to.Hash {
			continue
		}
		f := feeds[p.by.Key]
		if f == nil {
			var err error
			if f, err = newFeed(ctx, w, p.by); err != nil {
				return all, err
			}
			f.rank = len(all)
			feeds[p.by.Key], all = f, append(all, f)
		}
		at, ok := f.at[p.want.Path]
		if !ok {
			return all, fmt.Errorf("write %s: it is not in %s", quote(s.path), f.o.from)
		}
		f.uses[at]++
		s.to.src, s.order = func() (io.ReadCloser, error) { return f.open(at) }, f.rank<<32|at+1
	}
	inOrder(k.shifts[k.clear:])
	return all, nil
}

// inOrder sorts shifts for a batch: directories, then what has its bytes elsewhere, then
// files in the order of their archive, then what goes.
func inOrder(shifts []*shift) {
	stage := func(s *shift) int {
		switch {
		case s.to.Type == Dir:
			return 0
		case s.order != 0:
			return 2
		case s.to.Type != Absent:
			return 1
		case s.from.Type == Dir:
			return 4
		}
		return 3
	}
	slices.SortStableFunc(shifts, func(a, b *shift) int {
		return cmp.Or(cmp.Compare(stage(a), stage(b)), cmp.Compare(a.order, b.order))
	})
}

// An archiveFeed gives the bytes of an archive's files, in order. To go back it begins
// anew; what several files have is put aside.
type archiveFeed struct {
	ctx     context.Context
	w       *World
	o       *openArchive
	at      map[Bytes]int // which entry has a path's bytes
	uses    map[int]int   // by how many files an entry is used
	rank    int
	walk    walker
	pos     int // of the entry that walk is at; -1: none
	spent   bool
	aside   string // a file with the bytes of entry asideAt
	asideAt int
}

// newFeed opens an archive as the journal has it.
func newFeed(ctx context.Context, w *World, g *scrolls.Glyph) (*archiveFeed, error) {
	own := *g
	own.Files = nil
	list, err := w.unpackList(ctx, &own)
	if err != nil {
		return nil, err
	}
	f := &archiveFeed{ctx: ctx, w: w, at: map[Bytes]int{}, uses: map[int]int{}, pos: -1, asideAt: -1}
	for _, e := range list.entries {
		f.at[e.Path] = e.at
	}
	f.o, err = w.keptArchive(&own)
	return f, err
}

// open gives the bytes of one entry.
func (f *archiveFeed) open(at int) (io.ReadCloser, error) {
	if f.asideAt == at {
		return os.Open(f.aside)
	}
	if f.walk == nil || f.pos > at || f.pos == at && f.spent {
		if err := f.begin(); err != nil {
			return nil, err
		}
	}
	for f.pos < at {
		if _, err := f.walk.next(); err != nil {
			return nil, fmt.Errorf("read %s: %w", f.o.from, err)
		}
		f.pos++
	}
	f.spent = true
	if f.uses[at] > 1 {
		return f.putAside(at)
	}
	return io.NopCloser(f.walk), nil
}

func (f *archiveFeed) begin() error {
	if f.walk != nil {
		if err := f.walk.Close(); err != nil {
			return err
		}
	}
	var err error
	f.walk, err = f.o.open(f.ctx, usualBounds.most(f.o.size))
	f.pos, f.spent = -1, false
	return err
}

// putAside writes the present entry to a file of golem's own, to be read several times.
func (f *archiveFeed) putAside(at int) (io.ReadCloser, error) {
	if f.aside == "" {
		dir, err := f.w.Host.scratchDir("archive")
		if err != nil {
			return nil, err
		}
		f.aside = filepath.Join(dir, "entry")
	}
	f.asideAt = -1
	file, err := os.OpenFile(f.aside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("put a file of %s aside: %w", f.o.from, err)
	}
	_, err = io.Copy(file, f.walk)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("put a file of %s aside: %w", f.o.from, err)
	}
	f.asideAt = at
	return os.Open(f.aside)
}

// close lets go of everything; an error adds nothing, what was written has been proved.
func (f *archiveFeed) close() {
	if f.walk != nil {
		_ = f.walk.Close()
	}
	if f.o != nil {
		_ = f.o.Close()
	}
	if f.aside != "" {
		_ = os.RemoveAll(filepath.Dir(f.aside))
	}
}

// Undo implements Reconciler: what the step made goes, then what it changed or took away
// comes back, each in one batch.
func (unpackings) Undo(ctx context.Context, w *World, store Store, s *state.Step) error {
	before, after, err := readUnpacking(s)
	if err != nil || len(before.Paths)+len(after.Made) == 0 {
		return err
	}
	defer w.forget()
	b := w.Host.newBatch(w.Blobs, keepWith(store, s), len(before.Paths))
	defer b.close()
	var back []undoing
	for i := range before.Paths {
		back = append(back, undoing{
			path: string(before.Paths[i].Path), before: before.Paths[i].Node, after: after.Paths[i].Node, temp: after.Paths[i].Temp,
		})
	}
	slices.SortFunc(back, func(a, b undoing) int { return cmp.Compare(a.path, b.path) })
	if err := b.takeOff(ctx, back); err != nil {
		return err
	}
	made := make([]string, len(after.Made))
	for i, dir := range after.Made {
		made[i] = string(dir)
	}
	if err := b.unmake(made); err != nil {
		return err
	}
	feeds := &undoFeeds{ctx: ctx, w: w, s: s}
	defer feeds.close()
	return b.putOn(ctx, back, feeds)
}

// undoFeeds give the bytes of files that go back, where an archive has them.
type undoFeeds struct {
	ctx   context.Context
	w     *World
	s     *state.Step
	held  []*heldArchive // of the layers before the step
	feeds []*archiveFeed // the same; nil until it is needed
}

func (f *undoFeeds) close() {
	for _, feed := range f.feeds {
		if feed != nil {
			feed.close()
		}
	}
}

// supply lets a shift have its bytes from the archive that brought the file.
func (f *undoFeeds) supply(s *shift) error {
	if s.to.Type != File || s.to.Blob != "" || s.to.Size == 0 {
		return nil
	}
	if f.held == nil && f.s.Before != nil {
		for _, l := range f.s.Before.Layers {
			held, err := readHeld(l)
			if err != nil {
				return err
			}
			f.held = append(f.held, held)
		}
		f.feeds = make([]*archiveFeed, len(f.held))
	}
	for i, held := range f.held {
		rel := Bytes(below(f.s.Resource, s.path))
		if !slices.ContainsFunc(held.Entries, func(e heldEntry) bool { return e.Path == rel && e.Hash == s.to.Hash }) {
			continue
		}
		if f.feeds[i] == nil {
			var err error
			if f.feeds[i], err = newFeed(f.ctx, f.w, f.s.Before.Layers[i].Glyph); err != nil {
				return err
			}
		}
		feed := f.feeds[i]
		at, ok := feed.at[rel]
		if !ok {
			continue
		}
		feed.uses[at]++
		s.to.src, s.order = func() (io.ReadCloser, error) { return feed.open(at) }, i<<32|at+1
		return nil
	}
	return fmt.Errorf("put back %s: no archive has its bytes", quote(s.path))
}

// takeOff removes files and links that a step put where nothing was, or where a directory
// was, whatever was left beside them included.
func (b *batch) takeOff(ctx context.Context, back []undoing) error {
	var off []*shift
	for _, u := range back {
		if err := b.clearTemp(u); err != nil {
			return err
		}
		now, err := b.h.observe(b.d, u.path, 0)
		if err != nil {
			return err
		}
		if u.before.Type != Absent && (u.before.Type != Dir || now.Type == Dir) || now.Type == Dir || now.Type == Absent || u.foreign(now) {
			continue
		}
		if err := b.keepStranger(u, now); err != nil {
			return err
		}
		off = append(off, &shift{path: u.path, from: now, to: absent(), temp: u.temp})
	}
	if len(off) == 0 {
		return nil
	}
	_, err := b.run(ctx, off)
	return err
}

// putOn puts back what was at paths before a step: directories before what is in them.
func (b *batch) putOn(ctx context.Context, back []undoing, feeds *undoFeeds) error {
	var on []*shift
	for _, u := range back {
		if u.before.Type == Absent {
			continue
		}
		now, err := b.h.observe(b.d, u.path, 0)
		if err != nil {
			return err
		}
		s := &shift{path: u.path, from: now, to: u.before, temp: u.temp}
		switch {
		case s.way() == wayNone:
			continue
		case u.foreign(now), now.Type == Dir && u.before.Type != Dir:
			if u.before.Type == File && u.before.Blob == "" {
				continue // the archive's bytes, and nobody's else
			}
			if err := b.keepBefore(u, now); err != nil {
				return err
			}
			continue
		}
		if s.way() != wayMeta {
			if err := feeds.supply(s); err != nil {
				return err
			}
		}
		if err := b.keepStranger(u, now); err != nil {
			return err
		}
		on = append(on, s)
	}
	if len(on) == 0 {
		return nil
	}
	inOrder(on)
	_, err := b.run(ctx, on)
	return err
}

// Foresee implements Reconciler.
func (unpackings) Foresee(w *World, s *state.Step) error {
	before, after, err := readUnpacking(s)
	if err != nil {
		return err
	}
	for _, p := range before.Paths {
		w.predict(string(p.Path), p.Node)
	}
	for _, dir := range after.Made {
		if _, known := w.over[string(dir)]; !known {
			w.predict(path.Clean(string(dir)), absent())
		}
	}
	return nil
}
