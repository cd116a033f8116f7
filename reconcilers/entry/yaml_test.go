package entry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"
)

// readYAMLDoc reads the first document by the parser that the editor checks itself with.
func readYAMLDoc(text []byte) (any, error) {
	docs, err := parsedYAML(text)
	if err != nil || len(docs) == 0 {
		return nil, errors.Join(err, errors.New("no document"))
	}
	return docs[0], nil
}

// readGoccy reads the first document by a third parser.
func readGoccy(text []byte) (any, error) {
	var v any
	d := yaml.NewDecoder(bytes.NewReader(text), yaml.AllowDuplicateMapKey())
	if err := d.Decode(&v); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	return plainGo(v), nil
}

func plainGo(v any) any {
	switch v := v.(type) {
	case map[string]any:
		object := map[string]any{}
		for name, m := range v {
			object[name] = plainGo(m)
		}
		return object
	case []any:
		list := []any{}
		for _, m := range v {
			list = append(list, plainGo(m))
		}
		return list
	case nil, bool, string:
		return v
	case float64:
		raw, _ := json.Marshal(v)
		return json.Number(raw)
	}
	return json.Number(fmt.Sprint(v))
}

// drawYAML draws a text in some style.
type drawYAML struct {
	t       *rapid.T
	newline string
	unit    int
	under   bool
	anchors int
}

func (d *drawYAML) pick(what string, from ...string) string {
	return rapid.SampledFrom(from).Draw(d.t, what)
}

func (d *drawYAML) comment(col int) string {
	return d.pick("comment", "", "", "", d.newline+strings.Repeat(" ", col)+"# it's: [a", d.newline, d.newline+"# left")
}

// value draws what follows a colon or a dash in a column.
func (d *drawYAML) value(depth, col int, dash bool) string {
	kinds := []string{"scalar", "scalar", "quoted", "none", "flow", "anchor", "long", "block"}
	if depth > 0 {
		kinds = append(kinds, "map", "map", "list", "list")
	}
	tail := d.pick("tail", "", "", " # tail", "  ")
	switch d.pick("kind", kinds...) {
	case "scalar":
		return " " + d.pick("scalar", "a", "1", "1e3", "true", "null", "~", "x y", "0x1f", "http://x", "2001-01-01", "a#b", "é") + tail
	case "quoted":
		return d.pick("gap", " ", "  ") + d.pick("quoted", `"a"`, `'it''s'`, `"#\"x: y"`, `"é"`, "'a"+d.newline+strings.Repeat(" ", col+2)+"b: c'", `''`) + tail
	case "none":
		return tail
	case "flow":
		return " " + d.flow(2) + tail
	case "anchor":
		if d.anchors++; d.anchors > 1 && d.pick("alias", "yes", "no") == "yes" {
			return " *a1" + tail
		}
		return fmt.Sprintf(" &a%d x", d.anchors) + tail
	case "long":
		return " long" + d.newline + strings.Repeat(" ", col+1) + "plain - text" + tail
	case "block":
		in := d.newline + strings.Repeat(" ", col+d.unit)
		return d.pick("header", " |", " >-", " |+", " |-") + d.pick("header comment", "", " # c") + in + "text: x" + in + "# no comment" + d.pick("blank", "", d.newline, d.newline+in+"more")
	case "map":
		if dash {
			return " " + d.entries(depth-1, col+2, true)
		}
		return tail + d.comment(col+d.unit) + d.entries(depth-1, col+d.unit, false)
	}
	inner := col + d.unit
	if d.under && !dash {
		inner = col
	}
	if dash {
		return " " + d.items(depth-1, col+2, true)
	}
	return tail + d.comment(inner) + d.items(depth-1, inner, false)
}

func (d *drawYAML) entries(depth, col int, compact bool) string {
	names := rapid.Permutation([]string{"a", "b", `"c"`, "'d.e'", "x y", "1", "é"}).Draw(d.t, "names")
	var b strings.Builder
	for i := range rapid.IntRange(1, 3).Draw(d.t, "n") {
		if i > 0 || !compact {
			b.WriteString(d.comment(col) + d.newline + strings.Repeat(" ", col))
		}
		b.WriteString(names[i] + d.pick("colon", ":", ":", " :") + d.value(depth, col, false))
	}
	return b.String()
}

func (d *drawYAML) items(depth, col int, compact bool) string {
	var b strings.Builder
	for i := range rapid.IntRange(1, 3).Draw(d.t, "n") {
		if i > 0 || !compact {
			b.WriteString(d.comment(col) + d.newline + strings.Repeat(" ", col))
		}
		b.WriteString("-" + d.value(depth, col, true))
	}
	return b.String()
}

func (d *drawYAML) flow(depth int) string {
	scalar := func() string { return d.pick("flow scalar", "a", "1", `"x, y"`, "'}'", "null", "b c") }
	if depth == 0 {
		return scalar()
	}
	sep := d.pick("sep", ", ", ",", " , ")
	n := rapid.IntRange(0, 3).Draw(d.t, "n")
	parts := make([]string, n)
	if d.pick("brackets", "[]", "{}") == "[]" {
		for i := range parts {
			parts[i] = d.flow(depth - 1)
		}
		return "[" + strings.Join(parts, sep) + d.pick("end", "", " ", ",") + "]"
	}
	for i := range parts {
		parts[i] = []string{"a", `"b"`, "c"}[i] + ": " + d.flow(depth-1)
	}
	pad := d.pick("pad", "", " ")
	return "{" + pad + strings.Join(parts, sep) + pad + "}"
}

func drawYAMLText(t *rapid.T) []byte {
	d := &drawYAML{t: t, newline: rapid.SampledFrom([]string{"\n", "\n", "\r\n"}).Draw(t, "newline"), unit: rapid.SampledFrom([]int{2, 4, 1}).Draw(t, "unit"), under: rapid.Bool().Draw(t, "under")}
	var body string
	switch d.pick("root", "map", "map", "map", "map", "list", "flow", "blank") {
	case "map":
		body = d.entries(3, 0, true)
	case "list":
		body = d.items(3, 0, true)
	case "flow":
		body = d.flow(3)
	default:
		body = d.pick("blank", "", "# only a comment", d.newline)
	}
	head := d.pick("head", "", "", "", "\xef\xbb\xbf", "---"+d.newline, "# head"+d.newline, "%YAML 1.1"+d.newline+"---"+d.newline)
	return []byte(head + body + d.pick("end", "", d.newline, d.newline+"# end"+d.newline, d.newline+d.newline, d.newline+"..."+d.newline))
}

func TestYAMLKeepsTheLaws(t *testing.T) {
	edits, refused := 0, map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		text := drawYAMLText(t)
		if _, err := readYAML(text); err != nil {
			t.Skip("the text drawn is none")
		}
		keepLaws(t, yamlFormat{}, text, readYAMLDoc)
		v, _ := readYAMLDoc(text)
		w := drawWish(t, v)
		if _, _, err := (yamlFormat{}).Put(text, w); err != nil {
			_, why, _ := strings.Cut(err.Error(), ": ")
			refused[fmt.Sprintf("%.60s", why)]++
		}
		edits++
	})
	t.Logf("%d texts, refused: %v", edits, refused)
}

var bareDash = regexp.MustCompile(`(?m)-[ \r]*(#.*)?$`)

// TestAnotherParserReadsWhatYAMLEditsMean compares with a parser that the editor does not
// use itself.
func TestAnotherParserReadsWhatYAMLEditsMean(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		text := drawYAMLText(t)
		v, err := readYAMLDoc(text)
		if err != nil {
			t.Skip("the text drawn is none")
		}
		w := drawWish(t, v)
		out, receipt, err := (yamlFormat{}).Put(text, w)
		if err != nil || receipt == nil {
			return
		}
		if before, err := readGoccy(text); err != nil || !sameValue(before, v) {
			return // they do not agree on the text as it was
		}
		if bareDash.Match(out) {
			return // which takes what follows a dash without a value for its value
		}
		after, err := readGoccy(out)
		if err != nil || !sameValue(after, wished(v, w)) {
			t.Fatalf("put of %+v: %v\nwas %q\nput %q\nreads %v\nnot   %v", w, err, text, out, after, wished(v, w))
		}
		compared++
	})
	t.Logf("%d edits compared", compared)
}

func FuzzYAML(f *testing.F) {
	for _, text := range []string{
		"", "a: 1\n", "a:\n  b: 1 # c\n", "- a\n- b: 1\n  c: 2\n", "{a: [1, 2], \"b\": x}", "a: &x 1\nb: *x\n", "a: |\n  x\n\n  y\n",
		"---\na: 1\n---\na: 2\n...\n", "a:\n- 1\n- 2\nb: 'x\n  y'\n", "\xef\xbb\xbfa: 1\r\nb:\r\n  c: 2\r\n", "<<: {a: 1}\n", "a:\n\tb: 1\n", "? a\n: b\n",
	} {
		f.Add([]byte(text), "a.b", "\"v\"", byte(0))
		f.Add([]byte(text), "a", "[1,{\"x\":null}]", byte(1))
		f.Add([]byte(text), "a", "1", byte(2))
	}
	f.Fuzz(func(t *testing.T, text []byte, key, value string, mode byte) {
		fuzzLaws(t, yamlFormat{}, text, key, value, mode, readYAMLDoc)
	})
}

func TestYAMLEdits(t *testing.T) {
	for _, c := range []struct{ name, text, key, value, want string }{
		{"a scalar in place", "b :   1  # one\na: [1, 2]\n", "b", "2", "b :   2  # one\na: [1, 2]\n"},
		{"a quoted scalar", "a: '2' # two\nb: 2\n", "a", `"3"`, "a: '3' # two\nb: 2\n"},
		{"a new member", "a:\n    b: 1\n    # left\nc: 2\n", "a.d", "{\"x\": [1]}", "a:\n    b: 1\n    d:\n        x:\n            - 1\n    # left\nc: 2\n"},
		{"lists under their names", "a:\n- 1\nb: 2", "c", "[\"x\"]", "a:\n- 1\nb: 2\nc:\n- x"},
		{"parents that are missing", "a: 1\n", "x.z", "true", "a: 1\nx:\n  z: true\n"},
		{"between braces", "a: {b: 1}\n", "a.c", "[\"x\"]", "a: {b: 1, c: [x]}\n"},
		{"as JSON", "{\"a\":1}", "b", "\"x\"", "{\"a\":1,\"b\":\"x\"}"},
		{"a name without a value", "a: # none\nb: 1\n", "a.c", "1", "a:\n  c: 1 # none\nb: 1\n"},
		{"a block of text", "a: |\n  one\n  two\nb: 1\n", "a", "\"x\"", "a: x\nb: 1\n"},
		{"an empty file", "", "a.b", "[1]", "a:\n  b:\n    - 1\n"},
		{"only comments", "# none\n", "a", "1", "# none\na: 1\n"},
		{"windows", "a:\r\n  b: 1\r\n", "a.c", "2", "a:\r\n  b: 1\r\n  c: 2\r\n"},
		{"in a list", "l:\n  - name: x\n    on: 1\n  - name: y\n", "l.1.port", "80", "l:\n  - name: x\n    on: 1\n  - name: y\n    port: 80\n"},
		{"a word that is a string", "a: 1\n", "b", "\"yes\"", "a: 1\nb: \"yes\"\n"},
		{"the same number spelled otherwise", "a: 1e3\n", "a", "1000", "a: 1e3\n"},
		{"beside anchors", "x: &x {a: 1}\ny: *x\nz: 1\n", "z", "2", "x: &x {a: 1}\ny: *x\nz: 2\n"},
		{"an alias itself", "x: &x 1\ny: *x\n", "y", "2", "x: &x 1\ny: 2\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			keepExact(t, yamlFormat{}, c.text, Wish{Steps: dotted(c.key), Value: plainJSON(t, c.value)}, c.want)
		})
	}
	for _, c := range []struct {
		name, text string
		w          Wish
		want       string
	}{
		{"a member", "a:\n  - x # c\nb: 1\n", Wish{Steps: dotted("a"), Member: true, Value: "w"}, "a:\n  - x # c\n  - w\nb: 1\n"},
		{"a member that is there", "a: [\"y\"]\n", Wish{Steps: dotted("a"), Member: true, Value: "y"}, "a: [\"y\"]\n"},
		{"a member before another", "a:\n- x\n- z\n", Wish{Steps: dotted("a"), Member: true, Value: "w", Before: "z"}, "a:\n- x\n- w\n- z\n"},
		{"absent", "a: 1\n# of b\nb: # c\n  x: 2\nc: 3\n", Wish{Steps: dotted("b"), Absent: true}, "a: 1\n# of b\nc: 3\n"},
		{"absent and alone", "a:\n  b: 1\n", Wish{Steps: dotted("a.b"), Absent: true}, "a: {}\n"},
		{"beside a merge key", "x: &x\n  a: 1\ny:\n  <<: *x\n", Wish{Steps: dotted("y.b"), Member: true, Value: "w"}, "x: &x\n  a: 1\ny:\n  <<: *x\n  b:\n    - w\n"},
		{"before what a merge key brings", "x: &x\n  a: 1\ny:\n  <<: *x\n", Wish{Steps: dotted("y.a"), Value: "w"}, "x: &x\n  a: 1\ny:\n  <<: *x\n  a: w\n"},
		{"what a merge key does not bring", "x: &x\n  a: 1\ny:\n  <<: [*x, {c: 1}]\n", Wish{Steps: dotted("y.b"), Absent: true}, "x: &x\n  a: 1\ny:\n  <<: [*x, {c: 1}]\n"},
		{"absent beside a merge key", "x: &x\n  a: 1\ny:\n  <<: *x\n  b: 2\n", Wish{Steps: dotted("y.b"), Absent: true}, "x: &x\n  a: 1\ny:\n  <<: *x\n"},
		{"a colon in a word", "a: x:1\nb: {c: x:1}\n", Wish{Steps: dotted("a"), Value: "nginx:1.27"}, "a: nginx:1.27\nb: {c: x:1}\n"},
		{"a colon between brackets", "b: {c: x}\n", Wish{Steps: dotted("b.c"), Value: "nginx:1.27"}, "b: {c: \"nginx:1.27\"}\n"},
		{"a colon between digits", "a: [x]\nb: y\n", Wish{Steps: dotted("b"), Value: "80:80"}, "a: [x]\nb: \"80:80\"\n"},
		{"a bracket that closes under its name", "a:\n  b: [\n    x,\n  ]\n  c: {\n    d: y\n}\nz: 1\n", Wish{Steps: dotted("a.c.d"), Value: "w"}, "a:\n  b: [\n    x,\n  ]\n  c: {\n    d: w\n}\nz: 1\n"},
		{"a name behind such a bracket", "a: [{\n  b: x\n}, {\n  b: y\n}]\n", Wish{Steps: dotted("c"), Value: "w"}, "a: [{\n  b: x\n}, {\n  b: y\n}]\nc: w\n"},
		{"a member of a list that such a bracket closes", "a: [\n  x,\n  y\n]\nb: 1\n", Wish{Steps: dotted("a"), Member: true, Value: "w"}, "a: [\n  x,\n  y,\n  w\n]\nb: 1\n"},
		{"YAML 1.2", "%YAML 1.2\n---\na: 1\n", Wish{Steps: dotted("a"), Value: "w"}, "%YAML 1.2\n---\na: w\n"},
		{"another document", "a: 1\n---\na: 1\n", Wish{Steps: dotted("a"), Value: json.Number("2"), Document: 1}, "a: 1\n---\na: 2\n"},
	} {
		t.Run(c.name, func(t *testing.T) { keepExact(t, yamlFormat{}, c.text, c.w, c.want) })
	}
}

func TestYAMLRefusesWithThePlace(t *testing.T) {
	for _, c := range []struct{ text, key, want string }{
		{"a: 1\nb: 2\na: 3\n", "a", `line 3, column 1: the name "a" is there twice, in line 1, column 1 too; golem cannot tell which of them counts`},
		{"a:\n\tb: 1\n", "a.b", "line 2, column 1: a tab indents this line; YAML takes spaces only"},
		{"x: &x\n  a: {c: 1}\ny:\n  <<: *x\n  b: 2\n", "y.a.d", `line 4, column 3: this merge key brings "a", and what it stands for may be used elsewhere too`},
		{"x: &x\n  a: 1\ny: *x\n", "y.a", "line 3, column 4: the key leads through an alias; what it stands for is used elsewhere too"},
		{"x: &x\n  a: 1\ny: *x\n", "x.a", "line 1, column 4: it cannot be edited safely: the edit would change \"y.a\" too; perhaps an anchor on it is used elsewhere"},
		{"l: [&x {a: 1}, *x]\n", "l.0.a", "line 1, column 5: it cannot be edited safely: the edit would change \"l.1.a\" too; perhaps an anchor on it is used elsewhere"},
		{"a: |\n  t", "b", "line 1, column 1: it cannot be edited safely: the edit would change \"a\" too, since its text ends without a line break"},
		{"a: s\n", "a.b", "line 1, column 4: the key leads through it, and it is neither a mapping nor a list"},
		{"a: [1]\n", "a.b", `line 1, column 4: the key leads through it by the name "b", but it is a list; its members have numbers, from 0`},
		{"a: [1\n", "a", "line 1, column 4: this bracket is not closed"},
		{"? a\n: 1\n", "a", "line 1, column 1: a name that is marked with ? cannot be edited around"},
		{"a: 1\n---\nb: 1\n", "b", ""},
		{"--- a\n", "a", "line 1, column 5: the document begins in the line of its marker; it cannot be edited there"},
		{"a: {b: 1, # c\n  c: 2}\n", "a.d", "line 1, column 10: a comment or a lone name between these brackets cannot be edited around"},
	} {
		out, _, err := yamlFormat{}.Put([]byte(c.text), Wish{Steps: dotted(c.key), Value: "v"})
		switch {
		case c.want == "" && err == nil:
		case err == nil:
			t.Errorf("%q: put gave %q", c.text, out)
		case err.Error() != c.want:
			t.Errorf("%q:\n%s\nnot\n%s", c.text, err, c.want)
		}
	}
	for _, w := range []Wish{{Steps: dotted("y.a"), Absent: true}, {Steps: dotted("y.c"), Member: true, Value: "v"}, {Steps: dotted("z.c"), Absent: true}} {
		text := "x: &x\n  a: 1\n  c: [u]\ny:\n  a: 2\n  <<: *x\nz:\n  <<: [{<<: *x}]\n"
		if out, _, err := (yamlFormat{}).Put([]byte(text), w); err == nil || !strings.Contains(err.Error(), "this merge key brings") {
			t.Errorf("%v: put gave %q, %v", w, out, err)
		}
	}
	if _, _, err := (yamlFormat{}).Put([]byte("a: 1\n"), Wish{Steps: dotted("a"), Value: "v", Document: 1}); err == nil {
		t.Error("a document that is not there was edited")
	}
}

// TestYAMLNamesThatAreSpelledOddly: a name with an anchor or a tag is the name; one that an
// alias stands for is not edited, and not written a second time.
func TestYAMLNamesThatAreSpelledOddly(t *testing.T) {
	for _, c := range []struct {
		name, text string
		w          Wish
		want       string // the text; or a refusal, from its place on
	}{
		{"an anchor is set", "x: 1\n&a k: 1\n", Wish{Steps: dotted("k"), Value: "v"}, "x: 1\n&a k: v\n"},
		{"an anchor goes", "x: 1\n&a k: 1\n", Wish{Steps: dotted("k"), Absent: true}, "x: 1\n"},
		{"an anchor in brackets", "{&a k: 1, x: 1}\n", Wish{Steps: dotted("k"), Value: "v"}, "{&a k: v, x: 1}\n"},
		{"a tag", "x: 1\n!!str 7: 1\n", Wish{Steps: dotted("7"), Value: "v"}, "x: 1\n!!str 7: v\n"},
		{"an anchor that is used", "x: 1\n&a k: 1\ny: *a\n", Wish{Steps: dotted("k"), Absent: true}, "line 1, column 1: it cannot be edited safely"},
		{"an alias goes", "x: &a k\n*a : 1\n", Wish{Steps: dotted("k"), Absent: true}, "line 2, column 1: this name is spelled in a way"},
		{"an alias is set", "x: &a k\n*a : 1\n", Wish{Steps: dotted("k"), Value: "v"}, "line 2, column 1: this name is spelled in a way"},
		{"beside an alias", "x: &a k\n*a : 1\n", Wish{Steps: dotted("l"), Value: "v"}, "x: &a k\n*a : 1\nl: v\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.HasPrefix(c.want, "line") {
				keepExact(t, yamlFormat{}, c.text, c.w, c.want)
				return
			}
			if out, _, err := (yamlFormat{}).Put([]byte(c.text), c.w); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Fatalf("put gave %q, %v", out, err)
			}
		})
	}
}

// What was cut out of a document comes back into it, though somebody took all the rest.
func TestYAMLComesBackIntoAnEmptiedDocument(t *testing.T) {
	for _, c := range []struct{ found, left, want string }{
		{"old: 1\ndebug: true\n", "", "old: 1\n"},
		{"old: 1\ndebug: true\n", "# nothing\n", "# nothing\nold: 1\n"},
		{"old: 1\ndebug: true\n", "# nothing", "# nothing\nold: 1\n"},
		{"old: 1 # the only one\n", "", "old: 1"},
		{"---\nold: 1\nb: 2\n---\nc: 3\n", "---\n---\nc: 3\n", "---\nold: 1\n---\nc: 3\n"},
	} {
		w := Wish{Steps: []Step{{Name: "old"}}, Absent: true}
		_, receipt, err := yamlFormat{}.Put([]byte(c.found), w)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(yamlFormat{}.Peel([]byte(c.left), w, receipt)); got != c.want {
			t.Errorf("%q, emptied to %q, is given back as %q, not %q", c.found, c.left, got, c.want)
		}
	}
}
