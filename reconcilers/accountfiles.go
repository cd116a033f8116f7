package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"golem/state"
)

// The files that local users and groups stand in (passwd(5), shadow(5), group(5),
// gshadow(5), subuid(5), subgid(5)).
const (
	passwdFile  = "/etc/passwd"
	shadowFile  = "/etc/shadow"
	groupFile   = "/etc/group"
	gshadowFile = "/etc/gshadow"
	subuidFile  = "/etc/subuid"
	subgidFile  = "/etc/subgid"

	// accountLock is what lckpwdf(3) locks, and so every tool that writes them.
	accountLock = "/etc/.pwd.lock"
	// accountLockTime is how long the tools wait for it.
	accountLockTime = 15 * time.Second
)

// accountFiles are all of them, in the order in which they are written.
var accountFiles = []string{groupFile, gshadowFile, passwdFile, shadowFile, subuidFile, subgidFile}

// Fields of their lines.
const (
	pwUID, pwGID, pwComment, pwHome, pwShell = 2, 3, 4, 5, 6
	spHash, spChanged, spExpires             = 1, 2, 7
	grGID, grMembers                         = 2, 3
)

// accounts are the lines of the account files. A file that is not there has none, and is
// not in it.
type accounts map[string][]string

// accounts reads the account files, once for all that look at the host as it is now.
func (w *World) accounts() (accounts, error) {
	type reading struct {
		lines accounts
		err   error
	}
	r := keepAt(w, "accounts", func() *reading {
		r := &reading{}
		r.lines, _, r.err = w.readAccounts()
		return r
	})
	return r.lines, r.err
}

func (w *World) readAccounts() (accounts, map[string]Node, error) {
	all, nodes := accounts{}, map[string]Node{}
	d := w.Host.newDirs()
	defer d.close()
	for _, file := range accountFiles {
		n, err := w.Host.observe(d, file, maxEdit)
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil, nil, &NoAccountsError{err}
		case err != nil:
			return nil, nil, err
		case n.Type == Absent:
			continue
		case n.Type != File || n.data == nil:
			return nil, nil, fmt.Errorf("read %s: it is a %s, not a file with accounts", file, n.Type)
		}
		nodes[file] = n
		all[file] = []string{}
		if len(n.data) > 0 {
			all[file] = strings.Split(strings.TrimSuffix(string(n.data), "\n"), "\n")
		}
	}
	return all, nodes, nil
}

// A NoAccountsError says that the host's accounts cannot be read.
type NoAccountsError struct{ Err error }

func (e *NoAccountsError) Error() string { return e.Err.Error() }
func (e *NoAccountsError) Unwrap() error { return e.Err }

// Hint says who can.
func (*NoAccountsError) Hint() string { return "run golem as root to plan users and groups" }

// line is the line of a name, and where it is; "" and -1 for none.
func (a accounts) line(file, name string) (string, int) {
	for i, line := range a[file] {
		if strings.HasPrefix(line, name+":") {
			return line, i
		}
	}
	return "", -1
}

// all are all lines of a name.
func (a accounts) all(file, name string) []string {
	var found []string
	for _, line := range a[file] {
		if strings.HasPrefix(line, name+":") {
			found = append(found, line)
		}
	}
	return found
}

// byID is the name that has a number in a file of users or groups; "" for none.
func (a accounts) byID(file string, id int) string {
	for _, line := range a[file] {
		if field(line, pwUID) == strconv.Itoa(id) {
			return field(line, 0)
		}
	}
	return ""
}

// put makes a name's line this one: in its place where there is one, and else at a place
// among the others. "" takes it away.
func (a accounts) put(file, name, line string, at int) {
	_, is := a.line(file, name)
	switch {
	case a[file] == nil:
	case line == "" && is >= 0:
		a[file] = slices.Delete(a[file], is, is+1)
	case line == "":
	case is >= 0:
		a[file][is] = line
	default:
		if at < 0 || at > len(a[file]) {
			at = len(a[file])
		}
		a[file] = slices.Insert(a[file], at, line)
	}
}

// field is one field of a line; "" where it has not as many.
func field(line string, i int) string {
	if f := strings.Split(line, ":"); i < len(f) {
		return f[i]
	}
	return ""
}

// withField is a line with one field changed.
func withField(line string, i int, value string) string {
	f := strings.Split(line, ":")
	for len(f) <= i {
		f = append(f, "")
	}
	f[i] = value
	return strings.Join(f, ":")
}

// idOf is a number in a line; -1 where there is none.
func idOf(line string, i int) int {
	id, err := strconv.Atoi(field(line, i))
	if line == "" || err != nil {
		return -1
	}
	return id
}

// members are those that a line of group(5) or gshadow(5) lists.
func members(line string) []string {
	if list := field(line, grMembers); list != "" {
		return strings.Split(list, ",")
	}
	return nil
}

// editAccounts changes lines of the account files under their tools' lock, and nothing
// else of them. edit is given them as they are by then.
func (w *World) editAccounts(ctx context.Context, store Store, step *state.Step, edit func(accounts)) error {
	b := w.Host.newBatch(w.Blobs, keepWith(store, step), 1)
	defer b.close()
	for _, file := range accountFiles {
		if err := b.clearStale(file, accountTemp(file)); err != nil {
			return err
		}
	}
	now, next, _, err := w.editedAccounts(edit)
	if err != nil || maps.EqualFunc(now, next, slices.Equal[[]string]) {
		return err
	}
	unlock, err := w.Host.lockAccounts(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	defer w.Host.forgetNames()
	now, next, nodes, err := w.editedAccounts(edit)
	if err != nil {
		return err
	}
	if err := w.clearToolLocks(); err != nil {
		return err
	}
	for _, file := range accountFiles {
		s := &shift{path: file, from: nodes[file], temp: accountTemp(file)}
		if slices.Equal(now[file], next[file]) {
			continue
		}
		text := strings.Join(append(next[file], ""), "\n")
		s.to = withContent(s.from, []byte(text))
		s.to.Mtime = 0
		if _, err := b.run(ctx, []*shift{s}); err != nil {
			return err
		}
	}
	return nil
}

// editedAccounts are the account files as they are, and with an edit.
func (w *World) editedAccounts(edit func(accounts)) (now, next accounts, nodes map[string]Node, err error) {
	if now, nodes, err = w.readAccounts(); err != nil {
		return nil, nil, nil, err
	}
	next = accounts{}
	for file, lines := range now {
		next[file] = slices.Clone(lines)
	}
	edit(next)
	return now, next, nodes, nil
}

func accountTemp(file string) string {
	_, name := split(file)
	return tempPrefix + name
}

// clearStale removes what a killed run left beside a path under a temporary name.
func (b *batch) clearStale(file, temp string) error {
	dir, _ := split(file)
	fd, err := b.d.fd(dir)
	if err == nil {
		err = unix.Unlinkat(fd, temp, 0)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("clear %s: %w", quote(dir+"/"+temp), err)
	}
	return nil
}

// lockAccounts takes the lock that the tools take.
func (h *Host) lockAccounts(ctx context.Context) (unlock func(), err error) {
	wrong := func(err error) error { return fmt.Errorf("lock %s: %w", accountLock, err) }
	if err := h.fault("lock", accountLock); err != nil {
		return nil, err
	}
	dir, name := split(accountLock)
	at, err := h.openDir(dir)
	if err != nil {
		return nil, wrong(err)
	}
	defer unix.Close(at)
	fd, err := unix.Openat(at, name, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, wrong(err)
	}
	deadline := time.Now().Add(accountLockTime)
	for {
		err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
		if err == nil {
			return func() { unix.Close(fd) }, nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) || time.Now().After(deadline) || ctx.Err() != nil {
			unix.Close(fd)
			return nil, errors.Join(wrong(err), ctx.Err())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// clearToolLocks removes what a killed tool left beside the account files: its own locks and
// the new version that it did not come to rename. The lock that all of them take is held.
func (w *World) clearToolLocks() error {
	d := w.Host.newDirs()
	defer d.close()
	for _, file := range accountFiles {
		dir, name := split(file)
		fd, err := d.fd(dir)
		if err != nil {
			return fmt.Errorf("open %s: %w", dir, err)
		}
		for _, left := range []string{name + ".lock", name + "+"} {
			if err := unix.Unlinkat(fd, left, 0); err != nil && !errors.Is(err, unix.ENOENT) {
				return fmt.Errorf("clear %s/%s: %w", dir, left, err)
			}
		}
	}
	return nil
}

// tool runs one of the host's own tools for accounts.
func (w *World) tool(ctx context.Context, argv ...string) error {
	defer w.Host.forgetNames()
	_, err := w.Host.Do(ctx, Command{Argv: argv, Changes: true, Timeout: w.Timeout})
	return err
}
