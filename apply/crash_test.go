package apply_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"golem/scrolls"
)

// Asked by these variables, the test binary is a golem that kills itself at its N-th
// change to the host or the journal.
const (
	childDir = "GOLEM_TEST_CHILD_DIR"
	childAct = "GOLEM_TEST_CHILD_ACT"
	childN   = "GOLEM_TEST_CHILD_N"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(child(dir, os.Getenv(childAct), os.Getenv(childN)))
	}
	steady()
	os.Exit(m.Run())
}

// steady lets the laws draw the same cases at every run, so that a run that fails does so
// for what was changed. A soak draws new ones, and so does -rapid.seed.
func steady() {
	flag.Parse()
	f := flag.Lookup("rapid.seed")
	if f == nil || f.Value.String() != f.DefValue || os.Getenv("GOLEM_SOAK") != "" {
		return
	}
	if err := f.Value.Set("2"); err != nil {
		panic(err)
	}
}

func child(dir, act, number string) int {
	n, err := strconv.Atoi(number)
	if err != nil {
		return 2
	}
	h := &lawHost{dir: dir, root: filepath.Join(dir, "root")}
	scroll := crashScroll
	if strings.HasPrefix(act, "units ") {
		h, scroll = unitHostAt(h).lawHost, unitStory
	} else if strings.HasPrefix(act, "commands ") {
		h, scroll = programsAt(h).lawHost, commandStory
	} else if strings.HasPrefix(act, "access ") {
		scroll = grantStory
	}
	if strings.HasPrefix(act, "pods ") {
		h, scroll = podHostAt(h).lawHost, podStory
	} else if strings.HasPrefix(act, "archive ") {
		scroll = archiveAct
	}
	calls := 0
	report, err := h.applyWith(scroll(act), "crash", func(string, string) error {
		if calls++; calls == n {
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {} // the signal is on its way
		}
		return nil
	})
	if err != nil || report.Partial() {
		fmt.Fprintf(os.Stderr, "%v %+v\n", err, failures(report))
		return 1
	}
	return 0
}

// crashTree is a host with one of everything that golem gives back.
func crashTree(root string) error {
	old := time.Unix(1_000_000_000, 123456789)
	files := map[string]string{
		"/etc/motd": "found, without a newline", "/etc/hosts": "127.0.0.1 localhost\n", "/etc/twin": "two names\n",
		"/etc/aside": "a link takes its place\n", "/etc/base": "base\r\n", "/etc/drift": "found drift\n",
	}
	err := errors.Join(os.MkdirAll(root+"/etc/conf.d", 0o755), os.MkdirAll(root+"/srv/found", 0o750))
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(root+name, []byte(text), 0o640))
	}
	err = errors.Join(err, os.Link(root+"/etc/twin", root+"/etc/twin.other"), os.Symlink("hosts", root+"/etc/alias"),
		unix.Setxattr(root+"/etc/motd", "user.law", []byte("kept"), 0))
	noDump(root + "/etc/motd")
	for name := range files {
		err = errors.Join(err, os.Chtimes(root+name, old, old))
	}
	return err
}

// noDump gives a file an inode flag, where the file system has them: the fingerprint
// tells whether it comes back.
func noDump(name string) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, 0x40)
		unix.Close(fd)
	}
}

// strangersEdit is what somebody wrote into a file that golem had written.
const strangersEdit = "a stranger's\n"

// crashScroll is what an act of the story declares: "one", then "two", then "none".
func crashScroll(act string) *scrolls.Scroll {
	file := func(path, content string, more ...string) *scrolls.Glyph {
		attrs := scrolls.Attrs{"path": path, "content": content}
		for i := 0; i+1 < len(more); i += 2 {
			attrs[more[i]] = more[i+1]
		}
		return glyph("file", attrs)
	}
	line := func(path, text string) *scrolls.Glyph {
		return glyph("line", scrolls.Attrs{"path": path, "line": text})
	}
	edit := func(kind, path string, more ...any) *scrolls.Glyph {
		attrs := scrolls.Attrs{"path": path, "validate": []any{"test", "-s", "%s"}}
		for i := 0; i+1 < len(more); i += 2 {
			attrs[more[i].(string)] = more[i+1]
		}
		return glyph(kind, attrs)
	}
	link := func(path, target string) *scrolls.Glyph {
		return glyph("link", scrolls.Attrs{"path": path, "target": target})
	}
	dir := func(path, mode string) *scrolls.Glyph {
		return glyph("directory", scrolls.Attrs{"path": path, "mode": mode})
	}
	s := &scrolls.Scroll{Name: "crash", Dir: "/crash", Policies: map[string]scrolls.Policy{}}
	leaf := func(name string, glyphs ...*scrolls.Glyph) {
		for _, g := range glyphs {
			g.Leaf = name
		}
		s.Leaves = append(s.Leaves, &scrolls.Leaf{Path: name, Policy: scrolls.BuiltinPolicy, Glyphs: glyphs})
	}
	switch act {
	case "one":
		leaf("files", file("/etc/motd", "one\n", "mode", "0600"), file("/new/made/deep", "deep\n"), file("/etc/twin", "both names\n"), file("/etc/drift", "declared\n"))
		leaf("links", link("/etc/aside", "motd"), file("/etc/alias", "a file for a link\n"), dir("/srv/own", "0711"), dir("/srv/found", "0700"), file("/srv/own/inside", "x"))
		leaf("lines", line("/etc/hosts", "10.0.0.5 db"), line("/etc/hosts", "10.0.0.6 cache"), file("/etc/base", "new base\n"), line("/etc/base", "on top"), line("/etc/made", "only line"),
			edit("line", "/etc/hosts", "match", "localhost$", "line", "127.0.0.1 here localhost"), edit("region", "/etc/hosts", "name", "web", "content", "one\n", "before", "^10"),
			edit("line", "/etc/base", "ensure", "absent", "match", "^new"))
	case "two":
		leaf("files", file("/etc/motd", "two, longer than one\n"), link("/new/made/deep", "/etc/motd"), file("/etc/twin", "again\n"), file("/etc/drift", "declared\n"))
		leaf("lines", line("/etc/hosts", "10.0.0.7 web"), line("/etc/hosts", "10.0.0.6 cache"), line("/etc/base", "on top"), line("/etc/base", "and more"),
			edit("region", "/etc/hosts", "name", "web", "content", "two\nmore\n", "before", "^10"), edit("line", "/etc/base", "ensure", "absent", "line", "base"))
	case "none":
		return nil
	}
	return s
}

// acts are the story: what is applied before, and what is interrupted.
var acts = []struct {
	name   string
	before []string
	act    string
}{
	{"FreshApply", nil, "one"},
	{"ReplaceRepairRemove", []string{"one"}, "two"},
	{"Destroy", []string{"one", "two"}, "none"},
}

// stage makes a host that stands right before an act.
func stage(t tester, before []string) (h *lawHost, found map[string]string) {
	h = newLawHost(t)
	if err := crashTree(h.root); err != nil {
		t.Fatal(err)
	}
	found = h.fingerprint(t, true)
	for _, act := range before {
		report, err := h.apply(crashScroll(act), "crash")
		if err != nil || report.Partial() {
			t.Fatalf("stage %s: %v %+v", act, err, failures(report))
		}
		if act == "one" { // a stranger's edit, for a repair
			if err := os.WriteFile(h.root+"/etc/drift", []byte(strangersEdit), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return h, found
}

// killed runs an act in a child that dies at its n-th change. It says whether it did.
func (h *lawHost) killed(t tester, act string, n int) bool {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+h.dir, childAct+"="+act, childN+"="+strconv.Itoa(n))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false
	case errors.As(err, &exit):
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
			return true
		}
	}
	t.Fatalf("%s, to be killed at %d: %v\n%s", act, n, err, out)
	return false
}

// settles fails unless the act, run again, comes to its end, and destroy then gives
// the host back.
func (h *lawHost) settles(t tester, act string, want, found map[string]string) {
	report, err := h.apply(crashScroll(act), "crash")
	if err != nil || report.Partial() {
		t.Fatalf("the next run does not settle: %v %+v", err, failures(report))
	}
	if diff := compare(want, h.fingerprint(t, false)); diff != "" {
		t.Fatalf("the next run leaves another host:\n%s", diff)
	}
	if report, err = h.apply(crashScroll(act), "crash"); err != nil || !report.Plan.Empty() {
		t.Fatalf("the run after that finds something to do: %v", err)
	}
	h.noTemps(t)
	if report, err = h.apply(nil, "crash"); err != nil || report.Partial() {
		t.Fatalf("destroy: %v %+v", err, failures(report))
	}
	if diff := compare(found, h.fingerprint(t, true)); diff != "" {
		t.Fatalf("destroy does not give the host back:\n%s", diff)
	}
	h.noTemps(t)
	h.check(t)
	if act != "one" && !slices.Contains(h.kept(t), strangersEdit) {
		t.Fatalf("%q is neither on the host nor kept", strangersEdit)
	}
}

// noTemps fails if golem left a file beside a target.
func (h *lawHost) noTemps(t tester) {
	err := filepath.WalkDir(h.root, func(p string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(filepath.Base(p), ".golem-") {
			t.Fatalf("%s was left", p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// settled is the host after an act that nothing disturbed, times aside.
func settledHost(t tester, before []string, act string) map[string]string {
	h, _ := stage(t, before)
	defer h.remove()
	report, err := h.apply(crashScroll(act), "crash")
	if err != nil || report.Partial() {
		t.Fatalf("%s: %v %+v", act, err, failures(report))
	}
	return h.fingerprint(t, false)
}

// TestCrashAtEveryCall kills golem at every single change to the host or the journal:
// the next run settles, and destroy gives back the fingerprint.
func TestCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	for _, a := range acts {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			want := settledHost(t, a.before, a.act)
			n := 1
			for ; ; n++ {
				h, found := stage(t, a.before)
				died := h.killed(t, a.act, n)
				if died {
					t.Logf("killed at %d", n)
					h.settles(t, a.act, want, found)
				}
				h.remove()
				if !died {
					break
				}
			}
			if n < 20 {
				t.Fatalf("only %d changes were counted", n)
			}
			t.Logf("%d changes, a kill at each", n-1)
		})
	}
}

// TestCrashInRecovery kills the run that recovers a killed run, too: at every one of
// its calls where the most is to be taken back, and elsewhere at a sample of them; at
// all of them under GOLEM_SOAK.
func TestCrashInRecovery(t *testing.T) {
	t.Parallel()
	first, second := 11, 7
	if os.Getenv("GOLEM_SOAK") != "" {
		first, second = 1, 1
	}
	for _, a := range acts {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			want := settledHost(t, a.before, a.act)
			most := heaviest(t, a.before, a.act)
			if again, _ := crashTwice(t, a.before, a.act, most, 1, 1, want); again < 20 {
				t.Fatalf("killed at %d, the recovery could be killed at %d of its calls only", most, again)
			}
			for n := 5; ; n += first {
				if _, died := crashTwice(t, a.before, a.act, n, 1+n%second, second, want); !died {
					return
				}
			}
		})
	}
}

// crashTwice kills an act at its n-th change, and the run after that at every step-th
// of its changes from m on. It returns at how many of them it did.
func crashTwice(t *testing.T, before []string, act string, n, m, step int, want map[string]string) (times int, died bool) {
	for ; ; m += step {
		h, found := stage(t, before)
		died = h.killed(t, act, n)
		again := died && h.killed(t, act, m)
		if died {
			h.settles(t, act, want, found)
		}
		h.remove()
		if !again {
			return times, died
		}
		times++
	}
}

// heaviest is the change of an act at which the most of the host is in flight: the
// last one before the journal is written to again.
func heaviest(t *testing.T, before []string, act string) int {
	h, _ := stage(t, before)
	defer h.remove()
	calls, length, longest, at := 0, 0, 0, 0
	_, err := h.applyWith(crashScroll(act), "crash", func(op, _ string) error {
		calls++
		if length++; strings.HasPrefix(op, "journal") {
			length = 0
		}
		if length > longest {
			longest, at = length, calls
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return at
}
