package entry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A yamlStyle is how new text is written: as its neighbours are.
type yamlStyle struct {
	newline string
	unit    int  // columns of one step of indentation
	under   bool // a list stands in the column of its name
	quote   byte // of strings: '"' or '\''; 0 for none where none is needed
}

// yamlStyleOf looks how a text is written.
func yamlStyleOf(text []byte) yamlStyle {
	st := yamlStyle{newline: ending(text, 0), unit: 2}
	indent, opened, sure, lists := 0, false, false, false
	for line := range bytes.Lines(text) {
		body := bytes.TrimLeft(line, " ")
		here := len(line) - len(body)
		body = bytes.TrimRight(body, " \t\r\n")
		if len(body) == 0 || body[0] == '#' {
			continue
		}
		dash := bytes.HasPrefix(body, []byte("- "))
		switch {
		case opened && dash && !lists && (here == indent || here > indent):
			st.under, lists = here == indent, true
		case opened && !dash && !sure && here > indent && here-indent <= 8:
			st.unit, sure = here-indent, true
		}
		indent, opened = here, bytes.HasSuffix(body, []byte(":"))
		if dash {
			opened = false
		}
	}
	return st
}

// block spells a value behind a colon or a dash whose entry stands in a column: on the
// same line with a space before it, or on lines of its own. dash says that it is behind a
// dash.
func (st *yamlStyle) block(v any, col int, dash bool) string {
	var b strings.Builder
	switch v := v.(type) {
	case []any:
		if len(v) == 0 {
			return " []"
		}
		inner := col + st.unit
		if dash {
			inner = col + 2
		} else if st.under {
			inner = col
		}
		for i, m := range v {
			b.WriteString(st.lead(inner, dash && i == 0) + "-" + st.block(m, inner, true))
		}
	case map[string]any:
		if len(v) == 0 {
			return " {}"
		}
		inner := col + st.unit
		if dash {
			inner = col + 2
		}
		for i, name := range slices.Sorted(maps.Keys(v)) {
			b.WriteString(st.lead(inner, dash && i == 0) + st.scalar(name) + ":" + st.block(v[name], inner, false))
		}
	default:
		return " " + st.inBlock(v)
	}
	return b.String()
}

// lead is what comes before an entry of a new block: a line break and its indentation, or
// a space behind a dash.
func (st *yamlStyle) lead(col int, compact bool) string {
	if compact {
		return " "
	}
	return st.newline + strings.Repeat(" ", col)
}

// flow spells a value in brackets.
func (st *yamlStyle) flow(v any) string {
	var parts []string
	switch v := v.(type) {
	case []any:
		for _, m := range v {
			parts = append(parts, st.flow(m))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, st.scalar(name)+": "+st.flow(v[name]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return st.scalar(v)
}

// plainSafe are strings that need no quotes anywhere, if they are not words of YAML.
var plainSafe = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./@+-]*( [A-Za-z0-9_./@+-]+)*$`)

// plainInBlock are strings with a colon that need no quotes as a value of their own line;
// between brackets some readers stumble over them.
var plainInBlock = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./@+-]*(:[A-Za-z0-9_./@+-]+)+$`)

// inBlock spells a value that stands between no brackets.
func (st *yamlStyle) inBlock(v any) string {
	if text, ok := v.(string); ok && st.quote == 0 && plainInBlock.MatchString(text) {
		return text
	}
	return st.scalar(v)
}

// yamlWords are what some reader of YAML takes for no string.
var yamlWords = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}

func (st *yamlStyle) scalar(v any) string {
	switch v := v.(type) {
	case string:
		return st.str(v)
	case json.Number:
		return yamlNumber(string(v))
	case bool:
		return fmt.Sprint(v)
	case yamlOther:
		return v.spell(st)
	}
	return "null"
}

// spell is the tag and the text, which is what the value came from.
func (o yamlOther) spell(st *yamlStyle) string {
	tag := o.tag
	if !strings.HasPrefix(tag, "!") {
		tag = "!<" + tag + ">"
	}
	in := yamlStyle{quote: '"', newline: st.newline}
	return tag + " " + in.str(o.text)
}

// yamlNumber spells a number so that readers of every version of YAML take it for one: an
// exponent comes with a point and a sign.
func yamlNumber(text string) string {
	i := strings.IndexAny(text, "eE")
	if i < 0 {
		return text
	}
	mantissa, exponent := text[:i], text[i+1:]
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if exponent[0] != '-' && exponent[0] != '+' {
		exponent = "+" + exponent
	}
	return mantissa + "e" + exponent
}

// str spells a string, so that every reader takes it for one.
func (st *yamlStyle) str(text string) string {
	n := yaml.Node{Kind: yaml.ScalarNode, Value: text}
	if st.quote == 0 && plainSafe.MatchString(text) && !slices.Contains(yamlWords, strings.ToLower(text)) && n.ShortTag() == "!!str" {
		return text
	}
	if st.quote == '\'' && !strings.ContainsFunc(text, func(r rune) bool { return !yamlPrintable(r) }) {
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case yamlPrintable(r):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// yamlPrintable says whether a character may stand as it is in a quoted scalar on one line.
func yamlPrintable(r rune) bool {
	switch r {
	case utf8.RuneError, 0xfeff, 0x2028, 0x2029:
		return false
	}
	return r >= ' ' && r < 0x7f || r >= 0xa0 && r < 0xe000 || r >= 0xf900 && r < 0xfffe || r >= 0x10000 && r <= 0x10ffff
}
