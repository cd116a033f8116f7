package entry

import (
	"maps"
	"slices"
)

// A tomlPair is one statement of a new table.
type tomlPair struct {
	steps []Step
	value any
}

// newElement makes a table of a list of tables, where the key leads to one past the last;
// ok is false where it leads elsewhere.
func (e *tomlEdit) newElement() (m mark, ok bool, err error) {
	steps := e.w.Steps
	for k, step := range steps {
		n, ok := step.index()
		if !ok {
			continue
		}
		v, there := tomlGet(e.doc, steps[:k])
		list, isList := v.([]any)
		switch {
		case !there && !step.Place: // a name of digits, as far as anybody can tell
			continue
		case !there && n > 0:
			return m, true, refuse("there is no list yet, and a list begins at 0")
		case there && (!isList || n != len(list)):
			continue
		}
		pairs := []tomlPair{{steps[k+1:], e.w.Value}}
		if e.w.Member {
			pairs[0].value = []any{e.w.Value}
		}
		if k == len(steps)-1 && e.w.Member {
			return m, true, refuse("a member of a list of tables is a table, not a list")
		}
		if k == len(steps)-1 {
			pairs, err = tablePairs(e.w.Value)
		}
		if err == nil {
			m, err = e.addElement(steps[:k], len(list), pairs)
		}
		return m, true, err
	}
	return m, false, nil
}

// newMember makes a table of a list of tables that is there.
func (e *tomlEdit) newMember(list []any) (mark, error) {
	if e.w.Before != nil || e.w.After != nil {
		return mark{}, at(e.sheet.text, e.firstOf(e.w.Steps), "a new table goes behind the others of its list; take before and after out")
	}
	pairs, err := tablePairs(e.w.Value)
	if err != nil {
		return mark{}, placed(e.sheet.text, e.firstOf(e.w.Steps), err)
	}
	return e.addElement(e.w.Steps, len(list), pairs)
}

// tablePairs are the statements of a table, by name.
func tablePairs(v any) ([]tomlPair, error) {
	table, ok := v.(map[string]any)
	switch {
	case !ok:
		return nil, refuse("a member of a list of tables is a table, not a %s", tomlKind(v))
	case len(table) == 0:
		return nil, refuse("a table of a list needs at least one key, or it could not be found again")
	}
	var pairs []tomlPair
	for _, name := range slices.Sorted(maps.Keys(table)) {
		pairs = append(pairs, tomlPair{[]Step{{Name: name}}, table[name]})
	}
	return pairs, nil
}

// addElement adds a table to the list that a key names, behind the n that it has.
func (e *tomlEdit) addElement(list []Step, n int, pairs []tomlPair) (mark, error) {
	var path []part
	var head []string
	for _, step := range list {
		if i, ok := step.index(); ok && step.Place {
			path = append(path, part{place: i})
			continue
		}
		path, head = append(path, part{name: step.text(), place: -1}), append(head, step.text())
	}
	path = append(path, part{place: n})
	first, err := e.addTable(list, path, head, pairs[0])
	if err != nil {
		return mark{}, err
	}
	m := first
	text := m.forth(e.sheet.text)
	for _, pair := range pairs[1:] {
		s, err := tomlLines.read(text, target{})
		if err != nil {
			return mark{}, err
		}
		next := &tomlEdit{sheet: s, w: e.w}
		blk := slices.IndexFunc(s.blocks, func(b block) bool { return b.name == m.Block })
		raw, err := tomlSpell(pair.value, "")
		if err != nil {
			return mark{}, err
		}
		where, near, err := tomlLines.spot(s, blk, Wish{}, nil)
		if err != nil {
			return mark{}, err
		}
		more, err := next.addPair(blk, where, near, pair.steps, raw)
		if err != nil {
			return mark{}, err
		}
		more.Ops[0].Key = more.Key
		m.Ops = append(m.Ops, more.Ops...)
		text = more.forth(text)
	}
	return m, nil
}

// addTable adds the header of a table of a list, with one statement.
func (e *tomlEdit) addTable(list []Step, path []part, head []string, pair tomlPair) (mark, error) {
	s := e.sheet
	raw, err := tomlSpell(pair.value, "")
	if err != nil {
		return mark{}, err
	}
	spelled, key, err := names(pair.steps)
	if err != nil {
		return mark{}, err
	}
	t := target{block: tomlPath(path), key: dottedTOML(spelled)}
	where := s.offset(s.blockSpot(e.w))
	within := list
	for len(within) > 0 && e.above(within) < 0 {
		within = within[:len(within)-1]
	}
	if len(within) > 0 && (len(within) == len(list) || slices.ContainsFunc(within, func(s Step) bool { return s.Place })) {
		for _, r := range s.rows {
			if r.block == e.above(within) && (r.kind == pairRow || r.kind == headRow) {
				where = r.end
			}
		}
	}
	gap := gapINI(s) && where > textStart(s.text)
	for _, r := range s.rows {
		gap = gap && (r.end != where || r.kind != blankRow)
	}
	near := s.near(-1, -1)
	if last := e.above(list); last >= 0 {
		near = s.near(last, -1)
	}
	o, err := s.insert(where, "[["+dottedTOML(head)+"]]", gap, pairTOML(s, near, t, raw), raw)
	return mark{Block: t.block, Key: tomlPath(key), Ops: []op{o}}, err
}
