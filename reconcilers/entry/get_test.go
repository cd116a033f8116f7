package entry

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGetReadsWhatIsThere(t *testing.T) {
	name := func(names ...string) []Step {
		var steps []Step
		for _, n := range names {
			steps = append(steps, Step{Name: n})
		}
		return steps
	}
	for _, c := range []struct {
		format, text string
		steps        []Step
		want         any
	}{
		{"json", "\ufeff{ \"a\": { \"b\": [1, 2.50] } } // end\n", name("a", "b"), []any{json.Number("1"), json.Number("2.50")}},
		{"json", "// a list\n[\"x\", {}]", nil, []any{"x", map[string]any{}}},
		{"json", `{"a":null}`, name("a"), nil},
		{"yaml", "a:\n  - b: yes\n", []Step{{Name: "a"}, {Place: true}, {Name: "b"}}, "yes"},
		{"toml", "[a]\nb.c = 'x'\n", name("a", "b", "c"), "x"},
		{"ini", "[a]\nb = x y\nb = z\n", name("a", "b"), "z"},
		{"env", "export A=\"x \\$y\"\n", name("A"), "x $y"},
		{"env", "A='q'\nA=p\n", name("A"), "p"},
		{"keyword", "Port 22\nMatch User git\n  PermitTTY no\n", name("Match User git", "permittty"), "no"},
		{"keyword", "AcceptEnv LANG \"a b\"\n", name("AcceptEnv"), `LANG "a b"`},
	} {
		got, there, err := Get(c.format, []byte(c.text), Wish{Steps: c.steps})
		if err != nil || !there {
			t.Errorf("%s %q: %v, %v", c.format, c.text, there, err)
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %q: %s", c.format, c.text, diff)
		}
	}
	for _, c := range []struct {
		format, text string
		steps        []Step
	}{
		{"json", "", nil},
		{"json", "{}", name("a")},
		{"json", `{"a": 1}`, name("a", "b")},
		{"yaml", "", name("a")},
		{"yaml", "a: 1\n", name("a", "b")},
		{"toml", "", name("a")},
		{"ini", "[a]\n", name("a", "b")},
		{"ini", "#b = 1\n", name("", "b")},
		{"env", "", name("A")},
		{"keyword", "#Port 22\n", name("Port")},
	} {
		if got, there, err := Get(c.format, []byte(c.text), Wish{Steps: c.steps}); there || err != nil {
			t.Errorf("%s %q: %v, %v, %v", c.format, c.text, got, there, err)
		}
	}
	for _, c := range []struct{ format, text string }{
		{"json", "{"}, {"json", "["}, {"json", `{"a": }`}, {"yaml", "a: [\n"}, {"toml", "a = \n"}, {"json", `{"a": {"x": 1, "x": 2}}`}, {"env", "a=$(date)\n"},
	} {
		if got, there, err := Get(c.format, []byte(c.text), Wish{Steps: name("a")}); there && err == nil {
			t.Errorf("%s %q: reads %v", c.format, c.text, got)
		}
	}
}

// TestGetGivesWhatAPutMade: what a wish made true is read again, and a wish for what was read
// is true already.
func TestGetGivesWhatAPutMade(t *testing.T) {
	texts := map[string]string{
		"json": "{\n  \"a\": [1, {\"b\": null}],\n  \"c\": {}\n}\n", "yaml": "a:\n  - 1\n  - b:\nc: {}\n", "toml": "a = [1]\n[c]\nd = 1\n",
		"ini": "[c]\nd = 1\n", "env": "D=1\n", "keyword": "D 1\n",
	}
	steps := map[string][]Step{
		"json": {{Name: "c"}, {Name: "d.e"}}, "yaml": {{Name: "c"}, {Name: "d"}}, "toml": {{Name: "c"}, {Name: "d"}}, "ini": {{Name: "c"}, {Name: "d"}},
		"env": {{Name: "D"}}, "keyword": {{Name: "D"}},
	}
	r := rand.New(rand.NewPCG(1, 2))
	for format, text := range texts {
		did := 0
		for range 200 {
			letters := []rune("ab \"'$\\#=:é\t-1")
			var value []rune
			for range r.IntN(6) {
				value = append(value, letters[r.IntN(len(letters))])
			}
			w := Wish{Steps: steps[format], Value: string(value)}
			out, _, err := Formats[format].Put([]byte(text), w)
			if err != nil {
				continue
			}
			got, there, err := Get(format, out, Wish{Steps: w.Steps})
			if err != nil && (format == "ini" || format == "keyword") {
				continue // what only a spelling in quotes tells
			}
			if err != nil || !there {
				t.Errorf("%s: %q in %q: %v, %v", format, w.Value, out, there, err)
				continue
			}
			did++
			if !Formats[format].Holds(out, Wish{Steps: w.Steps, Value: got}) {
				t.Errorf("%s: %q is read from %q, and does not hold", format, got, out)
			}
		}
		if did < 20 {
			t.Errorf("%s: only %d values were tried", format, did)
		}
	}
}
