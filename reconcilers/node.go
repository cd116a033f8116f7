package reconcilers

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Type is what stands at a path.
type Type string

// What can stand at a path. Special is a device, a socket or a pipe.
const (
	Absent  Type = "absent"
	File    Type = "file"
	Dir     Type = "directory"
	Link    Type = "link"
	Special Type = "special"
)

// noun is a type as a sentence has it.
func (t Type) noun() string {
	if t == Special {
		return "a device, a socket or a pipe"
	}
	return "a " + string(t)
}

// Any stands in a wanted Node for an attribute that is left as the system makes it.
const Any = -1

// A Node is everything about one path that golem gives back: what stands there, its
// bytes by hash, and all its metadata. As an observation every field holds; as
// something wanted, Any and nil leave an attribute alone.
type Node struct {
	Type   Type              `json:"type"`
	Mode   int               `json:"mode,omitempty"` // the twelve bits; of a file or directory
	UID    int               `json:"uid"`
	GID    int               `json:"gid"`
	Size   int64             `json:"size,omitempty"` // of a file
	Hash   string            `json:"hash,omitempty"` // of a file: SHA-256, hex
	Blob   string            `json:"blob,omitempty"` // = Hash once the journal has the bytes
	Target Bytes             `json:"target,omitempty"`
	Xattrs map[string][]byte `json:"xattrs,omitempty"` // ACLs and capabilities too; nil: any
	Flags  int               `json:"flags,omitempty"`  // inode flags, the ones that can be set
	Mtime  int64             `json:"mtime,omitempty"`  // nanoseconds; 0: any
	Links  uint64            `json:"links,omitempty"`
	Mount  bool              `json:"mount,omitempty"` // something is mounted on it
	Lent   *loan             `json:"lent,omitempty"`  // of what was found: whose it was, if golem brought that

	// data are the bytes, where they were small enough to be kept at hand.
	data []byte
	// local is a file on the machine running golem that has the bytes.
	local string
	// src opens a stream that has the bytes.
	src      func() (io.ReadCloser, error)
	dev, ino uint64
}

// Bytes is a string that may be anything, UTF-8 or not, and survives JSON.
type Bytes string

type rawBytes struct {
	B64 string `json:"b64"`
}

// MarshalJSON writes UTF-8 as a string and anything else as {"b64": …}.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(b)) {
		return json.Marshal(string(b))
	}
	return json.Marshal(rawBytes{base64.StdEncoding.EncodeToString([]byte(b))})
}

// UnmarshalJSON reads both forms.
func (b *Bytes) UnmarshalJSON(src []byte) error {
	var s string
	if json.Unmarshal(src, &s) == nil {
		*b = Bytes(s)
		return nil
	}
	var raw rawBytes
	if err := json.Unmarshal(src, &raw); err != nil {
		return fmt.Errorf("decode bytes: %w", err)
	}
	data, err := base64.StdEncoding.DecodeString(raw.B64)
	if err != nil {
		return fmt.Errorf("decode bytes: %w", err)
	}
	*b = Bytes(data)
	return nil
}

// absent is the Node of a path where nothing stands.
func absent() Node { return Node{Type: Absent} }

// fileNode is a wanted file with these bytes and everything else left open.
func fileNode(data []byte) Node {
	sum := sha256.Sum256(data)
	return Node{
		Type: File, Mode: Any, UID: Any, GID: Any, Flags: Any,
		Size: int64(len(data)), Hash: hex.EncodeToString(sum[:]), data: nonNil(data),
	}
}

func nonNil(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// whole is an observation as the journal gives it back: that it had no extended attributes
// is a fact, and not left open. What its directory's default ACL would give it is taken off.
func (n Node) whole() Node {
	if n.Xattrs == nil && (n.Type == File || n.Type == Dir) {
		n.Xattrs = map[string][]byte{}
	}
	return n
}

// differs says in a few words how two nodes differ in what want asks for, "" if they
// do not. The words are the plan's ("mode", "bytes").
func differs(have, want Node) string {
	switch {
	case have.Type != want.Type:
		return "type"
	case want.Type == Absent:
		return ""
	case want.Type == File && have.Hash != want.Hash:
		return "bytes"
	case want.Type == Link && have.Target != want.Target:
		return "target"
	}
	return metaDiffers(have, want)
}

// metaDiffers compares only metadata.
func metaDiffers(have, want Node) string {
	switch {
	case want.UID != Any && have.UID != want.UID:
		return "owner"
	case want.GID != Any && have.GID != want.GID:
		return "group"
	case want.Type != Link && want.Mode != Any && have.Mode != want.Mode:
		return "mode"
	case want.Xattrs != nil && !sameXattrs(have.Xattrs, want.Xattrs):
		return "xattrs"
	case want.Type != Link && want.Flags != Any && have.Flags != want.Flags:
		return "flags"
	case want.Type == File && want.Mtime != 0 && have.Mtime != want.Mtime:
		return "mtime"
	}
	return ""
}

func sameXattrs(a, b map[string][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for name, value := range a {
		if other, ok := b[name]; !ok || !bytes.Equal(value, other) {
			return false
		}
	}
	return true
}

// sameThing says whether two observations saw the same thing untouched: it is what
// the race checks compare, so times count.
func sameThing(a, b Node) bool {
	if a.Type != b.Type {
		return false
	}
	return a.Type == Absent || differs(a, b) == "" && differs(b, a) == ""
}

// keepBytes is how large a file's bytes are kept at hand while looking; past that
// they are streamed.
const keepBytes = 64 << 10

// observe looks at a real path. At most keep bytes of a file are kept in the Node;
// a larger one is only hashed. A missing parent, or a parent that is no directory,
// makes the path absent.
func (h *Host) observe(d *dirs, p string, keep int64) (Node, error) {
	dir, name := split(p)
	fd, err := d.fd(dir)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return absent(), nil
	}
	if err != nil {
		return Node{}, fmt.Errorf("look at %s: %w", quote(p), err)
	}
	n, err := observeAt(fd, name, keep)
	if err != nil {
		return Node{}, fmt.Errorf("look at %s: %w", quote(p), err)
	}
	return n, nil
}

func observeAt(dirfd int, name string, keep int64) (Node, error) {
	var st unix.Stat_t
	err := unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return absent(), nil
	}
	if err != nil {
		return Node{}, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return observeOpen(dirfd, name, unix.O_NONBLOCK, File, keep)
	case unix.S_IFDIR:
		return observeOpen(dirfd, name, unix.O_DIRECTORY, Dir, 0)
	case unix.S_IFLNK:
		return observeLink(dirfd, name, &st)
	}
	n := statNode(&st)
	n.Type = Special
	return n, nil
}

// statNode takes from a stat what every type has.
func statNode(st *unix.Stat_t) Node {
	return Node{
		Mode: int(st.Mode & 0o7777), UID: int(st.Uid), GID: int(st.Gid),
		Mtime: st.Mtim.Nano(), Links: uint64(st.Nlink),
		dev: uint64(st.Dev), ino: st.Ino,
	}
}

func observeLink(dirfd int, name string, st *unix.Stat_t) (Node, error) {
	n := statNode(st)
	n.Type, n.Mode = Link, 0
	target, err := readlinkat(dirfd, name)
	if err != nil {
		return Node{}, fmt.Errorf("read link: %w", err)
	}
	n.Target = Bytes(target)
	n.Xattrs, err = readXattrs(linkXattrs{procName(dirfd, name)})
	return n, err
}

// observeOpen looks at a file or directory through a descriptor, so that everything
// in the Node is of one and the same thing.
func observeOpen(dirfd int, name string, flag int, typ Type, keep int64) (Node, error) {
	flag |= unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(dirfd, name, flag|unix.O_NOATIME, 0)
	if errors.Is(err, unix.EPERM) {
		fd, err = unix.Openat(dirfd, name, flag, 0)
	}
	if typ == Dir && errors.Is(err, unix.EACCES) {
		return observeClosedDir(dirfd, name)
	}
	if err != nil {
		return Node{}, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Node{}, err
	}
	n := statNode(&st)
	n.Type = typ
	if typ == File {
		n.Size = st.Size
		if err := readContent(f, &n, keep); err != nil {
			return Node{}, err
		}
	}
	n.Mount = isMount(dirfd, name)
	n.Flags = readFlags(fd)
	n.Xattrs, err = readXattrs(fdXattrs(fd))
	return n, err
}

// observeClosedDir looks at a directory that may not be listed.
func observeClosedDir(dirfd int, name string) (Node, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return Node{}, err
	}
	n := statNode(&st)
	n.Type = Dir
	n.Flags = Any
	var err error
	n.Xattrs, err = readXattrs(linkXattrs{procName(dirfd, name)})
	return n, err
}

// readContent hashes a file and keeps its bytes if they are few. The size in the
// node is what was read, so that size and hash are of the same bytes.
func readContent(f *os.File, n *Node, keep int64) error {
	if n.Size <= keep {
		data := make([]byte, n.Size, n.Size+1)
		got, err := io.ReadFull(f, data)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return err
		}
		data = data[:got]
		sum := sha256.Sum256(data)
		n.data, n.Size, n.Hash = nonNil(data), int64(got), hex.EncodeToString(sum[:])
		return nil
	}
	hash := sha256.New()
	size, err := io.Copy(hash, f)
	if err != nil {
		return err
	}
	n.Size, n.Hash = size, hex.EncodeToString(hash.Sum(nil))
	return nil
}

// isMount says whether name is the root of a mount in its directory.
func isMount(dirfd int, name string) bool {
	var st unix.Statx_t
	err := unix.Statx(dirfd, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, 0, &st)
	return err == nil && st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 &&
		st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

func readlinkat(dirfd int, name string) (string, error) {
	for size := 256; ; size *= 2 {
		buf := make([]byte, size)
		n, err := unix.Readlinkat(dirfd, name, buf)
		if err != nil {
			return "", err
		}
		if n < size {
			return string(buf[:n]), nil
		}
	}
}

// procName spells a name in an open directory as a path, for the calls that have no
// *at form.
func procName(dirfd int, name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dirfd, name)
}
