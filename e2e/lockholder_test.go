package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lockFile names, in a run of the test binary, the lock it holds and does nothing else.
const lockFile = "GOLEM_E2E_HOLD_LOCK"

// holdLock is another golem as far as the journal's lock can tell: it writes its pid
// into the lock, says so, and holds it until its stdin ends.
func holdLock() bool {
	name := os.Getenv(lockFile)
	if name == "" {
		return false
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err == nil {
		_, err = fmt.Fprintf(f, "%d %s\n", os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("held")
	_, _ = os.Stdin.Read(make([]byte, 1))
	return true
}

// lockHolder starts another process that holds a journal's lock. It returns its pid and
// what makes it let go.
func lockHolder(t *testing.T, journal string) (pid int, release func()) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), lockFile+"="+journal+".lock")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 8)); err != nil {
		t.Fatalf("lock holder: %v", err)
	}
	done := false
	release = func() {
		if !done {
			done = true
			stdin.Close()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(release)
	return cmd.Process.Pid, release
}
