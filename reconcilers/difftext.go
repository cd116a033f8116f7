package reconcilers

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"golem/state"
)

// Diff shows how one text differs from another, as plans do; "" for not at all.
func Diff(old, next []byte) string { return unified(old, next) }

// KeptDiff tells how what stands at a kept file's path now differs from what is kept: in a
// word or two, and line by line where both are files. Of what is sensitive no line is shown.
func KeptDiff(h *Host, blobs Blobs, k *state.Kept) (says, diff string, err error) {
	was, err := readKept(k)
	if err != nil {
		return "", "", err
	}
	w := NewWorld(h, blobs)
	defer w.Close()
	now, err := h.observe(w.d, k.Path, maxDiff)
	if errors.Is(err, fs.ErrNotExist) {
		now, err = absent(), nil
	}
	if err != nil {
		return "", "", err
	}
	switch {
	case now.Type == Absent:
		says = "nothing is there now"
	case now.Type != was.Type:
		says = fmt.Sprintf("%s is there now, not %s", now.Type.noun(), was.Type.noun())
	default:
		says = sameText(was.Node, now)
	}
	if was.Secret {
		return says, "", nil
	}
	if was.Type != File || now.Type != File || was.Hash == now.Hash {
		return says, "", nil
	}
	if was.Size > maxDiff || now.Size > maxDiff || now.data == nil {
		return says + "; they are too large to be compared line by line", "", nil
	}
	src, _, err := blobs.OpenBlob(k.Blob)
	if err != nil {
		return "", "", err
	}
	defer src.Close()
	data, err := io.ReadAll(src)
	if err != nil {
		return "", "", fmt.Errorf("read kept %d: %w", k.ID, err)
	}
	return says, unified(data, now.data), nil
}

// sameText says how two objects of one type differ.
func sameText(was, now Node) string {
	if why := differs(now, was); why != "" {
		return "what is there now differs: " + why
	}
	return "what is there now is the same"
}
