package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

func commit(t *testing.T, j *Journal, run *Run, outcome string, declared ...Declared) *Revision {
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
		Declared: []Declared{{"base", []*scrolls.Glyph{a.Glyphs[0].New, b.Glyphs[0].New}}, {"empty", nil}},
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

func TestDeadRunIsSeenWhole(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "planroom.db"), Options{})
	run := &Run{Lineage: "web", Command: "apply"}
	a, b := install(run, "one", "file:/a", "a", nil), install(run, "two", "file:/b", "b", nil)
	c, d := install(run, "two", "file:/c", "c", nil), install(run, "two", "file:/d", "d", nil)
	begin(t, j, run, a, b, c, d)
	done(t, j, a, b)
	do(t, j, func(tx *Tx) error {
		return errors.Join(tx.LeafEnd(run.ID, LeafOutcome{Leaf: "one", Outcome: "settled"}), tx.Fail(d, "no"))
	})
	ids := func(steps []*Step) (s string) {
		for _, step := range steps {
			s += fmt.Sprintf("%s %s;", step.Resource, step.Status)
		}
		return s
	}
	dead := snapshot(t, j).Dead
	if dead == nil || dead.Run.ID != run.ID || len(dead.Leaves) != 1 {
		t.Fatalf("dead: %+v", dead)
	}
	if got := ids(dead.Steps); got != "/b done;/c intended;" {
		t.Errorf("unsettled: %s", got)
	}
	if got := ids(dead.Settled); got != "/a done;" {
		t.Errorf("settled: %s", got)
	}
	err := j.Do(func(tx *Tx) error { return tx.Begin(&Run{Lineage: "web", Command: "apply"}) })
	var unsettled *UnsettledError
	if !errors.As(err, &unsettled) || unsettled.Run != run.ID {
		t.Errorf("begin over a dead run: %v", err)
	}

	// A recovery takes back the newest, and dies in its turn.
	do(t, j, func(tx *Tx) error { return tx.Begin(&Run{Lineage: "web", Command: "recover"}) })
	do(t, j, func(tx *Tx) error { return tx.Reverse(dead.Steps[1], "as before") })
	dead = snapshot(t, j).Dead
	if dead == nil || dead.Run.ID != run.ID || ids(dead.Steps) != "/b done;" {
		t.Fatalf("dead after half a recovery: %+v", dead)
	}
	do(t, j, func(tx *Tx) error { return tx.Reverse(dead.Steps[0], "taken back") })
	commit(t, j, run, "recovered")
	snap := snapshot(t, j)
	if snap.Dead != nil || keys(snap) != "web/one file:/a r1 a" {
		t.Errorf("after recovery: %s, dead %+v", keys(snap), snap.Dead)
	}
	if len(snap.Records) != 1 {
		t.Errorf("records after recovery: %v", snap.Records)
	}
	sound(t, j)
}

func TestStepEndsOnce(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "planroom.db"), Options{})
	run := &Run{Lineage: "web", Command: "apply"}
	s := install(run, "base", "file:/a", "a", nil)
	begin(t, j, run, s)
	refused := func(what string, fn func(*Tx) error) {
		t.Helper()
		if err := j.Do(fn); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	do(t, j, func(tx *Tx) error { return tx.Done(s) })
	refused("done twice", func(tx *Tx) error { return tx.Done(s) })
	refused("failed after done", func(tx *Tx) error { return tx.Fail(s, "") })
	do(t, j, func(tx *Tx) error { return tx.Reverse(s, "") })
	refused("reversed twice", func(tx *Tx) error { return tx.Reverse(s, "") })
	refused("done after reversed", func(tx *Tx) error { return tx.Done(s) })
	refused("a step never intended", func(tx *Tx) error { return tx.Done(&Step{ID: 99}) })
	sound(t, j)
}

func TestStepMayTurnOutOtherwise(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "planroom.db"), Options{})
	run := &Run{Lineage: "web", Command: "apply"}
	s := install(run, "base", "file:/a", "a", nil)
	begin(t, j, run, s)
	s.After.After = json.RawMessage(`{"mtime":7}`)
	s.Ledger = []LedgerChange{{Sort: "apt", Resource: "libx", After: &Entry{"apt", "libx", json.RawMessage(`{"auto":true}`)}}}
	s.Glyphs[0].Changed = false
	done(t, j, s)
	steps, err := j.StepsOf(run.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]*Step{s}, steps); diff != "" {
		t.Errorf("step (-want +got):\n%s", diff)
	}
	if snap := snapshot(t, j); snap.Applied[0].Changed || len(snap.Ledger) != 1 {
		t.Errorf("snapshot does not hold what became of the step: %+v", snap)
	}
	sound(t, j)
	do(t, j, func(tx *Tx) error { return tx.Reverse(steps[0], "") })
	if snap := snapshot(t, j); len(snap.Applied)+len(snap.Ledger)+len(snap.Records) != 0 {
		t.Errorf("reversed, but left: %+v", snap)
	}
	sound(t, j)
}

func TestKeyBelongsToOneLineage(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "planroom.db"), Options{})
	web := &Run{Lineage: "web", Command: "apply"}
	s := install(web, "base", "file:/a", "a", nil)
	begin(t, j, web, s)
	done(t, j, s)
	commit(t, j, web, "settled")
	db := &Run{Lineage: "db", Command: "apply"}
	err := j.Do(func(tx *Tx) error {
		if err := tx.Begin(db); err != nil {
			return err
		}
		return tx.Intend([]*Step{install(db, "base", "file:/a", "mine", s.After)})
	})
	var owned *OwnedError
	if !errors.As(err, &owned) || owned.Lineage != "web" {
		t.Fatalf("a second lineage took the key: %v", err)
	}
	if _, there := snapshot(t, j).Lineages["db"]; there {
		t.Error("a refused run left its lineage")
	}
	do(t, j, func(tx *Tx) error { return tx.MoveKey("file:/a", "web", "db", "moved") })
	snap := snapshot(t, j)
	if snap.Applied[0].Lineage != "db" || snap.Records["path:/a"].Layers[0].Lineage != "db" {
		t.Errorf("moved: %+v", snap.Applied[0])
	}
	sound(t, j)
}

func TestLeafMoveSurvivesReverse(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "planroom.db"), Options{})
	run := &Run{Lineage: "web", Command: "apply"}
	s := install(run, "old", "file:/a", "a", nil)
	begin(t, j, run, s)
	done(t, j, s)
	commit(t, j, run, "settled")
	do(t, j, func(tx *Tx) error { return tx.UpdateApplied("web", "file:/a", "new") })
	next := &Run{Lineage: "web", Command: "apply"}
	n := install(next, "new", "file:/a", "b", s.After)
	begin(t, j, next, n)
	done(t, j, n)
	do(t, j, func(tx *Tx) error { return tx.Reverse(n, "rolled back") })
	if got := keys(snapshot(t, j)); got != "web/new file:/a r1 a" {
		t.Errorf("after the rollback: %s", got)
	}
	sound(t, j)
	do(t, j, func(tx *Tx) error { return tx.RenameLineage("web", "site") })
	if snap := snapshot(t, j); keys(snap) != "site/new file:/a r1 a" || snap.Records["path:/a"].Layers[0].Lineage != "site" {
		t.Errorf("after the renaming: %s", keys(snap))
	}
	if _, err := j.Revision("site", 1); err != nil {
		t.Error(err)
	}
	if err := j.Do(func(tx *Tx) error { return tx.UpdateApplied("site", "file:/none", "x") }); !errors.Is(err, ErrMissing) {
		t.Errorf("moving what is not applied: %v", err)
	}
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

func TestAppendOnly(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "planroom.db"), Options{})
	run := &Run{Lineage: "web", Command: "apply"}
	s := install(run, "base", "file:/a", "a", nil)
	begin(t, j, run, s)
	done(t, j, s)
	do(t, j, func(tx *Tx) error {
		hash, err := tx.PutBytes([]byte("old"))
		return errors.Join(err, tx.UpdateApplied("web", "file:/a", "b"), tx.LeafEnd(run.ID, LeafOutcome{Leaf: "base"}),
			tx.Keep(&Kept{Path: "/a", Blob: hash, Size: 3}))
	})
	commit(t, j, run, "settled", Declared{"base", []*scrolls.Glyph{s.Glyphs[0].New}})
	for _, table := range appendOnlyTables {
		n, err := j.c.number("SELECT count(*) FROM " + table)
		if err != nil || n == 0 {
			t.Fatalf("%s has %d rows to test with: %v", table, n, err)
		}
		var column string
		if _, err := j.c.one([]any{&column}, "SELECT name FROM pragma_table_info('"+table+"') WHERE cid = 1"); err != nil {
			t.Fatal(err)
		}
		for _, sql := range []string{
			"DELETE FROM " + table,
			fmt.Sprintf("UPDATE %s SET %s = %s", table, column, column),
			fmt.Sprintf("INSERT OR REPLACE INTO %s SELECT * FROM %s", table, table),
		} {
			if err := j.c.script(sql); err == nil || !strings.Contains(err.Error(), table+" is append-only") {
				t.Errorf("%s: %v", sql, err)
			}
		}
		if after, err := j.c.number("SELECT count(*) FROM " + table); err != nil || after != n {
			t.Errorf("%s has %d rows, had %d: %v", table, after, n, err)
		}
	}
	sound(t, j)
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
	commit(t, j, run, "settled", Declared{"base", declared})
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
func modes(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := e.Info()
		rel, _ := filepath.Rel(dir, path)
		all[rel] = st.Mode().String()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFilesAreForTheirOwnerAlone(t *testing.T) {
	for _, mask := range []int{0, 0o277} {
		if os.Getuid() != 0 && mask != 0 {
			mask = 0o077 // without root's powers, files without owner bits cannot be opened
		}
		base := t.TempDir()
		old := syscall.Umask(mask)
		defer syscall.Umask(old)
		path := filepath.Join(base, "lib", "golem", "planroom.db")
		j := open(t, path, Options{})
		run := &Run{Lineage: "web", Command: "apply"}
		s := install(run, "base", "file:/a", "a", nil)
		begin(t, j, run, s)
		if _, err := j.PutBytes(make([]byte, inlineMax+1)); err != nil {
			t.Fatal(err)
		}
		if err := j.SyncBlobs(); err != nil {
			t.Fatal(err)
		}
		for name, mode := range modes(t, base) {
			want := "-rw-------"
			switch {
			case name == ".":
				continue
			case name == "lib":
				want = "drwxr-xr-x"
			case !strings.Contains(name, ".") || strings.Contains(mode, "d"):
				want = "drwx------"
			}
			if mode != want {
				t.Errorf("umask %o: %s has %s, want %s", mask, name, mode, want)
			}
		}
		syscall.Umask(old)
	}
}

func TestExistingDirectoryIsLeftAsItIs(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "planroom.db")
	open(t, path, Options{}).Close()
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, path, Options{}).Close()
	got := modes(t, dir)
	if got["."] != "drwxr-xr-x" || got["planroom.db"] != "-rw-------" {
		t.Errorf("modes: %v", got)
	}
}

func TestJournalIsBound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "planroom.db")
	open(t, path, Options{Root: "/build/img"}).Close()         // an image: bound to nothing
	open(t, path, Options{Root: "/build/elsewhere"}).Close()   // and still
	open(t, path, Options{Machine: "m1", Root: "/"}).Close()   // it boots
	open(t, path, Options{Machine: "m1", Root: "/./"}).Close() // the same root
	for _, o := range []Options{{Machine: "m2", Root: "/"}, {Machine: "m1", Root: "/mnt"}, {Root: "/mnt"}} {
		_, err := Open(path, o)
		_, readErr := Read(path, o)
		for _, err := range []error{err, readErr} {
			var bound *BoundError
			if !errors.As(err, &bound) || bound.Machine != "m1" || !strings.Contains(bound.Hint(), "golem state rebind") {
				t.Errorf("opened with %+v: %v", o, err)
			}
		}
	}
	open(t, path, Options{Machine: "m2", Root: "/", Rebind: true}).Close()
	r, err := Read(path, Options{Machine: "m2", Root: "/"})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	open(t, path, Options{}).Close() // lists ask for no place
}

func TestSecondOpenerIsToldWho(t *testing.T) {
	path := filepath.Join(t.TempDir(), "planroom.db")
	j := open(t, path, Options{PID: 4242})
	begun := time.Now()
	_, err := Open(path, Options{LockTimeout: 100 * time.Millisecond})
	var locked *LockedError
	if !errors.As(err, &locked) || locked.PID != 4242 || !strings.Contains(err.Error(), "4242") {
		t.Fatalf("second open: %v", err)
	}
	if waited := time.Since(begun); waited < 100*time.Millisecond || waited > 5*time.Second {
		t.Errorf("waited %s", waited)
	}
	opened := make(chan error)
	go func() {
		j, err := Open(path, Options{LockTimeout: 30 * time.Second})
		if err == nil {
			err = j.Close()
		}
		opened <- err
	}()
	time.Sleep(50 * time.Millisecond)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Errorf("the waiting one: %v", err)
	}
	if data, err := os.ReadFile(path + ".lock"); err != nil || len(data) != 0 {
		t.Errorf("the lock names %q after all let go: %v", data, err)
	}
}

func TestFailedTransactionLeavesNothing(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "planroom.db"), Options{})
	boom := errors.New("boom")
	run := &Run{Lineage: "web", Command: "apply"}
	s := install(run, "base", "file:/a", "a", nil)
	err := j.Do(func(tx *Tx) error {
		if _, err := tx.PutBytes([]byte("bytes")); err != nil {
			return err
		}
		if err := tx.Begin(run); err != nil {
			return err
		}
		s.Run = run.ID
		if err := tx.Intend([]*Step{s}); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if snap := snapshot(t, j); snap.Dead != nil || len(snap.Lineages) != 0 {
		t.Errorf("left: %+v", snap)
	}
	run.ID = 0
	begin(t, j, run, s)
	done(t, j, s)
	commit(t, j, run, "settled")
	sound(t, j)
}

func TestNoopWritesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "planroom.db")
	open(t, path, Options{Machine: "m", Root: "/"}).Close()
	before := contents(t, dir)
	ops := []string{}
	j := open(t, path, Options{Machine: "m", Root: "/", Fault: func(op string) error { ops = append(ops, op); return nil }})
	snapshot(t, j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, contents(t, dir)); diff != "" || strings.Join(ops, ",") != "lock" {
		t.Errorf("wrote %v: %s", ops, diff)
	}
}

// contents are the names and bytes of everything in a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, mode := range modes(t, dir) {
		all[name] = mode
		if strings.HasPrefix(mode, "-") {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all[name] += " " + string(data)
		}
	}
	return all
}
