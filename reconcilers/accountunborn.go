package reconcilers

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"golem/scrolls"
)

// An owner may be a user that the same run makes first. Until it is there its number is
// not known: a plan has a number below Any in its place, another for each name.

// unborn are the users and groups that a run is to make, by the number that stands for
// theirs.
type unborn struct {
	ids   map[string]int // by sort and name
	names map[int]string
}

// standIn is the number that stands for a user or group until it is made.
func (h *Host) standIn(sort, name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unborn.ids == nil {
		h.unborn = unborn{ids: map[string]int{}, names: map[int]string{}}
	}
	key := RecordKey(sort, name)
	id, ok := h.unborn.ids[key]
	if !ok {
		id = Any - 1 - len(h.unborn.ids)
		h.unborn.ids[key], h.unborn.names[id] = id, name
	}
	return id
}

// unbornName is whom a number stands for; "" for a number that is one.
func (h *Host) unbornName(id int) string {
	if id >= 0 {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unborn.names[id]
}

// madeLater marks a name for people, where the number behind it is not known yet.
func madeLater(name string, id int) string {
	if id < Any {
		return name + " (made in this run)"
	}
	return name
}

// userFor is the number of a user that a glyph names: of one that is there, or one that
// an earlier glyph of the run makes.
func (w *World) userFor(g *scrolls.Glyph, attr, name string) (int, error) {
	uid, err := w.Host.userID(name)
	if err == nil {
		return uid, w.goes(g, attr, "user", name)
	}
	maker := w.Declares(userSort, name)
	if err := w.born(g, attr, "user", name, maker); err != nil || maker != nil && !w.Acts {
		return w.Host.standIn(userSort, name), err
	}
	return 0, unknown(attr, "user", err)
}

// groupFor is userFor of a group, which a user's glyph may make, too.
func (w *World) groupFor(g *scrolls.Glyph, attr, name string) (int, error) {
	gid, err := w.Host.groupID(name)
	if err == nil {
		return gid, w.goes(g, attr, "group", name)
	}
	maker := w.Declares(groupSort, name)
	if maker == nil {
		if maker = w.Declares(userSort, name); maker != nil && str(maker.Attrs, "group") != "" {
			maker = nil
		}
	}
	if err := w.born(g, attr, "group", name, maker); err != nil || maker != nil && !w.Acts {
		return w.Host.standIn(groupSort, name), err
	}
	return 0, unknown(attr, "group", err)
}

func unknown(attr, what string, err error) error {
	summary := map[bool]string{true: "Unknown owner", false: "Unknown " + what}[attr == "owner"]
	return &AttrError{Attr: attr, Summary: summary, Err: err}
}

// goes refuses a user or group that golem made and that no glyph declares when the run is
// over: it would go, or be left to nobody.
func (w *World) goes(g *scrolls.Glyph, attr, what, name string) error {
	if w.Acts || !w.Placed || w.Declares(userSort, name) != nil && what == "user" || w.Declares(groupSort, name) != nil && what == "group" {
		return nil
	}
	made := w.made(what, name)
	if user := w.made(userSort, name); what == "group" && made == nil && user != nil && w.Declares(userSort, name) == nil && w.ownGroup(name) {
		made = user // with which its group goes
	}
	if made == nil || made.OnUndeclare == "leave" {
		return nil
	}
	return &AttrError{
		Glyph: g, Attr: attr, Summary: "It goes in this run",
		Err: fmt.Errorf("golem made the %s %s, and no glyph declares it any more. Declare %s again, or give it up with on_undeclare = \"leave\" before", what, name, made.Key),
	}
}

// made is the glyph on record of a user or group that golem made; nil for none.
func (w *World) made(sort, name string) *scrolls.Glyph {
	rec := w.Record(sort, name)
	if rec == nil || len(rec.Layers) == 0 || IsUnknown(rec.Found) {
		return nil
	}
	var found struct {
		There bool `json:"there"`
	}
	if json.Unmarshal(rec.Found, &found) != nil || found.There {
		return nil
	}
	return rec.Layers[0].Glyph
}

// ownGroup says whether a user's record has a group of its own name, which came with it.
func (w *World) ownGroup(user string) bool {
	var left, found userState
	rec := w.Record(userSort, user)
	return rec != nil && json.Unmarshal(rec.After, &left) == nil && json.Unmarshal(rec.Found, &found) == nil && left.Own != "" && found.Own == ""
}

// born refuses a user or group that is made only after the glyph that names it.
func (w *World) born(g *scrolls.Glyph, attr, what, name string, maker *scrolls.Glyph) error {
	if maker == nil || w.Acts || w.Before(maker.Key, g.Key) {
		return nil
	}
	return &AttrError{
		Glyph: g, Attr: attr, Other: maker, Summary: "Made too late",
		Err: fmt.Errorf("no %s is called %q here yet, and %s, which makes it, is enacted only after this. "+
			"What is written first is done first: move %s up, above this", what, name, maker.Key, maker.Key),
	}
}

// tooEarly refuses a glyph that needs a user or group, or what is at a path, where only a
// later glyph of the scroll makes it. paths are by attribute. What lacks otherwise is told by
// who asks.
func (w *World) tooEarly(g *scrolls.Glyph, attr, name string, paths map[string]string) error {
	if w.Acts {
		return nil
	}
	var late *AttrError
	if name != "" {
		ask := w.userFor
		if attr == "group" {
			ask = w.groupFor
		}
		if _, err := ask(g, attr, name); errors.As(err, &late) && late.Other != nil {
			return err
		}
	}
	for _, attr := range slices.Sorted(maps.Keys(paths)) {
		if err := w.pathTooEarly(g, attr, paths[attr]); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) pathTooEarly(g *scrolls.Glyph, attr, p string) error {
	if !path.IsAbs(p) || path.Clean(p) != p {
		return nil
	}
	at, err := w.resolve(p, true)
	if err != nil {
		return nil //nolint:nilerr // who asks tells
	}
	if n, err := w.look(at.real); err != nil || n.Type != Absent {
		return err
	}
	for _, key := range w.Claims(at.real) {
		if !w.Before(g.Key, key) {
			continue
		}
		return &AttrError{
			Glyph: g, Attr: attr, Other: w.InForce(key), Summary: "Made too late",
			Err: fmt.Errorf("nothing is at %s yet, and %s, which makes it, is enacted only after this. "+
				"What is written first is done first: move %s up, above this", quote(at.real), key, key),
		}
	}
	return nil
}
