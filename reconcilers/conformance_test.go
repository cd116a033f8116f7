package reconcilers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"golem/reconcilers/fake"
	"golem/scrolls"
	"golem/state"
)

// samples draw one glyph of each kind, on the path that the suite's host is about. A
// kind without a sample fails the suite.
var samples = map[string]func(t *rapid.T) scrolls.Attrs{
	"file": func(t *rapid.T) scrolls.Attrs {
		return withMode0(t, scrolls.Attrs{"path": "/d/it", "content": rapid.SampledFrom([]string{"", "new\n", "no end"}).Draw(t, "content")})
	},
	"directory": func(t *rapid.T) scrolls.Attrs { return withMode0(t, scrolls.Attrs{"path": "/d/dir"}) },
	"link":      func(*rapid.T) scrolls.Attrs { return scrolls.Attrs{"path": "/d/it", "target": "elsewhere"} },
	"line":      sampleLine,
	"region":    sampleRegion,
	"entry":     sampleEntry,
	"service":   sampleService,
	"apt":       samplePackage,
	"process":   sampleProcess,
	"command":   sampleCommand,
	"container": sampleContainer,
	"network":   sampleNetwork,
	"user":      sampleUserWithKeys,
	"group":     sampleGroup,
	"access":    sampleAccess,
	"archive":   sampleArchive,
}

func sampleLine(t *rapid.T) scrolls.Attrs {
	a := scrolls.Attrs{"path": "/d/it", "line": rapid.SampledFrom([]string{"new", "found", "x y"}).Draw(t, "line")}
	drawLineForm(t, a, []string{"found", "^f", "o", "^x", "none"})
	return a
}

func sampleEntry(t *rapid.T) scrolls.Attrs {
	a := scrolls.Attrs{"path": "/d/it", "format": "json", "key": rapid.SampledFrom([]any{"a.b", "found", []any{"l", json.Number("0")}}).Draw(t, "key")}
	switch rapid.SampledFrom([]string{"value", "member", "absent"}).Draw(t, "wish") {
	case "value":
		a["value"] = rapid.SampledFrom([]any{"x", nil, true, json.Number("12"), []any{"x"}}).Draw(t, "value")
	case "member":
		a["key"], a["member"] = "l", rapid.SampledFrom([]any{"x", json.Number("1")}).Draw(t, "member")
	default:
		a["key"], a["absent"] = "found", true
	}
	return a
}

// drawLineForm draws what a line has beside its text: nothing, mostly.
func drawLineForm(t *rapid.T, a scrolls.Attrs, regexps []string) {
	re := rapid.SampledFrom(regexps)
	switch rapid.SampledFrom([]string{"plain", "plain", "match", "absent", "none matching"}).Draw(t, "form") {
	case "match":
		a["match"] = re.Draw(t, "match")
		a["on_many"] = rapid.SampledFrom([]string{"first", "last", "all"}).Draw(t, "many")
	case "absent":
		a["ensure"] = "absent"
		return
	case "none matching":
		a["ensure"], a["match"] = "absent", re.Draw(t, "match")
		delete(a, "line")
		return
	}
	if where := rapid.SampledFrom([]string{"", "", "before", "after"}).Draw(t, "where"); where != "" {
		a[where] = re.Draw(t, "beside")
	}
	if rapid.IntRange(0, 9).Draw(t, "validate") == 0 {
		a["validate"] = []any{"test", "-s", "%s"}
	}
}

func sampleRegion(t *rapid.T) scrolls.Attrs {
	a := scrolls.Attrs{
		"path": "/d/it", "name": rapid.SampledFrom([]string{"web", "a b"}).Draw(t, "name"),
		"content": rapid.SampledFrom([]string{"", "one", "one\n\ttwo\n\n", "crlf\r\n", "found"}).Draw(t, "body"),
	}
	switch rapid.IntRange(0, 4).Draw(t, "markers") {
	case 0:
		a["marker_begin"], a["marker_end"] = "<<<", ">>>"
	case 1:
		a["comment"] = rapid.SampledFrom([]string{"//", "<!-- -->"}).Draw(t, "comment")
	case 2:
		a["indent"] = rapid.SampledFrom([]string{"2", "\t"}).Draw(t, "indent")
	}
	if where := rapid.SampledFrom([]string{"", "", "before", "after"}).Draw(t, "where"); where != "" {
		a[where] = rapid.SampledFrom([]string{"found", "^x", "none"}).Draw(t, "beside")
	}
	return a
}

// A stage is what a sort of resource needs of the suite's host.
type stage struct {
	draw  func(b *bench)          // what was there before
	host  func(b *bench, h *Host) // what answers in place of programs; nil for nothing
	print func(b *bench) string   // a fingerprint of what the sort is about
	acts  bool                    // its turns are worked out otherwise when they are enacted
}

var stages = map[string]stage{
	PathSort:    {draw: (*bench).drawFiles, print: (*bench).printFiles},
	UnitSort:    {draw: (*bench).drawUnits, host: (*bench).bootUnits, print: func(b *bench) string { return b.systemd.Print() }},
	archiveSort: {draw: (*bench).drawArchives, print: (*bench).printFiles},
	PackageSort: {draw: func(*bench) {}, host: (*bench).bootApt, print: (*bench).printApt},
	userSort:    {draw: (*bench).drawAccounts, host: (*bench).bootAccounts, print: (*bench).printAccounts, acts: true},
	groupSort:   {draw: (*bench).drawAccounts, host: (*bench).bootAccounts, print: (*bench).printAccounts, acts: true},
	processSort: {
		draw: (*bench).drawUnits, host: (*bench).bootUnits,
		print: func(b *bench) string { return b.printFiles() + b.systemd.Print() },
	},
	commandSort:   {draw: (*bench).drawMade, host: (*bench).bootPrograms, print: (*bench).printFiles},
	ContainerSort: {draw: func(*bench) {}, host: (*bench).bootPods, print: (*bench).printPods},
	NetworkSort:   {draw: func(*bench) {}, host: (*bench).bootPods, print: (*bench).printPods},
	accessSort:    {draw: (*bench).drawLists, print: (*bench).printLists},
}

func withMode0(t *rapid.T, a scrolls.Attrs) scrolls.Attrs {
	if rapid.Bool().Draw(t, "mode") {
		a["mode"] = rapid.SampledFrom([]string{"0600", "4711", "755"}).Draw(t, "digits")
	}
	return a
}

// A memStore is a journal's blobs without a journal.
type memStore map[string][]byte

func (m memStore) OpenBlob(hash string) (io.ReadCloser, int64, error) {
	data, ok := m[hash]
	if !ok {
		return nil, 0, fmt.Errorf("open blob %s: it was never put", hash)
	}
	return io.NopCloser(bytes.NewReader(data)), int64(len(data)), nil
}

func (m memStore) Put(data []byte) (string, error) {
	n := fileNode(data)
	m[n.Hash] = data
	return n.Hash, nil
}

func (m memStore) PutFile(f *os.File, _ string) (string, error) {
	data, err := io.ReadAll(f)
	if err != nil {
		return "", err
	}
	return m.Put(data)
}

func (m memStore) Keep(_ state.Kept, open func() (*os.File, error)) error {
	if open == nil {
		return nil
	}
	f, err := open()
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = m.PutFile(f, "")
	return err
}

// A bench is a host for one draw of the suite.
type bench struct {
	t     *rapid.T
	root  string
	w     *World
	store memStore
	rec   Reconciler
	g     *scrolls.Glyph
	stage stage
	kind  string

	systemd *fake.Systemd // of the sort that is about units
	machine *fake.Machine // of the sort that is about packages
	pods    *fake.Pods    // of those that are about containers
}

func newBench(t *rapid.T, kind Kind) *bench {
	base := ""
	if st, err := os.Stat("/dev/shm"); err == nil && st.IsDir() && stages[kind.Sort].host != nil {
		base = "/dev/shm" // a tree in memory will do for what is about programs
	}
	root, err := os.MkdirTemp(base, "golem-suite-")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, root: root, store: memStore{}, rec: Reconcilers[kind.Sort], stage: stages[kind.Sort], kind: kind.Name}
	b.stage.draw(b)
	h, err := OpenHost(root)
	if err != nil {
		t.Fatal(err)
	}
	if b.stage.host != nil {
		b.stage.host(b, h)
	}
	b.w = NewWorld(h, b.store)
	b.w.Acts = b.stage.acts
	attrs := samples[kind.Name](t)
	if problems := kind.Check(attrs); len(problems) > 0 {
		t.Fatalf("%v: %v", attrs, problems)
	}
	b.g = &scrolls.Glyph{Kind: kind.Name, Version: kind.Version, Attrs: attrs, Key: kind.KeyOf(attrs)}
	return b
}

func (b *bench) close() {
	b.w.Close()
	_ = b.w.Host.Close()
	_ = os.RemoveAll(b.root)
}

// drawFiles draws what was there before: around /d/it and /d/dir, and beside them.
func (b *bench) drawFiles() {
	must := func(err error) {
		if err != nil {
			b.t.Fatal(err)
		}
	}
	must(os.WriteFile(b.root+"/bystander", []byte("untouched"), 0o604))
	if rapid.Bool().Draw(b.t, "no parent") {
		return
	}
	must(os.Mkdir(b.root+"/d", 0o755))
	beside, texts := "untouched too", []string{
		"", "found", "found\nx y\n", "crlf\r\n", "\xff\x00raw", "fo\nx\nfound\nfound\n",
		"\xef\xbb\xbffound\r\nx y\r\nx y", "a\n# BEGIN golem web\nfound\n# END golem web", "found\r",
	}
	if b.kind == entryKind.Name { // which takes only what it can read
		beside, texts = "{}", []string{"", "{}", `{"found": 1}`, "{\r\n\t\"l\": [\"x\"], // c\r\n\t\"a\": {\"b\": \"\xff\"}\r\n}"}
	}
	must(os.WriteFile(b.root+"/d/beside", []byte(beside), 0o640))
	switch rapid.SampledFrom([]string{"none", "file", "link"}).Draw(b.t, "found") {
	case "file":
		text := rapid.SampledFrom(texts).Draw(b.t, "bytes")
		must(os.WriteFile(b.root+"/d/it", []byte(text), 0o600))
		must(unix.Setxattr(b.root+"/d/it", "user.suite", []byte("x"), 0))
		must(os.Chmod(b.root+"/d/it", os.FileMode(rapid.SampledFrom([]uint32{0o600, 0o644, 0o755}).Draw(b.t, "found mode"))))
	case "link":
		must(os.Symlink("beside", b.root+"/d/it"))
	}
	if rapid.Bool().Draw(b.t, "dir") {
		must(os.Mkdir(b.root+"/d/dir", 0o710))
	}
}

// turn works out the glyph's installation, or with a record its next one.
func (b *bench) turn(record *state.Record, drop bool) *Turn {
	b.w.forget()
	spots, mistakes, err := b.rec.Locate(context.Background(), b.w, []*scrolls.Glyph{b.g}, nil)
	if err != nil || len(mistakes) > 0 {
		b.t.Fatalf("locate: %v %v", mistakes, err)
	}
	r := Request{Lineage: "suite", Leaf: "leaf", Sort: b.rec.Sort(), Resource: spots[b.g].Resource, Record: record, Set: []*scrolls.Glyph{b.g}}
	if drop {
		r.Set, r.Drop, r.Late = nil, map[scrolls.Key]*scrolls.Glyph{b.g.Key: b.g}, true
		r.Resource = record.Resource
	}
	t, err := b.rec.Turn(context.Background(), b.w, r)
	if err == nil {
		err = b.fit(t)
	}
	if err != nil {
		b.t.Fatalf("turn: %v", err)
	}
	return t
}

// fit completes a turn, as a batch of its own.
func (b *bench) fit(t *Turn) error {
	if err := b.rec.Fit(b.w, t); err != nil || t.Step == nil {
		return err
	}
	return b.rec.Join(context.Background(), b.w, []*Turn{t})
}

func (b *bench) capture(t *Turn) {
	if err := b.rec.Capture(context.Background(), b.w, b.store, []*Turn{t}); err != nil {
		b.t.Fatalf("capture: %v", err)
	}
}

func (b *bench) enact(t *Turn) {
	b.capture(t)
	if _, err := b.rec.Enact(context.Background(), b.w, b.store, []*Turn{t}); err != nil {
		b.t.Fatalf("enact: %v", err)
	}
}

func (b *bench) undo(t *Turn) {
	if err := b.rec.Undo(context.Background(), b.w, b.store, t.Step); err != nil {
		b.t.Fatalf("undo: %v", err)
	}
}

// print is the host's fingerprint.
func (b *bench) print() string { return b.stage.print(b) }

// printFiles is a fingerprint of the whole file tree.
func (b *bench) printFiles() string {
	var out strings.Builder
	err := filepath.WalkDir(b.root, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s %o %d:%d", strings.TrimPrefix(p, b.root), st.Mode, st.Uid, st.Gid)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			x, err := readXattrs(linkXattrs{p})
			fmt.Fprintf(&out, " %q %d %v", data, st.Mtim.Nano(), x)
			if err != nil {
				return err
			}
		case unix.S_IFLNK:
			target, _ := os.Readlink(p)
			out.WriteString(" -> " + target)
		}
		out.WriteByte('\n')
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out.String()
}

func (b *bench) same(what, want string) {
	if got := b.print(); got != want {
		b.t.Fatalf("%s:\nwas %s\nis  %s", what, want, got)
	}
}

// sweep takes by-products away, of whatever sort.
func (b *bench) sweep() {
	own := b.rec
	defer func() { b.rec = own }()
	for _, b.rec = range Reconcilers {
		swept, err := b.rec.Sweep(context.Background(), b.w)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, s := range swept {
			if err := b.fit(s); err != nil {
				b.t.Fatal(err)
			}
			b.enact(s)
		}
	}
}

// TestConformance holds every kind to the laws of the port.
func TestConformance(t *testing.T) {
	laws := []struct {
		name string
		hold func(b *bench)
	}{
		{"LookingIsSilent", func(b *bench) {
			was := b.print()
			b.capture(b.turn(nil, false))
			b.same("looking changed the host", was)
		}},
		{"UndoAfterEnactIsIdentity", func(b *bench) {
			was := b.print()
			turn := b.turn(nil, false)
			b.enact(turn)
			b.undo(turn)
			b.same("undo did not restore the host", was)
		}},
		{"EnactTwiceIsOnce", func(b *bench) {
			turn := b.turn(nil, false)
			b.enact(turn)
			was := b.print()
			again := b.turn(turn.Step.After, false)
			if again.Step != nil {
				b.t.Fatalf("a second turn finds something to do: %+v", again.Changes)
			}
			b.same("looking again changed the host", was)
		}},
		{"CaptureCrashUndoChangesNothing", func(b *bench) {
			was := b.print()
			turn := b.turn(nil, false)
			b.capture(turn)
			b.undo(turn)
			b.same("undo without enact changed the host", was)
		}},
		{"UndoTwiceIsOnce", func(b *bench) {
			was := b.print()
			turn := b.turn(nil, false)
			b.enact(turn)
			b.undo(turn)
			b.undo(turn)
			b.same("a second undo changed the host", was)
		}},
		{"UndeclareGivesBack", func(b *bench) {
			was := b.print()
			turn := b.turn(nil, false)
			b.enact(turn)
			b.enact(b.turn(turn.Step.After, true))
			b.w.forget()
			b.sweep()
			b.same("undeclaring did not give the host back", was)
		}},
	}
	for _, kind := range All {
		t.Run(kind.Name, func(t *testing.T) {
			if samples[kind.Name] == nil {
				t.Fatalf("the kind %q has no sample here", kind.Name)
			}
			for _, law := range laws {
				t.Run(law.name, rapid.MakeCheck(func(t *rapid.T) {
					b := newBench(t, kind)
					defer b.close()
					law.hold(b)
				}))
			}
		})
	}
}
