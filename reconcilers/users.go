package reconcilers

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"golem/scrolls"
)

// userSort is the sort of local users; a resource is a login name.
const userSort = "user"

// users keeps local users: their lines in the account files, the groups they are in, their
// home, and keys that open them.
type users struct{}

var (
	soleUsers  = sole[userState]{sort: userSort, own: users{}}
	soleGroups = sole[groupState]{sort: groupSort, own: groups{}}
)

// A userState is all that golem knows of a user. Lines are as they stand in the files.
type userState struct {
	There  bool     `json:"there"`
	Passwd string   `json:"passwd,omitempty"`
	Shadow string   `json:"shadow,omitempty"`
	SubUID []string `json:"subuid,omitempty"`
	SubGID []string `json:"subgid,omitempty"`
	// In are the groups that list it, by name.
	In []membership `json:"in,omitempty"`
	// Own and OwnShadow are the lines of the group of its own name.
	Own       string `json:"own,omitempty"`
	OwnShadow string `json:"own_shadow,omitempty"`
	// Home says that its home directory is there, and Keys is its authorized_keys.
	Home bool    `json:"home,omitempty"`
	Keys *string `json:"keys,omitempty"`

	// What follows is not compared. Group is the primary group's name, Places where lines
	// stand, KeysTime when the keys were written.
	Group    string         `json:"group,omitempty"`
	Places   map[string]int `json:"places,omitempty"`
	KeysTime int64          `json:"keys_time,omitempty"`
	userNotes
	// Files are what golem put into a home that goes, as it was before the step.
	Files []pkgFile `json:"files,omitempty"`
	// Up are directories to be made on the way to a home, and Hands those that change
	// hands, in the state after the step.
	Up    []pkgFile `json:"up,omitempty"`
	Hands []hand    `json:"hands,omitempty"`
	// Moved is what becomes of golem's keys where the step gives the user another home.
	Moved *keysMove `json:"moved,omitempty"`

	// said is how a person is told of the step that makes the user, with the part about its
	// home at homeAt. It is of one run, and never written.
	said   []string
	homeAt int
}

// A hand is a directory that golem made, and that becomes a user's with its home, or is
// on the way to something else again.
type hand struct {
	Path string `json:"path"`
	Was  Node   `json:"was"`
	Is   Node   `json:"is"`
}

// userNotes are what golem did to a user and still stands.
type userNotes struct {
	Set    []string `json:"set,omitempty"`    // attributes it changed
	Joined []string `json:"joined,omitempty"` // groups it put the user into,
	Left   []string `json:"left,omitempty"`   // and took it out of,
	// where it stood there then
	LeftAt map[string]membership `json:"left_at,omitempty"`
	Added  []string              `json:"added,omitempty"` // keys
	// MadeHome is the home that it made, or had made on the way to something else.
	MadeHome string `json:"made_home,omitempty"`
	MadeSSH  bool   `json:"made_ssh,omitempty"`
	// FoundKeys are the keys that were in its home before golem's, where the found state does
	// not tell: in one that it got from golem, or that was there before the user.
	FoundKeys *keysFound `json:"found_keys,omitempty"`
	// Before are paths in such a home that were there already, and look like the skeleton's.
	Before []string `json:"before,omitempty"`
}

// A membership is a user's place in a group. At and AtShadow count from 0; -1 is for a
// file that does not list it.
type membership struct {
	Group    string `json:"group"`
	At       int    `json:"at"`
	AtShadow int    `json:"at_shadow"`
	// Among and AmongShadow are all members, in the order of the files: where others come
	// and go meanwhile, a neighbour tells the place better than a number.
	Among       []string `json:"among,omitempty"`
	AmongShadow []string `json:"among_shadow,omitempty"`
}

// lastPlace is behind all other members.
const lastPlace = 1 << 30

func (s userState) uid() int { return idOf(s.Passwd, pwUID) }
func (s userState) gid() int { return idOf(s.Passwd, pwGID) }

func (s userState) in(group string) bool {
	return slices.ContainsFunc(s.In, func(m membership) bool { return m.Group == group })
}

// groups are the names of those it is in.
func (s userState) groups() []string {
	var names []string
	for _, m := range s.In {
		names = append(names, m.Group)
	}
	return names
}

func (users) resource(g *scrolls.Glyph) string { return str(g.Attrs, "name") }

func (users) prepare(ctx context.Context, w *World, glyphs []*scrolls.Glyph, resources []string) ([]Mistake, error) {
	w.asked(userSort, resources)
	mistakes, err := needTools(ctx, w, glyphs, "useradd", "A user")
	return append(mistakes, sameNumbers(glyphs, "uid")...), err
}

// needTools says which glyphs cannot be on this host for want of a tool.
func needTools(ctx context.Context, w *World, glyphs []*scrolls.Glyph, tool, what string) ([]Mistake, error) {
	var mistakes []Mistake
	wrong := func(summary, detail string) {
		for _, g := range glyphs {
			mistakes = append(mistakes, Mistake{Glyph: g, Problem: scrolls.Problem{Summary: summary, Detail: detail}})
		}
	}
	if len(glyphs) == 0 {
		return nil, nil
	}
	if !w.Host.Live() {
		wrong("Needs a live host", what+" is made by the host's own tools, and this is a file tree, not a running host.")
		return mistakes, nil
	}
	if _, err := w.Host.Run(ctx, lookTime, tool, "--help"); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		wrong("Needs "+tool, fmt.Sprintf("%s is made with %s, which does not run here: %v.", what, tool, err))
	}
	return mistakes, nil
}

// look reads the user's lines, and looks at its home.
func (users) look(_ context.Context, w *World, name string) (userState, error) {
	all, err := w.accounts()
	if err != nil {
		return userState{}, err
	}
	s := userState{Places: map[string]int{}, SubUID: all.all(subuidFile, name), SubGID: all.all(subgidFile, name)}
	take := func(file string) string {
		line, at := all.line(file, name)
		if at >= 0 {
			s.Places[file] = at
		}
		return line
	}
	s.Passwd, s.Shadow, s.Own, s.OwnShadow = take(passwdFile), take(shadowFile), take(groupFile), take(gshadowFile)
	for _, file := range []string{subuidFile, subgidFile} {
		take(file)
	}
	s.There = s.Passwd != ""
	s.In = membershipsOf(all, name)
	s.Group = all.byID(groupFile, s.gid())
	if s.There {
		err = w.lookHome(&s)
	}
	return s, err
}

// membershipsOf lists the groups that list a user, sorted.
func membershipsOf(all accounts, name string) []membership {
	found := map[string]membership{}
	at := func(group string) membership {
		if m, ok := found[group]; ok {
			return m
		}
		return membership{Group: group, At: -1, AtShadow: -1}
	}
	for _, line := range all[groupFile] {
		if i := slices.Index(members(line), name); i >= 0 {
			m := at(field(line, 0))
			m.At, m.Among = i, members(line)
			found[m.Group] = m
		}
	}
	for _, line := range all[gshadowFile] {
		if i := slices.Index(members(line), name); i >= 0 {
			m := at(field(line, 0))
			m.AtShadow, m.AmongShadow = i, members(line)
			found[m.Group] = m
		}
	}
	var in []membership
	for _, group := range slices.Sorted(maps.Keys(found)) {
		in = append(in, found[group])
	}
	return in
}

// carry implements noter.
func (users) carry(now, left userState) userState {
	now.userNotes, now.Moved = left.userNotes, nil
	return now
}

// sight implements noter: places and notes are not compared, nor is the group of its own
// name, which may be another glyph's. Keys that leave a home which the user has no more are
// all that a look cannot see of what is to come.
func (users) sight(s userState) any {
	seen := []any{s.There, s.Passwd, s.Shadow, s.SubUID, s.SubGID, s.groups(), s.Home, s.Keys}
	if move := s.Moved; move != nil && !sameKeys(move.Was, move.Left) {
		seen = append(seen, move.From)
	}
	return seen
}

// back is what undeclaring leaves of a user.
func (u users) back(_ context.Context, w *World, v view[userState]) (goal[userState], error) {
	switch {
	case !v.now.There:
		g := goal[userState]{forget: true, reason: "it is gone already"}
		if home := v.left.MadeHome; home != "" && w.isDir(home) {
			g.reason += "; the home that golem made for it, " + quote(home) + ", is left"
		}
		return g, nil
	case v.found.There && v.now.uid() != v.found.uid(), !v.found.There && v.now.uid() != v.left.uid():
		return goal[userState]{forget: true, reason: fmt.Sprintf("another user has the name by now (uid %d); left as it is", v.now.uid())}, nil
	case !v.found.There:
		return u.gone(v), nil
	}
	k := newUserWork(w, v)
	for _, attr := range slices.Clone(v.left.Set) {
		k.revert(attr)
	}
	k.leaveGroups(v.left.Joined)
	k.rejoin(v.left.Left)
	if err := k.rehome(); err != nil {
		return goal[userState]{}, err
	}
	k.dropKeys(k.to.Added)
	k.to.userNotes = userNotes{}
	g := goal[userState]{to: k.to, effect: EffectRestore, reason: strings.Join(k.said, ", ")}
	if len(k.said) == 0 {
		g.reason = "it was there before golem; left as it is"
	} else {
		g.reason = "the user stays, it was there before golem: " + g.reason
	}
	return g, nil
}

// gone is a user that golem made, without it.
func (users) gone(v view[userState]) goal[userState] {
	to := v.found
	to.userNotes, to.Places = userNotes{}, v.now.Places
	if to.Own = v.now.Own; v.found.Own == "" && v.left.Own != "" && idOf(v.now.Own, grGID) == idOf(v.left.Own, grGID) {
		to.Own = ""
	}
	if to.OwnShadow = v.now.OwnShadow; to.Own == "" {
		to.OwnShadow = v.found.OwnShadow
	}
	k := newUserWork(nil, v)
	k.dropKeys(v.left.Added)
	to.Keys, to.KeysTime = k.to.Keys, k.to.KeysTime
	return goal[userState]{to: to, effect: EffectDelete}
}

// settle implements settler: whether a user that golem made can go is known when the run's
// other turns are.
func (users) settle(w *World, v view[userState], g goal[userState], planned *goal[userState]) (goal[userState], error) {
	if len(v.Set) > 0 && g.to.Home && !v.now.Home && g.to.MadeHome != "" {
		err := w.comes(v, &g)
		return g, err
	}
	if len(v.Set) > 0 || g.effect != EffectDelete || g.forget {
		return g, nil
	}
	if planned != nil && planned.forget {
		return *planned, nil
	}
	use, err := w.inUse(v.now.uid(), -1, v.now.MadeHome)
	if err != nil {
		return g, err
	}
	use = w.lessKeys(use, v.now, g.to)
	if len(use) > 0 && planned != nil {
		return g, &InUseError{"user " + v.Resource, use}
	}
	later := !v.Late && !w.Acts
	if len(use) > 0 {
		g = goal[userState]{forget: true, reason: "golem made it, and it is in use; left: " + someOf(use), postpone: later}
		return g, nil
	}
	g.reason = "golem made it"
	if v.now.MadeHome == "" {
		return g, nil
	}
	return w.leavesHome(v, g, planned, later)
}

// someOf names a few of many.
func someOf(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// show is a user in a plan's JSON.
func (users) show(s userState) map[string]any {
	if !s.There {
		return nil
	}
	v := map[string]any{
		"group": s.Group, "comment": field(s.Passwd, pwComment), "home": field(s.Passwd, pwHome), "shell": field(s.Passwd, pwShell),
		"groups": listOf(s.groups()),
	}
	if uid := s.uid(); uid >= 0 {
		v["uid"] = uid
	}
	if s.Shadow != "" {
		v["locked"] = strings.HasPrefix(field(s.Shadow, spHash), "!")
		v["expires"] = expiryText(field(s.Shadow, spExpires))
	}
	if s.Keys != nil {
		v["authorized_keys"] = len(keyLines(*s.Keys))
	}
	return v
}

// homeOf is a user's home directory.
func (s userState) homeOf() string {
	if home := field(s.Passwd, pwHome); path.IsAbs(home) {
		return path.Clean(home)
	}
	return ""
}
