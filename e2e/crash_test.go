package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// manyFiles declares so many files in leaves of a hundred, some over found ones.
func manyFiles(n int, version string) string {
	var b strings.Builder
	for i := range n {
		if i%100 == 0 {
			if i > 0 {
				b.WriteString("}\n")
			}
			fmt.Fprintf(&b, "scroll \"leaf%d\" {\n", i/100)
		}
		fmt.Fprintf(&b, "file \"/srv/d%d/f%d\" {\n  content = \"%s of %d\\n\"\n}\n", i/100, i, version, i)
	}
	return b.String() + "}\n"
}

// crowded is a box with found files and a scroll that replaces them, among many others.
func crowded(t *testing.T) *box {
	b := newBox(t)
	for i := 0; i < 600; i += 7 {
		b.write(fmt.Sprintf("tree/srv/d%d/f%d", i/100, i), fmt.Sprintf("found %d", i))
	}
	b.declare(manyFiles(600, "v1"))
	return b
}

// during starts golem and calls fn when a file of the tree looks as fn waits for.
func (b *box) during(ready func() bool, fn func(*exec.Cmd), args ...string) *exec.Cmd {
	b.t.Helper()
	cmd := b.command(args...)
	out, err := os.Create(filepath.Join(b.dir, "out"))
	b.must(err)
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	b.must(cmd.Start())
	for deadline := time.Now().Add(20 * time.Second); !ready(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("golem %v came not so far:\n%s", args, b.read("out"))
		}
	}
	fn(cmd)
	_ = cmd.Wait()
	return cmd
}

// there says that a file of the crowded box is there, or with holds "" that it is gone.
func (b *box) there(i int, holds string) func() bool {
	return func() bool {
		data, err := os.ReadFile(filepath.Join(b.tree, fmt.Sprintf("srv/d%d/f%d", i/100, i)))
		return holds == "" && err != nil || err == nil && holds != "" && strings.HasPrefix(string(data), holds)
	}
}

func TestReport47ASignalDuringALargeApply(t *testing.T) {
	t.Parallel()
	for _, sig := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			b := crowded(t)
			before := b.print()
			cmd := b.during(b.there(150, "v1"), func(cmd *exec.Cmd) { b.must(cmd.Process.Signal(sig)) }, "apply", "--auto-approve", b.scroll)
			if code := cmd.ProcessState.ExitCode(); code != 130 {
				t.Fatalf("exit %d, want 130:\n%s", code, b.read("out"))
			}
			says(t, b.read("out"), "interrupted; what was in flight is rolled back")
			// Every leaf is all there, or not at all.
			for leaf := range 6 {
				first, last := b.there(leaf*100+1, "v1")(), b.there(leaf*100+99, "v1")()
				if first != last {
					t.Errorf("leaf %d is half there", leaf)
				}
			}
			if stray := strayFiles(t, b.tree); stray != nil {
				t.Errorf("left behind: %v", stray)
			}
			says(t, b.want(0, "history").stdout, "web@1")
			a := b.want(2, "plan", "--detailed-exitcode", b.scroll)
			if strings.Contains(a.stdout, "was interrupted") {
				t.Errorf("the next plan would recover what is settled:\n%.300s", a.stdout)
			}
			b.apply()
			b.want(0, "plan", "--detailed-exitcode", b.scroll)
			b.destroy()
			b.same("after destroy", before)
			b.want(0, "state", "check")
		})
	}
}

func TestReport47ASecondSignalEndsItAndTheNextRunSettles(t *testing.T) {
	t.Parallel()
	b := crowded(t)
	before := b.print()
	b.during(b.there(150, "v1"), func(cmd *exec.Cmd) {
		_ = cmd.Process.Signal(unix.SIGINT)
		time.Sleep(time.Millisecond)
		_ = cmd.Process.Signal(unix.SIGINT)
	}, "apply", "--auto-approve", b.scroll)
	b.apply()
	b.destroy()
	b.same("after destroy", before)
}

// killed is a crowded box whose golem was killed in the middle of an apply.
func killed(t *testing.T, at int) (b *box, before []string) {
	b = crowded(t)
	before = b.print()
	kill := func(cmd *exec.Cmd) { b.must(cmd.Process.Kill()) }
	b.during(b.there(at, "v1"), kill, "apply", "--auto-approve", b.scroll)
	return b, before
}

func TestReport47KilledInTheMiddleOfAnApply(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"recover", "apply", "destroy"} {
		for _, at := range []int{1, 250, 590} {
			t.Run(fmt.Sprintf("%s after file %d", next, at), func(t *testing.T) {
				b, before := killed(t, at)
				switch next {
				case "recover":
					b.want(0, "recover")
					says(t, b.want(0, "recover").stdout, "Nothing to recover")
				case "apply":
					b.apply()
					b.want(0, "plan", "--detailed-exitcode", b.scroll)
				}
				b.destroy()
				b.same("after destroy", before)
				b.want(0, "state", "check")
			})
		}
	}
}

func TestReport47KilledInTheMiddleOfADestroyAndOfARecovery(t *testing.T) {
	t.Parallel()
	b := crowded(t)
	before := b.print()
	b.apply()
	kill := func(cmd *exec.Cmd) { b.must(cmd.Process.Kill()) }
	b.during(b.there(501, ""), kill, "destroy", "--auto-approve", b.scroll)
	for i := range 4 { // a recovery that dies, too
		cmd := b.command("recover")
		b.must(cmd.Start())
		time.Sleep(time.Duration(3+4*i) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	b.destroy()
	b.same("after destroy", before)
	b.want(0, "state", "check")
}

func TestAPlanAfterACrashSaysWhatItRecoversAndWritesNothing(t *testing.T) {
	t.Parallel()
	for range 8 { // until the kill falls into a leaf
		b, _ := killed(t, 150)
		tree, journal := b.print(), b.journalPrint()
		a := b.want(0, "plan", b.scroll)
		b.same("after plan", tree)
		if diff := difference(journal, b.journalPrint()); diff != "" {
			t.Errorf("plan wrote to the journal:\n%s", diff)
		}
		if !strings.Contains(a.stdout, "was interrupted. First, what it left unfinished is taken back") {
			continue
		}
		says(t, b.want(0, "plan", "--json", b.scroll).stdout, `"recovers": { "command": "apply"`)
		if a := b.want(0, "recover"); !strings.Contains(a.stdout, "Recovered: the apply of ") {
			t.Errorf("recover says:\n%s", a.stdout)
		}
		if a := b.want(0, "plan", b.scroll); strings.Contains(a.stdout, "was interrupted") {
			t.Errorf("after recover, plan says:\n%.300s", a.stdout)
		}
		return
	}
	t.Error("no plan ever had something to recover")
}

// Nobody said yes, so not even what an interrupted run left is taken back; and a "no"
// after it was taken back tells that something was.
func TestANoAfterACrash(t *testing.T) {
	t.Parallel()
	for range 8 { // until the kill falls into a leaf
		b, _ := killed(t, 150)
		if !strings.Contains(b.want(0, "plan", b.scroll).stdout, "was interrupted") {
			continue
		}
		tree, journal := b.print(), b.journalPrint()
		a := b.want(1, "apply", b.scroll)
		says(t, a.stdout, "was interrupted. First, what it left unfinished is taken back")
		says(t, a.stderr, "--auto-approve applies without asking")
		b.same("without a terminal", tree)
		if diff := difference(journal, b.journalPrint()); diff != "" {
			t.Errorf("a run that nobody approved wrote to the journal:\n%s", diff)
		}
		cmd, term := b.atPrompt("apply", b.scroll)
		term.typeIn("no\n")
		b.ends(cmd, 3, term.shown)
		says(t, term.ended(), "Recovered: the apply of ")
		return
	}
	t.Error("no kill ever left something to take back")
}

// journalPrint is the journal's directory, byte for byte; the shared memory that
// readers of the database use between themselves is no part of what it holds.
func (b *box) journalPrint() []string {
	b.t.Helper()
	lines, err := fingerprint(filepath.Dir(b.journal))
	b.must(err)
	var kept []string
	for _, line := range lines {
		if !strings.HasPrefix(line, `"planroom.db-shm"`) {
			kept = append(kept, line)
		}
	}
	return kept
}

// breakage is one way a journal can be broken.
type breakage struct {
	name  string
	do    func(data []byte) []byte
	error string
	hint  string
}

var breakages = []breakage{
	{"text file", func([]byte) []byte { return []byte(strings.Repeat("dear diary\n", 1000)) }, "it is damaged: it is not a database", "move "},
	{"short text file", func([]byte) []byte { return []byte("dear diary\n") }, "it is damaged: it is cut short", "move "},
	{"truncated", func(d []byte) []byte { return d[:len(d)/2] }, "it is damaged", "golem state check"},
	{"zeroes", func(d []byte) []byte { return make([]byte, len(d)) }, "it is damaged", "restore a backup"},
	{"newer schema", func(d []byte) []byte { d[60], d[61], d[62], d[63] = 0, 0, 3, 231; return d }, "its schema 999 is newer than", "use the golem that wrote it"},
	{"pages of noise", func(d []byte) []byte {
		for i := 4096; i < len(d); i += 3 {
			d[i] ^= 0x5a
		}
		return d
	}, "it is damaged", "golem state check"},
}

func TestReport47ABrokenJournalIsRefusedWithAWayOut(t *testing.T) {
	t.Parallel()
	for _, how := range breakages {
		t.Run(how.name, func(t *testing.T) {
			b := newBox(t)
			b.declare(oneFile)
			b.apply()
			data, err := os.ReadFile(b.journal)
			b.must(err)
			b.must(os.WriteFile(b.journal, how.do(data), 0o600))
			tree, journal := b.print(), b.journalPrint()
			for _, args := range [][]string{
				{"plan", b.scroll},
				{"apply", "--auto-approve", b.scroll},
				{"destroy", "--auto-approve", "--name", "web"},
				{"history"},
				{"state", "list"},
				{"kept", "list"},
				{"recover"},
				{"state", "check"},
			} {
				a := b.want(1, args...)
				if args[0] == "state" && args[1] == "check" && a.stderr == "" {
					says(t, a.stdout, "damage")
					continue
				}
				says(t, a.stderr, how.error)
				says(t, a.stderr, "hint: ")
				says(t, a.stderr, how.hint)
				for _, raw := range []string{"SQL", "sqlite", "malformed", "goroutine", "(11)", "(26)"} {
					if strings.Contains(a.stderr, raw) {
						t.Errorf("golem %v tells what the database said:\n%s", args, a.stderr)
					}
				}
			}
			b.same("with a broken journal", tree)
			if diff := difference(journal, b.journalPrint()); diff != "" {
				t.Errorf("the broken journal was written to:\n%s", diff)
			}
		})
	}
}

// What power loss leaves of a write that was not yet synced is no part of the journal.
func TestReport47ATornWriteAtTheEndOfTheLog(t *testing.T) {
	t.Parallel()
	b, before := killed(t, 150)
	f, err := os.OpenFile(b.journal+"-wal", os.O_WRONLY|os.O_APPEND, 0)
	b.must(err)
	_, err = f.Write(make([]byte, 3000))
	b.must(err)
	b.must(f.Close())
	b.want(0, "plan", b.scroll)
	b.apply()
	b.destroy()
	b.same("after destroy", before)
	b.want(0, "state", "check")
}

// A log that lost its end is an older journal, never a broken one.
func TestReport47ALogThatLostItsEndIsReadable(t *testing.T) {
	t.Parallel()
	b, _ := killed(t, 150)
	wal := b.journal + "-wal"
	st, err := os.Stat(wal)
	b.must(err)
	for _, cut := range []int64{100, 5000, st.Size() / 2, st.Size() - 40, st.Size()} {
		b.must(os.Truncate(wal, max(st.Size()-cut, 0)))
		b.want(0, "plan", b.scroll)
		b.want(0, "history")
		b.want(0, "state", "list")
	}
}

func TestPlanReadsAJournalThatItCannotWrite(t *testing.T) {
	t.Parallel()
	asRoot(t, "be another user")
	b := newBox(t)
	b.declare(oneFile)
	b.apply()
	b.uid = 65534

	// A journal is for its owner alone: another user gets an error, not an empty plan.
	a := b.want(1, "plan", b.scroll)
	says(t, a.stderr, "planroom.db")

	// One that may read it gets the plan, and writes nothing.
	b.must(os.Chmod(filepath.Dir(b.journal), 0o755))
	b.must(os.Chmod(b.journal, 0o644))
	tree, journal := b.print(), b.journalPrint()
	says(t, b.want(0, "plan", "--detailed-exitcode", b.scroll).stdout, "No changes.")
	says(t, b.want(0, "history").stdout, "web@1")
	b.want(1, "apply", "--auto-approve", "--name", "other", b.scroll)
	b.same("after plan", tree)
	if diff := difference(journal, b.journalPrint()); diff != "" {
		t.Errorf("another user's plan wrote to the journal:\n%s", diff)
	}
}
