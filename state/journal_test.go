package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"golem/scrolls"
)

func open(t *testing.T, path string, o Options) *Journal {
	t.Helper()
	j, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func do(t *testing.T, j *Journal, fn func(*Tx) error) {
	t.Helper()
	if err := j.Do(fn); err != nil {
		t.Fatal(err)
	}
}

func snapshot(t *testing.T, s interface{ Snapshot() (*Snapshot, error) }) *Snapshot {
	t.Helper()
	snap, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// sound fails the test if the journal finds anything wrong with itself.
func sound(t *testing.T, s interface{ Check() ([]Finding, error) }) {
	t.Helper()
	findings, err := s.Check()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Errorf("check: %s: %s: %s", f.Level, f.What, f.Detail)
	}
}

func glyph(key, content string) *scrolls.Glyph {
	kind, path, _ := strings.Cut(key, ":")
	return &scrolls.Glyph{Kind: kind, Key: scrolls.Key(key), Version: 1, Attrs: scrolls.Attrs{"path": path, "content": content}}
}

// install is a step that puts one file there, on top of what before holds.
func install(run *Run, leaf, key, content string, before *Record) *Step {
	g := glyph(key, content)
	_, path, _ := strings.Cut(key, ":")
	body, _ := json.Marshal(map[string]string{"text": content})
	after := &Record{
		Sort: "path", Resource: path, Found: json.RawMessage(`{"type":"absent"}`), After: body,
		Layers: []Layer{{Key: g.Key, Lineage: run.Lineage, Glyph: g, Changed: true, Inverse: json.RawMessage(`{"take":"<it> & off"}`)}},
	}
	step := &Step{
		Run: run.ID, Lineage: run.Lineage, Leaf: leaf, Sort: "path", Resource: path, Before: before, After: after,
		Inverse: json.RawMessage(`{"type":"absent"}`), Expect: body,
		Glyphs: []StepGlyph{{Op: Install, Key: g.Key, CID: "c1", New: g, Leaf: leaf, Changed: true, Reason: "not there"}},
	}
	if before != nil {
		step.Glyphs[0].Op, step.Glyphs[0].Old = Replace, before.Layers[0].Glyph
		after.Found = before.Found
	}
	return step
}

// begin journals a run with the intents of its steps.
func begin(t *testing.T, j *Journal, run *Run, steps ...*Step) {
	t.Helper()
	do(t, j, func(tx *Tx) error {
		if run.ID == 0 {
			if err := tx.Begin(run); err != nil {
				return err
			}
		}
		for _, s := range steps {
			s.Run = run.ID
		}
		return tx.Intend(steps)
	})
}

func done(t *testing.T, j *Journal, steps ...*Step) {
	t.Helper()
	do(t, j, func(tx *Tx) error {
		for _, s := range steps {
			if err := tx.Done(s); err != nil {
				return err
			}
		}
		return nil
	})
}

func commit(t *testing.T, j *Journal, run *Run, outcome Outcome, declared ...Declared) *Revision {
	t.Helper()
	rev := &Revision{Lineage: run.Lineage, Run: *run, Outcome: outcome, Declared: declared}
	do(t, j, func(tx *Tx) error { return tx.Commit(rev) })
	return rev
}

func keys(snap *Snapshot) string {
	var all []string
	for _, a := range snap.Applied {
		all = append(all, fmt.Sprintf("%s/%s %s r%d %v", a.Lineage, a.Leaf, a.Key, a.Revision, a.Glyph.Attrs["content"]))
	}
	return strings.Join(all, "\n")
}

func TestRunBecomesRevision(t *testing.T) {
	path := filepath.Join(t.TempDir(), "var", "golem", "planroom.db")
	at := time.Date(2026, 11, 30, 4, 0, 0, 5, time.UTC)
	j := open(t, path, Options{Machine: "m1", Root: "/", Now: func() time.Time { return at }})
	run := &Run{
		Lineage: "web", Command: "apply", UID: 1000, SudoUser: "ada", Version: "1.0", BootID: "b", PID: 77,
		Source: "/srv/web", Digest: "d1",
	}
	a, b := install(run, "base", "file:/etc/a", "one", nil), install(run, "base", "file:/etc/b", "two", nil)
	begin(t, j, run, a, b)
	done(t, j, a, b)
	leaf := LeafOutcome{Leaf: "base", Outcome: "settled", Failures: []string{"tried <twice>"}}
	do(t, j, func(tx *Tx) error { return tx.LeafEnd(run.ID, leaf) })
	rev := &Revision{
		Lineage: "web", Run: *run, Outcome: "settled", Leaves: []LeafOutcome{leaf},
		Declared: []Declared{
			{Leaf: "base", Glyphs: []*scrolls.Glyph{a.Glyphs[0].New, b.Glyphs[0].New}, Checks: []*scrolls.Glyph{a.Glyphs[0].New}, Policy: &scrolls.Policy{OnExhaust: "keep", Timeout: 3}},
			{Leaf: "empty"},
		},
	}
	do(t, j, func(tx *Tx) error { return tx.Commit(rev) })
	sound(t, j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}

	r, err := Read(path, Options{Machine: "m1", Root: "/"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := r.Revision("web", 1)
	if err != nil {
		t.Fatal(err)
	}
	rev.Counts = map[Op]int{Install: 2}
	if diff := cmp.Diff(rev, got, cmp.Transformer("utc", func(t time.Time) time.Time { return t.UTC() })); diff != "" {
		t.Errorf("revision (-want +got):\n%s", diff)
	}
	if rev.Kind != "init" || rev.Number != 1 {
		t.Errorf("first revision is %s %d", rev.Kind, rev.Number)
	}
	snap := snapshot(t, r)
	if want := "web/base file:/etc/a r1 one\nweb/base file:/etc/b r1 two"; keys(snap) != want {
		t.Errorf("applied:\n%s\nwant\n%s", keys(snap), want)
	}
	if diff := cmp.Diff(map[string]*Record{"path:/etc/a": a.After, "path:/etc/b": b.After}, snap.Records); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if snap.Dead != nil || snap.Lineages["web"].Revision != 1 || len(snap.Journal) != 32 {
		t.Errorf("snapshot: %+v", snap)
	}
	steps, err := r.StepsOf(run.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]*Step{a, b}, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if _, err := r.Revision("web", 2); !errors.Is(err, ErrMissing) {
		t.Errorf("revision that is not there: %v", err)
	}
}

func TestSecondRevisionIsReconcileAndListed(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "planroom.db"), Options{})
	for n := 1; n <= 2; n++ {
		for _, lineage := range []string{"web", "db"} {
			run := &Run{Lineage: lineage, Command: "apply"}
			s := install(run, "base", "file:/etc/"+lineage, fmt.Sprint(n), nil)
			begin(t, j, run, s)
			done(t, j, s)
			commit(t, j, run, "settled")
		}
	}
	for lineage, want := range map[string]string{"": "web@1 init,db@1 init,web@2 reconcile,db@2 reconcile", "db": "db@1 init,db@2 reconcile"} {
		revs, err := j.Revisions(lineage)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range revs {
			got = append(got, fmt.Sprintf("%s@%d %s", r.Lineage, r.Number, r.Kind))
		}
		if strings.Join(got, ",") != want {
			t.Errorf("revisions of %q: %v, want %s", lineage, got, want)
		}
	}
	sound(t, j)
}

func TestUnknownKindsAreLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "planroom.db")
	j := open(t, path, Options{})
	run := &Run{Lineage: "web", Command: "apply"}
	a, b := install(run, "base", "file:/a", "a", nil), install(run, "base", "quantum:/b", "b", nil)
	begin(t, j, run, a, b)
	done(t, j, a, b)
	commit(t, j, run, "settled")
	j.Close()
	j = open(t, path, Options{KnownKinds: []string{"file", "line"}})
	snap := snapshot(t, j)
	if keys(snap) != "web/base file:/a r1 a" || len(snap.Unknown) != 1 || snap.Unknown[0] != "quantum:/b" {
		t.Errorf("applied %s, unknown %v", keys(snap), snap.Unknown)
	}
	if snap.Records["path:/b"].Layers[0].Glyph.Kind != "quantum" {
		t.Error("the record of an unknown kind was not kept")
	}
}

func TestDuePendingMetaBind(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "planroom.db"), Options{})
	run := &Run{Lineage: "web", Command: "apply"}
	s := install(run, "base", "file:/a", "a", nil)
	begin(t, j, run, s)
	due := Due{Lineage: "web", Leaf: "base", Name: "reload:nginx", Step: s.ID, Body: json.RawMessage(`{"x":1}`)}
	do(t, j, func(tx *Tx) error {
		return errors.Join(tx.SetDue(due), tx.SetDue(due), tx.SetPending(&Pending{Run: run.ID}), tx.SetMeta("k", "v"), tx.BindLineage("web", "/srv"))
	})
	snap := snapshot(t, j)
	if diff := cmp.Diff([]Due{due}, snap.Due); diff != "" {
		t.Error(diff)
	}
	if v, _ := j.Meta("k"); v != "v" || snap.Pending.Run != run.ID || snap.Lineages["web"].Dir != "/srv" {
		t.Errorf("meta %q, pending %+v", v, snap.Pending)
	}
	do(t, j, func(tx *Tx) error { return errors.Join(tx.ClearDue(due), tx.SetPending(nil)) })
	if snap := snapshot(t, j); snap.Due != nil || snap.Pending != nil {
		t.Errorf("not cleared: %+v", snap)
	}
}

func TestGlyphsAreStoredOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "planroom.db")
	j := open(t, path, Options{})
	run := &Run{Lineage: "web", Command: "apply"}
	var layers []Layer
	var declared []*scrolls.Glyph
	for i := range 1000 {
		g := glyph(fmt.Sprintf("line:/a:%d", i), strings.Repeat("long ", 100))
		declared = append(declared, g)
		layers = append(layers, Layer{Key: g.Key, Lineage: "web", Glyph: g})
	}
	do(t, j, func(tx *Tx) error { return tx.Begin(run) })
	var before *Record
	for i := range 20 {
		after := &Record{Sort: "path", Resource: "/a", Layers: layers, After: json.RawMessage(fmt.Sprint(i))}
		s := &Step{Lineage: "web", Leaf: "base", Sort: "path", Resource: "/a", Before: before, After: after}
		begin(t, j, run, s)
		done(t, j, s)
		before = after
	}
	commit(t, j, run, "settled", Declared{Leaf: "base", Glyphs: declared})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	// A thousand glyphs of 500 bytes once, and 39 records of about 50 bytes a layer.
	if st.Size() > 4<<20 {
		t.Errorf("the journal has %d bytes", st.Size())
	}
}

func TestResourcesOfAnyBytes(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "planroom.db"), Options{})
	odd := "/etc/\xff\xfe caf\xe9 'q\" %41 \n"
	run := &Run{Lineage: "web", Command: "apply"}
	s := &Step{
		Lineage: "web", Leaf: "base", Sort: "path", Resource: odd,
		After:  &Record{Sort: "path", Resource: odd, Found: json.RawMessage(`1`)},
		Ledger: []LedgerChange{{Sort: "dir", Resource: odd, After: &Entry{Sort: "dir", Resource: odd}}},
	}
	begin(t, j, run, s)
	done(t, j, s)
	do(t, j, func(tx *Tx) error { return tx.Keep(&Kept{Path: odd, Run: run.ID, Step: s.ID, Reason: "edited"}) })
	snap := snapshot(t, j)
	if snap.Records["path:"+odd] == nil || snap.Ledger["dir:"+odd] == nil {
		t.Errorf("snapshot: %+v", snap)
	}
	if diff := cmp.Diff(s, snap.Dead.Steps[0]); diff != "" {
		t.Errorf("step (-want +got):\n%s", diff)
	}
	if k, err := j.KeptByID(1); err != nil || k.Path != odd {
		t.Errorf("kept: %+v, %v", k, err)
	}
	if _, err := j.KeptByID(2); !errors.Is(err, ErrMissing) {
		t.Errorf("kept that is not there: %v", err)
	}
	do(t, j, func(tx *Tx) error { return tx.Reverse(s, "") })
	if snap := snapshot(t, j); len(snap.Ledger)+len(snap.Records) != 0 {
		t.Errorf("reversed, but left: %+v", snap)
	}
}

// modes lists what lies in a directory with its mode.
