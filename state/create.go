package state

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// makeHome makes the journal's directory, for its owner alone, and what is above it,
// for all to pass. What is there already is left as it is.
func makeHome(dir string) error {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing = append(missing, d)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		mode := fs.FileMode(0o755)
		if i == 0 {
			mode = 0o700
		}
		err := makeDir(missing[i], mode)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// makeDir makes one directory with that very mode, durably.
func makeDir(dir string, mode fs.FileMode) error {
	if err := os.Mkdir(dir, mode); err != nil {
		return err
	}
	if err := os.Chmod(dir, mode); err != nil {
		return err
	}
	return syncPath(filepath.Dir(dir))
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// sweep takes away what a run that died while it made or migrated a journal left.
func sweep(path string) error {
	for _, name := range []string{".new", ".new-journal", ".new-wal", ".new-shm", ".backup.new"} {
		if err := os.Remove(path + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove leftover: %w", err)
		}
	}
	return (&beside{dir: path + ".blobs"}).sweep()
}

const magic = "SQLite format 3\x00"

// resolve follows a link that stands at path, unless it is somebody else's: what lies
// beside the journal lies beside the file.
func resolve(path string) (string, error) {
	st, err := os.Lstat(path)
	if err != nil || st.Mode()&fs.ModeSymlink == 0 {
		return path, nil // what is wrong with it, opening it will say
	}
	if uid := owner(st); uid != 0 && uid != os.Geteuid() {
		return "", &UnsafeError{path, fmt.Sprintf("it is a symbolic link of user %d", uid)}
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("open journal: %w", err)
	}
	return real, nil
}

// checkFile says whether there is a file at path and that it can be a journal: a
// regular file with a database's header.
func checkFile(path string) (found bool, err error) {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, checkNoLog(path)
	}
	if err != nil {
		return false, fmt.Errorf("open journal: %w", err)
	}
	if !st.Mode().IsRegular() {
		return false, &UnsafeError{path, "it is not a regular file"}
	}
	return true, checkHeader(path)
}

// checkNoLog refuses a log without its database: it would be taken for the log of a
// database made anew.
func checkNoLog(path string) error {
	st, err := os.Lstat(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	if st.Size() > 0 {
		return &DamagedError{path, fmt.Sprintf("it is gone, but its log %s-wal is there", path), nil}
	}
	return nil
}

// checkHeader looks before the database is opened, which may write to it.
func checkHeader(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	defer f.Close()
	head := make([]byte, 100)
	n, err := io.ReadFull(f, head)
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return &DamagedError{path, "it is empty", nil}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &DamagedError{path, "it is cut short", nil}
	case err != nil:
		return fmt.Errorf("read journal: %w", err)
	case !strings.HasPrefix(string(head), magic):
		return &DamagedError{path, "it is not a database", nil}
	case binary.BigEndian.Uint32(head[68:]) != applicationID:
		return &DamagedError{path, "it is another program's database", nil}
	}
	return nil
}

func owner(st fs.FileInfo) int {
	return int(st.Sys().(*syscall.Stat_t).Uid)
}

// tighten gives the journal's files the mode they are made with, where somebody gave
// them another.
func tighten(path string) error {
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open journal: %w", err)
		}
		err = private(f)
		f.Close()
		if err != nil {
			return fmt.Errorf("open journal: %w", err)
		}
	}
	return nil
}

// create makes a journal: whole under another name first, so that at every instant
// there is none or a whole one.
func create(path string, o Options) error {
	_ = os.Remove(path + "-wal") // empty: checkFile saw to that
	fresh := path + ".new"
	if err := o.fault("create"); err != nil {
		return err
	}
	f, err := os.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("make journal: %w", err)
	}
	defer f.Close()
	if err := private(f); err != nil {
		return fmt.Errorf("make journal: %w", err)
	}
	if err := fill(path, fresh, o); err != nil {
		return fmt.Errorf("make journal: %w", err)
	}
	if err := publish(f, path, o, "create"); err != nil {
		return fmt.Errorf("make journal: %w", err)
	}
	return nil
}

// fill writes the schema into the database at fresh, without a sync.
func fill(path, fresh string, o Options) error {
	c, err := connect(path, fresh, "mode=rw&_pragma=synchronous(off)&_pragma=journal_mode(memory)")
	if err != nil {
		return err
	}
	err = c.script("PRAGMA page_size = 4096; BEGIN")
	if err == nil {
		err = run(c, migrations, 0)
	}
	if err == nil {
		id := make([]byte, 16)
		_, _ = rand.Read(id)
		err = errors.Join(c.setMeta("id", hex.EncodeToString(id)), c.setMeta("machine", o.Machine), c.setMeta("root", o.Root))
	}
	if err == nil {
		err = c.script(fmt.Sprintf("PRAGMA application_id = %d; COMMIT; PRAGMA journal_mode = wal", applicationID))
	}
	return errors.Join(err, c.close())
}

// publish makes the open file durable and gives it the name path, durably.
func publish(f *os.File, path string, o Options, op string) error {
	if err := o.fault(op + " sync"); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := o.fault(op + " rename"); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	if err := o.fault(op + " sync"); err != nil {
		return err
	}
	return syncPath(filepath.Dir(path))
}
