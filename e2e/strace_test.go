package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A traced is a host for runs under strace.
type traced struct {
	t                   *testing.T
	bin, dir, root, log string
}

// tracer makes one with files glyphs in its scroll. Without strace there is no proof,
// which fails where it counts.
func tracer(t *testing.T, files int) *traced {
	if out, err := exec.Command("strace", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("strace does not run here: %v\n%s", err, out)
		}
		t.Skipf("strace does not run here, so no system call can be seen: %v", err)
	}
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	x := &traced{t: t, bin: bin, dir: dir, root: dir + "/root", log: dir + "/trace"}
	var scroll strings.Builder
	scroll.WriteString("name = \"traced\"\n")
	for i := range files {
		fmt.Fprintf(&scroll, "file \"/data/d%d/f%d\" {\n  content = \"file %d\\n\"\n  mode    = \"0640\"\n}\n", i/100, i, i)
	}
	for _, err := range []error{
		os.MkdirAll(x.root+"/data", 0o755), os.Mkdir(dir+"/scroll", 0o755),
		os.WriteFile(dir+"/scroll/a.hcl", []byte(scroll.String()), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// golem is the command line of a run.
func (x *traced) golem(args ...string) []string {
	return append([]string{x.bin, "--root", x.root, "--state", x.dir + "/journal/planroom.db"}, args...)
}

// run runs golem under strace with these options and returns the process.
func (x *traced) run(options []string, args ...string) *exec.Cmd {
	line := slices.Concat([]string{"-f", "--seccomp-bpf", "-qq", "-o", x.log}, options, x.golem(args...))
	cmd := exec.Command("strace", line...)
	if out, err := cmd.CombinedOutput(); err != nil && len(options) < 3 {
		x.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return cmd
}

func (x *traced) plain(args ...string) {
	line := x.golem(args...)
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		x.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// lines are the trace's calls, without the process number.
func (x *traced) lines() []string {
	data, err := os.ReadFile(x.log)
	if err != nil {
		x.t.Fatal(err)
	}
	var calls []string
	for _, line := range strings.Split(string(data), "\n") {
		if _, call, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			calls = append(calls, strings.TrimSpace(call))
		}
	}
	return calls
}

// hostChange matches a call that changes the host's tree.
func (x *traced) hostChange() *regexp.Regexp {
	return regexp.MustCompile(`^(openat\([^"]*"\.golem-[^"]*", [^)]*O_CREAT|mkdirat\(\d+, "(d\d+|f\d+)"|renameat2?\([^"]*"\.golem-|unlinkat\(\d+, "(\.golem-|f\d+|d\d+)|symlinkat\()`)
}

// TestJournalIsOnDiskBeforeTheHostChanges proves from the system calls that the intent
// is synced before the first change to the host, and that the end is synced after the
// last: for one glyph and for a batch, forward and on the way back.
func TestJournalIsOnDiskBeforeTheHostChanges(t *testing.T) {
	for _, files := range []int{1, 250} {
		for _, act := range []string{"apply", "destroy"} {
			t.Run(fmt.Sprintf("%s of %d", act, files), func(t *testing.T) {
				x := tracer(t, files)
				if act == "destroy" {
					x.plain("apply", x.dir+"/scroll", "--auto-approve")
				}
				x.run([]string{"-y", "-e", "trace=openat,mkdirat,renameat,renameat2,unlinkat,symlinkat,fsync,fdatasync,syncfs"}, act, x.dir+"/scroll", "--auto-approve")
				intent, first, last, end := -1, -1, -1, -1
				change := regexp.MustCompile(strings.ReplaceAll(x.hostChange().String(), `\d+, "`, `\d+<[^>]*>, "`))
				for i, call := range x.lines() {
					switch {
					case strings.HasPrefix(call, "fsync(") && strings.Contains(call, "planroom.db-wal>"), strings.HasPrefix(call, "fdatasync(") && strings.Contains(call, "planroom.db-wal>"):
						if first < 0 {
							intent = i
						}
						end = i
					case change.MatchString(call):
						if first < 0 {
							first = i
						}
						last = i
					}
				}
				if first < 0 || last < 0 {
					t.Fatalf("no change to the host was seen in:\n%s", strings.Join(x.lines(), "\n"))
				}
				if intent < 0 || intent > first {
					t.Errorf("the journal is not synced (call %d) before the host is changed (call %d)", intent, first)
				}
				if end < last {
					t.Errorf("the journal is not synced (call %d) after the last change (call %d)", end, last)
				}
			})
		}
	}
}

// TestSyncsOfTenThousandFiles holds golem to at most 6 + N/1000 syncs, and to bounded
// memory, at ten thousand files.
func TestSyncsOfTenThousandFiles(t *testing.T) {
	const files, allowed, maxRSS = 10000, 6 + 10000/1000, 512 << 10 // kB
	x := tracer(t, files)
	scroll := x.dir + "/scroll"
	for _, run := range []struct {
		name    string
		args    []string
		allowed int
	}{
		{"plan of a fresh apply", []string{"plan", scroll}, 0},
		{"fresh apply", []string{"apply", scroll, "--auto-approve"}, allowed},
		{"no-op plan", []string{"plan", scroll}, 0},
		{"no-op apply", []string{"apply", scroll, "--auto-approve"}, 0},
		{"destroy", []string{"destroy", scroll, "--auto-approve"}, allowed},
	} {
		x.run([]string{"-e", "trace=fsync,fdatasync,syncfs,sync,sync_file_range,msync"}, run.args...)
		syncs := 0
		for _, call := range x.lines() {
			if strings.Contains(call, "sync") && !strings.HasPrefix(call, "<...") {
				syncs++
			}
		}
		t.Logf("%s: %d syncs", run.name, syncs)
		if syncs > run.allowed {
			t.Errorf("%s: %d syncs, %d are allowed", run.name, syncs, run.allowed)
		}
	}
	line := x.golem("apply", scroll, "--auto-approve")
	cmd := exec.Command(line[0], line[1:]...)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("no resource usage is told here")
	}
	t.Logf("fresh apply: %d MiB at most", usage.Maxrss>>10)
	if usage.Maxrss > maxRSS {
		t.Errorf("fresh apply of %d files: %d kB resident, %d are allowed", files, usage.Maxrss, maxRSS)
	}
}

// TestKilledByTheKernelAtASample kills and fails the built binary at sampled system
// calls of each kind: the next apply settles, and destroy gives back the tree.
func TestKilledByTheKernelAtASample(t *testing.T) {
	for _, call := range []string{"renameat2", "fsync", "fdatasync", "unlinkat", "pwrite64", "fchmod", "mkdirat"} {
		for _, how := range []string{"signal=SIGKILL", "error=ENOSPC"} {
			t.Run(call+" "+how, func(t *testing.T) {
				t.Parallel()
				for _, when := range []int{1, 2, 5} {
					x := tracer(t, 12)
					for name, text := range map[string]string{"d0/f3": "found", "d0/f4": "found too\n", "other": "a bystander"} {
						path := filepath.Join(x.root, "data", name)
						if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
							t.Fatal(err)
						}
						if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
							t.Fatal(err)
						}
					}
					found, err := fingerprint(x.root)
					if err != nil {
						t.Fatal(err)
					}
					inject := fmt.Sprintf("inject=%s:%s:when=%d", call, how, when)
					x.run([]string{"-e", "trace=" + call, "-e", inject}, "apply", x.dir+"/scroll", "--auto-approve")
					x.plain("apply", x.dir+"/scroll", "--auto-approve")
					x.plain("plan", x.dir+"/scroll")
					x.plain("state", "check")
					x.plain("destroy", x.dir+"/scroll", "--auto-approve")
					after, err := fingerprint(x.root)
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Equal(found, after) {
						t.Fatalf("%s: the tree is not as it was:\n%s\n\n%s", inject, strings.Join(found, "\n"), strings.Join(after, "\n"))
					}
				}
			})
		}
	}
}
