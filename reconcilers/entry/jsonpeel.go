package entry

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Peel implements Format.
func (f jsonFormat) Peel(text []byte, w Wish, receipt json.RawMessage) []byte {
	var r jsonReceipt
	if len(receipt) == 0 || json.Unmarshal(receipt, &r) != nil {
		return text
	}
	switch r.Did {
	case "set":
		return f.unset(text, w, &r)
	case "add":
		return f.unadd(text, w, &r)
	case "cut":
		return f.uncut(text, w, &r)
	case "made":
		if bare, ok := bytes.CutSuffix(text, []byte(r.Made)); ok {
			if path, err := scanJSON(bare, nil, nil); err == nil && path.blank {
				return bare
			}
		}
		return f.unadd(text, w, &r)
	}
	return text
}

// unset gives a value back its bytes.
func (f jsonFormat) unset(text []byte, w Wish, r *jsonReceipt) []byte {
	path, err := f.find(text, w)
	if err != nil {
		return text
	}
	m := path.member(len(w.Steps))
	if m == nil {
		return text
	}
	return apply(text, splice{m.value, m.end, r.Old})
}

// unadd takes out what was added, and with it the containers that were made for it, as
// far as they hold nothing else.
func (f jsonFormat) unadd(text []byte, w Wish, r *jsonReceipt) []byte {
	var pick jsonPick
	full := len(w.Steps)
	if w.Member {
		pick, full = f.pickOurs(text, w.Value, r.After), full+1
	}
	path, err := scanJSON(text, w.Steps, pick)
	if err != nil || path.blank {
		return text
	}
	d := len(path.levels) - 1
	if level := path.levels[d]; d < full-1 || level.hit == nil { // the key is gone, perhaps not its parents
		if d <= r.Depth || level.count > 0 || !bare(text, level, nil) {
			return text
		}
		d--
	}
	for d > r.Depth && bare(text, path.levels[d], path.levels[d].hit) {
		d--
	}
	level := path.levels[d]
	if bare(text, level, level.hit) {
		if r.Did == "made" && d == 0 {
			return f.unmake(text, level, r)
		}
		if r.Inner != nil && d == r.Depth {
			return apply(text, splice{level.open + 1, level.close, []byte(*r.Inner)})
		}
	}
	if d != r.Depth {
		r = &jsonReceipt{}
	}
	return apply(text, takeOut(text, level, r)...)
}

// pickOurs chooses, of the members equal to a value, the one that follows the member that
// golem put it behind; else the last.
func (jsonFormat) pickOurs(text []byte, v any, after string) jsonPick {
	sure := false
	return func(raw []byte, before *jsonMember) bool {
		if sure || !equalJSON(raw, v) {
			return false
		}
		sure = after != "" && afterOf(text, before) == after
		return true
	}
}

// bare says whether a container holds one member, nil for none, and else only space.
func bare(text []byte, l *jsonLevel, m *jsonMember) bool {
	if m == nil {
		return l.count == 0 && len(bytes.TrimSpace(text[l.open+1:l.close])) == 0
	}
	rest := bytes.TrimSpace(text[m.end:l.close])
	return l.count == 1 && len(bytes.TrimSpace(text[l.open+1:m.name])) == 0 && (len(rest) == 0 || string(rest) == ",")
}

// unmake takes the whole document away.
func (jsonFormat) unmake(text []byte, l *jsonLevel, r *jsonReceipt) []byte {
	start, end := l.open, l.close+1
	for _, newline := range []string{"\r\n", "\n"} {
		if bytes.HasPrefix(text[end:], []byte(newline)) {
			end += len(newline)
			break
		}
	}
	if r.Made != "" && isSpace(r.Made[0]) {
		start -= len(spaceBefore(text, start))
	}
	return apply(text, splice{start, end, nil})
}

// takeOut are the splices that take the hit of a container out, with its comma and the
// space that it needs no more.
func takeOut(text []byte, l *jsonLevel, r *jsonReceipt) []splice {
	m := l.hit
	after := m.end
	if m.comma >= 0 {
		after = m.comma + 1
	}
	lead := len(spaceBefore(text, m.name))
	blank := skipBlank(text, after, l.close) // past the spaces on the line
	from, to := m.name, after
	ends := text[blank] == '\n' || text[blank] == '\r'
	switch follows := text[blank]; {
	case l.next != nil && r.Trail != "" && after+len(r.Trail) == l.next.name && string(text[after:l.next.name]) == r.Trail:
		to = l.next.name
	case follows == '/':
		to = blank
	case l.next == nil && r.Lead != "" && bytes.HasSuffix(text[:m.name], []byte(r.Lead)) && (ends || !l.commented(text)):
		from -= len(r.Lead)
		if r.Lead[0] == '\n' && from > 0 && text[from-1] == '\r' { // a text that was converted since
			from--
		}
	case ends:
		from -= lead
	case bytes.IndexByte(text[m.name-lead:m.name], '\n') >= 0 || l.prev == nil:
		to = blank
	default:
		from -= lead
	}
	var cuts []splice
	if m.comma < 0 && l.prev != nil && l.prev.comma >= 0 {
		cuts = append(cuts, splice{l.prev.comma, l.prev.comma + 1, nil})
		from = max(from, l.prev.comma+1)
	}
	if m.comma >= 0 && len(bytes.TrimSpace(text[m.end:m.comma])) > 0 { // a comment that stays
		return append(cuts, splice{from, m.end, nil}, splice{m.comma, to, nil})
	}
	return append(cuts, splice{from, to, nil})
}

// commented says whether the line before the hit may end in a comment: then the line
// break is needed.
func (l *jsonLevel) commented(text []byte) bool {
	s := jsonScan{text: text[:l.hit.name], at: l.open + 1}
	if l.prev != nil {
		s.at = max(l.prev.end, l.prev.comma+1)
	}
	return s.space() != nil || s.inLine
}

// cut takes a member out of an object.
func (f jsonFormat) cut(text []byte, steps []Step, l *jsonLevel) ([]byte, *jsonReceipt, error) {
	m := l.hit
	if l.list {
		return nil, nil, at(text, m.name, "a place in a list cannot be absent: the members behind it would move up")
	}
	r := &jsonReceipt{Did: "cut", Old: text[m.name:m.end]}
	from, to := l.open+1, l.close
	if l.prev != nil {
		r.Prev, from = f.nameOf(text, steps, l.prev), l.prev.end
	}
	if l.next != nil {
		r.Next, to = f.nameOf(text, steps, l.next), l.next.name
	}
	cuts := takeOut(text, l, r)
	out := apply(text, cuts...)
	r.Was, r.Left = text[from:to], out[from:to-(len(text)-len(out))]
	return out, r, nil
}

// uncut puts a member back that was taken out: between its neighbours where nothing has
// changed there, else beside one of them, else at the end.
func (f jsonFormat) uncut(text []byte, w Wish, r *jsonReceipt) []byte {
	path, err := f.find(text, w)
	if err != nil || path.blank || len(path.levels) < len(w.Steps) {
		return text
	}
	last := len(w.Steps) - 1
	level := path.levels[last]
	if m := level.hit; m != nil { // somebody wrote it anew
		return apply(text, splice{m.name, m.end, r.Old})
	}
	from, to, next := level.open+1, level.close, level.first
	after := f.neighbour(text, w.Steps[:last], r.Prev)
	if after != nil {
		from, next = after.hit.end, after.next
	}
	if next != nil {
		to = next.name
	}
	if (after != nil) == (r.Prev != nil) && (next != nil) == (r.Next != nil) && bytes.Equal(text[from:to], r.Left) {
		return apply(text, splice{from, to, r.Was})
	}
	if out, ok := f.between(text, w, from, to, r); ok {
		return out
	}
	st := styleOf(text, path.levels)
	if after != nil {
		next = after.next
	} else if next = nil; r.Next == nil {
		next = level.first
	} else if before := f.neighbour(text, w.Steps[:last], r.Next); before != nil {
		next = before.hit
	}
	if next == nil {
		return apply(text, addLast(text, level, &st, r.Old, &jsonReceipt{})...)
	}
	return apply(text, splice{next.name, next.name, slices.Concat(r.Old, []byte(","), []byte(st.lead()))})
}

// between puts a member back whose neighbours are those that it had, though somebody has
// written between them: where what is before or behind it has not changed.
func (f jsonFormat) between(text []byte, w Wish, from, to int, r *jsonReceipt) ([]byte, bool) {
	gone := len(r.Was) - len(r.Left)
	head := 0
	for head < len(r.Left) && r.Was[head] == r.Left[head] {
		head++
	}
	if gone <= 0 || !bytes.Equal(r.Was[head+gone:], r.Left[head:]) {
		return nil, false
	}
	put, now := r.Was[head:head+gone], text[from:to]
	before, behind := common(now, r.Left)
	at := head
	switch {
	case before > head: // for sure: what is around the place is as it was
	case behind > len(r.Left)-head, before < head && behind == len(r.Left)-head:
		at = len(now) - (len(r.Left) - head)
	case before < head:
		return nil, false
	}
	out := apply(text, splice{from + at, from + at, put})
	path, err := f.find(out, w)
	return out, err == nil && path.member(len(w.Steps)) != nil && bytes.Contains(out, r.Old)
}

// common is how many bytes two texts have in common at their beginning, and at their end.
func common(a, b []byte) (before, behind int) {
	least := min(len(a), len(b))
	for before < least && a[before] == b[before] {
		before++
	}
	for behind < least && a[len(a)-1-behind] == b[len(b)-1-behind] {
		behind++
	}
	return before, behind
}

// nameOf says how a member of an object is found again.
func (f jsonFormat) nameOf(text []byte, steps []Step, m *jsonMember) *jsonName {
	name := &jsonName{Raw: text[m.name:m.nameEnd]}
	for {
		if l := f.neighbour(text, steps, name); l == nil || l.hit.name == m.name {
			return name
		}
		name.Nth++
	}
}

// neighbour finds the object that holds a member by the member's name; nil if it is not
// there.
func (jsonFormat) neighbour(text []byte, steps []Step, name *jsonName) *jsonLevel {
	if name == nil {
		return nil
	}
	path, err := (&jsonScan{text: text, steps: append(slices.Clone(steps), Step{}), raw: name}).run()
	if err != nil || path.member(len(steps)+1) == nil {
		return nil
	}
	return path.levels[len(steps)]
}
