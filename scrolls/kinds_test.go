package scrolls

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// testKinds are kinds that have, between them, every trait a kind can declare: a label
// that is the identity and one that is not, exact types, local files, checks, bases
// and edits.
func testKinds() []Kind {
	text := func(a Attrs, name string) string { s, _ := a[name].(string); return s }
	absolute := func(a Attrs) []Problem {
		if path := text(a, "path"); !strings.HasPrefix(path, "/") {
			return []Problem{{Attr: "path", Summary: "Path is not absolute", Detail: "Write the whole path, from \"/\"."}}
		}
		return nil
	}
	base := func(a Attrs) (string, bool) { return text(a, "path"), true }
	path := func(a Attrs) []string { return []string{text(a, "path")} }
	return []Kind{
		{
			Name: "file", Version: 1, LabelAttr: "path", Identity: path, Surface: base,
			Attrs: []Attr{
				{Name: "path", Type: cty.String, Required: true},
				{Name: "content", Type: cty.String},
				{Name: "source", Type: cty.String, File: true},
				{Name: "mode", Type: cty.String, Exact: true, Hint: `Write it in quotes: mode = "0644".`},
			},
			Check: func(a Attrs) []Problem {
				problems := absolute(a)
				if a["content"] == nil && a["source"] == nil {
					problems = append(problems, Problem{Summary: "File without content", Detail: "Write content or source."})
				}
				if mode := text(a, "mode"); mode != "" && mode[0] != '0' {
					problems = append(problems, Problem{Attr: "mode", Summary: "Mode is not octal", Detail: mode + " has no leading 0."})
				}
				return problems
			},
		},
		{
			Name: "directory", Version: 1, LabelAttr: "path", Identity: path, Surface: base, Check: absolute,
			Attrs: []Attr{{Name: "path", Type: cty.String, Required: true}},
		},
		{
			Name: "line", Version: 1,
			Identity: func(a Attrs) []string {
				if match := text(a, "match"); match != "" {
					return []string{text(a, "path"), match}
				}
				return []string{text(a, "path"), text(a, "line")}
			},
			Surface: func(a Attrs) (string, bool) { return text(a, "path"), false },
			Attrs: []Attr{
				{Name: "path", Type: cty.String, Required: true},
				{Name: "line", Type: cty.String, Required: true},
				{Name: "match", Type: cty.String},
			},
			Check: absolute,
		},
		{
			Name: "job", Version: 3, LabelAttr: "name", Local: true, Renames: true, NoAdopt: "What a job did cannot be seen.",
			Identity: func(a Attrs) []string { return []string{text(a, "name")} },
			Attrs: []Attr{
				{Name: "name", Type: cty.String, Required: true},
				{Name: "command", Type: cty.List(cty.String)},
				{Name: "env", Type: cty.Map(cty.String)},
				{Name: "weight", Type: cty.Number},
				{Name: "quiet", Type: cty.Bool},
				{Name: "more", Type: cty.DynamicPseudoType},
			},
		},
	}
}

// write puts files into a new directory; a name is relative to it.
func write(t testing.TB, files map[string]string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "host")
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// loadText loads one file of HCL with the test kinds.
func loadText(t testing.TB, text string, options ...func(*Options)) (*Scroll, error) {
	t.Helper()
	return loadDir(write(t, map[string]string{"scroll.hcl": text}), options...)
}

func loadDir(dir string, options ...func(*Options)) (*Scroll, error) {
	o := Options{
		Kinds: testKinds(),
		Checks: []Kind{{
			Name: "http", Version: 1, Attrs: []Attr{{Name: "url", Type: cty.String, Required: true}},
			Identity: func(a Attrs) []string { return []string{a["url"].(string)} }, Check: func(Attrs) []Problem { return nil },
		}},
		Facts: map[string]any{"hostname": "box", "cpus": 4, "container": false, "os": map[string]any{"id": "debian"}},
	}
	for _, set := range options {
		set(&o)
	}
	return Load(dir, o)
}

// must loads what has no mistakes.
func must(t testing.TB, text string, options ...func(*Options)) *Scroll {
	t.Helper()
	s, err := loadText(t, text, options...)
	if err != nil {
		t.Fatalf("load:\n%s\n%v", text, err)
	}
	return s
}

// mistake loads what has one, and returns the message.
func mistake(t testing.TB, text string, options ...func(*Options)) string {
	t.Helper()
	s, err := loadText(t, text, options...)
	if err == nil {
		t.Fatalf("no mistake was found in\n%s\nbut %d glyphs", text, len(s.Glyphs()))
	}
	return err.Error()
}

func vars(pairs ...string) func(*Options) {
	return func(o *Options) { o.Vars = append(o.Vars, pairs...) }
}

// only is the scroll's only glyph.
func only(t testing.TB, s *Scroll) *Glyph {
	t.Helper()
	if all := s.Glyphs(); len(all) == 1 {
		return all[0]
	}
	t.Fatalf("%d glyphs, want one", len(s.Glyphs()))
	return nil
}
