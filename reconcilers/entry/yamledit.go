package entry

import (
	"bytes"
	"slices"
)

// A yamlEdit works one edit out.
type yamlEdit struct {
	*yamlDoc
	w  Wish
	st yamlStyle
}

// put is the text with the wish true of it.
func (e *yamlEdit) put() ([]byte, *yamlReceipt, error) {
	full := len(e.w.Steps)
	reached := len(e.levels) == full && (full == 0 || e.levels[full-1].hit != nil)
	n := e.last()
	switch {
	case e.root == nil || e.root.kind == yamlNone && len(e.levels) == 0:
		return e.make()
	case e.w.Absent:
		return e.cut()
	case reached && e.w.Member && n.container() && n.list(e.text):
		return e.addMember(n)
	case reached && e.w.Member && n.kind != yamlNone:
		return nil, nil, at(e.text, n.start, "it is not a list, and so has no members")
	case reached && !e.w.Member:
		return e.set(e.levels[full-1])
	case n != nil && n.kind == yamlNone:
		return e.fill(e.levels[len(e.levels)-1])
	}
	return e.add()
}

// wanted is the value with the containers that steps from one on need.
func (e *yamlEdit) wanted(from int) (any, error) {
	v := e.w.Value
	if e.w.Member {
		v = []any{v}
	}
	v, ok := nest(v, e.w.Steps[from:])
	if !ok {
		return nil, &PlaceError{Why: "the key leads to a list that is not there yet, and a list begins at 0"}
	}
	return v, nil
}

// make makes the document.
func (e *yamlEdit) make() ([]byte, *yamlReceipt, error) {
	if e.root != nil {
		return nil, nil, at(e.text, e.root.start, "an anchor or a tag on nothing cannot be edited")
	}
	v, err := e.wanted(0)
	if err != nil {
		return nil, nil, err
	}
	e.st.under = false
	made := e.st.block(v, -e.st.unit, false)
	made = string(bytes.TrimLeft([]byte(made), " \r\n")) + e.st.newline
	if e.limit > 0 && e.limit != len(bom) && e.text[e.limit-1] != '\n' {
		made = e.st.newline + made
	}
	return apply(e.text, splice{e.limit, e.limit, []byte(made)}), &yamlReceipt{Did: "made", Old: []byte(made)}, nil
}

// set puts a value in the place of another.
func (e *yamlEdit) set(l yamlLevel) ([]byte, *yamlReceipt, error) {
	if l.node.kind == yamlFlow && l.hit.value.kind == yamlNone {
		return nil, nil, at(e.text, l.hit.key, "a name without a value in brackets cannot be edited")
	}
	put := e.replacement(l, e.w.Value)
	r := &yamlReceipt{Did: "set", Old: e.text[l.hit.from:l.hit.value.end]}
	return apply(e.text, splice{l.hit.from, l.hit.value.end, []byte(put)}), r, nil
}

// replacement is the text of a value from the colon or dash of its entry on.
func (e *yamlEdit) replacement(l yamlLevel, v any) string {
	old, from := l.hit.value, l.hit.from
	gap := string(e.text[from:old.start])
	if old.kind == yamlNone || len(bytes.Trim([]byte(gap), " \t")) > 0 || gap == "" && l.node.kind != yamlFlow {
		gap = " "
	}
	if c := e.text[min(old.start, len(e.text)-1)]; old.kind == yamlScalar && (c == '"' || c == '\'') {
		e.st.quote = c
	}
	if _, scalar := v.(string); !scalar {
		e.st.quote = 0 // only a string takes the quotes of the one before
	}
	if l.node.kind == yamlFlow || old.kind == yamlFlow {
		return gap + e.st.flow(v)
	}
	put := e.st.block(v, l.node.col, l.node.kind == yamlList)
	if put[0] == ' ' && !isContainer(v) {
		return gap + put[1:]
	}
	return put
}

func isContainer(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

// fill puts a value where a name has none.
func (e *yamlEdit) fill(l yamlLevel) ([]byte, *yamlReceipt, error) {
	if l.node.kind == yamlFlow {
		return nil, nil, at(e.text, l.hit.key, "a name without a value in brackets cannot be edited")
	}
	v, err := e.wanted(len(e.levels))
	if err != nil {
		return nil, nil, err
	}
	put := e.st.block(v, l.node.col, l.node.kind == yamlList)
	r := &yamlReceipt{Did: "fill", Depth: len(e.levels), Old: e.text[l.hit.from:l.hit.value.end]}
	return apply(e.text, splice{l.hit.from, l.hit.value.end, []byte(put)}), r, nil
}

// add adds a member to the deepest container that is there.
func (e *yamlEdit) add() ([]byte, *yamlReceipt, error) {
	depth := len(e.levels) - 1
	n := e.levels[depth].node
	step := e.w.Steps[depth]
	v, err := e.wanted(depth + 1)
	if err != nil {
		return nil, nil, err
	}
	list := n.list(e.text)
	if place, _ := step.index(); list && place != len(n.entries) {
		return nil, nil, at(e.text, n.start, "the next member of this list is number %d, not %d", len(n.entries), place)
	}
	name := &step.Name
	if list {
		name = nil
	}
	return e.append(n, name, v, &yamlReceipt{Did: "add", Depth: depth})
}

// append puts a member behind all others of a container; one of a list has no name.
func (e *yamlEdit) append(n *yamlNode, name *string, v any, r *yamlReceipt) ([]byte, *yamlReceipt, error) {
	if n.kind == yamlFlow {
		return e.appendFlow(n, name, v, r)
	}
	put := spaces(n.col)
	if name == nil {
		put += "-" + e.st.block(v, n.col, true)
	} else {
		put += e.st.scalar(*name) + ":" + e.st.block(v, n.col, false)
	}
	if i := e.stood(n); i >= 0 {
		if i > 0 && name == nil {
			m := n.entries[i-1].value
			r.After = shortHash(e.text[m.start:m.end])
		}
		return apply(e.text, splice{*e.w.Spot, *e.w.Spot, []byte(put + e.st.newline)}), r, nil
	}
	end := min(e.lineEnd(n.end), e.limit)
	return apply(e.text, splice{end, end, []byte(e.st.newline + put)}), r, nil
}

// stood is how many members of a block lie before the wish's spot, where that is a line of
// its own between them or behind the last; -1 where it is not.
func (e *yamlEdit) stood(n *yamlNode) int {
	if e.w.Spot == nil || e.w.Before != nil || e.w.After != nil || len(n.entries) == 0 {
		return -1
	}
	spot := *e.w.Spot
	if spot < e.from || spot > e.limit || e.lineStart(spot) != spot {
		return -1
	}
	i := len(n.entries)
	for i > 0 && n.entries[i-1].key >= spot {
		i--
	}
	if i == 0 {
		first := n.entries[0].key
		if e.next(spot, e.limit) != first || first-e.lineStart(first) != n.col {
			return -1
		}
		return 0
	}
	before := n.entries[i-1]
	if e.next(max(before.value.end, before.from), spot) < spot || e.lineEnd(before.value.end) > spot {
		return -1
	}
	return i
}

// appendFlow does so between brackets.
func (e *yamlEdit) appendFlow(n *yamlNode, name *string, v any, r *yamlReceipt) ([]byte, *yamlReceipt, error) {
	if n.odd > 0 {
		return nil, nil, at(e.text, n.odd, "a comment or a lone name between these brackets cannot be edited around")
	}
	level := n.level(e.text, nil, e.w.Spot)
	st := styleOf(e.text, []*jsonLevel{level})
	if level.count == 0 {
		st.many = false
	}
	var member []byte
	if name != nil {
		if st.colon == ":" || level.count > 0 && e.text[level.last.name] == '"' {
			e.st.quote = '"'
		}
		member = append(member, e.st.scalar(*name)+st.colon...)
		if st.colon != ":" {
			e.st.quote = 0
		}
	}
	member = append(member, e.st.flow(v)...)
	r.Flow = &jsonReceipt{}
	if level.onward != nil && e.w.Before == nil && e.w.After == nil {
		r.After = afterOf(e.text, level.upon)
		return putBefore(e.text, level.upon, level.onward, &st, member, r.Flow), r, nil
	}
	return apply(e.text, addLast(e.text, level, &st, member, r.Flow)...), r, nil
}

// level is a flow as the editor of JSON knows containers.
func (n *yamlNode) level(text []byte, hit *yamlEntry, spot *int) *jsonLevel {
	l := &jsonLevel{open: n.open, close: n.end - 1, list: text[n.open] == '[', spot: spot}
	for _, entry := range n.entries {
		m := jsonMember{name: entry.key, nameEnd: entry.keyEnd, value: entry.value.start, end: max(entry.value.end, entry.from), comma: entry.comma}
		l.add(text, m, entry == hit)
	}
	return l
}

// addMember adds a member to a list that is there.
func (e *yamlEdit) addMember(n *yamlNode) ([]byte, *yamlReceipt, error) {
	r := &yamlReceipt{Did: "add", Depth: len(e.w.Steps)}
	anchor, word := e.w.Before, "before"
	if anchor == nil {
		anchor, word = e.w.After, "after"
	}
	i := len(n.entries)
	if anchor != nil {
		at0 := slices.IndexFunc(n.entries, func(m *yamlEntry) bool { return e.equal(m, anchor) })
		if at0 < 0 {
			return nil, nil, at(e.text, n.start, "this list has no member equal to the one that the new one is to stand %s", word)
		}
		if i = at0; word == "after" {
			i++
		}
	}
	r.After = "-"
	if i > 0 {
		m := n.entries[i-1].value
		r.After = shortHash(e.text[m.start:m.end])
	}
	if i == len(n.entries) {
		return e.append(n, nil, e.w.Value, r)
	}
	next := n.entries[i]
	if n.kind == yamlFlow {
		if n.odd > 0 {
			return nil, nil, at(e.text, n.odd, "a comment between these brackets cannot be edited around")
		}
		r.Flow = &jsonReceipt{Trail: string(spaceBefore(e.text, next.key))}
		if i == 0 && r.Flow.Trail == "" {
			r.Flow.Trail = " "
		}
		return apply(e.text, splice{next.key, next.key, []byte(e.st.flow(e.w.Value) + "," + r.Flow.Trail)}), r, nil
	}
	line := e.lineStart(next.key)
	if len(bytes.Trim(e.text[line:next.key], " ")) > 0 {
		return nil, nil, at(e.text, next.key, "this member begins in the line of another; none can be put before it")
	}
	put := spaces(n.col) + "-" + e.st.block(e.w.Value, n.col, true) + e.st.newline
	return apply(e.text, splice{line, line, []byte(put)}), r, nil
}

// equal says whether a member is a value.
func (d *yamlDoc) equal(m *yamlEntry, v any) bool {
	raw := bytes.Clone(d.text[m.value.start:m.value.end])
	if m.value.kind == yamlAlias {
		return false
	}
	indent := m.value.start - d.lineStart(m.value.start)
	docs, err := readYAML(append([]byte(spaces(indent)), raw...))
	if err != nil {
		return false
	}
	if len(docs) == 0 {
		docs = []any{nil}
	}
	return len(docs) == 1 && sameValue(docs[0], v)
}

// cut takes a member out of a mapping.
func (e *yamlEdit) cut() ([]byte, *yamlReceipt, error) {
	depth := len(e.levels) - 1
	l := e.levels[depth]
	n := l.node
	if n.list(e.text) {
		return nil, nil, at(e.text, l.hit.key, "a place in a list cannot be absent: the members behind it would move up")
	}
	if n.kind == yamlFlow && n.odd > 0 {
		return nil, nil, at(e.text, n.odd, "a comment or a lone name between these brackets cannot be edited around")
	}
	if n.kind == yamlMap && len(n.entries) == 1 {
		return e.void(depth)
	}
	r := &yamlReceipt{Did: "cut"}
	if l.i > 0 {
		r.Prev = e.nameOf(n, l.i-1)
	}
	if l.i+1 < len(n.entries) {
		r.Next = e.nameOf(n, l.i+1)
	}
	if n.kind == yamlFlow {
		from, to := n.open+1, n.end-1
		if l.i > 0 {
			from = max(n.entries[l.i-1].value.end, n.entries[l.i-1].from)
		}
		if r.Next != nil {
			to = n.entries[l.i+1].key
		}
		out := apply(e.text, takeOut(e.text, n.level(e.text, l.hit, nil), &jsonReceipt{})...)
		r.Flow = &jsonReceipt{Was: e.text[from:to], Left: out[from : to-(len(e.text)-len(out))]}
		r.Old = e.text[l.hit.key:l.hit.value.end]
		return out, r, nil
	}
	from, to := e.lines(n, l)
	r.Old = e.text[from:to]
	if r.Prev != nil {
		r.Above = e.text[min(from, e.nextLine(n.entries[l.i-1].value.end)):from]
	}
	if r.Next != nil {
		r.Below = e.text[to:max(to, e.lineStart(n.entries[l.i+1].key))]
	}
	return apply(e.text, splice{from, to, nil}), r, nil
}

// void takes the last member out of a block, of which an empty mapping stays.
func (e *yamlEdit) void(depth int) ([]byte, *yamlReceipt, error) {
	r := &yamlReceipt{Did: "void", Depth: depth}
	if depth == 0 {
		r.Old = e.text[e.root.start:e.root.end]
		return apply(e.text, splice{e.root.start, e.root.end, []byte("{}")}), r, nil
	}
	hit := e.levels[depth-1].hit
	r.Old = e.text[hit.from:hit.value.end]
	return apply(e.text, splice{hit.from, hit.value.end, []byte(" {}")}), r, nil
}

// nameOf says how an entry is found again.
func (d *yamlDoc) nameOf(n *yamlNode, i int) *jsonName {
	name := &jsonName{Raw: d.text[n.entries[i].key:n.entries[i].keyEnd]}
	for _, e := range n.entries[:i] {
		if bytes.Equal(d.text[e.key:e.keyEnd], name.Raw) {
			name.Nth++
		}
	}
	return name
}

// lines are the whole lines of an entry of a block; of the first one, where it begins in
// the line of another, what comes before the next.
func (d *yamlDoc) lines(n *yamlNode, l yamlLevel) (from, to int) {
	from, to = d.lineStart(l.hit.key), d.nextLine(max(l.hit.value.end, l.hit.from))
	if len(bytes.Trim(d.text[from:l.hit.key], " ")) > 0 && l.i+1 < len(n.entries) {
		return l.hit.key, n.entries[l.i+1].key
	}
	return from, min(to, max(d.limit, from))
}
