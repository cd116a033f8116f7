package state

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// migrate brings the journal forward to the last of steps: in one transaction, after
// a durable copy of the journal as it was.
func migrate(c *conn, o Options, steps []migration) error {
	have, err := version(c, len(steps))
	if err != nil || have == len(steps) {
		return err
	}
	if err := backup(c, o, have); err != nil {
		return fmt.Errorf("migrate journal: back it up: %w", err)
	}
	if err := c.script("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err = run(c, steps, have)
	if err == nil {
		err = o.fault("migrate")
	}
	if err == nil {
		err = c.script("COMMIT")
	}
	if err != nil {
		_ = c.script("ROLLBACK")
		return fmt.Errorf("migrate journal from schema %d to %d: %w", have, len(steps), err)
	}
	return nil
}

// run applies the migrations from schema have on, inside a transaction.
func run(c *conn, steps []migration, have int) error {
	for _, m := range steps[have:] {
		if err := m(c); err != nil {
			return err
		}
	}
	return c.script(fmt.Sprintf("PRAGMA user_version = %d", len(steps)))
}

// version returns the journal's schema, and refuses what is no journal or a newer one.
func version(c *conn, newest int) (int, error) {
	app, err := c.number("PRAGMA application_id")
	if err != nil {
		return 0, err
	}
	have, err := c.number("PRAGMA user_version")
	if err != nil {
		return 0, err
	}
	switch {
	case app != applicationID:
		return 0, &DamagedError{c.path, "it is another program's database", nil}
	case int(have) > newest:
		return 0, &NewerError{c.path, int(have), newest}
	case have < 1:
		return 0, &DamagedError{c.path, "it has no schema", nil}
	}
	return int(have), nil
}

// backup copies the whole journal to PATH.backup-vN.
func backup(c *conn, o Options, have int) error {
	if err := c.script("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return err
	}
	if st, err := os.Stat(c.path + "-wal"); err == nil && st.Size() > 0 {
		return &DiskError{c.path, ErrBusy, nil}
	}
	if err := o.fault("backup"); err != nil {
		return err
	}
	dst, err := copyFile(c.path, c.path+".backup.new")
	if err != nil {
		return err
	}
	defer dst.Close()
	return publish(dst, fmt.Sprintf("%s.backup-v%d", c.path, have), o, "backup")
}

// copyFile makes a private copy of a file under a name that is free, sharing its
// blocks where the file system can. It returns the copy open, not synced.
func copyFile(from, to string) (*os.File, error) {
	src, err := os.Open(from)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = private(dst)
	if err == nil && unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) != nil {
		_, err = io.Copy(dst, src)
	}
	if err != nil {
		return nil, errors.Join(err, dst.Close(), os.Remove(to))
	}
	return dst, nil
}
