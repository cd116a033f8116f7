package e2e

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A call is one run of golem.
type call struct {
	uid int // 0: whoever runs the tests
	env []string
	dir string
	// stdin is what it reads; "" for nothing.
	stdin string
}

// An answer is what a run of golem said.
type answer struct {
	stdout, stderr string
	code           int
}

// golem runs the binary; its state is under HOME only if the environment says so.
func (c call) golem(t *testing.T, args ...string) answer {
	t.Helper()
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &stdout, &stderr, c.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TERM=dumb", "HOME=/nonexistent"}, c.env...)
	if c.stdin != "" {
		cmd.Stdin = strings.NewReader(c.stdin)
	}
	if c.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(c.uid), Gid: uint32(c.uid)}}
	}
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return answer{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// must runs the binary and wants an exit code.
func (c call) must(t *testing.T, code int, args ...string) answer {
	t.Helper()
	a := c.golem(t, args...)
	if a.code != code {
		t.Fatalf("golem %s: exit %d, want %d\n%s%s", strings.Join(args, " "), a.code, code, a.stdout, a.stderr)
	}
	return a
}

// settles proves the promise of a scroll on a tree: it applies, a second plan sees
// nothing to do, a second apply says nothing, and destroy gives the tree back.
func (c call) settles(t *testing.T, tree string, look func(), args ...string) {
	t.Helper()
	with := func(command ...string) []string { return append(command, args...) }
	before := treeLines(t, tree)
	if a := c.must(t, 2, with("plan", "--detailed-exitcode")...); !strings.Contains(a.stdout, " to install") {
		t.Errorf("the first plan installs nothing:\n%s", a.stdout)
	}
	sameLines(t, "after plan", before, treeLines(t, tree))
	c.must(t, 0, with("apply", "--auto-approve")...)
	c.must(t, 0, with("plan", "--detailed-exitcode")...)
	applied := treeLines(t, tree)
	if slices.Equal(before, applied) {
		t.Error("apply changed nothing")
	}
	if a := c.must(t, 0, with("apply", "--auto-approve", "--quiet")...); a.stdout+a.stderr != "" {
		t.Errorf("a second apply --quiet says:\n%s%s", a.stdout, a.stderr)
	}
	sameLines(t, "after a second apply", applied, treeLines(t, tree))
	look()
	c.must(t, 0, with("destroy", "--auto-approve")...)
	sameLines(t, "after destroy", before, treeLines(t, tree))
}

func TestHardenedServerSettlesAndComesBack(t *testing.T) {
	root := debianTree(t)
	state := filepath.Join(t.TempDir(), "planroom.db")
	call{}.settles(t, root, func() {
		hosts := readTree(t, root, "etc/hosts")
		if n := strings.Count(hosts, "10.0.0.9 logs.internal\n"); n != 1 {
			t.Errorf("the hosts file has the line %d times:\n%s", n, hosts)
		}
		if sshd := readTree(t, root, "etc/ssh/sshd_config.d/50-hardening.conf"); !strings.Contains(sshd, "Port 2200\n") || !strings.Contains(sshd, "AllowGroups wheel\n") {
			t.Errorf("the variables are not in sshd's drop-in:\n%s", sshd)
		}
		if motd := readTree(t, root, "etc/motd"); !strings.Contains(motd, "debian-tree") {
			t.Errorf("the tree's host name is not in the motd:\n%s", motd)
		}
	}, "--root", root, "--state", state, "--var", "ssh_port=2200", "--var", `ssh_groups=["wheel"]`, "../examples/hardened-server")
}

func TestDotfilesSettleAndComeBackForAnOrdinaryUser(t *testing.T) {
	c := call{}
	if os.Getuid() == 0 {
		c.uid = 65534
	}
	home := homeTree(t, c.uid)
	c.env = []string{"HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(filepath.Dir(home), "state")}
	c.dir = home
	scroll := shared(t, "../examples/dotfiles")
	c.settles(t, home, func() {
		if target, err := os.Readlink(filepath.Join(home, ".vimrc")); err != nil || target != ".config/vim/vimrc" {
			t.Errorf("~/.vimrc leads to %q (%v)", target, err)
		}
		if rc := readTree(t, home, ".bashrc"); !strings.HasSuffix(rc, "\n. ~/.config/shell/aliases\n") {
			t.Errorf("~/.bashrc does not end in golem's line:\n%s", rc)
		}
		st, err := os.Stat(filepath.Join(home, ".ssh/config"))
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("~/.ssh/config: %v %v", st, err)
		}
		if uid := int(st.Sys().(*syscall.Stat_t).Uid); c.uid != 0 && uid != c.uid {
			t.Errorf("~/.ssh/config belongs to %d", uid)
		}
	}, "--var", "home="+home, "--var", "email=me@example.org", scroll)
}

func TestImageSettlesAndComesBackWithTheImagesOwnUsers(t *testing.T) {
	user, uid := "appliance", 1717 // no user of the builder's
	if os.Getuid() != 0 {
		user, uid = "me", os.Getuid() // nobody but root gives files away
	}
	root := debianTree(t)
	addUser(t, root, user, uid)
	c := call{}
	args := []string{"--root", root, "--state", filepath.Join(t.TempDir(), "planroom.db"), "--var", "user=" + user, "../examples/image"}
	c.settles(t, root, func() {
		st, err := os.Stat(filepath.Join(root, "srv/data"))
		if err != nil {
			t.Fatal(err)
		}
		sys := st.Sys().(*syscall.Stat_t)
		if int(sys.Uid) != uid || sys.Mode&0o7777 != 0o2770 {
			t.Errorf("/srv/data: owner %d, mode %04o", sys.Uid, sys.Mode&0o7777)
		}
		if target, err := os.Readlink(filepath.Join(root, "etc/localtime")); err != nil || target != "/usr/share/zoneinfo/Europe/Berlin" {
			t.Errorf("/etc/localtime leads to %q (%v)", target, err)
		}
		if id := readTree(t, root, "etc/machine-id"); id != "" {
			t.Errorf("the image has the machine id %q", id)
		}
	}, args...)
}

func TestReleaseSettlesGoesToItsNextVersionAndComesBack(t *testing.T) {
	root := debianTree(t)
	args := []string{"--root", root, "--state", filepath.Join(t.TempDir(), "planroom.db"), "../examples/release"}
	c := call{}
	c.settles(t, root, func() {
		if page := readTree(t, root, "srv/www/handbook/index.html"); !strings.Contains(page, "Handbook 1.0") {
			t.Errorf("the page is\n%s", page)
		}
		if conf := readTree(t, root, "srv/www/handbook/conf/handbook.conf"); !strings.HasSuffix(conf, "search = on\n") {
			t.Errorf("the configuration is\n%s", conf)
		}
		first := treeLines(t, root)
		says(t, c.must(t, 0, append([]string{"apply", "--auto-approve", "--var", "version=1.1"}, args...)...).stdout,
			"files: 1 new (first-steps.html), 1 changed (index.html), 1 removed (start.html), 1 as before")
		c.must(t, 0, append([]string{"plan", "--detailed-exitcode", "--var", "version=1.1"}, args...)...)
		c.must(t, 0, append([]string{"rollback", "--auto-approve"}, args...)...)
		sameLines(t, "after the rollback", first, treeLines(t, root))
	}, args...)
}

// The image's journal lies in the image by default, and undo leaves nothing but it.
func TestTheImagesJournalLiesInTheImage(t *testing.T) {
	root := debianTree(t)
	addUser(t, root, "me", os.Getuid())
	c := call{}
	before := treeLines(t, root)
	c.must(t, 0, "apply", "--auto-approve", "--root", root, "--var", "user=me", "../examples/image")
	journal := filepath.Join(root, "var/lib/golem")
	if st, err := os.Stat(filepath.Join(journal, "planroom.db")); err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("journal in the image: %v %v", st, err)
	}
	c.must(t, 0, "destroy", "--auto-approve", "--root", root, "--var", "user=me", "../examples/image")
	if err := os.RemoveAll(journal); err != nil {
		t.Fatal(err)
	}
	sameLines(t, "after destroy", before, treeLines(t, root))
}

func TestExamplesAreFormattedAndTheirVariablesRequired(t *testing.T) {
	for _, name := range []string{"hardened-server", "dotfiles", "image", "nginx-site", "sshd", "release"} {
		call{}.must(t, 0, "fmt", "--check", "../examples/"+name)
		if _, err := os.Stat("../examples/" + name + "/README.md"); err != nil {
			t.Error(err)
		}
	}
	if a := (call{}).must(t, 1, "validate", "../examples/dotfiles"); !strings.Contains(a.stderr, "Variable is missing") {
		t.Errorf("dotfiles without a home: %s", a.stderr)
	}
	if a := (call{}).must(t, 1, "validate", "../examples/dotfiles", "--var", "home=me"); !strings.Contains(a.stderr, "from the root") {
		t.Errorf("dotfiles with a relative home: %s", a.stderr)
	}
}

// debianTree is a file tree with this machine's own files in it, and a few that every
// Debian has, under a root of the test's.
func debianTree(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	for _, name := range []string{"passwd", "group", "hosts", "fstab", "motd", "issue.net", "os-release", "ssh", "logrotate.d", "sysctl.d", "cron.d", "profile.d", "default", "apt/sources.list.d"} {
		copyTree(t, filepath.Join("/etc", name), filepath.Join(root, "etc", name))
	}
	write := func(name, text string, mode fs.FileMode) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("etc/hostname", "debian-tree", 0o644) // no final newline
	write("etc/machine-id", "0123456789abcdef0123456789abcdef\n", 0o444)
	write("etc/ssh/sshd_config", "Include /etc/ssh/sshd_config.d/*.conf\r\nUsePAM yes\r\n", 0o640)
	write("etc/hosts", "127.0.0.1\tlocalhost\n::1\tlocalhost", 0o644)
	write("etc/fstab", "\xef\xbb\xbf# <file system> <mount point>\r\n", 0o600)
	if err := os.Symlink("/usr/share/zoneinfo/Etc/UTC", filepath.Join(root, "etc/localtime")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"var/lib", "var/log", "usr/share/zoneinfo", "srv"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// copyTree copies files, links and directories with their modes and times. What this
// machine does not have, or does not let the tests read, is left out.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	st, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	switch {
	case st.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err == nil {
			err = os.Symlink(target, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	case st.IsDir():
		if err := os.MkdirAll(to, st.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(from)
		if err != nil {
			return
		}
		for _, entry := range entries {
			copyTree(t, filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name()))
		}
	case st.Mode().IsRegular():
		data, err := os.ReadFile(from)
		if errors.Is(err, fs.ErrPermission) {
			return
		}
		if err == nil {
			err = os.WriteFile(to, data, st.Mode().Perm())
		}
		if err == nil {
			err = os.Chtimes(to, st.ModTime(), st.ModTime())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// homeTree is a developer's home, in a place that an ordinary user may reach.
func homeTree(t *testing.T, uid int) string {
	t.Helper()
	top, err := os.MkdirTemp("", "golem-home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	home := filepath.Join(top, "ada")
	for name, text := range map[string]string{
		".bashrc":           "# ~/.bashrc\ncase $- in *i*) ;; *) return;; esac",
		".profile":          "umask 022\n",
		".gitconfig":        "[user]\n\tname = Ada\n",
		".ssh/known_hosts":  "example.org ssh-ed25519 AAAA\n",
		".config/other/rc":  "mine\n",
		"work/notes \n.txt": "a name with a newline\n",
	} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".config/other/rc", filepath.Join(home, ".vimrc")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(top, 0o755); err != nil {
		t.Fatal(err)
	}
	if uid == 0 {
		return home
	}
	err = filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
	if err != nil {
		t.Fatal(err)
	}
	return home
}

// shared copies a scroll to where an ordinary user can read it: the checkout may lie
// in a directory that only root enters.
func shared(t *testing.T, scroll string) string {
	t.Helper()
	top, err := os.MkdirTemp("", "golem-scroll-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	if err := os.Chmod(top, 0o755); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(top, filepath.Base(scroll))
	copyTree(t, scroll, to)
	return to
}

// addUser gives a tree a user and a group of that name.
func addUser(t *testing.T, root, name string, id int) {
	t.Helper()
	gid := id
	if os.Getuid() != 0 {
		gid = os.Getgid()
	}
	for file, line := range map[string]string{
		"etc/passwd": fmt.Sprintf("%s:x:%d:%d::/nonexistent:/usr/sbin/nologin\n", name, id, gid),
		"etc/group":  fmt.Sprintf("%s:x:%d:\n", name, gid),
	} {
		path := filepath.Join(root, file)
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, append(data, line...), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func readTree(t *testing.T, root, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// treeLines is a tree's fingerprint, one line a path: type, mode, owner, links, xattrs
// (ACLs and capabilities among them), inode flags; of a file size, hash and mtime; of a
// link its text.
func treeLines(t *testing.T, root string) []string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		line := fmt.Sprintf("%q %06o %d:%d %s", rel, st.Mode, st.Uid, st.Gid, xattrLine(path))
		switch entry.Type() {
		case 0:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" links %d size %d sha256 %x mtime %d.%09d flags %x", st.Nlink, st.Size, sha256.Sum256(data), st.Mtim.Sec, st.Mtim.Nsec, inodeFlags(path))
		case fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" → %q", target)
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func xattrLine(path string) string {
	if n, err := unix.Llistxattr(path, nil); err != nil || n == 0 {
		return "-"
	}
	buf := make([]byte, 64<<10)
	n, err := unix.Llistxattr(path, buf)
	if err != nil || n == 0 {
		return "-"
	}
	names := strings.Split(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00")
	sort.Strings(names)
	var all []string
	for _, name := range names {
		value := make([]byte, 64<<10)
		n, err := unix.Lgetxattr(path, name, value)
		all = append(all, fmt.Sprintf("%s=%x%v", name, value[:max(n, 0)], err))
	}
	return strings.Join(all, ",")
}

func inodeFlags(path string) int {
	f, err := os.Open(path)
	if err != nil {
		return -1
	}
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		return -1
	}
	// What a file system keeps for itself: that a directory is indexed, that a file lies in
	// extents or in its inode.
	const own = 0x1000 | 0x80000 | 0x10000000
	return flags &^ own
}

// sameLines compares two fingerprints, and names the paths that differ.
func sameLines(t *testing.T, when string, want, got []string) {
	t.Helper()
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%s: was %s", when, line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("%s: is  %s", when, line)
		}
	}
}
