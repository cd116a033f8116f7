package state

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golem/scrolls"
)

// ours checks that an error is what a person should meet: golem's own type and words.
func ours(t *testing.T, what string, err error) {
	t.Helper()
	var damaged *DamagedError
	var disk *DiskError
	var newer *NewerError
	var unsafe *UnsafeError
	var blob *BlobError
	switch {
	case errors.As(err, &damaged), errors.As(err, &disk), errors.As(err, &newer), errors.As(err, &unsafe), errors.As(err, &blob):
	default:
		t.Errorf("%s: an error of no type: %v", what, err)
	}
	for _, raw := range []string{"SQL", "malformed", "sqlite", "json:", "unexpected end"} {
		if strings.Contains(err.Error(), raw) {
			t.Errorf("%s: raw: %v", what, err)
		}
	}
}

// settledJournal makes a journal with two lineages and some blobs, closed.
func settledJournal(t *testing.T, path string) {
	t.Helper()
	j := open(t, path, Options{})
	for _, lineage := range []string{"web", "db"} {
		run := &Run{Lineage: lineage, Command: "apply"}
		var steps []*Step
		for _, name := range []string{"a", "b", "c", "d"} {
			steps = append(steps, install(run, "base", "file:/"+lineage+name, strings.Repeat(name, 1000), nil))
		}
		begin(t, j, run, steps...)
		done(t, j, steps...)
		do(t, j, func(tx *Tx) error {
			hash, err := tx.PutBytes([]byte(strings.Repeat(lineage, 5000)))
			return errors.Join(err, tx.Keep(&Kept{Path: "/k", Blob: hash}))
		})
		commit(t, j, run, "settled", Declared{Leaf: "base", Glyphs: []*scrolls.Glyph{steps[0].Glyphs[0].New}})
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// readAll reads everything a journal offers and returns the first error.
func readAll(s *store) error {
	_, err := s.Snapshot()
	revs, err2 := s.Revisions("")
	errs := []error{err, err2}
	for _, rev := range revs {
		_, err1 := s.Revision(rev.Lineage, rev.Number)
		_, err2 := s.StepsOf(rev.Run.ID)
		errs = append(errs, err1, err2)
	}
	kept, err := s.KeptList()
	errs = append(errs, err)
	for _, k := range kept {
		_, err := s.ReadBlob(k.Blob)
		errs = append(errs, err)
	}
	_, err = s.Check()
	for _, err := range append(errs, err) {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestDamagedFilesAreTyped(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.db")
	settledJournal(t, good)
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	zeroed := append([]byte{}, whole...)
	copy(zeroed[4096:], make([]byte, 8192))
	for name, data := range map[string][]byte{
		"empty": nil, "text": []byte("hello, this is no journal at all\n"), "header only": whole[:100], "short header": whole[:50],
		"cut": whole[:len(whole)/2], "cut in a page": whole[:4096*3+100], "magic and rubbish": append([]byte(magic), make([]byte, 5000)...),
		"zeroed pages": zeroed,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "planroom.db")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := Read(path, Options{})
			if err == nil {
				err = readAll(&r.store)
				r.Close()
			}
			if err == nil {
				t.Error("reading it succeeds")
			} else {
				ours(t, "read", err)
			}
			j, err := Open(path, Options{})
			if err == nil {
				err = readAll(&j.store)
				j.Close()
			}
			if err == nil {
				t.Error("opening it succeeds")
				return
			}
			ours(t, "open", err)
			var damaged *DamagedError
			if errors.As(err, &damaged) && !strings.Contains(damaged.Hint(), "golem state check") {
				t.Errorf("no way out: %s", damaged.Hint())
			}
			if now, err := os.ReadFile(path); err != nil || string(now[:min(100, len(now))]) != string(data[:min(100, len(data))]) {
				t.Errorf("the damaged file was written to: %v", err)
			}
		})
	}
}

func TestFlippedBytesNeverPanic(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.db")
	settledJournal(t, good)
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(dir, "planroom.db")
	found := 0
	for i := range 300 {
		data := append([]byte{}, whole...)
		for range 1 + rnd.IntN(4) {
			data[rnd.IntN(len(data))] ^= byte(1 + rnd.IntN(255))
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		old := syscall.Timespec{Sec: int64(i)} // so that the reader need not wait for the clock
		if err := syscall.UtimesNano(path, []syscall.Timespec{old, old}); err != nil {
			t.Fatal(err)
		}
		r, err := Read(path, Options{})
		if err != nil {
			ours(t, "open", err)
			found++
			continue
		}
		findings, checkErr := r.Check()
		err = readAll(&r.store)
		if err != nil {
			ours(t, "read", err)
		}
		if len(findings) > 0 || checkErr != nil {
			found++
		} else if err != nil {
			t.Errorf("check finds nothing, reading says: %v", err)
		}
		r.Close()
	}
	if found < 50 {
		t.Errorf("%d of 300 damaged journals were found out", found)
	}
}

func TestCutLogLosesNoCommitBeforeTheCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "home", "planroom.db")
	j := open(t, path, Options{})
	var sizes []int64
	for n := range 5 {
		run := &Run{Lineage: "web", Command: "apply"}
		s := install(run, "base", "file:/"+string(rune('a'+n)), "x", nil)
		begin(t, j, run, s)
		done(t, j, s)
		commit(t, j, run, "settled")
		st, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, st.Size())
	}
	for n, size := range sizes {
		for _, extra := range []int64{0, 1, 100, 4000} {
			cut := copyJournal(t, path)
			if st, _ := os.Stat(cut + "-wal"); size+extra > st.Size() {
				continue
			}
			if err := os.Truncate(cut+"-wal", size+extra); err != nil {
				t.Fatal(err)
			}
			r, err := Read(cut, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if revs, err := r.Revisions("web"); err != nil || len(revs) != n+1 {
				t.Errorf("cut after commit %d and %d bytes: %d revisions, %v", n+1, extra, len(revs), err)
			}
			r.Close()
			j := open(t, cut, Options{})
			if revs, err := j.Revisions("web"); err != nil || len(revs) != n+1 {
				t.Errorf("cut after commit %d and %d bytes: %d revisions, %v", n+1, extra, len(revs), err)
			}
			sound(t, j)
			j.Close()
		}
	}
}

func TestLogWithoutItsJournalIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "planroom.db")
	if err := os.WriteFile(path+"-wal", []byte("committed frames"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path, Options{})
	ours(t, "open", err)
	_, err = Read(path, Options{})
	ours(t, "read", err)
	if data, _ := os.ReadFile(path + "-wal"); string(data) != "committed frames" {
		t.Error("the log was touched")
	}
}

func TestPathsThatAreNotToBeTrusted(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "dir.db")
	fifo := filepath.Join(dir, "fifo.db")
	if err := errors.Join(os.Mkdir(sub, 0o700), syscall.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	paths := []string{sub, fifo}
	good := filepath.Join(dir, "good.db")
	settledJournal(t, good)
	if os.Getuid() == 0 {
		planted := filepath.Join(dir, "planted.db")
		if err := errors.Join(os.Symlink(good, planted), os.Lchown(planted, 1234, 1234)); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, planted)
	}
	for _, path := range paths {
		for what, open := range map[string]func() error{
			"open": func() error { _, err := Open(path, Options{}); return err },
			"read": func() error { _, err := Read(path, Options{}); return err },
		} {
			var unsafe *UnsafeError
			if err := open(); !errors.As(err, &unsafe) {
				t.Errorf("%s %s: %v", what, path, err)
			}
		}
	}
	own := filepath.Join(dir, "own.db")
	if err := os.Symlink(good, own); err != nil {
		t.Fatal(err)
	}
	j := open(t, own, Options{})
	if revs, err := j.Revisions(""); err != nil || len(revs) != 2 {
		t.Errorf("through one's own link: %d revisions, %v", len(revs), err)
	}
}

func TestCheckFindsWhatDoesNotFit(t *testing.T) {
	for name, sql := range map[string]string{
		"applied":  "DELETE FROM applied WHERE key = 'file:/weba'",
		"leaf":     "UPDATE applied SET leaf = 'other' WHERE key = 'file:/weba'",
		"record":   `UPDATE records SET body = '{"layers":[{"key":"file:/x","lineage":1,"glyph":99}]}' WHERE resource = '/weba'`,
		"lineage":  `UPDATE records SET body = '{"layers":[{"key":"file:/x","lineage":77}]}' WHERE resource = '/weba'`,
		"json":     "UPDATE records SET body = '{' WHERE resource = '/weba'",
		"blob":     `UPDATE records SET body = '{"found":{"blob":"00"}}' WHERE resource = '/weba'`,
		"trigger":  "DROP TRIGGER steps_no_update",
		"index":    "DROP INDEX steps_run",
		"bytes":    "DROP TRIGGER blobs_no_update; UPDATE blobs SET body = x'00'",
		"glyph":    `DROP TRIGGER glyphs_no_update; UPDATE glyphs SET body = '{"kind":"file","key":"file:/x"}' WHERE id = 1`,
		"orphan":   "PRAGMA foreign_keys = off; DROP TRIGGER steps_no_delete; DELETE FROM steps WHERE id = 1",
		"declared": `DROP TRIGGER revisions_no_update; UPDATE revisions SET declared = '[{"leaf":"x","glyphs":[98]}]'`,
		"file":     `DROP TRIGGER glyphs_no_update; UPDATE glyphs SET body = '{"kind":"file","key":"k","version":1,"attrs":{"source":{"path":"x","sha256":"00","size":4}}}' WHERE id = 1`,
		"amend":    `INSERT INTO step_ends VALUES (1, 'failed', 0, '', '{"record":{"layers":[{"glyph":97,"lineage":1}]}}')`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "planroom.db")
			settledJournal(t, path)
			j := open(t, path, Options{})
			if err := j.c.script(sql); err != nil {
				t.Fatal(err)
			}
			findings, err := j.Check()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range findings {
				if f.Level == Damage {
					return
				}
			}
			t.Errorf("no damage among %+v", findings)
		})
	}
}
