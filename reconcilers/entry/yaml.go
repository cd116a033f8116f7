package entry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// yamlFormat is YAML: blocks and flows, several documents in a stream.
type yamlFormat struct{}

// A yamlReceipt says what Put did.
type yamlReceipt struct {
	// Did is what: "set" put a value in the place of Old, "fill" put one where a name had
	// none, "add" added a member, "cut" took one out, "void" left its container empty, "made"
	// made the document.
	Did string `json:"did"`
	Old []byte `json:"old,omitempty"`
	// Value is what was cut or replaced, as JSON.
	Value json.RawMessage `json:"value,omitempty"`
	Depth int             `json:"depth,omitempty"` // how many steps led to something already
	// After is a hash of the member before one that was added to a list.
	After string `json:"after,omitempty"`
	// Flow is of a member between brackets.
	Flow *jsonReceipt `json:"flow,omitempty"`
	// Prev and Next are the neighbours of what was cut, by name; Above and Below what lay
	// between it and them.
	Prev  *jsonName `json:"prev,omitempty"`
	Next  *jsonName `json:"next,omitempty"`
	Above []byte    `json:"above,omitempty"`
	Below []byte    `json:"below,omitempty"`
}

// lookup finds what steps lead to in a plain value.
func lookup(v any, steps []Step) (any, bool) {
	for _, step := range steps {
		switch c := v.(type) {
		case map[string]any:
			m, ok := c[step.Name]
			if !ok || step.Place {
				return nil, false
			}
			v = m
		case []any:
			place, ok := step.index()
			if !ok || place >= len(c) {
				return nil, false
			}
			v = c[place]
		default:
			return nil, false
		}
	}
	return v, true
}

// showsPlain says whether a plain value shows a wish.
func showsPlain(v any, w Wish) bool {
	have, there := lookup(v, w.Steps)
	return shows(have, there, w)
}

// open reads a text by both parsers, and goes the way of a wish.
func (yamlFormat) open(text []byte, w Wish) (*yamlDoc, []any, error) {
	if len(w.Steps) == 0 && !w.Member {
		return nil, nil, &PlaceError{Why: "the key has no steps"}
	}
	d, err := openYAML(text, w.Document)
	if err != nil {
		return nil, nil, err
	}
	docs, err := readYAML(text)
	if err != nil {
		return nil, nil, err
	}
	if len(docs) == 0 {
		docs = []any{nil}
	}
	if w.Document >= len(docs) {
		return nil, nil, &PlaceError{Why: "its documents cannot be told from each other"}
	}
	if err := d.walk(w.Steps); err != nil {
		return d, docs, err
	}
	if err := d.known(docs[w.Document]); err != nil {
		return d, docs, err
	}
	return d, docs, d.unmerged(docs[w.Document], w)
}

// Holds implements Format.
func (f yamlFormat) Holds(text []byte, w Wish) bool {
	_, docs, err := f.open(text, w)
	if w.Absent && errors.Is(err, errThrough) {
		return true
	}
	return err == nil && showsPlain(docs[w.Document], w)
}

// Put implements Format.
func (f yamlFormat) Put(text []byte, w Wish) ([]byte, json.RawMessage, error) {
	d, docs, err := f.open(text, w)
	if w.Absent && errors.Is(err, errThrough) {
		return text, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if showsPlain(docs[w.Document], w) {
		return text, nil, nil
	}
	e := &yamlEdit{yamlDoc: d, w: w, st: yamlStyleOf(text)}
	out, r, err := e.put()
	if err != nil {
		return nil, nil, err
	}
	if w.Absent || r.Did == "set" {
		was, _ := lookup(docs[w.Document], w.Steps)
		r.Value, _ = json.Marshal(was) // plain values have always a spelling
	}
	receipt := encode(r)
	if err := f.prove(text, out, w, docs, receipt); err != nil {
		place := d.from
		if n := len(d.levels); n > 0 {
			place = d.levels[n-1].node.start
		}
		return nil, nil, at(text, place, "it cannot be edited safely: %s", err)
	}
	return out, receipt, nil
}

// prove says why an edit is not what it is meant to be: the wished value, no other value
// changed, and off again to the byte.
func (f yamlFormat) prove(text, out []byte, w Wish, docs []any, receipt json.RawMessage) error {
	after, err := readYAML(out)
	if err != nil {
		return fmt.Errorf("after the edit %w", err)
	}
	if len(after) != len(docs) {
		return errors.New("the edit would make another number of documents")
	}
	for i := range docs {
		want := docs[i]
		if i == w.Document {
			want = wished(want, w)
		}
		if !sameValue(want, after[i]) {
			return fmt.Errorf("the edit would change %s", otherYAML(want, after[i], nil))
		}
	}
	if !bytes.Equal(f.Peel(out, w, receipt), text) {
		return errors.New("the edit could not be taken back to the byte")
	}
	return nil
}

// otherYAML says in words which value a text has that is not the wanted one.
func otherYAML(want, got any, way []string) string {
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok && len(got) == len(want) {
			for _, name := range slices.Sorted(maps.Keys(want)) {
				if v, there := got[name]; there && !sameValue(want[name], v) {
					return otherYAML(want[name], v, append(way, name))
				}
			}
		}
	case []any:
		if got, ok := got.([]any); ok && len(got) == len(want) {
			for i := range want {
				if !sameValue(want[i], got[i]) {
					return otherYAML(want[i], got[i], append(way, strconv.Itoa(i)))
				}
			}
		}
	case string:
		if got, ok := got.(string); ok && got == want+"\n" {
			return quote(strings.Join(way, ".")) + " too, since its text ends without a line break"
		}
	}
	if len(way) == 0 {
		return "the rest of the document too; perhaps an anchor on it is used elsewhere"
	}
	return quote(strings.Join(way, ".")) + " too; perhaps an anchor on it is used elsewhere"
}

// spaces is some indentation.
func spaces(n int) string { return strings.Repeat(" ", max(n, 0)) }
