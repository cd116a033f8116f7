package reconcilers

import (
	"context"
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
	case n.Type == Dir:
		k.say("home %s (it is there already, and left as it is)", quote(home))
		return k.w.lookHome(&k.to)
	case n.Type != Absent:
		return wrongAttr("home", "Home cannot be there", "%s is a %s", quote(home), n.Type)
	case system:
		k.say("home %s (not made)", quote(home))
		return nil
	}
	k.to.Home, k.to.MadeHome = true, at.real
	for _, up := range ancestors(at.real) {
		if n, err := k.w.look(up); err != nil {
			return err
		} else if n.Type == Absent {
			k.to.MadeUp = slices.Insert(k.to.MadeUp, 0, up)
		}
	}
	k.say("home %s (made)", quote(home))
	return nil
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

// homeHolds says whether the home that golem made is there, and what is in it that golem
// did not put there.
func (w *World) homeHolds(s userState) (there bool, strange []string, err error) {
	files, err := w.tree(s.MadeHome)
	if err != nil || len(files) == 0 {
		return false, nil, err
	}
	skel, err := w.skel()
	if err != nil {
		return true, nil, err
	}
	dir := path.Join(s.MadeHome, sshDir)
	keys := path.Join(dir, keysName)
	added := s.Keys != nil && !slices.ContainsFunc(keyLines(*s.Keys), func(key string) bool { return !slices.Contains(s.Added, key) })
	for _, f := range files[1:] {
		is, rel := skel[strings.TrimPrefix(f.Path, s.MadeHome)]
		n := f.Node
		if over, foreseen := w.over[f.Path]; foreseen {
			n = over
		}
		switch {
		case n.Type == Absent, strings.HasPrefix(path.Base(f.Path), tempPrefix):
		case rel && is.Type == n.Type && is.Hash == n.Hash && is.Target == n.Target:
		case f.Path == keys && added, f.Path == dir && s.MadeSSH && n.Type == Dir:
		default:
			strange = append(strange, quote(f.Path))
		}
	}
	return true, strange, nil
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

// newHome lists what a new home is made of, with what is in the skeleton.
func (w *World) newHome(s userState) ([]pkgFile, error) {
	var files []pkgFile
	for _, up := range s.MadeUp {
		files = append(files, pkgFile{up, Node{Type: Dir, Mode: defaultDirMode, UID: w.Host.UID, GID: w.Host.GID, Flags: Any}})
	}
	uid, gid := s.uid(), s.gid()
	files = append(files, pkgFile{s.MadeHome, Node{Type: Dir, Mode: homeMode(w), UID: uid, GID: gid, Flags: Any}})
	skel, err := w.tree(skelDir)
	if err != nil {
		return nil, err
	}
	for _, f := range skel {
		if f.Path == skelDir || f.Node.Type == Special || f.Node.Type == Absent {
			continue
		}
		n := f.Node
		n.UID, n.GID, n.Xattrs, n.Links = uid, gid, nil, 0
		if n.Type == File {
			n.local = path.Join(w.Host.Root, f.Path)
		}
		files = append(files, pkgFile{s.MadeHome + strings.TrimPrefix(f.Path, skelDir), n})
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

// dropHome removes a home that golem made, with what golem put there. What else is in it
// stays, and the home with it.
func (w *World) dropHome(ctx context.Context, store Store, step *state.Step, s userState) error {
	_, strange, err := w.homeHolds(s)
	if err != nil || len(strange) > 0 {
		return err
	}
	files, err := w.tree(s.MadeHome)
	if err != nil {
		return err
	}
	slices.Reverse(files) // what is below a directory before it
	for _, up := range slices.Backward(s.MadeUp) {
		if n, err := w.Host.observe(w.d, up, 0); err != nil {
			return err
		} else if n.Type == Dir && !w.Needed(up) {
			files = append(files, pkgFile{up, n})
		}
	}
	b := w.Host.newBatch(w.Blobs, keepWith(store, step), len(files))
	defer b.close()
	w.d.drop(s.MadeHome)
	for _, f := range files {
		if _, err := b.run(ctx, []*shift{{path: f.Path, from: f.Node, to: absent(), temp: tempName(), yields: true}}); err != nil {
			return err
		}
	}
	return nil
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
