package apply_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"golem/apply"
	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// A lawHost is a throw-away host: a file tree and a journal beside it.
type lawHost struct {
	dir  string
	root string
	// arrange, where set, makes more of the host: a system that runs.
	arrange func(*reconcilers.Host)
}

// newLawHost makes an empty host, in memory where there is a file system in memory: a
// law is tried thousands of times.
func newLawHost(t tester) *lawHost {
	base := ""
	if st, err := os.Stat("/dev/shm"); err == nil && st.IsDir() && unix.Access("/dev/shm", unix.W_OK) == nil {
		base = "/dev/shm"
	}
	dir, err := os.MkdirTemp(base, "golem-law-")
	if err != nil {
		t.Fatal(err)
	}
	h := &lawHost{dir: dir, root: filepath.Join(dir, "root")}
	if err := os.Mkdir(h.root, 0o755); err != nil {
		t.Fatal(err)
	}
	return h
}

// drawHost is a host with a random tree.
func drawHost(t *rapid.T) *lawHost {
	h := newLawHost(t)
	if err := drawTree(t).build(h.root); err != nil {
		t.Fatal(err)
	}
	return h
}

// twinsOf are two hosts with the same on them.
func twinsOf(t *rapid.T, tree *treePlan) (a, b *lawHost) {
	a, b = newLawHost(t), newLawHost(t)
	if err := errors.Join(tree.build(a.root), tree.build(b.root)); err != nil {
		t.Fatal(err)
	}
	return a, b
}

func (h *lawHost) remove() { _ = os.RemoveAll(h.dir) }

// apply runs a scroll; nil is a destroy.
func (h *lawHost) apply(scroll *scrolls.Scroll, lineage string) (*apply.Report, error) {
	return h.applyWith(scroll, lineage, nil)
}

// applyWith is apply with a hook that every change to the host or the journal asks
// first.
func (h *lawHost) applyWith(scroll *scrolls.Scroll, lineage string, fault func(op, path string) error) (*apply.Report, error) {
	return h.applyAs(context.Background(), apply.Options{Scroll: scroll, Lineage: lineage}, fault)
}

// applyAs is applyWith with options of the run's own. A report that is no plan's is of
// a run that did not come so far.
func (h *lawHost) applyAs(ctx context.Context, o apply.Options, fault func(op, path string) error) (*apply.Report, error) {
	host, err := reconcilers.OpenHost(h.root)
	if err != nil {
		return nil, err
	}
	defer host.Close()
	if h.arrange != nil {
		h.arrange(host)
	}
	// A test beside this one that forks holds every lock for an instant.
	so := state.Options{Root: h.root, LockTimeout: 10 * time.Second}
	if fault != nil {
		host.Fault = fault
		so.Fault = func(op string) error { return fault("journal "+op, "") }
	}
	journal, err := state.Open(filepath.Join(h.dir, "journal", "planroom.db"), so)
	if err != nil {
		return &apply.Report{}, err
	}
	o.Journal, o.Host, o.HostName, o.Destroy = journal, host, "law", o.Scroll == nil && o.Back == nil
	if o.Approve == nil {
		o.Approve = func(*plan.Plan) (bool, error) { return true, nil }
	}
	report, err := apply.Run(ctx, o)
	return report, errors.Join(err, report.Closed(journal.Close()))
}

// kept returns the bytes of everything the journal keeps.
func (h *lawHost) kept(t tester) []string {
	r, err := state.Read(filepath.Join(h.dir, "journal", "planroom.db"), state.Options{Root: h.root})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	list, err := r.KeptList()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, k := range list {
		if k.Blob == "" {
			all = append(all, string(k.Node))
			continue
		}
		data, err := r.ReadBlob(k.Blob)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(data))
	}
	return all
}

// check fails on a damaged journal.
func (h *lawHost) check(t tester) {
	r, err := state.Read(filepath.Join(h.dir, "journal", "planroom.db"), state.Options{Root: h.root})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	findings, err := r.Check()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Level == state.Damage {
			t.Fatalf("journal: %s: %s", f.What, f.Detail)
		}
	}
}

// fingerprint describes every path of the tree. Directory times are the system's; with
// times set, those of regular files count.
func (h *lawHost) fingerprint(t tester, times bool) map[string]string {
	prints := map[string]string{}
	inodes := map[uint64][]string{}
	err := filepath.WalkDir(h.root, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		name := strings.TrimPrefix(p, h.root)
		text := fmt.Sprintf("mode %o owner %d:%d", st.Mode, st.Uid, st.Gid)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" bytes %d %x", len(data), sha256.Sum256(data))
			if times {
				text += fmt.Sprintf(" mtime %d", st.Mtim.Nano())
			}
			inodes[st.Ino] = append(inodes[st.Ino], name)
		case unix.S_IFLNK:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			text += " target " + target
		}
		prints[name] = text + xattrText(p) + flagsText(p, st.Mode)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, names := range inodes {
		sort.Strings(names)
		for _, name := range names {
			prints[name] += " names " + strings.Join(names, ",")
		}
	}
	return prints
}

func xattrText(p string) string {
	buf := make([]byte, 4096)
	n, err := unix.Llistxattr(p, buf)
	if err != nil || n == 0 {
		return ""
	}
	names := strings.Split(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00")
	sort.Strings(names)
	text := ""
	for _, name := range names {
		value := make([]byte, 4096)
		n, err := unix.Lgetxattr(p, name, value)
		if err == nil {
			text += fmt.Sprintf(" %s=%x", name, value[:n])
		}
	}
	return text
}

// flagsText tells the inode flags that a person can set, where there are any.
func flagsText(p string, mode uint32) string {
	const settable = 0xf8 // sync, immutable, append, nodump, noatime
	if mode&unix.S_IFMT != unix.S_IFREG && mode&unix.S_IFMT != unix.S_IFDIR {
		return ""
	}
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	if err != nil || flags&settable == 0 {
		return ""
	}
	return fmt.Sprintf(" flags %x", flags&settable)
}

// compare lists where two fingerprints differ.
func compare(want, got map[string]string) string {
	var lines []string
	for p, text := range want {
		if other, ok := got[p]; !ok {
			lines = append(lines, fmt.Sprintf("%q is gone: %s", p, text))
		} else if other != text {
			lines = append(lines, fmt.Sprintf("%q\n  was %s\n  is  %s", p, text, other))
		}
	}
	for p, text := range got {
		if _, ok := want[p]; !ok {
			lines = append(lines, fmt.Sprintf("%q is new: %s", p, text))
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// A tester is what the tests here need of testing.T and of rapid.T.
type tester interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}
