package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"golem/scrolls"
	"golem/state"
)

// An archivePath is one path of a turn: what an archive had there, what one wants there,
// and what is there.
type archivePath struct {
	abs    string
	old    *heldEntry // of a layer that goes or changes, or is taken over
	was    *scrolls.Glyph
	want   *archiveEntry
	by     *scrolls.Glyph
	now    Node
	to     Node // what is to be there; as now, if nothing changes
	found  Node // what lies beneath golem's
	wrote  bool
	first  bool // found is seen for the first time
	stays  bool // it is let go as it is
	handed bool // for another glyph has it now
}

// An archiveWork is what one turn does.
type archiveWork struct {
	ctx    context.Context
	w      *World
	r      Request
	t      *Turn
	held   map[scrolls.Key]*heldArchive // the record's
	wants  map[scrolls.Key][]archiveEntry
	paths  map[string]*archivePath
	order  []*archivePath // by path: a directory before what is in it
	taken  map[scrolls.Key]map[Bytes]bool
	shifts []*shift // in the order in which they are done; the first clear go first
	clear  int
	made   []string // directories, outermost first
	fitted bool
	owners map[string]place
}

// An archiveSight is what a turn saw.
type archiveSight struct {
	now    map[string]Node
	unseen bool
}

// Same implements Sight. A path that only one of them saw says nothing: an earlier turn
// of the run was about it.
func (s archiveSight) Same(other any) bool {
	was, ok := other.(archiveSight)
	if !ok {
		return true
	}
	for p, n := range was.now {
		if now, seen := s.now[p]; seen && !sameSight(now, n) {
			return false
		}
	}
	return true
}

// Turn implements Reconciler.
func (unpackings) Turn(ctx context.Context, w *World, r Request) (*Turn, error) {
	return archiveTurn(ctx, w, r, false)
}

// archiveTurn works a turn out. fitted says that the turns before it are known.
func archiveTurn(ctx context.Context, w *World, r Request, fitted bool) (*Turn, error) {
	k := &archiveWork{
		ctx: ctx, w: w, r: r, t: &Turn{Request: r}, held: map[scrolls.Key]*heldArchive{}, wants: map[scrolls.Key][]archiveEntry{},
		paths: map[string]*archivePath{}, taken: map[scrolls.Key]map[Bytes]bool{}, fitted: fitted, owners: map[string]place{},
	}
	k.t.work = k
	if err := k.recall(); err != nil {
		return nil, err
	}
	if len(r.Drop) == 0 && r.Blind && !slices.ContainsFunc(r.Set, k.changes) {
		for _, g := range r.Set {
			k.t.Noops = append(k.t.Noops, g.Key)
		}
		return k.t, nil
	}
	for _, g := range r.Set {
		entries, err := w.entriesOf(ctx, r.Resource, g)
		if errors.Is(err, errUnseen) && !w.Acts && g.Files["source"] == "" {
			k.unseen()
			return k.t, nil
		}
		if err != nil {
			return nil, archiveError(g, err)
		}
		k.wants[g.Key] = entries
	}
	if err := k.gather(); err != nil {
		return nil, err
	}
	if err := k.look(); err != nil {
		return nil, err
	}
	return k.t, k.build()
}

// recall reads what the journal has of the directory.
func (k *archiveWork) recall() error {
	if k.r.Record == nil {
		return nil
	}
	for _, l := range k.r.Record.Layers {
		held, err := readHeld(l)
		if err != nil {
			return err
		}
		k.held[l.Key] = held
	}
	return nil
}

// layer is the record's layer of a key; nil for none.
func (k *archiveWork) layer(key scrolls.Key) *state.Layer {
	if k.r.Record == nil {
		return nil
	}
	for i := range k.r.Record.Layers {
		if l := &k.r.Record.Layers[i]; l.Key == key {
			return l
		}
	}
	return nil
}

// changes says whether a glyph is new, or another version than the one in force.
func (k *archiveWork) changes(g *scrolls.Glyph) bool {
	l := k.layer(g.Key)
	return l == nil || CID(l.Glyph) != CID(g)
}

// at is the turn's note of a path.
func (k *archiveWork) at(rel Bytes) *archivePath {
	p := k.paths[string(rel)]
	if p == nil {
		p = &archivePath{abs: path.Join(k.r.Resource, string(rel))}
		k.paths[string(rel)] = p
	}
	return p
}

// gather brings together what the turn's archives had and what they want.
func (k *archiveWork) gather() error {
	if k.r.Record != nil {
		for i := range k.r.Record.Layers {
			l := &k.r.Record.Layers[i]
			mine := k.r.Drop[l.Key] != nil || slices.ContainsFunc(k.r.Set, func(g *scrolls.Glyph) bool { return g.Key == l.Key })
			if !mine {
				continue
			}
			for j := range k.held[l.Key].Entries {
				e := &k.held[l.Key].Entries[j]
				p := k.at(e.Path)
				p.old, p.was = e, l.Glyph
			}
		}
	}
	for _, g := range k.r.Set {
		for i := range k.wants[g.Key] {
			e := &k.wants[g.Key][i]
			p := k.at(e.Path)
			if p.want != nil && p.want.Type != Dir {
				return k.shared(g, p.by.Key, p.abs)
			}
			if p.want == nil || e.Type != Dir {
				p.want, p.by = e, g
			}
		}
	}
	if err := k.others(); err != nil {
		return err
	}
	for _, rel := range slices.Sorted(maps.Keys(k.paths)) {
		k.order = append(k.order, k.paths[rel])
	}
	// "a-b" sorts before "a/x", which must not part a directory from what is in it.
	slices.SortStableFunc(k.order, func(a, b *archivePath) int {
		return slices.Compare(strings.Split(a.abs, "/"), strings.Split(b.abs, "/"))
	})
	return nil
}

// others sees to the archives of other leaves in this directory: one that stays keeps its
// files, and from one that goes later they are taken over.
func (k *archiveWork) others() error {
	if k.r.Record == nil {
		return nil
	}
	for i := range k.r.Record.Layers {
		l := &k.r.Record.Layers[i]
		if k.r.Drop[l.Key] != nil || k.wants[l.Key] != nil {
			continue
		}
		for j := range k.held[l.Key].Entries {
			e := &k.held[l.Key].Entries[j]
			p := k.paths[string(e.Path)]
			if p == nil || p.want == nil || e.Type == Dir || p.want.Type == Dir {
				continue
			}
			if k.w.InForce(l.Key) != nil {
				return k.shared(p.by, l.Key, p.abs)
			}
			p.old, p.was = e, l.Glyph
			if k.taken[l.Key] == nil {
				k.taken[l.Key] = map[Bytes]bool{}
			}
			k.taken[l.Key][e.Path] = true
		}
	}
	return nil
}

// shared is the error for a path that something else has, too.
func (k *archiveWork) shared(g *scrolls.Glyph, other scrolls.Key, p string) error {
	return &AttrError{
		Glyph: g, Attr: "source", Summary: "Declared twice",
		Err: fmt.Errorf("%s is in the archive, and belongs to %s, too; leave it out of the archive: exclude = [%q]",
			quote(p), other, below(k.r.Resource, p)),
	}
}

// look observes every path of the turn.
func (k *archiveWork) look() error {
	before, _ := k.r.Now.(archiveSight)
	seen := archiveSight{now: map[string]Node{}}
	for _, p := range k.order {
		n, known := before.now[p.abs]
		if !known {
			n, known = k.w.over[p.abs]
		}
		if !known {
			var err error
			if n, err = k.w.Host.observe(k.w.d, p.abs, 0); err != nil {
				return err
			}
		}
		if err := k.ctx.Err(); err != nil {
			return err
		}
		p.now, p.to = n, n
		seen.now[p.abs] = n
	}
	k.t.Seen = seen
	return nil
}

// unseen makes the turn of an archive that has to be downloaded first: that much is known.
func (k *archiveWork) unseen() {
	k.t.Acts = true
	k.t.Seen = archiveSight{unseen: true}
	k.t.Step = &state.Step{Lineage: k.r.Lineage, Leaf: k.r.Leaf, Sort: archiveSort, Resource: k.r.Resource, Before: k.r.Record, After: k.r.Record}
	k.encode()
	k.tell(func(g *scrolls.Glyph) string {
		return fmt.Sprintf("from %s; what it holds is looked at once it is downloaded and its sha256 is right, before anything is written", shownSource(g.Attrs))
	})
}

// build works out what becomes of each path, and the step.
func (k *archiveWork) build() error {
	for _, p := range k.order {
		var err error
		switch {
		case p.want == nil && p.old.Type == Dir: // Fit sees whether it is empty by then
		case p.want == nil:
			err = k.release(p)
		case p.want.Type == Dir:
			err = k.dir(p)
		default:
			err = k.file(p)
		}
		if err != nil {
			return err
		}
	}
	for _, p := range k.order {
		k.t.Acts = k.t.Acts || p.changes()
	}
	k.finish()
	return nil
}

// changes says whether a path is to be another than it is.
func (p *archivePath) changes() bool { return differs(p.now, p.to) != "" }

// finish makes the step, unless there is nothing to do and nothing to write down.
func (k *archiveWork) finish() {
	changed := len(k.r.Drop) > 0 || slices.ContainsFunc(k.r.Set, k.changes)
	if !changed && !k.t.Acts {
		for _, g := range k.r.Set {
			k.t.Noops = append(k.t.Noops, g.Key)
		}
		k.leaves()
		return
	}
	k.t.Step = &state.Step{Lineage: k.r.Lineage, Leaf: k.r.Leaf, Sort: archiveSort, Resource: k.r.Resource, Before: k.r.Record}
	k.arrange()
	k.t.Step.After = k.record()
	k.judge()
	k.encode()
	k.leaves()
}

// leaves notes what the turn leaves, for the directory's next turn.
func (k *archiveWork) leaves() {
	after := archiveSight{now: map[string]Node{}}
	if before, ok := k.r.Now.(archiveSight); ok {
		maps.Copy(after.now, before.now)
	}
	for _, p := range k.order {
		after.now[p.abs] = p.to
	}
	k.t.Leaves = after
}

// arrange lists the shifts: what has to make way for another sort of thing first, then
// directories, what is made and changed, what goes, and the directories that go.
func (k *archiveWork) arrange() {
	k.shifts, k.clear = nil, 0
	var clear, dirs, rest, gone, last []*shift
	base := tempName()
	for i, p := range k.order {
		if !p.changes() {
			continue
		}
		s := &shift{path: p.abs, from: p.now, to: p.to, temp: fmt.Sprintf("%s-%d", base, i)}
		switch {
		case p.to.Type == Absent && p.now.Type == Dir:
			s.yields = true
			last = append(last, s)
		case p.to.Type == Absent:
			gone = append(gone, s)
		case p.now.Type != Absent && (p.now.Type == Dir) != (p.to.Type == Dir):
			off := &shift{path: p.abs, from: p.now, to: absent(), temp: s.temp}
			clear = append(clear, off)
			s.from = absent()
			fallthrough
		default:
			if p.to.Type == Dir {
				dirs = append(dirs, s)
			} else {
				rest = append(rest, s)
			}
		}
	}
	slices.Reverse(last)
	slices.Reverse(clear) // what is in a directory before it
	if len(clear) > 0 {
		clear = slices.Concat(gone, last, clear)
		gone, last = nil, nil
	}
	k.clear = len(clear)
	k.shifts = slices.Concat(clear, dirs, rest, gone, last)
}
