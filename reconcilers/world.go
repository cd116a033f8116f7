package reconcilers

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"golem/scrolls"
	"golem/state"
)

// A World is the host as a run sees it: what is there, and over that what the run
// has already worked out it will leave. A plan fills the overlay as it goes; an
// apply, which acts, has none and always sees what is there.
type World struct {
	Host   *Host
	Blobs  Blobs
	Ledger map[string]*state.Entry // by "path:" + resource
	// Needed says whether something will be declared at or beneath a path when the
	// run is over, by any lineage.
	Needed func(path string) bool
	// Where is the resource that the journal has a key of this lineage on; "" for none.
	Where func(key scrolls.Key) string
	// Declares is the glyph that will be in force on a resource that has but one, when the
	// run is over, of any lineage; nil for none.
	Declares func(sort, resource string) *scrolls.Glyph
	// Placed says that all glyphs have their places, and what is asked above is known.
	Placed bool
	// Claims lists the glyphs that will be layers on a real path when the run is over, of
	// any lineage.
	Claims func(path string) []scrolls.Key
	// InForce is the glyph that a key stands for when the run is over, of any lineage; nil
	// for none.
	InForce func(key scrolls.Key) *scrolls.Glyph
	// Before says whether the scroll has one key's glyph before another's.
	Before func(key, other scrolls.Key) bool
	// Records are those of the journal, by RecordKey, as the run so far leaves them.
	Records map[string]*state.Record
	// TakenBack are the steps that a rollback undoes, oldest first: what ran before them and
	// was stopped by them is started again.
	TakenBack []*state.Step
	// Acts says that the turns are enacted as they are worked out: each look is at the
	// host itself, and nothing is taken for done.
	Acts bool
	// Stirred says, of a world that a plan is made in, that turns before this one change the
	// host: what is not there now may be by then.
	Stirred bool

	// Loose says, of such a world, that programs run before this turn that may let go of what
	// they hold, like a port.
	Loose bool

	// Timeout bounds one external command.
	Timeout time.Duration

	over map[string]Node
	seen map[string]Node // lstat results, without content
	desk *desk
	// dirOK remembers whether golem may change names in a directory.
	dirOK map[string]error
	d     *dirs
}

// NewWorld makes a world with nothing worked out yet.
func NewWorld(h *Host, blobs Blobs) *World {
	if blobs == nil {
		blobs = noBlobs{}
	}
	return &World{
		Host: h, Blobs: &turnstile{blobs: blobs}, Ledger: map[string]*state.Entry{},
		Needed: func(string) bool { return false }, Where: func(scrolls.Key) string { return "" },
		Declares: func(string, string) *scrolls.Glyph { return nil },
		Before:   func(key, other scrolls.Key) bool { return false },
		Claims:   func(string) []scrolls.Key { return nil },
		InForce:  func(scrolls.Key) *scrolls.Glyph { return nil }, Timeout: scrolls.BuiltinPolicy.Timeout,
		over: map[string]Node{}, seen: map[string]Node{},
		dirOK: map[string]error{}, d: h.newDirs(), desk: &desk{on: map[string]any{}},
	}
}

// A desk is where the reconcilers keep what they looked up and worked out, shared by
// a world and its forks.
type desk struct {
	mu sync.Mutex
	on map[string]any
}

// keepAt returns what lies on the world's desk under a name, and puts it there first
// if nothing does. What is returned has to see to its own locking.
func keepAt[T any](w *World, name string, first func() T) T {
	w.desk.mu.Lock()
	defer w.desk.mu.Unlock()
	if is, ok := w.desk.on[name]; ok {
		return is.(T)
	}
	is := first()
	w.desk.on[name] = is
	return is
}

// Fork returns a world with the same overlay and ledger and directories of its own, for
// reading beside others.
func (w *World) Fork() *World {
	own := *w
	own.seen, own.dirOK, own.d = map[string]Node{}, map[string]error{}, w.Host.newDirs()
	return &own
}

// Predict notes what a turn leaves, for what is worked out after it.
func (w *World) Predict(t *Turn) {
	if n, ok := t.Leaves.(Node); ok && t.Acts {
		w.predict(t.Resource, n)
	}
}

// Close lets go of the directories a world holds open.
func (w *World) Close() { w.d.close() }

// predict notes what the run will leave at a path.
func (w *World) predict(p string, n Node) {
	w.over[p] = n
}

// Record is what the journal holds of a resource; nil for nothing.
func (w *World) Record(sort, resource string) *state.Record {
	return w.Records[RecordKey(sort, resource)]
}

// isSurface says whether a path has a record of its own, so that its metadata is
// remembered there.
func (w *World) isSurface(path string) bool { return w.Record(PathSort, path) != nil }

// forget drops what was seen and worked out, for a world that acts between two looks.
func (w *World) forget() {
	clear(w.seen)
	clear(w.over)
	clear(w.dirOK)
	w.d.close()
	w.desk.mu.Lock()
	defer w.desk.mu.Unlock()
	clear(w.desk.on)
}

// Forget has everything about the host looked up again: time goes by.
func (w *World) Forget() { w.forget() }

// look returns type, owner, mode and link text of a path, without its content.
func (w *World) look(p string) (Node, error) {
	if n, ok := w.over[p]; ok {
		return n, nil
	}
	if n, ok := w.seen[p]; ok {
		return n, nil
	}
	n, err := w.lstat(p)
	if err == nil {
		w.seen[p] = n
	}
	return n, err
}

// lstat is type, owner and mode of what stands at a real path, and a link's text. It does not
// see what this run leaves at the path itself, but that its directory goes or comes.
func (w *World) lstat(p string) (Node, error) {
	var st unix.Stat_t
	var err error
	if p == "/" {
		err = unix.Fstat(w.Host.rootfd, &st)
		return typed(&st), err
	}
	dir, name := split(p)
	if up, ok := w.over[dir]; ok && up.Type != Dir {
		return absent(), nil // its directory goes, or comes, in this run
	}
	fd, err := w.d.fd(dir)
	if err == nil {
		err = unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return absent(), nil
	}
	if err != nil {
		return Node{}, fmt.Errorf("look at %s: %w", quote(p), err)
	}
	n := typed(&st)
	if n.Type == Link {
		target, err := readlinkat(fd, name)
		if err != nil {
			return Node{}, fmt.Errorf("read link %s: %w", quote(p), err)
		}
		n.Target = Bytes(target)
	}
	return n, nil
}

func typed(st *unix.Stat_t) Node {
	n := statNode(st)
	n.Size = st.Size
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		n.Type = File
	case unix.S_IFDIR:
		n.Type = Dir
	case unix.S_IFLNK:
		n.Type = Link
	default:
		n.Type = Special
	}
	return n
}

// names lists what will be in a directory: what is there, less and more what the run
// works out.
func (w *World) names(dir string) ([]string, error) {
	present, err := w.Host.readDir(dir)
	if err != nil {
		return nil, err
	}
	var left []string
	for _, name := range present {
		if n, ok := w.over[path.Join(dir, name)]; ok && n.Type == Absent {
			continue
		}
		left = append(left, name)
	}
	return left, nil
}

// maxLinks is how many links one path may lead through, as in the kernel.
const maxLinks = 40

// A place is where a path leads.
type place struct {
	real string
	// via are the links followed on the way, as they are spelled.
	via []string
	// owners are the users whose files may be touched there; nil for all.
	owners map[int]bool
}

// resolve follows a path to what it names, against the links as this run leaves
// them. The last name is followed only if last is set. A path that does not exist
// resolves as far as it can and is spelled out after that.
//
// Nothing is followed below a directory that a third user may write to, and nothing
// is resolved at all below one that everybody may write to without the sticky bit
// (design: "Unsafe paths"): whoever may plant a link there must not steer golem.
func (w *World) resolve(p string, last bool) (place, error) {
	at := place{real: "/"}
	todo := steps(relative(p))
	for links := 0; len(todo) > 0; {
		if err := w.enter(&at); err != nil {
			return place{}, err
		}
		name := todo[0]
		todo = todo[1:]
		if name == ".." {
			at.real, _ = split(at.real)
			if at.real == "" {
				at.real = "/"
			}
			continue
		}
		next := path.Join(at.real, name)
		n, err := w.look(next)
		if err != nil {
			return place{}, err
		}
		if n.Type != Link || len(todo) == 0 && !last {
			at.real = next
			continue
		}
		if links++; links > maxLinks {
			return place{}, fmt.Errorf("resolve %s: too many links", quote(p))
		}
		if at.owners != nil {
			return place{}, fmt.Errorf("resolve %s: %s is a link in a directory that other users may write to; golem follows none there", quote(p), quote(next))
		}
		at.via = append(at.via, next)
		target := string(n.Target)
		todo = append(cleanSteps(target), todo...)
		if strings.HasPrefix(target, "/") {
			at.real = "/"
		}
	}
	return at, nil
}

// cleanSteps splits a link's text, which may hold double slashes and dots.
func cleanSteps(target string) []string {
	var names []string
	for _, name := range strings.Split(target, "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return names
}

// enter checks the directory that a resolution is about to look into.
func (w *World) enter(at *place) error {
	n, err := w.look(at.real)
	if err != nil {
		return err
	}
	if n.Type != Dir || n.Mode == Any {
		return nil
	}
	const others, group, sticky = 0o002, 0o020, 0o1000
	if n.Mode&others != 0 && n.Mode&sticky == 0 {
		return fmt.Errorf("%s is unsafe: everybody may write to it and rename what is in it (mode %04o)", quote(at.real), n.Mode)
	}
	trusted := n.UID == 0 || n.UID == w.Host.UID || n.UID == Any
	shared := n.Mode&group != 0 && n.GID != 0 && n.GID != w.Host.GID && n.GID != Any
	if trusted && !shared && n.Mode&others == 0 {
		return nil
	}
	if at.owners == nil {
		at.owners = map[int]bool{0: true, w.Host.UID: true}
	}
	at.owners[n.UID] = true
	return nil
}

// mayTouch says whether what stands at a place is anybody's that golem may touch.
func (w *World) mayTouch(at place) error {
	if at.owners == nil || w.isSurface(at.real) {
		return nil // what golem has a record of is golem's doing, whoever owns it now
	}
	n, err := w.look(at.real)
	if err != nil || n.Type == Absent || at.owners[n.UID] || n.UID == Any {
		return err
	}
	return fmt.Errorf("%s belongs to %s, and lies in a directory that others may write to; golem touches nothing of a third user there",
		quote(at.real), w.Host.userName(n.UID))
}
