package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A Reader reads a journal that another process may be writing. It takes no lock and
// leaves no trace: not even the files that a database's readers make beside it.
type Reader struct {
	store
	c    *conn
	temp string // the private directory of a copy, "" when the journal itself is open
	seen mark
}

// readTries is how often a reader begins again when a run moved the journal under it.
const readTries = 8

// errMoved says that the journal changed while it was read.
var errMoved = errors.New("it keeps changing")

// Read opens the journal at path for reading; one that is not there is an empty one.
func Read(path string, o Options) (*Reader, error) {
	o = o.withDefaults()
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if path, err = resolve(path); err != nil {
		return nil, err
	}
	r := &Reader{}
	r.store = store{path: path, o: o, with: r.stable}
	err = r.stable(func(c *conn) error {
		if c == nil {
			return nil
		}
		return checkBound(c, o)
	})
	if err != nil {
		return nil, errors.Join(explain(path, err), r.Close())
	}
	return r, nil
}

// Exists reports whether there is a journal.
func (r *Reader) Exists() bool { return r.c != nil }

// Close removes what the reader needed.
func (r *Reader) Close() error {
	var err error
	if r.c != nil {
		err = r.c.close()
		r.c = nil
	}
	if r.temp != "" {
		err = errors.Join(err, os.RemoveAll(r.temp))
		r.temp = ""
	}
	return err
}

// stable runs fn on a journal that did not change from before fn until after it. The
// database changes only when a run ends, in its checkpoint: while a run goes on, what
// is added to the log is invisible here or a torn end that is not read.
func (r *Reader) stable(fn func(*conn) error) error {
	for range readTries {
		if r.c == nil {
			err := r.open()
			if errors.Is(err, errMoved) || err != nil && r.moved() {
				continue
			}
			if err != nil {
				return err
			}
		}
		err := fn(r.c)
		if r.c == nil || r.temp != "" {
			return err
		}
		if !r.moved() {
			return err
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	return fmt.Errorf("read journal %s: %w", r.path, errMoved)
}

// moved reports whether the database is another than when it was opened.
func (r *Reader) moved() bool {
	now, err := look(r.path)
	return err == nil && now != r.seen
}

// open opens the journal where it lies if all of it is in the database, else a copy
// of it with its log. With no journal it leaves r.c nil.
func (r *Reader) open() error {
	var err error
	if r.seen, err = look(r.path); err != nil {
		return err
	}
	found, err := checkFile(r.path)
	if err != nil || !found {
		return err
	}
	log, err := os.Stat(r.path + "-wal")
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && log.Size() == 0:
		err = r.openHere()
	case err == nil:
		err = r.openCopy(true)
	}
	if err != nil {
		return errors.Join(err, r.Close())
	}
	return nil
}

const reading = "&_pragma=query_only(1)&_pragma=temp_store(memory)&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)"

func (r *Reader) openHere() error {
	var err error
	if r.c, err = connect(r.path, r.path, "mode=ro&immutable=1"+reading); err != nil {
		return err
	}
	have, err := version(r.c, len(migrations))
	if err != nil || have == len(migrations) {
		return err
	}
	if err := r.Close(); err != nil {
		return err
	}
	return r.openCopy(false)
}

// openCopy opens a private copy, brought to this golem's schema.
func (r *Reader) openCopy(log bool) error {
	var err error
	if r.temp, err = os.MkdirTemp("", "golem-"); err != nil {
		return fmt.Errorf("copy journal: %w", err)
	}
	file := filepath.Join(r.temp, "planroom.db")
	if err := r.copyTo(file, log); err != nil {
		return err
	}
	if r.c, err = connect(r.path, file, "mode=rw&_pragma=synchronous(off)&_pragma=temp_store(memory)&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)"); err != nil {
		return err
	}
	have, err := version(r.c, len(migrations))
	if err != nil || have == len(migrations) {
		return err
	}
	if err := run(r.c, migrations, have); err != nil {
		return fmt.Errorf("migrate copy of journal: %w", err)
	}
	return nil
}

// copyTo copies the database to a file, and its log beside that.
func (r *Reader) copyTo(file string, log bool) error {
	names := []string{""}
	if log {
		names = append(names, "-wal")
	}
	for _, name := range names {
		f, err := copyFile(r.path+name, file+name)
		if errors.Is(err, fs.ErrNotExist) && name != "" {
			return errMovedAfter(r.Close())
		}
		if err != nil {
			return fmt.Errorf("copy journal: %w", err)
		}
		if err := f.Close(); err != nil {
			return fmt.Errorf("copy journal: %w", err)
		}
	}
	now, err := look(r.path)
	if err != nil {
		return err
	}
	if now != r.seen {
		return errMovedAfter(r.Close())
	}
	return nil
}

func errMovedAfter(err error) error {
	if err != nil {
		return err
	}
	return errMoved
}

// A mark tells one content of the database from another.
type mark struct {
	dev, ino     uint64
	size         int64
	mtime, ctime unix.Timespec
}

// clockTick is how far apart two changes must be for their times to differ on any
// kernel.
const clockTick = 20 * time.Millisecond

// look takes the database's mark. One that changed just now is looked at again later:
// a second change within the clock's tick would leave the same mark.
func look(path string) (mark, error) {
	for {
		var st unix.Stat_t
		err := unix.Stat(path, &st)
		if errors.Is(err, unix.ENOENT) {
			return mark{}, nil
		}
		if err != nil {
			return mark{}, fmt.Errorf("open journal: %w", &fs.PathError{Op: "stat", Path: path, Err: err})
		}
		if age := time.Since(time.Unix(st.Mtim.Unix())); age < 0 || age >= clockTick {
			return mark{st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim}, nil
		}
		time.Sleep(clockTick)
	}
}
