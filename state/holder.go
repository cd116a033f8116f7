package state

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Holder is another golem that holds the journal: its process, and since when.
type Holder struct {
	PID   int
	Since string // RFC 3339
}

// Snapshot is that of a journal that another golem may be writing: Busy says so.
func (r *Reader) Snapshot() (snap *Snapshot, err error) {
	for range readTries {
		before := holder(r.path)
		if snap, err = r.store.Snapshot(); err != nil {
			return nil, err
		}
		snap.Busy = holder(r.path)
		if before == nil && snap.Busy == nil || before != nil && snap.Busy != nil && *before == *snap.Busy {
			break
		}
	}
	return snap, nil
}

// holder is who holds the journal's lock; nil for nobody, and where that cannot be seen. It
// only looks: to try the lock would keep a run from taking it.
func holder(path string) *Holder {
	f, err := os.Open(path + ".lock")
	if err != nil {
		return nil
	}
	defer f.Close()
	locked := heldBy(f, path)
	if locked.PID == 0 { // whoever lets go of it empties the file
		return nil
	}
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || !flocked(locked.PID, st.Ino) {
		return nil // that golem died
	}
	return &Holder{locked.PID, locked.Since}
}

// flocked says whether a process has a flock on a file of that number. The devices that the
// kernel tells are not those of stat everywhere.
func flocked(pid int, inode uint64) bool {
	f, err := os.Open("/proc/locks")
	if err != nil {
		return false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF
		words := strings.Fields(lines.Text())
		if len(words) >= 6 && words[1] == "FLOCK" && words[4] == strconv.Itoa(pid) && strings.HasSuffix(words[5], fmt.Sprintf(":%d", inode)) {
			return true
		}
	}
	return false
}
