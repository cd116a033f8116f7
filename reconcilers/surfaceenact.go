package reconcilers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"golem/state"
)

// maxBatch bounds the turns of one batch, and maxBatchBytes the bytes held for them.
const (
	maxBatch      = 5000
	maxBatchBytes = 64 << 20
)

// Batch implements Reconciler: turns share a batch unless one lies inside a path that
// the batch changes (other than a directory made or kept there), or around one.
func (surfaces) Batch(turns []*Turn) int {
	changed := map[string]*shift{}
	around := map[string]bool{}
	var held int64
	for i, t := range turns {
		if t.Sort != PathSort || i == maxBatch || t.Late != turns[0].Late || changed[t.Resource] != nil {
			return max(i, 1)
		}
		if around[t.Resource] && !t.Late {
			return max(i, 1)
		}
		up := ancestors(t.Resource)
		for _, dir := range up {
			if s := changed[dir]; s != nil && !staysDir(s) {
				return max(i, 1)
			}
			around[dir] = true
		}
		changed[t.Resource] = &shift{from: absent(), to: absent()}
		if t.shift != nil {
			changed[t.Resource] = t.shift
			held += int64(len(t.shift.from.data) + len(t.shift.to.data))
		}
		if held > maxBatchBytes {
			return max(i, 1)
		}
	}
	return len(turns)
}

// staysDir says whether things can be put inside a path while the shift is done.
func staysDir(s *shift) bool {
	return s.to.Type == Dir && (s.from.Type == Dir || s.from.Type == Absent)
}

// Join implements Reconciler: files have nothing between them that Fit did not see.
func (surfaces) Join(context.Context, *World, []*Turn) error { return nil }

// Capture implements Reconciler.
func (surfaces) Capture(_ context.Context, w *World, store Store, turns []*Turn) error {
	for _, t := range turns {
		if t.Step == nil {
			continue
		}
		nodes := []Node{t.shift.from}
		if t.under != nil {
			nodes = append(nodes, *t.under)
		}
		nodes = append(nodes, t.lost...)
		for _, n := range nodes {
			if err := w.store(store, t.Resource, n); err != nil {
				return err
			}
		}
		if err := storeSources(store, t); err != nil {
			return err
		}
	}
	return nil
}

// store gives the journal a node's bytes, from wherever they are.
func (w *World) store(store Store, path string, n Node) error {
	switch {
	case n.Type != File || n.Blob != "" && n.data == nil:
		return nil
	case n.data != nil:
		_, err := store.Put(n.data)
		return wrap(err, "keep", path)
	case n.local != "":
		return storeLocal(store, n.local, n.Hash)
	}
	f, err := w.Host.openAt(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = store.PutFile(f, n.Hash)
	return wrap(err, "keep", path)
}

func wrap(err error, verb, path string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", verb, quote(path), err)
}

// storeSources gives the journal the bytes of local files that glyphs name, so that a
// later rollback needs nothing else.
func storeSources(store Store, t *Turn) error {
	for _, part := range t.Step.Glyphs {
		if part.New == nil {
			continue
		}
		for attr, file := range part.New.Files {
			ref, _ := part.New.Attrs[attr].(map[string]any)
			hash, _ := ref["sha256"].(string)
			if err := storeLocal(store, file, hash); err != nil {
				return err
			}
		}
	}
	return nil
}

func storeLocal(store Store, file, hash string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("read source: %w", err)
	}
	defer f.Close()
	_, err = store.PutFile(f, hash)
	return wrap(err, "keep", file)
}

// Enact implements Reconciler.
func (surfaces) Enact(ctx context.Context, w *World, store Store, turns []*Turn) (int, error) {
	shifts := make([]*shift, 0, len(turns))
	at := make([]int, 0, len(turns))
	for i, t := range turns {
		if t.Step == nil || t.shift.way() == wayNone && len(t.shift.parents) == 0 {
			continue
		}
		t.shift.yields = t.Late
		shifts, at = append(shifts, t.shift), append(at, i)
	}
	if len(shifts) == 0 {
		return -1, nil
	}
	b := w.Host.newBatch(w.Blobs, keepWith(store, turns[0].Step, turns[1:]...), len(shifts))
	b.timeout = w.Timeout
	defer b.close()
	failed, err := b.run(ctx, shifts)
	w.forget()
	if err != nil {
		return at[failed], err
	}
	return -1, nil
}

// keepWith makes a keeper of the store, for what is displaced in a race while a step, or one
// of a batch, is done or taken back.
func keepWith(store Store, step *state.Step, others ...*Turn) keeper {
	hides := secretStep(step) || slices.ContainsFunc(others, func(t *Turn) bool { return t.Step != nil && secretStep(t.Step) })
	return func(path string, n Node, reason string, open func() (*os.File, error)) error {
		k := kept(path, n, reason)
		k.Run = step.Run
		if hides {
			if err := conceal(&k); err != nil {
				return err
			}
		}
		return store.Keep(k, open)
	}
}

// readStep decodes a path step.
func readStep(s *state.Step) (before Node, exp expectation, err error) {
	if err := json.Unmarshal(s.Inverse, &before); err != nil {
		return before, exp, fmt.Errorf("read the inverse of %s: %w", quote(s.Resource), err)
	}
	if err := json.Unmarshal(s.Expect, &exp); err != nil {
		return before, exp, fmt.Errorf("read the step on %s: %w", quote(s.Resource), err)
	}
	return before.whole(), exp, nil
}

// Undo implements Reconciler.
func (surfaces) Undo(ctx context.Context, w *World, store Store, s *state.Step) error {
	before, exp, err := readStep(s)
	if err != nil {
		return err
	}
	if before.Type == exp.Node.Type && differs(before, exp.Node) == "" && len(exp.Parents) == 0 {
		return nil // it never touched the host
	}
	u := undoing{path: s.Resource, before: before, after: exp.Node, temp: exp.Temp}
	for _, up := range exp.Parents {
		u.made = append(u.made, string(up.Path))
	}
	defer w.forget()
	return w.Host.undo(ctx, w.Blobs, keepWith(store, s), u)
}

// Foresee implements Reconciler.
func (surfaces) Foresee(w *World, s *state.Step) error {
	before, exp, err := readStep(s)
	if err != nil {
		return err
	}
	if before.Type == File && before.Hash == exp.Node.Hash && exp.Node.Type == File {
		return nil // the bytes on the host are right, and at hand there
	}
	w.predict(s.Resource, before)
	for _, up := range exp.Parents {
		w.predict(string(up.Path), absent())
	}
	return nil
}

// sameSight says whether two looks at a path saw the same.
func sameSight(a, b Node) bool {
	return a.Type == b.Type && a.Hash == b.Hash && a.Target == b.Target &&
		a.Mode == b.Mode && a.UID == b.UID && a.GID == b.GID && bytes.Equal(encode(a.Xattrs), encode(b.Xattrs))
}

// Makes are the resources that a turn makes beside its own.
func (t *Turn) Makes() []string {
	if t.shift == nil {
		return nil
	}
	made := make([]string, 0, len(t.shift.parents))
	for _, up := range t.shift.parents {
		made = append(made, up.path)
	}
	return made
}
