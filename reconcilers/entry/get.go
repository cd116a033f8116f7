package entry

import "errors"

// Get reads what a text of a format has at the key of a wish. Of a wish for a member it is
// the list. It says false where there is nothing; a *PlaceError says why it cannot be read.
// What it gives is held: a wish for it is true of the text.
func Get(format string, text []byte, w Wish) (value any, there bool, err error) {
	w.Absent, w.Value, w.Member = false, nil, false
	switch f := Formats[format].(type) {
	case jsonFormat:
		value, there, err = f.get(text, w)
	case yamlFormat:
		value, there, err = f.get(text, w)
	case tomlFormat:
		var doc map[string]any
		if doc, err = readTOML(text); err == nil {
			value, there = tomlGet(doc, w.Steps)
		}
		if there && hasTime(value) {
			err = &PlaceError{Why: "the value there is or has a date or time, which no value of a scroll is"}
		}
	case *dialect:
		value, there, err = f.get(text, w)
	default:
		return nil, false, &PlaceError{Why: "the format is not known"}
	}
	if err != nil || !there {
		return nil, false, err
	}
	if w.Value = value; len(w.Steps) == 0 || Formats[format].Holds(text, w) {
		return value, true, nil
	}
	var cannot *PlaceError
	if _, _, err := Formats[format].Put(text, w); errors.As(err, &cannot) && !cannot.Value {
		return nil, false, err
	}
	return nil, false, &PlaceError{Why: "the value there cannot be said in a scroll"}
}

func (f jsonFormat) get(text []byte, w Wish) (any, bool, error) {
	if len(w.Steps) == 0 {
		w.Member = true // which reads the whole, and looks for nothing that matters
		path, err := f.find(text, w)
		if err != nil || path.blank {
			return nil, false, err
		}
		s := jsonScan{text: text, at: textStart(text)}
		if err := s.space(); err != nil {
			return nil, false, err
		}
		v, ok := readJSON(text[s.at:])
		return v, ok, nil
	}
	path, err := f.find(text, w)
	if errors.Is(err, errThrough) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	m := path.member(len(w.Steps))
	if m == nil {
		return nil, false, nil
	}
	v, ok := readJSON(text[m.value:m.end])
	return v, ok, nil
}

func (f yamlFormat) get(text []byte, w Wish) (any, bool, error) {
	docs, err := readYAML(text)
	if err != nil || w.Document >= len(docs) {
		return nil, false, err
	}
	v, there := lookup(docs[w.Document], w.Steps)
	return v, there, nil
}

// get reads the value of the row that counts, as the text that a scroll says for it.
func (d *dialect) get(text []byte, w Wish) (any, bool, error) {
	t, err := d.aim(w)
	if err != nil {
		return nil, false, err
	}
	s, err := d.read(text, t)
	if err != nil {
		return nil, false, err
	}
	found := d.matches(s, t)
	if len(found) == 0 {
		return nil, false, nil
	}
	if err := d.clear(s, t); err != nil {
		return nil, false, err
	}
	win := s.rows[found[d.winner(found)]]
	raw := s.raw(win)
	for _, value := range []string{unquoted(raw), raw} {
		if !win.bare && d.reads(s, raw, value) {
			return value, true, nil
		}
	}
	return nil, false, at(text, win.keyStart, "the value there cannot be said in a scroll")
}

// unquoted is what a raw value means where it stands in quotes.
func unquoted(raw string) string {
	if text, ok := readEnv(raw); ok {
		return text
	}
	return raw
}
