package reconcilers

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"golem/state"
)

// keysPath is the real path of a user's authorized_keys. A link on the way, in a place
// where the user could have planted it, is refused.
func (w *World) keysPath(s userState) (string, error) {
	at, err := w.resolve(s.homeOf(), true)
	if err != nil {
		return "", err
	}
	for _, p := range []string{path.Join(at.real, sshDir), path.Join(at.real, sshDir, keysName)} {
		n, err := w.look(p)
		if err != nil {
			return "", err
		}
		want := map[bool]Type{true: Dir, false: File}[path.Base(p) == sshDir]
		if n.Type != Absent && n.Type != want {
			return "", fmt.Errorf("%s is a %s, not a %s: golem writes no keys there", quote(p), n.Type, want)
		}
		if n.Type == File && n.Links > 1 {
			return "", fmt.Errorf("%s has other names (hard links): golem writes no keys there", quote(p))
		}
		if n.Type != Absent && n.UID != s.uid() && n.UID != w.Host.UID && n.UID != 0 {
			return "", fmt.Errorf("%s belongs to %s, not to the user or to root: golem writes no keys there", quote(p), w.Host.userName(n.UID))
		}
	}
	return path.Join(at.real, sshDir, keysName), nil
}

// lessKeys is what a user is in use by, without the keys that golem takes away with it.
func (w *World) lessKeys(use []string, now, to userState) []string {
	if now.Keys == nil || to.Keys != nil {
		return use
	}
	file, err := w.keysPath(now)
	if err != nil {
		return use
	}
	dir, _ := split(file)
	return slices.DeleteFunc(use, func(what string) bool {
		return what == quote(file) || what == quote(dir) && now.MadeSSH
	})
}

// keyLines are the lines of an authorized_keys.
func keyLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimRight(line, "\r\n"))
	}
	return lines
}

func hasKey(text *string, key string) bool {
	return text != nil && slices.Contains(keyLines(*text), key)
}

// withKey is a text with a line more at its end.
func withKey(text *string, key string) *string {
	next := key + "\n"
	if text != nil && *text != "" {
		next = strings.TrimSuffix(*text, "\n") + "\n" + next
	}
	return &next
}

// withoutKey is a text without the last line that is this.
func withoutKey(text *string, key string) *string {
	if text == nil {
		return nil
	}
	lines := strings.SplitAfter(*text, "\n")
	for i, line := range slices.Backward(lines) {
		if strings.TrimRight(line, "\r\n") == key && line != "" {
			next := strings.Join(slices.Delete(lines, i, i+1), "")
			return &next
		}
	}
	return text
}

// keys works out the keys that open a user.
func (k *userWork) keys() error {
	want := words(k.v.glyph.Attrs, "authorized_keys")
	var away []string
	for _, key := range k.to.Added {
		if !slices.Contains(want, key) {
			away = append(away, key)
		}
	}
	k.dropKeys(away)
	if len(want) == 0 {
		return nil
	}
	bad := func(err error) error {
		return &AttrError{Attr: "authorized_keys", Summary: "Keys cannot be there", Err: err}
	}
	if !k.to.Home {
		return bad(fmt.Errorf("the home of %s, %s, is not there", k.v.Resource, quote(field(k.to.Passwd, pwHome))))
	}
	file, err := k.w.keysPath(k.to)
	if err != nil {
		return bad(err)
	}
	if k.w.Needed(file) {
		return bad(fmt.Errorf("another glyph declares %s, too: write the keys in one place", quote(file)))
	}
	dir, _ := split(file)
	if n, err := k.w.look(dir); err != nil {
		return err
	} else if n.Type == Absent {
		k.to.MadeSSH = true
	}
	var added int
	for _, key := range want {
		if !hasKey(k.to.Keys, key) {
			k.to.Keys = withKey(k.to.Keys, key)
			added++
			if !slices.Contains(k.to.Added, key) {
				k.to.Added = append(k.to.Added, key)
			}
		}
	}
	if added > 0 {
		k.say("%s in %s", counted(added, "key"), quote(file))
		k.timeKeys()
	}
	return nil
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// dropKeys takes keys away that golem added.
func (k *userWork) dropKeys(keys []string) {
	var gone int
	for _, key := range slices.Clone(keys) {
		k.to.Added = slices.DeleteFunc(k.to.Added, func(a string) bool { return a == key })
		if hasKey(k.to.Keys, key) {
			k.to.Keys = withoutKey(k.to.Keys, key)
			gone++
		}
	}
	if gone == 0 {
		return
	}
	k.say("%s taken away", counted(gone, "key"))
	found := k.foundKeys().Keys
	if *k.to.Keys == "" && found == nil {
		k.to.Keys, k.to.MadeSSH = nil, false
	} else if found != nil && *k.to.Keys+"\n" == *found || found != nil && *k.to.Keys == *found+"\n" {
		text := *found // whose last line had no end
		k.to.Keys = &text
	}
	k.timeKeys()
}

// timeKeys gives the file its time back when its bytes are again those that were found.
func (k *userWork) timeKeys() {
	k.to.KeysTime = 0
	if found := k.foundKeys(); found.Keys != nil && k.to.Keys != nil && *found.Keys == *k.to.Keys {
		k.to.KeysTime = found.Time
	}
}

// putKeys makes the authorized_keys in a user's home what it is to be: keys that came or
// went beside golem's stay or stay away.
func (w *World) putKeys(ctx context.Context, store Store, step *state.Step, now userState, e keysEdit) error {
	text := mergeKeys(e.from, e.to, now.Keys)
	unmakes := text == nil && e.unmakes
	if sameKeys(text, now.Keys) && !unmakes && (text == nil || e.time == 0 || e.time == now.KeysTime) {
		return nil
	}
	file, err := w.keysPath(now)
	if err != nil {
		return err
	}
	from, err := w.Host.observe(w.d, file, maxEdit)
	if err != nil {
		return err
	}
	dir, _ := split(file)
	s := &shift{path: file, from: from, to: absent(), temp: tempPrefix + keysName}
	b := w.Host.newBatch(w.Blobs, keepWith(store, step), 1)
	defer b.close()
	if text != nil {
		s.to = fileNode([]byte(*text))
		s.to.Mode, s.to.UID, s.to.GID = 0o600, now.uid(), now.gid()
		if from.Type == File {
			s.to = withContent(from, []byte(*text))
		}
		s.to.Mtime = 0
		if sameKeys(text, e.to) {
			s.to.Mtime = e.time
		}
		s.parents = []parent{{dir, Node{Type: Dir, Mode: 0o700, UID: now.uid(), GID: now.gid(), Flags: Any}}}
		if n, err := w.look(dir); err != nil {
			return err
		} else if n.Type == Dir {
			s.parents = nil
		}
	}
	if n, err := w.look(dir); err != nil {
		return err
	} else if n.Type == Dir {
		if err := b.clearStale(s.path, s.temp); err != nil {
			return err
		}
	}
	if _, err := b.run(ctx, []*shift{s}); err != nil || !unmakes {
		return err
	}
	return b.unmake([]string{dir})
}

func sameKeys(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// mergeKeys is what is there with what a motion changes.
func mergeKeys(from, to, now *string) *string {
	if sameKeys(from, now) {
		return to
	}
	text := now
	if from != nil {
		for _, key := range keyLines(*from) {
			if !hasKey(to, key) {
				text = withoutKey(text, key)
			}
		}
	}
	if to != nil {
		for _, key := range keyLines(*to) {
			if !hasKey(from, key) && !hasKey(text, key) {
				text = withKey(text, key)
			}
		}
	}
	if text != nil && *text == "" && to == nil {
		return nil
	}
	return text
}
