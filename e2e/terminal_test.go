package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A terminal is a pseudo-terminal with what was written to it.
type terminal struct {
	t          *testing.T
	ctrl, tty  *os.File
	mu         sync.Mutex
	text       strings.Builder
	readerDone chan struct{}
}

// newTerminal opens a terminal of so many columns.
func newTerminal(t *testing.T, columns uint16) *terminal {
	t.Helper()
	ctrl, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(ctrl.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ctrl.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(ctrl.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, ctrl: ctrl, tty: tty, readerDone: make(chan struct{})}
	go term.collect()
	t.Cleanup(term.close)
	return term
}

func (x *terminal) collect() {
	defer close(x.readerDone)
	buf := make([]byte, 4096)
	for {
		n, err := x.ctrl.Read(buf)
		x.mu.Lock()
		x.text.Write(buf[:n])
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (x *terminal) close() {
	x.tty.Close()
	<-x.readerDone
	x.ctrl.Close()
}

// shown is what was written so far, with line ends as programs write them.
func (x *terminal) shown() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.ReplaceAll(x.text.String(), "\r\n", "\n")
}

// ended is what was written when the last program that used the terminal has ended.
func (x *terminal) ended() string {
	x.tty.Close()
	<-x.readerDone
	return x.shown()
}

// await waits until the terminal shows a text.
func (x *terminal) await(text string) {
	x.t.Helper()
	x.awaitAfter(0, text)
}

// awaitAfter is await for what it shows behind so many bytes.
func (x *terminal) awaitAfter(from int, text string) {
	x.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(x.shown()[from:], text); {
		if time.Now().After(deadline) {
			x.t.Fatalf("the terminal never showed %q:\n%s", text, x.shown()[from:])
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (x *terminal) typeIn(text string) {
	x.t.Helper()
	if _, err := x.ctrl.WriteString(text); err != nil {
		x.t.Fatal(err)
	}
}

// prompt is what golem asks.
const prompt = `Only "yes" is a yes`

// atPrompt starts golem at a terminal and waits until it asks.
func (b *box) atPrompt(args ...string) (*exec.Cmd, *terminal) {
	b.t.Helper()
	term := newTerminal(b.t, 80)
	cmd := b.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = term.tty, term.tty, term.tty
	b.must(cmd.Start())
	b.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	term.await(prompt)
	return cmd, term
}

// ends waits for golem's end and wants an exit code.
func (b *box) ends(cmd *exec.Cmd, code int, shown func() string) {
	b.t.Helper()
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != code {
		b.t.Fatalf("exit %d, want %d\n%s", got, code, shown())
	}
}

const oneFile = "file \"/etc/a.conf\" {\n  content = \"a\\n\"\n}\n"

func TestOnlyYesIsAYesAtATerminal(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"y\n", "\n", "YES\n", "Yes\n", "yes please\n", "no\n", "yesyes\n", "\x04"} {
		b := newBox(t)
		b.declare(oneFile)
		before := b.print()
		cmd, term := b.atPrompt("apply", b.scroll)
		term.typeIn(answer)
		b.ends(cmd, 1, term.shown)
		b.same(fmt.Sprintf("after %q", answer), before)
		says(t, term.ended(), "not approved; nothing was changed")
	}
	b := newBox(t)
	b.declare(oneFile)
	cmd, term := b.atPrompt("apply", b.scroll)
	term.typeIn("yes\n")
	b.ends(cmd, 0, term.shown)
	if b.read("tree/etc/a.conf") != "a\n" {
		t.Error("yes was no yes")
	}
	says(t, term.ended(), "Applied")
}

func TestInterruptAtThePromptTouchesNothing(t *testing.T) {
	t.Parallel()
	for _, sig := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		b := newBox(t)
		b.declare(oneFile)
		before := b.print()
		cmd, term := b.atPrompt("apply", b.scroll)
		b.must(cmd.Process.Signal(sig))
		done := make(chan struct{})
		go func() { _ = cmd.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("%v at the prompt did not end golem:\n%s", sig, term.shown())
		}
		if code := cmd.ProcessState.ExitCode(); code != 130 {
			t.Errorf("%v at the prompt: exit %d, want 130\n%s", sig, code, term.shown())
		}
		b.same("after "+sig.String(), before)
		b.want(2, "plan", "--detailed-exitcode", b.scroll)
	}
}

// slowScroll takes the processor for longer than loading may.
const slowScroll = `locals {
  n = range(1000)
  all = length([for x in local.n : length([for y in local.n : length([for z in local.n : x + y + z])])])
}
file "/etc/a.conf" { content = local.all }
`

// TestInterruptEndsWhatNeedsNoEnd: a scroll that takes long to load, and a console that waits
// for words, end at the first signal.
func TestInterruptEndsWhatNeedsNoEnd(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.declare(slowScroll)
	cmd := b.command("plan", b.scroll)
	b.must(cmd.Start())
	loads := func() bool { // it has worked for longer than starting takes
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		b.must(err)
		fields := strings.Fields(string(stat))
		ticks, err := strconv.Atoi(fields[13])
		b.must(err)
		if fields[2] == "Z" {
			b.t.Fatal("golem ended by itself")
		}
		return ticks >= 30
	}
	for deadline := time.Now().Add(time.Minute); !loads(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatal("golem does not load")
		}
	}
	b.must(cmd.Process.Signal(unix.SIGINT))
	b.ends(cmd, 130, func() string { return "while it loads" })

	b.declare(oneFile)
	term := newTerminal(t, 80)
	cmd = b.command("console")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = term.tty, term.tty, term.tty
	b.must(cmd.Start())
	term.await("> ")
	b.must(cmd.Process.Signal(unix.SIGINT))
	b.ends(cmd, 130, term.shown)
}

func TestReport48TheHostMovedSinceThePlanWasApproved(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.write("tree/etc/a.conf", "found\n")
	b.declare(oneFile)
	cmd, term := b.atPrompt("apply", b.scroll)
	b.write("tree/etc/a.conf", "edited while golem asked\n")
	moved := b.print()
	term.typeIn("yes\n")
	b.ends(cmd, 1, term.shown)
	says(t, term.ended(), "plan again")
	b.same("after the refusal", moved)
	b.apply()
	b.destroy()
	b.same("after destroy", moved)
}

func TestAnotherGolemHoldsTheLock(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.declare(oneFile)
	first, term := b.atPrompt("apply", b.scroll)
	before := b.print()
	for _, args := range [][]string{{"apply", "--auto-approve", b.scroll}, {"apply", "--auto-approve", "--lock-timeout", "100ms", b.scroll}} {
		a := b.want(4, args...)
		says(t, a.stderr, fmt.Sprintf("held by process %d since ", first.Process.Pid))
		says(t, a.stderr, "hint: wait for it to end, or give --lock-timeout")
		if a.stdout != "" {
			t.Errorf("it says:\n%s", a.stdout)
		}
	}
	b.same("after exit 4", before)
	b.want(2, "plan", "--detailed-exitcode", b.scroll) // plan takes no lock

	second := b.command("apply", "--auto-approve", "--lock-timeout", "10m", b.scroll)
	var said bytes.Buffer
	second.Stdout, second.Stderr = &said, &said
	b.must(second.Start())
	b.waitsForLock(second)
	b.same("while the second one waits", before)
	term.typeIn("yes\n")
	b.ends(first, 0, term.shown)
	b.ends(second, 0, said.String)
	says(t, said.String(), "No changes.")
}

// waitsForLock returns once a golem has opened the lock that another one holds.
func (b *box) waitsForLock(golem *exec.Cmd) {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", golem.Process.Pid))
		for _, file := range files {
			if name, err := os.Readlink(file); err == nil && name == b.journal+".lock" {
				return
			}
		}
	}
	b.t.Fatal("golem does not wait for the lock")
}

func TestInterruptWhileWaitingForTheLock(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.declare(oneFile)
	b.apply()
	applied := b.print()
	_, release := lockHolder(t, b.journal)
	defer release()
	for _, args := range [][]string{{"destroy", "--auto-approve"}, {"apply", "--auto-approve"}} {
		cmd := b.command(append(args, "--lock-timeout", "1h", b.scroll)...)
		b.must(cmd.Start())
		b.waitsForLock(cmd)
		b.must(cmd.Process.Signal(unix.SIGINT))
		b.ends(cmd, 130, func() string { return "" })
	}
	b.same("after waiting", applied)
}

func TestALockThatAnotherProgramHolds(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.declare(oneFile)
	b.apply()
	pid, release := lockHolder(t, b.journal)
	says(t, b.want(4, "destroy", "--auto-approve", b.scroll).stderr, fmt.Sprintf("held by process %d", pid))
	release()
	b.destroy()
}

// escapes is every control sequence that golem may use: it sets colours, nothing else.
// redraws are those with which a run draws its live lines.
var (
	escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")
	redraws = regexp.MustCompile("\x1b\\[[0-9]*[JA]")
)

func TestOnATerminalItIsColouredAndNoLineIsTooWide(t *testing.T) {
	t.Parallel()
	for _, columns := range []uint16{80, 120} {
		b := wideBox(t)
		for _, args := range [][]string{
			{"plan", b.scroll},
			{"apply", "--auto-approve", b.scroll},
			{"plan", "--destroy", b.scroll},
			{"history"},
			{"show"},
			{"state", "list"},
			{"kept", "list"},
			{"state", "show", "file:/etc/a.conf"},
			{"plan", "broken.hcl"},
			{"apply", "--auto-approve", "protected.hcl"},
			{"destroy", "--auto-approve", "protected.hcl"},
		} {
			term := newTerminal(t, columns)
			cmd := b.command(args...)
			cmd.Stdout, cmd.Stderr = term.tty, term.tty
			_ = cmd.Run()
			text := term.ended()
			clean := escapes.ReplaceAllString(text, "")
			if clean == text && args[0] == "plan" {
				t.Errorf("golem %v has no colours at a terminal:\n%s", args, text)
			}
			if args[0] == "apply" { // which draws lines anew while it runs
				clean = redraws.ReplaceAllString(clean, "")
			}
			if strings.ContainsRune(clean, '\x1b') {
				t.Errorf("golem %v writes an escape that is no colour:\n%q", args, clean)
			}
			for _, line := range strings.FieldsFunc(clean, func(r rune) bool { return r == '\n' || r == '\r' }) {
				if n := len([]rune(line)); n > int(columns) {
					t.Errorf("golem %v at %d columns has a line of %d:\n%s", args, columns, n, line)
				}
			}
		}
	}
}

// wideBox has long names, long reasons and long lines.
func wideBox(t *testing.T) *box {
	b := newBox(t)
	b.write("tree/etc/a.conf", strings.Repeat("a long line of the original ", 12)+"\n")
	b.write("tree/etc/real/target.conf", "x\n")
	b.must(os.Symlink("real/target.conf", b.tree+"/etc/link.conf"))
	b.write("protected.hcl", "name = \"other\"\nfile \"/etc/protected.conf\" {\n  content = \"x\"\n  protect = true\n}\n")
	b.write("broken.hcl", "name = \"web\"\nfile \"/etc/a.conf\" {\n  contents = \"x\"\n}\n")
	b.declare(`
scroll "base" {
  file "/etc/a.conf" {
    content = "` + strings.Repeat("a long line of the new one ", 12) + `\n"
    mode    = "0600"
  }
  file "/opt/a/rather/long/path/to/a/file/that/is/not/short/at/all/and/goes/on/and/on.conf" {
    content = "x\n"
  }
  line "x" {
    path = "/etc/link.conf"
    line = "` + strings.Repeat("a long line ", 10) + `"
  }
}
`)
	return b
}

func TestReport53ATerminalWithoutColours(t *testing.T) {
	t.Parallel()
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		b := wideBox(t)
		b.env = []string{env}
		term := newTerminal(t, 80)
		cmd := b.command("plan", b.scroll)
		cmd.Stdout, cmd.Stderr = term.tty, term.tty
		b.must(cmd.Run())
		if text := term.ended(); strings.ContainsRune(text, '\x1b') {
			t.Errorf("%s: %q", env, text)
		}
	}
}

// Each stream is asked for itself: stderr may be a terminal while stdout is a pipe.
func TestReport53StderrATerminalAndStdoutNot(t *testing.T) {
	t.Parallel()
	b := wideBox(t)
	term := newTerminal(t, 80)
	cmd := b.command("plan", b.scroll)
	cmd.Stderr = term.tty
	out, err := cmd.Output()
	b.must(err)
	if strings.ContainsRune(string(out), '\x1b') {
		t.Errorf("stdout is a pipe and has colours:\n%q", out)
	}
	cmd = b.command("plan", "broken.hcl")
	cmd.Stderr = term.tty
	if out, err = cmd.Output(); err == nil || len(out) > 0 {
		t.Errorf("a broken scroll: %v\n%s", err, out)
	}
	if text := term.ended(); !strings.ContainsRune(text, '\x1b') {
		t.Errorf("stderr is a terminal and has no colours:\n%q", text)
	}
}
