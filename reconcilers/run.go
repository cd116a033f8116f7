package reconcilers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// An Output is what an external command printed.
type Output struct {
	Stdout, Stderr []byte
}

// A Command is an external command: an argument list, never a line for a shell.
type Command struct {
	Argv []string
	Env  []string // added to golem's own
	Dir  string   // where it runs; "": where golem does
	// Changes says that it may change the host: it is a step's doing, and a run that
	// recovers from golem's death has to wait for its end.
	Changes bool
	// Talk says that only a person reads what it prints: of much of it the ends are kept.
	// Of its standard error that is so in any case.
	Talk bool
	// Awaited says that such a run has to wait for it too, though it changes nothing that a
	// step is about: it looks at what a step made, or holds a lock. An interrupt ends it.
	Awaited bool
	// Secret says that its arguments must not be shown.
	Secret  bool
	Timeout time.Duration
	// As is who runs it; nil: who runs golem.
	As *Credentials
}

// Credentials are a user, as the kernel knows one.
type Credentials struct {
	UID, GID int
	Groups   []int // beside GID
}

// Run runs a command that only reads.
func (h *Host) Run(ctx context.Context, timeout time.Duration, argv ...string) (Output, error) {
	return h.Do(ctx, Command{Argv: argv, Timeout: timeout})
}

// Do runs a command of the host: no shell, standard input closed, in a process group of
// its own that is killed whole when the time is up. What it printed comes back with an
// error too; a command that ran and failed is a *CommandError.
func (h *Host) Do(ctx context.Context, c Command) (Output, error) {
	if c.Changes {
		if err := h.fault("exec", strings.Join(c.Argv, " ")); err != nil {
			return Output{}, err
		}
	}
	if h.Watch != nil {
		defer h.Watch(c)()
	}
	run := h.Exec
	if run == nil {
		run = h.exec
	}
	out, err := run(ctx, c)
	if c.Changes && err == nil {
		err = h.fault("ran", strings.Join(c.Argv, " "))
	}
	return out, err
}

// exec runs a command to its end, or until its time is over, and kills it then with all that it
// started. A changing one is not ended by an interrupt.
func (h *Host) exec(ctx context.Context, c Command) (Output, error) {
	if c.Changes {
		ctx = context.WithoutCancel(ctx) // an interrupt lets the step come to its end
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: c.As.kernel()}
	cmd.Cancel = func() error { return killTree(cmd.Process.Pid) }
	cmd.WaitDelay = time.Second
	cmd.Dir = c.Dir
	cmd.Env = slices.Concat(withoutVariables(cmd.Environ()), []string{"LC_ALL=C"}, c.Env)
	var out interface {
		io.Writer
		Bytes() []byte
	} = &bytes.Buffer{}
	if c.Talk {
		out = &ends{limit: mostSaid}
	}
	errs := &ends{limit: mostSaid}
	cmd.Stdout, cmd.Stderr = out, errs
	var err error
	if c.Changes || c.Awaited {
		err = h.runMarked(cmd)
	} else {
		err = cmd.Run()
	}
	done := Output{out.Bytes(), errs.Bytes()}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended well; a daemon that it started still holds its output
	}
	if err == nil {
		return done, nil
	}
	failed := &CommandError{Argv: c.Argv, Secret: c.Secret, Code: -1, Said: strings.TrimSpace(string(errs.Bytes())), Err: err}
	if cmd.ProcessState != nil {
		failed.Code = cmd.ProcessState.ExitCode()
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		failed.Err = fmt.Errorf("still running after %s", c.Timeout)
		failed.Said = ""
	} else if ctx.Err() != nil {
		return done, ctx.Err()
	}
	return done, failed
}

// kernel is what a process is started with; nil: what golem has.
func (c *Credentials) kernel() *syscall.Credential {
	if c == nil {
		return nil
	}
	k := &syscall.Credential{Uid: uint32(c.UID), Gid: uint32(c.GID)}
	for _, group := range c.Groups {
		k.Groups = append(k.Groups, uint32(group))
	}
	return k
}

// A CommandError is a command that could not be run, or that ran and failed.
type CommandError struct {
	Argv   []string
	Secret bool   // its arguments must not be shown
	Code   int    // its exit code; -1 where it has none
	Said   string // its standard error
	Err    error
}

func (e *CommandError) Error() string {
	said := strings.Join(said(e.Said), "\n")
	if said == "" {
		said = e.Err.Error()
	}
	return fmt.Sprintf("run %s: %s", e.Argv[0], said)
}

func (e *CommandError) Unwrap() error { return e.Err }

// runMarked runs a command that a later run has to wait for. While it runs, the file that marks
// it holds its process group and is locked by it, not only by golem: should golem be
// killed, AwaitCommands sees whether the command lives on.
func (h *Host) runMarked(cmd *exec.Cmd) error {
	if h.Running == "" {
		return cmd.Run()
	}
	// The command may be another user's: it can hold the mark, and not write to it.
	mark, err := os.OpenFile(h.Running, os.O_RDONLY|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("mark the command: %w", err)
	}
	defer mark.Close()
	if err := syscall.Flock(int(mark.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("mark the command: %s: %w", h.Running, err)
	}
	cmd.ExtraFiles = []*os.File{mark}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := os.WriteFile(h.Running, fmt.Appendf(nil, "%-20d\n", cmd.Process.Pid), 0o600); err != nil {
		return errors.Join(fmt.Errorf("mark the command: %w", err), cmd.Cancel(), cmd.Wait())
	}
	err = cmd.Wait()
	// A daemon may have inherited the lock from the command: it is given up here for
	// all that hold it.
	return errors.Join(err, syscall.Flock(int(mark.Fd()), syscall.LOCK_UN), os.Remove(h.Running))
}

// AwaitCommands waits until a marked command that outlived a killed golem has ended:
// until its lock is free, or its process group is gone.
func (h *Host) AwaitCommands(ctx context.Context, limit time.Duration) error {
	if h.Running == "" {
		return nil
	}
	mark, err := os.OpenFile(h.Running, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for commands that still run: %w", err)
	}
	defer mark.Close()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for syscall.Flock(int(mark.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		group := markedGroup(mark)
		if group > 0 && errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
			break
		}
		select {
		case <-ctx.Done():
			return &OutlivedError{Group: group}
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err := os.Remove(h.Running); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("clear the mark of a command: %w", err)
	}
	return nil
}

// markedGroup reads the process group from a mark; 0 where none is written yet.
func markedGroup(mark *os.File) int {
	var text [21]byte
	n, _ := mark.ReadAt(text[:], 0)
	var group int
	if _, err := fmt.Sscan(string(text[:n]), &group); err != nil {
		return 0
	}
	return group
}

// An OutlivedError says that a command of a dead run does not end.
type OutlivedError struct{ Group int }

func (e *OutlivedError) Error() string {
	return fmt.Sprintf("recover: a command that the interrupted run started still runs (process group %d)", e.Group)
}

// Hint says how to see what it is.
func (e *OutlivedError) Hint() string {
	return fmt.Sprintf("look at it with: ps -o pid,etime,args -g %d; run golem again when it has ended", e.Group)
}

// withoutVariables takes the scroll's variables out of an environment: they may hold secrets,
// and are neither for a package's scripts nor for the users that commands run as.
func withoutVariables(env []string) []string {
	return slices.DeleteFunc(env, func(line string) bool { return strings.HasPrefix(line, "GOLEM_VAR_") })
}
