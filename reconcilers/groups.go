package reconcilers

import (
	"context"
	"fmt"

	"golem/scrolls"
)

// groupSort is the sort of local groups; a resource is a group's name.
const groupSort = "group"

// groups keeps local groups: their lines in group(5) and gshadow(5), but for who is in them.
type groups struct{}

// A groupState is all that golem knows of a group. Lines are as they stand in the files.
type groupState struct {
	There  bool   `json:"there"`
	Line   string `json:"line,omitempty"`
	Shadow string `json:"shadow,omitempty"`
	// Places is where the lines stand; it is not compared.
	Places map[string]int `json:"places,omitempty"`
}

func (s groupState) gid() int { return idOf(s.Line, grGID) }

func (groups) resource(g *scrolls.Glyph) string { return str(g.Attrs, "name") }

func (groups) prepare(ctx context.Context, w *World, glyphs []*scrolls.Glyph, resources []string) ([]Mistake, error) {
	w.asked(groupSort, resources)
	mistakes, err := needTools(ctx, w, glyphs, "groupadd", "A group")
	return append(mistakes, sameNumbers(glyphs, "gid")...), err
}

// sameNumbers says which glyphs ask for one number.
func sameNumbers(glyphs []*scrolls.Glyph, attr string) []Mistake {
	first := map[int]*scrolls.Glyph{}
	var mistakes []Mistake
	for _, g := range glyphs {
		id, given := idAttr(g.Attrs, attr)
		if other := first[id]; given && other != nil {
			mistakes = append(mistakes, Mistake{Glyph: g, Other: other, Problem: scrolls.Problem{
				Attr: attr, Summary: "Number is taken", Detail: fmt.Sprintf("%s asks for the %s %d, too.", other.Key, attr, id),
			}})
		} else if given {
			first[id] = g
		}
	}
	return mistakes
}

func (groups) look(_ context.Context, w *World, name string) (groupState, error) {
	all, err := w.accounts()
	if err != nil {
		return groupState{}, err
	}
	s := groupState{Places: map[string]int{}}
	s.Line, s.Places[groupFile] = all.line(groupFile, name)
	s.Shadow, s.Places[gshadowFile] = all.line(gshadowFile, name)
	s.There = s.Line != ""
	return s, nil
}

// carry implements noter.
func (groups) carry(now, _ groupState) groupState { return now }

// sight implements noter: who is in a group is said by its users.
func (groups) sight(s groupState) any { return []any{s.There, s.gid()} }

// want is what a declared glyph makes of a group.
func (groups) want(_ context.Context, w *World, v view[groupState]) (goal[groupState], error) {
	a, name := v.glyph.Attrs, v.Resource
	gid, given := idAttr(a, "gid")
	if v.now.There {
		if given && gid != v.now.gid() {
			return goal[groupState]{}, wrongAttr("gid", "Group has another number", "the group %s is there with the gid %d; golem renumbers no group, since files would keep the old number. "+
				"Write gid = %d, or leave it out", name, v.now.gid(), v.now.gid())
		}
		return goal[groupState]{to: v.now, effect: EffectWrite, reason: "it is so already; nothing to change"}, nil
	}
	all, err := w.accounts()
	if err != nil {
		return goal[groupState]{}, err
	}
	if id, ok := w.Host.askNSS("group", name); w.Host.Live() && ok {
		return goal[groupState]{}, wrongAttr("name", "Group is not local", "the group %s (gid %d) comes from the network, not from /etc/group; golem keeps local groups only", name, id)
	}
	switch {
	case given:
		other := all.byID(groupFile, gid)
		if other == "" {
			other = w.Host.ownerOf("group", gid)
		}
		if other != "" {
			return goal[groupState]{}, wrongAttr("gid", "Number is taken", "the gid %d is that of the group %s", gid, other)
		}
	case v.left.There && all.byID(groupFile, v.left.gid()) == "":
		gid = v.left.gid() // it was deleted, and its files are still there
	case !w.Acts:
		gid = w.Host.standIn(groupSort, name)
	default:
		if gid, err = w.freeID(all, groupFile, a["system"] == true); err != nil {
			return goal[groupState]{}, err
		}
	}
	to := v.now
	to.There, to.Line = true, fmt.Sprintf("%s:x:%d:", name, gid)
	if to.Shadow == "" && all[gshadowFile] != nil {
		to.Shadow = name + ":!::"
	}
	reason := "a new group"
	if a["system"] == true {
		reason = "a new system group"
	}
	if gid >= 0 {
		reason += fmt.Sprintf(", gid %d", gid)
	}
	return goal[groupState]{to: to, effect: EffectWrite, reason: reason}, nil
}

// back is what undeclaring leaves of a group.
func (groups) back(_ context.Context, _ *World, v view[groupState]) (goal[groupState], error) {
	switch {
	case !v.now.There:
		return goal[groupState]{forget: true, reason: "it is gone already"}, nil
	case v.found.There:
		return goal[groupState]{forget: true, reason: "it was there before golem; left as it is"}, nil
	case v.now.gid() != v.left.gid():
		return goal[groupState]{forget: true, reason: fmt.Sprintf("another group has the name by now (gid %d); left as it is", v.now.gid())}, nil
	}
	to := v.found
	to.Places = v.now.Places
	return goal[groupState]{to: to, effect: EffectDelete, reason: "golem made it"}, nil
}

// settle implements settler: whether a group that golem made can go is known when the run's
// other turns are.
func (groups) settle(w *World, v view[groupState], g goal[groupState], planned *goal[groupState]) (goal[groupState], error) {
	if len(v.Set) > 0 || g.effect != EffectDelete || g.forget {
		return g, nil
	}
	if planned != nil && planned.forget {
		return *planned, nil
	}
	use, err := w.groupInUse(v.Resource, v.now)
	if err != nil || len(use) == 0 {
		return g, err
	}
	if planned != nil {
		return g, &InUseError{"group " + v.Resource, use}
	}
	return goal[groupState]{forget: true, reason: "golem made it, and it is in use; left: " + someOf(use), postpone: !v.Late && !w.Acts}, nil
}

// groupInUse names what a group is needed for when the run has come so far.
func (w *World) groupInUse(name string, s groupState) ([]string, error) {
	all, err := w.accounts()
	if err != nil {
		return nil, err
	}
	var use []string
	for _, line := range all[passwdFile] {
		if user := field(line, 0); idOf(line, pwGID) == s.gid() && !w.parts(user, s.gid()) {
			use = append(use, "the primary group of "+user)
		}
	}
	for _, user := range members(s.Line) {
		if !w.leaves(user, name) {
			use = append(use, "its member "+user)
		}
	}
	more, err := w.inUse(-1, s.gid(), "")
	return append(use, more...), err
}

// parts says whether the run takes a user away before this, or gives it another primary
// group.
func (w *World) parts(user string, gid int) bool {
	s, ok := soleUsers.foreseen(w, user)
	return ok && (!s.There || s.gid() != gid)
}

// leaves says whether the run takes a user out of a group before this.
func (w *World) leaves(user, group string) bool {
	s, ok := soleUsers.foreseen(w, user)
	return ok && !s.in(group)
}

// show is a group in a plan's JSON.
func (groups) show(s groupState) map[string]any {
	if !s.There {
		return nil
	}
	v := map[string]any{"members": listOf(members(s.Line))}
	if gid := s.gid(); gid >= 0 {
		v["gid"] = gid
	}
	return v
}

// move implements owner.
func (gs groups) move(ctx context.Context, w *World, store Store, m motion[groupState]) error {
	name := m.resource
	w.forget()
	now, err := gs.look(ctx, w, name)
	if err != nil {
		return err
	}
	merge := func(from, to groupState) error {
		return w.editAccounts(ctx, store, m.step, func(a accounts) {
			place := func(file string) int {
				if at, ok := to.Places[file]; ok {
					return at
				}
				return -1
			}
			mergeLine(a, groupFile, name, from.Line, to.Line, place(groupFile))
			mergeLine(a, gshadowFile, name, from.Shadow, to.Shadow, place(gshadowFile))
		})
	}
	switch {
	case m.to.There && !now.There && !m.reverse:
		if now.Shadow != m.from.Shadow { // of a try that was cut short
			if err := merge(m.to, m.from); err != nil {
				return err
			}
		}
		argv := []string{"groupadd", "--gid", field(m.to.Line, grGID)}
		if m.glyph != nil && m.glyph.Attrs["system"] == true {
			argv = append(argv, "--system")
		}
		if err := w.tool(ctx, append(argv, "--", name)...); err != nil {
			return fmt.Errorf("make the group %s: %w", name, err)
		}
	case !m.to.There && now.There:
		if now.gid() != m.from.gid() {
			return fmt.Errorf("remove the group %s: its gid is %d by now, not %d: %w", name, now.gid(), m.from.gid(), ErrMoved)
		}
		if err := w.tool(ctx, "groupdel", "--", name); err != nil {
			return fmt.Errorf("remove the group %s: %w", name, err)
		}
	}
	return merge(m.from, m.to)
}
