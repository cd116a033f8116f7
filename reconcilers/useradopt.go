package reconcilers

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"golem/scrolls"
)

// adoptUser declares a user as it is, with the keys that open it, but without its password:
// what is not written is not compared.
func adoptUser(ctx context.Context, w *World, name string) (scrolls.Attrs, error) {
	s, err := users{}.look(ctx, w, name)
	if err != nil {
		return nil, err
	}
	if !s.There {
		return nil, &AdoptError{"user", name, "there is no such user in " + passwdFile}
	}
	a := scrolls.Attrs{
		"name": name, "uid": json.Number(strconv.Itoa(s.uid())), "home": field(s.Passwd, pwHome), "shell": field(s.Passwd, pwShell),
		"groups": listOf(s.groups()),
	}
	if s.Group != "" && s.Group != name {
		a["group"] = s.Group
	}
	if comment := field(s.Passwd, pwComment); comment != "" {
		a["comment"] = comment
	}
	for _, attr := range []string{"home", "shell"} {
		if str(a, attr) == "" {
			delete(a, attr) // an empty field
		}
	}
	if len(s.In) == 0 {
		delete(a, "groups")
	}
	s.adoptShadow(a)
	return a, w.adoptKeys(s, a)
}

// adoptShadow adds what stands in shadow(5) and is no secret. An account without a password
// has none to lock, and root's is never locked by golem.
func (s userState) adoptShadow(a scrolls.Attrs) {
	if field(s.Passwd, 0) == "root" {
		return
	}
	if hash := s.get("password"); strings.HasPrefix(hash, "!") && passwordHash.MatchString(strings.TrimLeft(hash, "!")) {
		a["locked"] = true
	}
	if days := s.get("expires"); days != "" && expiryText(days) != never {
		a["expires"] = expiryText(days)
	}
}

// adoptKeys adds the keys that open a user, as far as golem could have put them there: a file
// that it would write no keys to is left out.
func (w *World) adoptKeys(s userState, a scrolls.Attrs) error {
	if s.Keys == nil || !s.Home {
		return nil
	}
	if _, err := w.keysPath(s); err != nil {
		return nil // it is left as it is, and not declared
	}
	var keys []string
	for _, line := range keyLines(*s.Keys) {
		if publicKey.MatchString(line) && !strings.HasPrefix(strings.TrimLeft(line, " \t"), "#") && scrolls.Spellable(line) && !slices.Contains(keys, line) {
			keys = append(keys, line)
		}
	}
	if len(keys) > 0 {
		a["authorized_keys"] = listOf(keys)
	}
	return nil
}

// adoptGroup declares a group as it is.
func adoptGroup(ctx context.Context, w *World, name string) (scrolls.Attrs, error) {
	s, err := groups{}.look(ctx, w, name)
	if err != nil {
		return nil, err
	}
	if !s.There {
		return nil, &AdoptError{"group", name, "there is no such group in " + groupFile}
	}
	return scrolls.Attrs{"name": name, "gid": json.Number(strconv.Itoa(s.gid()))}, nil
}
