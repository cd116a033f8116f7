package scrolls

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

func keys(s *Scroll) []string {
	var all []string
	for _, g := range s.Glyphs() {
		all = append(all, g.Leaf+" "+string(g.Key))
	}
	return all
}

func TestFlatScrollIsOneLeafNamedByTheLineage(t *testing.T) {
	dir := write(t, map[string]string{"web.hcl": `
file "/b" { content = "b" }
file "/a" { content = "a" }`})
	s, err := loadDir(filepath.Join(dir, "web.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "web" || !s.Defaulted || s.Dir != dir || s.Source != filepath.Join(dir, "web.hcl") {
		t.Errorf("name %q (defaulted %v), dir %s, source %s", s.Name, s.Defaulted, s.Dir, s.Source)
	}
	if diff := cmp.Diff([]string{"web file:/b", "web file:/a"}, keys(s)); diff != "" {
		t.Error(diff)
	}
	if len(s.Leaves) != 1 || s.Leaves[0].Path != "web" {
		t.Errorf("leaves %v", s.Leaves)
	}
}

func TestNameIsTheFlagsElseTheScrollsElseTheDirectorys(t *testing.T) {
	named := func(o *Options) { o.Name = "flag" }
	written := `
name = "written-${host.hostname}"
file "/a" { content = "" }`
	if s := must(t, written); s.Name != "written-box" || s.Defaulted {
		t.Errorf("name %q, defaulted %v", s.Name, s.Defaulted)
	}
	if s := must(t, written, named); s.Name != "flag" || s.Defaulted || s.Leaves[0].Path != "flag" {
		t.Errorf("name %q, defaulted %v", s.Name, s.Defaulted)
	}
	if s := must(t, `file "/a" { content = "" }`); s.Name != "host" || !s.Defaulted {
		t.Errorf("name %q, defaulted %v", s.Name, s.Defaulted)
	}
	long := strings.Repeat("n", 64)
	if s := must(t, `name = "`+long+`"`); s.Name != long {
		t.Errorf("name %q", s.Name)
	}
	mistake(t, `name = "`+long+`n"`)
}

func TestDirectoryIsReadInNameOrderAsOne(t *testing.T) {
	dir := write(t, map[string]string{
		"b.hcl": `
file "/b" { content = local.x }
locals { y = "y" }`,
		"a.hcl": `
file "/a" { content = var.v }
locals { x = local.y }`,
		"c.hcl":                 `variable "v" { default = "v" }`,
		".hidden.hcl":           `nonsense {`,
		".hidden.auto.vars.hcl": `nonsense {`,
		"notes.txt":             `nonsense {`,
		"sub/d.hcl":             `nonsense {`,
		"backup.hcl~":           `nonsense {`,
	})
	s, err := loadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"host file:/a", "host file:/b"}, keys(s)); diff != "" {
		t.Error(diff)
	}
	if got := s.Glyphs()[1].Attrs["content"]; got != "y" {
		t.Errorf("content %v", got)
	}
}

func TestLeafIsNamedByItsPath(t *testing.T) {
	s := must(t, `
scroll "a" {
  scroll "b c" {
    file "/1" { content = "" }
  }
  scroll "empty" {}
  scroll "d" {
    file "/2" { content = "" }
  }
}
scroll "e" {
  scroll "b c" {
    file "/3" { content = "" }
  }
}`)
	if diff := cmp.Diff([]string{"a/b c file:/1", "a/d file:/2", "e/b c file:/3"}, keys(s)); diff != "" {
		t.Error(diff)
	}
}

func TestWrittenNameWithoutGlyphsIsADeclaredEmptyScroll(t *testing.T) {
	s := must(t, `name = "web"`)
	if s.Name != "web" || len(s.Glyphs()) != 0 {
		t.Errorf("%+v", s)
	}
	mistake(t, `locals { a = 1 }`, func(o *Options) { o.Name = "web" })
}

func TestUnreadableScrollIsNeverAnEmptyOne(t *testing.T) {
	dir := write(t, map[string]string{"a.hcl": `name = "x"`, "gone/keep": ""})
	if err := os.Symlink("nowhere", filepath.Join(dir, "b.hcl")); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "missing"):     "no such file or directory",
		filepath.Join(dir, "missing.hcl"): "no such file or directory",
		filepath.Join(dir, "a.hcl", "b"):  "not a directory",
		filepath.Join(dir, "gone"):        "there is no .hcl file in it",
		dir:                               "b.hcl: no such file or directory",
		fifo:                              "not a regular file",
	} {
		s, err := loadDir(path)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", path, s, err, want)
		}
	}
}

func TestMemberFileThatCannotBeReadFails(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads every file: the same is proved by a link that leads nowhere")
	}
	dir := write(t, map[string]string{"a.hcl": `name = "x"`, "b.hcl": ``})
	if err := os.Chmod(filepath.Join(dir, "b.hcl"), 0); err != nil {
		t.Fatal(err)
	}
	if s, err := loadDir(dir); !errors.Is(err, os.ErrPermission) {
		t.Errorf("%v, %v", s, err)
	}
}

func TestIdenticalTwinsInOneLeafAreOneGlyph(t *testing.T) {
	s := must(t, `
variable "pw" { sensitive = true }
job "a" {
  weight = 1
  command = ["x"]
}
job "b" {
  name = "a"
  weight = 1.0
  command = ["${var.pw}"]
}`, vars("pw=x"))
	g := only(t, s)
	if g.Label != "a" || !slices.Equal(g.Secret, []string{"command"}) {
		t.Errorf("label %q, secret %q: what one twin hides must not be shown", g.Label, g.Secret)
	}
}

func TestTwinsMustBeTheSameToTheLastArgument(t *testing.T) {
	for _, other := range []string{`weight = 2`, `weight = 1` + "\nquiet = true", ``} {
		text := mistake(t, "job \"a\" {\nweight = 1\n}\njob \"b\" {\nname = \"a\"\n"+other+"\n}")
		if !strings.Contains(text, "job:a is declared twice") || !strings.Contains(text, "scroll.hcl:1") {
			t.Error(text)
		}
	}
}

func TestLinesShareAPathWithABase(t *testing.T) {
	s := must(t, `
line "a" {
  path = "/etc/hosts"
  line = "a"
}
file "/etc/hosts" { content = "" }
line "b" {
  path = "/etc/hosts"
  line = "b"
}`)
	want := []string{"host line:/etc/hosts:a", "host file:/etc/hosts", "host line:/etc/hosts:b"}
	if diff := cmp.Diff(want, keys(s)); diff != "" {
		t.Error(diff)
	}
}

func TestAttrsArePlainValuesOfWhatWasWritten(t *testing.T) {
	g := only(t, must(t, `
job "a" {
  command = ["ls", 5, true]
  env     = { A = 1, B = "x" }
  weight  = 0.1 + 0.2
  quiet   = "true"
  more    = { list = [1, null, [1e3]], big = 123456789012345678901234567890, third = 1.10 }
}`))
	want := Attrs{
		"name": "a", "command": []any{"ls", "5", "true"}, "env": map[string]any{"A": "1", "B": "x"},
		"weight": json.Number("0.3"), "quiet": true,
		"more": map[string]any{
			"list": []any{json.Number("1"), nil, []any{json.Number("1000")}},
			"big":  json.Number("123456789012345678901234567890"), "third": json.Number("1.1"),
		},
	}
	if diff := cmp.Diff(want, g.Attrs); diff != "" {
		t.Error(diff)
	}
	if g.Kind != "job" || g.Version != 3 || g.Where["weight"].Start.Line != 5 || g.Where["name"].Start.Line != 2 || g.At.Start.Line != 2 {
		t.Errorf("%+v", g)
	}
}

func TestNullIsNotWritten(t *testing.T) {
	g := only(t, must(t, `
file "/a" {
  path    = null
  content = ""
  mode    = null
}`))
	if diff := cmp.Diff(Attrs{"path": "/a", "content": ""}, g.Attrs); diff != "" {
		t.Error(diff)
	}
}

func TestLocalFileIsHashedBesideTheScroll(t *testing.T) {
	dir := write(t, map[string]string{
		"scroll.hcl": `
file "/a" { source = "files/a.bin" }`,
		"files/a.bin": "abc",
	})
	s, err := loadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	g := only(t, s)
	want := map[string]any{
		"path": "files/a.bin", "size": json.Number("3"),
		"sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
	}
	if diff := cmp.Diff(want, g.Attrs["source"]); diff != "" {
		t.Error(diff)
	}
	if g.Files["source"] != filepath.Join(dir, "files/a.bin") {
		t.Errorf("files %v", g.Files)
	}
}

func TestHugeLocalFileIsHashedInLittleMemory(t *testing.T) {
	dir := write(t, map[string]string{"scroll.hcl": `file "/a" { source = "big" }`, "big": ""})
	if err := os.Truncate(filepath.Join(dir, "big"), 300<<20); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, err := loadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if held := after.TotalAlloc - before.TotalAlloc; held > 16<<20 {
		t.Errorf("%d bytes were allocated", held)
	}
	ref := only(t, s).Attrs["source"].(map[string]any)
	if ref["size"] != json.Number(fmt.Sprint(300<<20)) {
		t.Errorf("size %v", ref["size"])
	}
}

func TestDigestIsOfEverythingTheScrollWasMadeFrom(t *testing.T) {
	files := map[string]string{
		"scroll.hcl": `
variable "v" { default = "d" }
file "/a" { content = "${var.v}${file("f")}${join(",", fileset(".", "*.conf"))}${fileexists("maybe")}" }
file "/b" { source = "s" }`,
		"f": "f", "s": "s", "one.conf": "",
	}
	dir := write(t, files)
	digest := func(options ...func(*Options)) string {
		s, err := loadDir(dir, options...)
		if err != nil {
			t.Fatal(err)
		}
		return s.Digest
	}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := digest()
	if len(first) != 64 || digest() != first {
		t.Fatal("the digest of one scroll changes by itself")
	}
	if digest(vars("v=e")) == first {
		t.Error("a variable's value is not in it")
	}
	if digest(vars("v=d")) != first {
		t.Error("a default that is also given changes it")
	}
	for _, name := range []string{"f", "s", "two.conf", "maybe", "scroll.hcl"} {
		before := digest()
		put(name, files[name]+"\n")
		if digest() == before {
			t.Errorf("%s is not in it", name)
		}
	}
}

func TestLaterFindingsAreShownAtTheirPlaces(t *testing.T) {
	s := must(t, `
file "/a" { content = "" }
file "/b" { content = "" }`)
	all := s.Glyphs()
	also := all[0].At
	d := s.Diagnose(PlacedProblem{
		Problem: Problem{Summary: "Path is unsafe", Detail: "It is."}, At: all[1].At, Also: &also,
	})
	var b strings.Builder
	if err := d.Write(&b, 0, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"scroll.hcl line 3, in file \"/b\"", `3: file "/b"`, `2: file "/a"`, "scroll.hcl:2."} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

func TestNoFileNameOrTextSteersTheTerminal(t *testing.T) {
	dir := write(t, map[string]string{"a\x1b[31m.hcl": "file \"/a\" {\n  moed = \"\x1b]0;x\a\xc2\x9b1m\rgone\"\n}\n"})
	_, err := loadDir(dir)
	var mistakes *Diagnostics
	if !errors.As(err, &mistakes) {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := mistakes.Write(&b, 80, false); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.String() {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("%q is in\n%q", r, b.String())
		}
	}
	if !strings.Contains(b.String(), `moed = "?]0;x???1m?gone"`) {
		t.Errorf("the snippet is missing in\n%s", b.String())
	}
}

func TestFormatLeavesWhatDoesNotParse(t *testing.T) {
	got, err := Format([]byte("file \"/a\" {\ncontent=\"x\"\nmode   = \"0644\"\n}\n"), "a.hcl")
	want := "file \"/a\" {\n  content = \"x\"\n  mode    = \"0644\"\n}\n"
	if err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	again, err := Format(got, "a.hcl")
	if err != nil || string(again) != want {
		t.Errorf("formatting twice: %q, %v", again, err)
	}
	var mistakes *Diagnostics
	if got, err = Format([]byte("file {"), "a.hcl"); !errors.As(err, &mistakes) || got != nil {
		t.Errorf("%q, %v", got, err)
	}
}
