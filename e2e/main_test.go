// Package e2e runs the built binary against file trees, and checks what golem says of
// itself: its docs, its examples, its floors. It imports nothing of golem.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// tools is where the tests' own binaries lie; ordinary users can run them.
var tools string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if tools, err = os.MkdirTemp("", "golem-e2e-"); err == nil {
		err = os.Chmod(tools, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(tools)
	return m.Run()
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
