package entry

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestTOMLMakesATableOfAListOfTables(t *testing.T) {
	mirrors := "# two\n[[mirror]]\nurl = \"one\"\n\n[[mirror]]\nurl = \"two\"\n[mirror.tls]\nca = \"/x\"\n\n[log]\nlevel = \"info\"\n"
	place := func(n int) Step { return Step{Index: n, Place: true} }
	for name, c := range map[string]struct {
		text, want string
		w          Wish
	}{
		"one past the last, by a key": {
			mirrors, strings.Replace(mirrors, "\n[log]", "\n[[mirror]]\nurl = \"three\"\n\n[log]", 1),
			Wish{Steps: []Step{{Name: "mirror"}, place(2), {Name: "url"}}, Value: "three"},
		},
		"one past the last, by a string": {
			mirrors, strings.Replace(mirrors, "\n[log]", "\n[[mirror]]\nurl = \"three\"\n\n[log]", 1),
			Wish{Steps: dotted("mirror.2.url"), Value: "three"},
		},
		"one past the last, whole": {
			mirrors, strings.Replace(mirrors, "\n[log]", "\n[[mirror]]\ntls = { ca = \"/y\" }\nurl = \"three\"\n\n[log]", 1),
			Wish{Steps: []Step{{Name: "mirror"}, place(2)}, Value: map[string]any{"url": "three", "tls": map[string]any{"ca": "/y"}}},
		},
		"a member": {
			mirrors, strings.Replace(mirrors, "\n[log]", "\n[[mirror]]\nprio = 5\nurl = \"three\"\n\n[log]", 1),
			Wish{Steps: dotted("mirror"), Member: true, Value: map[string]any{"url": "three", "prio": json.Number("5")}},
		},
		"the first of a list that is not there": {
			"[log]\nlevel = 1", "[log]\nlevel = 1\n\n[[a.b]]\nc.d = true\n",
			Wish{Steps: append(dotted("a.b"), place(0), Step{Name: "c"}, Step{Name: "d"}), Value: true},
		},
		"in an empty text": {
			"", "[[x]]\ny = \"z\"\n", Wish{Steps: []Step{{Name: "x"}, place(0), {Name: "y"}}, Value: "z"},
		},
		"in a table of another list": {
			"[[a]]\nn = 1\n[[a.b]]\nx = 1\n\n[[a]]\nn = 2\n", "[[a]]\nn = 1\n[[a.b]]\nx = 1\n\n[[a.b]]\nx = 2\n\n[[a]]\nn = 2\n",
			Wish{Steps: []Step{{Name: "a"}, place(0), {Name: "b"}, place(1), {Name: "x"}}, Value: json.Number("2")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			keepExact(t, tomlFormat{}, c.text, c.w, c.want)
			_, receipt, err := tomlFormat{}.Put([]byte(c.text), c.w)
			if err != nil {
				t.Fatal(err)
			}
			// Others have written before it, and behind it.
			theirs := []byte("# theirs\n" + c.want + "[theirs]\nx = 1\n")
			back := tomlFormat{}.Peel(theirs, c.w, receipt)
			if want := "# theirs\n" + c.text + "[theirs]\nx = 1\n"; !bytes.Equal(back, []byte(want)) && strings.HasSuffix(c.text, "\n") {
				t.Errorf("with others' lines it came off as\n%s\nnot\n%s", back, want)
			}
		})
	}
}

func TestTOMLRefusesATableThatCannotBe(t *testing.T) {
	text := "[[mirror]]\nurl = \"one\"\n"
	place := func(n int) Step { return Step{Index: n, Place: true} }
	for why, w := range map[string]Wish{
		"a list begins at 0":        {Steps: []Step{{Name: "x"}, place(1), {Name: "y"}}, Value: "z"},
		"is a table, not a text":    {Steps: dotted("mirror"), Member: true, Value: "z"},
		"needs at least one key":    {Steps: dotted("mirror"), Member: true, Value: map[string]any{}},
		"take before and after out": {Steps: dotted("mirror"), Member: true, Value: map[string]any{"a": "b"}, Before: "x"},
		"or 1 for a new one":        {Steps: []Step{{Name: "mirror"}, place(7), {Name: "y"}}, Value: "z"},
		"is a table, not a list":    {Steps: []Step{{Name: "mirror"}, place(1)}, Member: true, Value: "z"},
	} {
		if _, _, err := (tomlFormat{}).Put([]byte(text), w); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%+v: %v, not %q", w, err, why)
		}
	}
}
