package reconcilers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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

// entrySteps reads a key; why says what is wrong with it.
func entrySteps(a scrolls.Attrs) (steps []entry.Step, why string) {
	switch key := a["key"].(type) {
	case string:
		if key == "" {
			return nil, `The key is empty. Write a list, ["", "name"], for a name before the first section of an INI file.`
		}
		for name := range strings.SplitSeq(key, ".") {
			if name == "" {
				return nil, fmt.Sprintf("%q is split at its dots and has an empty step. Write a list where a step holds a dot or is empty: [\"a.b\", \"c\"].", key)
			}
			steps = append(steps, entry.Step{Name: name})
		}
	case []any:
		for i, step := range key {
			switch step := step.(type) {
			case string:
				steps = append(steps, entry.Step{Name: step})
			case json.Number:
				n, err := strconv.Atoi(string(step))
				if err != nil || n < 0 {
					return nil, fmt.Sprintf("Step %d is %s. The members of a list are numbered from 0.", i+1, step)
				}
				steps = append(steps, entry.Step{Index: n, Place: true})
			default:
				return nil, fmt.Sprintf("Step %d is neither a name nor a number.", i+1)
			}
		}
	default:
		return nil, `A key is a string, like "a.b", or a list of steps, like ["a", 0, "b.c"].`
	}
	return steps, ""
}

// stepTexts are the steps of a key as text.
func stepTexts(a scrolls.Attrs) []string {
	steps, _ := entrySteps(a)
	texts := make([]string, len(steps))
	for i, step := range steps {
		if texts[i] = step.Name; step.Place {
			texts[i] = strconv.Itoa(step.Index)
		}
	}
	return texts
}

// memberText spells a member in a key: a string as it is, unless it could be taken for
// another value; everything else as JSON.
func memberText(v any) string {
	if text, ok := v.(string); ok && !json.Valid([]byte(text)) {
		return text
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("spell a member: %v", err)) // attributes hold only what JSON has
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func entryIdentity(a scrolls.Attrs) []string {
	parts := []string{str(a, "path"), strings.Join(stepTexts(a), "\x00")}
	if n := wholeNumber(a, "document", 0); n > 0 {
		parts = append(parts, "document "+strconv.Itoa(n))
	}
	if member, ok := a["member"]; ok {
		parts = append(parts, memberText(member))
	}
	return parts
}

// entryKey spells the key: entry:/p:a.b.c, entry:/p:a.b.c:[MEMBER]. Another document than
// the first stands before the steps.
func entryKey(a scrolls.Attrs) scrolls.Key {
	parts := []string{str(a, "path")}
	if n := wholeNumber(a, "document", 0); n > 0 {
		parts = append(parts, "document "+strconv.Itoa(n))
	}
	key := scrolls.MakeKey("entry", parts...).Steps(stepTexts(a)...)
	if member, ok := a["member"]; ok {
		key = key.Member(memberText(member))
	}
	return key
}

// canonicalEntry has one spelling of every key, and the format that is meant.
func canonicalEntry(a scrolls.Attrs) scrolls.Attrs {
	c := lessAttrs(a, "validate")
	if steps, why := entrySteps(a); why == "" {
		list := make([]any, len(steps))
		for i, step := range steps {
			if list[i] = step.Name; step.Place {
				list[i] = json.Number(strconv.Itoa(step.Index))
			}
		}
		c["key"] = list
	}
	c["format"] = formatOf(a)
	if gone := boolOf(a, "absent"); gone != nil && !*gone {
		delete(c, "absent")
	}
	if wholeNumber(a, "document", 0) == 0 {
		delete(c, "document")
	}
	return c
}

// checkEntry says what is wrong with a glyph before any file is looked at.
func checkEntry(a scrolls.Attrs) []scrolls.Problem {
	problems := append(checkPath("path", str(a, "path")), checkValidate(a)...)
	wrong := func(attr, summary, detail string) {
		problems = append(problems, scrolls.Problem{Attr: attr, Summary: summary, Detail: detail})
	}
	format := formatOf(a)
	_, known := entry.Formats[format]
	switch {
	case format == "":
		wrong("path", "Format is not known", "The file's name does not say how it is written. Add format = "+formatNames()+".")
	case !known:
		wrong("format", "Format is not known", fmt.Sprintf("There is no format %q. Write %s.", format, formatNames()))
	}
	steps, why := entrySteps(a)
	if why != "" {
		wrong("key", "Key cannot be read", why)
	} else if _, member := a["member"]; len(steps) == 0 && !member {
		wrong("key", "Key has no steps", "It means the whole file. Declare a file instead, or a member of the list that the file is.")
	}
	problems = append(problems, checkWish(a)...)
	if gone := boolOf(a, "absent"); gone != nil && *gone && len(steps) > 0 && steps[len(steps)-1].Place {
		wrong("key", "A place in a list cannot be absent", "The members behind it would move up, and the next run would take away one more.")
	}
	if _, given := a["document"]; given {
		switch n := wholeNumber(a, "document", 0); {
		case n < 0:
			wrong("document", "Document is no whole number", "The documents of a stream are numbered from 0.")
		case n > 0 && format != "yaml":
			wrong("document", "Only YAML has documents", "A file of another format is one document.")
		}
	}
	if len(problems) == 0 {
		if checker, ok := entry.Formats[format].(entry.Checker); ok {
			if attr, detail := checker.Check(entryWish(a)); detail != "" {
				wrong(attr, "The format cannot hold it", detail)
			}
		}
	}
	return problems
}

// checkWish says what is wrong with what is wished of the key.
func checkWish(a scrolls.Attrs) []scrolls.Problem {
	var problems []scrolls.Problem
	wrong := func(attr, summary, detail string) {
		problems = append(problems, scrolls.Problem{Attr: attr, Summary: summary, Detail: detail})
	}
	var given []string
	for _, name := range []string{"value", "member"} {
		if _, ok := a[name]; ok {
			given = append(given, name)
		}
	}
	if gone := boolOf(a, "absent"); gone != nil && *gone {
		given = append(given, "absent")
	}
	switch {
	case len(given) == 0:
		wrong("", "Entry without a value", "Write value = …, member = … for a member of a list, or absent = true.")
	case len(given) > 1:
		wrong(given[1], "Entry says two things", fmt.Sprintf("Both %s and %s are written. Keep one.", given[0], given[1]))
	}
	_, before := a["before"]
	_, after := a["after"]
	_, member := a["member"]
	switch {
	case before && after:
		wrong("after", "Place given twice", "Both before and after say where the member is put. Keep one.")
	case before && !member:
		wrong("before", "Only a member has a place", "before says where a new member of a list is put; this entry has none.")
	case after && !member:
		wrong("after", "Only a member has a place", "after says where a new member of a list is put; this entry has none.")
	}
	return problems
}

// formatNames lists the formats for a message.
func formatNames() string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(entry.Formats)), func(name string) bool { return name == "jsonc" })
	for i, name := range names {
		names[i] = strconv.Quote(name)
	}
	return orList(names)
}

func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
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
	least := min(len(content), len(out))
	head := 0
	for head < least && content[head] == out[head] {
		head++
	}
	tail := 0
	for tail < least-head && content[len(content)-1-tail] == out[len(out)-1-tail] {
		tail++
	}
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
