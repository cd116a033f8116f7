package reconcilers

import (
	"encoding/json"
	"fmt"

	"golem/state"
)

// FoundShown is a record's found state as it may be shown: without size and hash where
// a layer on it is secret.
func FoundShown(rec *state.Record) json.RawMessage {
	if IsUnknown(rec.Found) {
		return rec.Found
	}
	if r, ok := Reconcilers[rec.Sort].(Shower); ok {
		return r.ShowFound(rec.Found)
	}
	if rec.Sort != PathSort {
		return rec.Found
	}
	hide := false
	for _, layer := range rec.Layers {
		hide = hide || secret(layer.Glyph)
	}
	var n Node
	if !hide || json.Unmarshal(rec.Found, &n) != nil {
		return rec.Found
	}
	n.Size, n.Hash, n.Blob, n.Target = 0, "", "", ""
	return encode(n)
}

// A Teller is a reconciler that tells a found state of its own to a person.
type Teller interface {
	TellFound(found json.RawMessage) string
}

// A Shower is a reconciler whose found states hold more than may be shown.
type Shower interface {
	ShowFound(found json.RawMessage) json.RawMessage
}

// IsUnknown says that a record does not know what was there before golem.
func IsUnknown(found json.RawMessage) bool { return len(found) == 0 || string(found) == "null" }

// FoundText tells a found state to a person, in a few words.
func FoundText(sort string, found json.RawMessage) string {
	if IsUnknown(found) {
		return "not known; undeclaring it leaves it as it is"
	}
	if t, ok := Reconcilers[sort].(Teller); ok {
		return t.TellFound(found)
	}
	var n Node
	if json.Unmarshal(found, &n) != nil {
		return "something this golem cannot read"
	}
	owner := fmt.Sprintf("%d:%d", n.UID, n.GID)
	switch n.Type {
	case Absent:
		return "nothing"
	case Link:
		if len(n.Target) == 0 {
			return "a link"
		}
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
