package scrolls

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FuzzLoad feeds the loader any bytes. It must neither panic nor hang; what it takes
// must hold together, load again to the same digest, and survive being formatted.
func FuzzLoad(f *testing.F) {
	seeds, err := filepath.Glob("testdata/mistakes/*.hcl")
	if err != nil || len(seeds) < 50 {
		f.Fatalf("%d seeds, %v", len(seeds), err)
	}
	for _, name := range seeds {
		if src, err := os.ReadFile(name); err == nil {
			f.Add(src)
		}
	}
	for _, c := range functionCases {
		f.Add([]byte(`job "a" { more = ` + c.expr + ` }`))
	}
	dir := write(f, functionFiles)
	f.Fuzz(func(t *testing.T, src []byte) {
		if strings.Contains(string(src), "format") {
			return // asked for a long text, it makes one
		}
		path := filepath.Join(dir, "scroll.hcl")
		if err := os.WriteFile(path, src, 0o600); err != nil {
			t.Fatal(err)
		}
		first, err := loadDir(path)
		var mistakes *Diagnostics
		if errors.As(err, &mistakes) {
			if len(mistakes.All) == 0 || mistakes.Write(io.Discard, 80, true) != nil {
				t.Fatalf("nothing is said about %q", src)
			}
			return
		}
		if err != nil {
			return
		}
		checkLoaded(t, first)
		laidOut, err := Format(src, "x")
		if err != nil {
			t.Fatalf("%q loads, but cannot be formatted: %v", src, err)
		}
		if err := os.WriteFile(path, laidOut, 0o600); err != nil {
			t.Fatal(err)
		}
		second, err := loadDir(path)
		if err != nil {
			t.Fatalf("%q loads, but not as %q: %v", src, laidOut, err)
		}
		if a, b := fmt.Sprint(keys(first)), fmt.Sprint(keys(second)); a != b {
			t.Fatalf("%q has %s, formatted %s", src, a, b)
		}
	})
}

// checkLoaded holds a scroll to what every scroll promises.
func checkLoaded(t *testing.T, s *Scroll) {
	t.Helper()
	if !validName.MatchString(s.Name) {
		t.Fatalf("name %q", s.Name)
	}
	seen := map[Key]bool{}
	for _, g := range s.Glyphs() {
		if seen[g.Key] || g.Key.Kind() != g.Kind || g.Leaf == "" {
			t.Fatalf("glyph %+v", g)
		}
		seen[g.Key] = true
		stored, err := g.MarshalStored()
		if err != nil {
			t.Fatal(err)
		}
		back, err := UnmarshalStored(stored)
		if err != nil {
			t.Fatal(err)
		}
		kind := kindNamed(g.Kind)
		if CID(kind, back) != CID(kind, g) {
			t.Fatalf("%s is another glyph when stored", stored)
		}
	}
}

func kindNamed(name string) Kind {
	for _, kind := range testKinds() {
		if kind.Name == name {
			return kind
		}
	}
	return Kind{}
}

// files writes a scroll of n files.
func filesScroll(n int) string {
	var b strings.Builder
	b.WriteString("variable \"mode\" { default = \"0644\" }\nlocals { text = \"x\" }\n")
	for i := range n {
		fmt.Fprintf(&b, "file \"/srv/%d/some-file.conf\" {\n  content = \"${local.text} %d\\n\"\n  mode    = var.mode\n}\n", i, i)
	}
	return b.String()
}

func BenchmarkLoad10000Files(b *testing.B) {
	dir := write(b, map[string]string{"scroll.hcl": filesScroll(10_000)})
	for b.Loop() {
		s, err := loadDir(dir)
		if err != nil || len(s.Glyphs()) != 10_000 {
			b.Fatal(err)
		}
	}
}

// TestLoadingGrowsInProportion compares a scroll with one twenty times as long; a
// square in it would make that four hundred times as slow.
func TestLoadingGrowsInProportion(t *testing.T) {
	took := func(n int) time.Duration {
		dir := write(t, map[string]string{"scroll.hcl": filesScroll(n)})
		best := time.Hour
		for range 3 {
			start := worked()
			if s, err := loadDir(dir); err != nil || len(s.Glyphs()) != n {
				t.Fatal(err)
			}
			best = min(best, worked()-start)
		}
		return best
	}
	small, large := took(500), took(10_000)
	if large > 60*small {
		t.Errorf("500 files take %s, 10,000 take %s", small, large)
	}
	t.Logf("500 files take %s, 10,000 take %s", small, large)
}
