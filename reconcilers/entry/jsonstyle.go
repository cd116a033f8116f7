package entry

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// A jsonStyle is how new text is written in one container: as its neighbours are.
type jsonStyle struct {
	many    bool   // members stand on lines of their own
	newline string // "\n" or "\r\n"
	indent  string // of the members
	base    string // of the line that the container begins in
	unit    string // one step of indentation
	colon   string // with the space around it
	sep     string // the space behind a comma, on one line
	pad     string // the space within the brackets of a container on one line
	lists   layout // how a list in it is written
	objects layout
}

// styleOf is the style of the last of some nested containers.
func styleOf(text []byte, levels []*jsonLevel) jsonStyle {
	st := jsonStyle{many: true, newline: ending(text, 0), unit: "  ", colon: ": ", sep: " "}
	for _, l := range levels {
		st.enter(text, l)
	}
	return st
}

// enter goes one container deeper.
func (st *jsonStyle) enter(text []byte, l *jsonLevel) {
	st.base = lineIndent(text, l.open)
	if l.lists != unseen {
		st.lists = l.lists
	}
	if l.objects != unseen {
		st.objects = l.objects
	}
	if l.count == 0 {
		st.indent = st.base + st.unit
		return
	}
	lead := spaceBefore(text, l.last.name)
	i := bytes.LastIndexByte(lead, '\n')
	if st.many = i >= 0; st.many {
		st.indent = string(lead[i+1:])
		st.newline = "\n"
		if i > 0 && lead[i-1] == '\r' {
			st.newline = "\r\n"
		}
		if unit, deeper := strings.CutPrefix(st.indent, st.base); deeper && unit != "" {
			st.unit = unit
		}
	} else {
		st.indent = st.base + st.unit
		if l.count > 1 {
			st.sep = string(lead)
		}
	}
	if !l.list {
		st.colon = colonOf(text, &l.last)
	}
	if l.count == 1 && !st.many && !l.list && !strings.ContainsAny(st.colon, " \t") {
		st.sep = ""
	}
	if first := spaceBefore(text, l.first.name); !st.many && !l.list && bytes.IndexByte(first, '\n') < 0 {
		st.pad = string(first)
	}
}

// colonOf is what stands between a name and its value.
func colonOf(text []byte, m *jsonMember) string {
	gap := string(text[m.nameEnd:m.value])
	if strings.Trim(gap, " \t:") != "" {
		return ": "
	}
	return gap
}

// lineIndent is the space at the beginning of an offset's line.
func lineIndent(text []byte, offset int) string {
	start := max(bytes.LastIndexByte(text[:offset], '\n')+1, textStart(text))
	return string(text[start:skipBlank(text, start, offset)])
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// spaceBefore is the run of space that ends at an offset.
func spaceBefore(text []byte, offset int) []byte {
	start := offset
	for start > 0 && isSpace(text[start-1]) {
		start--
	}
	return text[start:offset]
}

// lead is the space before a new member that follows another.
func (st *jsonStyle) lead() string {
	if st.many {
		return st.newline + st.indent
	}
	return st.sep
}

// spell writes a value that stands on a line with some indentation.
func (st *jsonStyle) spell(v any, indent string) []byte {
	var b bytes.Buffer
	st.write(&b, v, indent)
	return b.Bytes()
}

func (st *jsonStyle) write(b *bytes.Buffer, v any, indent string) {
	switch v := v.(type) {
	case []any:
		st.wrap(b, "[]", len(v), st.spread(st.lists), indent, func(i int, inner string) { st.write(b, v[i], inner) })
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		st.wrap(b, "{}", len(v), st.spread(st.objects), indent, func(i int, inner string) {
			b.Write(quoteJSON(names[i]))
			b.WriteString(st.colon)
			st.write(b, v[names[i]], inner)
		})
	case string:
		b.Write(quoteJSON(v))
	case json.Number:
		b.WriteString(string(v))
	case bool:
		if v {
			b.WriteString("true")
		} else {
			b.WriteString("false")
		}
	default:
		b.WriteString("null")
	}
}

// spread says whether a container in this one is written on several lines.
func (st *jsonStyle) spread(look layout) bool { return st.many && look != oneLine }

func (st *jsonStyle) wrap(b *bytes.Buffer, brackets string, n int, many bool, indent string, member func(i int, inner string)) {
	b.WriteByte(brackets[0])
	inner, lead, between, tail := indent+st.unit, "", st.sep, ""
	if many {
		lead = st.newline + inner
		between, tail = lead, st.newline+indent
	} else if brackets == "{}" {
		lead, tail = st.pad, st.pad
	}
	if n == 0 {
		lead, tail = "", ""
	}
	b.WriteString(lead)
	for i := range n {
		if i > 0 {
			b.WriteString("," + between)
		}
		member(i, inner)
	}
	b.WriteString(tail)
	b.WriteByte(brackets[1])
}

// quoteJSON spells a string.
func quoteJSON(text string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		panic(err) // a string has always a spelling: a bug
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// nest puts a value into containers that hold just it, for the steps that are to be made.
// It says no where a list would have to begin elsewhere than at its beginning.
func nest(v any, steps []Step) (any, bool) {
	for _, step := range slices.Backward(steps) {
		if !step.Place {
			v = map[string]any{step.Name: v}
			continue
		}
		if step.Index != 0 {
			return nil, false
		}
		v = []any{v}
	}
	return v, true
}
