package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// samples are the system calls at which golem is killed, or which fail, by the number
// of the call. strace counts them for each thread.
var samples = []struct {
	call string
	when []int
}{
	{"renameat2", []int{1, 2, 5}},
	{"fsync", []int{1, 2, 4}},
	{"syncfs", []int{1, 2}},
	{"unlinkat", []int{1, 2, 5}},
	{"openat", []int{2, 8, 14}},
	{"pwrite64", []int{1, 5, 30}},
	{"fchmod", []int{1, 2, 5}},
	{"mkdirat", []int{1, 2}},
}

// TestKilledOrFailedBySystemCall kills and fails the built binary at sampled system
// calls of each kind: an exit of 1 means an untouched tree, the next apply settles, and
// destroy gives back the tree.
func TestKilledOrFailedBySystemCall(t *testing.T) {
	for _, act := range []string{"apply", "destroy"} {
		for _, s := range samples {
			if act == "destroy" && s.call == "mkdirat" {
				continue // it makes none
			}
			for _, how := range []string{"signal=SIGKILL", "error=ENOSPC"} {
				t.Run(act+" "+s.call+" "+how, func(t *testing.T) {
					t.Parallel()
					var hits []int
					for _, when := range s.when {
						if injected(t, act, s.call, how, when) {
							hits = append(hits, when)
						}
					}
					if len(hits) == 0 || act == "apply" && len(s.when) > 2 && len(hits) == 1 {
						t.Errorf("golem came to %s number %v only, of %v", s.call, hits, s.when)
					}
				})
			}
		}
	}
}

// injected runs golem with one call that kills it or fails. It says whether golem came
// to that call.
func injected(t *testing.T, act, call, how string, when int) (hit bool) {
	x := tracer(t, 12, 0)
	for name, text := range map[string]string{"d0/f3": "found", "d0/f4": "found too\n", "other": "a bystander"} {
		path := filepath.Join(x.root, "data", name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	found, scroll := x.print(), x.dir+"/scroll"
	if act == "destroy" {
		x.settled("apply", scroll, "--auto-approve")
	}
	before := x.print()
	inject := fmt.Sprintf("inject=%s:%s:when=%d", call, how, when)
	cmd, out := x.strace([]string{"-e", "trace=" + call, "-e", inject}, act, scroll, "--auto-approve")
	hit = x.checkEnd(inject, cmd, out, before)
	x.settled("apply", scroll, "--auto-approve")
	says(t, string(x.output("plan", scroll)), "No changes.")
	x.settled("state", "check")
	x.settled("destroy", scroll, "--auto-approve")
	if diff := difference(found, x.print()); diff != "" {
		t.Fatalf("%s: the tree is not as it was:\n%s", inject, diff)
	}
	return hit
}

// diskTrouble is how golem tells of a full disk. The database does not pass on what the
// system said about a sync or its shared memory.
var diskTrouble = regexp.MustCompile(`no space left on|journal .* its disk cannot be read or written`)

// checkEnd looks at how a run ended in which a call was to kill or to fail, and says
// whether it did.
func (x *traced) checkEnd(inject string, cmd *exec.Cmd, out string, before []string) bool {
	x.t.Helper()
	log, err := os.ReadFile(x.log)
	if err != nil {
		x.t.Fatal(err)
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		if status.Signal() != syscall.SIGKILL {
			x.t.Fatalf("%s: ended by %v\n%s", inject, status.Signal(), out)
		}
		return true
	}
	hit := strings.Contains(string(log), "(INJECTED)")
	switch code := cmd.ProcessState.ExitCode(); code {
	case 0:
	case 1, 3:
		if !hit {
			x.t.Fatalf("%s: exit %d, though nothing failed\n%s", inject, code, out)
		}
		if !diskTrouble.MatchString(out) {
			x.t.Fatalf("%s: exit %d does not tell why:\n%s", inject, code, out)
		}
		if diff := difference(before, x.print()); diff != "" && code == 1 {
			x.t.Fatalf("%s: exit 1, and the tree is not as it was:\n%s\n%s", inject, diff, out)
		}
	default:
		x.t.Fatalf("%s: exit %d\n%s", inject, code, out)
	}
	return hit
}
