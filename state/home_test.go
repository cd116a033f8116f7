package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

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
	open(t, path, Options{Root: "/build/img"}).Close() // an image: bound to no machine
	var bound *BoundError
	if _, err := Open(path, Options{Root: "/build/copy"}); !errors.As(err, &bound) || !strings.Contains(err.Error(), `it belongs to root "/build/img", this is "/build/copy"`) {
		t.Errorf("a copy of the image: %v", err)
	}
	open(t, path, Options{Root: "/build/copy", Rebind: true}).Close()
	open(t, path, Options{Root: "/build/copy"}).Close()
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

// A child that is between fork and exec has all that golem has open.
func TestClosingLetsGoThoughAChildHasTheLockOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "planroom.db")
	j := open(t, path, Options{})
	child, err := unix.Dup(int(j.lock.f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path, Options{}).Close()
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
