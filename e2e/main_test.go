// Package e2e runs the built binary against file trees, and checks what golem says of
// itself: its docs, its examples, its floors. It imports nothing of golem.
//
// Most of it are scripts in testdata/script; what a script cannot do (a terminal, a
// signal at the right moment, memory, system calls) is a Go test. Root runs all of it
// in a mount namespace of its own, so that no mount outlives the tests.
package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// tools is where the tests' own binaries lie; ordinary users can run them.
var tools string

func TestMain(m *testing.M) {
	if signal.Ignored(syscall.SIGHUP) { // as under nohup, which every golem would inherit
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	if holdLock() {
		return
	}
	if code, done := namespaced(); done {
		os.Exit(code)
	}
	os.Exit(run(m))
}

// inNamespace tells a run of the tests that it has a mount namespace of its own.
const inNamespace = "GOLEM_E2E_NAMESPACE"

// mountable says that the tests may mount.
func mountable() bool { return os.Getenv(inNamespace) != "" }

// namespaced runs the tests once more in a mount namespace of their own, where that
// can be had.
func namespaced() (code int, done bool) {
	if os.Geteuid() != 0 || mountable() {
		return 0, false
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, false // no namespaces here: the tests that mount say so
	}
	return max(cmd.ProcessState.ExitCode(), 0), true
}

func run(m *testing.M) int {
	var err error
	forgetKilled(os.TempDir(), func(dir string) { _ = removeLayer(dir) })
	if tools, err = os.MkdirTemp("", fmt.Sprintf("golem-e2e-%d-tools-", os.Getpid())); err == nil {
		err = os.Chmod(tools, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(tools)
	if err := besideEachOther(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// besideEachOther lets more tests run at once than there are processors, unless the
// command line says otherwise: those on booted hosts mostly wait.
func besideEachOther() error {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0)))
}

// built is golem's binary, built once for all tests that want it.
var built = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(tools, "golem")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", bin, ".")
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build golem: %w\n%s", err, out)
	}
	return bin, nil
})
