package entry

import (
	"bytes"
	"encoding/json"
)

// Peel implements Format.
func (f yamlFormat) Peel(text []byte, w Wish, receipt json.RawMessage) []byte {
	var r yamlReceipt
	if len(receipt) == 0 || json.Unmarshal(receipt, &r) != nil || r.Did == "" {
		return text
	}
	d, err := openYAML(text, w.Document)
	if err != nil {
		return text
	}
	p := &yamlPeel{yamlDoc: d, w: w, r: &r}
	if d.root == nil {
		return apply(text, p.refill()...)
	}
	if d.walk(w.Steps) != nil {
		return text
	}
	var cuts []splice
	switch r.Did {
	case "set":
		cuts = p.unset()
	case "add", "fill", "made":
		cuts = p.unadd()
	case "cut":
		cuts = p.uncut()
	case "void":
		cuts = p.unvoid()
	}
	if cuts == nil && (r.Did == "void" || r.Did == "cut") {
		return f.revive(text, w, &r)
	}
	if cuts == nil {
		return text
	}
	out := apply(text, cuts...)
	docs, err := readYAML(out)
	if err != nil {
		if _, err := readYAML(text); err == nil {
			return f.revive(text, w, &r) // what a stranger made of it has no place for these bytes
		}
	}
	if err == nil && r.Value != nil && w.Document < len(docs) {
		was, ok := jsonValue(r.Value)
		if is, there := lookup(docs[w.Document], w.Steps); ok && (!there || !sameValue(is, was)) {
			return f.revive(text, w, &r) // a block at the end of a text without a line break
		}
	}
	return out
}

// revive puts the value of what was cut back, not its bytes: its container is not what it
// was.
func (f yamlFormat) revive(text []byte, w Wish, r *yamlReceipt) []byte {
	v, ok := jsonValue(r.Value)
	if !ok {
		return text
	}
	back := Wish{Steps: w.Steps, Value: v, Document: w.Document}
	if out, _, err := f.Put(text, back); err == nil {
		return out
	}
	return text
}

func jsonValue(raw json.RawMessage) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err := d.Decode(&v)
	return fromReceipt(v), err == nil
}

// A yamlPeel takes one edit off. What it finds are splices; none, where there is nothing
// to take off.
type yamlPeel struct {
	*yamlDoc
	w Wish
	r *yamlReceipt
}

func (p *yamlPeel) unset() []splice {
	if len(p.levels) < len(p.w.Steps) {
		return nil
	}
	hit := p.levels[len(p.w.Steps)-1].hit
	if hit == nil {
		return nil
	}
	return []splice{{hit.from, hit.value.end, p.r.Old}}
}

// unadd takes out what was added, and the containers that were made for it as far as they
// hold nothing else.
func (p *yamlPeel) unadd() []splice {
	levels := p.levels
	if p.w.Member {
		n := p.last()
		if n == nil || len(levels) != len(p.w.Steps) || !n.container() || !n.list(p.text) {
			return p.leftover()
		}
		i := p.ours(n)
		if i < 0 {
			return p.leftover()
		}
		levels = append(levels, yamlLevel{n, n.entries[i], i, -1})
	} else if len(levels) < len(p.w.Steps) || levels[len(levels)-1].hit == nil {
		return p.leftover()
	}
	return p.climb(levels)
}

// climb takes out the hit of the last level, or the container that it is alone in.
func (p *yamlPeel) climb(levels []yamlLevel) []splice {
	d := len(levels) - 1
	for d > p.r.Depth && p.alone(levels[d]) {
		d--
	}
	l := levels[d]
	if d == p.r.Depth && p.alone(l) {
		switch {
		case p.r.Did == "made":
			return p.unmake()
		case p.r.Did == "fill" && d > 0:
			hit := levels[d-1].hit
			return []splice{{hit.from, hit.value.end, p.r.Old}}
		}
	}
	return p.takeOut(levels, d)
}

// leftover takes out containers that were made and that have become empty.
func (p *yamlPeel) leftover() []splice {
	d := len(p.levels) - 1
	n := p.last()
	if n == nil && d >= 0 {
		n = p.levels[d].node
		if len(n.entries) > 0 {
			return nil
		}
		d--
	}
	if d < p.r.Depth || n == nil || len(n.entries) > 0 || n.kind != yamlFlow {
		return nil
	}
	return p.climb(p.levels[:d+1])
}

// ours finds the member of a list that golem added: one equal to the value, behind the
// member that it was put behind; else the last.
func (p *yamlPeel) ours(n *yamlNode) int {
	found := -1
	for i, m := range n.entries {
		if !p.equal(m, p.w.Value) {
			continue
		}
		found = i
		after := "-"
		if i > 0 {
			v := n.entries[i-1].value
			after = shortHash(p.text[v.start:v.end])
		}
		if after == p.r.After {
			return i
		}
	}
	return found
}

// alone says whether a container holds nothing but the hit, no comment either.
func (p *yamlPeel) alone(l yamlLevel) bool {
	if len(l.node.entries) != 1 || l.node.odd > 0 {
		return false
	}
	from := l.node.start
	if l.node.kind == yamlFlow {
		from = l.node.open + 1
	}
	return bytes.IndexByte(p.text[from:l.hit.key], '#') < 0
}

// takeOut takes a member out of a container.
func (p *yamlPeel) takeOut(levels []yamlLevel, d int) []splice {
	l := levels[d]
	n := l.node
	if n.kind == yamlFlow {
		flow := p.r.Flow
		if flow == nil || d != p.r.Depth {
			flow = &jsonReceipt{}
		}
		level := n.level(p.text, l.hit, nil)
		if flow.Inner != nil && bare(p.text, level, level.hit) {
			return []splice{{level.open + 1, level.close, []byte(*flow.Inner)}}
		}
		return takeOut(p.text, level, flow)
	}
	from, to := p.lines(n, l)
	if own := len(bytes.Trim(p.text[from:l.hit.key], " ")) == 0 && p.lineStart(from) == from; len(n.entries) == 1 && !own {
		empty := "{}"
		if n.kind == yamlList {
			empty = "[]"
		}
		if d == 0 {
			return []splice{{n.start, n.end, []byte(empty)}}
		}
		hit := levels[d-1].hit
		return []splice{{hit.from, hit.value.end, []byte(" " + empty)}}
	}
	if to == len(p.text) && l.i > 0 && p.text[to-1] != '\n' { // the line break before was golem's
		from--
		if from > 0 && p.text[from-1] == '\r' {
			from--
		}
	}
	return []splice{{from, to, nil}}
}

// unmake takes the document away that was made.
func (p *yamlPeel) unmake() []splice {
	start := p.lineStart(p.root.start)
	if start+len(p.r.Old) <= len(p.text) && bytes.Equal(p.text[start:start+len(p.r.Old)], p.r.Old) {
		return []splice{{start, start + len(p.r.Old), nil}}
	}
	if i := bytes.Index(p.text[p.from:], p.r.Old); i >= 0 && isSpace(p.r.Old[0]) {
		return []splice{{p.from + i, p.from + i + len(p.r.Old), nil}}
	}
	return []splice{{start, p.nextLine(p.root.end), nil}}
}

// refill puts what was cut out of a document back into it, though nothing else is left
// there.
func (p *yamlPeel) refill() []splice {
	cut := p.r.Did == "cut" && p.r.Flow == nil && len(p.w.Steps) == 1
	if void := p.r.Did == "void" && p.r.Depth == 0; !cut && !void {
		return nil
	}
	return []splice{{p.limit, p.limit, p.whole(p.r.Old, p.limit, p.limit)}}
}

// unvoid gives a mapping its last member back, where it is still empty.
func (p *yamlPeel) unvoid() []splice {
	n := p.root
	if p.r.Depth > 0 {
		if len(p.levels) < p.r.Depth || p.levels[p.r.Depth-1].hit == nil {
			return nil
		}
		n = p.levels[p.r.Depth-1].hit.value
	}
	if n.kind != yamlFlow || len(n.entries) > 0 || n.list(p.text) {
		return nil
	}
	if p.r.Depth == 0 {
		return []splice{{n.start, n.end, p.r.Old}}
	}
	hit := p.levels[p.r.Depth-1].hit
	return []splice{{hit.from, hit.value.end, p.r.Old}}
}

// uncut puts a member back that was taken out of a mapping.
func (p *yamlPeel) uncut() []splice {
	depth := len(p.w.Steps) - 1
	if len(p.levels) <= depth {
		return nil
	}
	l := p.levels[depth]
	n := l.node
	if n.list(p.text) {
		return nil
	}
	prev, next := p.named(n, p.r.Prev), p.named(n, p.r.Next)
	if n.kind == yamlFlow {
		return p.uncutFlow(l, prev)
	}
	if p.r.Flow != nil {
		return nil
	}
	if l.hit != nil { // somebody wrote it anew
		from, to := p.lines(n, l)
		return []splice{{from, to, p.whole(p.r.Old, from, to)}}
	}
	switch {
	case prev >= 0:
		pos := p.nextLine(max(n.entries[prev].value.end, n.entries[prev].from))
		if bytes.HasPrefix(p.text[pos:], p.r.Above) {
			pos += len(p.r.Above)
		}
		return []splice{{pos, pos, p.whole(p.r.Old, pos, pos)}}
	case next >= 0:
		pos := n.entries[next].key
		if p.text[max(pos-1, 0)] == ' ' && len(bytes.Trim(p.text[p.lineStart(pos):pos], " ")) > 0 {
			return []splice{{pos, pos, p.r.Old}} // behind a dash
		}
		pos = p.lineStart(pos)
		if bytes.HasSuffix(p.text[:pos], p.r.Below) {
			pos -= len(p.r.Below)
		}
		return []splice{{pos, pos, p.whole(p.r.Old, pos, pos)}}
	}
	pos := p.nextLine(n.end)
	return []splice{{pos, pos, p.whole(p.r.Old, pos, pos)}}
}

// whole is some lines with the line breaks that they need between what is before and
// behind a place.
func (p *yamlPeel) whole(lines []byte, from, to int) []byte {
	newline := []byte(ending(p.text, 0))
	out := bytes.Clone(lines)
	if to < len(p.text) && len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, newline...)
	}
	if from > 0 && from == len(p.text) && p.text[from-1] != '\n' {
		out = append(newline, out...)
	}
	return out
}

func (p *yamlPeel) uncutFlow(l yamlLevel, prev int) []splice {
	n := l.node
	if l.hit != nil {
		return []splice{{l.hit.key, l.hit.value.end, p.r.Old}}
	}
	if p.r.Flow == nil {
		return nil
	}
	from, to, next := n.open+1, n.end-1, 0
	if prev >= 0 {
		from, next = max(n.entries[prev].value.end, n.entries[prev].from), prev+1
	}
	if next < len(n.entries) {
		to = n.entries[next].key
	}
	if (prev >= 0) == (p.r.Prev != nil) && (next < len(n.entries)) == (p.r.Next != nil) && bytes.Equal(p.text[from:to], p.r.Flow.Left) {
		return []splice{{from, to, p.r.Flow.Was}}
	}
	level := n.level(p.text, nil, nil)
	st := styleOf(p.text, []*jsonLevel{level})
	return addLast(p.text, level, &st, p.r.Old, &jsonReceipt{})
}

// named finds an entry by its name; -1 if it is not there.
func (p *yamlPeel) named(n *yamlNode, name *jsonName) int {
	if name == nil {
		return -1
	}
	nth := name.Nth
	for i, e := range n.entries {
		if bytes.Equal(p.text[e.key:e.keyEnd], name.Raw) {
			if nth == 0 {
				return i
			}
			nth--
		}
	}
	return -1
}
