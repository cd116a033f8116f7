package e2e

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// A screen is what a terminal shows of what was written to it: whole lines, since nothing
// golem draws anew may be as wide as the terminal. A terminal that folds or cuts the
// lines above when it is made narrower shows the same ones.
type screen struct {
	lines []string
	at    int // the line of the cursor
	col   int // runes
}

// control is every sequence that golem may use: colours, and what moves no cursor out of
// what it drew itself.
var control = regexp.MustCompile("^\x1b\\[([0-9;]*)([mJA])")

// write takes up what a program wrote.
func (s *screen) write(t *testing.T, text string) {
	t.Helper()
	for text != "" {
		if m := control.FindStringSubmatch(text); m != nil {
			text = text[len(m[0]):]
			switch m[2] {
			case "J":
				s.lines = append(s.lines[:s.at], string([]rune(s.line())[:s.col]))
			case "A":
				n, err := strconv.Atoi(m[1])
				if err != nil || n > s.at {
					t.Fatalf("it moves up %q lines, from line %d", m[1], s.at)
				}
				s.at -= n
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		switch r {
		case '\r':
			s.col = 0
		case '\n':
			s.at, s.col = s.at+1, 0
		case 0x1b:
			t.Fatalf("a sequence that no terminal was promised: %.20q", "\x1b"+text)
		default:
			line := []rune(s.line())
			line = append(line, []rune(strings.Repeat(" ", max(0, s.col-len(line))))...)
			s.lines[s.at] = string(slices.Concat(line[:s.col], []rune{r}, line[min(s.col+1, len(line)):]))
			s.col++
		}
	}
}

// line is the cursor's.
func (s *screen) line() string {
	for len(s.lines) <= s.at {
		s.lines = append(s.lines, "")
	}
	return s.lines[s.at]
}

// screen is what the terminal shows.
func (x *terminal) screen() *screen {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	s := &screen{}
	s.write(x.t, strings.ReplaceAll(x.text.String(), "\r\r\n", "\r\n"))
	return s
}

func (s *screen) String() string { return strings.TrimRight(strings.Join(s.lines, "\n"), "\n") }

// awaitLine waits until a line of the screen matches.
func (x *terminal) awaitLine(pattern string) {
	x.t.Helper()
	want := regexp.MustCompile("(?m)" + pattern)
	for deadline := time.Now().Add(20 * time.Second); !want.MatchString(x.screen().String()); {
		if time.Now().After(deadline) {
			x.t.Fatalf("the terminal never shows a line like %q:\n%s", pattern, x.screen())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// waiting is a scroll whose second leaf waits for a file that says go.
func waiting(flag string) string {
	return fmt.Sprintf(`
scroll "idle" {
  file "/etc/idle" { content = "idle\n" }
}
scroll "first" {
  file "/etc/a" { content = "a\n" }
  file "/etc/b" { content = "b\n" }
}
scroll "a-leaf-with-a-rather-long-name" {
  policy {
    retry {
      max_attempts = 2
      base_delay   = "10ms"
    }
  }
  file "/etc/c" { content = "c\n" }
  check "command" {
    run     = ["sh", "-c", "until [ -e %[1]s ]; do sleep 0.02; done; rm %[1]s; exit 1"]
    timeout = "30s"
  }
}
`, flag)
}

// live starts an apply at a terminal.
func (b *box) live(columns uint16, env []string, args ...string) (ends func(code int) string, x *terminal, release func()) {
	b.t.Helper()
	b.declare("scroll \"idle\" {\n  file \"/etc/idle\" { content = \"idle\\n\" }\n}\n")
	b.apply()
	b.declare(waiting(b.dir + "/go"))
	b.env = env
	x = newTerminal(b.t, columns)
	cmd := b.command(append([]string{"apply", "--auto-approve"}, append(args, b.scroll)...)...)
	cmd.Stdout, cmd.Stderr = x.tty, x.tty
	b.must(cmd.Start())
	b.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	ends = func(code int) string {
		b.t.Helper()
		b.ends(cmd, code, x.shown)
		x.ended()
		return x.screen().String()
	}
	return ends, x, func() { b.t.Helper(); b.write("go", ""); b.gone("go") }
}

// gone waits until a file is taken.
func (b *box) gone(name string) {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Lstat(b.dir + "/" + name); err != nil {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("nobody takes %s", name)
		}
	}
}

const liveReport = `settled      first: 2 applied
rolled back  a-leaf-with-a-rather-long-name: it failed, and is as it was before
             this run (2 attempts)
             check command: run sh: exit status 1
             rolled back  file:/etc/c
unchanged    1 leaf with nothing to do: 1 glyph is as the scroll says
Partly applied as revision 2: 2 installed, 0 replaced, 0 repaired, 0 removed.`

func TestALeafsLineIsDrawnInPlaceAndGoes(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	ends, x, release := b.live(80, nil)
	x.awaitLine(`^✓ first +2 of 2$`)
	x.awaitLine(`^▸ a-leaf-with-a-rather-lo…  1 of 1  1s  sh -c "until \[ -e `)
	x.awaitLine(`  2s  sh -c "until`) // it counts
	if n := strings.Count(x.screen().String(), "a-leaf-with-a-rather-lo…"); n != 1 {
		t.Errorf("the leaf has %d lines:\n%s", n, x.screen())
	}
	// A narrower terminal gets narrower lines, and nothing is left of the wide ones.
	b.must(unix.IoctlSetWinsize(int(x.ctrl.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 30}))
	x.awaitLine(`^▸ a-leaf-wi…  1 of 1  \d+s`)
	b.must(unix.IoctlSetWinsize(int(x.ctrl.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	release()
	x.awaitLine(`1 of 1  .*attempt 2: sh -c "until`)
	release()
	shown := ends(3)
	if !strings.HasSuffix(shown, "\n\n"+liveReport) || strings.ContainsAny(shown, "✓✗▸") {
		t.Errorf("at the end it shows\n%s\nand not only\n%s", shown, liveReport)
	}
	if !strings.ContainsRune(x.shown(), '\x1b') {
		t.Error("it has no colours")
	}
}

func TestLiveLinesWithoutColours(t *testing.T) {
	t.Parallel()
	for _, how := range []struct{ env, args []string }{{env: []string{"NO_COLOR=1"}}, {args: []string{"--no-color"}}} {
		b := newBox(t)
		ends, x, release := b.live(120, how.env, how.args...)
		x.awaitLine(`^▸ a-leaf-with-a-rather-lo…  1 of 1`)
		release()
		release()
		ends(3)
		if strings.Contains(escapes.FindString(x.shown()), "m") {
			t.Errorf("%v has colours:\n%q", how, x.shown())
		}
	}
}

// Where there is nothing to draw on, or nobody to see it, there are lines or nothing.
func TestADumbTerminalGetsLinesAndAQuietRunNone(t *testing.T) {
	t.Parallel()
	for _, how := range []struct {
		env, args []string
		lines     bool
	}{{env: []string{"TERM=dumb"}, lines: true}, {args: []string{"--quiet"}}} {
		b := newBox(t)
		ends, x, release := b.live(80, how.env, how.args...)
		if how.lines {
			x.await("a-leaf-with-a-rather-long-name: installed file:/etc/c\n")
		}
		release()
		release()
		shown := ends(3)
		if strings.Contains(shown, "first: installed file:/etc/a") != how.lines || strings.Contains(escapes.ReplaceAllString(x.shown(), ""), "\x1b") {
			t.Errorf("%v: it shows\n%q", how, x.shown())
		}
		if !strings.HasSuffix(shown, liveReport) {
			t.Errorf("%v: at the end it shows\n%s", how, shown)
		}
	}
}

// An interrupt leaves a clean screen, too.
func TestAnInterruptLeavesNoLiveLine(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.declare(`
scroll "waits" {
  file "/etc/c" { content = "c\n" }
  check "unit" { unit = "none" }
  check "command" {
    run     = ["sleep", "30"]
    timeout = "30s"
  }
}
`)
	x := newTerminal(t, 80)
	cmd := b.command("apply", "--auto-approve", b.scroll)
	cmd.Stdout, cmd.Stderr = x.tty, x.tty
	b.must(cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	x.awaitLine(`^▸ waits  1 of 1 .*sleep 30`)
	b.must(cmd.Process.Signal(unix.SIGINT))
	b.ends(cmd, 130, x.shown)
	x.ended()
	shown := x.screen().String()
	if strings.ContainsAny(shown, "✓✗▸") {
		t.Errorf("at the end it shows\n%s", shown)
	}
	says(t, shown, "rolled back waits: it was interrupted, and is as it was before this run")
}
