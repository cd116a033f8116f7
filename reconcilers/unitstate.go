package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golem/scrolls"
)

// A unitState is everything about a unit that golem gives back.
type unitState struct {
	Active string     `json:"active"`
	Sub    string     `json:"sub"`
	File   string     `json:"file"`
	Links  []unitLink `json:"links,omitempty"`
	// Dirs are the directories of wants there are, with the number of links in each:
	// enabling makes and takes some.
	Dirs []unitLink `json:"dirs,omitempty"`
	// Beside are the states of the units that stop with it or are stopped for it: the
	// sockets, timers and paths that would start it again, and those that need it.
	Beside map[string]string `json:"beside,omitempty"`
	// Masks are the masks of those of them that run all the same: they bar starting them
	// again.
	Masks []unitLink `json:"masks,omitempty"`
	// Serves are the services of a socket that run.
	Serves []string `json:"serves,omitempty"`
	// Rivals are units that run and that its start would stop, and Pulls those that do
	// not run and that its start may start with it.
	Rivals []string `json:"rivals,omitempty"`
	Pulls  []string `json:"pulls,omitempty"`
}

func (s *unitState) running() bool { return s.Active == "active" || s.Active == "reloading" }

// masksOf are the links that mask a unit.
func (s unitState) masksOf(id string) []unitLink {
	return slices.DeleteFunc(slices.Clone(s.Links), func(l unitLink) bool {
		_, name := split(l.Path)
		return !l.masks() || name != id
	})
}

// unitDoings are what golem did to a unit and what stands of it: each fact on its own,
// so that each is given back on its own.
type unitDoings struct {
	Started bool `json:"started,omitempty"` // found not running
	Stopped bool `json:"stopped,omitempty"` // found running, or started by somebody since
	// Fresh says that the last step of the glyph was the one that started it.
	Fresh bool `json:"fresh,omitempty"`
	// Made and Taken are links by which it was enabled or masked, and was not before.
	Made  []unitLink `json:"made,omitempty"`
	Taken []unitLink `json:"taken,omitempty"`
	// With are the units that were stopped with it: what would start it again, and what
	// needs it.
	With []string `json:"with,omitempty"`
}

// relink notes what a change of the unit's links did.
func (d *unitDoings) relink(before, after unitState) {
	d.Made, d.Taken = netLinks(d.Made, d.Taken, before.Links, after.Links)
}

// netLinks adds a change to what was made and taken before it: what comes back as it
// was found is neither.
func netLinks(made, taken, before, after []unitLink) (allMade, allTaken []unitLink) {
	gone, came := differ(before, after), differ(after, before)
	for _, l := range gone {
		if slices.ContainsFunc(made, func(m unitLink) bool { return m.Path == l.Path }) {
			made = without(made, []unitLink{l})
		} else {
			taken = append(taken, l)
		}
	}
	for _, l := range came {
		if has(taken, l) {
			taken = without(taken, []unitLink{l})
		} else {
			made = append(made, l)
		}
	}
	return made, taken
}

// stateOf takes down a unit's state. starts says that it may be started, on the way there
// or on the way back.
func (w *World) stateOf(ctx context.Context, u *unit, done unitDoings, starts bool) (unitState, error) {
	s, err := w.linksOf(u.ID, done)
	if err != nil {
		return s, err
	}
	s.Active, s.Sub, s.File = u.Active, u.Sub, u.File
	beside, err := w.beside(ctx, u, slices.Concat(u.TriggeredBy, u.RequiredBy))
	if err != nil {
		return s, err
	}
	if len(beside) > 0 {
		s.Beside = map[string]string{}
	}
	for _, id := range slices.Sorted(maps.Keys(beside)) {
		s.Beside[id] = beside[id].Active
		if !strings.HasPrefix(beside[id].File, "masked") {
			continue
		}
		own, err := w.linksOf(id, unitDoings{})
		if err != nil {
			return s, err
		}
		s.Masks = append(s.Masks, own.masksOf(id)...)
	}
	if u.kind() == "socket" {
		if s.Serves, err = w.upOf(ctx, u.Triggers); err != nil {
			return s, err
		}
	}
	if !starts {
		return s, nil
	}
	rivals, err := w.beside(ctx, u, u.rivals())
	if err != nil {
		return s, err
	}
	s.Rivals = slices.Sorted(maps.Keys(rivals))
	s.Pulls, err = w.pulls(ctx, u)
	return s, err
}

// upOf lists those of some units that run.
func (w *World) upOf(ctx context.Context, names []string) ([]string, error) {
	found, err := w.units(ctx, names...)
	if err != nil {
		return nil, err
	}
	var up []string
	for _, name := range names {
		if found[name].running() {
			up = append(up, name)
		}
	}
	return up, nil
}

// beside finds, of units and all that need them, those that run, and the unit's triggers.
func (w *World) beside(ctx context.Context, u *unit, todo []string) (map[string]*unit, error) {
	found := map[string]*unit{}
	for len(todo) > 0 {
		look, err := w.units(ctx, todo...)
		if err != nil {
			return nil, err
		}
		todo = nil
		for _, o := range look {
			if o.ID == u.ID || found[o.ID] != nil || !o.running() && !slices.Contains(u.TriggeredBy, o.ID) {
				continue
			}
			found[o.ID] = o
			todo = append(todo, o.RequiredBy...)
		}
	}
	return found, nil
}

// rivals are the units that stop when a unit starts. What ends the whole system
// conflicts with everything, and is no rival.
func (u *unit) rivals() []string {
	return slices.DeleteFunc(slices.Clone(u.Conflicts), func(id string) bool {
		return id == "shutdown.target" || id == "umount.target"
	})
}

// pulls lists the units that do not run and that starting a unit may start: what it
// names, and what those name.
func (w *World) pulls(ctx context.Context, u *unit) ([]string, error) {
	seen := map[string]bool{u.ID: true}
	var down []string
	for todo := u.Pulls; len(todo) > 0; {
		look, err := w.units(ctx, todo...)
		if err != nil {
			return nil, err
		}
		todo = nil
		for _, o := range look {
			if seen[o.ID] || o.running() || !o.known() {
				continue // what runs already has what it needs
			}
			seen[o.ID] = true
			down = append(down, o.ID)
			todo = append(todo, o.Pulls...)
		}
	}
	slices.Sort(down)
	return down, nil
}

// triggers lists those of the units beside a unit that would start it again and are up.
func (u *unit) triggers(s unitState) []string {
	return s.up(func(id string) bool { return slices.Contains(u.TriggeredBy, id) })
}

// dependents lists those of the units beside a unit that need it and run: they stop
// when it stops.
func (u *unit) dependents(s unitState) []string {
	return s.up(func(id string) bool { return !slices.Contains(u.TriggeredBy, id) })
}

// up lists the units beside one that are up, of those that are asked for.
func (s unitState) up(which func(id string) bool) []string {
	var up []string
	for _, id := range slices.Sorted(maps.Keys(s.Beside)) {
		if active := s.Beside[id]; (active == "active" || active == "reloading") && which(id) {
			up = append(up, id)
		}
	}
	return up
}

// A unitEntry is the ledger's line about a unit: one that golem left stopped, or one
// that was started because golem started another. It says what was found before, for a
// glyph that declares it.
type unitEntry struct {
	Found unitState  `json:"found"`
	Done  unitDoings `json:"done"`
	// By is the glyph that it was stopped or started for.
	By scrolls.Key `json:"by,omitempty"`
}

func (w *World) unitEntry(id string) (*unitEntry, error) {
	entry := w.Ledger[RecordKey(UnitSort, id)]
	if entry == nil {
		return nil, nil
	}
	var body unitEntry
	if err := json.Unmarshal(entry.Body, &body); err != nil {
		return nil, fmt.Errorf("read what was found of %s: %w", quote(id), err)
	}
	return &body, nil
}

// setUnitEntry notes a change of the ledger in the step and in the world; nil takes the
// line out.
func (t *Turn) setUnitEntry(w *World, id string, body *unitEntry) { setEntry(t, w, UnitSort, id, body) }

// How long a unit on its way from one state to another is waited for, and how often it
// is looked at.
const (
	changeTime = 10 * time.Second
	lookEvery  = 250 * time.Millisecond
)

// settled waits until a unit is no longer on its way from one state to another. It
// gives up after a while, and returns the unit as it is then.
func (w *World) settled(ctx context.Context, u *unit) (*unit, error) {
	for waited := time.Duration(0); u.changing() && waited < changeTime; waited += lookEvery {
		if err := w.Host.Wait(ctx, lookEvery); err != nil {
			return u, err
		}
		fresh, err := w.Host.showUnits(ctx, []string{u.ID})
		if err != nil {
			return u, err
		}
		fresh[0].Name = u.Name
		u = fresh[0]
	}
	d := w.unitDesk()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[u.Name], d.seen[u.ID] = u, u
	return u, nil
}

// comesWith says what of this run brings a unit that is not there yet; "" for nothing.
func (w *World) comesWith(id string) string {
	d := w.unitDesk()
	d.mu.Lock()
	by := d.comes[id]
	d.mu.Unlock()
	if by != "" {
		return by
	}
	for _, name := range []string{id, unitTemplate(id)} {
		for _, dir := range unitDirs {
			p := dir + "/" + name
			if n, ok := w.over[p]; name != "" && ok && (n.Type == File || n.Type == Link) {
				return "file:" + p
			}
		}
	}
	return w.packagesBringing(id)
}

// packagesBringing names the declared packages that this run installs and that may bring
// a unit. What is in a package is not known before it is fetched, so that the one whose
// name is the unit's is taken first, and the unit's own turn finds out.
func (w *World) packagesBringing(id string) string {
	var keys []string
	for _, name := range pendingPackages(w) {
		if !w.Needed(RecordKey(PackageSort, name)) {
			continue // pulled in
		}
		if bare, _, _ := strings.Cut(name, ":"); strings.HasPrefix(bare, strings.TrimSuffix(id, ".service")) {
			return "apt:" + name
		}
		keys = append(keys, "apt:"+name)
	}
	return strings.Join(keys, " or ")
}

// goesWithPackage says which package that this run takes away brings a unit; "" for none.
func (w *World) goesWithPackage(id string) scrolls.Key {
	d := w.unitDesk()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.goes[id]
}

// goesWith says which path of this run takes a unit's file away; "" for none.
func (w *World) goesWith(u *unit) string {
	at, err := w.resolve(u.Fragment, false)
	if err != nil {
		return "" // what cannot be reached, the run does not take
	}
	if n, ok := w.over[at.real]; ok && n.Type == Absent && w.comesWith(u.ID) == "" {
		return at.real
	}
	return ""
}

// rewritten says whether this run writes a unit's file or drop-ins.
func (w *World) rewritten(id string) bool {
	for p := range w.over {
		dir, name := split(p)
		if holdsUnits(p) && (name == id || name == unitTemplate(id) || strings.HasSuffix(dir, "/"+id+".d")) {
			return true
		}
	}
	return false
}
