package apply_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"golem/scrolls"
)

// The archives of the laws, made by real programs: two versions and a third that have
// files, directories and links in each other's places, and one that goes beside them.
var lawArchives = []string{"app-1.tar", "app-2.tar.gz", "app-3.zip", "plug.tar.xz"}

// The paths that these archives, and glyphs around them, meet on.
var (
	archiveHomes  = []string{"/srv/app", "/new/app", "/srv"}
	archiveFound  = []string{"/srv/app/bin/run", "/srv/app/conf", "/srv/app/lib/a", "/srv/app/lib/deep", "/srv/app/cur", "/srv/app/own", "/srv/conf"}
	archiveBeside = []string{"/srv/app/lib/extra", "/srv/app/conf", "/new/app/bin/run", "/srv/app/own", "/srv/app/more/deep/other", "/srv/app/lib/a"}
)

var readArchive = sync.OnceValues(func() (map[string]scrolls.Attrs, error) {
	all := map[string]scrolls.Attrs{}
	for _, name := range lawArchives {
		data, err := os.ReadFile(filepath.Join("testdata/archives", name))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		all[name] = scrolls.Attrs{"path": name, "sha256": hex.EncodeToString(sum[:]), "size": json.Number(fmt.Sprint(len(data)))}
	}
	return all, nil
})

// archive makes a glyph as the loader would.
func archive(path, name string, more scrolls.Attrs) *scrolls.Glyph {
	known, err := readArchive()
	if err != nil {
		panic(err)
	}
	attrs := scrolls.Attrs{"path": path, "source": map[string]any(known[name])}
	for attr, value := range more {
		attrs[attr] = value
	}
	g := glyph("archive", attrs)
	g.Files = map[string]string{"source": filepath.Join("testdata/archives", name)}
	return g
}

// drawUnpacked draws one archive, or what stands beside one.
func drawUnpacked(t *rapid.T, mine func(i int) bool) *scrolls.Glyph {
	switch rapid.SampledFrom([]string{"archive", "archive", "archive", "file", "directory", "line", "link"}).Draw(t, "kind") {
	case "archive":
		more := scrolls.Attrs{}
		if rapid.IntRange(0, 2).Draw(t, "exclude") == 0 {
			more["exclude"] = rapid.SampledFrom([]any{[]any{"conf"}, []any{"lib", "hard"}, []any{"**/a", "cur"}}).Draw(t, "patterns")
		}
		if os.Geteuid() == 0 && rapid.IntRange(0, 4).Draw(t, "owner") == 0 {
			more["owner"] = rapid.SampledFrom([]string{"1000", "33"}).Draw(t, "set owner")
		}
		at := rapid.IntRange(0, len(lawArchives)-1).Filter(mine).Draw(t, "archive")
		return archive(rapid.SampledFrom(archiveHomes).Draw(t, "home"), lawArchives[at], more)
	case "directory":
		attrs := scrolls.Attrs{"path": rapid.SampledFrom([]string{"/srv/app", "/srv/app/lib", "/new", "/srv/app/empty"}).Filter(func(p string) bool { return mine(len(p)) }).Draw(t, "dir")}
		if rapid.Bool().Draw(t, "mode") {
			attrs["mode"] = rapid.SampledFrom([]string{"0711", "0700"}).Draw(t, "set mode")
		}
		return glyph("directory", attrs)
	case "line":
		return glyph("line", scrolls.Attrs{"path": "/srv/app/own", "line": lawLines[rapid.IntRange(0, len(lawLines)-1).Filter(mine).Draw(t, "line")]})
	case "link":
		at := rapid.IntRange(0, 1).Filter(mine).Draw(t, "link")
		return glyph("link", scrolls.Attrs{"path": []string{"/srv/app/other", "/new/app/cur"}[at], "target": "own"})
	}
	at := rapid.IntRange(0, len(archiveBeside)-1).Filter(mine).Draw(t, "beside")
	return glyph("file", scrolls.Attrs{"path": archiveBeside[at], "content": rapid.SampledFrom([]string{"v1\n", "a\n", "conf-1\n"}).Draw(t, "content")})
}

func drawArchives(t *rapid.T, name string, mine func(i int) bool) *scrolls.Scroll {
	s := &scrolls.Scroll{Name: name, Policies: map[string]scrolls.Policy{}, Dir: "/law"}
	seen, at := map[scrolls.Key]bool{}, map[string]bool{}
	order := rapid.Permutation([]string{"a", "b", "c"}).Draw(t, "leaf order")
	for i := range rapid.IntRange(1, 3).Draw(t, "leaves") {
		leaf := &scrolls.Leaf{Path: order[i], Policy: scrolls.BuiltinPolicy}
		for range rapid.IntRange(0, 3).Draw(t, "glyphs") {
			g := drawUnpacked(t, mine)
			p, _ := g.Attrs["path"].(string)
			if base := g.Kind != "line" && g.Kind != "archive"; seen[g.Key] || base && at[p] {
				continue
			} else if base {
				at[p] = true
			}
			seen[g.Key] = true
			g.Leaf = leaf.Path
			leaf.Glyphs = append(leaf.Glyphs, g)
		}
		s.Leaves = append(s.Leaves, leaf)
	}
	return s
}

// drawArchiveTree draws what is on a host before the archives.
func drawArchiveTree(t *rapid.T) *treePlan {
	p := &treePlan{}
	for _, dir := range []string{"/srv", "/srv/app", "/srv/app/lib", "/srv/app/bin"} {
		if dir != "/srv" && rapid.Bool().Draw(t, "no "+dir) {
			continue
		}
		mode := rapid.SampledFrom([]os.FileMode{0o755, 0o700, 0o750}).Draw(t, "mode "+dir)
		p.steps = append(p.steps, func(root string) error {
			return errors.Join(os.MkdirAll(root+dir, 0o755), os.Chmod(root+dir, mode))
		})
	}
	for _, file := range archiveFound {
		drawNode(t, p, file)
	}
	return p
}

// archiveChecks tries a law on fewer hosts than others: each takes longer.
func archiveChecks(t *testing.T, law func(t *rapid.T)) {
	t.Helper()
	lawChecks(t)
	few, failed := 60, false
	if os.Getenv("GOLEM_SOAK") != "" {
		few = 5000
	}
	rapid.Check(t, func(t *rapid.T) {
		if few--; few < 0 && !failed { // what shrinks a failure is not counted
			return
		}
		defer func() { failed = failed || t.Failed() }()
		law(t)
	})
}

// TestLawArchivesExactReturn: whatever archives were unpacked over each other and over
// what was there, destroy gives the host back.
func TestLawArchivesExactReturn(t *testing.T) {
	refused, all := 0, 0
	archiveChecks(t, func(t *rapid.T) {
		h := newLawHost(t)
		defer h.remove()
		if err := drawArchiveTree(t).build(h.root); err != nil {
			t.Fatal(err)
		}
		found := h.fingerprint(t, true)
		for range rapid.IntRange(1, 4).Draw(t, "scrolls") {
			s := drawArchives(t, "law", everything)
			all++
			if h.run(t, s, "law") {
				refused++
				continue
			}
			h.settled(t, s, "law")
		}
		h.run(t, nil, "law")
		if diff := compare(found, h.fingerprint(t, true)); diff != "" {
			t.Fatalf("destroy did not give the host back:\n%s", diff)
		}
		h.noTemps(t)
		h.check(t)
	})
	if refused*3 > all*2 {
		t.Errorf("%d of %d scrolls were refused: the law says little", refused, all)
	}
}

// TestLawArchivesPathIndependence: the host after S1 … Sn is the host after Sn alone.
func TestLawArchivesPathIndependence(t *testing.T) {
	archiveChecks(t, func(t *rapid.T) {
		long, short := twinsOf(t, drawArchiveTree(t))
		defer long.remove()
		defer short.remove()
		for range rapid.IntRange(1, 3).Draw(t, "scrolls before") {
			long.run(t, drawArchives(t, "law", everything), "law")
		}
		last := drawArchives(t, "law", everything)
		if long.run(t, last, "law") || short.run(t, last, "law") {
			return // refused on one of the two: what the order of leaves does not allow
		}
		if diff := compare(short.fingerprint(t, false), long.fingerprint(t, false)); diff != "" {
			t.Fatalf("the way there shows:\n%s", diff)
		}
	})
}

// TestLawArchivesTwoLineages: two scrolls on one host, in the same directories.
func TestLawArchivesTwoLineages(t *testing.T) {
	archiveChecks(t, func(t *rapid.T) {
		h := newLawHost(t)
		defer h.remove()
		if err := drawArchiveTree(t).build(h.root); err != nil {
			t.Fatal(err)
		}
		found := h.fingerprint(t, true)
		names := []string{"even", "odd"}
		for range rapid.IntRange(2, 5).Draw(t, "runs") {
			who := rapid.IntRange(0, 1).Draw(t, "lineage")
			s := drawArchives(t, names[who], func(i int) bool { return i%2 == who })
			if rapid.IntRange(0, 3).Draw(t, "destroy") == 0 {
				s = nil
			}
			if !h.run(t, s, names[who]) && s != nil {
				h.settled(t, s, names[who])
			}
		}
		for _, who := range rapid.Permutation([]int{0, 1}).Draw(t, "last") {
			h.run(t, nil, names[who])
		}
		if diff := compare(found, h.fingerprint(t, true)); diff != "" {
			t.Fatalf("destroying both did not give the host back:\n%s", diff)
		}
		h.check(t)
	})
}

// TestLawArchivesHumansInBetween: what somebody wrote over an archive's files is on the
// host in the end, or kept.
func TestLawArchivesHumansInBetween(t *testing.T) {
	archiveChecks(t, func(t *rapid.T) {
		h := newLawHost(t)
		defer h.remove()
		if err := drawArchiveTree(t).build(h.root); err != nil {
			t.Fatal(err)
		}
		var tokens []string
		for i := range rapid.IntRange(1, 3).Draw(t, "rounds") {
			h.run(t, drawArchives(t, "law", everything), "law")
			for j := range rapid.IntRange(0, 3).Draw(t, "edits") {
				token := fmt.Sprintf("stranger-%d-%d", i, j)
				at := h.root + rapid.SampledFrom(append(archiveFound, archiveBeside...)).Draw(t, "his path")
				st, err := os.Lstat(at)
				if err != nil || !st.Mode().IsRegular() {
					continue
				}
				h.lose(at, &tokens)
				if rapid.IntRange(0, 3).Draw(t, "removes") == 0 {
					_ = os.Remove(at)
				} else if os.WriteFile(at, []byte(token), 0o644) == nil {
					tokens = append(tokens, token)
				}
			}
		}
		h.run(t, drawArchives(t, "law", everything), "law")
		h.run(t, nil, "law")
		have := strings.Join(append(h.contents(t), h.kept(t)...), "\x00")
		for _, token := range tokens {
			if !strings.Contains(have, token) {
				t.Fatalf("%s is neither on the host nor kept", token)
			}
		}
		h.check(t)
	})
}
