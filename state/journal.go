package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golem/scrolls"
)

// Options say how a journal is opened. The zero value reads any journal as it is.
type Options struct {
	// Machine and Root are where golem acts. A journal belongs to the first pair it
	// was written with. With an empty Machine (an image being built) it belongs to Root
	// until a machine with an id takes it over, under whatever root: the image boots.
	Machine, Root string
	// Rebind takes a journal that belongs elsewhere and makes it belong here.
	Rebind bool
	// LockTimeout is how long to wait for another run to end.
	LockTimeout time.Duration
	// Interrupt, when closed, ends the wait for another run.
	Interrupt <-chan struct{}
	PID       int              // what the lock says who holds it; default os.Getpid
	Now       func() time.Time // default time.Now
	// KnownKinds are the kinds whose records can be read; empty: all.
	KnownKinds []string
	// Fault, if set, is called before every write that reaches the disk with a word
	// for what it is; an error from it is that write's.
	Fault func(op string) error
}

func (o Options) withDefaults() Options {
	if o.PID == 0 {
		o.PID = os.Getpid()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Root != "" {
		o.Root = filepath.Clean(o.Root)
	}
	return o
}

func (o Options) fault(op string) error {
	if o.Fault == nil {
		return nil
	}
	return o.Fault(op)
}

// A Journal is an open journal that this process alone may write. It is not safe for
// use by several goroutines at once.
type Journal struct {
	store
	c      *conn
	lock   *lock
	open   bool  // a transaction is open
	broken error // set when it is not known whether a commit reached the disk

	blobs   beside
	intents map[int64]intent // steps that this process intended, until they end
	glyphs  map[string]int64 // glyph numbers by digest
	// layers are those of each record that has many, as they were spelled last.
	layers map[string][]spelled
}

// Open opens the journal at path for writing, makes it if there is none, and brings
// it to this golem's schema. It holds the journal's lock until Close.
func Open(path string, o Options) (*Journal, error) {
	o = o.withDefaults()
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if path, err = resolve(path); err != nil {
		return nil, err
	}
	if err := makeHome(filepath.Dir(path)); err != nil {
		return nil, explain(path, fmt.Errorf("make the journal's directory: %w", err))
	}
	l, err := takeLock(path, o)
	if err != nil {
		return nil, explain(path, err)
	}
	j := &Journal{
		lock: l, intents: map[int64]intent{}, glyphs: map[string]int64{}, layers: map[string][]spelled{},
		blobs: beside{dir: path + ".blobs", o: o, waiting: map[string]*waiting{}},
	}
	j.store = store{path: path, o: o, blob: j.blobs.pending, with: func(fn func(*conn) error) error { return fn(j.c) }}
	if err := j.start(); err != nil {
		if j.c != nil {
			_ = j.c.close()
		}
		l.release()
		return nil, explain(path, err)
	}
	return j, nil
}

func (j *Journal) start() error {
	if err := sweep(j.path); err != nil {
		return err
	}
	found, err := checkFile(j.path)
	if err != nil {
		return err
	}
	if !found {
		if err := create(j.path, j.o); err != nil {
			return err
		}
	}
	if err := tighten(j.path); err != nil {
		return err
	}
	if j.c, err = connect(j.path, j.path, writing); err != nil {
		return err
	}
	if err := migrate(j.c, j.o, migrations); err != nil {
		return err
	}
	return j.bind()
}

// writing is the part of the database's URI that a writer uses. FULL makes a commit
// one sync of the log; checkpoints wait for Close, so that a reader that copies the
// database while a run is going on finds it unchanged.
const writing = "mode=rw&_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)" +
	"&_pragma=foreign_keys(1)&_pragma=recursive_triggers(1)&_pragma=wal_autocheckpoint(0)&_pragma=temp_store(memory)" +
	"&_pragma=cache_size(-65536)" +
	"&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)&_txlock=immediate"

// bind checks that the journal belongs here, and makes it belong here if it belongs
// to no machine yet.
func (j *Journal) bind() error {
	err := checkBound(j.c, j.o)
	var bound *BoundError
	if errors.As(err, &bound) && j.o.Rebind {
		err = nil
	}
	if err != nil {
		return err
	}
	machine, err := j.c.meta("machine")
	if err != nil || bound == nil && (j.o.Machine == "" || machine == j.o.Machine) {
		return err
	}
	return j.Do(func(tx *Tx) error {
		if err := tx.SetMeta("machine", j.o.Machine); err != nil {
			return err
		}
		return tx.SetMeta("root", j.o.Root)
	})
}

func checkBound(c *conn, o Options) error {
	if o.Machine == "" && o.Root == "" {
		return nil
	}
	machine, err := c.meta("machine")
	if err != nil {
		return err
	}
	root, err := c.meta("root")
	if err != nil || machine == "" && (root == "" || o.Machine != "") { // an image boots
		return err
	}
	if machine != o.Machine || root != o.Root {
		return &BoundError{c.path, machine, root, o.Machine, o.Root}
	}
	return nil
}

// Close brings what was committed from the log into the database, so that one file
// is left, and lets go of the lock. What was committed is on disk even if it fails.
func (j *Journal) Close() error {
	if j.c == nil {
		return nil
	}
	var err error
	if j.broken == nil {
		err = j.checkpoint()
	}
	err = errors.Join(err, j.c.close())
	j.c = nil
	j.lock.release()
	if err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}

// checkpoint leaves the log empty. That a reader of another program is in the way is
// no error: the log stays, and holds the rest.
func (j *Journal) checkpoint() error {
	st, err := os.Stat(j.path + "-wal")
	if err != nil || st.Size() == 0 {
		return nil
	}
	if err := j.o.fault("checkpoint"); err != nil {
		return err
	}
	if err := j.c.script("PRAGMA busy_timeout = 200"); err != nil {
		return err
	}
	err = j.c.script("PRAGMA wal_checkpoint(TRUNCATE)")
	if errors.Is(err, ErrBusy) {
		return nil
	}
	return err
}

// Do runs fn and commits all that it wrote as one transaction: one sync, on disk when
// Do returns. If fn or the commit fails, none of it happened. Bytes put beside the
// database are made durable first.
func (j *Journal) Do(fn func(*Tx) error) (err error) {
	if j.broken != nil {
		return j.broken
	}
	if j.open {
		return errors.New("begin transaction: one is open already")
	}
	if err := j.c.script("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	tx := &Tx{j: j, c: j.c, now: j.o.Now(), numbers: map[string]int64{}, glyphs: map[*scrolls.Glyph]int64{}}
	j.open = true
	committed := false
	defer func() {
		j.open = false
		if !committed {
			_ = j.c.script("ROLLBACK")
			j.intents = map[int64]intent{}
			j.glyphs, j.layers = map[string]int64{}, map[string][]spelled{}
			j.blobs.forgotten()
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.settleBlobs(); err != nil {
		return err
	}
	if err := j.o.fault("commit"); err != nil {
		return err
	}
	if err := j.c.script("COMMIT"); err != nil {
		if errors.Is(err, ErrIO) {
			j.broken = err
		}
		return fmt.Errorf("commit: %w", err)
	}
	committed = true
	j.blobs.recorded()
	return nil
}
