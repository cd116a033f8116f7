package apply_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// composeChecks is how often the laws of composition are tried for each format.
func composeChecks(t *testing.T) {
	t.Helper()
	checks := "25"
	if os.Getenv("GOLEM_SOAK") != "" {
		checks = "3000"
	}
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		if err := f.Value.Set(checks); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
	}
}

// eachCraft tries a law on every format.
func eachCraft(t *testing.T, law func(t *rapid.T, c *craft)) {
	composeChecks(t)
	for name, c := range crafts {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { law(t, c) })
		})
	}
}

// putText gives the file its bytes; there is none where there is no text.
func (h *lawHost) putText(t *rapid.T, text string, there bool) {
	at := h.root + craftPath
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if !there {
		_ = os.Remove(at)
		return
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// craftText is what the file holds.
func (h *lawHost) craftText(t *rapid.T) (string, bool) {
	data, err := os.ReadFile(h.root + craftPath)
	if os.IsNotExist(err) {
		return "", false
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data), true
}

// TestLawCompose: ten entries, three lines and a region on one file, over three leaves,
// changed and undeclared in any order: the file is what the last scroll alone makes of it,
// and after the last one what it was.
func TestLawCompose(t *testing.T) {
	eachCraft(t, func(t *rapid.T, c *craft) {
		long, short := newLawHost(t), newLawHost(t)
		defer long.remove()
		defer short.remove()
		text, there := c.drawText(t)
		long.putText(t, text, there)
		short.putText(t, text, there)
		t.Logf("-- found --\n%s", text)
		refused := false
		base := ""
		list := c.drawDeclared(t)
		for range rapid.IntRange(1, 4).Draw(t, "scrolls") {
			list = c.drawNext(t, list)
			base = ""
			if rapid.IntRange(0, 5).Draw(t, "base") == 0 {
				base = rapid.SampledFrom(c.texts).Draw(t, "whole file")
			}
			if refused = long.run(t, c.scroll(list, base), "law"); !refused {
				now, _ := long.craftText(t)
				t.Logf("-- now --\n%s", now)
			}
		}
		if !refused && !short.run(t, c.scroll(list, base), "law") {
			want, _ := short.craftText(t)
			if have, _ := long.craftText(t); have != want {
				t.Fatalf("the way there shows:\n%s\n-- the last scroll alone --\n%s", have, want)
			}
			long.settled(t, c.scroll(list, base), "law")
		}
		long.run(t, nil, "law")
		if have, is := long.craftText(t); have != text || is != there {
			t.Fatalf("destroy did not give the file back: %v\n%s", is, have)
		}
		long.check(t)
	})
}

// drawNext draws the next scroll: the one before with a few changes, or another.
func (c *craft) drawNext(t *rapid.T, list []declared) []declared {
	list = slices.Clone(list)
	switch rapid.IntRange(0, 3).Draw(t, "next") {
	case 0:
		return c.drawDeclared(t)
	case 1:
		for i := range list {
			if rapid.IntRange(0, 3).Draw(t, "change") == 0 {
				list[i].version = rapid.IntRange(1, 3).Draw(t, "version")
			}
		}
	case 2:
		list = slices.DeleteFunc(list, func(declared) bool { return rapid.IntRange(0, 2).Draw(t, "drop") == 0 })
	default:
		if len(list) > 0 {
			i := rapid.IntRange(0, len(list)-1).Draw(t, "which")
			list[i].leaf = rapid.IntRange(0, 2).Draw(t, "leaf")
		}
	}
	return list
}

// TestLawComposeWithHumans: a human edits the same file between the runs. What golem makes of
// it holds; a changed value changes nothing but itself; and after the last run the file is
// what the human alone would have made of it.
func TestLawComposeWithHumans(t *testing.T) {
	eachCraft(t, func(t *rapid.T, c *craft) {
		h := newLawHost(t)
		defer h.remove()
		alone, there := c.drawText(t)
		h.putText(t, alone, there)
		t.Logf("-- found --\n%s", alone)
		list := c.drawDeclared(t)
		var tokens []string
		for n := range rapid.IntRange(1, 4).Draw(t, "rounds") {
			list = c.drawNext(t, list)
			if h.run(t, c.scroll(list, ""), "law") {
				return
			}
			now, is := h.craftText(t)
			t.Logf("-- now --\n%s", now)
			if is && there {
				for j := range rapid.IntRange(0, 3).Draw(t, "edits") {
					now, alone = c.human(t, 10*n+j+1, now, alone)
				}
				if rapid.IntRange(0, 2).Draw(t, "meddle") == 0 {
					var wrote string
					if now, wrote = c.meddle(t, n, now, list); wrote != "" {
						tokens = append(tokens, wrote)
					}
				}
				h.putText(t, now, true)
			}
			if rapid.Bool().Draw(t, "bump") && c.bodied(alone) && c.bump(t, h, list) {
				return
			}
		}
		if h.run(t, nil, "law") {
			return
		}
		if have, is := h.craftText(t); have != alone || is != there {
			t.Fatalf("the file is not what the human alone would have made of it: %v\n%s\n-- but --\n%s\n%q %q", is, have, alone, have, alone)
		}
		kept := strings.Join(h.kept(t), "\x00")
		for _, word := range tokens {
			if !strings.Contains(kept, word) {
				t.Fatalf("%s is neither on the host nor kept", word)
			}
		}
		h.check(t)
	})
}

// bodied says whether a text has whole lines, and more in them than comments.
func (c *craft) bodied(text string) bool {
	return strings.HasSuffix(text, "\n") && slices.ContainsFunc(textLines(text), func(line string) bool {
		said := strings.TrimSpace(line)
		return said != "" && !strings.HasPrefix(said, c.comment) && !strings.HasPrefix(said, "---")
	})
}

// bump changes the value of one entry or the region: nothing else in the file may change.
func (c *craft) bump(t *rapid.T, h *lawHost, list []declared) (refused bool) {
	if len(list) == 0 {
		return false
	}
	if h.run(t, c.scroll(list, ""), "law") {
		return true
	}
	i := rapid.IntRange(0, len(list)-1).Draw(t, "bumped")
	if c.glyph(list[i]).Attrs["member"] != nil {
		return false // another member is another key
	}
	was := stamp(list[i].i, list[i].version)
	list[i].version = 4 + rapid.IntRange(0, 1).Draw(t, "bump to")
	before, _ := h.craftText(t)
	if h.run(t, c.scroll(list, ""), "law") {
		return true
	}
	want := strings.ReplaceAll(before, was, stamp(list[i].i, list[i].version))
	// How it is spaced follows its neighbours, which others may have changed.
	plain := strings.NewReplacer(" ", "", "\t", "", "export", "", "\r", "", "\n\n\n", "\n", "\n\n", "\n")
	if have, _ := h.craftText(t); plain.Replace(have) != plain.Replace(want) {
		t.Fatalf("a changed value of %s changed more:\n%s\n-- not --\n%s", was, have, want)
	}
	return false
}
