package scrolls

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
)

// TestAFewLinesCannotAskForEverything has scrolls that double what they made, or loop in
// loops.
func TestAFewLinesCannotAskForEverything(t *testing.T) {
	double := func(first, next string) string {
		text := "locals {\n  a0 = " + first + "\n"
		for i := range 25 {
			text += strings.NewReplacer("NEXT", "a"+string(rune('A'+i)), "LAST", last(i)).Replace("  NEXT = " + next + "\n")
		}
		return text + "}\nfile \"/a\" { content = local.a0 }\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"text":     {double(`"lol"`, `"${local.LAST}${local.LAST}${local.LAST}${local.LAST}"`), "Value is too large"},
		"nest":     {double(`[1]`, `[local.LAST, local.LAST, local.LAST, local.LAST]`), "Value is too large"},
		"for_each": {"locals {\n  r = range(40)\n}\nfile \"a\" {\n  for_each = { for p in flatten([for a in local.r : [for b in local.r : \"${a}.${b}\"]]) : p => 1 }\n  path = \"/${each.key}\"\n}\n", "Too much is declared"},
		"scrolls": {
			strings.Repeat("scroll \"s\" {\n  for_each = toset([for i in range(10) : \"k${i}\"])\n", 4) + "file \"/a\" { content = \"\" }\n" + strings.Repeat("}\n", 4),
			"more than 1000 glyphs and instances",
		},
		"replace": {"locals {\n  a = join(\"\", [for i in range(1000) : \"aaaaaaaaaa\"])\n}\nfile \"/a\" { content = replace(local.a, \"a\", local.a) }\n", "longer than 64 MiB"},
		"pattern": {"locals {\n  a = join(\"\", [for i in range(1000) : \"aaaaaaaaaa\"])\n}\nfile \"/a\" { content = replace(local.a, \"/a/\", local.a) }\n", "longer than 64 MiB"},
		"join":    {"locals {\n  a = join(\"\", [for i in range(1000) : \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"])\n}\nfile \"/a\" { content = join(local.a, range(1000)) }\n", "longer than 64 MiB"},
		"indent":  {"locals {\n  a = join(\"\\n\", range(1000))\n}\nfile \"/a\" { content = indent(1000, join(\"\\n\", [for i in range(100) : local.a])) }\n", "longer than 64 MiB"},
		"words":   {"locals {\n  a = [" + strings.Repeat("1,", 1_600_000) + "]\n}\n", "words and signs"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadText(t, c.text, small)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%.300v, want %q", err, c.want)
			}
		})
	}
}

// small is an allowance that is soon used up.
func small(o *Options) { o.may = allowance{1 << 20, 1_000, maxMemory, maxWork} }

func last(i int) string {
	if i == 0 {
		return "a0"
	}
	return "a" + string(rune('A'+i-1))
}

func TestModulesThatIncludeEachOtherMoreAndMoreAreBounded(t *testing.T) {
	files := map[string]string{"a.hcl": "scroll \"a\" {\n  source = \"./m0\"\n}\n", "m9/m.hcl": "locals {\n}\n"}
	for i := range 9 {
		var text string
		for _, label := range []string{"a", "b", "c", "d", "e", "f"} {
			text += "scroll \"" + label + "\" {\n  source = \"../m" + string(rune('1'+i)) + "\"\n}\n"
		}
		files["m"+string(rune('0'+i))+"/m.hcl"] = text
	}
	if _, err := loadDir(write(t, files), small); err == nil || !strings.Contains(err.Error(), "Too much is declared") {
		t.Errorf("%.300v", err)
	}
}

func TestAHugeScrollIsNotRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.hcl")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, maxSourceFile+1); err != nil {
		t.Fatal(err)
	}
	for what, load := range map[string]func() error{
		"load":   func() error { _, err := loadDir(dir); return err },
		"format": func() error { _, _, err := FormatFile(file); return err },
	} {
		if err := load(); err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestLoadingThatTakesTooMuchIsGivenUp stands for what no count sees.
func TestLoadingThatTakesTooMuchIsGivenUp(t *testing.T) {
	var ends atomic.Bool
	defer ends.Store(true)
	for want, c := range map[string]struct {
		may  allowance
		load func() error
	}{
		"takes more than 50ms": {allowance{1 << 40, 1 << 40, 1 << 40, 50 * time.Millisecond}, func() error {
			for n := 0; !ends.Load(); n++ {
			}
			return nil
		}},
		"takes more than 8 MiB of memory": {allowance{1 << 40, 1 << 40, 8 << 20, time.Hour}, func() error {
			var kept [][]byte
			for !ends.Load() {
				if len(kept) < 64 {
					kept = append(kept, make([]byte, 1<<20))
				}
				time.Sleep(time.Millisecond)
			}
			return errors.New(string(kept[0][:1]))
		}},
	} {
		runtime.GC() // what other tests left would hide what this one takes
		l := newLoader(Options{may: c.may})
		_, err := l.guarded(func() error {
			l.at(hcl.Range{Filename: "web.hcl", Start: hcl.Pos{Line: 7, Column: 3}})
			return c.load()
		})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "web.hcl:7,3") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestMistakeInALongLineOrALongTextShowsLittle(t *testing.T) {
	for name, text := range map[string]string{
		"line":  "file \"/a\" { content = [\"" + strings.Repeat("é", 100_000) + "\", local.nope, \"" + strings.Repeat("b", 100_000) + "\"] }\n",
		"lines": "file \"/a\" {\n  content = [<<END\n" + strings.Repeat("line\n", 5_000) + "END\n  ]\n}\n",
		"value": "locals {\n  a = join(\"\", [for i in range(1000) : \"aaaaaaaaaa\"])\n}\nfile \"/a\" {\n  content = local.a[0]\n}\n",
	} {
		_, err := loadText(t, text)
		var mistakes *Diagnostics
		if !errors.As(err, &mistakes) {
			t.Fatal(name, err)
		}
		var b strings.Builder
		if err := mistakes.Write(&b, 80, false); err != nil {
			t.Fatal(err)
		}
		if b.Len() > 2_000 || !strings.Contains(b.String(), "file \"/a\"") {
			t.Errorf("%s: %d bytes are shown: %.3000s", name, b.Len(), b.String())
		}
		if name == "line" && !strings.Contains(b.String(), "local.nope") {
			t.Errorf("what is wrong is not shown: %s", b.String())
		}
	}
}
