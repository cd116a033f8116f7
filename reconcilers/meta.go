package reconcilers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// xattrs is an object's extended attributes: of an open file, or of a link, which
// cannot be opened.
type xattrs interface {
	list(buf []byte) (int, error)
	get(name string, buf []byte) (int, error)
	set(name string, value []byte) error
	remove(name string) error
}

type fdXattrs int

func (fd fdXattrs) list(buf []byte) (int, error)          { return unix.Flistxattr(int(fd), buf) }
func (fd fdXattrs) get(n string, buf []byte) (int, error) { return unix.Fgetxattr(int(fd), n, buf) }
func (fd fdXattrs) set(n string, v []byte) error          { return unix.Fsetxattr(int(fd), n, v, 0) }
func (fd fdXattrs) remove(n string) error                 { return unix.Fremovexattr(int(fd), n) }

type linkXattrs struct{ path string }

func (l linkXattrs) list(buf []byte) (int, error)          { return unix.Llistxattr(l.path, buf) }
func (l linkXattrs) get(n string, buf []byte) (int, error) { return unix.Lgetxattr(l.path, n, buf) }
func (l linkXattrs) set(n string, v []byte) error          { return unix.Lsetxattr(l.path, n, v, 0) }
func (l linkXattrs) remove(n string) error                 { return unix.Lremovexattr(l.path, n) }

// readXattrs returns every extended attribute, POSIX ACLs and capabilities among
// them as the raw bytes the kernel keeps. A file system without any has none.
func readXattrs(x xattrs) (map[string][]byte, error) {
	names, err := readGrowing(x.list)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return map[string][]byte{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list extended attributes: %w", err)
	}
	found := map[string][]byte{}
	for _, name := range strings.Split(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if name == "" || !ours(name) {
			continue
		}
		value, err := readGrowing(func(buf []byte) (int, error) { return x.get(name, buf) })
		if errors.Is(err, unix.ENODATA) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read extended attribute %s: %w", name, err)
		}
		found[name] = value
	}
	return found, nil
}

// ours says whether an attribute is the file's and not the kernel's own bookkeeping,
// which cannot be set.
func ours(name string) bool {
	return name != "security.ima" && name != "security.evm" && !strings.HasPrefix(name, "trusted.overlay.") &&
		!strings.HasPrefix(name, "system.nfs4") && !strings.HasPrefix(name, "btrfs.")
}

func readGrowing(read func([]byte) (int, error)) ([]byte, error) {
	var small [256]byte
	n, err := read(small[:])
	if err == nil {
		return append([]byte{}, small[:n]...), nil
	}
	for size := 4096; errors.Is(err, unix.ERANGE) && size <= 1<<20; size *= 4 {
		buf := make([]byte, size)
		if n, err = read(buf); err == nil {
			return buf[:n], nil
		}
	}
	return nil, err
}

// setXattrs makes the attributes exactly these, removing what else is there.
func setXattrs(x xattrs, want map[string][]byte) error {
	have, err := readXattrs(x)
	if err != nil {
		return err
	}
	for name := range have {
		if _, ok := want[name]; !ok {
			if err := x.remove(name); err != nil && !errors.Is(err, unix.ENODATA) {
				return fmt.Errorf("remove extended attribute %s: %w", name, err)
			}
		}
	}
	names := make([]string, 0, len(want))
	for name := range want {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if value, ok := have[name]; ok && string(value) == string(want[name]) {
			continue
		}
		if err := x.set(name, want[name]); err != nil {
			return fmt.Errorf("set extended attribute %s: %w", name, err)
		}
	}
	return nil
}

// The inode flags that a user may set and that mean something on their own
// (ioctl_iflags(2)). Immutable and append-only are looked at separately.
const (
	flagImmutable = 0x10
	flagAppend    = 0x20
	flagsKept     = 0x1 | 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x4000 | 0x8000 | 0x10000 | 0x20000 | 0x800000
)

// readFlags returns the inode flags that golem gives back, with immutable and
// append-only; none where the file system has none.
func readFlags(fd int) int {
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	if err != nil {
		return 0
	}
	return flags & (flagsKept | flagImmutable | flagAppend)
}

// setFlags sets the flags that golem keeps and leaves the others.
func setFlags(fd, want int) error {
	have, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	if err != nil {
		if want == 0 {
			return nil
		}
		return fmt.Errorf("read file flags: %w", err)
	}
	next := have&^flagsKept | want&flagsKept
	if next == have {
		return nil
	}
	if err := unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, next); err != nil {
		return fmt.Errorf("set file flags: %w", err)
	}
	return nil
}

// POSIX ACL entry tags (acl(5), as in the xattr's little-endian form: a 4-byte
// version, then tag, permissions and id of 2, 2 and 4 bytes).
const (
	aclAccess   = "system.posix_acl_access"
	aclUserObj  = 0x01
	aclGroupObj = 0x04
	aclMask     = 0x10
	aclOther    = 0x20
)

// withMode returns the attributes as chmod(2) would leave them: it rewrites the
// owner, mask and other entries of an access ACL.
func withMode(attrs map[string][]byte, mode int) map[string][]byte {
	acl, ok := attrs[aclAccess]
	if !ok || len(acl) < 4 {
		return attrs
	}
	next := append([]byte{}, acl...)
	group := -1
	for at := 4; at+8 <= len(next); at += 8 {
		perm := -1
		switch binary.LittleEndian.Uint16(next[at:]) {
		case aclUserObj:
			perm = mode >> 6 & 7
		case aclGroupObj:
			if group < 0 {
				group = at
			}
		case aclMask:
			group = at
		case aclOther:
			perm = mode & 7
		}
		if perm >= 0 {
			binary.LittleEndian.PutUint16(next[at+2:], uint16(perm))
		}
	}
	if group >= 0 {
		binary.LittleEndian.PutUint16(next[group+2:], uint16(mode>>3&7))
	}
	copied := make(map[string][]byte, len(attrs))
	for name, value := range attrs {
		copied[name] = value
	}
	copied[aclAccess] = next
	return copied
}

// quote spells a name from the host so that it cannot move the cursor or pass for
// another: printable UTF-8 stays, everything else is escaped.
func quote(s string) string {
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) || r == '"' {
			return strconv.Quote(s)
		}
	}
	return s
}

// Quote is quote for the floors above.
func Quote(s string) string { return quote(s) }
