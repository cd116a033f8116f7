package reconcilers

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golem/scrolls"
)

// drawEdit draws an edit that says something about a text: a line, a region, or an entry of
// one of the file's formats; nil where nothing can be said.
func (c *corpusCase) drawEdit(text string) *scrolls.Glyph {
	switch k := c.r.Intn(4); {
	case k == 0 && len(c.formats) > 0:
		format := c.formats[c.r.Intn(len(c.formats))]
		says, _ := foreignReaders[format]([]byte(text))
		return c.drawEntry(format, says)
	case k == 1:
		return c.drawRegion()
	}
	return c.drawLine()
}

// drawPattern draws a regular expression for a line of the file, or for many.
func (c *corpusCase) drawPattern() string {
	lines := strings.FieldsFunc(string(c.f.text), func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) == 0 || c.r.Intn(4) == 0 {
		return []string{"^#", "=", "^[ \t]+", "^$", "[a-m]$", "none at all", "^[A-Z]"}[c.r.Intn(7)]
	}
	line := lines[c.r.Intn(len(lines))]
	if !utf8.ValidString(line) {
		return "^[^#]"
	}
	if word := strings.Fields(line); len(word) > 0 && c.r.Intn(2) == 0 {
		return "^[ \t]*" + regexp.QuoteMeta(word[0])
	}
	return "^" + regexp.QuoteMeta(line) + "$"
}

func (c *corpusCase) drawLine() *scrolls.Glyph {
	a := scrolls.Attrs{"path": "/" + c.f.path, "line": fmt.Sprintf("golem = was here %d", c.r.Intn(3))}
	if lines := strings.FieldsFunc(string(c.f.text), func(r rune) bool { return r == '\n' || r == '\r' }); len(lines) > 0 && c.r.Intn(5) == 0 {
		if line := lines[c.r.Intn(len(lines))]; utf8.ValidString(line) && !strings.ContainsRune(line, 0) {
			a["line"] = line
		}
	}
	switch c.r.Intn(5) {
	case 0:
		a["ensure"] = "absent"
	case 1:
		a["ensure"], a["match"] = "absent", c.drawPattern()
		delete(a, "line")
	case 2:
		a["match"], a["on_many"] = c.drawPattern(), []string{"first", "last", "all", "error"}[c.r.Intn(4)]
	case 3:
		a[[]string{"before", "after"}[c.r.Intn(2)]] = c.drawPattern()
	}
	return editGlyph(c, "line", a)
}

func (c *corpusCase) drawRegion() *scrolls.Glyph {
	a := scrolls.Attrs{
		"path": "/" + c.f.path, "name": []string{"web", "a b"}[c.r.Intn(2)], "content": []string{"", "one\n", "a = 1\n\n\tb = 2\n", "x"}[c.r.Intn(4)],
	}
	if commentStyle("/"+c.f.path) == "" || c.r.Intn(4) == 0 {
		a["comment"] = []string{"#", "//", "<!-- -->", ";"}[c.r.Intn(4)]
	}
	switch c.r.Intn(4) {
	case 0:
		a["indent"] = "4"
	case 1:
		a[[]string{"before", "after"}[c.r.Intn(2)]] = c.drawPattern()
	}
	return editGlyph(c, "region", a)
}

// drawEntry draws an entry about a key that a text has, or about one beside it or below.
func (c *corpusCase) drawEntry(format string, says []saying) *scrolls.Glyph {
	way := c.drawWay(format, says)
	a := scrolls.Attrs{"path": "/" + c.f.path, "format": format}
	if document, ok := way[0].(laterDocument); ok {
		a["document"] = json.Number(fmt.Sprint(int(document)))
		if way = way[1:]; len(way) == 0 {
			return nil
		}
	}
	a["key"] = way
	_, place := way[len(way)-1].(json.Number)
	word := fmt.Sprintf("golem%d", c.r.Intn(3))
	switch k := c.r.Intn(6); {
	case k == 0 && !place:
		a["absent"] = true
	case k == 1 && format != "env":
		a["member"] = word
	case k == 2:
		a["value"] = json.Number("42")
	case k == 3 && slices.Contains([]string{"json", "yaml", "toml"}, format):
		a["value"] = []any{[]any{"golem", "here"}, map[string]any{"k": "golem", "l": []any{"x: y"}}, map[string]any{"k": json.Number("1")}}[c.r.Intn(3)]
	default:
		a["value"] = word
	}
	if problems := mustKindNamed(c, "entry").Check(a); len(problems) > 0 {
		return nil // a name that the format cannot hold: other readers are looser
	}
	return editGlyph(c, "entry", a)
}

func mustKindNamed(t interface{ Fatalf(string, ...any) }, name string) Kind {
	k, ok := KindOf(name)
	if !ok {
		t.Fatalf("there is no kind %q", name)
	}
	return k
}

// drawWay draws a key.
func (c *corpusCase) drawWay(format string, says []saying) []any {
	fresh := map[string][]any{"ini": {"Golem", "Was"}, "keyword": {"GolemWas"}, "env": {"GOLEM_WAS"}}[format]
	if fresh == nil {
		fresh = []any{"golem", "was"}[:1+c.r.Intn(2)]
	}
	if len(says) == 0 || c.r.Intn(6) == 0 {
		return fresh
	}
	from := says[c.r.Intn(len(says))].way
	if len(from) == 0 {
		return fresh
	}
	way := make([]any, 0, len(from)+1)
	for _, step := range from {
		if n, ok := step.(int); ok {
			way = append(way, json.Number(fmt.Sprint(n)))
			continue
		}
		if text, ok := step.(string); ok && !utf8.ValidString(text) {
			return fresh
		}
		way = append(way, step)
	}
	last := len(way) - 1
	if _, document := way[last].(laterDocument); document {
		return append(way, "golem")
	}
	switch nested := !slices.Contains([]string{"ini", "env", "keyword"}, format); {
	case nested && c.r.Intn(3) == 0:
		way = way[:1+c.r.Intn(len(way))]
	case nested && c.r.Intn(4) == 0:
		way = append(way, "golem")
	case c.r.Intn(4) == 0:
		if _, list := way[last].(json.Number); !list {
			way[last] = map[string]string{"env": "GOLEM_WAS"}[format] + "Golem"
		}
	}
	return way
}

// otherThan says what is not as it should be after an entry was put: the wanted value is
// not there, or another one is not as it was; "" for nothing.
func otherThan(format string, before, after []saying, g *scrolls.Glyph) string {
	var way []any
	if n := wholeNumber(g.Attrs, "document", 0); n > 0 {
		way = append(way, laterDocument(n))
	}
	for _, step := range g.Attrs["key"].([]any) {
		if n, ok := step.(json.Number); ok {
			i, _ := n.Int64()
			way = append(way, int(i))
			continue
		}
		way = append(way, step)
	}
	aim := wayText(format, way)
	split := func(list []saying) (rest, own []string) {
		for _, s := range list {
			text := wayText(format, s.way)
			switch {
			case strings.HasPrefix(text, aim):
				own = append(own, text[len(aim):]+s.value)
			case strings.HasPrefix(aim, text) && slices.Contains([]string{"{}", "[]", "null"}, s.value): // its parents were empty, or are
			default:
				rest = append(rest, text+s.value)
			}
		}
		return rest, own
	}
	was, had := split(before)
	is, has := split(after)
	if !slices.Equal(was, is) {
		return fmt.Sprintf("another reader sees other values: %.300q", onlyOne(was, is))
	}
	switch want, set := g.Attrs["value"]; {
	case g.Attrs["absent"] == true:
		if len(has) > 0 {
			return fmt.Sprintf("another reader still sees it: %q", has)
		}
	case format == "json" || format == "yaml" || format == "toml":
		wanted := flatten(nil, nil, want)
		if !set {
			wanted = flatten(nil, nil, g.Attrs["member"])
			has = has[max(0, len(has)-len(wanted)):]
			for i := range has {
				_, has[i], _ = strings.Cut(has[i], "\x00")
			}
		}
		var spelled []string
		for _, s := range wanted {
			spelled = append(spelled, wayText(format, s.way)+s.value)
		}
		if !slices.Equal(has, spelled) {
			return fmt.Sprintf("another reader sees %.300q, not %q (and saw %.100q)", has, spelled, had)
		}
	default:
		return oneLine(format, has, had, g)
	}
	return ""
}

// oneLine is otherThan for the values of a key that stands on lines of its own.
func oneLine(format string, has, had []string, g *scrolls.Glyph) string {
	want, set := g.Attrs["value"]
	if !set {
		want = g.Attrs["member"]
	}
	grown := len(has) - len(had)
	if set && len(had) > 0 && grown != 0 || (!set || len(had) == 0) && grown != 1 {
		return fmt.Sprintf("another reader sees %q where it saw %q", has, had)
	}
	reads := func(v string) bool {
		v = strings.TrimLeft(v, `"'`)
		rest, ok := strings.CutPrefix(v, fmt.Sprint(want))
		return ok && (rest == "" || strings.ContainsAny(rest[:1], " \t\"'#;"))
	}
	winner := len(has) - 1
	if format == "keyword" {
		winner = 0
	}
	if set && !reads(has[winner]) || !slices.ContainsFunc(has, reads) {
		return fmt.Sprintf("another reader sees %q, not %v", has, want)
	}
	return ""
}

// onlyOne are what only one of two lists has.
func onlyOne(a, b []string) (only []string) {
	for _, pair := range [][2][]string{{a, b}, {b, a}} {
		for _, s := range pair[0] {
			if !slices.Contains(pair[1], s) {
				only = append(only, s)
			}
		}
	}
	return only
}
