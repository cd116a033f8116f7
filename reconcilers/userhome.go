package reconcilers

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"golem/state"
)

const (
	skelDir  = "/etc/skel"
	sshDir   = ".ssh"
	keysName = "authorized_keys"
)

// lookHome looks whether a user's home is there, and at the keys in it.
func (w *World) lookHome(s *userState) error {
	home := s.homeOf()
	if home == "" {
		return nil
	}
	at, err := w.resolve(home, true)
	if err != nil {
		return nil // where golem follows no link, it has nothing to do either
	}
	n, err := w.look(at.real)
	if err != nil || n.Type != Dir {
		return err
	}
	s.Home = true
	keys, err := w.keysPath(*s)
	if err != nil {
		return nil //nolint:nilerr // keys are refused there when some are declared
	}
	n, err = w.Host.observe(w.d, keys, maxEdit)
	if err == nil && n.Type == File && n.data != nil {
		text := string(n.data)
		s.Keys, s.KeysTime = &text, n.Mtime
	}
	return err
}

// home works out the home of a new user.
func (k *userWork) home(home string, system bool) error {
	at, err := k.w.resolve(home, true)
	if err != nil {
		return &AttrError{Attr: "home", Summary: "Home cannot be there", Err: err}
	}
	n, err := k.w.look(at.real)
	if err != nil {
		return err
	}
	switch {
	case n.Type == Dir && !system && k.w.onTheWay(at.real):
		k.to.MadeHome = at.real
		k.sayHome(home, homeTaken)
		return k.w.lookHome(&k.to)
	case n.Type == Dir:
		k.sayHome(home, homeFound)
		err := k.w.lookHome(&k.to)
		k.to.FoundKeys = &keysFound{home, k.to.Keys, k.to.KeysTime}
		return err
	case n.Type != Absent:
		return wrongAttr("home", "Home cannot be there", "%s is a %s", quote(home), n.Type)
	case system:
		k.say("home %s (not made)", quote(home))
		return nil
	}
	k.to.Home, k.to.MadeHome = true, at.real
	k.sayHome(home, homeMade)
	return nil
}

// sayHome tells of a new user's home, which the turns before may yet change.
func (k *userWork) sayHome(home, how string) {
	k.to.homeAt = len(k.said)
	k.say("home %s %s", quote(home), how)
}

// retold is how a person is told of a new user whose home is otherwise than was worked out.
func (s userState) retold(how string) string {
	said := slices.Clone(s.said)
	said[s.homeAt] = fmt.Sprintf("home %s %s", quote(s.homeOf()), how)
	return strings.Join(said, ", ")
}

// homeMode is the mode of a new home, as login.defs(5) has it.
func homeMode(w *World) int {
	if mode, err := strconv.ParseInt(w.setting("/etc/login.defs", "HOME_MODE", ""), 8, 32); err == nil {
		return int(mode) & 0o7777
	}
	umask, err := strconv.ParseInt(w.setting("/etc/login.defs", "UMASK", "022"), 8, 32)
	if err != nil {
		umask = 0o22
	}
	return 0o777 &^ int(umask)
}

// tree lists what is in a directory, everything below it before what is beside it, itself
// first. Nothing is followed.
func (w *World) tree(dir string) ([]pkgFile, error) {
	n, err := w.Host.observe(w.d, dir, 0)
	if err != nil || n.Type == Absent {
		return nil, err
	}
	n.Links = 0
	files := []pkgFile{{dir, n}}
	if n.Type != Dir {
		return files, nil
	}
	names, err := w.Host.readDir(dir)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		below, err := w.tree(path.Join(dir, name))
		if err != nil {
			return nil, err
		}
		files = append(files, below...)
	}
	return files, nil
}

// onTheWay says that golem made a directory on the way to something else.
func (w *World) onTheWay(dir string) bool {
	body, ok := w.ledger(dir)
	return ok && body.Made
}

// A homeStock is what is in a home that golem made.
type homeStock struct {
	there bool
	home  pkgFile
	// own is what golem put there with the user, a directory before what is in it.
	own []pkgFile
	// declared is what glyphs have in it when the run is over, and way are directories on
	// the way to that.
	declared, way []string
	// strange is what others have put there.
	strange []string
}

// stock tells whose what is in a user's home is. needed says what glyphs declare there.
func (w *World) stock(s userState, needed func(path string) bool) (homeStock, error) {
	files, err := w.tree(s.MadeHome)
	if err != nil || len(files) == 0 || files[0].Node.Type != Dir {
		return homeStock{}, err
	}
	skel, err := w.skel()
	if err != nil {
		return homeStock{}, err
	}
	stock := homeStock{there: true, home: files[0]}
	dir := path.Join(s.MadeHome, sshDir)
	keys := path.Join(dir, keysName)
	if at, err := w.resolve(s.homeOf(), true); err != nil || at.real != s.MadeHome { // it has another by now
		if s, err = w.athome(s, s.MadeHome); err != nil {
			return homeStock{}, err
		}
		s.MadeSSH = false
	}
	added := s.Keys != nil && !slices.ContainsFunc(keyLines(*s.Keys), func(key string) bool { return !slices.Contains(s.Added, key) })
	for _, f := range files[1:] {
		is, rel := skel[strings.TrimPrefix(f.Path, s.MadeHome)]
		rel = rel && !slices.Contains(s.Before, f.Path)
		n := f.Node
		if over, foreseen := w.over[f.Path]; foreseen {
			n = over
		}
		switch {
		case n.Type == Absent:
		case needed(f.Path) && n.Type != Dir, needed(f.Path) && (w.isSurface(f.Path) || len(w.heldAt(f.Path)) > 0):
			stock.declared = append(stock.declared, quote(f.Path))
		case needed(f.Path) && (rel || w.onTheWay(f.Path) || f.Path == dir && s.MadeSSH):
			stock.way = append(stock.way, f.Path)
		case strings.HasPrefix(path.Base(f.Path), tempPrefix),
			rel && is.Type == n.Type && is.Hash == n.Hash && is.Target == n.Target,
			f.Path == keys && added, f.Path == dir && s.MadeSSH && n.Type == Dir:
			stock.own = append(stock.own, f)
		default:
			stock.strange = append(stock.strange, quote(f.Path))
		}
	}
	return stock, nil
}

// skel is what a new home begins with, by its path below the home.
func (w *World) skel() (map[string]Node, error) {
	files, err := w.tree(skelDir)
	if err != nil {
		return nil, err
	}
	skel := map[string]Node{}
	for _, f := range files {
		if f.Path != skelDir && (f.Node.Type == Dir || f.Node.Type == File || f.Node.Type == Link) {
			skel[strings.TrimPrefix(f.Path, skelDir)] = f.Node
		}
	}
	return skel, nil
}

// newHome lists what a new home is made of, with what is in the skeleton; of one that was
// there on the way to something, what is not in it yet.
func (w *World) newHome(s userState) ([]pkgFile, error) {
	files := slices.Clone(s.Up)
	uid, gid := s.uid(), s.gid()
	if len(s.Hands) == 0 {
		files = append(files, pkgFile{s.MadeHome, Node{Type: Dir, Mode: homeMode(w), UID: uid, GID: gid, Flags: Any}})
	}
	skel, err := w.tree(skelDir)
	if err != nil {
		return nil, err
	}
	for _, f := range skel {
		if f.Path == skelDir || f.Node.Type == Special || f.Node.Type == Absent {
			continue
		}
		n := f.Node
		p := s.MadeHome + strings.TrimPrefix(f.Path, skelDir)
		if slices.Contains(s.Before, p) {
			continue
		}
		n.UID, n.GID, n.Xattrs, n.Links = uid, gid, nil, 0
		if n.Type == File {
			n.local = path.Join(w.Host.Root, f.Path)
		}
		files = append(files, pkgFile{p, n})
	}
	return files, nil
}

// makeHome makes a home.
func (w *World) makeHome(ctx context.Context, store Store, step *state.Step, s userState) error {
	files, err := w.newHome(s)
	if err != nil {
		return err
	}
	return w.putFiles(ctx, keepWith(store, step), files, func(string, Node) bool { return false })
}

// setting is a value in a file of NAME VALUE or NAME=VALUE lines.
func (w *World) setting(file, name, otherwise string) string {
	f, err := w.Host.openAt(file)
	if err != nil {
		return otherwise
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return otherwise
	}
	for line := range strings.Lines(string(text)) {
		word, value, _ := strings.Cut(strings.NewReplacer("=", " ", "\t", " ").Replace(strings.TrimSpace(line)), " ")
		if value = strings.Trim(strings.TrimSpace(value), `"`); word == name && value != "" {
			otherwise = value
		}
	}
	return otherwise
}

func (w *World) isDir(p string) bool {
	n, err := w.look(p)
	return err == nil && n.Type == Dir
}
