package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"golem/scrolls"
)

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
	commit(t, j, run, "settled", Declared{Leaf: "base", Glyphs: []*scrolls.Glyph{s.Glyphs[0].New}})
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

// contents are the names and bytes of everything in a directory.
