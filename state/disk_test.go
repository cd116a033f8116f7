package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if os.Getuid() != 0 {
		t.Skip("only root can mount the small file system this needs")
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=600k"); err != nil {
		t.Skipf("mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	path := filepath.Join(dir, "planroom.db")
	j := open(t, path, Options{})
	run := &Run{Lineage: "web", Command: "apply"}
	committed, err := 0, error(nil)
	for i := 0; i < 1000 && err == nil; i++ {
		s := install(run, "base", fmt.Sprint("file:/", i), strings.Repeat("x", 2000), nil)
		err = j.Do(func(tx *Tx) error {
			if run.ID == 0 {
				if err := tx.Begin(run); err != nil {
					return err
				}
			}
			s.Run = run.ID
			return tx.Intend([]*Step{s})
		})
		if err == nil {
			committed++
		}
	}
	if !errors.Is(err, ErrFull) || committed == 0 {
		t.Fatalf("after %d steps: %v", committed, err)
	}
	ours(t, "intend", err)
	if _, err := j.PutBytes(make([]byte, 1<<20)); !errors.Is(err, ErrFull) {
		t.Errorf("put bytes: %v", err)
	}
	if err := j.Close(); err != nil {
		ours(t, "close", err)
	}
	r, err := Read(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	steps, err := r.StepsOf(run.ID)
	r.Close()
	if err != nil || len(steps) != committed {
		t.Errorf("%d steps, want %d: %v", len(steps), committed, err)
	}
	if _, err := Open(filepath.Join(dir, "second.db"), Options{}); err == nil || !errors.Is(err, ErrFull) {
		t.Errorf("make another: %v", err)
	}
	if _, err := Read(filepath.Join(dir, "second.db"), Options{}); err != nil {
		t.Errorf("half a journal is in the way: %v", err)
	}
}

func TestReadOnlyHome(t *testing.T) {
	dir := t.TempDir()
	if os.Getuid() != 0 {
		t.Skip("only root can mount the read-only file system this needs")
	}
	settledJournal(t, filepath.Join(dir, "planroom.db"))
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("mount: %v", err)
	}
	path := filepath.Join(dir, "planroom.db")
	if _, err := Open(path, Options{}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("open: %v", err)
	}
	r, err := Read(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sound(t, r)
}
