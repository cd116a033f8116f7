package reconcilers

import (
	"bytes"
	"fmt"
)

// observe looks at the path, keeping as much of a file as the layers need.
func (k *work) observe() error {
	if n, ok := k.r.Now.(Node); ok {
		k.now = n
		return k.recall()
	}
	keep := int64(keepBytes)
	if len(k.edits)+len(k.s.edits) > 0 {
		keep = maxEdit
	}
	n, err := k.lookAgain(keep)
	k.now = n
	return err
}

// recall fetches bytes that an earlier turn's prediction did not keep at hand, where
// edits need them.
func (k *work) recall() error {
	if len(k.edits)+len(k.s.edits) == 0 || k.now.Type != File || k.now.data != nil || k.now.Size > maxEdit {
		return nil
	}
	data, err := k.read(k.now)
	k.now.data = data
	return err
}

// read returns all bytes of a file that is small enough to be edited.
func (k *work) read(n Node) ([]byte, error) {
	if n.data != nil {
		return n.data, nil
	}
	src, err := n.open(k.w.Blobs)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", quote(k.r.Resource), err)
	}
	defer src.Close()
	var buf bytes.Buffer
	if _, err := buf.ReadFrom(src); err != nil {
		return nil, fmt.Errorf("read %s: %w", quote(k.r.Resource), err)
	}
	return nonNil(buf.Bytes()), nil
}

// findBeneath works out what golem's layers lie on.
func (k *work) findBeneath() {
	k.bare = k.now
	if len(k.s.edits) > 0 && k.now.Type != File {
		_, k.peels = k.s.peelAll(nil) // what they had replaced is lost
	}
	if len(k.s.edits) > 0 && k.now.Type == File && k.now.data != nil {
		var content []byte
		content, k.peels = k.peeled()
		if !bytes.Equal(content, k.now.data) {
			k.bare = withContent(k.now, content)
			k.bare.Mtime = 0 // of what it would be without golem nobody knows the time,
			if k.bare.Hash == k.s.found.Hash {
				k.bare.Mtime = k.s.found.Mtime // but of what was found
			}
		}
	}
	k.made = k.s.made
	switch {
	case k.s.base != nil && (k.s.base.Changed || k.base != nil):
		k.beneath = k.s.under
	case k.s.base != nil:
		k.beneath, k.made = k.bare, false // it never changed anything and goes: all is the host's
	case k.inherits():
		k.beneath = absent()
	case k.orphan.Type == File && k.bare.Type == File && k.bare.Hash == k.orphan.Hash:
		k.beneath = k.s.found // what the edits lie on went with its package
	default:
		k.beneath = k.borrowed(k.bare)
		if k.s.made && k.bare.Type == File && k.bare.Size == 0 {
			k.beneath = absent()
		}
	}
	if k.beneath.Type == Absent && k.s.before != nil && k.s.found.Type == File && k.now.Type == Absent {
		k.made = true // a stranger deleted it: what edits make there now is golem's
	}
}

// withContent is a node with other bytes and the same metadata.
func withContent(n Node, content []byte) Node { return n.with(fileNode(content)) }

// with is a node with the bytes of another and its own metadata.
func (n Node) with(f Node) Node {
	n.Size, n.Hash, n.data, n.Blob, n.local = f.Size, f.Hash, f.data, "", ""
	return n
}

// holds says whether an unchanged stack shows on the host.
func (k *work) holds() bool {
	if k.base == nil {
		if k.now.Type != Absent && (k.now.Type != File || k.now.data == nil) {
			return false
		}
		if left := k.left(); k.now.Type == File && left.Type == File && left.Hash == k.now.Hash {
			return true // as golem left it: where one edit lies in another, not each shows
		}
		for _, layer := range k.edits {
			if !kindNamed(layer.Glyph.Kind).edit.holds(layer.Glyph, k.now.data) {
				return false
			}
		}
		return true
	}
	if err := k.makeBase(); err != nil {
		return false
	}
	if len(k.edits) == 0 {
		return differs(k.now, k.want) == ""
	}
	if err := k.putEdits(); err != nil {
		return false
	}
	return differs(k.now, k.want) == ""
}
