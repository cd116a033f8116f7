package e2e

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// treeRecipe is all that a machine's tree is made from. Whoever changes a step below
// raises its version, and the next run of the tests makes the tree anew.
var treeRecipe = struct {
	version  string
	suite    string
	packages []string // beside what minbase has
	archive  []string // in the tree's own archive, to install from, with all they depend on
	disabled []string // what changes a host by itself
}{
	version:  "3",
	suite:    "bookworm",
	packages: []string{"systemd", "systemd-sysv", "dbus", "apt", "ca-certificates", "procps", "iproute2", "openssh-server", "openssh-client", "nftables"},
	archive:  []string{"nginx-light", "cron", "git", "python3", "python3-yaml", "sudo", "unbound", "php-cli"},
	disabled: []string{"apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer"},
}

// archiveSource is the only source of packages that a machine knows: its own archive.
const archiveSource = "deb [trusted=yes] file:/srv/repo ./\n"

// machineTree is the Debian tree that every machine is a layer over. It is made once
// and kept in the user's cache.
var machineTree = sync.OnceValues(func() (string, error) {
	cache, err := treeCache()
	if err != nil {
		return "", err
	}
	key := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, treeRecipe, archiveSource)))[:16]
	tree, err := cachedTree(cache, key, makeTree)
	if err == nil {
		forgetOldTrees(cache, key)
	}
	return tree, err
})

// cachedTree is a tree of the cache, made if it is not there, and held as long as the
// tests run.
func cachedTree(cache, key string, make func(tree string) error) (string, error) {
	lock, err := os.OpenFile(filepath.Join(cache, key+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	tree, err := lockedTree(lock, filepath.Join(cache, key), make)
	if err != nil {
		lock.Close()
		return "", err
	}
	heldTreeLocks.Store(key, lock)
	return tree, nil
}

// lockedTree makes the tree if it is not there. The lock is shared by all who use it, as
// long as they live, so that none takes it for unused; who makes it has the lock alone, so
// that two processes at once make one.
func lockedTree(lock *os.File, tree string, make func(tree string) error) (string, error) {
	take := func(how int) error {
		if err := unix.Flock(int(lock.Fd()), how); err != nil {
			return fmt.Errorf("lock %s: %w", lock.Name(), err)
		}
		return nil
	}
	missing := func() bool {
		_, err := os.Stat(tree)
		return errors.Is(err, os.ErrNotExist)
	}
	if err := take(unix.LOCK_SH); err != nil {
		return "", err
	}
	if missing() {
		if err := take(unix.LOCK_EX); err != nil {
			return "", err
		}
		if missing() { // still, now that whoever else wanted it had a turn
			if err := make(tree); err != nil {
				return "", err
			}
		}
		if err := take(unix.LOCK_SH); err != nil {
			return "", err
		}
	}
	now := time.Now()
	return tree, os.Chtimes(lock.Name(), now, now) // when it was last used
}

var heldTreeLocks sync.Map // key to file: a lock goes with its last open file

// treeCache is the directory of the trees. Only root makes trees, and root without a
// home has the system's cache.
func treeCache() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = "/var/cache"
	}
	dir := filepath.Join(base, "golem-e2e")
	return dir, os.MkdirAll(dir, 0o755)
}

// makeTree makes the tree beside its place and moves it there when it is whole.
func makeTree(tree string) error {
	building := tree + ".building"
	if err := os.RemoveAll(building); err != nil { // of a run that was killed
		return err
	}
	var errs []error
	for _, mirror := range append([]string{""}, ownMirrors(treeRecipe.suite)...) {
		err := debootstrap(building, mirror)
		if err == nil {
			err = finishTree(building)
		}
		if err == nil {
			return os.Rename(building, tree)
		}
		errs = append(errs, err)
		if err := os.RemoveAll(building); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// debootstrap makes a bare tree; with no mirror, from the one that debootstrap knows.
func debootstrap(tree, mirror string) error {
	args := []string{"--variant=minbase", "--include=" + strings.Join(treeRecipe.packages, ","), treeRecipe.suite, tree}
	if mirror != "" {
		args = append(args, mirror)
	}
	return quiet(exec.Command("debootstrap", args...))
}

// ownMirrors is where this machine's own apt gets a suite from, if it does.
func ownMirrors(suite string) []string {
	out, err := exec.Command("apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages").Output()
	if err != nil {
		return nil // a machine without apt has none
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		if uri, ok := strings.CutPrefix(strings.TrimSpace(line), suite+" main "); ok {
			found = append(found, strings.TrimSuffix(uri, "/"))
		}
	}
	return found
}

// finishTree makes a bare tree a host that holds still and needs no network.
func finishTree(tree string) error {
	in := inTree(tree)
	// What debootstrap fetched stays: a host's archive has what the host has.
	steps := []func() error{
		func() error { return in("apt-get", "update") },
		func() error {
			return in(append([]string{"apt-get", "install", "--yes", "--download-only", "--no-install-recommends"}, treeRecipe.archive...)...)
		},
		func() error { return fillArchive(tree) },
		func() error { return in("apt-get", "clean") },
		func() error { return os.RemoveAll(filepath.Join(tree, "var/lib/apt/lists")) },
		func() error { return in("apt-get", "update") },
		func() error { return in(append([]string{"systemctl", "disable"}, treeRecipe.disabled...)...) },
		// dpkg and apt write their databases once in the form they keep them in.
		func() error { return in("apt-mark", "hold", "apt") },
		func() error { return in("apt-mark", "unhold", "apt") },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// inTree runs commands in a tree that is not booted.
func inTree(tree string) func(argv ...string) error {
	return func(argv ...string) error {
		cmd := exec.Command("chroot", append([]string{tree}, argv...)...)
		cmd.Env = append(os.Environ(), "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive")
		return quiet(cmd)
	}
}

// fillArchive moves what apt fetched into the tree's own archive, makes that the only
// source, and writes what names the host.
func fillArchive(tree string) error {
	repo := filepath.Join(tree, "srv/repo")
	if err := os.MkdirAll(repo, 0o755); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(tree, "var/cache/apt/archives/*.deb"))
	if err != nil {
		return err
	}
	for _, deb := range debs {
		// apt writes the colon of an epoch as %3a, which a Filename would have to undo.
		name := strings.ReplaceAll(filepath.Base(deb), "%3a", "~")
		if err := os.Rename(deb, filepath.Join(repo, name)); err != nil {
			return err
		}
	}
	index, err := archiveIndex(repo)
	if err != nil {
		return err
	}
	for path, text := range map[string]string{
		"srv/repo/Packages":     index,
		"etc/apt/sources.list":  archiveSource,
		"etc/hostname":          "host1\n",
		"etc/hosts":             "127.0.0.1\tlocalhost\n127.0.1.1\thost1\n::1\tlocalhost ip6-localhost ip6-loopback\n",
		"etc/resolv.conf":       "# this host has no network\n",
		"etc/fstab":             "# this host's root is mounted for it\n",
		"root/.hushlogin":       "",
		"etc/machine-id":        "6f1e6d0c5d8a4c1b9a1c0ffee0000001\n",
		"var/log/bootstrap.log": "",
	} {
		path = filepath.Join(tree, path)
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// forgetOldTrees removes trees of other recipes that nobody used for a week. What
// cannot be removed now is left for a later run.
func forgetOldTrees(cache, key string) {
	locks, _ := filepath.Glob(filepath.Join(cache, "*.lock"))
	for _, name := range locks {
		st, err := os.Stat(name)
		old := strings.TrimSuffix(name, ".lock")
		if err != nil || filepath.Base(old) == key || time.Since(st.ModTime()) < 7*24*time.Hour {
			continue
		}
		lock, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.RemoveAll(old)
			_ = os.RemoveAll(old + ".building")
		} // its lock stays: somebody may be waiting for it
		lock.Close()
	}
}

// quiet runs a command; if it fails, the error's first line has the last of what it said,
// and the next ones more.
func quiet(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	lines := strings.Split(string(bytes.TrimSpace(out)), "\n")
	return fmt.Errorf("%s: %w: %s\n%s:\n%s", filepath.Base(cmd.Args[0]), err, lines[len(lines)-1],
		strings.Join(cmd.Args, " "), strings.Join(lines[max(0, len(lines)-6):], "\n"))
}

// needMachines skips where no machine can boot, and fails where that counts.
func needMachines(t testing.TB) {
	t.Helper()
	why := noMachines()
	switch {
	case why == "":
	case os.Getenv("CI") == "true":
		t.Fatal("no host can be booted here: " + why)
	default:
		t.Skip("no host can be booted here: " + why)
	}
}

// noMachines says in one line why no machine can boot here; "" if one can.
var noMachines = sync.OnceValue(func() string {
	if os.Geteuid() != 0 {
		return "that takes root"
	}
	if !mountable() {
		return "there are no mount namespaces"
	}
	for _, tool := range []string{"debootstrap", "systemd-nspawn", "nsenter", "dpkg-deb", "chroot"} {
		if _, err := exec.LookPath(tool); err != nil {
			return tool + " is not installed"
		}
	}
	probe := fmt.Sprintf("golem-e2e-%d-0", os.Getpid())
	groups, err := cgroups(probe)
	if err != nil {
		return "no control group can be made: " + err.Error()
	}
	for _, dir := range groups {
		removeCgroup(dir)
	}
	if _, err := machineTree(); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		if os.Getenv("CI") == "true" {
			first = err.Error()
		}
		return "no Debian tree: " + first
	}
	return ""
})
