package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadOfNothingIsEmpty(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "none", "planroom.db")
	r, err := Read(path, Options{Machine: "m", Root: "/"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	snap := snapshot(t, r)
	if r.Exists() || snap.Journal != "" || len(snap.Applied) != 0 || snap.Lineages == nil {
		t.Errorf("exists %v, snapshot %+v", r.Exists(), snap)
	}
	if revs, err := r.Revisions(""); err != nil || len(revs) != 0 {
		t.Errorf("revisions %v, %v", revs, err)
	}
	if _, err := r.Revision("web", 1); !errors.Is(err, ErrMissing) {
		t.Errorf("revision: %v", err)
	}
	if _, err := r.ReadBlob(hashOf(nil)); err == nil {
		t.Error("a blob out of nothing")
	}
	if names := modes(t, dir); len(names) != 1 {
		t.Errorf("reading made %v", names)
	}
}

func TestReadWritesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	path := filepath.Join(dir, "home", "planroom.db")
	settledJournal(t, path)
	look := func(what string, revisions int) {
		t.Helper()
		before := contents(t, dir)
		r, err := Read(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := readAll(&r.store); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		sound(t, r)
		if revs, err := r.Revisions(""); err != nil || len(revs) != revisions {
			t.Errorf("%s: %d revisions, want %d, %v", what, len(revs), revisions, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
			t.Errorf("%s: reading changed something:\n%.300s", what, diff)
		}
	}
	look("closed", 2)
	j := open(t, path, Options{})
	run := &Run{Lineage: "third", Command: "apply"}
	s := install(run, "base", "file:/third", "x", nil)
	begin(t, j, run, s)
	done(t, j, s)
	commit(t, j, run, "settled")
	look("while a run is going on", 3)
	path = copyJournal(t, path)
	dir = filepath.Dir(path)
	look("after a kill", 3)
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) != 0 {
		t.Errorf("copies were left: %v", left)
	}
}

const readerEnv = "GOLEM_TEST_READ"

// TestReadAsAnother is both the test and, run again as another user, its child.
func TestReadAsAnother(t *testing.T) {
	if path := os.Getenv(readerEnv); path != "" {
		r, err := Read(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		fmt.Printf("read %d revisions as %d\n", len(must(r.Revisions(""))), os.Geteuid())
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	base := t.TempDir()
	dir := filepath.Join(base, "home")
	path := filepath.Join(dir, "planroom.db")
	settledJournal(t, path)
	j := open(t, path, Options{})
	run := &Run{Lineage: "third", Command: "apply"}
	s := install(run, "base", "file:/third", "x", nil)
	begin(t, j, run, s)
	done(t, j, s)
	commit(t, j, run, "settled")
	killed := copyJournal(t, path)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{base, filepath.Dir(base)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{path, killed} {
		out, err := readAsNobody(p)
		if err == nil || !strings.Contains(out, "permission denied") {
			t.Errorf("a journal for its owner alone was read: %v\n%s", err, out)
		}
		if err := openUp(filepath.Dir(p)); err != nil {
			t.Fatal(err)
		}
		before := contents(t, filepath.Dir(p))
		out, err = readAsNobody(p)
		if err != nil || !strings.Contains(out, "read 3 revisions as 65534") {
			t.Errorf("%v\n%s", err, out)
		}
		if diff := cmp.Diff(before, contents(t, filepath.Dir(p))); diff != "" {
			t.Errorf("reading changed something:\n%.300s", diff)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func readAsNobody(path string) (string, error) {
	cmd := exec.Command("/proc/self/exe", "-test.run", "^TestReadAsAnother$")
	cmd.Dir = "/"
	cmd.Env = []string{readerEnv + "=" + path, "TMPDIR=/tmp"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// openUp lets everybody read a directory and what is in it, and nobody else write.
func openUp(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return os.Chmod(path, 0o644)
	})
}

// TestReadBesideRuns reads all the time while runs begin, end and check the log in:
// every snapshot is one that was committed.
func TestReadBesideRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "planroom.db")
	const runs = 40
	failed := make(chan error, 1)
	go func() {
		failed <- func() error {
			for n := 1; n <= runs; n++ {
				j, err := Open(path, Options{})
				if err != nil {
					return err
				}
				run := &Run{Lineage: "web", Command: "apply"}
				a, b := install(run, "base", "file:/a", fmt.Sprint(n), nil), install(run, "base", "file:/b", fmt.Sprint(n), nil)
				err = j.Do(func(tx *Tx) error {
					if err := tx.Begin(run); err != nil {
						return err
					}
					a.Run, b.Run = run.ID, run.ID
					return errors.Join(tx.Intend([]*Step{a, b}), tx.Done(a), tx.Done(b),
						tx.Commit(&Revision{Lineage: "web", Run: *run, Outcome: "settled"}))
				})
				if err := errors.Join(err, j.Close()); err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	last, reads := 0, 0
	for running := true; running || last < runs; reads++ {
		select {
		case err := <-failed:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		default:
		}
		r, err := Read(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		snap := snapshot(t, r)
		sound(t, r)
		r.Close()
		if n := len(snap.Applied); n == 0 && last == 0 {
			continue
		} else if n != 2 || snap.Dead != nil {
			t.Fatalf("half a commit: %+v", snap)
		}
		a, b := snap.Applied[0], snap.Applied[1]
		if a.Revision != b.Revision || a.Revision < last || fmt.Sprint(a.Revision) != a.Glyph.Attrs["content"] || a.Revision != snap.Lineages["web"].Revision {
			t.Fatalf("mixed: %+v", snap)
		}
		last = a.Revision
	}
	if reads < 3 {
		t.Errorf("%d reads only", reads)
	}
}

// withMigration adds a second migration for the time of a test.
// TestFullDisk runs on a file system of its own that is a few hundred kilobytes small.
func TestBodiesMustBeJSON(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "planroom.db"), Options{})
	run := &Run{Lineage: "web", Command: "apply"}
	s := install(run, "base", "file:/a", "a", nil)
	s.Inverse = json.RawMessage(`{"cut":`)
	err := j.Do(func(tx *Tx) error { return errors.Join(tx.Begin(run), tx.Intend([]*Step{s})) })
	if err == nil || !strings.Contains(err.Error(), "not JSON") {
		t.Errorf("an inverse that cannot be read back was journaled: %v", err)
	}
}
