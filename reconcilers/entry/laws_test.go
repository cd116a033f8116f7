package entry

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// dotted splits a key at its dots.
func dotted(key string) []Step {
	if key == "" {
		return nil
	}
	var steps []Step
	for _, name := range strings.Split(key, ".") {
		steps = append(steps, Step{Name: name})
	}
	return steps
}

func plainJSON(t tb, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// keepExact holds an edit to its exact outcome, and to the laws of one edit.
func keepExact(t tb, f Format, text string, w Wish, want string) {
	t.Helper()
	out, receipt, err := f.Put([]byte(text), w)
	if err != nil {
		t.Fatalf("put: %v", err)
	}
	if diff := cmp.Diff(want, string(out)); diff != "" {
		t.Fatalf("put:\n%s", diff)
	}
	if (receipt == nil) != (text == want) {
		t.Fatalf("put of %q gave the receipt %s", text, receipt)
	}
	keepBack(t, f, []byte(text), w, out, receipt)
}

// keepBack holds one edit to what holds of every one: it comes off to the byte, shows, and
// is not made twice.
func keepBack(t tb, f Format, text []byte, w Wish, out []byte, receipt json.RawMessage) {
	t.Helper()
	if back := f.Peel(out, w, receipt); !bytes.Equal(back, text) {
		t.Fatalf("peel after put of %+v:\nwas %q\nput %q\nis  %q\nreceipt %s", w, text, out, back, receipt)
	}
	if !f.Holds(out, w) {
		t.Fatalf("%+v does not hold after put:\nwas %q\nput %q", w, text, out)
	}
	again, second, err := f.Put(out, w)
	if err != nil || second != nil || !bytes.Equal(again, out) {
		t.Fatalf("put of %+v again: %v %s\nput   %q\nagain %q", w, err, second, out, again)
	}
}

// drawWish draws what is wished of a value: mostly of keys that are there, or near them.
func drawWish(t *rapid.T, v any) Wish {
	w := Wish{}
	for len(w.Steps) < 4 {
		var ok bool
		if v, ok = drawStep(t, v, &w); !ok {
			break
		}
	}
	switch rapid.IntRange(0, 5).Draw(t, "wish") {
	case 0:
		w.Absent = true
	case 1, 2:
		w.Member, w.Value = true, drawPlain(t, 1)
		if list, _ := v.([]any); len(list) > 0 && rapid.Bool().Draw(t, "beside") {
			anchor := rapid.SampledFrom(list).Draw(t, "anchor")
			if rapid.Bool().Draw(t, "before") {
				w.Before = anchor
			} else {
				w.After = anchor
			}
		}
	default:
		w.Value = drawPlain(t, 2)
	}
	return w
}

// drawStep draws one step into a value; no, where the key ends.
func drawStep(t *rapid.T, v any, w *Wish) (any, bool) {
	more := rapid.IntRange(0, 4).Draw(t, "more")
	switch v := v.(type) {
	case map[string]any:
		name := rapid.SampledFrom([]string{"a", "b", "c", "d.e", "ax", "\u00e9", "new", "x y", "1"}).Draw(t, "name")
		if more == 0 && len(w.Steps) > 0 {
			return v, false
		}
		w.Steps = append(w.Steps, Step{Name: name})
		return v[name], true
	case []any:
		if more < 2 {
			return v, false
		}
		i := rapid.IntRange(0, len(v)).Draw(t, "place")
		w.Steps = append(w.Steps, Step{Index: i, Place: true})
		if i == len(v) {
			return nil, true
		}
		return v[i], true
	}
	if more < 3 && len(w.Steps) > 0 {
		return v, false
	}
	w.Steps = append(w.Steps, Step{Name: rapid.SampledFrom([]string{"a", "new", "2"}).Draw(t, "new name")})
	return nil, true
}

func drawPlain(t *rapid.T, depth int) any {
	kinds := []string{"string", "string", "number", "word", "list", "object"}
	if depth == 0 {
		kinds = kinds[:4]
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "number":
		return json.Number(rapid.SampledFrom([]string{"0", "1", "1000", "9007199254740993", "-2.5", "1e-7"}).Draw(t, "number"))
	case "string":
		return rapid.SampledFrom([]string{"", "a", "x y", "1", "true", "null", "~", "a: b", "a #b", "# c", "- x", "tab\t", "two\nlines", "two\nlines\n", " lead", "trail ", "'q'", "\"q\"", "\u00e9", "{x}", "[x", "*a", "&a", "!t", "%d", "@x", "2001-01-01", "0x1f", "1_000", "yes", "a:", "\u2028", "\x7f"}).Draw(t, "string")
	case "list":
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			list = append(list, drawPlain(t, depth-1))
		}
		return list
	case "object":
		object := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			object[rapid.SampledFrom([]string{"k", "l", "m n", "1", "yes", ""}).Draw(t, "k")] = drawPlain(t, depth-1)
		}
		return object
	}
	return rapid.SampledFrom([]any{true, false, nil}).Draw(t, "word")
}

// mustRead reads by an independent parser.
func mustRead(t tb, read func([]byte) (any, error), text []byte, what string) any {
	t.Helper()
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	v, err := read(text)
	if err != nil {
		t.Fatalf("%s: another parser says %v:\n%q", what, err, text)
	}
	return v
}

// keepLaws puts random edits on a text and takes them off again.
func keepLaws(t *rapid.T, f Format, text []byte, read func([]byte) (any, error)) {
	v, err := read(text)
	if err != nil {
		v = nil // blank, but for comments
	}
	var texts [][]byte
	var edits []layer
	now := text
	for range rapid.IntRange(1, 4).Draw(t, "edits") {
		w := drawWish(t, v)
		out, receipt, err := f.Put(now, w)
		var place *PlaceError
		if errors.As(err, &place) {
			continue
		}
		if err != nil {
			t.Fatalf("put of %+v: %v", w, err)
		}
		keepBack(t, f, now, w, out, receipt)
		after := v
		if receipt != nil {
			after = wished(v, w)
			if have := mustRead(t, read, out, "after put"); !sameValue(have, after) {
				t.Fatalf("put of %+v:\nwas %q\nput %q\nreads %v\nnot   %v", w, now, out, have, after)
			}
		}
		texts = append(texts, now)
		edits = append(edits, layer{w, receipt})
		now, v = out, after
	}
	keepStranger(t, f, now, edits, texts, read)
	for i := len(edits) - 1; i >= 0; i-- {
		if now = f.Peel(now, edits[i].w, edits[i].receipt); !bytes.Equal(now, texts[i]) {
			t.Fatalf("peel of %+v:\nwas %q\nis  %q", edits[i].w, texts[i], now)
		}
	}
}

// keepStranger has a stranger change one more key, and takes golem's edits off in any
// order: every value that golem did not touch is there, and what a stranger wrote.
func keepStranger(t *rapid.T, f Format, now []byte, edits []layer, texts [][]byte, read func([]byte) (any, error)) {
	if len(edits) == 0 {
		return
	}
	name := "stranger"
	theirs, receipt, err := f.Put(now, Wish{Steps: []Step{{Name: name}}, Value: "was here"})
	if err != nil || receipt == nil {
		return // the root is a list
	}
	order := rand.New(rand.NewSource(rapid.Int64().Draw(t, "order"))).Perm(len(edits))
	lifo := rapid.Bool().Draw(t, "lifo")
	for i := range edits {
		e := edits[order[i]]
		if lifo {
			e = edits[len(edits)-1-i]
		}
		theirs = f.Peel(theirs, e.w, e.receipt)
		mustRead(t, read, theirs, "after a peel")
	}
	have, _ := mustRead(t, read, theirs, "after all peels").(map[string]any)
	if have[name] != "was here" {
		t.Fatalf("the stranger's key is gone: %q", theirs)
	}
	delete(have, name)
	was, err := read(texts[0])
	if err != nil || was == nil {
		was = map[string]any{}
	}
	if lifo && !sameValue(any(have), was) {
		t.Fatalf("after a stranger's edit not all came back:\nwas %q\nis  %q", texts[0], theirs)
	}
}

// fuzzLaws holds one edit of any text to the laws.
func fuzzLaws(t *testing.T, f Format, text []byte, key, value string, mode byte, read func([]byte) (any, error)) {
	var v any
	d := json.NewDecoder(strings.NewReader(value))
	d.UseNumber()
	if d.Decode(&v) != nil || !utf8.ValidString(key) {
		return // no wish holds such a key
	}
	w := Wish{Steps: dotted(key), Value: v, Member: mode%3 == 1, Absent: mode%3 == 2}
	was := bytes.Clone(text)
	out, receipt, err := f.Put(text, w)
	if !bytes.Equal(was, text) {
		t.Fatal("put changed its argument")
	}
	if err != nil {
		return
	}
	keepBack(t, f, was, w, out, receipt)
	if !bytes.Equal(was, text) {
		t.Fatal("peel changed its argument")
	}
	f.Peel(text, w, receipt) // must not panic, whatever is there
	before, err := read(text)
	if err != nil || receipt == nil {
		return
	}
	if after, err := read(out); err != nil || !sameValue(after, wished(before, w)) {
		t.Fatalf("put of %+v: %v\nwas %q\nput %q", w, err, text, out)
	}
}
