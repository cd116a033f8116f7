package apply_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"golem/reconcilers"
	"golem/scrolls"
)

// The paths that random trees and scrolls are about: few, so that they meet.
var (
	lawDirs  = []string{"/etc", "/etc/app.d", "/srv", "/srv/deep", "/srv/deep/er"}
	lawFiles = []string{
		"/etc/motd", "/etc/hosts", "/etc/app.d/one", "/etc/app.d/a name", "/srv/data", "/srv/deep/er/x",
		"/srv/deep/y", "/new/made/z", "/new/w", "/etc/link",
	}
	lawLines    = []string{"one", "two", "10.0.0.5 db", "#comment", "a.b*[c]$"} // "two" is as long as what its match meets
	lawContents = []string{
		"", "\n", "a", "one\n", "one\ntwo\n", "one\r\ntwo\r\n", "x\ry\n", "a\r", "\xef\xbb\xbfone\n", "\xef\xbb\xbf",
		"caf\xe9\n", "nul\x00byte", "two\none", "one\none\n", "\r\n", "tea\nten\none\ntwo\none\n10.0.0.9 old\n",
		"a\n# BEGIN golem web\nfound\n# END golem web\nz", "# BEGIN golem db\nno end\n", strings.Repeat("large line of text\n", 6000),
	}
	// Paths of structured files: entries meet there, and whole files.
	lawTrees = []string{"/etc/app.json", "/srv/deep/conf.json", "/etc/app.d/app.yaml"}
	lawYAMLs = []string{
		"", "# none\n", "a: 1", "a:\n    b: [1, 2] # c\nl:\n- x\n", "\xef\xbb\xbfl: []\r\na:\r\n  c: |\r\n    x\r\nn: 1\r\n",
		"---\nn: 1e3\nnew:\n  old: &x {b: \"q\"}\nz: *x\n",
	}
	lawJSONs = []string{
		"", "{}", "{ }\n", `{"a":1}`, "{\n\t\"a\": {\"b\": [1, 2]}, // c\n\t\"l\": [\n\t\t\"x\",\n\t],\n}\n",
		"\xef\xbb\xbf{\r\n  \"l\": [],\r\n  \"a\": {\r\n  }\r\n}\r\n", "{\"n\": 1e3, \"a\": {\"b\": \"caf\xe9\"}} // end",
	}
	strangeNames = []string{"new\nline", "bad\xff\xfeutf8", "sp ace", "-dash", "*"}
)

// A treePlan is a random tree that can be built twice.
type treePlan struct {
	steps []func(root string) error
}

func (p *treePlan) build(root string) error {
	for _, step := range p.steps {
		if err := step(root); err != nil {
			return err
		}
	}
	return nil
}

// drawTree draws what is on a host before golem.
func drawTree(t *rapid.T) *treePlan {
	p := &treePlan{}
	add := func(step func(root string) error) { p.steps = append(p.steps, step) }
	for _, dir := range lawDirs {
		if dir != "/etc" && rapid.Bool().Draw(t, "no "+dir) {
			continue
		}
		mode := rapid.SampledFrom([]uint32{0o755, 0o700, 0o750, 0o2755, 0o1755}).Draw(t, "mode "+dir)
		add(func(root string) error {
			if err := os.MkdirAll(root+dir, 0o755); err != nil {
				return err
			}
			return unix.Chmod(root+dir, mode)
		})
	}
	for _, file := range lawFiles {
		drawNode(t, p, file)
	}
	for _, file := range lawTrees {
		drawTreeFile(t, p, file)
	}
	for _, name := range strangeNames {
		if rapid.IntRange(0, 3).Draw(t, "strange") == 0 {
			add(func(root string) error { return os.WriteFile(filepath.Join(root, "etc", name), []byte(name), 0o600) })
		}
	}
	return p
}

// drawNode draws what stands at one path, where its directory is there.
func drawNode(t *rapid.T, p *treePlan, file string) {
	kind := rapid.SampledFrom([]string{"none", "none", "file", "file", "file", "hard", "link", "dangling", "chain"}).Draw(t, file)
	if kind == "none" {
		return
	}
	content := rapid.SampledFrom(lawContents).Draw(t, "content")
	mode := rapid.SampledFrom([]uint32{0o644, 0o600, 0o755, 0o4755, 0o2711, 0o444, 0}).Draw(t, "mode")
	xattr := rapid.IntRange(0, 4).Draw(t, "xattr") == 0
	acl := rapid.IntRange(0, 4).Draw(t, "acl") == 0
	uid := rapid.SampledFrom([]int{0, 0, 1000, 4711}).Draw(t, "uid")
	mtime := time.Unix(rapid.Int64Range(1e9, 1.7e9).Draw(t, "mtime"), rapid.Int64Range(0, 999999999).Draw(t, "ns"))
	p.steps = append(p.steps, func(root string) error {
		at := root + file
		if _, err := os.Stat(filepath.Dir(at)); err != nil {
			return nil // a missing parent: nothing stands there
		}
		switch kind {
		case "link":
			return os.Symlink("/etc/hosts", at)
		case "dangling":
			return os.Symlink("../nowhere/at-all", at)
		case "chain":
			return os.Symlink("motd", at)
		}
		return buildFile(at, content, kind == "hard", mode, xattr, acl, uid, mtime)
	})
}

// treeTexts are texts of a structured file.
func treeTexts(file string) []string {
	if strings.HasSuffix(file, ".yaml") {
		return lawYAMLs
	}
	return lawJSONs
}

// drawTreeFile draws a structured file, where its directory is there.
func drawTreeFile(t *rapid.T, p *treePlan, file string) {
	if rapid.Bool().Draw(t, "no "+file) {
		return
	}
	content := rapid.SampledFrom(treeTexts(file)).Draw(t, "text")
	mtime := time.Unix(rapid.Int64Range(1e9, 1.7e9).Draw(t, "mtime"), 0)
	p.steps = append(p.steps, func(root string) error {
		if _, err := os.Stat(filepath.Dir(root + file)); err != nil {
			return nil
		}
		return buildFile(root+file, content, false, 0o640, false, false, 0, mtime)
	})
}

func buildFile(at, content string, hard bool, mode uint32, xattr, acl bool, uid int, mtime time.Time) error {
	if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
		return err
	}
	if hard {
		if err := os.Link(at, at+".twin"); err != nil {
			return err
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(at, uid, uid); err != nil {
			return err
		}
	} else {
		mode |= 0o400 // an ordinary user must be able to read what he gives back
	}
	if xattr {
		if err := unix.Setxattr(at, "user.law", []byte{1, 0, 2}, 0); err != nil {
			return err
		}
	}
	if acl { // user::rw-, user:1234:r--, group::r--, mask::r--, other::---
		value := []byte{2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 0xd2, 4, 0, 0, 4, 0, 4, 0, 255, 255, 255, 255, 16, 0, 4, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255}
		if err := unix.Setxattr(at, "system.posix_acl_access", value, 0); err != nil {
			return err
		}
	}
	if err := unix.Chmod(at, mode); err != nil {
		return err
	}
	return os.Chtimes(at, mtime, mtime)
}

// glyph makes a glyph as the loader would.
func glyph(kind string, attrs scrolls.Attrs) *scrolls.Glyph {
	k, ok := reconcilers.KindOf(kind)
	if !ok {
		panic("no kind " + kind)
	}
	if problems := k.Check(attrs); len(problems) > 0 {
		panic(fmt.Sprintf("%v: %v", attrs, problems))
	}
	return &scrolls.Glyph{Kind: kind, Version: k.Version, Attrs: attrs, Key: k.KeyOf(attrs)}
}

// drawScroll draws a scroll of one to three leaves. owned says which of the paths and
// lines it may use, so that two lineages do not claim one key.
func drawScroll(t *rapid.T, name string, mine func(i int) bool) *scrolls.Scroll {
	s := &scrolls.Scroll{Name: name, Policies: map[string]scrolls.Policy{}, Dir: "/law"}
	bases := map[string]bool{}
	seen := map[scrolls.Key]bool{}
	leaves := rapid.IntRange(1, 3).Draw(t, "leaves")
	order := rapid.Permutation([]string{"a", "b", "c"}).Draw(t, "leaf order")
	for i := range leaves {
		leaf := &scrolls.Leaf{Path: order[i], Policy: scrolls.BuiltinPolicy}
		for range rapid.IntRange(0, 5).Draw(t, "glyphs") {
			g := drawGlyph(t, mine)
			path, _ := g.Attrs["path"].(string)
			base := g.Kind != "line" && g.Kind != "region" && g.Kind != "entry"
			if seen[g.Key] || base && bases[path] {
				continue
			}
			seen[g.Key] = true
			if base {
				bases[path] = true
			}
			g.Leaf = leaf.Path
			leaf.Glyphs = append(leaf.Glyphs, g)
		}
		s.Leaves = append(s.Leaves, leaf)
	}
	return s
}

func drawGlyph(t *rapid.T, mine func(i int) bool) *scrolls.Glyph {
	kind := rapid.SampledFrom([]string{"file", "file", "line", "line", "line", "region", "link", "directory", "entry", "entry", "tree"}).Draw(t, "kind")
	switch kind {
	case "entry":
		return glyph("entry", drawEntry(t, mine))
	case "tree":
		at := rapid.IntRange(0, len(lawTrees)-1).Filter(mine).Draw(t, "tree")
		return glyph("file", scrolls.Attrs{"path": lawTrees[at], "content": rapid.SampledFrom(treeTexts(lawTrees[at])).Filter(utf8.ValidString).Draw(t, "content")})
	}
	edit := kind == "line" || kind == "region"
	at := rapid.IntRange(0, len(lawFiles)-1).Filter(func(i int) bool { return edit || mine(i) }).Draw(t, "path")
	attrs := scrolls.Attrs{"path": lawFiles[at]}
	switch kind {
	case "file":
		attrs["content"] = rapid.SampledFrom([]string{"", "v1\n", "v2\n", "one\ntwo\n", "no newline", "crlf\r\n"}).Draw(t, "content")
		drawMeta(t, attrs)
	case "line":
		line := rapid.IntRange(0, len(lawLines)-1).Filter(mine).Draw(t, "line")
		attrs["line"] = lawLines[line]
		drawLineForm(t, attrs, line)
	case "region":
		drawRegion(t, attrs, rapid.IntRange(0, 3).Filter(mine).Draw(t, "region"))
	case "link":
		attrs["target"] = rapid.SampledFrom([]string{"/etc/motd", "nowhere", "../srv/data"}).Draw(t, "target")
	case "directory":
		if rapid.Bool().Draw(t, "known") {
			attrs["path"] = rapid.SampledFrom([]string{"/srv/deep", "/new", "/new/made", "/etc/app.d"}).Draw(t, "dir")
		}
		drawMeta(t, attrs)
	}
	return glyph(kind, attrs)
}

// drawLineForm draws how a line is declared: as itself mostly, or by a match of its own
// that no other line has as its key.
func drawLineForm(t *rapid.T, attrs scrolls.Attrs, line int) {
	form := rapid.SampledFrom([]string{"plain", "plain", "plain", "match", "absent", "none matching"}).Draw(t, "form")
	match := []string{"^on?e$", "^t", "^10[.]0", "^#", "^a[.]b|^large"}[line]
	switch form {
	case "match":
		attrs["match"], attrs["on_many"] = match, rapid.SampledFrom([]string{"first", "last", "all"}).Draw(t, "many")
	case "absent":
		attrs["ensure"] = "absent"
	case "none matching":
		attrs["ensure"], attrs["match"] = "absent", match
	}
	if form == "plain" || form == "match" {
		drawBeside(t, attrs)
	}
}

func drawBeside(t *rapid.T, attrs scrolls.Attrs) {
	if where := rapid.SampledFrom([]string{"", "", "before", "after"}).Draw(t, "where"); where != "" {
		attrs[where] = rapid.SampledFrom([]string{"^one$", "^t", "large", "^no such"}).Draw(t, "beside")
	}
	if rapid.IntRange(0, 9).Draw(t, "validate") == 0 {
		attrs["validate"] = []any{"test", "-f", "%s"}
	}
}

func drawRegion(t *rapid.T, attrs scrolls.Attrs, label int) {
	attrs["name"] = []string{"web", "db", "a b", "c"}[label]
	attrs["content"] = rapid.SampledFrom([]string{"", "one\n", "in the\n\n\tblock", "v2\r\n"}).Draw(t, "body")
	if rapid.IntRange(0, 3).Draw(t, "indented") == 0 {
		attrs["indent"] = "4"
	}
	drawBeside(t, attrs)
}

// drawEntry draws an entry of a structured file. Those that lie in each other are all one
// lineage's.
func drawEntry(t *rapid.T, mine func(i int) bool) scrolls.Attrs {
	attrs := scrolls.Attrs{"path": rapid.SampledFrom(lawTrees).Draw(t, "path")}
	switch rapid.IntRange(0, 3).Filter(mine).Draw(t, "entry") {
	case 0:
		attrs["key"], attrs["member"] = "l", rapid.SampledFrom([]any{"x", "y", "z"}).Draw(t, "member")
	case 1:
		attrs["key"] = rapid.SampledFrom([]any{"new.deep", []any{"new", "deep.er"}}).Draw(t, "key")
		attrs["value"] = rapid.SampledFrom([]any{"v", nil, true}).Draw(t, "value")
	case 2:
		attrs["key"], attrs["absent"] = "n", true
	default:
		attrs["key"] = "k"
		attrs["value"] = rapid.SampledFrom([]any{"v", json.Number("1000"), []any{"x"}, map[string]any{"b": nil}}).Draw(t, "value")
	}
	return attrs
}

func drawMeta(t *rapid.T, attrs scrolls.Attrs) {
	if rapid.Bool().Draw(t, "mode") {
		attrs["mode"] = rapid.SampledFrom([]string{"0600", "0644", "4755", "0711"}).Draw(t, "set mode")
	}
	if os.Geteuid() == 0 && rapid.IntRange(0, 3).Draw(t, "owner") == 0 {
		attrs["owner"] = rapid.SampledFrom([]string{"1000", "33"}).Draw(t, "set owner")
	}
}

func everything(int) bool { return true }
