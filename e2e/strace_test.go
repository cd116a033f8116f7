package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A traced is a host for runs under strace.
type traced struct {
	t                   *testing.T
	bin, dir, root, log string
}

// needStrace skips where no system call can be seen, and fails where that counts.
func needStrace(t *testing.T) {
	t.Helper()
	out, err := exec.Command("strace", "-o", os.DevNull, "true").CombinedOutput()
	if err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("strace does not run here: %v\n%s", err, out)
	}
	t.Skipf("strace does not run here, so no system call can be seen: %v", err)
}

// tracer makes one with files glyphs in its scroll, in leaves of perLeaf (0: in one).
// Without strace there is no proof, which fails where it counts.
func tracer(t *testing.T, files, perLeaf int) *traced {
	t.Helper()
	needStrace(t)
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	x := &traced{t: t, bin: bin, dir: dir, root: dir + "/root", log: dir + "/trace"}
	for _, err := range []error{
		os.MkdirAll(x.root+"/data", 0o755), os.Mkdir(dir+"/scroll", 0o755),
		os.WriteFile(dir+"/scroll/a.hcl", []byte(tracedScroll(files, perLeaf)), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func tracedScroll(files, perLeaf int) string {
	var s strings.Builder
	s.WriteString("name = \"traced\"\n")
	for i := range files {
		if perLeaf > 0 && i%perLeaf == 0 {
			fmt.Fprintf(&s, "scroll \"leaf%d\" {\n", i/perLeaf)
		}
		fmt.Fprintf(&s, "file \"/data/d%d/f%d\" {\n  content = \"file %d\\n\"\n  mode    = \"0640\"\n}\n", i/100, i, i)
		if perLeaf > 0 && (i%perLeaf == perLeaf-1 || i == files-1) {
			s.WriteString("}\n")
		}
	}
	return s.String()
}

// command is a golem's, with a program before it or none.
func (x *traced) command(before []string, args ...string) *exec.Cmd {
	line := slices.Concat(before, []string{x.bin, "--root", x.root, "--state", x.dir + "/journal/planroom.db"}, args)
	cmd := exec.Command(line[0], line[1:]...)
	// strace stops a thread at every signal, and Go's scheduler sends thousands.
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
	return cmd
}

// strace runs golem under strace and returns the ended process and what was printed.
func (x *traced) strace(options []string, args ...string) (*exec.Cmd, string) {
	x.t.Helper()
	cmd := x.command(slices.Concat([]string{"strace", "-f", "-qq", "-o", x.log}, options), args...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		x.t.Fatal(err)
	}
	return cmd, string(out)
}

// settled runs golem and wants it to come to its end.
func (x *traced) settled(args ...string) {
	x.t.Helper()
	if out, err := x.command(nil, args...).CombinedOutput(); err != nil {
		x.t.Fatalf("golem %v: %v\n%s", args, err, out)
	}
}

// trace is strace for a run that must come to its end.
func (x *traced) trace(calls string, args ...string) *exec.Cmd {
	x.t.Helper()
	cmd, out := x.strace([]string{"--seccomp-bpf", "-y", "-e", "trace=" + calls}, args...)
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		x.t.Fatalf("golem %v under strace: exit %d\n%s", args, code, out)
	}
	return cmd
}

// A tracedCall is one system call, and the lines of the log at which it began and
// ended.
type tracedCall struct {
	name, text   string
	begun, ended int
}

// calls reads the log.
func (x *traced) calls() []tracedCall {
	x.t.Helper()
	data, err := os.ReadFile(x.log)
	if err != nil {
		x.t.Fatal(err)
	}
	var all []tracedCall
	open := map[string]int{} // by thread, its call that has not ended
	for i, line := range strings.Split(string(data), "\n") {
		thread, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "<... ") {
			if at, ok := open[thread]; ok {
				all[at].text += rest
				all[at].ended = i
			}
			continue
		}
		name, _, ok := strings.Cut(rest, "(")
		if !ok || name == "???" { // a signal; a thread that ended while strace looked
			continue
		}
		open[thread] = len(all)
		all = append(all, tracedCall{name: name, text: rest, begun: i, ended: i})
	}
	return all
}

// syncCalls are the calls that wait for a disk.
const syncCalls = "fsync,fdatasync,syncfs,sync,sync_file_range,msync"

// hostCalls are the calls by which golem could change a file tree.
const hostCalls = "openat,mkdirat,mknodat,renameat,renameat2,unlinkat,symlinkat,linkat,write,pwrite64,copy_file_range," +
	"ftruncate,fallocate,fchmod,fchmodat,fchown,fchownat,fsetxattr,fremovexattr"

var writing = regexp.MustCompile(`O_CREAT|O_WRONLY|O_RDWR|O_TRUNC`)

// changesHost says whether a call changes the tree: one that acts on a descriptor of
// something in it, other than by opening it to read.
func (x *traced) changesHost(c tracedCall) bool {
	if strings.Contains(c.name, "sync") || !strings.Contains(c.text, "<"+x.root) {
		return false
	}
	return c.name != "openat" || writing.MatchString(c.text)
}

// syncsJournal says whether a call makes the journal's log durable.
func syncsJournal(c tracedCall) bool {
	return (c.name == "fsync" || c.name == "fdatasync") && strings.Contains(c.text, "planroom.db-wal>")
}

var inLeaf = regexp.MustCompile(`/data/d(\d+)[/>]|^mkdirat\(\d+<[^>]*/data>, "d(\d+)"`)

// leafOf is the leaf whose files a change is about, where leaves have a directory each,
// which they make and the last wave takes; "" for what is no leaf's.
func leafOf(c tracedCall) string {
	if m := inLeaf.FindStringSubmatch(c.text); m != nil && m[1] == "" {
		return m[2]
	} else if m != nil {
		return m[1]
	}
	return ""
}

// TestJournalIsOnDiskBeforeTheHostChanges proves from the system calls that a leaf's
// intents are synced before its first change to the host, and that the end is synced
// after the last: for one glyph, for a batch and for several leaves, forward and on the
// way back.
func TestJournalIsOnDiskBeforeTheHostChanges(t *testing.T) {
	for _, size := range []struct{ files, perLeaf int }{{1, 0}, {250, 0}, {250, 100}} {
		for _, act := range []string{"apply", "destroy"} {
			t.Run(fmt.Sprintf("%s of %d by %d", act, size.files, size.perLeaf), func(t *testing.T) {
				x := tracer(t, size.files, size.perLeaf)
				if act == "destroy" {
					x.settled("apply", x.dir+"/scroll", "--auto-approve")
				}
				x.trace(hostCalls+","+syncCalls, act, x.dir+"/scroll", "--auto-approve")
				x.inOrder(size.perLeaf > 0)
			})
		}
	}
}

// inOrder goes through the log: a sync of the journal has ended before the first change
// of each leaf began, and one came after the last.
func (x *traced) inOrder(leaves bool) {
	synced, changed, leaf := -1, -1, "none"
	seen := map[string]bool{}
	for _, c := range x.calls() {
		switch {
		case syncsJournal(c):
			synced = c.ended
		case x.changesHost(c):
			now := leafOf(c)
			if leaves && now != "" && now != leaf || changed < 0 {
				if synced < 0 || synced > c.begun || synced < changed {
					x.t.Errorf("line %d of the trace changes the host (leaf %q); the journal was last synced at %d, the host last changed at %d:\n%s",
						c.begun+1, now, synced+1, changed+1, c.text)
				}
				leaf = now
			}
			seen[now] = true
			changed = max(changed, c.ended)
		}
	}
	if changed < 0 || leaves && len(seen) < 3 {
		x.t.Fatalf("changes to the host were seen in %v only", seen)
	}
	if synced < changed {
		x.t.Errorf("the journal was last synced at line %d of the trace, the host last changed at %d", synced+1, changed+1)
	}
}

// TestSyncsAndMemoryOfTenThousandFiles holds golem to at most 6 + N/1000 syncs, and to
// bounded memory, at ten thousand files.
func TestSyncsAndMemoryOfTenThousandFiles(t *testing.T) {
	t.Parallel()
	const files = 10000
	x := tracer(t, files, 0)
	for _, run := range x.rounds(6 + files/1000) {
		if run.name != "no-op apply" { // one file shows as much
			x.bounded(run)
		}
	}
}

// TestSyncsOfOneFile tells what one file costs, and holds the looks to none.
func TestSyncsOfOneFile(t *testing.T) {
	x := tracer(t, 1, 0)
	for _, run := range x.rounds(12) { // with a journal to be made
		x.bounded(run)
	}
}

// A round is one run of golem and the syncs it may make.
type round struct {
	name    string
	args    []string
	allowed int
}

// rounds are a fresh apply, the looks after it and a destroy; the looks sync nothing.
func (x *traced) rounds(allowed int) []round {
	scroll := x.dir + "/scroll"
	return []round{
		{"fresh apply", []string{"apply", scroll, "--auto-approve"}, allowed},
		{"no-op plan", []string{"plan", scroll}, 0},
		{"no-op apply", []string{"apply", scroll, "--auto-approve"}, 0},
		{"destroy", []string{"destroy", scroll, "--auto-approve"}, allowed},
	}
}

// bounded runs a round, tells what it took, and holds it to what it may.
func (x *traced) bounded(run round) {
	const allowed = 512 << 20
	cmd := x.trace(syncCalls, run.args...)
	syncs := len(x.calls())
	resident := maxRSS(cmd) // strace waits for golem, so golem's is in it
	x.t.Logf("%s: %d syncs, %d MiB resident", run.name, syncs, resident>>20)
	if syncs > run.allowed {
		x.t.Errorf("%s: %d syncs, %d are allowed", run.name, syncs, run.allowed)
	}
	if run.allowed > 0 && syncs < 3 { // the intent, the host, the end
		x.t.Errorf("%s: only %d syncs were seen", run.name, syncs)
	}
	if resident > allowed {
		x.t.Errorf("%s: %d MiB resident, %d are allowed", run.name, resident>>20, allowed>>20)
	}
}

// output is what golem prints in a run that comes to its end.
func (x *traced) output(args ...string) []byte {
	x.t.Helper()
	out, err := x.command(nil, args...).Output()
	if err != nil {
		x.t.Fatalf("golem %v: %v", args, err)
	}
	return out
}

func (x *traced) print() []string {
	x.t.Helper()
	lines, err := fingerprint(x.root)
	if err != nil {
		x.t.Fatal(err)
	}
	return lines
}
