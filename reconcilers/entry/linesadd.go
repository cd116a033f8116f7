package entry

import (
	"bytes"
	"slices"
)

// addOp adds a row: beside its like, at the end of its block, or in a new block.
func (d *dialect) addOp(s *sheet, t target, w Wish, found []int) (op, error) {
	raw, err := d.spell(s, w.Value, nil)
	if err != nil {
		return op{}, ofValue(err)
	}
	blk := d.home(s, t, found)
	if blk < 0 {
		return d.addBlock(s, t, w, raw)
	}
	where, near, err := d.spot(s, blk, w, found)
	if err != nil {
		return op{}, err
	}
	if i := d.stood(s, blk, w); i >= 0 {
		where, near = s.offset(i), s.near(blk, i)
	}
	return s.insert(where, "", false, d.pair(s, near, t, raw), raw)
}

// stood is the row in front of which a row of a block was before, -1 where it cannot be
// there again.
func (d *dialect) stood(s *sheet, blk int, w Wish) int {
	i := s.rowAt(w)
	if i < 0 || w.Before != nil || w.After != nil {
		return -1
	}
	in := 0
	if i > 0 {
		in = s.rows[i-1].block
	}
	if ahead := d.ahead(s, blk); in != blk || ahead >= 0 && i > ahead {
		return -1
	}
	return i
}

// rowAt is the first row at a wish's spot or behind it, -1 where it has none.
func (s *sheet) rowAt(w Wish) int {
	if w.Spot == nil {
		return -1
	}
	i, _ := slices.BinarySearchFunc(s.rows, *w.Spot, func(r row, at int) int { return r.start - at })
	return i
}

// home is the block that a new row of a target goes into, -1 if there is none.
func (d *dialect) home(s *sheet, t target, found []int) int {
	if len(found) > 0 {
		return s.rows[found[len(found)-1]].block
	}
	home := -1
	for i, b := range s.blocks {
		if d.sameBlock(s, b.name, t.block) && (home < 0 || !d.first) {
			home = i
		}
	}
	return home
}

// spot is where a new row of a block goes, and a row to take the style of.
func (d *dialect) spot(s *sheet, blk int, w Wish, found []int) (int, *row, error) {
	if len(found) > 0 {
		return d.beside(s, w, found)
	}
	near := s.near(blk, -1)
	if i := d.ahead(s, blk); i >= 0 {
		return s.rows[i].start, &s.rows[i], nil
	}
	last := -1
	for i, r := range s.rows {
		if r.block == blk && (r.kind == pairRow || r.kind == otherRow || r.kind == headRow) {
			last = i
		}
	}
	if last >= 0 {
		return s.rows[last].end, near, nil
	}
	return s.topSpot(), near, nil
}

// beside is where one more row of a key goes: beside the one that the wish names, else
// behind the last.
func (d *dialect) beside(s *sheet, w Wish, found []int) (int, *row, error) {
	last := &s.rows[found[len(found)-1]]
	style := func(r *row) *row {
		if r.bare { // which has no sign to take over
			return s.near(r.block, -1)
		}
		return r
	}
	for _, beside := range []struct {
		value any
		word  string
	}{{w.Before, "before"}, {w.After, "after"}} {
		if beside.value == nil {
			continue
		}
		i := d.member(s, found, beside.value)
		if i < 0 {
			return 0, nil, at(s.text, last.keyStart, "there is no member to put it %s", beside.word)
		}
		if beside.word == "before" {
			return s.rows[i].start, style(&s.rows[i]), nil
		}
		return s.rows[i].end, style(&s.rows[i]), nil
	}
	return last.end, style(last), nil
}

// topSpot is where the first key before all blocks goes: in front of the first head and
// of the comment that belongs to it, or at the end of a text that has no heads.
func (s *sheet) topSpot() int {
	if len(s.blocks) == 1 {
		return len(s.text)
	}
	head := s.blocks[1].head
	i := head
	for i > 0 && s.rows[i-1].kind == commentRow {
		i--
	}
	if i == 0 {
		i = head // a comment that opens the text is about the text
	}
	return s.rows[i].start
}

// addBlock adds a block with one row: at the end, or where it was.
func (d *dialect) addBlock(s *sheet, t target, w Wish, raw string) (op, error) {
	if d.head == nil {
		return op{}, refuse("this format has no blocks")
	}
	near := s.near(-1, -1)
	i := s.blockSpot(w)
	gap := d.gap(s) && i > 0 && s.rows[i-1].kind != blankRow
	return s.insert(s.offset(i), d.head(t.block), gap, d.pair(s, near, t, raw), raw)
}

// blockSpot is the row in front of which a new block goes: where it was, if another begins
// there, else behind all.
func (s *sheet) blockSpot(w Wish) int {
	if i := s.rowAt(w); i >= 0 {
		k := i
		for k < len(s.rows) && (s.rows[k].kind == blankRow || s.rows[k].kind == commentRow) {
			k++
		}
		if k < len(s.rows) && s.rows[k].kind == headRow {
			return i
		}
	}
	return len(s.rows)
}

// insert is the op that puts new lines at an offset where a line begins or the text ends.
func (s *sheet) insert(where int, head string, gap bool, line, raw string) (op, error) {
	if i := s.runsInto(where); i >= 0 {
		return op{}, at(s.text, s.rows[i].start, "the line ends in a backslash, and would run on into a new one")
	}
	eol := ending(s.text, where)
	o := op{Do: doAdd, At: where, Raw: []byte(raw), Head: head != "", Gap: gap, Prev: "-"}
	var new bytes.Buffer
	for i, r := range s.rows {
		if r.end == where {
			o.Prev, o.Row, o.Above = s.context(i), i+1, s.above(i+1)
		}
		if head != "" && r.start >= where && r.kind == commentRow {
			o.Below = append(o.Below, s.context(i))
		}
		if r.start >= where && r.kind == headRow {
			break
		}
	}
	if where > textStart(s.text) && s.text[where-1] != '\n' {
		o.Sep = eol
		new.WriteString(eol)
	}
	if gap {
		new.WriteString(eol)
	}
	if head != "" {
		new.WriteString(head + eol)
	}
	new.WriteString(line + eol)
	o.New = new.Bytes()
	return o, nil
}

// runsInto is the row above an offset that would go on in a line put there, -1 for none.
func (s *sheet) runsInto(where int) int {
	i := len(s.rows) - 1
	for i >= 0 && (s.rows[i].end > where || s.rows[i].kind == commentRow) {
		i--
	}
	if i < 0 || s.flavor == tomlText || s.rows[i].kind == blankRow || s.rows[i].kind == headRow {
		return -1
	}
	line := bytes.TrimRight(s.text[s.rows[i].start:s.rows[i].end], " \t\r\n")
	if s.rows[i].open || runsOn(line) {
		return i
	}
	return -1
}

// cutOp takes the rows i to j away. What it keeps of their neighbours is how they are when
// it comes back: of the rows that go with it, those above are there again, those below are
// not.
func cutOp(s *sheet, gone []int, i, j int) op {
	o := op{Do: doCut, At: s.rows[i].start, Row: i, Old: s.text[s.rows[i].start:s.rows[j].end]}
	skip := map[int]bool{}
	for _, k := range gone {
		skip[k] = k > j
	}
	o.Above = s.above(i)
	for k := range o.Above {
		o.AboveKeys = append(o.AboveKeys, s.keyOf(i-1-k, s.rows[i].block))
	}
	for k := j + 1; k <= len(s.rows) && len(o.Below) < nearby; k++ {
		if !skip[k] {
			o.Below = append(o.Below, s.context(k))
			o.BelowKeys = append(o.BelowKeys, s.keyOf(k, s.rows[i].block))
		}
	}
	return o
}

// above names the rows above row i, nearest first.
func (s *sheet) above(i int) []string {
	var names []string
	for k := i - 1; k >= -1 && len(names) < nearby; k-- {
		names = append(names, s.context(k))
	}
	return names
}
