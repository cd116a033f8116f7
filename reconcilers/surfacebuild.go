package reconcilers

import (
	"errors"
	"fmt"
	"slices"

	"golem/reconcilers/entry"
	"golem/scrolls"
	"golem/state"
)

// build works out the wanted object: the base on what lies beneath, then the edits.
func (k *work) build() error {
	if err := k.makeBase(); err != nil {
		return err
	}
	if err := k.putEdits(); err != nil {
		return err
	}
	k.giveBackTime()
	return nil
}

// makeBase works out the object before edits.
func (k *work) makeBase() error {
	if k.base != nil {
		kind, _ := KindOf(k.base.Glyph.Kind)
		var was *scrolls.Glyph
		if k.s.base != nil {
			was = k.s.base.Glyph
		}
		bare := k.bare
		if body, ok := k.w.ledger(k.r.Resource); ok && k.inherits() && body.Node.UID == Any {
			bare = absent() // an archive made it as the archive has it, which says nothing here
		} else if k.letGo() != nil {
			bare = k.beneath // the same of a file
		}
		want, err := kind.base.make(k.w, k.base.Glyph, was, k.beneath, bare)
		if err != nil {
			return err
		}
		if want.Type != Link && want.GID == Any {
			want.GID = k.newGroup()
		}
		k.want, k.mid = want, want
		return nil
	}
	k.want = k.beneath
	if k.s.base == nil && k.now.Type == File && k.beneath.Type == File {
		k.want.Mtime = 0
	}
	k.mid = k.want
	return nil
}

// putEdits puts the edits on the wanted object, oldest first, and records each one's
// inverse anew.
func (k *work) putEdits() error {
	k.shed()
	if len(k.edits) == 0 {
		return nil
	}
	content, made := []byte{}, k.made
	missing := k.want.Type == Absent
	switch k.want.Type {
	case File:
		data, err := k.read(k.want)
		if err != nil {
			return err
		}
		content = data
	case Absent:
		k.want = k.newFile()
		k.made = true
	default:
		return fmt.Errorf("edit %s: it is a %s, not a file", quote(k.r.Resource), k.want.Type)
	}
	if err := k.putAll(content); err != nil {
		return err
	}
	for i, put := range k.t.reckoned.puts {
		missing = missing && !put.changed
		layer := &k.edits[i]
		layer.Inverse, layer.Changed = put.inverse, layer.Changed || put.changed
	}
	if missing { // none of them needs a file
		k.want, k.made = absent(), made
		return nil
	}
	if edited := k.want.with(k.t.reckoned.all); edited.Hash != k.want.Hash || k.want.Type == Absent {
		edited.Mtime = 0
		k.want = edited
	}
	return nil
}

// putAll puts the edits on content, one on the other, as far as the plan or the run's last
// turn did not do so.
func (k *work) putAll(content []byte) error {
	r := &k.t.reckoned
	r.on, r.layer, r.hints, r.puts = k.want, slices.Clone(k.edits), nil, nil
	at := k.spots(content)
	for i := range k.edits {
		if was := k.edits[i].Glyph.MovedFrom; k.r.Drop[was] != nil {
			at.rename(was, k.edits[i].Key)
		}
		r.hints = append(r.hints, at.tail(k.edits[i].Key, content))
	}
	if p := k.planned(); k.r.Untold && p.putsAgain(k.want, k.edits, r.hints) {
		r.puts, r.all = p.puts, p.all
		return nil
	}
	n, content := k.resume(at, content)
	r.puts = make([]putResult, n, len(k.edits))
	if n > 0 {
		copy(r.puts, k.last().puts)
	}
	told := k.told()
	for i := range k.edits[n:] {
		layer := &k.edits[n+i]
		put, err := kindNamed(layer.Glyph.Kind).edit.put(layer.Glyph, content, at.tail(layer.Key, content))
		if err != nil {
			return k.placed(layer.Glyph, err)
		}
		if put.changed && told[layer.Key] {
			k.diffs[layer.Key] = k.editDiff(content, put.content)
		}
		at.move(layer.Key, content, put.content)
		if k.r.Shares {
			put.sum = fileNode(put.content).Hash
		}
		content, put.content = put.content, nil
		r.puts = append(r.puts, put)
	}
	r.all = fileNode(content)
	return nil
}

// putOn says whether putting an edit on changed anything, and with which diff.
func (k *work) putOn(key scrolls.Key) (diff string, changed bool) {
	r := &k.t.reckoned
	i := k.is.of(key, k.edits)
	if i < 0 || i >= len(r.puts) || !r.puts[i].changed {
		return "", false
	}
	if diff, made := k.diffs[key]; made || k.r.Untold {
		return diff, true
	}
	// An earlier turn put it, who told nobody: the texts before and after are made again.
	content, err := k.read(r.on)
	for j := 0; err == nil; j++ {
		g := k.edits[j].Glyph
		var put putResult
		if put, err = kindNamed(g.Kind).edit.put(g, content, r.hints[j]); err == nil && j == i {
			return k.editDiff(content, put.content), true
		}
		content = put.content
	}
	return "", true // it was put on these very bytes before: no error comes of it now
}

// steadies says which edits that stay have the same edits before them as they had.
func (k *work) steadies(key scrolls.Key) bool {
	if k.steady == nil {
		k.steady = map[scrolls.Key]bool{}
		before, after := staying(k.s.edits, k.edits), staying(k.edits, k.s.edits)
		for i, key := range before {
			if key != after[i] {
				break
			}
			k.steady[key] = true
		}
	}
	return k.steady[key]
}

// staying are the keys of layers that are among others, too.
func staying(layers, others []state.Layer) []scrolls.Key {
	among := map[scrolls.Key]bool{}
	for i := range others {
		among[others[i].Key] = true
	}
	var keys []scrolls.Key
	for i := range layers {
		if among[layers[i].Key] {
			keys = append(keys, layers[i].Key)
		}
	}
	return keys
}

// told are the edits whose diff somebody will read.
func (k *work) told() map[scrolls.Key]bool {
	told := map[scrolls.Key]bool{}
	for _, g := range k.r.Set {
		told[g.Key] = !k.r.Untold
	}
	return told
}

// placed is why an edit cannot be put on, with the file and the glyph that it is about.
func (k *work) placed(g *scrolls.Glyph, err error) error {
	if ae, ok := errors.AsType[*AttrError](err); ok {
		sep := ","
		if place, ok := errors.AsType[*entry.PlaceError](ae.Err); ok && place.Line == 0 {
			sep = ":" // it is about the whole file
		}
		return &AttrError{Glyph: g, Attr: ae.Attr, Summary: ae.Summary, Err: fmt.Errorf("%s%s %w", quote(k.r.Resource), sep, err)}
	}
	return fmt.Errorf("edit %s: %w", quote(k.r.Resource), err)
}

// shed lets go of other lineages' edits where a file that they lay on gives way to
// what it had replaced, a link or a directory. They are put on what that leads to when
// their own lineage is applied next.
func (k *work) shed() {
	if k.want.Type == File || k.want.Type == Absent {
		return
	}
	k.edits = slices.DeleteFunc(k.edits, func(l state.Layer) bool { return l.Lineage != k.r.Lineage })
}

// newFile is a file that an edit makes: 0644, owned by golem.
func (k *work) newFile() Node {
	n := fileNode(nil)
	n.Mode, n.UID, n.GID = defaultFileMode, k.w.Host.UID, k.newGroup()
	return n
}

// newGroup is the group that the system gives to what golem makes here: golem's own,
// or the directory's where that has the setgid bit.
func (k *work) newGroup() int {
	dir, _ := split(k.r.Resource)
	if n, err := k.w.look(dir); err == nil && n.Type == Dir && n.Mode != Any && n.Mode&0o2000 != 0 {
		return n.GID
	}
	return k.w.Host.GID
}

// giveBackTime wants the found time back when the bytes are again those that were
// found (design: "mtime is put back whenever …").
func (k *work) giveBackTime() {
	if k.want.Type == File && k.s.before != nil && k.s.found.Type == File &&
		k.want.Hash == k.s.found.Hash && k.now.Hash != k.want.Hash {
		k.want.Mtime = k.s.found.Mtime
	}
}
