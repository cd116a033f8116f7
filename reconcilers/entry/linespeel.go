package entry

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Peel implements Format.
func (d *dialect) Peel(text []byte, w Wish, receipt json.RawMessage) []byte {
	return d.peel(d, text, w, receipt)
}

// peel is Peel of a format whose texts are of these lines.
func (d *dialect) peel(f Format, text []byte, w Wish, receipt json.RawMessage) []byte {
	var m mark
	if len(receipt) == 0 || json.Unmarshal(receipt, &m) != nil || len(m.Ops) == 0 {
		return text
	}
	if sum(text) == m.Sum {
		return m.back(text)
	}
	return d.peelChanged(f, text, w, m)
}

// peelChanged takes an edit off a text that others have changed since. The key is golem's:
// a value that somebody has written in the place of golem's goes with it.
func (d *dialect) peelChanged(f Format, text []byte, w Wish, m mark) []byte {
	whole := text
	t := target{block: m.Block, key: m.Key, flavor: &m.Flavor}
	if _, err := d.read(text, t); err != nil {
		return text
	}
	if m.Ops[0].Do == doCut {
		if out, again, err := f.Put(text, w); err == nil && again != nil {
			text = out // somebody set the key anew
		}
	}
	floor := 0
	for k := len(m.Ops) - 1; k >= 0; k-- {
		s, err := d.read(text, t)
		if err != nil {
			return whole
		}
		o := m.Ops[k]
		switch o.Do {
		case doSet:
			text = d.unset(s, t, w, o)
		case doAdd:
			added := t
			if o.Key != "" {
				added.key = o.Key
			}
			text = d.unadd(s, added, w, o)
		case doCut:
			text, floor = d.uncut(s, t, w, o, floor)
		}
	}
	if _, err := d.read(text, t); err != nil {
		return whole // what comes back does not go with what others have written
	}
	return text
}

// ours finds the row that an op left, -1 if it is gone: the one that says what golem wrote,
// else, where the key has one value, the one in its place.
func (d *dialect) ours(s *sheet, t target, w Wish, o op) int {
	found, best := -1, 0
	for i, r := range s.rows {
		if r.kind != pairRow || r.doubt != "" || r.bare || !d.sameKey(s, r.key, t.key) || !d.alike(s, s.blocks[r.block].name, t.block) {
			continue
		}
		score := len(s.rows) + 1 - max(i-o.Row, o.Row-i)
		near := s.context(i-1) == o.Prev
		said := o.Inner == nil && bytes.Equal(noCR(s.text[r.val:r.valEnd]), noCR(o.Raw))
		there := d.sameBlock(s, s.blocks[r.block].name, t.block)
		if !there && !(near && said) || o.Inner == nil && w.Member && !said {
			continue
		}
		if near {
			score += 2 * len(s.rows)
		}
		if said && d.loose == nil {
			score += 12 * len(s.rows) // several rows of one key, and this one says it
		} else if said {
			score += 4 * len(s.rows) // any table of a list may say so
		}
		if there && slices.Equal(s.above(i), o.Above) {
			score += 8 * len(s.rows)
		}
		if found < 0 || score > best {
			found, best = i, score
		}
	}
	return found
}

// alike says whether two blocks may be the same one, before and after a stranger's edit.
func (d *dialect) alike(s *sheet, a, b string) bool {
	return d.sameBlock(s, a, b) || d.loose != nil && d.loose(a) == d.loose(b)
}

func noCR(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")) }

// unset gives a row its old value back.
func (d *dialect) unset(s *sheet, t target, w Wish, o op) []byte {
	i := d.ours(s, t, w, o)
	if i < 0 {
		return s.text
	}
	r := s.rows[i]
	if o.Inner != nil {
		if raw := s.raw(r); raw == string(o.Raw) {
			from := r.val + o.In
			return apply(s.text, splice{At: from, End: from + len(o.New), With: o.Old})
		}
		return peelInner(s.text, r, w, o)
	}
	if o.Bare {
		return apply(s.text, splice{At: r.keyEnd, End: r.valEnd})
	}
	if o.Lead != "" && bytes.HasSuffix(s.text[:r.val], []byte(o.Lead)) {
		r.val -= len(o.Lead)
	}
	return apply(s.text, splice{At: r.val, End: r.valEnd, With: withEnding(o.Old, s.text)})
}

// withEnding spells the line endings of a piece of text as the text around it does, if all
// of that has been converted since.
func withEnding(piece, around []byte) []byte {
	crlf := bytes.Count(around, []byte("\r\n"))
	bare := bytes.Count(around, []byte("\n")) - crlf
	switch pieceCRLF := bytes.Contains(piece, []byte("\r\n")); {
	case pieceCRLF && crlf == 0 && bare > 0:
		return noCR(piece)
	case !pieceCRLF && bare == 0 && crlf > 0:
		return bytes.ReplaceAll(piece, []byte("\n"), []byte("\r\n"))
	}
	return piece
}

// unadd takes an added row away, and the block that was made for it if nothing else is in
// it.
func (d *dialect) unadd(s *sheet, t target, w Wish, o op) []byte {
	i := d.ours(s, t, w, o)
	if i < 0 {
		return s.text
	}
	r := s.rows[i]
	splices := []splice{{At: r.start, End: r.end}}
	first := i
	if h := s.blocks[r.block].head; o.Head && h >= 0 && s.alone(i, o.Below) {
		first = h
		splices = append([]splice{{At: s.rows[h].start, End: s.rows[h].end}}, splices...)
		if o.Gap && h > 0 && s.rows[h-1].kind == blankRow {
			first = h - 1
			splices = append([]splice{{At: s.rows[h-1].start, End: s.rows[h-1].end}}, splices...)
		}
	}
	start, last := s.rows[first].start, i == len(s.rows)-1
	same := s.context(first-1) == o.Prev || len(o.Above) > 1 && first > 0 && s.context(first-2) == o.Above[1] // it was changed
	if o.Sep != "" && last && same {
		// The line before had no ending: it loses golem's.
		content, end := start, start
		if bytes.HasSuffix(s.text[:start], []byte("\n")) {
			content--
		}
		if bytes.HasSuffix(s.text[:content], []byte("\r")) {
			content--
		}
		splices = append([]splice{{At: content, End: end}}, splices...)
	}
	return apply(s.text, splices...)
}

// alone says that a block holds nothing but one row; blank lines aside, and comments that
// were there before it was made or that stand behind a blank line at the next block's head.
func (s *sheet) alone(i int, there []string) bool {
	blank := false
	for k, r := range s.rows {
		switch {
		case r.block != s.rows[i].block || k == i || r.kind == headRow:
		case r.kind == blankRow:
			blank = blank || k > i
		case r.kind != commentRow || k < i:
			return false
		case !slices.Contains(there, s.context(k)) && (!blank || r.block == len(s.blocks)-1):
			return false
		}
	}
	return true
}

// uncut puts rows back between their neighbours of old, or at the end of their block. A block
// that is gone takes its rows along. Of a table in several places each comes back behind the
// one before, which ends at floor; it gives the next floor.
func (d *dialect) uncut(s *sheet, t target, w Wish, o op, floor int) ([]byte, int) {
	if o.Block != "" {
		t.block = o.Block
	}
	where := d.certain(s, t, o, floor)
	if where < 0 {
		where = d.gapOf(s, t, o, floor)
	}
	if where < 0 && o.Head {
		where = max(floor, s.behind(w.Steps[:max(0, len(w.Steps)-1)]))
	}
	if where < 0 {
		blk := d.home(s, t, nil)
		if blk < 0 {
			return s.text, floor
		}
		where, _, _ = d.spot(s, blk, Wish{}, nil)
	}
	eol := ending(s.text, where)
	rows := withEnding(o.Old, s.text)
	if where > textStart(s.text) && s.text[where-1] != '\n' {
		rows = append([]byte(eol), bytes.TrimRight(rows, "\r\n")...)
	}
	if where < len(s.text) && !bytes.HasSuffix(rows, []byte("\n")) {
		rows = append(bytes.Clone(rows), eol...)
	}
	return apply(s.text, splice{At: where, End: where, With: rows}), where + len(rows)
}

// certain is the place of rows that were cut, if all that stood before it or behind it is as it
// was; -1 if neither is.
func (d *dialect) certain(s *sheet, t target, o op, floor int) int {
	for i := range len(s.rows) + 1 {
		at := s.offset(i)
		head := at == o.At && at > 0 && shortHash(s.text[:at]) == o.HeadSum
		tail := len(s.text)-at == o.Tail && o.Tail > 0 && shortHash(s.text[at:]) == o.TailSum
		if (head || tail) && d.mayReturn(s, t, o, i, floor) {
			return at
		}
	}
	return -1
}

// mayReturn says whether rows that were cut may come back before row i.
func (d *dialect) mayReturn(s *sheet, t target, o op, i, floor int) bool {
	if (o.Head || o.Any) && s.offset(i) < floor || o.Head && !s.blockEnds(i) {
		return false // what follows would become a part of what comes back
	}
	if o.Any {
		return true
	}
	if i == 0 {
		return t.block == ""
	}
	return d.alike(s, s.blocks[s.rows[i-1].block].name, t.block)
}

// gapOf finds the place between the neighbours that rows had when they were cut, -1 for none.
func (d *dialect) gapOf(s *sheet, t target, o op, floor int) int {
	where, best, far := -1, 0, 0
	for i := 0; i <= len(s.rows); i++ {
		if !d.mayReturn(s, t, o, i, floor) {
			continue
		}
		blk := 0
		if i > 0 {
			blk = s.rows[i-1].block
		}
		score := s.likeness(o.Above, o.AboveKeys, blk, func(k int) int { return i - 1 - k }) + s.likeness(o.Below, o.BelowKeys, blk, func(k int) int { return i + k })
		if away := max(i-o.Row, o.Row-i); score > best || score > 0 && score == best && away < far {
			best, far, where = score, away, s.offset(i)
		}
	}
	return where
}

// likeness is how much rows are like those that were seen: those next to the place count most,
// though their values may be others, and behind one that is another, those that say something.
func (s *sheet) likeness(seen, keys []string, blk int, row func(k int) int) int {
	score, whole := 0, true
	for k, name := range seen {
		i := row(k)
		same := s.context(i) == name
		key := k < len(keys) && keys[k] != "" && i >= 0 && i < len(s.rows) && s.rows[i].key == keys[k] && s.keyOf(i, blk) != ""
		switch whole = whole && (same || key); {
		case whole && same:
			score += 2 * nearby
		case whole:
			score += 2*nearby - 1
		case same && i >= 0 && i < len(s.rows) && s.rows[i].kind != blankRow:
			score++
		}
	}
	return score
}

// keyOf is the key of a row of a block, where no other row of that has it; else "".
func (s *sheet) keyOf(i, blk int) string {
	if i < 0 || i >= len(s.rows) || s.rows[i].kind != pairRow || s.rows[i].block != blk {
		return ""
	}
	for k, r := range s.rows {
		if k != i && r.kind == pairRow && r.block == blk && r.key == s.rows[i].key {
			return ""
		}
	}
	return s.rows[i].key
}

// behind is where the last table ends that lies in what steps lead to; the text's end for none.
func (s *sheet) behind(steps []Step) int {
	where := len(s.text)
	if len(steps) == 0 {
		return where
	}
	for _, r := range s.rows {
		path := s.blocks[r.block].path
		if (r.kind == pairRow || r.kind == headRow) && len(path) >= len(steps) && meant(path, steps) {
			where = r.end
		}
	}
	return where
}

// blockEnds says that a block ends before row i: nothing but blank lines and comments comes
// before the next head.
func (s *sheet) blockEnds(i int) bool {
	for ; i < len(s.rows) && s.rows[i].kind != headRow; i++ {
		if s.rows[i].kind != blankRow && s.rows[i].kind != commentRow {
			return false
		}
	}
	return true
}

// offset is where row i begins, or the text ends.
func (s *sheet) offset(i int) int {
	if i < len(s.rows) {
		return s.rows[i].start
	}
	return len(s.text)
}
