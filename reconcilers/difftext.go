package reconcilers

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"golem/state"
)

// Diff shows how one text differs from another, as plans do; "" for not at all.
func Diff(old, next []byte) string { return unified(old, next) }

// A KeptChange is how what stands at a kept file's path now differs from what is kept: in a
// word or two, and line by line where both are files.
type KeptChange struct {
	Says, Diff string
	// Secret says that something sensitive is in what is kept, or in what a layer in force has
	// at that path by now: no line is told.
	Secret bool
}

// KeptDiff compares what is kept with what is at its path.
func KeptDiff(h *Host, blobs Blobs, k *state.Kept, applied []state.Applied) (c KeptChange, err error) {
	was, err := readKept(k)
	if err != nil {
		return c, err
	}
	c.Secret = was.Secret || slices.ContainsFunc(applied, func(a state.Applied) bool {
		return a.Sort == PathSort && a.Resource == k.Path && secret(a.Glyph)
	})
	w := NewWorld(h, blobs)
	defer w.Close()
	now, err := h.observe(w.d, k.Path, maxDiff)
	if errors.Is(err, fs.ErrNotExist) {
		now, err = absent(), nil
	}
	if err != nil {
		return c, err
	}
	switch {
	case now.Type == Absent:
		c.Says = "nothing is there now"
	case now.Type != was.Type:
		c.Says = fmt.Sprintf("%s is there now, not %s", now.Type.noun(), was.Type.noun())
	default:
		c.Says = sameText(was.Node, now)
	}
	if c.Secret || was.Type != File || now.Type != File || was.Hash == now.Hash {
		return c, nil
	}
	if was.Size > maxDiff || now.Size > maxDiff || now.data == nil {
		c.Says += "; they are too large to be compared line by line"
		return c, nil
	}
	src, _, err := blobs.OpenBlob(k.Blob)
	if err != nil {
		return c, err
	}
	defer src.Close()
	data, err := io.ReadAll(src)
	if err != nil {
		return c, fmt.Errorf("read kept %d: %w", k.ID, err)
	}
	c.Diff = unified(data, now.data)
	return c, nil
}

// sameText says how two objects of one type differ.
func sameText(was, now Node) string {
	if why := differs(now, was); why != "" {
		return "what is there now differs: " + why
	}
	return "what is there now is the same"
}
