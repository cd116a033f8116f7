package entry

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// A part is one step of a path in a TOML text: a name, or the place in a list of tables.
type part struct {
	name  string
	place int // -1 for a name
}

// tomlPath spells a path so that no two are alike.
func tomlPath(parts []part) string {
	var out strings.Builder
	for i, p := range parts {
		if i > 0 {
			out.WriteByte('.')
		}
		if p.place >= 0 {
			out.WriteString("#" + strconv.Itoa(p.place))
		} else {
			out.WriteString(strconv.Quote(p.name))
		}
	}
	return out.String()
}

// parseTOML implements dialect.parse: a row is a statement, a block what stands under one
// header. The text is whole TOML, keys set twice and all.
func parseTOML(text []byte, _ target) (*sheet, error) {
	if _, err := readTOML(text); err != nil {
		return nil, err
	}
	s := newSheet(text)
	s.flavor = tomlText
	lists := map[string]int{} // how many tables each list of tables has so far
	for from := textStart(text); from < len(text); {
		r := row{start: from, keyStart: skipBlank(text, from, len(text))}
		content, end := lineEnd(text, from)
		r.end = end
		switch {
		case r.keyStart >= content:
			s.add(r)
		case text[r.keyStart] == '#':
			r.kind = commentRow
			s.add(r)
		case text[r.keyStart] == '[':
			if err := s.tomlHeader(r, lists); err != nil {
				return nil, err
			}
		default:
			if err := s.tomlPair(&r); err != nil {
				return nil, err
			}
			s.add(r)
		}
		from = s.rows[len(s.rows)-1].end
	}
	return s, nil
}

// tomlHeader opens a block.
func (s *sheet) tomlHeader(r row, lists map[string]int) error {
	at := r.keyStart + 1
	list := at < len(s.text) && s.text[at] == '['
	if list {
		at++
	}
	names, _, err := tomlKey(s.text, at)
	if err != nil {
		return err
	}
	var path []part
	for i, n := range names {
		path = append(path, part{name: n, place: -1})
		spelled := tomlPath(path)
		count, isList := lists[spelled]
		if list && i == len(names)-1 {
			lists[spelled] = count + 1
			path = append(path, part{place: count})
		} else if isList {
			path = append(path, part{place: count - 1})
		}
	}
	s.open(tomlPath(path), r.start, r.end)
	last := &s.blocks[len(s.blocks)-1]
	last.path, last.list = path, list
	return nil
}

// tomlPair reads a statement that sets a key.
func (s *sheet) tomlPair(r *row) error {
	names, end, err := tomlKey(s.text, r.keyStart)
	if err != nil {
		return err
	}
	r.kind, r.keyEnd = pairRow, trimBlank(s.text, r.keyStart, end)
	for _, n := range names {
		r.parts = append(r.parts, part{name: n, place: -1})
	}
	r.key = tomlPath(r.parts)
	if end >= len(s.text) || s.text[end] != '=' {
		return at(s.text, end, "an equals sign is missing")
	}
	r.val = skipBlank(s.text, end+1, len(s.text))
	v, err := tomlValue(s.text, r.val, 0)
	if err != nil {
		return err
	}
	r.valEnd = v.end
	_, r.end = lineEnd(s.text, v.end)
	return nil
}

// tomlKey reads a key, dotted or not, and gives where it ends, blanks stepped over.
func tomlKey(text []byte, from int) (names []string, end int, err error) {
	for {
		from = skipBlank(text, from, len(text))
		stop := from
		if from < len(text) && (text[from] == '"' || text[from] == '\'') {
			if stop = tomlStringEnd(text, from); stop < 0 {
				return nil, 0, at(text, from, "a quote is not closed")
			}
		} else {
			for stop < len(text) && strings.IndexByte(" \t\r\n.=]\"'#", text[stop]) < 0 {
				stop++
			}
		}
		if stop == from {
			return nil, 0, at(text, from, "a key is missing")
		}
		name, err := tomlName(text, from, stop)
		if err != nil {
			return nil, 0, err
		}
		names = append(names, name)
		end = skipBlank(text, stop, len(text))
		if end == len(text) || text[end] != '.' {
			return names, end, nil
		}
		from = end + 1
	}
}

// tomlName is what one name of a key says.
func tomlName(text []byte, from, to int) (string, error) {
	raw := text[from:to]
	switch raw[0] {
	case '\'':
		return string(raw[1 : len(raw)-1]), nil
	case '"':
		var p unstable.Parser
		p.Reset(append(bytes.Clone(raw), "=0"...))
		if p.NextExpression() {
			if it := p.Expression().Key(); it.Next() {
				return string(it.Node().Data), nil
			}
		}
		return "", at(text, from, "the name cannot be read")
	}
	return string(raw), nil
}

// A tval is a value in a text: a scalar, or a list or table with what stands in it.
type tval struct {
	start, end int
	open       byte // '[' or '{', 0 for a scalar
	kids       []tkid
	comma      bool // one stands behind the last kid
}

// A tkid is one member of a list or table.
type tkid struct {
	start int // of the key, or of the value in a list
	names []string
	val   tval
}

// tomlValue reads the value that begins at an offset. The text has been found to be TOML.
func tomlValue(text []byte, from, depth int) (tval, error) {
	v := tval{start: from}
	switch {
	case from >= len(text):
		return v, at(text, from, "a value is missing")
	case depth > maxNest:
		return v, at(text, from, "lists and tables stand more than %d deep in each other", maxNest)
	case text[from] == '"' || text[from] == '\'':
		if v.end = tomlStringEnd(text, from); v.end < 0 {
			return v, at(text, from, "a quote is not closed")
		}
		return v, nil
	case text[from] == '[' || text[from] == '{':
		v.open = text[from]
		return v, v.members(text, depth)
	}
	stop := from
	for stop < len(text) && strings.IndexByte(",]}#\r\n", text[stop]) < 0 {
		stop++
	}
	if v.end = trimBlank(text, from, stop); v.end == from {
		return v, at(text, from, "a value is missing")
	}
	return v, nil
}

// members reads what stands in a list or table.
func (v *tval) members(text []byte, depth int) error {
	closer := v.open + 2 // ] behind [, } behind {
	i := v.start + 1
	for {
		if i = tomlSpace(text, i); i >= len(text) {
			return at(text, v.start, "a bracket is not closed")
		}
		switch text[i] {
		case closer:
			v.end = i + 1
			return nil
		case ',':
			v.comma = true
			i++
			continue
		}
		v.comma = false
		kid := tkid{start: i}
		if v.open == '{' {
			names, end, err := tomlKey(text, i)
			if err != nil {
				return err
			}
			if end >= len(text) || text[end] != '=' {
				return at(text, end, "an equals sign is missing")
			}
			kid.names, i = names, tomlSpace(text, end+1)
		}
		val, err := tomlValue(text, i, depth+1)
		if err != nil {
			return err
		}
		kid.val = val
		v.kids = append(v.kids, kid)
		i = val.end
	}
}

// tomlSpace steps over blanks, line endings and comments.
func tomlSpace(text []byte, i int) int {
	for i < len(text) {
		switch text[i] {
		case ' ', '\t', '\r', '\n':
			i++
		case '#':
			i, _ = lineEnd(text, i)
		default:
			return i
		}
	}
	return i
}

// tomlStringEnd is where a string of any of the four kinds ends, -1 if it does not.
func tomlStringEnd(text []byte, from int) int {
	q := text[from]
	triple := bytes.HasPrefix(text[from:], []byte{q, q, q})
	i := from + 1
	if triple {
		i = from + 3
	}
	for ; i < len(text); i++ {
		switch {
		case text[i] == '\\' && q == '"':
			i++
		case text[i] != q:
		case !triple:
			return i + 1
		case bytes.HasPrefix(text[i:], []byte{q, q, q}):
			i += 3
			for n := 0; n < 2 && i < len(text) && text[i] == q; n++ {
				i++ // up to two quotes may stand in front of the three that close
			}
			return i
		}
	}
	return -1
}

var tomlTexts memo[map[string]any]

// readTOML reads a whole text as plain values, which stay as they are.
func readTOML(text []byte) (map[string]any, error) { return tomlTexts.of(text, parsedTOML) }

func parsedTOML(text []byte) (v map[string]any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = refuse("the TOML library cannot read it: %v", r)
		}
	}()
	start := textStart(text)
	var doc map[string]any
	if err := toml.Unmarshal(text[start:], &doc); err != nil {
		place := &PlaceError{Why: strings.TrimPrefix(err.Error(), "toml: ")}
		var where *toml.DecodeError
		if errors.As(err, &where) {
			place.Line, place.Column = where.Position()
		}
		return nil, place
	}
	plain, _ := plainTOML(doc).(map[string]any)
	return plain, nil
}
