package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// prunedMeta names the number of a revision that was dropped, by its run: what is in force
// since then still says so.
const prunedMeta = "pruned:"

// A Pruned says what pruning dropped.
type Pruned struct {
	Revisions int   `json:"revisions"`
	Steps     int   `json:"steps"`
	Blobs     int   `json:"blobs"`
	Before    int64 `json:"bytes_before"` // of the database and the bytes beside it
	After     int64 `json:"bytes_after"`
}

// A pruner works on a copy of the journal.
type pruner struct {
	c       *conn
	before  time.Time
	runs    map[int64]bool  // whose history goes
	keep    map[int64]bool  // steps that stay: all of other runs, and what is in force
	numbers map[int64]int64 // of the revisions that go, by run
	did     Pruned
}

// Prune drops the history of before a moment: revisions, their runs and steps, and the
// glyphs and bytes that nothing refers to any more. Of each lineage the revision that was
// the newest at that moment stays, and all after it. What is in force keeps all that
// undoing it takes, and what golem displaced stays. No run may be unsettled, owed or
// pending.
//
// A new database is written beside the old one and takes its place in one rename, so that
// at every instant there is the one or the other, whole.
func (j *Journal) Prune(before time.Time) (*Pruned, error) {
	p, err := j.prune(before)
	if err != nil {
		return nil, fmt.Errorf("prune journal: %w", explain(j.path, err))
	}
	return p, nil
}

// prune is Prune: it works on a copy, which takes the journal's place once it is whole.
func (j *Journal) prune(before time.Time) (*Pruned, error) {
	if j.broken != nil {
		return nil, j.broken
	}
	if err := j.logEmpty(); err != nil {
		return nil, err
	}
	size, err := j.bytes()
	if err != nil {
		return nil, err
	}
	p := &pruner{before: before, runs: map[int64]bool{}, keep: map[int64]bool{}, numbers: map[int64]int64{}, did: Pruned{Before: size, After: size}}
	p.c = j.c
	if err := p.choose(); err != nil {
		return nil, err
	}
	if len(p.runs) == 0 {
		return &p.did, j.dropLoose(&p.did) // a prune that died may have left some
	}
	f, err := j.pruneCopy(p)
	if err != nil {
		return nil, errors.Join(err, sweep(j.path))
	}
	defer f.Close()
	if err := j.swap(f); err != nil {
		return nil, err
	}
	return &p.did, j.dropLoose(&p.did)
}

// logEmpty brings the log into the database: what is copied and swapped is one file.
func (j *Journal) logEmpty() error {
	if err := j.checkpoint(); err != nil {
		return err
	}
	if st, err := os.Stat(j.path + "-wal"); err == nil && st.Size() > 0 {
		return &DiskError{j.path, ErrBusy, nil}
	}
	return nil
}

// pruneCopy writes the pruned journal under another name, and checks it.
func (j *Journal) pruneCopy(p *pruner) (*os.File, error) {
	if err := j.o.fault("prune"); err != nil {
		return nil, err
	}
	fresh := j.path + ".new"
	f, err := copyFile(j.path, fresh)
	if err != nil {
		return nil, err
	}
	if p.c, err = connect(j.path, fresh, "mode=rw&_pragma=synchronous(off)&_pragma=journal_mode(memory)&_pragma=temp_store(memory)"); err == nil {
		err = p.drop()
		if err == nil {
			err = p.c.script("VACUUM; PRAGMA journal_mode = wal")
		}
		err = errors.Join(err, p.c.close())
	}
	if err == nil {
		err = p.verify(j.path, fresh)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// swap lets the copy take the journal's place.
func (j *Journal) swap(f *os.File) error {
	if err := j.c.close(); err != nil {
		return err
	}
	j.broken = errors.New("the journal was not opened again after it was pruned")
	err := publish(f, j.path, j.o, "prune")
	c, again := connect(j.path, j.path, writing)
	if again != nil {
		j.c = nil
		return errors.Join(err, again)
	}
	j.c, j.broken = c, nil
	j.intents, j.glyphs, j.layers = map[int64]intent{}, map[string]int64{}, map[string][]spelled{}
	return err
}

// bytes is how much the journal takes on disk.
func (j *Journal) bytes() (int64, error) {
	st, err := os.Stat(j.path)
	if err != nil {
		return 0, err
	}
	beside, err := j.c.number("SELECT sum(size) FROM blobs WHERE body IS NULL")
	return st.Size() + beside, err
}

// dropLoose removes the bytes beside the database that no row names.
func (j *Journal) dropLoose(did *Pruned) error {
	files, err := filepath.Glob(globbed(j.path+".blobs") + "/??/*")
	if err != nil {
		return err
	}
	gone := map[string]bool{}
	for _, file := range files {
		hash := filepath.Base(file)
		there, err := j.c.number("SELECT 1 FROM blobs WHERE hash = ? AND body IS NULL", hash)
		if err != nil {
			return err
		}
		if there != 0 || !validHash(hash) || file != blobFile(j.path+".blobs", hash) {
			continue
		}
		if err := j.o.fault("blob remove"); err != nil {
			return err
		}
		if err := os.Remove(file); err != nil {
			return err
		}
		gone[filepath.Dir(file)] = true
	}
	for dir := range gone {
		if err := syncPath(dir); err != nil {
			return err
		}
	}
	did.After, err = j.bytes()
	return err
}

// verify looks whether the copy is whole, before it takes the journal's place.
func (p *pruner) verify(path, fresh string) error {
	c, err := connect(path, fresh, "mode=ro&immutable=1"+reading)
	if err != nil {
		return err
	}
	defer c.close()
	k := &checker{c: c, dir: path + ".blobs", blobs: map[string]bool{}}
	err = c.query(func(scan scanner) error {
		var hash string
		err := scan(&hash)
		k.blobs[hash] = true
		return err
	}, "SELECT hash FROM blobs")
	for _, check := range []func() error{k.pages, k.schema, k.glyphs, k.bodies, k.applied} {
		if err == nil {
			err = check()
		}
	}
	for _, f := range k.findings {
		if f.Level == Damage && err == nil {
			err = c.damaged(fmt.Sprintf("without its old history, %s: %s", f.What, f.Detail), nil)
		}
	}
	return err
}

// globbed is a path as a pattern that matches just it.
func globbed(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
