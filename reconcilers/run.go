package reconcilers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// An Output is what an external command printed.
type Output struct {
	Stdout, Stderr []byte
}

// Run runs a command of the host: an argument list, no shell, standard input closed,
// in a process group of its own that is killed whole when the time is up.
func (h *Host) Run(ctx context.Context, timeout time.Duration, argv ...string) (Output, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	done := Output{out.Bytes(), errs.Bytes()}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return done, fmt.Errorf("run %s: still running after %s", argv[0], timeout)
	}
	if err != nil {
		said := strings.TrimSpace(errs.String())
		if said == "" {
			said = err.Error()
		}
		return done, fmt.Errorf("run %s: %s", argv[0], said)
	}
	return done, nil
}
