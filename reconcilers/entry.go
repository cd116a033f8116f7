package reconcilers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"golem/reconcilers/entry"
	"golem/scrolls"
)

var entryKind = Kind{
	Sort: PathSort,
	Kind: scrolls.Kind{
		Name: "entry", Version: 1,
		Doc: "One key, or one member of a list, in a structured file that others own too: JSON (with comments or " +
			"without), YAML, TOML, INI, env and keyword files like `sshd_config`. Only the bytes of that key are " +
			"touched; comments, order, indentation and the spelling of everything else stay, and new text is written as " +
			"its neighbours are. Parents that are missing are made. Undeclared, the key gets back the very bytes that it " +
			"had, or goes again, with the parents that golem made as far as they are empty. A link at the path is followed " +
			"to the real file. A file that is not there or empty starts as the format's empty document. What cannot be " +
			"edited safely (a text that does not parse, a name that is there twice) is refused, with its place.",
		Attrs: []scrolls.Attr{
			{Name: "path", Type: cty.String, Required: true, Doc: "The file: an absolute, clean path."},
			{
				Name: "format", Type: cty.String, Default: "by the file's name",
				Doc: "How the file is written: `json` (JSONC too), `yaml`, `toml`, `ini`, `env` or `keyword`.",
			},
			{
				Name: "key", Type: cty.DynamicPseudoType, Required: true, TypeText: "string, or list of steps",
				Doc: "Which key: a list of steps, names and, for members of a list, numbers from 0, where one past the last " +
					"makes a new member (in TOML of a list of tables); or a string that is split at its dots. In INI the first step is the section.",
			},
			{Name: "value", Type: cty.DynamicPseudoType, Null: true, TypeText: "any", Doc: "The value that the key is to have; `null` is a value too."},
			{
				Name: "member", Type: cty.DynamicPseudoType, Null: true, TypeText: "any",
				Doc: "A member that the list at the key is to have. It is added at the end if no member is equal to it.",
			},
			{Name: "before", Type: cty.DynamicPseudoType, TypeText: "any", Doc: "A member that a new `member` is put before."},
			{Name: "after", Type: cty.DynamicPseudoType, TypeText: "any", Doc: "A member that a new `member` is put behind."},
			{Name: "absent", Type: cty.Bool, Default: "`false`", Doc: "The key is not to be there."},
			validateAttr,
			{Name: "document", Type: cty.Number, Default: "`0`", Doc: "Which document of a YAML stream, from 0."},
		},
		Identity: entryIdentity, Shape: entryKey, Check: checkEntry, Canonical: canonicalEntry,
		Surface: func(a scrolls.Attrs) (string, bool) { return str(a, "path"), false },
	},
	shape: "entry:PATH:KEY`, of a member `entry:PATH:KEY:[MEMBER]",
	edit:  &edit{put: putEntry, peel: peelEntry, holds: entryHolds, tell: tellEntry},
}

// entryWish is a glyph as the formats know it.
func entryWish(a scrolls.Attrs) entry.Wish {
	w := entry.Wish{Before: a["before"], After: a["after"], Document: wholeNumber(a, "document", 0)}
	w.Steps, _ = entrySteps(a) // checked when loaded
	if gone := boolOf(a, "absent"); gone != nil {
		w.Absent = *gone
	}
	if w.Value, w.Member = a["member"]; !w.Member {
		w.Value = a["value"]
	}
	return w
}

// putEntry implements edit.put.
func putEntry(g *scrolls.Glyph, content []byte, hint int) (putResult, error) {
	format, ok := entry.Formats[formatOf(g.Attrs)]
	if !ok {
		return putResult{}, fmt.Errorf("this golem does not know the format %q", formatOf(g.Attrs))
	}
	wish := entryWish(g.Attrs)
	if hint >= 0 && hint <= len(content) {
		spot := len(content) - hint
		wish.Spot = &spot
	}
	out, receipt, err := format.Put(content, wish)
	if err != nil && wish.Spot != nil { // it cannot stand there any more
		wish.Spot = nil
		out, receipt, err = format.Put(content, wish)
	}
	if err != nil {
		var place *entry.PlaceError
		if errors.As(err, &place) {
			attr := "key"
			if place.Value {
				attr = "value"
				if wish.Member {
					attr = "member"
				}
			}
			err = &AttrError{Attr: attr, Summary: "Entry cannot be edited", Err: err}
		}
		return putResult{}, err
	}
	if receipt == nil {
		return putResult{content: content, inverse: json.RawMessage("null")}, nil
	}
	return putResult{content: out, inverse: receipt, changed: true}, nil
}

// peelEntry implements edit.peel.
func peelEntry(g *scrolls.Glyph, inverse json.RawMessage, content []byte) peelResult {
	format, ok := entry.Formats[formatOf(g.Attrs)]
	if !ok || len(inverse) == 0 || string(inverse) == "null" {
		return peelResult{content: content, tail: -1}
	}
	out := format.Peel(content, entryWish(g.Attrs), inverse)
	if bytes.Equal(out, content) {
		kept := peelResult{content: content, tail: -1}
		if _, _, err := format.Put(content, entryWish(g.Attrs)); err != nil { // not gone: out of reach
			kept.why = err.Error()
			kept.lost = replacedBy(inverse)
		}
		return kept
	}
	off := peelResult{content: out, tail: len(out) - spotOf(content, out, formatOf(g.Attrs))}
	gone := linesGone(content, out)
	// A stranger's value stands in the place of golem's, or a comment of his within it.
	if !entryHolds(g, content) || bytes.ContainsAny(gone, "#;/") && !onlyWished(format, entryWish(g.Attrs), content, out) {
		off.lost = gone
	}
	return off
}

// replacedBy is what an entry took the place of, as its receipt has it.
func replacedBy(inverse json.RawMessage) []byte {
	var receipt struct {
		Old []byte `json:"old"`
		Ops []struct {
			Old []byte `json:"old"`
		} `json:"ops"`
	}
	if json.Unmarshal(inverse, &receipt) != nil {
		return nil
	}
	old := receipt.Old
	for _, op := range receipt.Ops {
		old = append(old, op.Old...)
	}
	if len(old) > 0 && !bytes.HasSuffix(old, []byte("\n")) {
		old = append(old, '\n')
	}
	return old
}

// onlyWished says whether a text has no line but those of what became of it when a wish was
// taken off, and those that the wish would put on that again.
func onlyWished(format entry.Format, w entry.Wish, content, out []byte) bool {
	again, _, err := format.Put(out, w)
	if err != nil {
		return false
	}
	left := map[string]int{}
	for line := range bytes.Lines(again) {
		left[string(bytes.TrimSpace(line))]++
	}
	for line := range bytes.Lines(content) {
		line = bytes.TrimSpace(line)
		if left[string(line)]--; left[string(line)] < 0 && len(line) > 0 {
			return false
		}
	}
	return true
}

// spotOf is where in a text lay what was taken out of it: the beginning of what follows.
func spotOf(content, out []byte, format string) int {
	at, tail, first := changedPart(content, out)
	if format == "json" {
		if first < 0 {
			at = len(out) - tail // a comma before it went too
		}
		for p := max(first, 0); first >= 0 && p < at; p++ { // the same bytes may have stood a little before
			if betweenMembers(out, p) {
				at = p
			}
		}
		for at < len(out) && bytes.IndexByte([]byte(" \t\r\n,"), out[at]) >= 0 {
			at++
		}
		return at
	}
	if first >= 0 {
		at = first
	}
	for at < len(out) && !startsLine(out, at) {
		at++
	}
	return at
}

// betweenMembers says whether no member of JSON lies across an offset.
func betweenMembers(text []byte, at int) bool {
	if at == len(text) || bytes.IndexByte([]byte(" \t\r\n,"), text[at]) >= 0 {
		return true
	}
	return text[at] == '"' && at > 0 && bytes.IndexByte([]byte(" \t\r\n,[{"), text[at-1]) >= 0
}

// linesGone are the whole lines of a text that are not as they were in what became of it.
func linesGone(content, out []byte) []byte {
	head, tail := commonEnds(content, out)
	from, to := bytes.LastIndexByte(content[:head], '\n')+1, len(content)-tail
	if i := bytes.IndexByte(content[to:], '\n'); i >= 0 {
		to += i + 1
	} else {
		to = len(content)
	}
	return content[from:to]
}

// tellEntry implements edit.tell.
func tellEntry(g *scrolls.Glyph, inverse json.RawMessage) (did, back string) {
	var receipt struct{ Did string }
	_ = json.Unmarshal(inverse, &receipt) // what the format does not say is told in general
	switch {
	case g.Attrs["absent"] == true:
		return "takes the key out", "the key that golem took out comes back"
	case receipt.Did == "set":
		return "replaces the value", "the value that was there comes back, byte for byte"
	case receipt.Did == "add" || receipt.Did == "made":
		return editAdds, "only golem's entry goes"
	}
	return "set", "what was there before comes back"
}

// entryHolds implements edit.holds.
func entryHolds(g *scrolls.Glyph, content []byte) bool {
	format, ok := entry.Formats[formatOf(g.Attrs)]
	return ok && format.Holds(content, entryWish(g.Attrs))
}
