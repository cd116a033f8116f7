package reconcilers

import (
	"encoding/json"
	"fmt"

	"golem/state"
)

// FoundShown is a record's found state as it may be shown: without size and hash where
// a layer on it is secret.
func FoundShown(rec *state.Record) json.RawMessage {
	hide := false
	for _, layer := range rec.Layers {
		hide = hide || secret(layer.Glyph)
	}
	var n Node
	if !hide || json.Unmarshal(rec.Found, &n) != nil {
		return rec.Found
	}
	n.Size, n.Hash, n.Blob = 0, "", ""
	return encode(n)
}

// FoundText tells a found state to a person, in a few words.
func FoundText(found json.RawMessage) string {
	var n Node
	if json.Unmarshal(found, &n) != nil {
		return "something this golem cannot read"
	}
	owner := fmt.Sprintf("%d:%d", n.UID, n.GID)
	switch n.Type {
	case Absent:
		return "nothing"
	case Link:
		return "a link → " + quote(string(n.Target))
	case File:
		if n.Hash != "" {
			return fmt.Sprintf("a file, %s, sha256 %s, %04o %s", bytesText(n.Size), short(n.Hash), n.Mode, owner)
		}
		fallthrough
	default:
		return fmt.Sprintf("a %s, %04o %s", n.Type, n.Mode, owner)
	}
}
