package entry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
)

// TestTheLawsHoldOnJSONAndYAMLThatNobodyHereWrote edits keys of every such file that this
// machine and the trees of test hosts have: as they are, with a stranger's edit in between,
// and in any order.
func TestTheLawsHoldOnJSONAndYAMLThatNobodyHereWrote(t *testing.T) {
	for _, c := range []struct {
		name string
		f    Format
		exts []string
		read func([]byte) (any, error)
	}{
		{"json", jsonFormat{}, []string{".json", ".jsonc"}, readJSONC},
		{"yaml", yamlFormat{}, []string{".yaml", ".yml"}, readYAMLDoc},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := realFiles(t, func(path string) bool {
				for _, ext := range c.exts {
					if strings.HasSuffix(path, ext) {
						return true
					}
				}
				return false
			}, "/etc", "/usr/share", "/usr/lib", "/usr/local", "/opt", build.Default.GOPATH)
			sort.Strings(files)
			most := 150
			if os.Getenv("GOLEM_SOAK") != "" {
				most = len(files)
			}
			step := max(1, len(files)/max(most, 1))
			tried, edits, skipped, refused := 0, 0, 0, refusals{}
			for i := 0; i < len(files); i += step {
				text, err := os.ReadFile(files[i])
				if err != nil {
					t.Fatal(err)
				}
				v, err := c.read(text)
				if err != nil {
					skipped++ // another parser cannot read it either, or it is no document
					continue
				}
				tried++
				edits += realEdits(t, files[i], c.f, text, v, c.read, rand.New(rand.NewSource(int64(i))), refused)
			}
			t.Logf("%d files, %d edits, %d files are no %s for another parser; refused:\n%s", tried, edits, skipped, c.name, refused)
			if tried > 20 && edits < tried {
				t.Errorf("only %d edits were made of %d files", edits, tried)
			}
		})
	}
}

// realEdits puts some edits on one text and takes them off again.
func realEdits(t *testing.T, file string, f Format, text []byte, v any, read func([]byte) (any, error), r *rand.Rand, refused refusals) int {
	who := named{t, filepath.Base(file)}
	var texts [][]byte
	var edits []layer
	now := text
	for range 4 {
		w := realWish(v, r)
		out, receipt, err := f.Put(now, w)
		if err != nil {
			refused.add(err, file)
			continue
		}
		keepBack(who, f, now, w, out, receipt)
		if receipt == nil {
			continue
		}
		after := wished(v, w)
		have, err := read(out)
		if err != nil || !sameDoc(f, have, after) {
			t.Fatalf("%s: put of %+v: %v; another value changed", file, w, err)
		}
		texts, edits = append(texts, now), append(edits, layer{w, receipt})
		now, v = out, after
	}
	theirs, receipt, err := f.Put(now, Wish{Steps: []Step{{Name: "a stranger's"}}, Value: "was here"})
	for i := len(edits) - 1; i >= 0; i-- {
		if now = f.Peel(now, edits[i].w, edits[i].receipt); !bytes.Equal(now, texts[i]) {
			t.Fatalf("%s: peel of %+v is not to the byte", file, edits[i].w)
		}
		if err == nil && receipt != nil {
			theirs = f.Peel(theirs, edits[i].w, edits[i].receipt)
		}
	}
	if err == nil && receipt != nil && len(edits) > 0 {
		have, _ := read(theirs)
		object, _ := have.(map[string]any)
		if object["a stranger's"] != "was here" {
			t.Fatalf("%s: what a stranger wrote is gone from\n%q\nafter %+v on\n%q", file, theirs, edits, text)
		}
		delete(object, "a stranger's")
		if was, err := read(text); err == nil && was != nil && !sameDoc(f, any(object), was) {
			t.Fatalf("%s: after a stranger's edit not all came back:\n%q\nafter %+v on\n%q", file, theirs, edits, text)
		}
	}
	return len(edits)
}

// realWish draws a wish of a key that is there, or of a new one beside it.
func realWish(v any, r *rand.Rand) Wish {
	w := Wish{}
	for depth := r.Intn(5) + 1; len(w.Steps) < depth; {
		switch c := v.(type) {
		case map[string]any:
			names := make([]string, 0, len(c))
			for name := range c {
				names = append(names, name)
			}
			sort.Strings(names)
			name := "golem's"
			if len(names) > 0 && r.Intn(3) > 0 {
				name = names[r.Intn(len(names))]
			}
			w.Steps, v = append(w.Steps, Step{Name: name}), c[name]
			continue
		case []any:
			if len(c) > 0 && r.Intn(3) > 0 {
				i := r.Intn(len(c))
				w.Steps, v = append(w.Steps, Step{Index: i, Place: true}), c[i]
				continue
			}
			w.Member, w.Value = true, "golem's member"
			return w
		case nil:
			w.Steps = append(w.Steps, Step{Name: "golem's"})
		}
		break
	}
	if len(w.Steps) == 0 {
		w.Steps = []Step{{Name: "golem's"}}
	}
	if !w.Steps[len(w.Steps)-1].Place && r.Intn(4) == 0 {
		w.Absent = true
		return w
	}
	w.Value = []any{"golem's value", json.Number("42"), true, nil, []any{"a", json.Number("1")}, map[string]any{"k": []any{}, "l": "x: y"}}[r.Intn(6)]
	return w
}

// sameDoc says whether two texts say the same. In TOML a table is there by what is in it.
func sameDoc(f Format, a, b any) bool {
	if _, is := f.(tomlFormat); is {
		return sameValue(unfilled(a), unfilled(b))
	}
	return sameValue(a, b)
}

// unfilled is a value without the tables in it that hold nothing.
func unfilled(v any) any {
	if list, ok := v.([]any); ok {
		list = slices.Clone(list)
		for i := range list {
			list[i] = unfilled(list[i])
		}
		return list
	}
	object, ok := v.(map[string]any)
	if !ok {
		return v
	}
	rest := map[string]any{}
	for name, m := range object {
		if m = unfilled(m); !isEmpty(m) {
			rest[name] = m
		}
	}
	return rest
}

// refusals counts what is refused by its reason, with the texts that it was about.
type refusals map[string][]string

func (r refusals) add(err error, file string) {
	why := err.Error()
	var place *PlaceError
	if errors.As(err, &place) {
		why = place.Why
	}
	why = numbers.ReplaceAllString(why, "N")
	r[why] = append(r[why], file)
}

var numbers = regexp.MustCompile("`[^`]*`|\"[^\"]*\"|[0-9]+")

func (r refusals) String() string {
	var b strings.Builder
	for _, why := range slices.Sorted(maps.Keys(r)) {
		fmt.Fprintf(&b, "%6d %.100s (%s)\n", len(r[why]), why, r[why][0])
	}
	return b.String()
}
