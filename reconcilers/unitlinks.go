package reconcilers

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	"golang.org/x/sys/unix"
)

// linkDirs are where enabling and masking make links: for good, and until the next boot.
var linkDirs = []string{"/etc/systemd/system", "/run/systemd/system"}

// scriptDirs are where enabling and disabling change the links of an init script of the
// same name as well, if there is one: S01ssh becomes K01ssh.
var scriptDirs = []string{"/etc/rc0.d", "/etc/rc1.d", "/etc/rc2.d", "/etc/rc3.d", "/etc/rc4.d", "/etc/rc5.d", "/etc/rc6.d", "/etc/rcS.d"}

// A unitLink is a link by which a unit is enabled, masked or has another name; or an
// empty file in such a place, which masks it too.
type unitLink struct {
	Path string `json:"path"`
	Node Node   `json:"node"`
}

// masks says whether the link is a mask.
func (l unitLink) masks() bool {
	empty := l.Node.Type == File && l.Node.Size == 0
	return slices.Contains(linkDirs, path.Dir(l.Path)) && (empty || string(l.Node.Target) == "/dev/null")
}

// script says whether the link is an init script's.
func (l unitLink) script() bool { return slices.Contains(scriptDirs, path.Dir(l.Path)) }

// scriptOf is the name of the script that a link starts or stops: "ssh" for S01ssh.
func scriptOf(base string) string {
	if len(base) < 4 || base[0] != 'S' && base[0] != 'K' {
		return ""
	}
	return base[3:]
}

// runtime says whether the link is gone after the next boot.
func (l unitLink) runtime() bool { return strings.HasPrefix(l.Path, "/run/") }

// A linkage is every such link there is, and the directories in which links stand for
// a want: found by path.
type linkage struct {
	links, dirs map[string]Node
}

// wantDirs are the suffixes of directories in which a link stands for a want.
var wantDirs = []string{".wants", ".requires", ".upholds"}

func isWantDir(dir string) bool { return slices.Contains(wantDirs, path.Ext(dir)) }

// linkage reads all links, once until something is done.
func (w *World) linkage() (*linkage, error) {
	d := w.unitDesk()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.links != nil {
		return d.links, nil
	}
	all, err := w.Host.readLinkage()
	d.links = all
	return all, err
}

func (h *Host) readLinkage() (*linkage, error) {
	all := &linkage{links: map[string]Node{}, dirs: map[string]Node{}}
	for _, dir := range linkDirs {
		if err := h.readLinks(all, dir, true); err != nil {
			return nil, err
		}
	}
	for _, dir := range scriptDirs {
		if err := h.readLinks(all, dir, false); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// agrees says whether the links are what systemd's account of a unit's file is of: there
// for what is enabled or masked, not there for what is not.
func (all *linkage) agrees(u *unit) bool {
	if u.NeedReload {
		return false
	}
	wanted, lasting, masked := false, false, false
	for at, n := range all.links {
		dir, base := split(at)
		named := base == u.ID || slices.Contains(u.Names, base)
		switch {
		case slices.Contains(linkDirs, dir) && named && (unitLink{at, n}).masks():
			masked = true
		case named && !slices.Contains(linkDirs, dir), n.Type == Link && path.Base(string(n.Target)) == u.ID && base != u.ID:
			wanted, lasting = true, lasting || !(unitLink{at, n}).runtime()
		}
	}
	switch u.File {
	case "enabled":
		return lasting && !masked
	case "disabled", "static", "indirect":
		return !wanted && !masked
	case "masked":
		return masked && u.Load == "masked"
	}
	return false
}

// readLinks adds the links in one directory of units; in a top directory those of its .wants
// and .requires directories, too.
func (h *Host) readLinks(all *linkage, dir string, top bool) error {
	names, err := h.readDir(dir)
	if err != nil {
		return err
	}
	d := h.newDirs()
	defer d.close()
	for _, name := range names {
		at := path.Join(dir, name)
		n, err := h.observe(d, at, 0)
		if err != nil {
			return err
		}
		n.Mtime = 0
		switch {
		case n.Type == Link, n.Type == File && n.Size == 0 && top && unitSuffix(name) != "":
			all.links[at] = n
		case n.Type == Dir && top && isWantDir(name):
			held, err := h.readDir(at)
			if err == nil {
				err = h.readLinks(all, at, false)
			}
			if err != nil {
				return err
			}
			n.Size = int64(len(held))
			all.dirs[at] = n
		}
	}
	return nil
}

// of lists the links that are a unit's, by path.
func (all *linkage) of(k kin) []unitLink {
	var own []unitLink
	for at, n := range all.links {
		base := path.Base(at)
		if l := (unitLink{at, n}); l.script() {
			if k.units[scriptOf(base)+".service"] {
				own = append(own, l)
			}
			continue
		}
		if k.paths[at] || k.units[base] || k.aliases[base] || n.Type == Link && k.units[path.Base(string(n.Target))] {
			own = append(own, unitLink{at, n})
		}
	}
	sort.Slice(own, func(i, j int) bool { return own[i].Path < own[j].Path })
	return own
}

// wants lists the directories in which links stand for wants.
func (all *linkage) wants() []unitLink {
	var dirs []unitLink
	for at, n := range all.dirs {
		dirs = append(dirs, unitLink{at, n})
	}
	sort.Slice(dirs, func(i, j int) bool { return dirs[i].Path < dirs[j].Path })
	return dirs
}

// differ lists what one set of links has that another has not, or has otherwise.
func differ(have, than []unitLink) []unitLink {
	was := map[string]Node{}
	for _, l := range than {
		was[l.Path] = l.Node
	}
	var more []unitLink
	for _, l := range have {
		if n, ok := was[l.Path]; !ok || differs(n, l.Node) != "" {
			more = append(more, l)
		}
	}
	return more
}

// has says whether a link stands in a list as it is.
func has(list []unitLink, l unitLink) bool { return len(differ([]unitLink{l}, list)) == 0 }

// without is a list of links without those of another at the same paths.
func without(list, less []unitLink) []unitLink {
	return slices.DeleteFunc(slices.Clone(list), func(l unitLink) bool {
		return slices.ContainsFunc(less, func(o unitLink) bool { return o.Path == l.Path })
	})
}

// takeLink removes a link if it still is what is expected there. It says whether the
// path is free then.
func (h *Host) takeLink(l unitLink) (bool, error) {
	d := h.newDirs()
	defer d.close()
	now, err := h.observe(d, l.Path, 0)
	if err != nil || now.Type == Absent {
		return err == nil, err
	}
	now.Mtime = 0
	if differs(now, l.Node) != "" {
		return false, nil // somebody made another of it
	}
	if err := h.fault("unlink", l.Path); err != nil {
		return false, err
	}
	dir, name := split(l.Path)
	fd, err := d.fd(dir)
	if err == nil {
		err = unix.Unlinkat(fd, name, 0)
	}
	if err == nil {
		err = unix.Fsync(fd)
	}
	if err != nil {
		return false, fmt.Errorf("remove link %s: %w", quote(l.Path), err)
	}
	h.unitFiles = true
	return true, nil
}

// putLink makes a link as it was, in a directory as that was, where that is known. What
// stands there otherwise stays.
func (h *Host) putLink(l unitLink, dirs []unitLink) error {
	dir, name := split(l.Path)
	up := unitLink{dir, Node{Type: Dir, Mode: defaultDirMode, UID: Any, GID: Any, Flags: Any}}
	if i := slices.IndexFunc(dirs, func(d unitLink) bool { return d.Path == dir }); i >= 0 {
		up = dirs[i]
	}
	if err := h.putDir(up); err != nil {
		return err
	}
	d := h.newDirs()
	defer d.close()
	now, err := h.observe(d, l.Path, 0)
	if err != nil {
		return err
	}
	fd, err := d.fd(dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", quote(dir), err)
	}
	if now.Type == Absent {
		if err := h.fault("symlink", l.Path); err != nil {
			return err
		}
		if l.Node.Type == Link {
			err = unix.Symlinkat(string(l.Node.Target), fd, name)
		} else {
			err = h.emptyFile(fd, name, l.Node)
		}
		if err != nil {
			return fmt.Errorf("make link %s: %w", quote(l.Path), err)
		}
		h.unitFiles = true
	} else if now.Type != l.Node.Type || now.Target != l.Node.Target {
		return nil
	}
	if now.UID != l.Node.UID || now.GID != l.Node.GID || now.Type == Absent {
		if err := unix.Fchownat(fd, name, l.Node.UID, l.Node.GID, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("give %s its owner: %w", quote(l.Path), err)
		}
	}
	if err := unix.Fsync(fd); err != nil {
		return fmt.Errorf("sync %s: %w", quote(dir), err)
	}
	return nil
}

func (h *Host) emptyFile(dirfd int, name string, n Node) error {
	fd, err := unix.Openat(dirfd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchmod(fd, uint32(n.Mode))
}

// putDir makes a directory of wants again that was there.
func (h *Host) putDir(up unitLink) error {
	if !isWantDir(up.Path) {
		return nil
	}
	b := h.newBatch(noBlobs{}, nil, 1)
	defer b.close()
	return b.makeParent(parent{up.Path, up.Node})
}

// dropDir removes a directory of wants, if it is empty.
func (h *Host) dropDir(dir string) error {
	above, name := split(dir)
	d := h.newDirs()
	defer d.close()
	fd, err := d.fd(above)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", quote(above), err)
	}
	if err := h.fault("rmdir", dir); err != nil {
		return err
	}
	err = unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("remove %s: %w", quote(dir), err)
	}
	return nil
}
