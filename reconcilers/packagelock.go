package reconcilers

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"golem/state"
)

// A DpkgLockedError says that somebody else works on the packages.
type DpkgLockedError struct {
	Path    string
	PID     int // 0: not known
	Command string
}

func (e *DpkgLockedError) Error() string {
	text := "the packages are locked (" + e.Path + ")"
	if e.PID > 0 {
		text += fmt.Sprintf(" by process %d", e.PID)
	}
	if e.Command != "" {
		text += ": " + e.Command
	}
	return text
}

// Hint says what to do; the lock file is never to be deleted.
func (*DpkgLockedError) Hint() string {
	return "wait until it is done and run golem again"
}

var dpkgLocks = []string{"/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", "/var/cache/apt/archives/lock", "/var/lib/apt/lists/lock"}

// locked says who holds a lock that apt or dpkg could not get; nil where that was not
// what they said.
func (h *Host) locked(out Output) error {
	said := string(out.Stderr)
	if !strings.Contains(said, "Could not get lock") && !strings.Contains(said, "Unable to lock") &&
		!strings.Contains(said, "Unable to acquire the dpkg frontend lock") && !strings.Contains(said, "was locked by another process") {
		return nil
	}
	for _, path := range dpkgLocks {
		if strings.Contains(said, path) || path == dpkgLocks[0] && strings.Contains(said, "frontend lock") {
			pid := h.lockHolder(path)
			return &DpkgLockedError{Path: path, PID: pid, Command: commandOf(pid)}
		}
	}
	return &DpkgLockedError{Path: dpkgLocks[1]}
}

// lockHolder finds who holds a lock on a file; 0 where that cannot be seen.
func (h *Host) lockHolder(path string) int {
	f, err := h.openAt(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	if pids := state.Lockers(f); len(pids) > 0 {
		return pids[0]
	}
	return 0
}

// commandOf is a process's command line; "" where that cannot be had.
func commandOf(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if pid == 0 || err != nil {
		return ""
	}
	return quote(strings.TrimSpace(string(bytes.ReplaceAll(data, []byte{0}, []byte{' '}))))
}
