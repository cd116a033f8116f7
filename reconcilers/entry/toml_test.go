package entry

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const tomlDoc = `# top
title = "x" # named
n = 1
hosts = ["a", "b"]
ports = [
  80, # http
  443,
]
point = { x = 1, y = 2 }
a.b.c = 1

[server]
name   = 'web'
ratio  = 0.5
when   = 1979-05-27 07:32:00

# about deep
[server.deep.er]
k = """
x"""

[[item]]
id = 1

[item.sub]
v = true

[[item]]
id = 2
`

type tomlCase struct {
	name, text string
	w          Wish
	want       string
	refusal    string
}

func mixed(list ...any) []Step {
	var s []Step
	for _, x := range list {
		if n, ok := x.(int); ok {
			s = append(s, Step{Index: n, Place: true})
			continue
		}
		s = append(s, Step{Name: x.(string)})
	}
	return s
}

func TestTOMLCases(t *testing.T) {
	in := func(old, new string) string {
		if !strings.Contains(tomlDoc, old) {
			t.Fatalf("%q is not in the text", old)
		}
		return strings.Replace(tomlDoc, old, new, 1)
	}
	one := json.Number("1")
	for _, c := range []tomlCase{
		{"a value", tomlDoc, Wish{Steps: steps("title"), Value: "a\"b"}, in(`"x" #`, `"a\"b" #`), ""},
		{"true already", tomlDoc, Wish{Steps: steps("n"), Value: json.Number("1.0")}, tomlDoc, ""},
		{"a literal stays one", tomlDoc, Wish{Steps: steps("server", "name"), Value: `c:\d`}, in("'web'", `'c:\d'`), ""},
		{"a fraction stays one", tomlDoc, Wish{Steps: steps("server", "ratio"), Value: one}, in("0.5", "1.0"), ""},
		{"a time", tomlDoc, Wish{Steps: steps("server", "when"), Value: "now"}, in("1979-05-27 07:32:00", `"now"`), ""},
		{"a new key at the top", tomlDoc, Wish{Steps: steps("new"), Value: true}, in("a.b.c = 1\n", "a.b.c = 1\nnew = true\n"), ""},
		{"a new key in a table", tomlDoc, Wish{Steps: steps("server", "port"), Value: one}, in("07:32:00\n", "07:32:00\nport   = 1\n"), ""},
		{"a new key in a table within", tomlDoc, Wish{Steps: steps("server", "deep", "er", "l"), Value: one}, in("x\"\"\"\n", "x\"\"\"\nl = 1\n"), ""},
		{"a table without a header", tomlDoc, Wish{Steps: steps("server", "deep", "l"), Value: one}, tomlDoc + "\n[server.deep]\nl = 1\n", ""},
		{"a missing table", tomlDoc, Wish{Steps: steps("x", "y z", "k"), Value: "v"}, tomlDoc + "\n[x.\"y z\"]\nk = \"v\"\n", ""},
		{"beside dotted keys", tomlDoc, Wish{Steps: steps("a", "b", "d"), Value: one}, in("a.b.c = 1\n", "a.b.c = 1\na.b.d = 1\n"), ""},
		{"deeper than dotted keys", tomlDoc, Wish{Steps: steps("a", "e", "f"), Value: one}, in("a.b.c = 1\n", "a.b.c = 1\na.e.f = 1\n"), ""},
		{"in an inline table", tomlDoc, Wish{Steps: steps("point", "y"), Value: json.Number("3")}, in("y = 2", "y = 3"), ""},
		{"new in an inline table", tomlDoc, Wish{Steps: steps("point", "z"), Value: json.Number("3")}, in("y = 2 }", "y = 2, z = 3 }"), ""},
		{"gone from an inline table", tomlDoc, Wish{Steps: steps("point", "x"), Absent: true}, in("x = 1, ", ""), ""},
		{"a place in a list", tomlDoc, Wish{Steps: mixed("hosts", 1), Value: "c"}, in(`"b"`, `"c"`), ""},
		{"a member", tomlDoc, Wish{Steps: steps("hosts"), Value: "c", Member: true}, in(`"b"]`, `"b", "c"]`), ""},
		{"a member in front", tomlDoc, Wish{Steps: steps("hosts"), Value: "c", Member: true, Before: "a"}, in(`["a"`, `["c", "a"`), ""},
		{"a member on a line of its own", tomlDoc, Wish{Steps: steps("ports"), Value: json.Number("8080"), Member: true}, in("  443,\n", "  443,\n  8080,\n"), ""},
		{"a member of no list", tomlDoc, Wish{Steps: steps("new"), Value: "c", Member: true}, in("a.b.c = 1\n", "a.b.c = 1\nnew = [\"c\"]\n"), ""},
		{"a table of a list", tomlDoc, Wish{Steps: mixed("item", 1, "id"), Value: one}, in("id = 2", "id = 1"), ""},
		{"new in a table of a list", tomlDoc, Wish{Steps: mixed("item", 0, "k"), Value: one}, in("id = 1\n", "id = 1\nk = 1\n"), ""},
		{"a new table in a table of a list", tomlDoc, Wish{Steps: mixed("item", 0, "more", "k"), Value: one}, in("v = true\n", "v = true\n\n[item.more]\nk = 1\n"), ""},
		{"gone", tomlDoc, Wish{Steps: steps("ports"), Absent: true}, in("ports = [\n  80, # http\n  443,\n]\n", ""), ""},
		{
			"a table gone", tomlDoc,
			Wish{Steps: steps("server"), Absent: true},
			tomlDoc[:strings.Index(tomlDoc, "[server]")] + "\n# about deep\n" + tomlDoc[strings.Index(tomlDoc, "\n[[item]]"):], "",
		},
		{"a whole table", "", Wish{Steps: steps("t"), Value: map[string]any{"b": one, "a": []any{"x"}}}, "t = { a = [\"x\"], b = 1 }\n", ""},
		{"empty", "", Wish{Steps: steps("a", "b"), Value: one}, "[a]\nb = 1\n", ""},
		{"no final newline", "[a]\nb = 1", Wish{Steps: steps("a", "c"), Value: one}, "[a]\nb = 1\nc = 1\n", ""},
		{"CRLF", "[a]\r\nb=1\r\n", Wish{Steps: steps("c", "d"), Value: one}, "[a]\r\nb=1\r\n\r\n[c]\r\nd=1\r\n", ""},
		{"BOM", bom + "a = 2", Wish{Steps: steps("a"), Value: one}, bom + "a = 1", ""},
		{"null", tomlDoc, Wish{Steps: steps("n"), Value: nil}, "", "no null"},
		{"a null within", tomlDoc, Wish{Steps: steps("n"), Value: map[string]any{"a": nil}}, "", "no null"},
		{"two kinds", tomlDoc, Wish{Steps: steps("n"), Value: []any{"a", one}}, "", "one kind"},
		{"a member of another kind", tomlDoc, Wish{Steps: steps("hosts"), Value: one, Member: true}, "", "line 4, column 9: the list holds values of one kind"},
		{"through a value", tomlDoc, Wish{Steps: steps("n", "m"), Value: one}, "", "line 3, column 5: the key leads through a value"},
		{"a table with a header", tomlDoc, Wish{Steps: steps("server"), Value: one}, "", "table with a header"},
		{"a list of tables", tomlDoc, Wish{Steps: steps("item", "id"), Value: one}, "", "by its number"},
		{"a key twice", "a = 1\na = 2\n", Wish{Steps: steps("b"), Value: one}, "", "line 2"},
		{"not TOML", "a = \n", Wish{Steps: steps("b"), Value: one}, "", "line 1"},
		{"Latin-1", "a = \"\xe9\"\n", Wish{Steps: steps("b"), Value: one}, "", "line 1"},
		{"too large", "", Wish{Steps: steps("b"), Value: json.Number("9223372036854775808")}, "", "64 bits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, receipt, err := tomlFormat{}.Put([]byte(c.text), c.w)
			if c.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), c.refusal) {
					t.Fatalf("got %v and %q, want a refusal with %q", err, out, c.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(out) != c.want {
				t.Fatalf("got\n%s\nwant\n%s", out, c.want)
			}
			if (receipt == nil) != (c.text == c.want) {
				t.Fatalf("receipt %s", receipt)
			}
			if got, receipt := putLaws(t, tomlFormat{}, []byte(c.text), c.w); receipt != nil {
				changedLaws(t, tomlLines, []byte(c.text), got, c.w, receipt, 0)
			}
		})
	}
}

// drawTOML draws a whole TOML text, in many spellings.
var drawTOML = rapid.Custom(func(t *rapid.T) []byte {
	eol := rapid.SampledFrom([]string{"\n", "\n", "\r\n"}).Draw(t, "eol")
	scalar := rapid.SampledFrom([]string{"1", "0x1F", "1_000", "-2.50", "1e3", "nan", "true", `"x"`, `'a\b'`, `"a \" # b"`, "'''q'''", "1979-05-27", "1979-05-27 07:32:00", "\"\"\"m" + eol + "n\"\"\"", `"ä"`})
	value := rapid.OneOf(scalar, rapid.SampledFrom([]string{
		"[]", "[ ]", `["a", "b"]`, "[1,2]", "[" + eol + "  1, # one" + eol + "  2," + eol + "]", "[[1], [2]]", "[" + eol + "\t'x'" + eol + "]",
		"{}", "{ k = 1 }", "{k=1,l=[1]}", `{ k.m = 1, "l" = 'x' }`, "[{ k = 1 }, { k = 2 }]",
	}))
	comment := rapid.SampledFrom([]string{"", "", "", " # why"})
	sign := rapid.SampledFrom([]string{" = ", "=", "   = "})
	line := func(key string) string {
		return key + sign.Draw(t, "sign") + value.Draw(t, "value") + comment.Draw(t, "comment")
	}
	var lines []string
	block := func(indent string) {
		for _, key := range []string{"k", "l", `"m n"`, "o.p", "o.q"} {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1:
				lines = append(lines, indent+line(key))
			case 2:
				lines = append(lines, rapid.SampledFrom([]string{"", "# note", "  # note"}).Draw(t, "none"))
			}
		}
	}
	block("")
	for _, head := range []string{"[t]", "[t.u]", "[[v]]", "[v.w]", "[[v]]", "[ x . \"y\" ]", "[x]"} {
		if rapid.Bool().Draw(t, "head") && (head != "[v.w]" || strings.Contains(strings.Join(lines, "\n"), "[[v]]")) {
			lines = append(lines, rapid.SampledFrom([]string{"", "# about"}).Draw(t, "before"), head+comment.Draw(t, "comment"))
			block(rapid.SampledFrom([]string{"", "", "  "}).Draw(t, "indent"))
		}
	}
	text := strings.Join(lines, eol)
	if rapid.Bool().Draw(t, "final") && text != "" {
		text += eol
	}
	if rapid.IntRange(0, 9).Draw(t, "bom") == 0 {
		text = bom + text
	}
	return []byte(text)
})

// drawTOMLWish draws a wish about a key that is there, or might be.
func drawTOMLWish(t *rapid.T, doc any) Wish {
	var w Wish
	for depth := 0; depth < 4; depth++ {
		var step Step
		switch in := doc.(type) {
		case []any:
			step = Step{Index: rapid.IntRange(0, len(in)).Draw(t, "place"), Place: true}
		default:
			step = Step{Name: rapid.SampledFrom([]string{"k", "l", "m n", "o", "p", "t", "u", "v", "w", "x", "y", "new"}).Draw(t, "name")}
		}
		w.Steps = append(w.Steps, step)
		doc, _ = tomlGet(doc, []Step{step})
		if doc == nil && rapid.IntRange(0, 2).Draw(t, "deeper") > 0 || rapid.IntRange(0, 3).Draw(t, "stop") == 0 {
			break
		}
	}
	switch rapid.IntRange(0, 4).Draw(t, "do") {
	case 0:
		w.Absent = true
		return w
	case 1, 2:
		w.Member = true
	}
	w.Value = rapid.OneOf(
		rapid.SampledFrom([]any{"x", json.Number("7"), json.Number("1.5"), true, nil, []any{}, []any{"a", "b"}, map[string]any{"k": json.Number("1")}, []any{"a", true}}),
		rapid.Map(rapid.String(), func(s string) any { return s }),
	).Draw(t, "value")
	return w
}

func TestTOMLLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawTOML.Draw(t, "text")
		doc, err := readTOML(text)
		if err != nil {
			t.Skip("not TOML")
		}
		w := drawTOMLWish(t, doc)
		if out, receipt := putLaws(t, tomlFormat{}, text, w); receipt != nil && !crowded(text) {
			changedLaws(t, tomlLines, text, out, w, receipt, rapid.IntRange(0, 40).Draw(t, "where"))
		}
		wishes := []Wish{w}
		for range rapid.IntRange(0, 5).Draw(t, "more") {
			wishes = append(wishes, drawTOMLWish(t, doc))
		}
		pileLaws(t, tomlFormat{}, text, wishes)
	})
}

// crowded says that a text has equal lines, of which nobody could tell which was whose.
func crowded(text []byte) bool {
	seen := map[string]bool{}
	for _, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line != "" && seen[line] {
			return true
		}
		seen[line] = true
	}
	return false
}

// TestTOMLPythonAgrees asks another reader what a text says after an edit.
func TestTOMLPythonAgrees(t *testing.T) {
	const script = `
import sys, json, tomllib
for line in sys.stdin:
    try:
        v = tomllib.loads(json.loads(line))
    except Exception:
        print("null"); continue
    print(json.dumps(v, default=lambda x: "time " + str(x)))
`
	if err := exec.Command("python3", "-c", "import tomllib").Run(); err != nil {
		t.Skip("no python3 with tomllib here")
	}
	var texts []string
	var wishes []Wish
	rapid.Check(t, func(t *rapid.T) {
		text := drawTOML.Draw(t, "text")
		doc, err := readTOML(text)
		if err != nil || bytes.HasPrefix(text, []byte(bom)) {
			t.Skip("not TOML")
		}
		w := drawTOMLWish(t, doc)
		if out, receipt, err := (tomlFormat{}).Put(text, w); err == nil && receipt != nil {
			texts, wishes = append(texts, string(text), string(out)), append(wishes, w)
		}
	})
	var stdin bytes.Buffer
	for _, text := range texts {
		if err := json.NewEncoder(&stdin).Encode(text); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("python3", "-c", script)
	cmd.Stdin = &stdin
	said, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	for i, w := range wishes {
		before, after := decodePlain(t, lines[2*i]), decodePlain(t, lines[2*i+1])
		if before == nil {
			continue // a newer TOML than that reader's
		}
		if after == nil {
			t.Fatalf("python does not read\n%s\nmade by %s from\n%s", texts[2*i+1], wishText(w), texts[2*i])
		}
		if doc, ok := after.(map[string]any); !ok || !tomlHolds(doc, w) {
			t.Fatalf("python does not read %s in\n%s", wishText(w), texts[2*i+1])
		}
		if a, b := tomlWithout(before, w.Steps, true), tomlWithout(after, w.Steps, !w.Absent); !reflect.DeepEqual(a, b) {
			t.Fatalf("beside %s, python reads\n%v\nand read\n%v\nin\n%s", wishText(w), b, a, texts[2*i+1])
		}
	}
	t.Logf("%d edits read by python", len(wishes))
}

func decodePlain(t *testing.T, line string) any {
	return plainJSON(t, strings.ReplaceAll(line, "NaN", `"nan"`))
}

func TestTOMLRealFiles(t *testing.T) {
	folders := []string{"/etc", "/usr/share", "/usr/lib"}
	if cache, err := exec.Command("go", "env", "GOMODCACHE").Output(); err == nil {
		folders = append(folders, strings.TrimSpace(string(cache)))
	}
	files := realFiles(t, func(path string) bool { return filepath.Ext(path) == ".toml" || filepath.Base(path) == "Cargo.lock" }, folders...)
	edits, refused, unread := 0, 0, 0
	for n, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		s, err := parseTOML(text, target{})
		if err != nil {
			unread++
			continue
		}
		for _, w := range realTOMLWishes(s, n) {
			out, receipt := putLaws(named{t, path}, tomlFormat{}, text, w)
			if receipt == nil {
				refused++
				continue
			}
			edits++
			changedLaws(named{t, path}, tomlLines, text, out, w, receipt, n*7)
		}
	}
	t.Logf("%d files, %d edits put and taken off, %d refused or true already, %d files not TOML", len(files), edits, refused, unread)
}

func realTOMLWishes(s *sheet, n int) []Wish {
	wishes := []Wish{{Steps: steps("golem", "was"), Value: "here"}, {Steps: steps("golem"), Value: true}}
	var pairs []row
	for _, r := range s.rows {
		if r.kind == pairRow {
			pairs = append(pairs, r)
		}
	}
	if len(pairs) == 0 {
		return wishes
	}
	for _, k := range []int{0, n % len(pairs), len(pairs) - 1} {
		var way []Step
		for _, p := range s.full(pairs[k]) {
			way = append(way, Step{Name: p.name, Index: max(0, p.place), Place: p.place >= 0})
		}
		beside := append(way[:len(way)-1:len(way)-1], Step{Name: "golem"})
		wishes = append(wishes, Wish{Steps: way, Value: "golem"}, Wish{Steps: way, Value: "golem", Member: true}, Wish{Steps: way, Absent: true},
			Wish{Steps: beside, Value: json.Number("4")}, Wish{Steps: append(beside, Step{Name: "sub"}), Value: false}, Wish{Steps: way[:1], Absent: true})
	}
	return wishes
}

func FuzzTOML(f *testing.F) {
	f.Add([]byte(tomlDoc), "server.name", "x", byte(0))
	f.Add([]byte(tomlDoc), "item.0.sub.v", "x", byte(1))
	f.Add([]byte(tomlDoc), "hosts", "x", byte(2))
	f.Add([]byte("a = {b=[{c=1}]}\r\n"), "a.b.0.d.e", "\x00", byte(0))
	f.Fuzz(func(t *testing.T, text []byte, key, value string, do byte) {
		w := Wish{Steps: dotted(key), Value: value, Absent: do%3 == 1, Member: do%3 == 2}
		out, receipt := putLaws(t, tomlFormat{}, text, w)
		if receipt == nil {
			return
		}
		tomlFormat{}.Peel(append([]byte("# a stranger\n"), out...), w, receipt)
		tomlFormat{}.Peel(text, w, receipt)
	})
}
