package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golem/scrolls"
)

// A userWork works out what a declared user is to be.
type userWork struct {
	w    *World
	v    view[userState]
	to   userState
	said []string // what changes, for people
}

func newUserWork(w *World, v view[userState]) *userWork {
	k := &userWork{w: w, v: v, to: v.now}
	k.to.userNotes, k.to.Moved = v.now.clone(), nil
	return k
}

func (k *userWork) say(format string, args ...any) {
	k.said = append(k.said, fmt.Sprintf(format, args...))
}

// want is what a declared glyph makes of a user.
func (u users) want(_ context.Context, w *World, v view[userState]) (goal[userState], error) {
	k := newUserWork(w, v)
	steps := []func() error{k.refuse, k.change, k.supplementary, k.keys}
	if !v.now.There {
		steps[1] = k.create
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return goal[userState]{}, err
		}
	}
	k.to.said = k.said
	g := goal[userState]{to: k.to, effect: EffectWrite, reason: strings.Join(k.said, ", ")}
	if len(k.said) == 0 {
		g.reason = "it is so already; nothing to change"
	}
	return g, nil
}

// clone copies the notes, so that they can be changed.
func (n userNotes) clone() userNotes {
	n.Set, n.Joined, n.Left, n.Added = slices.Clone(n.Set), slices.Clone(n.Joined), slices.Clone(n.Left), slices.Clone(n.Added)
	return n
}

func wrongAttr(attr, summary, format string, args ...any) error {
	return &AttrError{Attr: attr, Summary: summary, Err: fmt.Errorf(format, args...)}
}

// refuse says what of the host is against the glyph.
func (k *userWork) refuse() error {
	a, name := k.v.glyph.Attrs, k.v.Resource
	uid, given := idAttr(a, "uid")
	if k.v.now.There {
		if given && uid != k.v.now.uid() {
			return wrongAttr("uid", "User has another number", "the user %s is there with the uid %d; golem renumbers nobody, since files would keep the old number. "+
				"Write uid = %d, or leave it out", name, k.v.now.uid(), k.v.now.uid())
		}
		return nil
	}
	if k.w.Host.Live() {
		if id, ok := k.w.Host.askNSS("passwd", name); ok {
			return wrongAttr("name", "User is not local", "the user %s (uid %d) comes from the network, not from /etc/passwd; golem keeps local users only", name, id)
		}
	}
	if !given {
		return nil
	}
	all, err := k.w.accounts()
	if err != nil {
		return err
	}
	other := all.byID(passwdFile, uid)
	if other == "" && k.w.Host.Live() {
		other = k.w.Host.ownerOf("passwd", uid)
	}
	if other != "" && other != name {
		return wrongAttr("uid", "Number is taken", "the uid %d is that of the user %s", uid, other)
	}
	return nil
}

// idAttr is a number that a glyph asks for.
func idAttr(a scrolls.Attrs, attr string) (int, bool) {
	text := fmt.Sprint(a[attr])
	id, err := strconv.Atoi(text)
	return id, err == nil && a[attr] != nil
}

// create works out a new user.
func (k *userWork) create() error {
	a, name := k.v.glyph.Attrs, k.v.Resource
	system := a["system"] == true
	all, err := k.w.accounts()
	if err != nil {
		return err
	}
	uid, given := idAttr(a, "uid")
	switch {
	case given:
	case k.v.left.There && all.byID(passwdFile, k.v.left.uid()) == "":
		uid = k.v.left.uid() // it was deleted, and its files are still there
	case !k.w.Acts:
		uid = k.w.Host.standIn(userSort, name)
	default:
		if uid, err = k.w.freeID(all, passwdFile, system); err != nil {
			return err
		}
	}
	gid, group, err := k.primary(all, uid)
	if err != nil {
		return err
	}
	home, shell := k.defaultOf("home"), k.defaultOf("shell")
	for attr, to := range map[string]*string{"home": &home, "shell": &shell} {
		if text, ok := a[attr].(string); ok {
			*to = text
		}
	}
	for _, attr := range []string{"comment", "shell"} {
		if _, ok := a[attr]; ok {
			k.to.Set = append(k.to.Set, attr)
		}
	}
	k.to.There, k.to.Group = true, group
	k.to.Passwd = strings.Join([]string{name, "x", strconv.Itoa(uid), strconv.Itoa(gid), str(a, "comment"), home, shell}, ":")
	if k.to.Shadow == "" && all[shadowFile] != nil {
		k.to.Shadow = name + ":!:" + today() + "::::::"
	}
	k.say("a new %s", map[bool]string{true: "system user", false: "user"}[system])
	if uid >= 0 {
		k.say("uid %d", uid)
	}
	k.say("group %s", madeLater(group, gid))
	k.say("shell %s", shell)
	if err := k.home(home, system); err != nil {
		return err
	}
	return k.secrets()
}

// primary is the primary group of a new user: the declared one, or one of its own name,
// which is made with it where there is none.
func (k *userWork) primary(all accounts, uid int) (gid int, group string, err error) {
	name := k.v.Resource
	if text, ok := k.v.glyph.Attrs["group"].(string); ok {
		gid, err := k.w.groupFor(k.v.glyph, "group", text)
		if err != nil {
			return 0, "", err
		}
		if n, err := strconv.Atoi(text); err == nil {
			if text = all.byID(groupFile, n); text == "" {
				return 0, "", wrongAttr("group", "Unknown group", "no group has the gid %d here", n)
			}
		}
		return gid, text, nil
	}
	if maker := k.w.Declares(groupSort, name); maker != nil || k.to.Own != "" {
		gid, err := k.w.groupFor(k.v.glyph, "name", name)
		return gid, name, err
	}
	gid = k.w.Host.standIn(groupSort, name)
	if uid >= 0 {
		if gid = uid; all.byID(groupFile, uid) != "" {
			if gid, err = k.w.freeID(all, groupFile, k.v.glyph.Attrs["system"] == true); err != nil {
				return 0, "", err
			}
		}
	}
	k.to.Own = fmt.Sprintf("%s:x:%d:", name, gid)
	if all[gshadowFile] != nil && k.to.OwnShadow == "" {
		k.to.OwnShadow = name + ":!::"
	}
	return gid, name, nil
}

// change works out what becomes of a user that is there.
func (k *userWork) change() error {
	a := k.v.glyph.Attrs
	for _, attr := range []string{"comment", "home", "shell"} {
		text, ok := a[attr].(string)
		switch {
		case !ok:
			k.unset(attr)
		case text != k.get(attr):
			k.set(attr, text)
		}
	}
	if err := k.changeGroup(); err != nil {
		return err
	}
	if err := k.rehome(); err != nil {
		return err
	}
	if home := k.to.homeOf(); k.to.MadeHome != "" && k.to.MadeHome == home && !k.to.Home {
		k.to.Home, k.to.homeAt = true, len(k.said)
		k.say("its home %s is made anew", quote(home))
	}
	return k.secrets()
}

func (k *userWork) changeGroup() error {
	text, ok := k.v.glyph.Attrs["group"].(string)
	if !ok {
		k.unset("group")
		return nil
	}
	gid, err := k.w.groupFor(k.v.glyph, "group", text)
	if err != nil || gid == k.to.gid() {
		return err
	}
	k.set("group", strconv.Itoa(gid))
	return nil
}

// supplementary works out the groups that list the user.
func (k *userWork) supplementary() error {
	a := k.v.glyph.Attrs
	names := words(a, "groups")
	for _, group := range names {
		if _, err := k.w.groupFor(k.v.glyph, "groups", group); err != nil {
			return err
		}
	}
	var away []string
	for _, group := range k.to.Joined {
		if !slices.Contains(names, group) {
			away = append(away, group)
		}
	}
	k.leaveGroups(away)
	exclusive := a["exclusive"] == true
	var again []string
	for _, group := range k.to.Left {
		if !exclusive || slices.Contains(names, group) {
			again = append(again, group)
		}
	}
	k.rejoin(again)
	for _, group := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if !k.to.in(group) {
			k.join(membership{Group: group, At: lastPlace, AtShadow: lastPlace})
			k.to.Joined = append(k.to.Joined, group)
			k.say("joins %s", madeLater(group, k.idOfGroup(group)))
		}
	}
	if !exclusive {
		return nil
	}
	for _, m := range slices.Clone(k.to.In) {
		if !slices.Contains(names, m.Group) {
			k.part(m.Group)
			k.to.Left = append(k.to.Left, m.Group)
			k.to.LeftAt = maps.Clone(k.to.LeftAt)
			if k.to.LeftAt == nil {
				k.to.LeftAt = map[string]membership{}
			}
			k.to.LeftAt[m.Group] = k.w.amongThoseWhoLeft(k.v.Resource, m)
			k.say("leaves %s", m.Group)
		}
	}
	return nil
}

func (k *userWork) idOfGroup(name string) int {
	if id, ok := k.w.Host.names().groups[name]; ok {
		return id
	}
	return k.w.Host.standIn(groupSort, name)
}

func (k *userWork) join(m membership) {
	k.to.In = append(slices.Clone(k.to.In), m)
	slices.SortFunc(k.to.In, func(a, b membership) int { return strings.Compare(a.Group, b.Group) })
}

func (k *userWork) part(group string) {
	k.to.In = slices.DeleteFunc(slices.Clone(k.to.In), func(m membership) bool { return m.Group == group })
}

// leaveGroups takes the user out of groups that golem put it into.
func (k *userWork) leaveGroups(groups []string) {
	for _, group := range slices.Clone(groups) {
		if k.to.in(group) {
			k.part(group)
			k.say("leaves %s", group)
		}
		k.to.Joined = slices.DeleteFunc(k.to.Joined, func(g string) bool { return g == group })
	}
}

// amongThoseWhoLeft is a user's place in a group, with those beside whom it stood before
// golem took them out, too.
func (w *World) amongThoseWhoLeft(name string, m membership) membership {
	for _, key := range slices.Sorted(maps.Keys(w.Records)) {
		rec := w.Records[key]
		var other userState
		if rec == nil || rec.Sort != userSort || rec.Resource == name || json.Unmarshal(rec.After, &other) != nil {
			continue
		}
		if stood, left := other.LeftAt[m.Group]; left {
			m.At, m.Among = withNeighbour(m.At, m.Among, name, rec.Resource, stood.Among)
			m.AtShadow, m.AmongShadow = withNeighbour(m.AtShadow, m.AmongShadow, name, rec.Resource, stood.AmongShadow)
		}
	}
	return m
}

// withNeighbour is a place in a list, and the list, with one more of another list that both
// stood in.
func withNeighbour(at int, list []string, name, other string, stood []string) (int, []string) {
	i := slices.Index(stood, other)
	if i < 0 || !slices.Contains(stood, name) || slices.Contains(list, other) {
		return at, list
	}
	list = slices.Insert(slices.Clone(list), placeAmong(list, other, stood, i), other)
	return slices.Index(list, name), list
}

// rejoin puts the user back into groups that golem took it out of, if they are still there.
func (k *userWork) rejoin(groups []string) {
	for _, group := range slices.Clone(groups) {
		k.to.Left = slices.DeleteFunc(k.to.Left, func(g string) bool { return g == group })
		stood, known := k.to.LeftAt[group]
		k.to.LeftAt = maps.Clone(k.to.LeftAt)
		delete(k.to.LeftAt, group)
		i := slices.IndexFunc(k.v.found.In, func(m membership) bool { return m.Group == group })
		if _, there := k.w.Host.names().groups[group]; !there || k.to.in(group) {
			continue
		}
		m := membership{Group: group, At: lastPlace, AtShadow: lastPlace}
		if i >= 0 {
			m = k.v.found.In[i]
		}
		if known {
			m = stood
		}
		k.join(m)
		k.say("joins %s again", group)
	}
}
