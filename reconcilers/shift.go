package reconcilers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrMoved says that the host is no longer as the plan saw it.
var ErrMoved = errors.New("the host moved, plan again")

// errNotEmpty says that a directory that was to go holds something.
var errNotEmpty = errors.New("the directory is not empty")

// tempPrefix begins the name of every file golem makes beside its target. The rest
// names the step, so that recovery finds what a dead run left.
const tempPrefix = ".golem-"

// A shift brings one path from what was seen there to what is wanted there.
type shift struct {
	path     string
	from, to Node
	temp     string   // the name beside the path
	parents  []parent // directories to make first, outermost first
	// yields says that a directory which is not empty stays, which is no error.
	yields bool
	tests  []test // what must accept the new file before it takes its place
	order  int    // of a file whose bytes come from a stream: where in it
}

// A parent is a directory that has to be there before a path can be.
type parent struct {
	path string
	node Node // with every field set
}

// A way is how a shift is done.
type way int

const (
	wayNone way = iota
	wayMeta     // same content: metadata on the object that is there
	wayMake     // nothing is there: make it beside and rename it in
	waySwap     // exchange with what is there
	wayOver     // write over the same inode: another name or a mount holds it
	wayRemove
)

func (s *shift) way() way {
	switch {
	case differs(s.from, s.to) == "":
		return wayNone
	case s.to.Type == Absent:
		return wayRemove
	case s.from.Type == Absent:
		return wayMake
	case s.from.Type == s.to.Type && (s.to.Type == Dir ||
		s.to.Type == File && s.from.Hash == s.to.Hash ||
		s.to.Type == Link && s.from.Target == s.to.Target):
		return wayMeta
	case s.from.Type == File && s.to.Type == File && (s.from.Links > 1 || s.from.Mount):
		return wayOver
	}
	return waySwap
}

// A keeper makes something that golem displaces durable in the journal, before it is
// gone. open gives its bytes; it is nil for what has none, and for what the journal has.
type keeper func(path string, n Node, reason string, open func() (*os.File, error)) error

// A batch does shifts that share their syncs.
type batch struct {
	h     *Host
	d     *dirs
	blobs Blobs
	keep  keeper
	// each says that every object is synced on its own: right for one or two, where
	// one sync of the whole file system would wait for everybody's data.
	each  bool
	dirty map[string]bool // directories with changed names
	all   bool            // something changed that only a whole sync covers
	// timeout bounds one command that tests a new file.
	timeout time.Duration
}

func (h *Host) newBatch(blobs Blobs, keep keeper, size int) *batch {
	return &batch{h: h, d: h.newDirs(), blobs: blobs, keep: keep, each: size <= 2, dirty: map[string]bool{}}
}

func (b *batch) close() { b.d.close() }

// run does shifts in three strokes: everything is made beside its target, that is
// synced; everything is moved in, in order; that is synced. It stops at the first
// error and names the shift; the caller takes back what was done.
func (b *batch) run(ctx context.Context, shifts []*shift) (failed int, err error) {
	for i, s := range shifts {
		if err := ctx.Err(); err != nil {
			return i, err
		}
		if err := b.prepare(s); err != nil {
			return i, err
		}
	}
	if err := b.sync("temps"); err != nil {
		return len(shifts) - 1, err
	}
	for i, s := range shifts {
		if err := ctx.Err(); err != nil {
			return i, err
		}
		if err := b.commit(ctx, s); err != nil {
			return i, err
		}
	}
	if err := b.sync("names"); err != nil {
		return len(shifts) - 1, err
	}
	return -1, nil
}

// prepare makes missing parents and, where the shift needs a new object, makes it
// beside its target with all its bytes and metadata.
func (b *batch) prepare(s *shift) error {
	for _, up := range s.parents {
		if err := b.makeParent(up); err != nil {
			return err
		}
	}
	if w := s.way(); w != wayMake && w != waySwap {
		return nil
	}
	if s.from.Mount {
		return fmt.Errorf("replace %s: something is mounted on it", quote(s.path))
	}
	dir, _ := split(s.path)
	fd, err := b.d.fd(dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", quote(dir), err)
	}
	switch s.to.Type {
	case File:
		err = b.makeFile(fd, s)
	case Link:
		err = b.makeLink(fd, s)
	case Dir:
		err = b.makeDir(fd, s)
	default:
		err = fmt.Errorf("make %s: a %s cannot be made", quote(s.path), s.to.Type)
	}
	if err != nil {
		b.discard(fd, s)
	}
	return err
}

// discard removes what prepare made of a shift that failed; an error there adds
// nothing, recovery and rollback look for the name again.
func (b *batch) discard(dirfd int, s *shift) {
	if b.h.fault("unlink", s.path) != nil {
		return
	}
	if unix.Unlinkat(dirfd, s.temp, 0) != nil {
		_ = unix.Unlinkat(dirfd, s.temp, unix.AT_REMOVEDIR)
	}
}

func (b *batch) makeParent(up parent) error {
	dir, name := split(up.path)
	fd, err := b.d.fd(dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", quote(dir), err)
	}
	if err := b.h.fault("mkdir", up.path); err != nil {
		return err
	}
	err = unix.Mkdirat(fd, name, 0o700)
	if errors.Is(err, unix.EEXIST) {
		return nil // an earlier shift of this run made it
	}
	if err != nil {
		return fmt.Errorf("make directory %s: %w", quote(up.path), err)
	}
	b.all = true
	return b.setMeta(fd, name, up.path, up.node)
}

// makeFile makes a new file beside its target, with all its bytes and metadata. It is readable
// to nobody else before that.
func (b *batch) makeFile(dirfd int, s *shift) error {
	if err := b.h.fault("create", s.path); err != nil {
		return err
	}
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(dirfd, s.temp, flags, 0o600)
	if errors.Is(err, unix.EEXIST) {
		b.discard(dirfd, s) // a retry of this very step: the name is nobody else's
		fd, err = unix.Openat(dirfd, s.temp, flags, 0o600)
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", quote(s.path), err)
	}
	f := os.NewFile(uintptr(fd), s.temp)
	defer f.Close()
	if s.to.Flags != Any && s.to.Flags != 0 {
		if err := setFlags(fd, s.to.Flags); err != nil {
			return fmt.Errorf("%s: %w", quote(s.path), err)
		}
	}
	if err := b.fill(f, s.path, s.to); err != nil {
		return err
	}
	if err := b.setFileMeta(f, s.path, s.to); err != nil {
		return err
	}
	if b.each {
		return b.syncFile(f, s.path)
	}
	return nil
}

func (b *batch) syncFile(f *os.File, path string) error {
	if err := b.h.fault("sync", path); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", quote(path), err)
	}
	return nil
}

func (b *batch) makeLink(dirfd int, s *shift) error {
	if err := b.h.fault("symlink", s.path); err != nil {
		return err
	}
	err := unix.Symlinkat(string(s.to.Target), dirfd, s.temp)
	if errors.Is(err, unix.EEXIST) {
		b.discard(dirfd, s)
		err = unix.Symlinkat(string(s.to.Target), dirfd, s.temp)
	}
	if err != nil {
		return fmt.Errorf("make link %s: %w", quote(s.path), err)
	}
	return b.setMeta(dirfd, s.temp, s.path, s.to)
}

func (b *batch) makeDir(dirfd int, s *shift) error {
	if err := b.h.fault("mkdir", s.path); err != nil {
		return err
	}
	if s.way() == wayMake {
		// A new directory is made in place: what this batch puts into it has to
		// find it. The intent is in the journal, so nothing is lost by that.
		_, name := split(s.path)
		if err := unix.Mkdirat(dirfd, name, 0o700); err != nil {
			return fmt.Errorf("make directory %s: %w", quote(s.path), moved(err))
		}
		b.all = true
		return b.setMeta(dirfd, name, s.path, s.to)
	}
	err := unix.Mkdirat(dirfd, s.temp, 0o700)
	if errors.Is(err, unix.EEXIST) {
		b.discard(dirfd, s)
		err = unix.Mkdirat(dirfd, s.temp, 0o700)
	}
	if err != nil {
		return fmt.Errorf("make directory %s: %w", quote(s.path), err)
	}
	return b.setMeta(dirfd, s.temp, s.path, s.to)
}

// moved turns "it is there already" into what it means here: somebody made it after
// golem looked.
func moved(err error) error {
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("%w: it was not there a moment ago", ErrMoved)
	}
	return err
}

// fill writes the wanted bytes and proves that they are the wanted ones.
func (b *batch) fill(f *os.File, path string, want Node) error {
	src, err := want.open(b.blobs)
	if err != nil {
		return fmt.Errorf("write %s: %w", quote(path), err)
	}
	defer src.Close()
	hash := sha256.New()
	buf := make([]byte, min(want.Size+1, 1<<20))
	var size int64
	for {
		n, rerr := src.Read(buf)
		if n > 0 {
			if err := b.h.fault("write", path); err != nil {
				return err
			}
			hash.Write(buf[:n])
			size += int64(n)
			if _, err := f.Write(buf[:n]); err != nil {
				return fmt.Errorf("write %s: %w", quote(path), bare(err))
			}
		}
		if errors.Is(rerr, io.EOF) {
			break
		}
		if rerr != nil {
			return fmt.Errorf("write %s: read its content: %w", quote(path), rerr)
		}
	}
	if size != want.Size || hex.EncodeToString(hash.Sum(nil)) != want.Hash {
		return fmt.Errorf("write %s: its source changed since the plan: %w", quote(path), ErrMoved)
	}
	return nil
}

// bare takes the path that os adds off an error, since it names the temp.
func bare(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// open gives the bytes of a wanted file, from wherever they are.
func (n Node) open(blobs Blobs) (io.ReadCloser, error) {
	switch {
	case n.src != nil:
		return n.src()
	case n.data != nil:
		return io.NopCloser(bytes.NewReader(n.data)), nil
	case n.local != "":
		return os.Open(n.local)
	case n.Blob != "":
		r, _, err := blobs.OpenBlob(n.Blob)
		return r, err
	}
	return nil, fmt.Errorf("the bytes %s are nowhere to be had", short(n.Hash))
}

func short(hash string) string {
	if len(hash) > 12 {
		return hash[:12]
	}
	return hash
}
