// Package entry changes one value of a structured text that others own, and takes that
// back, without touching a byte beside it: comments, order, spelling of numbers, line endings
// and indentation stay. It knows texts only, no host and no kind.
package entry

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A Step is one step of a key: the name of a member, or the place in a list.
type Step struct {
	Name  string
	Index int
	Place bool // Index counts, from 0
}

// A Wish is what is to be true of one key of a text.
type Wish struct {
	Steps []Step
	// Value is the wanted value, as plain values: nil, bool, string, json.Number, []any and
	// map[string]any.
	Value any
	// Member says that Value is one member of the list at the key: it is added if no member
	// equals it. Before and After, where set, are a member that it is put beside.
	Member        bool
	Before, After any
	// Absent says that the key is to be gone; Value means nothing then.
	Absent bool
	// Document is which document of a stream it is about, from 0.
	Document int
	// Spot, where set, is where in the text the key stood before it was taken off: a new one
	// is put there, where it can stand.
	Spot *int
}

// A Format knows where the values of one kind of text lie. For every text and wish that Put
// takes, Peel of what it gives is the text again, to the byte; and Put after that gives the
// same. Texts are never changed in place.
type Format interface {
	// Put makes a wish true of a text. It gives the text and a receipt for Peel; the very
	// text, with a nil receipt, where the wish is true of it already. An empty text is the
	// format's empty document. A *PlaceError says that it cannot be done safely.
	Put(text []byte, w Wish) (out []byte, receipt json.RawMessage, err error)
	// Peel takes off what a receipt says was put on, though others may have changed the text
	// around it since. Where it cannot be found any more, the text comes back as it is.
	Peel(text []byte, w Wish, receipt json.RawMessage) []byte
	// Holds says whether a wish is true of a text.
	Holds(text []byte, w Wish) bool
}

// Formats are those there are, by name.
var Formats = map[string]Format{
	"json": jsonFormat{}, "jsonc": jsonFormat{}, "yaml": yamlFormat{}, "toml": tomlFormat{},
	"ini": ini, "env": env, "keyword": keyword,
}

// A PlaceError is why a text cannot be edited, and where.
type PlaceError struct {
	Line, Column int // from 1; 0: about the text as a whole
	Why          string
	// Value says that what is in the way is the wished value.
	Value bool
}

func (e *PlaceError) Error() string {
	if e.Line == 0 {
		return e.Why
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Why)
}

// at is an error at an offset of a text; columns count bytes.
func at(text []byte, offset int, format string, args ...any) error {
	return placeOf(text, offset, fmt.Sprintf(format, args...))
}

func placeOf(text []byte, offset int, why string) *PlaceError {
	before := string(text[:min(offset, len(text))])
	return &PlaceError{Line: strings.Count(before, "\n") + 1, Column: len(before) - strings.LastIndexByte(before, '\n'), Why: why}
}

// A splice replaces the bytes from At to End.
type splice struct {
	At, End int
	With    []byte
}

// apply makes splices of a text, which do not overlap and are in order.
func apply(text []byte, splices ...splice) []byte {
	size := len(text)
	for _, s := range splices {
		size += len(s.With) - (s.End - s.At)
	}
	out := make([]byte, 0, size) // at once: a text may be large
	last := 0
	for _, s := range splices {
		out = append(append(out, text[last:s.At]...), s.With...)
		last = s.End
	}
	return append(out, text[last:]...)
}

// encode spells a receipt.
func encode(receipt any) json.RawMessage {
	raw, err := json.Marshal(receipt)
	if err != nil {
		panic(err) // plain strings and bytes have always a spelling: a bug
	}
	return raw
}

// A Checker is a Format that knows, without a text, what it cannot hold.
type Checker interface {
	// Check says which attribute of an entry is wrong ("key", "value", "member") and why,
	// in sentences; an empty why for none.
	Check(w Wish) (attr, why string)
}
