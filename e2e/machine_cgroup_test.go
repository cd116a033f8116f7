package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroups makes a control group below this process's own in each hierarchy that a
// systemd lives in, and returns their directories.
func cgroups(name string) ([]string, error) {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	var made []string
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		var mount string
		switch {
		case fields[1] == "name=systemd":
			mount = "/sys/fs/cgroup/systemd"
		case fields[0] != "0":
			continue
		case isCgroup2("/sys/fs/cgroup"):
			mount = "/sys/fs/cgroup"
		case isCgroup2("/sys/fs/cgroup/unified"):
			mount = "/sys/fs/cgroup/unified"
		default:
			continue
		}
		parent := filepath.Join(mount, fields[2])
		forgetKilled(parent, removeCgroup)
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		made = append(made, dir)
	}
	if len(made) == 0 {
		return nil, errors.New("no control groups are mounted below /sys/fs/cgroup")
	}
	return made, nil
}

func isCgroup2(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
}

// forgetKilled removes from a directory what runs of the tests left there that were killed.
func forgetKilled(dir string, remove func(string)) {
	found, _ := filepath.Glob(filepath.Join(dir, "golem-e2e-*-*"))
	for _, name := range found {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(name), "golem-e2e-"), "-")
		// One that nobody waited for yet has a pid, but no program any more.
		if _, err := os.Readlink("/proc/" + pid + "/exe"); errors.Is(err, os.ErrNotExist) {
			remove(name)
		}
	}
}

// removeCgroup removes a control group and those below it, as far as they are empty.
func removeCgroup(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.IsDir() {
			removeCgroup(filepath.Join(dir, entry.Name()))
		}
	}
	_ = os.Remove(dir)
}
