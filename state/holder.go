package state

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Holder is another golem that holds the journal: its process, and since when.
type Holder struct {
	PID   int    `json:"pid"`
	Since string `json:"since"` // RFC 3339
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
	if !slices.Contains(Lockers(f), locked.PID) {
		return nil // that golem died
	}
	return &Holder{locked.PID, locked.Since}
}

// Lockers are the processes that hold a lock of any sort on an open file, as the kernel lists
// them; none where that cannot be seen. The devices that it tells are not those of stat
// everywhere, so that files are told apart by their numbers alone.
func Lockers(f *os.File) []int {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return nil
	}
	list, err := os.Open("/proc/locks")
	if err != nil {
		return nil
	}
	defer list.Close()
	var all []int
	for lines := bufio.NewScanner(list); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF; one that waits has "->" after its number
		words := strings.Fields(lines.Text())
		if len(words) < 6 || words[1] == "->" || !strings.HasSuffix(words[5], fmt.Sprintf(":%d", st.Ino)) {
			continue
		}
		if pid, err := strconv.Atoi(words[4]); err == nil && pid > 0 {
			all = append(all, pid)
		}
	}
	return all
}
