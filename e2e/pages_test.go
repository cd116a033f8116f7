package e2e

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The examples of a kind's page: files as they are before and after, and a scroll between.
var (
	pageFile   = regexp.MustCompile("(?ms)^<!-- (before|after) (/\\S+) -->\n+```\n(.*?)^```$")
	pageScroll = regexp.MustCompile("(?ms)^## Examples?\n.*?^```hcl\n(.*?)^```$")
)

// TestTheExamplesOfThePagesDoWhatTheySay applies each kind's example to the files that it
// shows: they become what it shows, the next plan is empty, and destroy gives them back.
func TestTheExamplesOfThePagesDoWhatTheySay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../docs/kinds/*.md")
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	for _, file := range files {
		page := readPage(t, file)
		shown := pageFile.FindAllStringSubmatch(page, -1)
		scroll := pageScroll.FindStringSubmatch(page)
		if len(shown) == 0 || scroll == nil {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		tried[name] = true
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			for _, m := range shown {
				if m[1] == "before" {
					b.write("tree"+m[2], m[3])
				}
			}
			before := b.print()
			b.declare(scroll[1])
			b.apply()
			for _, m := range shown {
				if now := b.read("tree" + m[2]); m[1] == "after" && now != m[3] {
					t.Errorf("%s is\n%s\nand the page shows\n%s", m[2], now, m[3])
				}
			}
			says(t, b.want(0, "plan", b.scroll).stdout, "No changes.")
			b.destroy()
			b.same("after destroy", before)
		})
	}
	for _, name := range []string{"line", "region", "entry", "file"} {
		if !tried[name] {
			t.Errorf("docs/kinds/%s.md has no example", name)
		}
	}
}
