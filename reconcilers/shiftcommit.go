package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// setMeta gives a directory or link beside or at its place the wanted metadata.
func (b *batch) setMeta(dirfd int, name, path string, want Node) error {
	if want.Type == Link {
		return b.setLinkMeta(dirfd, name, path, want)
	}
	flag := unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if want.Type == Dir {
		flag |= unix.O_DIRECTORY
	}
	fd, err := unix.Openat(dirfd, name, flag, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", quote(path), err)
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	return b.setFileMeta(f, path, want)
}

// setFileMeta sets owner, attributes, mode, flags and time, in the order in which
// none undoes another: chown clears setuid and capabilities, chmod rewrites the ACL's
// mask, and writing anything moves the time.
func (b *batch) setFileMeta(f *os.File, path string, want Node) error {
	fd := int(f.Fd())
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at %s: %w", quote(path), err)
	}
	if err := b.chown(fd, &st, path, want); err != nil {
		return err
	}
	if want.Xattrs != nil {
		if err := b.h.fault("xattr", path); err != nil {
			return err
		}
		if err := setXattrs(fdXattrs(fd), want.Xattrs); err != nil {
			return fmt.Errorf("%s: %w", quote(path), err)
		}
	}
	if want.Mode != Any {
		if err := b.h.fault("chmod", path); err != nil {
			return err
		}
		if err := unix.Fchmod(fd, uint32(want.Mode)); err != nil {
			return fmt.Errorf("set mode of %s: %w", quote(path), err)
		}
	}
	if want.Flags != Any {
		if err := setFlags(fd, want.Flags); err != nil {
			return fmt.Errorf("%s: %w", quote(path), err)
		}
	}
	if want.Type == File && want.Mtime != 0 {
		return b.setTime(f, path, want.Mtime)
	}
	return nil
}

func (b *batch) chown(fd int, st *unix.Stat_t, path string, want Node) error {
	uid, gid := want.UID, want.GID
	if (uid == Any || uid == int(st.Uid)) && (gid == Any || gid == int(st.Gid)) {
		return nil
	}
	if err := b.h.fault("chown", path); err != nil {
		return err
	}
	if err := unix.Fchown(fd, uid, gid); err != nil {
		return fmt.Errorf("set owner of %s: %w", quote(path), err)
	}
	return nil
}

func (b *batch) setTime(f *os.File, path string, mtime int64) error {
	if err := b.h.fault("utimens", path); err != nil {
		return err
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(mtime)}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), times, 0); err != nil {
		return fmt.Errorf("set time of %s: %w", quote(path), err)
	}
	return nil
}

func (b *batch) setLinkMeta(dirfd int, name, path string, want Node) error {
	if want.UID != Any || want.GID != Any {
		var st unix.Stat_t
		if err := unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("look at %s: %w", quote(path), err)
		}
		if want.UID != Any && want.UID != int(st.Uid) || want.GID != Any && want.GID != int(st.Gid) {
			if err := b.h.fault("chown", path); err != nil {
				return err
			}
			if err := unix.Fchownat(dirfd, name, want.UID, want.GID, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				return fmt.Errorf("set owner of %s: %w", quote(path), err)
			}
		}
	}
	if want.Xattrs != nil {
		if err := setXattrs(linkXattrs{procName(dirfd, name)}, want.Xattrs); err != nil {
			return fmt.Errorf("%s: %w", quote(path), err)
		}
	}
	return nil
}

// commit moves a prepared shift in, or does what needs no new object.
func (b *batch) commit(ctx context.Context, s *shift) error {
	way := s.way()
	if way == wayNone || way == wayMake && s.to.Type == Dir {
		return nil
	}
	dir, name := split(s.path)
	fd, err := b.d.fd(dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", quote(dir), err)
	}
	b.dirty[dir] = true
	if err := b.testNew(ctx, fd, s); err != nil {
		return err
	}
	b.h.unitFiles = b.h.unitFiles || holdsUnits(s.path)
	switch way {
	case wayMake:
		err = b.moveIn(fd, name, s)
	case waySwap:
		err = b.swap(fd, name, s)
	case wayMeta:
		b.all = true
		if err = b.h.fault("meta", s.path); err == nil {
			err = b.setMeta(fd, name, s.path, s.to)
		}
	case wayOver:
		err = b.over(fd, name, s)
	case wayRemove:
		err = b.remove(fd, name, s)
	}
	return err
}

// moveIn renames a prepared object to a name that must still be free.
func (b *batch) moveIn(dirfd int, name string, s *shift) error {
	if err := b.h.fault("rename", s.path); err != nil {
		return err
	}
	err := unix.Renameat2(dirfd, s.temp, dirfd, name, unix.RENAME_NOREPLACE)
	if unsupported(err) {
		var st unix.Stat_t
		if unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			err = unix.EEXIST
		} else {
			err = unix.Renameat(dirfd, s.temp, dirfd, name)
		}
	}
	if err != nil {
		return fmt.Errorf("rename into %s: %w", quote(s.path), moved(err))
	}
	return nil
}

// unsupported says that a file system lacks a flag of renameat2(2).
func unsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP)
}

// swap exchanges the prepared object with what is there, and lets go of that only
// when it is what was captured; anything else is kept first.
func (b *batch) swap(dirfd int, name string, s *shift) error {
	if err := b.h.fault("rename", s.path); err != nil {
		return err
	}
	err := unix.Renameat2(dirfd, s.temp, dirfd, name, unix.RENAME_EXCHANGE)
	switch {
	case err == nil:
		return b.letGo(dirfd, name, s)
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("replace %s: %w: it is gone", quote(s.path), ErrMoved)
	case errors.Is(err, unix.EBUSY) && s.from.Type == File && s.to.Type == File:
		return b.over(dirfd, name, s) // a mount that statx(2) did not tell of
	case unsupported(err) && s.to.Type != Dir && s.from.Type != Dir:
		return b.swapBlind(dirfd, name, s)
	}
	return fmt.Errorf("replace %s: %w", quote(s.path), err)
}

// swapBlind is swap for a file system without RENAME_EXCHANGE: look again, rename.
func (b *batch) swapBlind(dirfd int, name string, s *shift) error {
	now, err := observeAt(dirfd, name, 0)
	if err != nil {
		return fmt.Errorf("look at %s: %w", quote(s.path), err)
	}
	if !sameThing(now, s.from) {
		return fmt.Errorf("replace %s: %w", quote(s.path), ErrMoved)
	}
	if err := unix.Renameat(dirfd, s.temp, dirfd, name); err != nil {
		return fmt.Errorf("replace %s: %w", quote(s.path), err)
	}
	return nil
}

// letGo removes what a swap displaced, which now has the temp's name. What somebody put
// there meanwhile and golem cannot keep goes back to its place.
func (b *batch) letGo(dirfd int, name string, s *shift) error {
	was, err := b.displaced(dirfd, s)
	if err != nil {
		return err
	}
	if !keepable(was) && was != s.from.Type {
		if err := b.putBack(dirfd, name, s.path, s.temp); err != nil {
			return err
		}
		return fmt.Errorf("replace %s: %w: it is a %s", quote(s.path), ErrMoved, was)
	}
	flag := 0
	if was == Dir {
		flag = unix.AT_REMOVEDIR
	}
	if err := b.h.fault("unlink", s.path); err != nil {
		return err
	}
	if err := unix.Unlinkat(dirfd, s.temp, flag); err != nil {
		return fmt.Errorf("remove what was at %s: %w", quote(s.path), err)
	}
	return nil
}

// keepable says whether the journal can keep what stands at a path, so that golem may
// displace it.
func keepable(t Type) bool { return t == Absent || t == File || t == Link }

// putBack gives what has the temp's name the path's again. What golem put there, if
// anything, has the temp's name then.
func (b *batch) putBack(dirfd int, name, path, temp string) error {
	if err := b.h.fault("rename", path); err != nil {
		return err
	}
	err := unix.Renameat2(dirfd, temp, dirfd, name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EEXIST) {
		err = unix.Renameat2(dirfd, temp, dirfd, name, unix.RENAME_EXCHANGE)
	}
	if err != nil {
		return fmt.Errorf("put back what was at %s: %w", quote(path), err)
	}
	return nil
}

// displaced looks at what was taken away and keeps it if it is not what was captured.
func (b *batch) displaced(dirfd int, s *shift) (Type, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(dirfd, s.temp, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return "", fmt.Errorf("look at what was at %s: %w", quote(s.path), err)
	}
	n := statNode(&st)
	if n.ino == s.from.ino && n.dev == s.from.dev && n.Mtime == s.from.Mtime && st.Size == s.from.Size && s.from.Type == File {
		return File, nil
	}
	now, err := observeAt(dirfd, s.temp, 0)
	if err != nil {
		return "", fmt.Errorf("look at what was at %s: %w", quote(s.path), err)
	}
	if !keepable(now.Type) || now.Type == Link && s.from.Type == Link && now.Target == s.from.Target ||
		now.Type == File && s.from.Type == File && now.Hash == s.from.Hash {
		return now.Type, nil
	}
	return now.Type, b.keepAt(dirfd, s.temp, s.path, now)
}

// racy is why something is kept that came to a path while golem was about to write it.
const racy = "was there when golem came to write, and was not what it had seen"

// keepAt gives an object to the journal for safe keeping.
func (b *batch) keepAt(dirfd int, name, path string, n Node) error {
	var open func() (*os.File, error)
	if n.Type == File {
		open = func() (*os.File, error) {
			fd, err := unix.Openat(dirfd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err != nil {
				return nil, err
			}
			return os.NewFile(uintptr(fd), name), nil
		}
	}
	return b.keep(path, n, racy, open)
}

// over writes new content into the very inode that is there. The old content is in
// the journal by now; room for the new is taken first, so that a full disk is met
// before the first byte is lost.
func (b *batch) over(dirfd int, name string, s *shift) error {
	if err := b.h.fault("open", s.path); err != nil {
		return err
	}
	fd, err := unix.Openat(dirfd, name, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", quote(s.path), err)
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at %s: %w", quote(s.path), err)
	}
	if s.from.ino != 0 && (st.Ino != s.from.ino || st.Size != s.from.Size || st.Mtim.Nano() != s.from.Mtime) {
		return fmt.Errorf("write %s: %w", quote(s.path), ErrMoved)
	}
	if s.to.Size > st.Size {
		err := unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, s.to.Size)
		if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
			return fmt.Errorf("make room in %s: %w", quote(s.path), err)
		}
	}
	if err := b.fill(f, s.path, s.to); err != nil {
		return err
	}
	if err := b.h.fault("truncate", s.path); err != nil {
		return err
	}
	if err := f.Truncate(s.to.Size); err != nil {
		return fmt.Errorf("write %s: %w", quote(s.path), bare(err))
	}
	if err := b.setFileMeta(f, s.path, s.to); err != nil {
		return err
	}
	return b.syncFile(f, s.path)
}

// remove takes a path away: a file or link by way of the temp's name, so that what
// goes is what was captured, or is kept; a directory only if it is empty.
func (b *batch) remove(dirfd int, name string, s *shift) error {
	if s.from.Type == Dir {
		if err := b.h.fault("rmdir", s.path); err != nil {
			return err
		}
		b.d.drop(s.path)
		err := unix.Unlinkat(dirfd, name, unix.AT_REMOVEDIR)
		switch {
		case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
			if s.yields {
				return nil
			}
			return fmt.Errorf("remove %s: %w", quote(s.path), errNotEmpty)
		case err != nil && !errors.Is(err, unix.ENOENT):
			return fmt.Errorf("remove %s: %w", quote(s.path), err)
		}
		return nil
	}
	if err := b.h.fault("rename", s.path); err != nil {
		return err
	}
	err := unix.Renameat2(dirfd, name, dirfd, s.temp, unix.RENAME_NOREPLACE)
	if unsupported(err) {
		err = unix.Renameat(dirfd, name, dirfd, s.temp)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", quote(s.path), err)
	}
	return b.letGo(dirfd, name, s)
}
