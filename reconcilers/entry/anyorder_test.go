package entry

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// onTrees are wishes that texts of objects in objects take.
var onTrees = []Wish{
	{Steps: dotted("a"), Value: "new"},
	{Steps: dotted("b.x"), Value: "y"},
	{Steps: dotted("n"), Value: "x"},
	{Steps: dotted("o.p"), Value: "x"},
	{Steps: dotted("gone"), Absent: true},
	{Steps: dotted("l"), Member: true, Value: "w"},
}

// orders are texts of every format, and wishes about them that have nothing to do with each
// other.
var orders = map[string]struct {
	texts  []string
	wishes []Wish
}{
	"json": {
		[]string{
			"{\n  \"a\" : 1, // c\n  \"b\": {\"x\": [1, 2]},\n  \"gone\": true,\n  \"l\": [\n    \"u\",\n    \"v\"\n  ],\n  \"m\": {}\n}\n",
			"{\"b\": {\"x\":1}, \"l\": [\"u\"], \"gone\": 1, \"a\": 2, \"m\":{ }}\n",
		},
		append(slices.Clip(onTrees), Wish{Steps: dotted("m.q"), Value: "x"}),
	},
	"yaml": {
		[]string{
			"a : 1 # c\nb:\n  x: [1, 2]\n  z: 1\ngone: true\nl:\n- u\n- v\n\nlast: 1\n",
			"---\nb: {x: 1}\nl: [u]\ngone: |\n  text\na: 'q'\nlast:\n  deep: 1\n",
		},
		append(slices.Clip(onTrees), Wish{Steps: dotted("b.q"), Value: "x"}),
	},
	"toml": {
		[]string{
			"a = 1 # c\ngone = true\nl = [\n  \"u\",\n  \"v\",\n]\n\n[b]\nx = 0x10\n\n[[t]]\nk = 1\n",
			"b.x = 1\nl = [\"u\"]\ngone = '''\ntext'''\na = 'q'\nm = { n = 1 }\n[last]\n  deep = 1\n",
		},
		append(slices.Clip(onTrees), Wish{Steps: dotted("b.q"), Value: "x"}, Wish{Steps: dotted("t"), Member: true, Value: map[string]any{"k": "x", "j": "y"}}),
	},
	"ini": {
		[]string{"; c\ng=1\n[b]\nx = 1 ; c\ngone = true\n\n[c]\ny=1\n", "[b]\nx=1\n[c]\ng=1\n\ty = 2\n"},
		[]Wish{
			{Steps: dotted("b.x"), Value: "new"},
			{Steps: dotted("b.n"), Value: "y"},
			{Steps: dotted("c.n"), Value: "x"},
			{Steps: dotted("o.p"), Value: "x"},
			{Steps: dotted("b.gone"), Absent: true},
			{Steps: dotted("c.y"), Member: true, Value: "w"},
			{Steps: dotted("q.r"), Value: "x"},
		},
	},
	"env": {
		[]string{"# c\nA=1 # c\nGONE='x'\nexport B=2\n\nL=\"two\nlines\"\n", "export A=1\nexport GONE=2\n"},
		[]Wish{
			{Steps: dotted("A"), Value: "new"},
			{Steps: dotted("B"), Value: "y"},
			{Steps: dotted("N"), Value: "x"},
			{Steps: dotted("O"), Value: "x"},
			{Steps: dotted("GONE"), Absent: true},
			{Steps: dotted("L"), Value: "w"},
		},
	},
	"keyword": {
		[]string{"# c\nA  1 # c\nGone yes\nL u\nL v\n\nMatch User x\n\tB no\n", "A 2\nGone 1\nMatch User x\n  B 1\n"},
		[]Wish{
			{Steps: dotted("A"), Value: "new"},
			{Steps: []Step{{Name: "Match User x"}, {Name: "B"}}, Value: "y"},
			{Steps: dotted("N"), Value: "x"},
			{Steps: []Step{{Name: "Match User y"}, {Name: "B"}}, Value: "x"},
			{Steps: dotted("Gone"), Absent: true},
			{Steps: dotted("L"), Member: true, Value: "w"},
		},
	},
}

// TestLawPeelInAnyOrder: edits of different keys come off in whatever order, to the byte,
// though others have written at the beginning and at the end.
func TestLawPeelInAnyOrder(t *testing.T) {
	for name, c := range orders {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				f := Formats[name]
				text := []byte(rapid.SampledFrom(c.texts).Draw(t, "text"))
				if rapid.IntRange(0, 4).Draw(t, "crlf") == 0 {
					text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
				}
				now := text
				var pile []layer
				for _, i := range rapid.Permutation(indices(len(c.wishes))).Draw(t, "put") {
					if rapid.IntRange(0, 3).Draw(t, "out") == 0 {
						continue
					}
					if out, receipt := putLaws(t, f, now, c.wishes[i]); receipt != nil {
						now, pile = out, append(pile, layer{c.wishes[i], receipt})
					}
				}
				top := now
				theirs := map[string]string{"json": "// theirs", "ini": "; theirs"}[name]
				if theirs == "" {
					theirs = "# theirs"
				}
				theirs += ending(text, len(text))
				now = append([]byte(theirs), now...)
				for _, i := range rapid.Permutation(indices(len(pile))).Draw(t, "peel") {
					now = f.Peel(now, pile[i].w, pile[i].receipt)
				}
				if rest, ok := strings.CutPrefix(string(now), theirs); !ok || rest != string(text) {
					t.Fatalf("in this order they came off as\n%s\nnot\n%s\nfrom\n%s", now, text, top)
				}
			})
		})
	}
}
