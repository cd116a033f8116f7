package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// inside is a path of the machine as seen from here. No part of it but the last may be
// a link: that would lead out of the machine.
func (m *machine) inside(path string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", m.leader), path)
}

// command is a command's that runs in the machine, in a bare environment.
func (m *machine) command(argv ...string) *exec.Cmd {
	// Its root, too: in a namespace that was made from within a chroot it is not the first.
	cmd := exec.Command("nsenter", append([]string{"-t", strconv.Itoa(m.leader), "--all", "--root", "--wd", "--"}, argv...)...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "TERM=xterm"}
	cmd.WaitDelay = 20 * time.Second // for what a command left running with its output open
	return cmd
}

// run runs a command in the machine.
func (m *machine) run(argv ...string) answer {
	m.t.Helper()
	return m.finish(m.command(argv...))
}

func (m *machine) finish(cmd *exec.Cmd) answer {
	m.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		m.t.Fatal(err)
	}
	return answer{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// must runs a command that must succeed, and returns what it printed.
func (m *machine) must(argv ...string) string {
	m.t.Helper()
	a := m.run(argv...)
	if a.code != 0 {
		m.t.Fatalf("%s: exit %d\n%s%s", strings.Join(argv, " "), a.code, a.stdout, a.stderr)
	}
	return a.stdout
}

// sh runs a shell script that must succeed, and returns what it printed.
func (m *machine) sh(script string) string {
	m.t.Helper()
	return m.must("sh", "-ec", script)
}

// start starts a command in the machine. What it prints goes to the command's Stdout
// and Stderr, two *syncBuffer; it ends with the test at the latest.
func (m *machine) start(argv ...string) *exec.Cmd {
	m.t.Helper()
	cmd := m.command(argv...)
	cmd.Stdout, cmd.Stderr = &syncBuffer{}, &syncBuffer{}
	cmd.WaitDelay = time.Second
	m.check(cmd.Start())
	m.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			m.signal(cmd, unix.SIGKILL)
			_ = cmd.Wait()
		}
	})
	return cmd
}

// signal sends a signal to a command in the machine that start started: nsenter, which
// waits for it, is left alone.
func (m *machine) signal(cmd *exec.Cmd, sig syscall.Signal) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
	for field := range strings.FieldsSeq(string(data)) {
		if pid, err := strconv.Atoi(field); err == nil {
			_ = unix.Kill(pid, sig)
		}
	}
}

// A syncBuffer can be read while a command still writes to it.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// open opens a file of the machine; links lead to where they lead inside.
func (m *machine) open(path string, flags uint64) (*os.File, error) {
	root, err := unix.Open(m.inside("/"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
	if flags&unix.O_CREAT != 0 {
		how.Mode = 0o644
	}
	fd, err := unix.Openat2(root, path, &how)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// write writes a file of the machine, in directories that are made as needed.
func (m *machine) write(path, text string) {
	m.t.Helper()
	if dir := filepath.Dir(path); !m.exists(dir) {
		m.must("mkdir", "-p", dir)
	}
	f, err := m.open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC)
	m.check(err)
	_, err = f.WriteString(text)
	m.check(err)
	m.check(f.Close())
}

func (m *machine) read(path string) string {
	m.t.Helper()
	f, err := m.open(path, unix.O_RDONLY)
	m.check(err)
	defer f.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(f)
	m.check(err)
	return text.String()
}

// exists says that there is something at a path, were it a link to nowhere.
func (m *machine) exists(path string) bool {
	f, err := m.open(path, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// site is where declare puts the scroll.
const site = "/root/site"

// declare writes the scroll.
func (m *machine) declare(text string) {
	m.t.Helper()
	m.write(site+"/main.hcl", "name = \"web\"\n"+text)
}

// golem runs golem in the machine and wants an exit code.
func (m *machine) golem(code int, args ...string) answer {
	m.t.Helper()
	a := m.run(append([]string{"golem"}, args...)...)
	if a.code != code {
		m.t.Fatalf("golem %s: exit %d, want %d\n%s%s", strings.Join(args, " "), a.code, code, a.stdout, a.stderr)
	}
	return a
}

func (m *machine) apply(args ...string) answer {
	m.t.Helper()
	return m.golem(0, append([]string{"apply", "--auto-approve", site}, args...)...)
}

func (m *machine) destroy(args ...string) answer {
	m.t.Helper()
	return m.golem(0, append([]string{"destroy", "--auto-approve", "--name", "web"}, args...)...)
}

// plan is the plan's text.
func (m *machine) plan(args ...string) string {
	m.t.Helper()
	return m.golem(0, append([]string{"plan", site}, args...)...).stdout
}

// planJSON is the plan as JSON.
func (m *machine) planJSON(args ...string) map[string]any {
	m.t.Helper()
	text := m.plan(append([]string{"--json"}, args...)...)
	var plan map[string]any
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		m.t.Fatalf("plan --json: %v\n%s", err, text)
	}
	return plan
}

// active is what systemd says of a unit: active, inactive, failed, activating.
func (m *machine) active(unit string) string {
	m.t.Helper()
	return strings.TrimSpace(m.run("systemctl", "is-active", unit).stdout)
}

// enabled is what systemd says of a unit file: enabled, disabled, masked, static.
func (m *machine) enabled(unit string) string {
	m.t.Helper()
	return strings.TrimSpace(m.run("systemctl", "is-enabled", unit).stdout)
}

// installed is a package's status and version, "install ok installed 1.0"; "" if dpkg
// does not know it.
func (m *machine) installed(name string) string {
	m.t.Helper()
	a := m.run("dpkg-query", "-W", "-f", "${Status} ${Version}\n", name)
	if a.code != 0 {
		return ""
	}
	return strings.TrimSpace(a.stdout)
}
