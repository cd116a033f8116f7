package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// undo returns a path to what stood there before a step. It succeeds when the step
// never ran, ran half, or was already taken back. What it finds in the way that is
// neither the before nor the after is kept first; what cannot be kept (somebody's
// directory) stays, and the before is kept instead.
//
// made are the directories the step made, outermost first; they go again if empty.
func (h *Host) undo(ctx context.Context, blobs Blobs, keep keeper, u undoing) error {
	b := h.newBatch(blobs, keep, 1)
	defer b.close()
	if err := b.clearTemp(u); err != nil {
		return err
	}
	now, err := h.observe(b.d, u.path, 0)
	if err != nil {
		return err
	}
	s := &shift{path: u.path, from: now, to: u.before, temp: u.temp, parents: u.parents}
	switch {
	case s.way() == wayNone:
	case u.foreign(now):
		if err := b.keepBefore(u, now); err != nil {
			return err
		}
	default:
		if err := b.keepStranger(u, now); err != nil {
			return err
		}
		if _, err := b.run(ctx, []*shift{s}); err != nil {
			return err
		}
	}
	return b.unmake(u.made)
}

// An undoing is what undo needs to know of a step.
type undoing struct {
	path          string
	before, after Node
	temp          string
	parents       []parent // found parents that a stranger may have removed since
	made          []string
}

// foreign says that something stands at the path which golem cannot keep and did not
// put there.
func (u undoing) foreign(now Node) bool {
	return !keepable(now.Type) && now.Type != u.before.Type && now.Type != u.after.Type
}

// keepBefore keeps what cannot go back to its place, from the bytes that the journal
// has of it.
func (b *batch) keepBefore(u undoing, now Node) error {
	if u.before.Type == Absent || !keepable(u.before.Type) {
		return nil
	}
	return b.keep(u.path, u.before, homeless(now.Type), nil)
}

// clearTemp removes what a dead or failed attempt left beside the path: the new
// object, or the displaced old one. Anything else there was displaced in a race: it is
// kept, or goes back to its place.
func (b *batch) clearTemp(u undoing) error {
	dir, name := split(u.path)
	fd, err := b.d.fd(dir)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", quote(dir), err)
	}
	left, err := observeAt(fd, u.temp, 0)
	if err != nil {
		return fmt.Errorf("look at what was left beside %s: %w", quote(u.path), err)
	}
	if left.Type == Absent {
		return nil
	}
	b.dirty[dir] = true
	if !u.foreign(left) {
		if err := b.keepDisplaced(fd, u, left); err != nil {
			return err
		}
		err := b.unlinkTemp(fd, u, left.Type)
		if !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
	}
	if err := b.putBack(fd, name, u.path, u.temp); err != nil {
		return err
	}
	if left, err = observeAt(fd, u.temp, 0); err != nil || left.Type == Absent {
		return err
	}
	return b.unlinkTemp(fd, u, left.Type)
}

func (b *batch) unlinkTemp(dirfd int, u undoing, is Type) error {
	flag := 0
	if is == Dir {
		flag = unix.AT_REMOVEDIR
	}
	if err := b.h.fault("unlink", u.path); err != nil {
		return err
	}
	if err := unix.Unlinkat(dirfd, u.temp, flag); err != nil {
		return fmt.Errorf("remove what was left beside %s: %w", quote(u.path), err)
	}
	return nil
}

// keepDisplaced keeps what has the temp's name if it came off the path in a race. A
// temp with no more than golem's own 0600 and root's bytes may be half written; it is a
// stranger's only if it came off the path by a swap, and then it is not the newest
// thing golem made. A swap is proved by the new object being at the path.
func (b *batch) keepDisplaced(dirfd int, u undoing, left Node) error {
	for _, own := range []Node{u.before, u.after} {
		if left.Type == Dir || left.Type == own.Type && left.Hash == own.Hash && left.Target == own.Target {
			return nil
		}
	}
	if left.Type == File {
		now, err := b.h.observe(b.d, u.path, 0)
		if err != nil {
			return err
		}
		if now.Type != u.after.Type || now.Type == File && now.Hash != u.after.Hash {
			return nil
		}
	}
	return b.keepAt(dirfd, u.temp, u.path, left)
}

// keepStranger keeps what stands at the path if neither the step nor golem before
// the step put it there.
func (b *batch) keepStranger(u undoing, now Node) error {
	known := func(n Node) bool {
		return n.Type == now.Type && n.Hash == now.Hash && n.Target == now.Target
	}
	if now.Type == Absent || now.Type == Dir || known(u.before) || known(u.after) {
		return nil
	}
	dir, name := split(u.path)
	fd, err := b.d.fd(dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", quote(dir), err)
	}
	return b.keepAt(fd, name, u.path, now)
}

// unmake removes the directories a step made, innermost first, where they are empty.
func (b *batch) unmake(made []string) error {
	for i := len(made) - 1; i >= 0; i-- {
		dir, name := split(made[i])
		fd, err := b.d.fd(dir)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", quote(dir), err)
		}
		if err := b.h.fault("rmdir", made[i]); err != nil {
			return err
		}
		b.d.drop(made[i])
		err = unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.ENOTDIR) {
			return fmt.Errorf("remove %s: %w", quote(made[i]), err)
		}
		b.dirty[dir] = true
	}
	return b.sync("names")
}

// openAt opens the file at a real path for reading, following nothing.
func (h *Host) openAt(p string) (*os.File, error) {
	dir, name := split(p)
	d := h.newDirs()
	defer d.close()
	fd, err := d.fd(dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", quote(p), err)
	}
	f, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", quote(p), err)
	}
	return os.NewFile(uintptr(f), name), nil
}

// readDir lists the names in a real directory; none where there is no directory.
func (h *Host) readDir(p string) ([]string, error) {
	fd, err := h.openDir(p)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", quote(p), err)
	}
	f := os.NewFile(uintptr(fd), p)
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", quote(p), err)
	}
	return names, nil
}
