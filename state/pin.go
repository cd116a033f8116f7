package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// pinned is the copy of golem beside a journal.
func pinned(path string) string { return path + ".golem" }

// Path is the journal's file.
func (j *Journal) Path() string { return j.path }

// Pin copies a program beside the journal, durably, so that it is there whatever becomes
// of the original. It returns the copy's path; an earlier copy is replaced.
func (j *Journal) Pin(program string) (string, error) {
	to := pinned(j.path)
	if err := j.pin(program, to); err != nil {
		return "", fmt.Errorf("pin %s: %w", program, explain(j.path, err))
	}
	return to, nil
}

func (j *Journal) pin(program, to string) error {
	if err := j.o.fault("pin"); err != nil {
		return err
	}
	fresh := to + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dst, err := copyFile(program, fresh)
	if err != nil {
		return err
	}
	defer dst.Close()
	if err := dst.Chmod(0o700); err != nil {
		return err
	}
	return publish(dst, to, j.o, "pin")
}

// Pinned says whether there is such a copy, whole or not.
func (s *store) Pinned() bool {
	for _, name := range []string{pinned(s.path), pinned(s.path) + ".new"} {
		if _, err := os.Lstat(name); err == nil {
			return true
		}
	}
	return false
}

// Unpin removes the copy. It is no error if there is none.
func (j *Journal) Unpin() error {
	if err := j.o.fault("unpin"); err != nil {
		return err
	}
	for _, name := range []string{pinned(j.path), pinned(j.path) + ".new"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("unpin golem: %w", err)
		}
	}
	return syncPath(filepath.Dir(j.path))
}

// Standing says whether anything that a run did is in force, or is still to be settled.
func (tx *Tx) Standing(run int64) (bool, error) {
	n, err := tx.c.number(`SELECT count(*) FROM steps s WHERE s.run = ?
		AND NOT EXISTS (SELECT 1 FROM step_ends e WHERE e.step = s.id AND e.status IN ('failed', 'reversed'))`, run)
	return n > 0, err
}
