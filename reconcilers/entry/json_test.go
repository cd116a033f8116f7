package entry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"
	"pgregory.net/rapid"
)

// readJSONC reads a text by other people's parsers.
func readJSONC(text []byte) (any, error) {
	text = bytes.TrimPrefix(text, []byte(bom))
	std, err := hujson.Standardize(bytes.Clone(text))
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(std))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("more than one document")
	}
	return v, nil
}

// drawJSON draws a text in some style, often a strange one.
type drawJSON struct {
	t       *rapid.T
	newline string
	strange bool
}

func (d *drawJSON) space(indent string) string {
	if !d.strange {
		return ""
	}
	return rapid.SampledFrom([]string{"", "", "", " ", d.newline, d.newline + indent, "\t", " /* c */ ", " // it's \"so\"" + d.newline + indent, "/**/"}).Draw(d.t, "space")
}

func (d *drawJSON) value(depth int, indent, unit string) string {
	kinds := []string{"number", "string", "word", "object", "object", "list"}
	if depth == 0 {
		kinds = kinds[:3]
	}
	switch rapid.SampledFrom(kinds).Draw(d.t, "kind") {
	case "number":
		return rapid.SampledFrom([]string{"0", "1", "-0", "1e3", "1000", "9007199254740993", "0.10", "1E-2", "-12.5e+3"}).Draw(d.t, "number")
	case "string":
		return rapid.SampledFrom([]string{`""`, `"a"`, `"x y"`, `"\u0061"`, `"é"`, `"{[,]}//"`, `"\"\\"`, "\"caf\xe9\"", `"http://x/*"`}).Draw(d.t, "string")
	case "word":
		return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(d.t, "word")
	case "list":
		return d.container("[]", depth, indent, unit)
	}
	return d.container("{}", depth, indent, unit)
}

func (d *drawJSON) container(brackets string, depth int, indent, unit string) string {
	names := rapid.Permutation([]string{`"a"`, `"b"`, `"c"`, `"d.e"`, `"\u0061x"`, `"é"`}).Draw(d.t, "names")
	n := rapid.IntRange(0, 4).Draw(d.t, "n")
	many := rapid.Bool().Draw(d.t, "many lines")
	colon := rapid.SampledFrom([]string{": ", ":", " : "}).Draw(d.t, "colon")
	inner, lead, sep, tail := indent+unit, "", rapid.SampledFrom([]string{" ", ""}).Draw(d.t, "sep"), ""
	if many {
		lead, tail = d.newline+inner, d.newline+indent
		sep = lead
	} else if brackets == "{}" {
		lead = rapid.SampledFrom([]string{" ", ""}).Draw(d.t, "pad")
		tail = lead
	}
	var b strings.Builder
	b.WriteString(brackets[:1] + d.space(inner))
	for i := range n {
		if i > 0 {
			b.WriteString(d.space(inner) + "," + d.space(inner) + sep)
		} else {
			b.WriteString(lead)
		}
		if brackets == "{}" {
			b.WriteString(names[i] + d.space(inner) + colon + d.space(inner))
		}
		b.WriteString(d.value(depth-1, inner, unit))
	}
	if n > 0 && d.strange && rapid.IntRange(0, 3).Draw(d.t, "trailing") == 0 {
		b.WriteString(d.space(inner) + ",")
	}
	b.WriteString(d.space(inner))
	if n > 0 || rapid.Bool().Draw(d.t, "space in empty") {
		b.WriteString(tail)
	}
	b.WriteString(brackets[1:])
	return b.String()
}

func drawJSONText(t *rapid.T) []byte {
	d := &drawJSON{t: t, newline: rapid.SampledFrom([]string{"\n", "\n", "\r\n"}).Draw(t, "newline"), strange: rapid.Bool().Draw(t, "strange")}
	if rapid.IntRange(0, 20).Draw(t, "blank") == 0 {
		return []byte(rapid.SampledFrom([]string{"", "\n", " ", "\xef\xbb\xbf", "// only a comment", "/* c */\r\n", "\r\n"}).Draw(t, "blank text"))
	}
	unit := rapid.SampledFrom([]string{"  ", "    ", "\t", ""}).Draw(t, "unit")
	text := rapid.SampledFrom([]string{"", "", "\xef\xbb\xbf"}).Draw(t, "mark") + d.space("") +
		d.container(rapid.SampledFrom([]string{"{}", "{}", "{}", "[]"}).Draw(t, "root"), 3, "", unit) +
		rapid.SampledFrom([]string{"", d.newline}).Draw(t, "end") + d.space("")
	return []byte(text)
}

func TestJSONKeepsTheLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { keepLaws(t, jsonFormat{}, drawJSONText(t), readJSONC) })
}

func FuzzJSON(f *testing.F) {
	for _, text := range []string{
		"", "{}", "[]", "{\"a\":1}", "{\n  \"a\": {\"b\": [1, 2]} // c\n}\n", "[1,2,]", "\xef\xbb\xbf{}", "{\"a\":1,\"a\":2}",
		"{ // c\n \"a\": 1, \"b\": 2}", "{\"a\": [ /* x */ ]\r\n}", "{\"\\u0061\": 1e999999999}",
	} {
		f.Add([]byte(text), "a.b", "\"v\"", byte(0))
		f.Add([]byte(text), "a", "[1,{\"x\":null}]", byte(1))
		f.Add([]byte(text), "a", "1", byte(2))
	}
	f.Fuzz(func(t *testing.T, text []byte, key, value string, mode byte) {
		fuzzLaws(t, jsonFormat{}, text, key, value, mode, readJSONC)
	})
}

func TestJSONEdits(t *testing.T) {
	for _, c := range []struct{ name, text, key, value, want string }{
		{"a scalar in place", "{\n    \"b\" : 1,  // one\n    \"a\": [1, 2]\n}", "b", "2", "{\n    \"b\" : 2,  // one\n    \"a\": [1, 2]\n}"},
		{"a new member as its neighbours", "{\n    \"b\" : 1,\n    \"a\" : [1, 2] // last\n}\n", "c", "[3]", "{\n    \"b\" : 1,\n    \"a\" : [1, 2], // last\n    \"c\" : [3]\n}\n"},
		{"parents that are missing", "{\n\t\"a\": {}\n}", "x.y", "1", "{\n\t\"a\": {},\n\t\"x\": {\n\t\t\"y\": 1\n\t}\n}"},
		{"into an empty object", "{\n\t\"a\": {}\n}", "a.b", "true", "{\n\t\"a\": {\n\t\t\"b\": true\n\t}\n}"},
		{"on one line", `{"a":1}`, "b.c", `["x"]`, `{"a":1,"b":{"c":["x"]}}`},
		{"on one line with space", `{ "a": 1 }`, "b.c", `["x"]`, `{ "a": 1, "b": { "c": ["x"] } }`},
		{"a trailing comma", "{\n  \"a\": 1,\n}", "b", "2", "{\n  \"a\": 1,\n  \"b\": 2,\n}"},
		{"windows", "{\r\n  \"a\": 1\r\n}\r\n", "b", "{\"c\":2}", "{\r\n  \"a\": 1,\r\n  \"b\": {\r\n    \"c\": 2\r\n  }\r\n}\r\n"},
		{"an empty file", "", "a.b", "1", "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n"},
		{"the same number spelled otherwise", `{"a": 1e3}`, "a", "1000", `{"a": 1e3}`},
		{"a number too large for a float", `{"a": 9007199254740992}`, "a", "9007199254740993", `{"a": 9007199254740993}`},
		{"null is not absent", `{"b": 1}`, "a", "null", `{"b": 1, "a": null}`},
		{"a place in a list", "[1, 2, 3]", "1", "5", "[1, 5, 3]"},
		{"the next place in a list", "{\"a\": [1, 2\n]}", "a.2", "3", "{\"a\": [1, 2, 3\n]}"},
		{"a list within a comment's reach", "[1 // one\n]", "1", "2", "[1, // one\n  2\n]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := Wish{Steps: dotted(c.key), Value: plainJSON(t, c.value)}
			keepExact(t, jsonFormat{}, c.text, w, c.want)
		})
	}
}

func TestJSONMembersAndAbsence(t *testing.T) {
	for _, c := range []struct {
		name, text string
		w          Wish
		want       string
	}{
		{"a member", `{"a": ["x"]}`, Wish{Steps: dotted("a"), Member: true, Value: "y"}, `{"a": ["x", "y"]}`},
		{"a member that is there", `{"a": ["\u0079"]}`, Wish{Steps: dotted("a"), Member: true, Value: "y"}, `{"a": ["\u0079"]}`},
		{"a member of no list yet", `{}`, Wish{Steps: dotted("a"), Member: true, Value: "y"}, "{\n  \"a\": [\n    \"y\"\n  ]\n}"},
		{"a member before another", "{\"a\": [\n  \"x\", // x\n  \"z\" // z\n]}", Wish{Steps: dotted("a"), Member: true, Value: "y", Before: "z"}, "{\"a\": [\n  \"x\", // x\n  \"y\",\n  \"z\" // z\n]}"},
		{"a member before the first", `["x"]`, Wish{Member: true, Value: "y", Before: "x"}, `["y", "x"]`},
		{"a member after another", `["x", "z"]`, Wish{Member: true, Value: "y", After: "x"}, `["x", "y", "z"]`},
		{"a member after the last", `["x"]`, Wish{Member: true, Value: "y", After: "x"}, `["x", "y"]`},
		{"absent in the middle", "{\n  \"a\": 1,\n  \"b\": 2, // two\n  \"c\": 3\n}", Wish{Steps: dotted("b"), Absent: true}, "{\n  \"a\": 1,\n  // two\n  \"c\": 3\n}"},
		{"absent at the end", "{\n  \"a\": 1,\n  \"b\": 2\n}", Wish{Steps: dotted("b"), Absent: true}, "{\n  \"a\": 1\n}"},
		{"absent and alone", `{"a": {"b": 1}}`, Wish{Steps: dotted("a.b"), Absent: true}, `{"a": {}}`},
		{"absent behind a scalar", `{"a": 1}`, Wish{Steps: dotted("a.b"), Absent: true}, `{"a": 1}`},
	} {
		t.Run(c.name, func(t *testing.T) { keepExact(t, jsonFormat{}, c.text, c.w, c.want) })
	}
}

func TestJSONRefusesWithThePlace(t *testing.T) {
	for _, c := range []struct{ text, key, want string }{
		{"{\n  \"a\": 1,\n  \"a\": 2\n}", "a", `line 3, column 3: the name "a" is there twice, in line 2, column 3 too; golem cannot tell which of them counts`},
		{"{\"x\": {}, \"\\u0078\": {}}", "x.y", `line 1, column 11: the name "\u0078" is there twice, in line 1, column 2 too; golem cannot tell which of them counts`},
		{"{\n \"a\": \"s\"}", "a.b", "line 2, column 7: the key leads through it, and it is neither an object nor a list"},
		{"{\"a\": null}", "a.b", "line 1, column 7: the key leads through it, and it is neither an object nor a list"},
		{"{\"a\": [1]}", "a.b", `line 1, column 7: the key leads through it by the name "b", but it is a list; its members have numbers, from 0`},
		{"{\"a\": [1]}", "a.3", "line 1, column 7: the next member of this list is number 1, not 3"},
		{"{\"a\": 1", "a", "line 1, column 1: this bracket is not closed"},
		{"{\"a\" 1}", "a", "line 1, column 6: a colon is to come here"},
		{"{\"a\": 1 \"b\": 2}", "b", "line 1, column 9: a comma or a closing bracket is to come here"},
		{"{\"a\": 01}", "a", "line 1, column 7: this is no number as JSON writes it"},
		{"{\"a\": \"\t\"}", "a", `line 1, column 8: a string holds no such byte as it is; it is written as \u0009`},
		{"{} {}", "a", "line 1, column 4: something follows the end of the document"},
		{"{\"a\": .5}", "a", "line 1, column 7: a value is to come here"},
		{"{'a': 5}", "a", "line 1, column 2: a name in double quotes is to come here"},
		{"{/* }", "a", "line 1, column 2: this comment has no end"},
		{"\xff\xfe{\x00}\x00", "a", "it is UTF-16 or UTF-32 text; only UTF-8 can be edited"},
		{strings.Repeat("[", 20000), "a", `line 1, column 1: the key leads through it by the name "a", but it is a list; its members have numbers, from 0`},
		{"{\"b\":" + strings.Repeat("[", 20000), "a", "line 1, column 10005: values lie deeper in each other than golem reads"},
	} {
		out, _, err := jsonFormat{}.Put([]byte(c.text), Wish{Steps: dotted(c.key), Value: "v"})
		if err == nil {
			t.Errorf("%.40s: put gave %s", c.text, out)
			continue
		}
		if diff := cmp.Diff(c.want, err.Error()); diff != "" {
			t.Errorf("%.40s: %s", c.text, diff)
		}
	}
}

func TestAnEditComesOffATextThatWasConvertedToWindowsSince(t *testing.T) {
	text := "{\n  \"a\": 1\n}\n"
	for _, f := range []Format{jsonFormat{}, yamlFormat{}} {
		for _, key := range []string{"b", "c.d", "a"} {
			if _, yaml := f.(yamlFormat); yaml {
				text = "a: 1\nx:\n  y: 2\n"
			}
			w := Wish{Steps: dotted(key), Value: "v"}
			out, receipt, err := f.Put([]byte(text), w)
			if err != nil {
				t.Fatal(err)
			}
			windows := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
			back := f.Peel([]byte(windows(string(out))), w, receipt)
			if diff := cmp.Diff(windows(text), string(back)); diff != "" {
				t.Errorf("%T %s: %s", f, key, diff)
			}
		}
	}
}
