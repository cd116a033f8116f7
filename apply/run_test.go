package apply_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golem/apply"
	"golem/plan"
	"golem/scrolls"
	"golem/state"
)

// scrollOf makes a scroll of leaves; each is its name and its glyphs.
func scrollOf(leaves ...*scrolls.Leaf) *scrolls.Scroll {
	return &scrolls.Scroll{Name: "run", Dir: "/run", Policies: map[string]scrolls.Policy{}, Leaves: leaves}
}

func leafOf(name string, glyphs ...*scrolls.Glyph) *scrolls.Leaf {
	for _, g := range glyphs {
		g.Leaf = name
	}
	return &scrolls.Leaf{Path: name, Policy: scrolls.BuiltinPolicy, Glyphs: glyphs}
}

func fileGlyph(path, content string) *scrolls.Glyph {
	return glyph("file", scrolls.Attrs{"path": path, "content": content})
}

// hostWith is a host with these files.
func hostWith(t *testing.T, files map[string]string) *lawHost {
	t.Helper()
	h := newLawHost(t)
	t.Cleanup(h.remove)
	for name, text := range files {
		h.write(t, name, text)
	}
	return h
}

func (h *lawHost) write(t tester, name, text string) {
	err := os.MkdirAll(filepath.Dir(h.root+name), 0o755)
	if err = errors.Join(err, os.WriteFile(h.root+name, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// mustApply applies a scroll that nothing is in the way of.
func (h *lawHost) mustApply(t tester, s *scrolls.Scroll) *apply.Report {
	report, err := h.apply(s, "run")
	if err != nil || report.Partial() {
		t.Fatalf("apply: %v %+v", err, failures(report))
	}
	return report
}

// snapshot reads the journal.
func (h *lawHost) snapshot(t tester) *state.Snapshot {
	r, err := state.Read(filepath.Join(h.dir, "journal", "planroom.db"), state.Options{Root: h.root})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	snap, err := r.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// revision is the newest of a lineage; 0 for none.
func (h *lawHost) revision(t tester, lineage string) int {
	if l := h.snapshot(t).Lineages[lineage]; l != nil {
		return l.Revision
	}
	return 0
}

// TestRollbackIsNewestFirst: what a leaf did is taken back in reverse order, across the
// batches it was done in, and the leaf is then what it was.
func TestRollbackIsNewestFirst(t *testing.T) {
	h := hostWith(t, map[string]string{"/etc/one": "1", "/etc/two": "2", "/etc/three": "3", "/dir/in": "4"})
	was := h.fingerprint(t, true)
	s := scrollOf(leafOf("a",
		fileGlyph("/etc/two", "new 2"), fileGlyph("/etc/one", "new 1"), fileGlyph("/etc/three", "new 3"),
		fileGlyph("/dir/in", "new 4"),
		glyph("directory", scrolls.Attrs{"path": "/dir", "mode": "0700"}), // around what was changed: a batch of its own
	))
	var order []string
	last, failed := false, false
	report, err := h.applyWith(s, "run", func(op, path string) error {
		last = last || op == "chmod" && path == "/dir"
		if last && !failed && op == "sync" {
			failed = true
			return faults[1]
		}
		if failed && path != "" && strings.HasPrefix(path, "/") && !slices.Contains(order, path) {
			order = append(order, path)
		}
		return nil
	})
	if err != nil || report.Outcome != apply.RolledBack {
		t.Fatalf("%v, outcome %s", err, report.Outcome)
	}
	want := []string{"/dir", "/dir/in", "/etc/three", "/etc/one", "/etc/two"}
	if !slices.Equal(order, want) {
		t.Errorf("taken back in the order %v, want %v", order, want)
	}
	if diff := compare(was, h.fingerprint(t, true)); diff != "" {
		t.Errorf("the leaf is not what it was:\n%s", diff)
	}
	for _, g := range report.Leaves[0].Glyphs {
		if g.Outcome == "applied" || g.Changed {
			t.Errorf("%s is reported as %s, changed %v", g.Key, g.Outcome, g.Changed)
		}
	}
	h.noTemps(t)
}

// TestInterruptAtEveryCall stops a run before every single change in turn: the leaf in
// flight is what it was, later leaves are not begun, what is done is a revision, and
// the next run has nothing to recover.
func TestInterruptAtEveryCall(t *testing.T) {
	t.Parallel()
	for _, a := range acts {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			want := settledHost(t, a.before, a.act)
			seen := map[state.Outcome]bool{}
			for n := 1; interruptAt(t, a.before, a.act, n, want, seen); n++ {
			}
			for _, outcome := range []state.Outcome{apply.RolledBack, apply.Skipped, apply.Settled} {
				if !seen[outcome] {
					t.Errorf("no interrupt ever left a leaf %s", outcome)
				}
			}
		})
	}
}

// interruptAt cancels an act at its n-th change. It says whether there was an n-th.
func interruptAt(t *testing.T, before []string, act string, n int, want map[string]string, seen map[state.Outcome]bool) bool {
	h, found := stage(t, before)
	defer h.remove()
	was, wasTimed, revision := h.fingerprint(t, false), h.fingerprint(t, true), h.revision(t, "crash")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	calls, where := 0, ""
	report, err := h.applyAs(ctx, apply.Options{Scroll: crashScroll(act), Lineage: "crash"}, func(op, path string) error {
		if calls++; calls == n {
			where = op + " " + path
			cancel()
		}
		return nil
	})
	if where == "" {
		return false
	}
	at := fmt.Sprintf("interrupted at call %d, %s", n, where)
	if !errors.Is(err, context.Canceled) && (err != nil || report.Partial()) {
		t.Fatalf("%s: %v, outcome %s: %+v", at, err, report.Outcome, failures(report))
	}
	if err != nil && errors.As(err, new(*apply.TouchedError)) {
		t.Fatalf("%s: %v is told as an error of the journal", at, err)
	}
	h.leafByLeaf(t, at, report, was, want)
	h.exactlyBack(t, at, report, wasTimed)
	inOrder(t, at, report)
	for _, outcome := range outcomes(report) {
		seen[outcome] = true
	}
	snap := h.snapshot(t)
	if snap.Dead != nil {
		t.Fatalf("%s: the next run has to recover", at)
	}
	changed := compare(wasTimed, h.fingerprint(t, true)) != ""
	if next := h.revision(t, "crash"); changed && next != revision+1 {
		t.Fatalf("%s: revision %d after %d, and the host was changed", at, next, revision)
	}
	if n%3 == 0 { // the other walks do this at every call
		h.settles(t, act, want, found)
	}
	return true
}

// inOrder fails if a leaf settled after one that did not.
func inOrder(t *testing.T, at string, report *apply.Report) {
	var ended state.Outcome
	for _, leaf := range report.Leaves {
		if len(leaf.Glyphs) == 0 {
			continue
		}
		if ended != "" && ended != apply.Settled && leaf.Outcome != apply.Skipped {
			t.Fatalf("%s: leaf %s is %s, after one that was %s", at, leaf.Leaf, leaf.Outcome, ended)
		}
		ended = leaf.Outcome
	}
}

// journalFiles are the journal's files with their content.
func (h *lawHost) journalFiles(t tester) map[string]string {
	files := map[string]string{}
	entries, err := os.ReadDir(h.dir + "/journal")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		data, err := os.ReadFile(h.dir + "/journal/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(data)
	}
	return files
}

// TestNoopWritesNoRow: an apply with nothing to do leaves the journal as it is, to the
// byte, asks nobody and tells nothing.
func TestNoopWritesNoRow(t *testing.T) {
	h, _ := stage(t, nil)
	defer h.remove()
	if report, err := h.apply(crashScroll("one"), "crash"); err != nil || report.Partial() {
		t.Fatalf("%v %+v", err, failures(report))
	}
	journal, tree := h.journalFiles(t), h.fingerprint(t, true)
	var events []apply.Event
	for _, blind := range []bool{false, true} {
		report, err := h.applyAs(context.Background(), apply.Options{
			Scroll: crashScroll("one"), Lineage: "crash", Blind: blind,
			Approve: func(*plan.Plan) (bool, error) { return false, errors.New("somebody was asked") },
			Tell:    func(ev apply.Event) { events = append(events, ev) },
		}, func(op, path string) error {
			if op != "journal lock" {
				return fmt.Errorf("%s %s", op, path)
			}
			return nil
		})
		if err != nil || report.Outcome != apply.Settled || !report.Plan.Empty() || report.Ran() {
			t.Fatalf("%v, outcome %s, ran %v", err, report.Outcome, report.Ran())
		}
	}
	if len(events) > 0 {
		t.Errorf("told: %+v", events)
	}
	if now := h.journalFiles(t); fmt.Sprint(now) != fmt.Sprint(journal) {
		t.Errorf("the journal's files are not what they were")
	}
	if diff := compare(tree, h.fingerprint(t, true)); diff != "" {
		t.Errorf("the host is not what it was:\n%s", diff)
	}
}

// manyGlyphs declares files from one number to another.
func manyGlyphs(from, to int) *scrolls.Scroll {
	var glyphs []*scrolls.Glyph
	for i := from; i < to; i++ {
		glyphs = append(glyphs, fileGlyph(fmt.Sprintf("/srv/f%d", i), "x"))
	}
	return scrollOf(leafOf("many", glyphs...))
}

// TestUnattendedRunDoesNotRemoveMany: more than half and more than twenty removes stop
// an unattended run before anything is touched, unless that many are allowed or meant.
func TestUnattendedRunDoesNotRemoveMany(t *testing.T) {
	allow := func(n int, s *scrolls.Scroll) *scrolls.Scroll {
		policy := scrolls.BuiltinPolicy
		policy.MaxRemoves = n
		s.Policies[""] = policy
		return s
	}
	for _, c := range []struct {
		name     string
		declared int
		next     *scrolls.Scroll
		attended bool
		stops    bool
	}{
		{"21 of 41", 41, manyGlyphs(21, 41), false, true},
		{"21 of 42 are half", 42, manyGlyphs(21, 42), false, false},
		{"20 of 21 are few", 21, manyGlyphs(20, 21), false, false},
		{"21 of 22", 22, manyGlyphs(21, 22), false, true},
		{"all replaced by others", 30, manyGlyphs(30, 60), false, true},
		{"somebody looked", 41, manyGlyphs(21, 41), true, false},
		{"as many as allowed", 41, allow(21, manyGlyphs(21, 41)), false, false},
		{"one more than allowed", 41, allow(20, manyGlyphs(21, 41)), false, true},
		{"a declared empty scroll", 41, scrollOf(), false, false},
		{"a scroll whose fileset is empty", 41, &scrolls.Scroll{Name: "run", Policies: scrollOf().Policies, Written: true}, false, true},
		{"destroy", 41, nil, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := hostWith(t, nil)
			h.mustApply(t, manyGlyphs(0, c.declared))
			tree, journal := h.fingerprint(t, true), h.journalFiles(t)
			report, err := h.applyAs(context.Background(), apply.Options{Scroll: c.next, Lineage: "run", Unattended: !c.attended}, nil)
			var many *apply.ManyRemovesError
			if !c.stops {
				if err != nil || report.Partial() {
					t.Fatalf("%v %+v", err, failures(report))
				}
				return
			}
			if !errors.As(err, &many) || errors.As(err, new(*apply.TouchedError)) {
				t.Fatalf("not stopped: %v", err)
			}
			if many.InForce != c.declared || !strings.Contains(many.Hint(), fmt.Sprintf("max_removes = %d", many.Removes)) {
				t.Errorf("%+v: %v; %s", many, many, many.Hint())
			}
			if diff := compare(tree, h.fingerprint(t, true)); diff != "" {
				t.Errorf("the host was touched:\n%s", diff)
			}
			if fmt.Sprint(journal) != fmt.Sprint(h.journalFiles(t)) {
				t.Error("the journal was written to")
			}
		})
	}
}

// TestNotApprovedTouchesNothing: without a yes, neither host nor journal change.
func TestNotApprovedTouchesNothing(t *testing.T) {
	h := hostWith(t, map[string]string{"/etc/motd": "found"})
	h.mustApply(t, scrollOf(leafOf("a", fileGlyph("/etc/motd", "one"))))
	tree, journal := h.fingerprint(t, true), h.journalFiles(t)
	_, err := h.applyAs(context.Background(), apply.Options{
		Scroll: scrollOf(leafOf("a", fileGlyph("/etc/motd", "two"))), Lineage: "run",
		Approve: func(*plan.Plan) (bool, error) { return false, nil },
	}, nil)
	if !errors.Is(err, apply.ErrDeclined) || errors.As(err, new(*apply.TouchedError)) {
		t.Fatalf("%v, want %v", err, apply.ErrDeclined)
	}
	if diff := compare(tree, h.fingerprint(t, true)); diff != "" {
		t.Errorf("the host was touched:\n%s", diff)
	}
	if fmt.Sprint(journal) != fmt.Sprint(h.journalFiles(t)) {
		t.Error("the journal was written to")
	}
}
