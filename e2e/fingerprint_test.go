package e2e

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// fingerprint is a tree with all that golem promises to give back, one line a path:
// type, mode, owner, xattrs (ACLs and capabilities among them), inode flags; of a file
// its size, hash, mtime and other names; of a link its text. What is below the journal's
// directory in the tree is left out.
func fingerprint(root string) ([]string, error) {
	var lines []string
	names := map[uint64]string{} // a file of several names, by its inode
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		line, err := pathLine(path, rel, names, hashOf)
		lines = append(lines, line)
		return err
	})
	return lines, err
}

func pathLine(path, rel string, names map[uint64]string, hash func(string, *unix.Stat_t) (string, error)) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return "", fmt.Errorf("lstat %s: %w", path, err)
	}
	line := fmt.Sprintf("%q %06o %d:%d %s", rel, st.Mode, st.Uid, st.Gid, xattrLine(path))
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		target, err := os.Readlink(path)
		return line + fmt.Sprintf(" → %q", target), err
	case unix.S_IFDIR:
		return line + fmt.Sprintf(" flags %x", inodeFlags(path)), nil
	case unix.S_IFREG:
		sum, err := hash(path, &st)
		if err != nil {
			return "", err
		}
		if st.Nlink > 1 {
			if names[st.Ino] == "" {
				names[st.Ino] = rel
			}
			line += fmt.Sprintf(" one with %q", names[st.Ino])
		}
		return line + fmt.Sprintf(" links %d size %d sha256 %s mtime %d.%09d flags %x",
			st.Nlink, st.Size, sum, st.Mtim.Sec, st.Mtim.Nsec, inodeFlags(path)), nil
	}
	return line + fmt.Sprintf(" device %x", st.Rdev), nil
}

func hashOf(path string, _ *unix.Stat_t) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("hash %s: %w", path, err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// difference lists what two fingerprints do not share; "" if they are equal.
func difference(want, got []string) string {
	if slices.Equal(want, got) {
		return ""
	}
	const most = 20
	var lines []string
	for _, line := range without(want, got) {
		lines = append(lines, "was "+line)
	}
	for _, line := range without(got, want) {
		lines = append(lines, "is  "+line)
	}
	if n := len(lines); n > most {
		lines = append(lines[:most], fmt.Sprintf("and %d more", n-most))
	}
	return strings.Join(lines, "\n") + "\n"
}

// without lists what is in a and not in b.
func without(a, b []string) []string {
	have := map[string]bool{}
	for _, line := range b {
		have[line] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(line string) bool { return have[line] })
}
