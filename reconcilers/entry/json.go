package entry

import (
	"bytes"
	"encoding/json"
	"errors"
)

// jsonFormat is JSON, with the comments and trailing commas of JSONC where a text has
// them.
type jsonFormat struct{}

// A jsonReceipt says what Put did.
type jsonReceipt struct {
	// Did is what: "set" put a value in the place of Old, "add" added a member, "cut" took
	// one out, "made" made the document.
	Did string `json:"did"`
	Old []byte `json:"old,omitempty"` // the bytes of a value, or of a member that was cut

	// Of what was added: Depth counts the steps that led to something already, Lead and Trail
	// are the space put before it and behind its comma, Inner is the space that was within
	// empty brackets.
	Depth int     `json:"depth,omitempty"`
	Lead  string  `json:"lead,omitempty"`
	Trail string  `json:"trail,omitempty"`
	Inner *string `json:"inner,omitempty"`
	// After is a hash of the member before one that was added to a list.
	After string `json:"after,omitempty"`

	// Of what was cut: the names of its neighbours, and what stood and stands between them.
	Prev *jsonName `json:"prev,omitempty"`
	Next *jsonName `json:"next,omitempty"`
	Was  []byte    `json:"was,omitempty"`
	Left []byte    `json:"left,omitempty"`

	// Of a document that was made: all that was put behind what was there.
	Made string `json:"made,omitempty"`
}

// A jsonName finds a member again: the name's bytes as they are spelled, and how many
// members of that very name come before.
type jsonName struct {
	Raw []byte `json:"raw"`
	Nth int    `json:"nth,omitempty"`
}

// pickEqual chooses the members of a list that are equal to a value.
func pickEqual(v any) jsonPick {
	return func(raw []byte, _ *jsonMember) bool { return equalJSON(raw, v) }
}

// equalJSON says whether raw text is a value.
func equalJSON(raw []byte, v any) bool {
	quick := raw[0] == '"' || raw[0] == '{' || raw[0] == '['
	switch v.(type) {
	case string:
		quick = raw[0] == '"'
	case map[string]any:
		quick = raw[0] == '{'
	case []any:
		quick = raw[0] == '['
	default:
		quick = !quick
	}
	if !quick {
		return false
	}
	have, ok := readJSON(raw)
	return ok && sameValue(have, v)
}

// Holds implements Format.
func (f jsonFormat) Holds(text []byte, w Wish) bool {
	path, err := f.find(text, w)
	if w.Absent && errors.Is(err, errThrough) {
		return true
	}
	return err == nil && f.shows(text, w, path)
}

// find looks for what a wish is about.
func (jsonFormat) find(text []byte, w Wish) (*jsonPath, error) {
	if w.Document != 0 {
		return nil, &PlaceError{Why: "JSON has one document only, number 0"}
	}
	if len(w.Steps) == 0 && !w.Member {
		return nil, &PlaceError{Why: "the key has no steps"}
	}
	scan := &jsonScan{text: text, steps: w.Steps, spot: w.Spot}
	if w.Member {
		scan.pick = pickEqual(w.Value)
	}
	return scan.run()
}

// shows says whether a text that was read shows a wish.
func (jsonFormat) shows(text []byte, w Wish, path *jsonPath) bool {
	if w.Member {
		return path.member(len(w.Steps)+1) != nil
	}
	m := path.member(len(w.Steps))
	if w.Absent {
		return m == nil
	}
	return m != nil && equalJSON(text[m.value:m.end], w.Value)
}

// Put implements Format.
func (f jsonFormat) Put(text []byte, w Wish) ([]byte, json.RawMessage, error) {
	path, err := f.find(text, w)
	if w.Absent && errors.Is(err, errThrough) {
		return text, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if f.shows(text, w, path) {
		return text, nil, nil
	}
	var out []byte
	var r *jsonReceipt
	switch {
	case path.blank:
		out, r, err = f.make(text, w)
	case w.Absent:
		out, r, err = f.cut(text, w.Steps[:len(w.Steps)-1], path.levels[len(path.levels)-1])
	case !w.Member && path.member(len(w.Steps)) != nil:
		out, r = f.set(text, w, path)
	default:
		out, r, err = f.add(text, w, path)
	}
	if err != nil {
		return nil, nil, err
	}
	return out, encode(r), nil
}

// make makes the document of a text that has none.
func (jsonFormat) make(text []byte, w Wish) ([]byte, *jsonReceipt, error) {
	steps, v := w.Steps, w.Value
	if w.Member {
		v = []any{v}
	}
	v, ok := nest(v, steps)
	if !ok {
		return nil, nil, &PlaceError{Why: "there is no document yet, and a list begins at 0"}
	}
	st := styleOf(text, nil)
	made := string(st.spell(v, "")) + st.newline
	if rest := text[textStart(text):]; len(rest) > 0 && rest[len(rest)-1] != '\n' {
		made = st.newline + made
	}
	return append(bytes.Clone(text), made...), &jsonReceipt{Did: "made", Made: made}, nil
}

// set puts a value in the place of another.
func (jsonFormat) set(text []byte, w Wish, path *jsonPath) ([]byte, *jsonReceipt) {
	st := styleOf(text, path.levels)
	m := path.member(len(w.Steps))
	old := text[m.value:m.end]
	if old[0] == '{' || old[0] == '[' {
		if bytes.IndexByte(old, '\n') >= 0 {
			st.many, st.lists, st.objects = true, manyLines, manyLines
		} else if len(old) > 2 {
			st.many = false
		}
	}
	put := st.spell(w.Value, lineIndent(text, m.name))
	return apply(text, splice{m.value, m.end, put}), &jsonReceipt{Did: "set", Old: old}
}

// add adds a member, and the containers it is to lie in.
func (f jsonFormat) add(text []byte, w Wish, path *jsonPath) ([]byte, *jsonReceipt, error) {
	depth := len(path.levels) - 1
	level := path.levels[depth]
	st := styleOf(text, path.levels)
	r := &jsonReceipt{Did: "add", Depth: depth}
	v := w.Value
	var member []byte
	if depth == len(w.Steps) {
		if w.Before != nil || w.After != nil {
			return f.beside(text, w, &st, r)
		}
		r.After = afterOf(text, level.before())
	} else {
		if w.Member {
			v = []any{v}
		}
		var ok bool
		if v, ok = nest(v, w.Steps[depth+1:]); !ok {
			return nil, nil, at(text, level.open, "the key leads to a list that is not there yet, and a list begins at 0")
		}
		step := w.Steps[depth]
		if place, _ := step.index(); level.list && place != level.count {
			return nil, nil, at(text, level.open, "the next member of this list is number %d, not %d", level.count, place)
		}
		if !level.list {
			member = append(quoteJSON(step.Name), st.colon...)
		}
	}
	member = append(member, st.spell(v, st.indent)...)
	if level.onward != nil {
		return putBefore(text, level.upon, level.onward, &st, member, r), r, nil
	}
	return apply(text, addLast(text, level, &st, member, r)...), r, nil
}

// afterOf is a hash of the member before, to know golem's member from an equal one.
func afterOf(text []byte, before *jsonMember) string {
	if before == nil {
		return "-"
	}
	return shortHash(text[before.value:before.end])
}

// beside adds a member of a list before or after another.
func (jsonFormat) beside(text []byte, w Wish, st *jsonStyle, r *jsonReceipt) ([]byte, *jsonReceipt, error) {
	anchor, word := w.Before, "before"
	if anchor == nil {
		anchor, word = w.After, "after"
	}
	path, err := scanJSON(text, w.Steps, pickEqual(anchor))
	if err != nil {
		return nil, nil, err
	}
	level := path.levels[len(w.Steps)]
	if level.hit == nil {
		return nil, nil, at(text, level.open, "this list has no member equal to the one that the new one is to stand %s", word)
	}
	next, prev := level.hit, level.prev
	if word == "after" {
		next, prev = level.next, level.hit
	}
	member := st.spell(w.Value, st.indent)
	if next == nil {
		r.After = afterOf(text, prev)
		return apply(text, addLast(text, level, st, member, r)...), r, nil
	}
	return putBefore(text, prev, next, st, member, r), r, nil
}

// putBefore puts a member between two others; prev is nil where it becomes the first.
func putBefore(text []byte, prev, next *jsonMember, st *jsonStyle, member []byte, r *jsonReceipt) []byte {
	r.After = afterOf(text, prev)
	r.Trail = string(spaceBefore(text, next.name))
	if prev == nil && r.Trail == "" {
		r.Trail = st.sep
	}
	put := append(append(member, ','), r.Trail...)
	return apply(text, splice{next.name, next.name, put})
}

// addLast are the splices that put a member behind all others of a container.
func addLast(text []byte, l *jsonLevel, st *jsonStyle, member []byte, r *jsonReceipt) []splice {
	inner := text[l.open+1 : l.close]
	if l.count == 0 && len(bytes.TrimSpace(inner)) == 0 {
		r.Lead = st.pad
		tail := st.pad
		if l.list {
			r.Lead, tail = "", ""
		}
		if st.many {
			r.Lead, tail = st.newline+st.indent, st.newline+st.base
		}
		was := string(inner)
		r.Inner = &was
		return []splice{{l.open + 1, l.close, []byte(r.Lead + string(member) + tail)}}
	}
	point := l.close - len(spaceBefore(text, l.close))
	if l.spot != nil && st.many && *l.spot > l.last.end && *l.spot < point { // it stood before a comment
		point = max(l.last.end, l.last.comma+1, *l.spot-len(spaceBefore(text, *l.spot)))
	}
	broken := false // a line break follows, so there may be a comment up to it
	if i := bytes.IndexByte(text[point:l.close], '\n'); i >= 0 {
		broken = true
		if point += i; point > 0 && text[point-1] == '\r' {
			point--
		}
	}
	r.Lead = st.lead()
	if broken && !st.many && (l.count == 0 || point > max(l.last.end, l.last.comma+1)) {
		r.Lead = st.newline + st.base + st.unit
	} else if l.count == 0 && !st.many {
		r.Lead = " "
	}
	put := r.Lead + string(member)
	if l.count == 0 {
		return []splice{{point, point, []byte(put)}}
	}
	if l.last.comma >= 0 {
		return []splice{{point, point, []byte(put + ",")}}
	}
	return []splice{{l.last.end, l.last.end, []byte(",")}, {point, point, []byte(put)}}
}
