package state

import (
	"database/sql"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"golem/scrolls"
)

// What the disk under the journal can say, for errors.Is.
var (
	ErrFull     = errors.New("no space left on its file system")
	ErrIO       = errors.New("its disk cannot be read or written")
	ErrReadOnly = errors.New("its file system or file is read-only")
	ErrBusy     = errors.New("another program has it open")
	ErrOpen     = errors.New("it or a file beside it cannot be opened")
)

// ErrMissing is what asking for a revision or a kept thing that is not there gives.
var ErrMissing = errors.New("not in the journal")

// A DiskError is a read or write that the system refused. Kind is one of the five
// above.
type DiskError struct {
	Path string
	Kind error
	Err  error
}

func (e *DiskError) Error() string   { return fmt.Sprintf("use journal %s: %v", e.Path, e.Kind) }
func (e *DiskError) Unwrap() []error { return []error{e.Kind, e.Err} }

// Hint says what a person can do about it.
func (e *DiskError) Hint() string {
	switch {
	case errors.Is(e.Kind, ErrFull):
		return "free some space there and run golem again; an interrupted run is settled by the next"
	case errors.Is(e.Kind, ErrReadOnly):
		return "make it writable, or name another journal with --state"
	case errors.Is(e.Kind, ErrBusy):
		return "close the program that reads the journal and run golem again"
	case errors.Is(e.Kind, ErrOpen):
		return "look at who may read and write the journal's directory"
	}
	return "look at the disk (dmesg), then run golem state check"
}

// A DamagedError says that the file is not a journal, or is one no longer. What is
// said in golem's own words; Err may hold the database's.
type DamagedError struct {
	Path string
	What string
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("read journal %s: it is damaged: %s", e.Path, e.What)
}
func (e *DamagedError) Unwrap() error { return e.Err }

// Hint says what a person can do about it.
func (e *DamagedError) Hint() string {
	return fmt.Sprintf("run golem state check to see what is wrong; if %s is golem's journal and not another file, restore a backup of it "+
		"(with it %s.blobs), or move it aside to begin a new one", e.Path, e.Path)
}

// A NewerError says that a later golem wrote the journal.
type NewerError struct {
	Path       string
	Have, Know int
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("read journal %s: its schema %d is newer than %d, the newest this golem knows", e.Path, e.Have, e.Know)
}

// Hint says what a person can do about it.
func (e *NewerError) Hint() string { return "use the golem that wrote it, or a later one" }

// A BoundError says that the journal belongs to another machine or another root.
type BoundError struct {
	Path                  string
	Machine, Root         string // what the journal is bound to
	WantMachine, WantRoot string // where it was opened
}

func (e *BoundError) Error() string {
	if e.Machine != e.WantMachine {
		return fmt.Sprintf("open journal %s: it belongs to machine %q, this is %q", e.Path, e.Machine, e.WantMachine)
	}
	return fmt.Sprintf("open journal %s: it belongs to root %q, this is %q", e.Path, e.Root, e.WantRoot)
}

// Hint says what a person can do about it.
func (e *BoundError) Hint() string {
	return "if this is a copy or clone that is meant to go on here, run golem state rebind"
}

// A LockedError says that another run holds the journal.
type LockedError struct {
	Path  string
	PID   int    // 0 if the holder did not say
	Since string // when the holder took it; "" if it did not say
}

func (e *LockedError) Error() string {
	who := "another run"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	if e.Since != "" {
		who += " since " + e.Since
	}
	return fmt.Sprintf("lock journal %s: held by %s", e.Path, who)
}

// Hint says what a person can do about it.
func (e *LockedError) Hint() string { return "wait for it to end, or give --lock-timeout" }

// An UnsafeError says that the journal's path is not one to trust.
type UnsafeError struct {
	Path string
	Why  string
}

func (e *UnsafeError) Error() string { return fmt.Sprintf("open journal %s: %s", e.Path, e.Why) }

// A BlobError says that the bytes for a hash are not there whole.
type BlobError struct {
	Hash string
	Why  string
}

func (e *BlobError) Error() string { return fmt.Sprintf("read blob %s: %s", e.Hash, e.Why) }

// A ChangedError says that a file was not what it had been when it was looked at.
type ChangedError struct {
	Path       string
	Want, Have string // hashes
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("keep %s: it changed while it was read", e.Path)
}

// An OwnedError says that a key belongs to another lineage.
type OwnedError struct {
	Key     scrolls.Key
	Lineage string
}

func (e *OwnedError) Error() string {
	return fmt.Sprintf("declare %s: it belongs to lineage %q", e.Key, e.Lineage)
}

// An UnsettledError says that an earlier run must be recovered before a new begins.
type UnsettledError struct{ Run int64 }

func (e *UnsettledError) Error() string {
	return fmt.Sprintf("begin run: run %d was interrupted and is not settled", e.Run)
}

// Hint says what a person can do about it.
func (e *UnsettledError) Hint() string { return "run golem recover" }

// explain turns what the database or the system said about the journal into golem's
// own errors. Errors that are golem's already pass through.
func explain(path string, err error) error {
	var se *sqlite.Error
	switch {
	case err == nil || errors.Is(err, sql.ErrNoRows):
		return err
	case errors.As(err, &se):
		return explainSQL(path, se)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &DiskError{path, ErrFull, err}
	case errors.Is(err, syscall.EROFS):
		return &DiskError{path, ErrReadOnly, err}
	case errors.Is(err, syscall.EIO):
		return &DiskError{path, ErrIO, err}
	}
	return err
}

func explainSQL(path string, se *sqlite.Error) error {
	switch se.Code() & 0xff {
	case lib.SQLITE_CORRUPT:
		return &DamagedError{path, "its pages contradict each other", se}
	case lib.SQLITE_NOTADB:
		return &DamagedError{path, "it is not a database", se}
	case lib.SQLITE_FULL:
		return &DiskError{path, ErrFull, se}
	case lib.SQLITE_IOERR:
		if full(path) {
			return &DiskError{path, ErrFull, se}
		}
		return &DiskError{path, ErrIO, se}
	case lib.SQLITE_READONLY:
		return &DiskError{path, ErrReadOnly, se}
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return &DiskError{path, ErrBusy, se}
	case lib.SQLITE_CANTOPEN:
		return &DiskError{path, ErrOpen, se}
	}
	return fmt.Errorf("use journal %s: %w", path, se)
}

// full reports whether nothing more fits beside the journal: the database calls some
// failures to grow a file an I/O error.
func full(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Bavail*uint64(st.Bsize) < 64<<10
}
