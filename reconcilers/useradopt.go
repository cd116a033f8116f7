package reconcilers

import (
	"context"
	"encoding/json"
	"strconv"

	"golem/scrolls"
)

// adoptUser declares a user as it is, but for its secrets: what is not written is not
// compared.
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
	if s.Group != "" {
		a["group"] = s.Group
	}
	if comment := field(s.Passwd, pwComment); comment != "" {
		a["comment"] = comment
	}
	return a, nil
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
