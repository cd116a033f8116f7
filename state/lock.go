package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const lockPoll = 20 * time.Millisecond

// A lock is the journal's flock: one golem writes at a time, and the kernel lets go
// of it when that golem dies.
type lock struct{ f *os.File }

// takeLock waits up to timeout for PATH.lock and writes into it who holds it.
func takeLock(path string, o Options) (*lock, error) {
	if err := o.fault("lock"); err != nil {
		return nil, err
	}
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.ELOOP) {
		return nil, &UnsafeError{name, "it is a symbolic link"}
	}
	if err != nil {
		return nil, fmt.Errorf("lock journal: %w", err)
	}
	if err := private(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock journal: %w", err)
	}
	if err := flock(f, path, o); err != nil {
		f.Close()
		return nil, err
	}
	who := fmt.Sprintf("%d %s\n", o.PID, o.Now().UTC().Format(time.RFC3339))
	if err := f.Truncate(0); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock journal: %w", err)
	}
	if _, err := f.WriteAt([]byte(who), 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock journal: %w", err)
	}
	return &lock{f}, nil
}

func flock(f *os.File, path string, o Options) error {
	deadline := time.Now().Add(o.LockTimeout)
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("lock journal %s: %w", path, err)
		}
		left := time.Until(deadline)
		if left <= 0 {
			return heldBy(f, path)
		}
		select {
		case <-time.After(min(left, lockPoll)):
		case <-o.Interrupt:
			return fmt.Errorf("lock journal %s: %w", path, context.Canceled)
		}
	}
}

func heldBy(f *os.File, path string) *LockedError {
	locked := &LockedError{Path: path}
	buf := make([]byte, 100)
	n, _ := f.ReadAt(buf, 0)
	if words := strings.Fields(string(buf[:n])); len(words) == 2 {
		locked.PID, _ = strconv.Atoi(words[0])
		locked.Since = words[1]
	}
	return locked
}

// release empties the file first, so that it never names a holder that is gone. The
// file stays: removing it would let two runs each hold a lock of that name.
//
// It unlocks and does not only close: a child that was forked and has not yet become its
// program holds the file open too, and with it the lock (flock(2)).
func (l *lock) release() {
	_ = l.f.Truncate(0)
	_ = unix.Flock(int(l.f.Fd()), unix.LOCK_UN)
	_ = l.f.Close()
}

// private gives an open file the mode 0600, whatever the umask was.
func private(f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("open %s: not a regular file", f.Name())
	}
	if st.Mode().Perm() == 0o600 {
		return nil
	}
	return f.Chmod(0o600)
}
