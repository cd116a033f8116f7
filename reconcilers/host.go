// Package reconcilers holds the port through which golem acts on a host, and one
// file for each kind of glyph. It reads and changes the host only through a Host,
// and knows neither the plan's text nor the order in which a run enacts.
package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Host is the only door to the machine. Every path handed to it is absolute, clean
// and free of symbolic links ("real"), and lies inside Root.
type Host struct {
	// Root is the directory that stands for "/". On a live host it is "/".
	Root string
	// Booted says that Root is a running system's, where commands act on it. A test's
	// fake sets it with an Exec of its own.
	Booted bool
	// UID and GID are golem's own, in effect.
	UID, GID int
	// Fault, where set, is called before every single change to the host, with the
	// kind of change and the path. An error is returned as if the system had given
	// it; a test may also end the process there.
	Fault func(op, path string) error
	// Exec, where set, runs commands in place of the system: a test's fake.
	Exec func(context.Context, Command) (Output, error)
	// Watch, where set, is called when a command starts, and what it returns when the
	// command has ended. Commands that only read may run beside each other.
	Watch func(Command) (ended func())
	// Sleep, where set, lets time pass in place of the clock: a test's fake.
	Sleep func(context.Context, time.Duration) error
	// Clock, where set, is the time since the machine started: a test's fake.
	Clock func() time.Duration
	// Scratch is a directory of golem's own for files that need not outlive a run; "" for
	// the system's. What a killed run left in it, the next one clears.
	Scratch string
	// Running is the file that marks a changing command while it runs; "" for none.
	Running string
	// Own holds golem's own files (the journal), which no glyph may name.
	Own []string

	rootfd int
	mu     sync.Mutex
	users  *names
	unborn unborn
	apt    aptLists
	// archives are what was read of archives, and what was downloaded.
	archives archiveShelf
	// unitFiles says that a unit file was changed since systemd last read them.
	unitFiles bool
}

// OpenHost opens the file tree at root.
func OpenHost(root string) (*Host, error) {
	if root == "" {
		root = "/"
	}
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open root %s: %w", root, err)
	}
	return &Host{
		Root: root, Booted: root == "/", UID: os.Geteuid(), GID: os.Getegid(),
		rootfd: fd,
	}, nil
}

// Close releases the root.
func (h *Host) Close() error { return errors.Join(h.archives.clear(), unix.Close(h.rootfd)) }

// Live says whether the host is a running system and not a file tree.
func (h *Host) Live() bool { return h.Booted }

// fault asks the test's hook, if there is one, whether this change may happen.
func (h *Host) fault(op, path string) error {
	if h.Fault == nil {
		return nil
	}
	if err := h.Fault(op, path); err != nil {
		return fmt.Errorf("%s %s: %w", op, path, err)
	}
	return nil
}

// Blobs gives back bytes that the journal keeps, by their hash.
type Blobs interface {
	OpenBlob(hash string) (io.ReadCloser, int64, error)
}

// A turnstile lets one at a time ask for a blob: worlds that work beside each other
// share a journal that does not.
type turnstile struct {
	mu    sync.Mutex
	blobs Blobs
}

func (t *turnstile) OpenBlob(hash string) (io.ReadCloser, int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.blobs.OpenBlob(hash)
}

// noBlobs is what a host without a journal has.
type noBlobs struct{}

func (noBlobs) OpenBlob(hash string) (io.ReadCloser, int64, error) {
	return nil, 0, fmt.Errorf("open blob %s: %w", hash, errNoJournal)
}

var errNoJournal = errors.New("there is no journal")

// A dirs keeps directories open for a batch of work, so that a hundred files in one
// folder do not walk to it a hundred times.
type dirs struct {
	h    *Host
	open map[string]int
	devs map[uint64]string // each file system met, by one directory on it
}

// maxOpenDirs bounds the descriptors one dirs holds.
const maxOpenDirs = 64

func (h *Host) newDirs() *dirs {
	return &dirs{h: h, open: map[string]int{}, devs: map[uint64]string{}}
}

// fd returns a descriptor of the real directory at path. It is valid until drop or
// close; no link on the way is followed, so a planted one ends in ELOOP.
func (d *dirs) fd(path string) (int, error) {
	if fd, ok := d.open[path]; ok {
		return fd, nil
	}
	if len(d.open) >= maxOpenDirs {
		d.close()
	}
	fd, err := d.h.openDir(path)
	if err != nil {
		return -1, err
	}
	d.open[path] = fd
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil {
		d.devs[uint64(st.Dev)] = path
	}
	return fd, nil
}

// drop forgets a directory that is about to go, and everything beneath it.
func (d *dirs) drop(path string) {
	for p, fd := range d.open {
		if p == path || beneath(p, path) {
			unix.Close(fd)
			delete(d.open, p)
		}
	}
}

func (d *dirs) close() {
	for p, fd := range d.open {
		unix.Close(fd)
		delete(d.open, p)
	}
}

// openDir opens a real directory without following any link.
func (h *Host) openDir(path string) (int, error) {
	rel := relative(path)
	for _, access := range []uint64{unix.O_RDONLY, unix.O_PATH} {
		fd, err := unix.Openat2(h.rootfd, rel, &unix.OpenHow{
			Flags:   access | unix.O_DIRECTORY | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
		})
		switch {
		case err == nil:
			return fd, nil
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			return h.walkDir(rel)
		case errors.Is(err, unix.EACCES) && access == unix.O_RDONLY:
			continue // a folder that may be entered but not listed
		default:
			return -1, err
		}
	}
	return -1, unix.EACCES
}

// walkDir is openDir for kernels and sandboxes without openat2(2).
func (h *Host) walkDir(rel string) (int, error) {
	fd, err := unix.Dup(h.rootfd)
	if err != nil {
		return -1, err
	}
	for _, name := range steps(rel) {
		next, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EACCES) {
			next, err = unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		}
		unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}
