package reconcilers

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// sync makes the batch durable: each touched directory, or whole file systems.
func (b *batch) sync(what string) error {
	if b.each && what == "temps" && !b.all {
		return nil // each temp was synced as it was made
	}
	if len(b.dirty) == 0 && !b.all && b.each {
		return nil
	}
	if err := b.h.fault("sync", what); err != nil {
		return err
	}
	if b.each && !b.all {
		for dir := range b.dirty {
			if err := b.syncDir(dir); err != nil {
				return err
			}
		}
		return nil
	}
	return b.syncAll()
}

func (b *batch) syncDir(dir string) error {
	fd, err := b.d.fd(dir)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil // it went in this batch too; its own directory is synced for that
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", quote(dir), err)
	}
	err = unix.Fsync(fd)
	if errors.Is(err, unix.EBADF) { // a folder that may not be listed has no real descriptor
		unix.Sync()
		return nil
	}
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("sync %s: %w", quote(dir), err)
	}
	return nil
}

// syncAll syncs every file system that this batch has met.
func (b *batch) syncAll() error {
	for _, dir := range b.d.devs {
		fd, err := b.d.fd(dir)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			fd, err = b.h.rootfd, nil // the folder itself went in this batch
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", quote(dir), err)
		}
		err = unix.Syncfs(fd)
		if errors.Is(err, unix.EBADF) {
			unix.Sync()
			return nil
		}
		if err != nil {
			return fmt.Errorf("sync the file system of %s: %w", quote(dir), err)
		}
	}
	return nil
}
