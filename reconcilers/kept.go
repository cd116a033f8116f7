package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"golem/state"
)

// concealed is a node in the journal's note of something displaced that holds, or held,
// something sensitive.
type concealed struct {
	Node
	Secret bool `json:"secret,omitempty"`
}

// Conceal marks what a turn displaces as sensitive, where one of its glyphs is: neither size
// nor hash of it is shown.
func (t *Turn) Conceal(k *state.Kept) error {
	if t.Step != nil && secretStep(t.Step) || slices.ContainsFunc(t.Changes, func(c Change) bool { return c.Secret }) {
		return conceal(k)
	}
	return nil
}

// secretStep says whether a glyph of a step is sensitive, before it or after it.
func secretStep(s *state.Step) bool {
	return slices.ContainsFunc(s.Glyphs, func(g state.StepGlyph) bool {
		return g.Old != nil && secret(g.Old) || g.New != nil && secret(g.New)
	})
}

func conceal(k *state.Kept) error {
	n, err := readKept(k)
	if err == nil {
		n.Secret = true
		k.Node = encode(n)
	}
	return err
}

func readKept(k *state.Kept) (n concealed, err error) {
	if err := json.Unmarshal(k.Node, &n); err != nil {
		return n, fmt.Errorf("read kept %d: %w", k.ID, err)
	}
	return n, nil
}

// KeptShown is what is told of something kept; of what is sensitive neither size nor hash.
func KeptShown(k *state.Kept) (node json.RawMessage, sensitive bool) {
	n, err := readKept(k)
	if err != nil || !n.Secret {
		return k.Node, false
	}
	n.Size, n.Hash, n.Blob, n.Target = 0, "", "", ""
	return encode(n.Node), true
}

// RestoreKept writes something that golem displaced to a path where nothing stands:
// bytes, owner, mode and all. What stands there is never overwritten, since a restore
// is no run and would have no undo.
func RestoreKept(h *Host, blobs Blobs, k *state.Kept, path string) error {
	for _, problem := range checkPath("path", path) {
		return fmt.Errorf("restore to %s: %s", quote(path), problem.Detail)
	}
	w := NewWorld(h, blobs)
	defer w.Close()
	at, err := w.resolve(path, false)
	if err == nil {
		err = w.mayTouch(at)
	}
	if err != nil {
		return err
	}
	kept, err := readKept(k)
	if err != nil {
		return err
	}
	n := kept.Node
	n.Blob = k.Blob
	now, err := h.observe(w.d, at.real, 0)
	if err != nil {
		return err
	}
	if now.Type != Absent {
		return &OccupiedError{Path: at.real, ID: k.ID}
	}
	b := h.newBatch(blobs, func(string, Node, string, func() (*os.File, error)) error { return ErrMoved }, 1)
	defer b.close()
	s := &shift{path: at.real, from: now, to: n, temp: tempName()}
	_, err = b.run(context.Background(), []*shift{s})
	return err
}

// An OccupiedError says that something stands where a kept file was to be restored.
type OccupiedError struct {
	Path string
	ID   int64
}

func (e *OccupiedError) Error() string {
	return fmt.Sprintf("restore kept %d: %s is there already, and would be lost", e.ID, quote(e.Path))
}

// Hint says how to restore it all the same.
func (e *OccupiedError) Hint() string {
	return fmt.Sprintf("move it away, or write beside it: golem kept restore %d --to PATH", e.ID)
}
