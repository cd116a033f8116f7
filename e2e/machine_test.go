package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A machine is a Debian host of a test's own, booted with systemd, that the test may do
// anything to: a layer over the cached tree, with its own processes, network (loopback
// and nothing else) and packages (machine_tree_test.go). It ends with the test.
type machine struct {
	t      testing.TB
	name   string
	tree   string   // what it is a layer over; "" for the tree of all
	dir    string   // its layer, and what it wrote to its console
	root   string   // where its file system is mounted
	args   []string // systemd-nspawn's, beside the usual
	nspawn *exec.Cmd
	ended  chan struct{} // closed when nspawn has ended
	leader int           // its process 1, as seen from here
}

var machines atomic.Int64

// boot boots a machine and waits until it runs. More arguments go to systemd-nspawn.
func boot(t testing.TB, args ...string) *machine {
	t.Helper()
	needMachines(t)
	return bootOver(t, "", args...)
}

// bootOver boots a machine that is a layer over a tree of its own.
func bootOver(t testing.TB, tree string, args ...string) *machine {
	t.Helper()
	m := &machine{t: t, name: fmt.Sprintf("golem-e2e-%d-%d", os.Getpid(), machines.Add(1)), tree: tree, args: args}
	m.mount()
	m.powerOn()
	return m
}

// check ends the test at an error.
func (m *machine) check(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// mount makes the machine's file system: a fresh layer over one with golem in it, over
// the tree.
func (m *machine) mount() {
	m.t.Helper()
	tree, err := machineTree()
	m.check(err)
	if m.tree != "" {
		tree = m.tree
	}
	golem, err := golemLayer()
	m.check(err)
	m.dir, err = os.MkdirTemp("", m.name+"-")
	m.check(err)
	m.t.Cleanup(func() {
		if err := removeLayer(m.dir); err != nil {
			m.t.Error(err)
		}
	})
	var st unix.Statfs_t
	m.check(unix.Statfs(m.dir, &st))
	if st.Type == unix.OVERLAYFS_SUPER_MAGIC { // the upper layer of one cannot be another
		m.check(unix.Mount("tmpfs", m.dir, "tmpfs", 0, "mode=0700"))
		m.t.Cleanup(func() { m.unmount(m.dir) })
	}
	upper, work := filepath.Join(m.dir, "upper"), filepath.Join(m.dir, "work")
	m.root = filepath.Join(m.dir, "root")
	for _, dir := range []string{upper, work, m.root} {
		m.check(os.Mkdir(dir, 0o755))
		m.check(os.Chmod(dir, 0o755)) // whatever the umask: upper's mode is that of /
	}
	// A machine's power never fails, so that nothing needs to wait for the disk; and
	// directories of the lower layers can be renamed, as on any other file system.
	layers := fmt.Sprintf("lowerdir=%s:%s,upperdir=%s,workdir=%s", golem, tree, upper, work)
	err = unix.Mount("overlay", m.root, "overlay", 0, layers+",volatile,redirect_dir=on,index=on")
	if errors.Is(err, unix.EINVAL) { // an older kernel
		err = unix.Mount("overlay", m.root, "overlay", 0, layers)
	}
	m.check(err)
	m.t.Cleanup(func() { m.unmount(m.root) })
}

// removeLayer removes a machine's files, those among them that a test made immutable.
func removeLayer(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = exec.Command("chattr", "-R", "-ia", dir).Run() // fails on links, and is done all the same
	return os.RemoveAll(dir)
}

func (m *machine) unmount(dir string) {
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
		m.t.Errorf("unmount %s: %v", dir, err)
	}
}

// golemLayer is a directory with golem where a machine has it.
var golemLayer = sync.OnceValues(func() (string, error) {
	bin, err := built()
	if err != nil {
		return "", err
	}
	layer := filepath.Join(tools, "layer")
	place := filepath.Join(layer, "usr/local/bin")
	if err := os.MkdirAll(place, 0o755); err != nil {
		return "", err
	}
	for dir := place; dir != tools; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { // whatever the umask
			return "", err
		}
	}
	return layer, quiet(exec.Command("cp", "--preserve=mode", bin, place))
})

// intoMachine is the script that becomes systemd-nspawn: in the control groups of the
// machine's own, since two machines in one would take each other's for theirs; with a
// /proc of its own process ids; and with a place for what it notes about machines that
// ends with it.
const intoMachine = `
while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs"; shift; done
shift
mount -t proc proc /proc
mkdir -p /run/systemd/nspawn
mount -t tmpfs tmpfs /run/systemd/nspawn
exec "$@"
`

// powerOn boots the mounted machine.
func (m *machine) powerOn() {
	m.t.Helper()
	log, err := os.OpenFile(filepath.Join(m.dir, "console"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	m.check(err)
	defer log.Close()
	groups, err := cgroups(m.name)
	m.check(err)
	if m.tree != "" { // what runs containers makes groups of its own everywhere
		more, err := controllers(m.name)
		m.check(err)
		groups = append(groups, more...)
	}
	argv := append([]string{"-ec", intoMachine, "sh"}, groups...)
	argv = append(argv, "--", "systemd-nspawn", "--quiet", "--boot", "--directory="+m.root, "--machine="+m.name, "--hostname=host1",
		"--register=no", "--keep-unit", "--console=pipe", "--private-network",
		"--link-journal=no", "--resolv-conf=off", "--timezone=off")
	m.nspawn = exec.Command("/bin/sh", append(argv, m.args...)...)
	// /tmp is a directory on the disk, as Debian has it.
	m.nspawn.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "SYSTEMD_NSPAWN_TMPFS_TMP=0"}
	m.nspawn.Stdout, m.nspawn.Stderr = log, log
	// As process 1 of a namespace of its own it takes every process of the machine with
	// it when it dies, and it dies with the tests.
	m.nspawn.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS,
		Pdeathsig: syscall.SIGKILL, Setpgid: true,
	}
	m.check(m.nspawn.Start())
	m.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) { _ = cmd.Wait(); close(ended) }(m.nspawn, m.ended)
	m.t.Cleanup(func() {
		m.cut()
		for _, dir := range groups {
			removeCgroup(dir)
		}
	})
	m.awaitRunning()
}

// awaitRunning waits for the machine's process 1, and until that says that all runs.
func (m *machine) awaitRunning() {
	m.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	var last answer
	for ; time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		select {
		case <-m.ended:
			m.t.Fatalf("the machine ended while it booted:\n%s", m.console())
		default:
		}
		if m.leader = leaderOf(m.nspawn.Process.Pid); m.leader == 0 || !m.exists("/run/systemd/private") {
			continue
		}
		m.isInside()
		switch last = m.run("systemctl", "is-system-running", "--wait"); strings.TrimSpace(last.stdout) {
		case "running":
			return
		case "degraded":
			m.t.Fatalf("the machine runs, but not all of it:\n%s", m.run("systemctl", "--failed", "--no-pager").stdout)
		}
	}
	m.t.Fatalf("the machine does not run after two minutes: %s%s\n%s", last.stdout, last.stderr, m.console())
}

// isInside ends the test unless commands run where files are read and written, before one
// could do to this host what it was to do to the machine.
func (m *machine) isInside() {
	m.t.Helper()
	var st unix.Stat_t
	m.check(unix.Stat(m.inside("/"), &st))
	if got, want := strings.TrimSpace(m.must("stat", "-c", "%d %i", "/")), fmt.Sprint(st.Dev, st.Ino); got != want {
		m.t.Fatalf("commands do not run in the machine: / is %s there and %s here", got, want)
	}
}

// leaderOf is the process 1 that an nspawn started, once it is systemd; else 0.
func leaderOf(nspawn int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", nspawn, nspawn))
	if err != nil {
		return 0
	}
	for field := range strings.FieldsSeq(string(data)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			continue
		}
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && filepath.Base(exe) == "systemd" {
			return pid
		}
	}
	return 0
}

// console is what the machine wrote to its console.
func (m *machine) console() string {
	data, err := os.ReadFile(filepath.Join(m.dir, "console"))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// cut ends the machine as a power cut would, and every process in it.
func (m *machine) cut() {
	_ = m.nspawn.Process.Kill()
	<-m.ended
	m.leader = 0
}

// reboot shuts the machine down in good order and boots it again, on the same disk.
func (m *machine) reboot() {
	m.t.Helper()
	m.check(unix.Kill(m.leader, unix.Signal(34+4))) // SIGRTMIN+4: power off
	select {
	case <-m.ended:
	case <-time.After(100 * time.Second):
		m.t.Fatalf("the machine does not shut down:\n%s", m.console())
	}
	m.cut()
	m.powerOn()
}
