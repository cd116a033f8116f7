package entry

// A tomlEdit finds out how to make a wish true of a text.
type tomlEdit struct {
	sheet *sheet
	w     Wish
	doc   map[string]any
}

// full is the whole path of a row.
func (s *sheet) full(r row) []part {
	path := s.blocks[r.block].path
	return append(path[:len(path):len(path)], r.parts...)
}

// meant says that the first steps of a key lead along a path, as far as the shorter goes.
func meant(path []part, steps []Step) bool {
	for i := 0; i < len(path) && i < len(steps); i++ {
		if path[i].place >= 0 {
			if n, ok := steps[i].index(); !ok || n != path[i].place {
				return false
			}
		} else if steps[i].text() != path[i].name {
			return false
		}
	}
	return true
}

// plan gives the ops that make the wish true.
func (e *tomlEdit) plan() (mark, error) {
	s, steps := e.sheet, e.w.Steps
	for i, r := range s.rows {
		if r.kind != pairRow {
			continue
		}
		if full := s.full(r); len(full) <= len(steps) && meant(full, steps) {
			return e.inRow(i, steps[len(full):])
		}
	}
	if e.w.Absent {
		return e.cutTable()
	}
	if v, there := tomlGet(e.doc, steps); there {
		if list, ok := v.([]any); ok && e.w.Member {
			return e.newMember(list)
		}
		what := "a table with a header or keys of its own; declare its keys one by one"
		if _, list := v.([]any); list {
			what = "a list of tables, each with a header of its own; declare their keys one by one"
		}
		return mark{}, at(s.text, e.firstOf(steps), "it is %s", what)
	}
	if m, ok, err := e.newElement(); ok {
		return m, err
	}
	return e.addRow()
}

// firstOf is where a table begins.
func (e *tomlEdit) firstOf(steps []Step) int {
	for _, r := range e.sheet.rows {
		if path := e.sheet.full(r); (r.kind == pairRow || r.kind == headRow) && len(path) >= len(steps) && meant(path, steps) {
			return r.keyStart
		}
	}
	return 0
}

func (e *tomlEdit) markOf(r row, ops ...op) mark {
	return mark{Block: e.sheet.blocks[r.block].name, Key: r.key, Ops: ops}
}

// inRow edits the value of a statement, or a member within it.
func (e *tomlEdit) inRow(i int, inner []Step) (mark, error) {
	s := e.sheet
	r := s.rows[i]
	if len(inner) == 0 && !e.w.Member {
		if e.w.Absent {
			return e.markOf(r, cutOp(s, []int{i}, i, i)), nil
		}
		o, err := tomlLines.setOp(s, target{key: r.key}, e.w, i)
		return e.markOf(r, o), err
	}
	v, err := tomlValue(s.text, r.val, 0)
	if err != nil {
		return mark{}, err
	}
	sp, in, err := innerEdit(s.text, v, inner, e.w)
	if err != nil {
		return mark{}, err
	}
	whole := apply(s.text[:r.valEnd], sp)[r.val:]
	return e.markOf(r, op{
		Do: doSet, At: sp.At, Row: i, Old: s.text[sp.At:sp.End], New: sp.With, Raw: whole,
		Prev: s.context(i - 1), Above: s.above(i), In: sp.At - r.val, Inner: in,
	}), nil
}

// cutTable takes away a table that has headers or dotted keys of its own, and all in it.
func (e *tomlEdit) cutTable() (mark, error) {
	s, steps := e.sheet, e.w.Steps
	last := map[int]int{} // of each block that goes, its last row that is not blank or a comment
	for i, r := range s.rows {
		path := s.blocks[r.block].path
		if r.kind != blankRow && r.kind != commentRow && len(path) >= len(steps) && meant(path, steps) {
			last[r.block] = i
		}
	}
	var gone []int
	for i, r := range s.rows {
		end, whole := last[r.block]
		full := s.full(r)
		if whole && i <= end || r.kind == pairRow && len(full) > len(steps) && meant(full, steps) {
			gone = append(gone, i)
		}
	}
	if len(gone) == 0 {
		return mark{}, refuse("the key cannot be taken away: it is a part of a value that cannot be told from the rest")
	}
	var m mark
	for k := len(gone) - 1; k >= 0; {
		j := k
		for k > 0 && gone[k-1] == gone[k]-1 {
			k--
		}
		o := cutOp(s, gone, gone[k], gone[j])
		if first := s.rows[gone[k]]; first.kind == headRow {
			o.Any = true
		} else {
			o.Block = s.blocks[first.block].name
		}
		for _, r := range s.rows[gone[k] : gone[j]+1] {
			o.Head = o.Head || r.kind == headRow
		}
		m.Ops = append(m.Ops, o)
		k--
	}
	if len(m.Ops) > maxCuts {
		return m, refuse("the table stands in %d places, more than can be taken away one by one", len(m.Ops))
	}
	return m, nil
}

// addRow adds a statement: to its table, beside the dotted keys that make its table, or
// under a new header.
func (e *tomlEdit) addRow() (mark, error) {
	s, steps := e.sheet, e.w.Steps
	value := e.w.Value
	if e.w.Member {
		value = []any{value}
	}
	raw, err := tomlSpell(value, "")
	if err != nil {
		return mark{}, err
	}
	for k := len(steps) - 1; k >= 0; k-- {
		if list, ok := e.listAt(steps[:k]); ok {
			return mark{}, at(s.text, e.firstOf(steps[:k]), "it is a list of %d tables; the key has to say which, by its number from 0, or %d for a new one", len(list), len(list))
		}
		if blk := e.blockOf(steps[:k]); blk >= 0 && k == len(steps)-1 {
			where, near, err := tomlLines.spot(s, blk, Wish{}, nil)
			if err != nil {
				return mark{}, err
			}
			if i := tomlLines.stood(s, blk, e.w); i >= 0 {
				where, near = s.offset(i), s.near(blk, i)
			}
			return e.addPair(blk, where, near, steps[k:], raw)
		}
		if i := e.dotted(steps[:k]); i >= 0 {
			r := s.rows[i]
			where := r.end
			if i := tomlLines.stood(s, r.block, e.w); i >= 0 {
				where = s.offset(i)
			}
			return e.addPair(r.block, where, &s.rows[i], steps[len(s.blocks[r.block].path):], raw)
		}
		if k == 0 || e.above(steps[:k]) >= 0 {
			return e.addHeader(k, raw)
		}
	}
	return mark{}, refuse("there is no place for the key")
}

// listAt is the list of tables that a key names.
func (e *tomlEdit) listAt(steps []Step) ([]any, bool) {
	v, _ := tomlGet(e.doc, steps)
	list, ok := v.([]any)
	return list, ok
}

// blockOf is the block of a table, -1 if it has no header.
func (e *tomlEdit) blockOf(steps []Step) int {
	for i, b := range e.sheet.blocks {
		if len(b.path) == len(steps) && meant(b.path, steps) {
			return i
		}
	}
	return -1
}

// dotted is the last row whose dotted key makes a table, -1 for none.
func (e *tomlEdit) dotted(steps []Step) int {
	found := -1
	for i, r := range e.sheet.rows {
		if r.kind == pairRow && len(e.sheet.blocks[r.block].path) < len(steps) {
			if full := e.sheet.full(r); len(full) > len(steps) && meant(full, steps) {
				found = i
			}
		}
	}
	return found
}

// above is the last block that lies in a table or is it, -1 for none.
func (e *tomlEdit) above(steps []Step) int {
	for i := len(e.sheet.blocks) - 1; i > 0; i-- {
		if path := e.sheet.blocks[i].path; len(path) >= len(steps) && meant(path, steps) {
			return i
		}
	}
	return -1
}

// names are steps as the names of a key.
func names(steps []Step) ([]string, []part, error) {
	var list []string
	var path []part
	for _, step := range steps {
		if step.Place {
			return nil, nil, refuse("there is no list to have a number %d; a name that is a number is written in quotes", step.Index)
		}
		list = append(list, step.Name)
		path = append(path, part{name: step.Name, place: -1})
	}
	return list, path, nil
}

// addPair adds a statement to a block.
func (e *tomlEdit) addPair(blk, where int, near *row, steps []Step, raw string) (mark, error) {
	s := e.sheet
	list, path, err := names(steps)
	if err != nil {
		return mark{}, err
	}
	t := target{block: s.blocks[blk].name, key: dottedTOML(list)}
	o, err := s.insert(where, "", false, pairTOML(s, near, t, raw), raw)
	return mark{Block: t.block, Key: tomlPath(path), Ops: []op{o}}, err
}

// addHeader adds a table with one statement: at the end, or behind the table of a list that
// it belongs to. The first k steps of its key lead to what is there.
func (e *tomlEdit) addHeader(k int, raw string) (mark, error) {
	s, steps := e.sheet, e.w.Steps
	n := len(steps) - 1
	where := len(s.text)
	var path []part
	if k > 0 {
		path = append(path, s.blocks[e.above(steps[:k])].path[:k]...)
	}
	var list []string
	for i, p := range path {
		if p.place < 0 {
			list = append(list, p.name)
			continue
		}
		for _, r := range s.rows {
			if r.block == e.above(steps[:i+1]) && (r.kind == pairRow || r.kind == headRow) {
				where = r.end
			}
		}
	}
	if where == len(s.text) {
		where = s.offset(s.blockSpot(e.w))
	}
	more, parts, err := names(steps[k:n])
	if err != nil {
		return mark{}, err
	}
	last, key, err := names(steps[n:])
	if err != nil {
		return mark{}, err
	}
	list, path = append(list, more...), append(path, parts...)
	t := target{block: tomlPath(path), key: dottedTOML(last)}
	gap := gapINI(s)
	for _, r := range s.rows {
		gap = gap && (r.end != where || r.kind != blankRow)
	}
	gap = gap && where > textStart(s.text)
	o, err := s.insert(where, "["+dottedTOML(list)+"]", gap, pairTOML(s, s.near(-1, -1), t, raw), raw)
	return mark{Block: t.block, Key: tomlPath(key), Ops: []op{o}}, err
}
