package state

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// first is the schema that this golem makes, before a test adds another.
var first = len(migrations)

func withMigration(t *testing.T, m migration) {
	t.Helper()
	old := migrations
	migrations = append(append([]migration{}, old...), m)
	t.Cleanup(func() { migrations = old })
}

func TestMigrationRunsForwardAfterABackup(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "planroom.db")
	settledJournal(t, path)
	j := open(t, path, Options{})
	run := &Run{Lineage: "third", Command: "apply"}
	s := install(run, "base", "file:/third", "x", nil)
	begin(t, j, run, s)
	done(t, j, s)
	commit(t, j, run, "settled")
	path = copyJournal(t, path) // with a log that must be in the backup
	j.Close()
	withMigration(t, script("CREATE TABLE second (x TEXT) STRICT; INSERT INTO second VALUES ('new')"))

	before := contents(t, filepath.Dir(path))
	r, err := Read(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if revs, err := r.Revisions(""); err != nil || len(revs) != 3 {
		t.Errorf("reading an older schema: %d revisions, %v", len(revs), err)
	}
	r.Close()
	if diff := cmp.Diff(before, contents(t, filepath.Dir(path))); diff != "" {
		t.Errorf("reading an older schema changed something:\n%.300s", diff)
	}

	boom := errors.New("boom")
	for _, at := range []string{"backup", "backup sync", "backup rename", "migrate"} {
		_, err := Open(path, Options{Fault: func(op string) error {
			if op == at {
				return boom
			}
			return nil
		}})
		if !errors.Is(err, boom) {
			t.Fatalf("fault at %s: %v", at, err)
		}
	}
	j = open(t, path, Options{})
	if v, err := version(j.c, first+1); v != first+1 || err != nil {
		t.Errorf("version %d, %v", v, err)
	}
	sound(t, j)
	if revs, err := j.Revisions(""); err != nil || len(revs) != 3 {
		t.Errorf("migrated: %d revisions, %v", len(revs), err)
	}
	j.Close()
	migrations = migrations[:first]
	old := fmt.Sprintf("%s.backup-v%d", path, first)
	if got := modes(t, filepath.Dir(path))[filepath.Base(old)]; got != "-rw-------" {
		t.Errorf("the backup has mode %s", got)
	}
	j = open(t, old, Options{})
	if revs, err := j.Revisions(""); err != nil || len(revs) != 3 {
		t.Errorf("backup: %d revisions, %v", len(revs), err)
	}
	refusedAsNewer(t, path)
}

func refusedAsNewer(t *testing.T, path string) {
	t.Helper()
	_, err := Open(path, Options{})
	_, readErr := Read(path, Options{})
	for _, err := range []error{err, readErr} {
		var newer *NewerError
		if !errors.As(err, &newer) || newer.Have != first+1 || newer.Know != first {
			t.Errorf("a newer schema: %v", err)
		}
	}
}

// A journal of the first schema keeps its runs, which go back to nothing.
func TestMigrationOfTheFirstSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "planroom.db")
	all := migrations
	migrations = all[:1]
	open(t, path, Options{}).Close()
	c, err := connect(path, path, "mode=rw")
	if err != nil {
		t.Fatal(err)
	}
	err = c.script(`INSERT INTO lineages (id, name) VALUES (1, 'web');
		INSERT INTO runs (id, lineage, command, started, uid, sudo_user, version, boot_id, machine, pid, source, digest)
		VALUES (1, 1, 'apply', 1, 0, '', '', '', '', 1, '', '');
		INSERT INTO revisions (lineage, number, kind, run, at, outcome, leaves, counts, declared)
		VALUES (1, 1, 'init', 1, 1, 'settled', '[]', '{}', '[{"leaf":"a","glyphs":[]}]');
		INSERT INTO run_ends (run, at, outcome) VALUES (1, 1, 'settled')`)
	if err := errors.Join(err, c.close()); err != nil {
		t.Fatal(err)
	}
	migrations = all
	j := open(t, path, Options{})
	sound(t, j)
	rev, err := j.Revision("web", 1)
	if err != nil || rev.Run.Target != 0 || len(rev.Declared) != 1 || rev.Declared[0].Policy != nil {
		t.Errorf("after the migration: %+v, %v", rev, err)
	}
}

func TestMigrationFailsWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "planroom.db")
	settledJournal(t, path)
	withMigration(t, script("CREATE TABLE second (x TEXT) STRICT; INSERT INTO missing VALUES (1)"))
	if _, err := Open(path, Options{}); err == nil {
		t.Fatal("a broken migration succeeds")
	}
	migrations = migrations[:first]
	j := open(t, path, Options{})
	sound(t, j)
}

func TestForeignDatabaseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "planroom.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := connect(path, path, "mode=rw")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.script("CREATE TABLE theirs (x)"), c.close()); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(path)
	_, err = Open(path, Options{})
	ours(t, "open", err)
	_, err = Read(path, Options{})
	ours(t, "read", err)
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("another program's database was written to")
	}
}
