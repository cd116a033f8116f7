package scrolls

import (
	"encoding/json"
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// The ids here are pinned: if one changes, so does the meaning of cidFormat, and that
// needs another name.
func TestContentIDIsPinned(t *testing.T) {
	plain := Kind{Name: "job"}
	file := Kind{Name: "file", Attrs: []Attr{{Name: "source", File: true}}}
	cases := []struct {
		name  string
		kind  Kind
		attrs Attrs
		want  ContentID
	}{
		{"empty", plain, Attrs{}, "a058af64e91b48c6e67c3e1914c7520b8c35edb51d2100bed30255467b7c0101"},
		{"text", plain, Attrs{"name": "a", "more": "<b>&\u2028\n"}, "7577e1a31d3f4b20be711700d0981ebd8d91338233574316ff4c89edaa5c01be"},
		{"number", plain, Attrs{"n": json.Number("1")}, "6f89c04ed2d153ad6360826b3496ce85f9e5c026aa3b6ab118d87bcad7090511"},
		{"nested", plain, Attrs{"b": []any{true, nil, json.Number("0.1")}, "a": map[string]any{"z": "", "y": []any{}}}, "dc2b484d81de6b6c0c0cacbaf2d1928905c39af6e7c4601b90a23343a200d16c"},
		{"source", file, Attrs{"path": "/a", "source": map[string]any{"path": "x", "sha256": "ab", "size": json.Number("2")}}, "1c51f50d8d8bf6e88a365c05e73a5164f66c6a61b4ed343336135ab8fb48ed00"},
	}
	for _, c := range cases {
		if got := CID(c.kind, &Glyph{Kind: c.kind.Name, Attrs: c.attrs}); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestContentIDIsOfTheGlyphAlone(t *testing.T) {
	kind := Kind{Name: "job"}
	a := &Glyph{Kind: "job", Attrs: Attrs{"n": json.Number("1")}}
	b := &Glyph{
		Kind: "job", Attrs: Attrs{"n": json.Number("1")}, Label: "other", Leaf: "other",
		Secret: []string{"n"}, Version: 7, At: Place{Filename: "x"},
	}
	if CID(kind, a) != CID(kind, b) {
		t.Error("label, leaf, place or version changed the id")
	}
	if CID(kind, a) == CID(Kind{Name: "task"}, a) {
		t.Error("two kinds share an id")
	}
}

func TestNumbersThatAreEqualHaveOneContentID(t *testing.T) {
	kind := Kind{Name: "job"}
	id := func(n string) ContentID { return CID(kind, &Glyph{Attrs: Attrs{"n": json.Number(n)}}) }
	for _, same := range [][]string{{"1", "1.0", "1e0", "10e-1", "1E+0"}, {"0.5", "5e-1", ".5e0"}, {"0", "-0", "0e5"}, {"1000000", "1e6"}} {
		for _, n := range same {
			if id(n) != id(same[0]) {
				t.Errorf("%s and %s differ", n, same[0])
			}
		}
	}
	if id("9007199254740993") == id("9007199254740992") {
		t.Error("large integers are rounded")
	}
}

func TestWhereALocalFileWasReadFromIsNoPartOfTheContentID(t *testing.T) {
	ref := func(path, sum string) map[string]any {
		return map[string]any{"path": path, "sha256": sum, "size": json.Number("1")}
	}
	kind := Kind{Name: "file", Attrs: []Attr{{Name: "source", File: true}, {Name: "more"}}}
	id := func(name string, value any) ContentID { return CID(kind, &Glyph{Attrs: Attrs{name: value}}) }
	if id("source", ref("a", "1")) != id("source", ref("b", "1")) {
		t.Error("a file that was only renamed has another id")
	}
	if id("source", ref("a", "1")) == id("source", ref("a", "2")) {
		t.Error("a file with other bytes has the same id")
	}
	if id("more", ref("a", "1")) == id("more", ref("b", "1")) {
		t.Error("an ordinary argument that looks like a file's lost its path")
	}
}

// values draws what Attrs may hold.
func values(depth int) *rapid.Generator[any] {
	number := rapid.Map(rapid.Int64(), func(n int64) any { b, _ := json.Marshal(n); return json.Number(b) })
	simple := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.String().AsAny(), number,
		rapid.SampledFrom([]json.Number{"0.1", "-1.5", "1e-7", "123456789012345678901234567890"}).AsAny(),
	}
	if depth > 0 {
		simple = append(simple,
			rapid.Map(rapid.SliceOfN(values(depth-1), 0, 3), func(l []any) any { return append([]any{}, l...) }),
			rapid.MapOfN(rapid.String(), values(depth-1), 0, 3).AsAny())
	}
	return rapid.OneOf(simple...)
}

func TestStoredGlyphComesBackAsItWas(t *testing.T) {
	kind := Kind{Name: "job"}
	rapid.Check(t, func(t *rapid.T) {
		attrs := rapid.MapOfN(rapid.String(), values(2), 0, 5).Draw(t, "attrs")
		g := &Glyph{Kind: "job", Key: MakeKey("job", "a\x00\xff"), Version: 3, Attrs: attrs, Secret: []string{"x"}}
		first, err := g.MarshalStored()
		if err != nil {
			t.Fatal(err)
		}
		back, err := UnmarshalStored(first)
		if err != nil {
			t.Fatal(err)
		}
		second, err := back.MarshalStored()
		if err != nil || string(second) != string(first) {
			t.Fatalf("%s became %s (%v)", first, second, err)
		}
		if CID(kind, back) != CID(kind, g) || back.Key != g.Key || back.Version != 3 {
			t.Fatalf("%s is another glyph", second)
		}
		before := maps.Clone(g.Attrs)
		if CID(kind, g); !maps.EqualFunc(before, g.Attrs, func(a, b any) bool { return a == nil || b != nil }) {
			t.Fatal("hashing changed the glyph")
		}
	})
}

func TestDamagedStoredGlyphIsAnError(t *testing.T) {
	for _, data := range []string{"", "{", `"x"`, `{"attrs":[]}`} {
		if g, err := UnmarshalStored([]byte(data)); err == nil {
			t.Errorf("%q became %v", data, g)
		}
	}
}
