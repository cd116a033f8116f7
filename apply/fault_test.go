package apply_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"golem/apply"
	"golem/plan"
	"golem/state"
)

// faults are what a system call may come back with.
var faults = []error{unix.ENOSPC, unix.EIO, unix.EROFS, unix.EACCES}

// TestFailureAtEveryCall lets every single change fail in turn: each leaf is new or
// exactly what it was, never short or mixed, and a failure of one is not its siblings';
// the error tells what the system said, and whether anything was touched; the next run
// settles, and destroy gives back the fingerprint.
func TestFailureAtEveryCall(t *testing.T) {
	t.Parallel()
	each := 1
	if os.Getenv("GOLEM_SOAK") != "" {
		each = len(faults)
	}
	for _, a := range acts {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			want := settledHost(t, a.before, a.act)
			alone := map[string]bool{} // leaves that failed while a sibling settled
			for n := 1; ; n++ {
				for k := range each {
					more := failAt(t, a.before, a.act, n, faults[(n+k)%len(faults)], want, alone)
					if more {
						continue
					}
					for _, leaf := range leavesOf(a.act) {
						if !alone[leaf] {
							t.Errorf("%s never failed on its own", leaf)
						}
					}
					return
				}
			}
		})
	}
}

// leavesOf are the leaves that an act enacts something in.
func leavesOf(act string) []string {
	if act == "none" { // "two" left no third leaf
		return []string{"files", "lines"}
	}
	return []string{"files", "links", "lines"}
}

// failAt runs an act whose n-th change fails. It says whether there was an n-th.
func failAt(t *testing.T, before []string, act string, n int, fault error, want map[string]string, alone map[string]bool) bool {
	h, found := stage(t, before)
	defer h.remove()
	was, wasTimed := h.fingerprint(t, false), h.fingerprint(t, true)
	calls, where := 0, ""
	report, err := h.applyWith(crashScroll(act), "crash", func(op, path string) error {
		if calls++; calls == n {
			where = op + " " + path
			return fault
		}
		return nil
	})
	if where == "" {
		return false
	}
	at := fmt.Sprintf("%v at call %d, %s", fault, n, where)
	now := h.fingerprint(t, false)
	said := fmt.Sprintf("%v %+v", err, failures(report))
	if (err != nil || report.Partial()) && !errors.Is(err, fault) && !strings.Contains(said, fault.Error()) {
		t.Fatalf("%s: golem does not tell it: %s", at, said)
	}
	var touched *apply.TouchedError
	switch {
	case errors.As(err, &touched):
		oldOrNew(t, at, was, want, now)
	case err != nil:
		if diff := compare(wasTimed, h.fingerprint(t, true)); diff != "" {
			t.Fatalf("%s: golem says that nothing was touched (%v):\n%s", at, err, diff)
		}
	default:
		h.leafByLeaf(t, at, report, was, want)
		h.exactlyBack(t, at, report, wasTimed)
		noteAlone(report, alone)
	}
	h.settles(t, act, want, found)
	return true
}

// oldOrNew fails if a path holds anything but what it held before the run or what it
// would hold after it. A directory made on the way stands between two settled leaves.
func oldOrNew(t *testing.T, at string, was, want, now map[string]string) {
	for p, text := range now {
		made := strings.HasPrefix(p, "/new") && was[p] == "" && strings.Contains(text, "mode 40755")
		if text != was[p] && text != want[p] && !made && !strings.Contains(p, "/.golem-") {
			t.Fatalf("%s: %q is neither old nor new: %s\nwas  %s\nwant %s", at, p, text, was[p], want[p])
		}
	}
	for p := range was {
		if _, stays := want[p]; stays && now[p] == "" {
			t.Fatalf("%s: %q is gone", at, p)
		}
	}
}

// leafPaths says which leaf of the story a path belongs to.
func leafPaths(p string) string {
	for leaf, prefixes := range map[string][]string{
		"files": {"/etc/motd", "/etc/twin", "/etc/drift", "/new"},
		"links": {"/etc/aside", "/etc/alias", "/srv/"},
		"lines": {"/etc/hosts", "/etc/base", "/etc/made"},
	} {
		for _, prefix := range prefixes {
			if strings.HasPrefix(p, prefix) {
				return leaf
			}
		}
	}
	return ""
}

// inWave says whether a path is one that the story's last wave takes.
func inWave(p string) bool { return p == "/srv/own" || p == "/new" || p == "/new/made" }

// outcomes is how each leaf of a run ended.
func outcomes(report *apply.Report) map[string]state.Outcome {
	ended := map[string]state.Outcome{}
	for _, leaf := range report.Leaves {
		ended[leaf.Leaf] = leaf.Outcome
	}
	return ended
}

// leafByLeaf fails unless each path is what its leaf's outcome says: new where it
// settled, and what it was where it did not.
func (h *lawHost) leafByLeaf(t *testing.T, at string, report *apply.Report, was, want map[string]string) {
	ended, now := outcomes(report), h.fingerprint(t, false)
	all := map[string]bool{}
	for _, prints := range []map[string]string{was, want, now} {
		for p := range prints {
			all[p] = true
		}
	}
	for p := range all {
		expected := was[p]
		outcome := ended[leafPaths(p)]
		if outcome == apply.Settled {
			expected = want[p]
		}
		if inWave(p) && want[p] == "" && outcome == apply.Settled && ended[plan.WaveLeaf] != apply.Settled {
			expected = was[p]
		}
		if now[p] != expected {
			t.Fatalf("%s: leaves %v, but %q\nis  %s\nwas %s\nnew %s", at, ended, p, now[p], was[p], want[p])
		}
	}
}

// exactlyBack fails unless a leaf that did not settle is what it was to the last time
// stamp.
func (h *lawHost) exactlyBack(t *testing.T, at string, report *apply.Report, was map[string]string) {
	ended := outcomes(report)
	for p, text := range h.fingerprint(t, true) {
		if leaf := leafPaths(p); leaf != "" && ended[leaf] != apply.Settled && ended[leaf] != "" && text != was[p] {
			t.Fatalf("%s: leaf %s is %s, but %q\nis  %s\nwas %s", at, leaf, ended[leaf], p, text, was[p])
		}
	}
}

// noteAlone notes the leaves that failed while a sibling settled.
func noteAlone(report *apply.Report, alone map[string]bool) {
	ended := outcomes(report)
	for leaf, outcome := range ended {
		for sibling, other := range ended {
			if leaf != sibling && outcome == apply.RolledBack && other == apply.Settled {
				alone[leaf] = true
			}
		}
	}
}

// TestFailureOfTheWayBack lets every change to the host fail from the n-th on, the way
// back included: nothing is forgotten, and the next run takes back what is left.
func TestFailureOfTheWayBack(t *testing.T) {
	t.Parallel()
	for _, a := range acts {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			want := settledHost(t, a.before, a.act)
			for n := 1; ; n++ {
				h, found := stage(t, a.before)
				calls, failed := 0, false
				report, err := h.applyWith(crashScroll(a.act), "crash", func(op, _ string) error {
					if strings.HasPrefix(op, "journal") {
						return nil
					}
					if calls++; calls < n {
						return nil
					}
					failed = true
					return faults[n%len(faults)]
				})
				if failed && err == nil && !report.Partial() {
					t.Fatalf("every change failed from %d on, and golem says that it settled", n)
				}
				if failed {
					h.settles(t, a.act, want, found)
				}
				h.remove()
				if !failed {
					return
				}
			}
		})
	}
}
