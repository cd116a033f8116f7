package e2e

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A box is a file tree, a journal and a scroll of a test's own.
type box struct {
	t       *testing.T
	dir     string
	tree    string
	journal string
	scroll  string
	env     []string
	uid     int // 0: whoever runs the tests
}

func newBox(t *testing.T) *box {
	t.Helper()
	if _, err := built(); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "golem-box-") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	b := &box{t: t, dir: dir, tree: filepath.Join(dir, "tree"), journal: filepath.Join(dir, "state/planroom.db"), scroll: filepath.Join(dir, "site.hcl")}
	b.must(os.Chmod(dir, 0o755))
	b.must(os.Mkdir(filepath.Join(dir, "tmp"), 0o700)) // a golem that is killed leaves its copy of a journal
	b.must(os.Chmod(filepath.Join(dir, "tmp"), 0o777))
	b.write("tree/etc/hostname", "host1\n")
	return b
}

func (b *box) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// write writes a file below the box.
func (b *box) write(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	b.must(os.MkdirAll(filepath.Dir(path), 0o755))
	b.must(os.WriteFile(path, []byte(text), 0o644))
}

func (b *box) read(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	b.must(err)
	return string(data)
}

// declare writes the scroll.
func (b *box) declare(text string) {
	b.t.Helper()
	b.write("site.hcl", "name = \"web\"\n"+text)
}

// print is the tree's fingerprint.
func (b *box) print() []string {
	b.t.Helper()
	lines, err := fingerprint(b.tree)
	b.must(err)
	return lines
}

// same wants the tree as it was.
func (b *box) same(when string, want []string) {
	b.t.Helper()
	if diff := difference(want, b.print()); diff != "" {
		b.t.Errorf("%s, the tree is not as it was:\n%s", when, diff)
	}
}

// command is golem's, on the box.
func (b *box) command(args ...string) *exec.Cmd {
	bin, _ := built()
	cmd := exec.Command(bin, append(args, "--root", b.tree, "--state", b.journal)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TERM=xterm", "HOME=" + b.dir, "TMPDIR=" + filepath.Join(b.dir, "tmp")}, b.env...)
	cmd.Dir = b.dir
	if b.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(b.uid), Gid: uint32(b.uid)}}
	}
	return cmd
}

// run runs golem on the box.
func (b *box) run(args ...string) answer {
	b.t.Helper()
	return b.finish(b.command(args...))
}

func (b *box) finish(cmd *exec.Cmd) answer {
	b.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	return answer{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// want runs golem on the box and wants an exit code.
func (b *box) want(code int, args ...string) answer {
	b.t.Helper()
	a := b.run(args...)
	if a.code != code {
		b.t.Fatalf("golem %s: exit %d, want %d\n%s%s", strings.Join(args, " "), a.code, code, a.stdout, a.stderr)
	}
	return a
}

func (b *box) apply() answer { b.t.Helper(); return b.want(0, "apply", "--auto-approve", b.scroll) }
func (b *box) destroy() answer {
	b.t.Helper()
	return b.want(0, "destroy", "--auto-approve", "--name", "web")
}

// says wants a text in another.
func says(t testing.TB, text, part string) {
	t.Helper()
	if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(part), " ")) {
		t.Errorf("%q is not in:\n%s", part, text)
	}
}

// asRoot skips a test that only root can run.
func asRoot(t *testing.T, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can " + why)
	}
}

// strayFiles lists golem's temporary files below a directory.
func strayFiles(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(path), ".") {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// maxRSS is the most memory that an ended process held, in bytes.
func maxRSS(cmd *exec.Cmd) int64 {
	return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
}

// ownPeak is the most memory that this process has held, in bytes. Linux counts it as that
// of every process that it starts (exec keeps the peak of the memory that was shared until
// then), so that less than it cannot be told apart.
func ownPeak() int64 {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return 0
	}
	return own.Maxrss << 10
}

// sparse makes a file of a size that takes no room, with a few bytes at its end.
func sparse(t *testing.T, path string, size int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|unix.O_TRUNC, 0o644)
	if err == nil {
		_, err = f.WriteAt([]byte("the end"), size-7)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
