package reconcilers

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"golem/scrolls"
)

// editGlyph is a glyph of a kind of edit, checked as the loader checks it.
func editGlyph(t interface{ Fatalf(string, ...any) }, kind string, attrs scrolls.Attrs) *scrolls.Glyph {
	k, ok := KindOf(kind)
	if !ok {
		t.Fatalf("there is no kind %q", kind)
	}
	if attrs["path"] == nil {
		attrs["path"] = "/etc/it.conf"
	}
	if problems := k.Check(attrs); len(problems) > 0 {
		t.Fatalf("%s %v: %+v", kind, attrs, problems)
	}
	return &scrolls.Glyph{Kind: kind, Attrs: attrs, Key: scrolls.MakeKey(kind, k.Identity(attrs)...)}
}

// put puts a glyph on a text. What it leaves, it holds, and putting it again changes nothing.
func put(t interface{ Fatalf(string, ...any) }, g *scrolls.Glyph, text string) (string, json.RawMessage) {
	e := mustKind(g).edit
	got, err := e.put(g, []byte(text), -1)
	if err != nil {
		t.Fatalf("put %s on %q: %v", g.Key, text, err)
	}
	if !e.holds(g, got.content) {
		t.Fatalf("%s does not hold on %q, which it left of %q", g.Key, got.content, text)
	}
	if got.changed == (string(got.content) == text) {
		t.Fatalf("put %s on %q says changed = %v and leaves %q", g.Key, text, got.changed, got.content)
	}
	again, err := e.put(g, got.content, -1)
	if err != nil || again.changed || !bytes.Equal(again.content, got.content) {
		t.Fatalf("put %s again on %q: %q, %v", g.Key, got.content, again.content, err)
	}
	return string(got.content), got.inverse
}

func mustKind(g *scrolls.Glyph) Kind { k, _ := KindOf(g.Kind); return k }

func peel(g *scrolls.Glyph, inverse json.RawMessage, text string) string {
	return string(mustKind(g).edit.peel(g, inverse, []byte(text)).content)
}

// texts draw what is in files: line endings of every sort, a byte order mark, bytes that
// are no UTF-8, no final newline, lines that are equal, and lines that the glyphs name.
func texts(words ...string) *rapid.Generator[string] {
	line := rapid.SampledFrom(append([]string{"", "a", "b", "caf\xe9", "x=1", "\tin", "\r", "a\rb", "nul\x00"}, words...))
	return rapid.Custom(func(t *rapid.T) string {
		var out strings.Builder
		if rapid.IntRange(0, 9).Draw(t, "bom") == 0 {
			out.Write(bom)
		}
		end := rapid.SampledFrom([]string{"\n", "\n", "\r\n", "mixed"}).Draw(t, "ending")
		for range rapid.IntRange(0, 8).Draw(t, "lines") {
			out.WriteString(line.Draw(t, "line"))
			if one := end; one == "mixed" {
				out.WriteString(rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "this ending"))
			} else {
				out.WriteString(one)
			}
		}
		text := out.String()
		if rapid.Bool().Draw(t, "no final newline") {
			text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
		}
		return text
	})
}

var editWords = []string{"x=2", "#x=1", "new", "# BEGIN golem web", "# END golem web", "in it", "found"}

// drawEdit draws a glyph of any edit that lies in this folder.
func drawEdit(t *rapid.T) *scrolls.Glyph {
	if rapid.IntRange(0, 2).Draw(t, "region") == 0 {
		a := sampleRegion(t)
		a["content"] = rapid.SampledFrom([]string{"", "in it\n", "a\nb", "\n\n"}).Draw(t, "block")
		return editGlyph(t, "region", a)
	}
	a := scrolls.Attrs{"path": "/d/it", "line": rapid.SampledFrom([]string{"new", "x=1", "a", "caf\xe9"}).Draw(t, "text")}
	drawLineForm(t, a, []string{"^x=", "^#?x=", "a", "^b$", "none", "^$"})
	return editGlyph(t, "line", a)
}

// manyDraws lets a property be tried on some hundreds of draws, and on many more where
// there is time.
func manyDraws(t *testing.T) {
	f := flag.Lookup("rapid.checks")
	was := f.Value.String()
	if was != f.DefValue {
		return
	}
	checks := "600"
	if os.Getenv("GOLEM_SOAK") != "" {
		checks = "200000"
	}
	if err := f.Value.Set(checks); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(was) })
}

// TestPeelGivesBackWhatPutFound is the law of edits, over texts of every sort.
func TestPeelGivesBackWhatPutFound(t *testing.T) {
	manyDraws(t)
	rapid.Check(t, func(t *rapid.T) {
		g := drawEdit(t)
		text := texts(editWords...).Draw(t, "text")
		got, err := mustKind(g).edit.put(g, []byte(text), -1)
		if err != nil {
			return // refused: markers that are broken, text that looks like UTF-16
		}
		if back := peel(g, got.inverse, string(got.content)); back != text {
			t.Fatalf("%s %v\non      %q\nleft    %q\nand gave %q", g.Key, g.Attrs, text, got.content, back)
		}
	})
}

// TestPutLeavesWhatHolds: what an edit leaves it holds on, and putting it again is nothing.
func TestPutLeavesWhatHolds(t *testing.T) {
	manyDraws(t)
	rapid.Check(t, func(t *rapid.T) {
		g := drawEdit(t)
		text := texts(editWords...).Draw(t, "text")
		if _, err := mustKind(g).edit.put(g, []byte(text), -1); err != nil {
			return
		}
		put(t, g, text)
	})
}

// TestEditsPeelInAnyStack: several edits on one text come off newest first, to the byte.
func TestEditsPeelInAnyStack(t *testing.T) {
	manyDraws(t)
	rapid.Check(t, func(t *rapid.T) {
		text := texts(editWords...).Draw(t, "text")
		type layer struct {
			g       *scrolls.Glyph
			inverse json.RawMessage
			beneath string
		}
		var stack []layer
		now := text
		for range rapid.IntRange(1, 6).Draw(t, "edits") {
			g := drawEdit(t)
			got, err := mustKind(g).edit.put(g, []byte(now), -1)
			if err != nil {
				continue
			}
			stack = append(stack, layer{g, got.inverse, now})
			now = string(got.content)
		}
		for _, l := range slices.Backward(stack) {
			if now = peel(l.g, l.inverse, now); now != l.beneath {
				t.Fatalf("%s gave %q, not %q", l.g.Key, now, l.beneath)
			}
		}
	})
}

// TestStrangersEditSurvives: whatever a stranger adds, nothing of it is lost by putting and
// peeling, and the rest comes back.
func TestStrangersEditSurvives(t *testing.T) {
	manyDraws(t)
	rapid.Check(t, func(t *rapid.T) {
		g := drawEdit(t)
		text := texts(editWords...).Draw(t, "text")
		got, err := mustKind(g).edit.put(g, []byte(text), -1)
		if err != nil {
			return
		}
		// He adds a line of his own somewhere, a whole one.
		at := strangerAt(t, g, got.content)
		his := "his own" + ending(got.content, at)
		if !startsLine(got.content, at) {
			his = "\n" + his
		}
		changed := string(got.content[:at]) + his + string(got.content[at:])
		off := mustKind(g).edit.peel(g, got.inverse, []byte(changed))
		if !strings.Contains(string(off.content), "his own") && !bytes.Contains(off.lost, []byte("his own")) {
			t.Fatalf("%s lost the stranger's line: %q became %q", g.Key, changed, off.content)
		}
		was := wordsOf(text)
		is := wordsOf(strings.Replace(string(off.content), "his own", "", 1))
		if len(off.lost) == 0 && !slices.Equal(was, is) {
			t.Fatalf("%s %v\nfound   %q\nchanged %q\ngave    %q", g.Key, g.Attrs, text, changed, off.content)
		}
	})
}

// wordsOf are a text's words, wherever its lines end.
func wordsOf(text string) []string { return strings.Fields(strings.ReplaceAll(text, string(bom), "")) }

// TestStrangersLinesOutliveAStack: with several edits on a text, and lines of a stranger's
// anywhere since, taking the edits off loses none of them, nor what the edits replaced.
func TestStrangersLinesOutliveAStack(t *testing.T) {
	manyDraws(t)
	rapid.Check(t, func(t *rapid.T) {
		now := []byte(texts("x=2", "#x=1", "found").Draw(t, "text"))
		type layer struct {
			g       *scrolls.Glyph
			inverse json.RawMessage
		}
		var stack []layer
		for range rapid.IntRange(1, 5).Draw(t, "edits") {
			g := drawEdit(t)
			if got, err := mustKind(g).edit.put(g, now, -1); err == nil {
				stack, now = append(stack, layer{g, got.inverse}), got.content
			}
		}
		his := rapid.IntRange(1, 3).Draw(t, "his lines")
		for i := range his {
			at := strangerAt(t, &scrolls.Glyph{}, now)
			line := fmt.Sprintf("his own %d", i) + ending(now, at)
			if !startsLine(now, at) {
				line = "\n" + line
			}
			now = slices.Concat(now[:at], []byte(line), now[at:])
		}
		var lost []byte
		for _, l := range slices.Backward(stack) {
			off := mustKind(l.g).edit.peel(l.g, l.inverse, now)
			now, lost = off.content, append(lost, off.lost...)
		}
		for i := range his {
			if his := fmt.Appendf(nil, "his own %d", i); !bytes.Contains(now, his) && !bytes.Contains(lost, his) {
				t.Fatalf("%s is lost: %q", his, now)
			}
		}
	})
}

// strangerAt draws a line's beginning, outside of a block of golem's.
func strangerAt(t *rapid.T, g *scrolls.Glyph, content []byte) int {
	at := []int{len(content)}
	var inside *block
	if g.Kind == "region" {
		inside, _ = findBlock(g.Attrs, content)
	}
	for _, r := range rows(content) {
		if inside == nil || r.start <= inside.start || r.start >= inside.end {
			at = append(at, r.start)
		}
	}
	return rapid.SampledFrom(at).Draw(t, "where he writes")
}

// TestEditsOnFilesOfThisMachine tries edits on every small file below a few directories,
// which nobody here wrote.
func TestEditsOnFilesOfThisMachine(t *testing.T) {
	files := systemFiles(t)
	if len(files) < 50 {
		t.Skipf("only %d files to try", len(files))
	}
	glyphs := []*scrolls.Glyph{
		editGlyph(t, "line", scrolls.Attrs{"line": "golem was here"}),
		editGlyph(t, "line", scrolls.Attrs{"line": "golem = here", "match": "=", "on_many": "all"}),
		editGlyph(t, "line", scrolls.Attrs{"line": "golem first", "match": "e", "on_many": "first", "after": "a"}),
		editGlyph(t, "line", scrolls.Attrs{"ensure": "absent", "match": "^#"}),
		editGlyph(t, "line", scrolls.Attrs{"ensure": "absent", "match": "[a-m]$"}),
		editGlyph(t, "region", scrolls.Attrs{"name": "test", "content": "some\nlines\n", "before": "^[^#]"}),
		editGlyph(t, "region", scrolls.Attrs{"name": "end", "content": "some\nlines", "indent": "4"}),
	}
	tried := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || isUTF16(data) {
			continue
		}
		tried++
		now := string(data)
		var inverses []json.RawMessage
		var beneath []string
		for _, g := range glyphs {
			beneath = append(beneath, now)
			left, inverse := put(t, g, now)
			inverses, now = append(inverses, inverse), left
		}
		for i, g := range slices.Backward(glyphs) {
			if now = peel(g, inverses[i], now); now != beneath[i] {
				t.Fatalf("%s: %s does not come off", file, g.Key)
			}
		}
	}
	t.Logf("%d files, %d edits on each", tried, len(glyphs))
}

// systemFiles are regular files of this machine, small enough for a test.
func systemFiles(t *testing.T) []string {
	var files []string
	for _, dir := range []string{"/etc", "/usr/share/doc", "/usr/lib/systemd", "/usr/share/perl5"} {
		_ = walkFiles(dir, func(name string, size int64) bool {
			if size < 32<<10 {
				files = append(files, name)
			}
			return len(files) < 1500
		})
	}
	t.Logf("%d files", len(files))
	return files
}

func walkFiles(dir string, each func(name string, size int64) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := dir + "/" + e.Name()
		if e.IsDir() {
			if errors.Is(walkFiles(name, each), errEnough) {
				return errEnough
			}
			continue
		}
		if st, err := e.Info(); err == nil && st.Mode().IsRegular() && !each(name, st.Size()) {
			return errEnough
		}
	}
	return nil
}

var errEnough = fmt.Errorf("enough files")
