package reconcilers

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// What a user or group is in use by: processes, and files that belong to it. Looking for
// the files means looking at every file of the host, so it is done once for all users and
// groups that a run is about, and only where one would go.

// mostOwned bounds the paths that are noted of one user or group.
const mostOwned = 10000

// A usage is what was found of some users and groups.
type usage struct {
	uids, gids map[int][]string // paths by number
	procs      []proc
	err        error
}

// A proc is a process with all its numbers.
type proc struct {
	pid        int
	name, unit string
	uids, gids []int
}

// askedDesk notes which users and groups a run is about.
type askedDesk struct {
	mu    sync.Mutex
	names map[string][]string // by sort
	usage *usage
}

func (w *World) askedDesk() *askedDesk {
	return keepAt(w, "accounts in use", func() *askedDesk { return &askedDesk{names: map[string][]string{}} })
}

// asked notes users or groups that may have to be looked for.
func (w *World) asked(sort string, names []string) {
	d := w.askedDesk()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names[sort] = append(d.names[sort], names...)
}

// An InUseError says that a user or group which the plan has go is in use by now.
type InUseError struct {
	What string
	Use  []string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("remove the %s: it is in use: %s", e.What, someOf(e.Use))
}

// Hint says what to do about it.
func (*InUseError) Hint() string { return "see to that, and run golem again" }

// inUse names the processes that run as a user or with a group, and the paths that belong
// to it outside its home, as they will be when the run has come so far. -1 asks for none.
func (w *World) inUse(uid, gid int, home string) ([]string, error) {
	u, err := w.usage(uid, gid)
	if err != nil {
		return nil, err
	}
	var use []string
	for _, p := range u.procs {
		if will, ok := w.willBe(p.unit); ok && !will.running {
			continue
		}
		if uid >= 0 && slices.Contains(p.uids, uid) || gid >= 0 && slices.Contains(p.gids, gid) {
			use = append(use, fmt.Sprintf("process %d (%s)", p.pid, quote(p.name)))
		}
	}
	stays := func(p string, of func(Node) int, id int) bool {
		if home != "" && (p == home || beneath(p, home)) {
			return false
		}
		n, foreseen := w.over[p]
		for _, up := range ancestors(p) {
			if over, ok := w.over[up]; ok && over.Type == Absent {
				return false
			}
		}
		return !foreseen || n.Type != Absent && of(n) == id
	}
	for _, p := range u.uids[uid] {
		if stays(p, func(n Node) int { return n.UID }, uid) {
			use = append(use, quote(p))
		}
	}
	for _, p := range u.gids[gid] {
		if stays(p, func(n Node) int { return n.GID }, gid) {
			use = append(use, quote(p))
		}
	}
	return use, nil
}

// usage looks at the whole host, once.
func (w *World) usage(uid, gid int) (*usage, error) {
	all, err := w.accounts()
	if err != nil {
		return nil, err
	}
	d := w.askedDesk()
	d.mu.Lock()
	defer d.mu.Unlock()
	if u := d.usage; u != nil {
		_, knowsUser := u.uids[uid]
		_, knowsGroup := u.gids[gid]
		if (uid < 0 || knowsUser) && (gid < 0 || knowsGroup) {
			return u, u.err
		}
	}
	u := &usage{uids: map[int][]string{}, gids: map[int][]string{}}
	for _, name := range d.names[userSort] {
		line, _ := all.line(passwdFile, name)
		u.uids[idOf(line, pwUID)] = nil
	}
	for _, name := range d.names[groupSort] {
		line, _ := all.line(groupFile, name)
		u.gids[idOf(line, grGID)] = nil
	}
	u.uids[uid], u.gids[gid] = nil, nil
	delete(u.uids, -1)
	delete(u.gids, -1)
	u.procs = w.Host.processes()
	u.err = w.Host.walkOwned("/", 0, u)
	d.usage = u
	return u, u.err
}

// walkOwned notes what belongs to some users and groups in a directory and below it. What
// is no file system of this host's own is left out.
func (h *Host) walkOwned(dir string, dev uint64, u *usage) error {
	full := path.Join(h.Root, dir)
	entries, err := os.ReadDir(full)
	if os.IsNotExist(err) {
		return nil // it went meanwhile
	}
	if err != nil {
		return fmt.Errorf("look for files of users: %w", err)
	}
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		var st unix.Stat_t
		if unix.Lstat(path.Join(full, e.Name()), &st) != nil {
			continue
		}
		u.note(p, &st)
		if st.Mode&unix.S_IFMT != unix.S_IFDIR || uint64(st.Dev) != dev && foreignFS(path.Join(full, e.Name())) {
			continue
		}
		if err := h.walkOwned(p, uint64(st.Dev), u); err != nil {
			return err
		}
	}
	return nil
}

func (u *usage) note(p string, st *unix.Stat_t) {
	if paths, ok := u.uids[int(st.Uid)]; ok && len(paths) < mostOwned {
		u.uids[int(st.Uid)] = append(paths, p)
	}
	if paths, ok := u.gids[int(st.Gid)]; ok && len(paths) < mostOwned {
		u.gids[int(st.Gid)] = append(paths, p)
	}
}

// foreignFS says that a directory is on a file system that holds no files of this host:
// the kernel's own, or another machine's.
func foreignFS(dir string) bool {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return true
	}
	switch int64(st.Type) & 0xffffffff {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.DEVPTS_SUPER_MAGIC,
		unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.BPF_FS_MAGIC, unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC,
		unix.BINFMTFS_MAGIC, unix.SELINUX_MAGIC, unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC,
		unix.V9FS_MAGIC, unix.CEPH_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC, unix.AUTOFS_SUPER_MAGIC, unix.RDTGROUP_SUPER_MAGIC:
		return true
	}
	return false
}

// processes lists what runs. What ends meanwhile is left out.
func (h *Host) processes() []proc {
	names, err := h.readDir("/proc")
	if err != nil {
		return nil
	}
	var all []proc
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		text, err := os.ReadFile(path.Join(h.Root, "proc", name, "status"))
		if err != nil {
			continue
		}
		p := proc{pid: pid}
		for line := range strings.Lines(string(text)) {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
			switch word {
			case "Name":
				p.name = strings.TrimSpace(rest)
			case "Uid":
				p.uids = numbers(rest)
			case "Gid":
				p.gids = append(p.gids, numbers(rest)...)
			case "Groups":
				p.gids = append(p.gids, numbers(rest)...)
			}
		}
		p.unit = unitOfCgroup(path.Join(h.Root, "proc", name, "cgroup"))
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b proc) int { return a.pid - b.pid })
	return all
}

func numbers(text string) []int {
	var all []int
	for word := range strings.FieldsSeq(text) {
		if n, err := strconv.Atoi(word); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// unitOfCgroup is the unit that a process runs in; "" where systemd has none for it.
func unitOfCgroup(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if part := strings.SplitN(strings.TrimSpace(line), ":", 3); len(part) == 3 && (part[1] == "" || part[1] == "name=systemd") {
			for name := range strings.SplitSeq(part[2], "/") {
				if strings.HasSuffix(name, ".service") {
					return name
				}
			}
		}
	}
	return ""
}
