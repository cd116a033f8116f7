package e2e

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata/script")

// TestScript runs every script in testdata/script. A script finds golem on its PATH and
// its journal named in GOLEM_STATE; its host is the directory tree, its user's home
// is home. In the tree, whoever runs the tests is called me.
func TestScript(t *testing.T) {
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(bin)+":"+os.Getenv("PATH")+":/usr/sbin:/sbin")
			env.Setenv("GOLEM_STATE", filepath.Join(env.WorkDir, "planroom.db"))
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("TERM", "xterm")
			env.Setenv("LC_ALL", "C.UTF-8")
			for _, dir := range []string{"tree/etc", "home"} {
				if err := os.MkdirAll(filepath.Join(env.WorkDir, dir), 0o755); err != nil {
					return err
				}
			}
			for file, id := range map[string]int{"passwd": os.Geteuid(), "group": os.Getegid()} {
				line := fmt.Sprintf("me:x:%d:%d::/home/me:/bin/sh\n", id, id)
				if err := os.WriteFile(filepath.Join(env.WorkDir, "tree/etc", file), []byte(line), 0o644); err != nil {
					return err
				}
			}
			env.Values[printsKey{}] = map[string][]string{}
			return nil
		},
		Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "fingerprint": takePrint, "unchanged": unchanged, "write": write, "holds": holds,
			"mode": mode, "owner": owner, "mtime": mtime, "node": node, "setxattr": setxattr, "xattr": xattr,
			"chattr": chattr, "mount": mount, "links": links, "plain": plain, "widest": widest, "append": appendTo, "fits": fitsSchema,
		},
	})
}

// condition knows [root] and [mount]: who runs the tests, and whether they may mount.
func condition(cond string) (bool, error) {
	switch cond {
	case "root":
		return os.Geteuid() == 0, nil
	case "mount":
		return mountable(), nil
	}
	return false, fmt.Errorf("there is no condition %q", cond)
}

type printsKey struct{}

func need(ts *testscript.TestScript, neg bool, args []string, low, high int, usage string) {
	if neg || len(args) < low || len(args) > high {
		ts.Fatalf("usage: %s", usage)
	}
}

// exits CODE COMMAND… runs a command that must end with the exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, 1000, "exits CODE COMMAND…")
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// fingerprint NAME [PATH] remembers a tree.
func takePrint(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, 2, "fingerprint NAME [PATH]")
	lines, err := fingerprint(ts.MkAbs(append(args, "tree")[1]))
	ts.Check(err)
	ts.Value(printsKey{}).(map[string][]string)[args[0]] = lines
}

// unchanged NAME [PATH] compares a tree with what was remembered.
func unchanged(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: [!] unchanged NAME [PATH]")
	}
	want, ok := ts.Value(printsKey{}).(map[string][]string)[args[0]]
	if !ok {
		ts.Fatalf("no fingerprint is called %q", args[0])
	}
	got, err := fingerprint(ts.MkAbs(append(args, "tree")[1]))
	ts.Check(err)
	switch diff := difference(want, got); {
	case neg && diff == "":
		ts.Fatalf("the tree is as it was")
	case !neg && diff != "":
		ts.Fatalf("the tree is not as it was\n%s", diff)
	}
}

// unquoted reads Go's escapes, so that a script can name any byte.
func unquoted(ts *testscript.TestScript, s string) string {
	text, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`)
	ts.Check(err)
	return text
}

// write FILE TEXT writes bytes and their parents; names and text may hold Go's escapes.
func write(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, 2, "write FILE TEXT")
	path := ts.MkAbs(unquoted(ts, args[0]))
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
	ts.Check(os.WriteFile(path, []byte(unquoted(ts, args[1])), 0o644))
}

// append FILE TEXT adds bytes to a file, as a person would.
func appendTo(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, 2, "append FILE TEXT")
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY|os.O_APPEND, 0)
	ts.Check(err)
	_, err = f.WriteString(unquoted(ts, args[1]))
	ts.Check(errors.Join(err, f.Close()))
}

// holds FILE TEXT wants exactly these bytes in a file.
func holds(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, 2, "holds FILE TEXT")
	got, err := os.ReadFile(ts.MkAbs(unquoted(ts, args[0])))
	ts.Check(err)
	if want := unquoted(ts, args[1]); string(got) != want {
		ts.Fatalf("%s holds %q, want %q", args[0], got, want)
	}
}

func lstat(ts *testscript.TestScript, name string) unix.Stat_t {
	var st unix.Stat_t
	if err := unix.Lstat(ts.MkAbs(unquoted(ts, name)), &st); err != nil {
		ts.Fatalf("lstat %s: %v", name, err)
	}
	return st
}

// mode FILE 0644 wants a mode, setuid, setgid and sticky included.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, 2, "mode FILE MODE")
	if got := fmt.Sprintf("%04o", lstat(ts, args[0]).Mode&0o7777); got != args[1] {
		ts.Fatalf("%s has mode %s, want %s", args[0], got, args[1])
	}
}

// owner FILE UID:GID wants numbers.
func owner(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, 2, "owner FILE UID:GID")
	st := lstat(ts, args[0])
	if got := fmt.Sprintf("%d:%d", st.Uid, st.Gid); got != args[1] {
		ts.Fatalf("%s belongs to %s, want %s", args[0], got, args[1])
	}
}

// links FILE N wants a number of names.
func links(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, 2, "links FILE N")
	if got := fmt.Sprint(lstat(ts, args[0]).Nlink); got != args[1] {
		ts.Fatalf("%s has %s names, want %s", args[0], got, args[1])
	}
}

// mtime FILE TIME sets a modification time, long ago.
func mtime(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, 2, "mtime FILE RFC3339")
	at, err := time.Parse(time.RFC3339Nano, args[1])
	ts.Check(err)
	ts.Check(os.Chtimes(ts.MkAbs(args[0]), at, at))
}

// node KIND FILE makes a fifo, a socket or the null device.
func node(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, 2, "node fifo|socket|null FILE")
	path := ts.MkAbs(args[1])
	switch args[0] {
	case "fifo":
		ts.Check(unix.Mkfifo(path, 0o644))
	case "null":
		ts.Check(unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	case "socket":
		// A socket's address is short; the script's directory may not be.
		fd, err := os.Open(filepath.Dir(path))
		ts.Check(err)
		defer fd.Close()
		l, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/%s", fd.Fd(), filepath.Base(path)))
		ts.Check(err)
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		ts.Check(l.Close())
	default:
		ts.Fatalf("there is no node %q", args[0])
	}
}

// setxattr FILE NAME VALUE sets an extended attribute.
func setxattr(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 3, 3, "setxattr FILE NAME VALUE")
	ts.Check(unix.Lsetxattr(ts.MkAbs(args[0]), args[1], []byte(args[2]), 0))
}

// xattr FILE NAME VALUE wants an extended attribute.
func xattr(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 3, 3, "xattr FILE NAME VALUE")
	buf := make([]byte, 1024)
	n, err := unix.Lgetxattr(ts.MkAbs(args[0]), args[1], buf)
	ts.Check(err)
	if string(buf[:n]) != args[2] {
		ts.Fatalf("%s of %s is %q, want %q", args[1], args[0], buf[:n], args[2])
	}
}

// chattr +i|-i|+a|-a FILE sets or lifts a flag; what is set is lifted at the end.
func chattr(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, 2, "chattr +i|-i|+a|-a FILE")
	path := ts.MkAbs(args[1])
	ts.Check(ts.Exec("chattr", args[0], path))
	if strings.HasPrefix(args[0], "+") {
		ts.Defer(func() { _ = exec.Command("chattr", "-ia", path).Run() })
	}
}

// mount bind|ro|tmpfs:SIZE FROM TO mounts until the end of the script.
func mount(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 3, 3, "mount bind|ro|ramfs|tmpfs:SIZE FROM TO")
	from, to := ts.MkAbs(args[1]), ts.MkAbs(args[2])
	kind, size, _ := strings.Cut(args[0], ":")
	switch kind {
	case "tmpfs":
		ts.Check(unix.Mount("tmpfs", to, "tmpfs", 0, "size="+size+",mode=0755"))
	case "ramfs": // it keeps no ACLs
		ts.Check(unix.Mount("ramfs", to, "ramfs", 0, ""))
	default:
		ts.Check(unix.Mount(from, to, "", unix.MS_BIND, ""))
	}
	ts.Defer(func() { _ = unix.Unmount(to, unix.MNT_DETACH) })
	if kind == "ro" {
		ts.Check(unix.Mount("", to, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	}
}

// plain stdout|stderr wants no byte in a stream that could move a cursor or set a colour.
func plain(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, 1, "plain stdout|stderr")
	if text := ts.ReadFile(args[0]); strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f || r == '\uFFFD' }) {
		ts.Fatalf("%s holds bytes that are not printable text:\n%q", args[0], text)
	}
}

// widest stdout|stderr N wants no line wider than N columns.
func widest(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, 2, "widest stdout|stderr N")
	most, err := strconv.Atoi(args[1])
	ts.Check(err)
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > most {
			ts.Fatalf("%s has a line of %d columns:\n%s", args[0], n, line)
		}
	}
}
