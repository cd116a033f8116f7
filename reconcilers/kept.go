package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"golem/state"
)

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
	var n Node
	if err := json.Unmarshal(k.Node, &n); err != nil {
		return fmt.Errorf("read kept %d: %w", k.ID, err)
	}
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
