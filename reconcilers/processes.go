package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"golem/scrolls"
)

// processSort is the sort of golem's own units; a resource is a process's name.
const processSort = "process"

// processes keeps the units that golem makes: their files, the links that enable them,
// and whether they run, all of one process as one.
type processes struct{}

// Sort implements Reconciler.
func (processes) Sort() string { return processSort }

// A pathState is one path of a process in the journal.
type pathState struct {
	Path string `json:"path"`
	Node Node   `json:"node"`
	Temp string `json:"temp,omitempty"` // the name used beside it
}

// A processState is what a process's step found, or leaves.
type processState struct {
	Paths  []pathState       `json:"paths"`
	Active map[string]string `json:"active"`         // ActiveState by unit
	Made   []upward          `json:"made,omitempty"` // directories made on the way, outermost first
}

func (s processState) node(p string) (Node, bool) {
	i := slices.IndexFunc(s.Paths, func(o pathState) bool { return o.Path == p })
	if i < 0 {
		return absent(), false
	}
	return s.Paths[i].Node, true
}

// A processWork is what one turn does.
type processWork struct {
	r       Request
	want    processPlan // without paths when the process goes
	old     processPlan // what the record's glyph asked for
	left    processState
	now     map[string]Node
	active  map[string]string
	shifts  []*shift
	stop    []string
	start   string
	restart string
}

// Locate implements Reconciler.
func (processes) Locate(ctx context.Context, w *World, glyphs []*scrolls.Glyph, gone []Gone) (map[*scrolls.Glyph]Spot, []Mistake, error) {
	spots := map[*scrolls.Glyph]Spot{}
	var mistakes []Mistake
	var units []string
	for _, g := range glyphs {
		name := str(g.Attrs, "name")
		spots[g] = Spot{Resource: name}
		units = append(units, serviceOf(name), timerOf(name))
		if !w.Host.systemd() {
			mistakes = append(mistakes, Mistake{Glyph: g, Problem: scrolls.Problem{
				Summary: "Needs a live host", Detail: "A process needs a host that systemd runs, and this is none.",
			}})
		}
	}
	for _, a := range gone {
		units = append(units, serviceOf(a.Resource), timerOf(a.Resource))
	}
	if len(mistakes) > 0 || len(units) == 0 {
		return spots, mistakes, nil
	}
	_, err := w.units(ctx, units...)
	return spots, nil, err
}

// Turn implements Reconciler.
func (processes) Turn(ctx context.Context, w *World, r Request) (*Turn, error) {
	k := &processWork{r: r, now: map[string]Node{}, active: map[string]string{}}
	if err := k.recall(); err != nil {
		return nil, err
	}
	if err := k.look(ctx, w); err != nil {
		return nil, err
	}
	if len(r.Set) > 0 && r.Record == nil {
		if err := k.refuse(ctx, w); err != nil {
			return nil, err
		}
	}
	fresh := len(r.Set) > 0 && (r.Record == nil || CID(k.old0()) != CID(r.Set[0]))
	if fresh {
		if err := w.knowsUser(r.Set[0]); err != nil {
			return nil, err
		}
	}
	if k.want.timed && fresh {
		if err := checkCalendar(ctx, w, str(r.Set[0].Attrs, "schedule")); err != nil {
			return nil, err
		}
	}
	return k.turn(), nil
}

// recall reads what is wanted, and what the journal knows.
func (k *processWork) recall() error {
	if len(k.r.Set) > 0 {
		k.want = planProcess(k.r.Set[0])
	}
	k.want.name = k.r.Resource
	k.old.name = k.r.Resource
	if k.r.Record == nil {
		return nil
	}
	if len(k.r.Record.Layers) > 0 {
		k.old = planProcess(k.r.Record.Layers[0].Glyph)
	}
	if err := json.Unmarshal(k.r.Record.After, &k.left); err != nil {
		return fmt.Errorf("read the record of %s: %w", k.r.Resource, err)
	}
	return nil
}

// stamp is where systemd notes when a persistent timer last ran (systemd.timer(5)).
func stamp(name string) string { return "/var/lib/systemd/timers/stamp-" + timerOf(name) }

// look observes every path of the process, and its units.
func (k *processWork) look(ctx context.Context, w *World) error {
	paths := map[string]bool{}
	for p := range k.want.paths {
		paths[p] = true
	}
	for _, left := range k.left.Paths {
		paths[left.Path] = true
	}
	if k.want.timed || k.old.timed {
		paths[stamp(k.r.Resource)] = true
	}
	for p := range paths {
		n, ok := w.over[p]
		if !ok {
			var err error
			if n, err = w.Host.observe(w.d, p, keepBytes); err != nil {
				return err
			}
		}
		k.now[p] = n
	}
	for _, unit := range []string{serviceOf(k.r.Resource), timerOf(k.r.Resource)} {
		u, err := w.unit(ctx, unit)
		if err != nil {
			return err
		}
		k.active[unit] = u.Active
		if will, ok := w.willBe(unit); ok {
			k.active[unit] = map[bool]string{true: "active", false: "inactive"}[will.running]
		}
	}
	return nil
}

// refuse says what of a new process is there already: it is somebody else's.
func (k *processWork) refuse(ctx context.Context, w *World) error {
	taken := func(what string) error {
		return &AttrError{
			Attr: "name", Summary: "Something is there already",
			Err: fmt.Errorf("%s is there already, and not golem's. A process makes its own; choose another name, or move that away", what),
		}
	}
	for _, unit := range []string{serviceOf(k.r.Resource), timerOf(k.r.Resource)} {
		u, err := w.unit(ctx, unit)
		if err != nil {
			return err
		}
		if u.known() && !w.going(u.Fragment) {
			return taken("the unit " + unit + " (" + u.Fragment + ")")
		}
	}
	for _, p := range slices.Sorted(maps.Keys(k.want.paths)) {
		if k.now[p].Type != Absent {
			return taken(quote(p))
		}
	}
	dir := path.Join(bundleDir, k.r.Resource)
	names, err := w.names(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if w.going(path.Join(dir, name)) {
			continue
		}
		// What an earlier run made on the way, and could not take away yet, is golem's.
		if body, ok := w.ledger(path.Join(dir, name)); !ok || !body.Made {
			return taken(dir)
		}
	}
	return nil
}

// going says that a path will be gone by then: a recovery takes it away.
func (w *World) going(p string) bool {
	n, ok := w.over[p]
	return ok && n.Type == Absent
}

// knowsUser refuses a process whose user is not there by then.
func (w *World) knowsUser(g *scrolls.Glyph) error {
	name := str(g.Attrs, "user")
	if _, dynamic := object(g.Attrs, "settings")["DynamicUser"]; name == "" || dynamic {
		return nil
	}
	_, err := w.userFor(g, "user", name)
	return err
}

// checkCalendar has systemd read a schedule before anything is touched for it.
func checkCalendar(ctx context.Context, w *World, when string) error {
	_, err := w.Host.Run(ctx, lookTime, "systemd-analyze", "calendar", "--", when)
	var failed *CommandError
	if errors.As(err, &failed) && strings.Contains(failed.Said, "Failed to parse") {
		return &AttrError{
			Attr: "schedule", Summary: "Not a schedule",
			Err: fmt.Errorf("systemd cannot read %q as a time to come back at: write it as systemd.time(7) has calendar events, like \"daily\" or \"Mon *-*-* 03:00\"", when),
		}
	}
	return ctx.Err() // where it cannot be asked, starting the timer will tell
}

// Fit implements Reconciler: the directories to be made, and what is in the way.
func (processes) Fit(w *World, t *Turn) error {
	k, ok := t.work.(*processWork)
	if !ok || t.Step == nil {
		return nil
	}
	defer func() { t.shift = nil }()
	var made []upward
	for _, s := range k.shifts {
		if n, ok := w.over[s.path]; ok && !sameSight(n, s.from) {
			return &AttrError{
				Attr: "name", Summary: "Declared twice",
				Err: fmt.Errorf("%s belongs to the process, and another glyph of this run makes it too", quote(s.path)),
			}
		}
		s.parents = nil
		t.shift = s
		if err := checkFlags(s.path, s.from); err != nil {
			return err
		}
		if err := w.findParents(t); err != nil {
			return err
		}
		if err := w.mayWrite(t); err != nil {
			return err
		}
		for _, up := range s.parents {
			made = append(made, upward{Bytes(up.path), up.node})
		}
		w.predict(s.path, s.to)
	}
	up, err := k.stampDir(w, t)
	if err != nil {
		return err
	}
	k.encode(t, append(made, up...))
	k.predictUnits(w)
	return nil
}

// stampDir notes the directory of timers' stamps, which systemd makes with the first
// persistent timer: it is as much golem's as the timer.
func (k *processWork) stampDir(w *World, t *Turn) ([]upward, error) {
	dir, _ := split(stamp(k.r.Resource))
	if !k.want.timed {
		return nil, nil
	}
	n, err := w.look(dir)
	if err != nil || n.Type != Absent {
		return nil, err
	}
	n = Node{Type: Dir, Mode: defaultDirMode, Flags: Any}
	t.setLedger(w, dir, &ledgerBody{Made: true, Node: n})
	w.predict(dir, n)
	return []upward{{Bytes(dir), n}}, nil
}

// predictUnits notes what the turn leaves of its units.
func (k *processWork) predictUnits(w *World) {
	d := w.unitDesk()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, unit := range []string{serviceOf(k.r.Resource), timerOf(k.r.Resource)} {
		if len(k.r.Set) > 0 && k.r.Record == nil {
			d.comes[unit] = string(k.r.Set[0].Key)
		}
	}
	for _, unit := range k.stop {
		d.will[unit] = unitWill{}
	}
	for _, unit := range []string{k.start, k.restart} {
		if unit != "" {
			d.will[unit] = unitWill{running: true}
		}
	}
}

// Batch implements Reconciler.
func (processes) Batch([]*Turn) int { return 1 }

// Join implements Reconciler.
func (processes) Join(context.Context, *World, []*Turn) error { return nil }

// Sweep implements Reconciler: the directories it made are the paths' by-products.
func (processes) Sweep(context.Context, *World) ([]*Turn, error) { return nil, nil }

// Capture implements Reconciler.
func (processes) Capture(_ context.Context, w *World, store Store, turns []*Turn) error {
	for _, t := range turns {
		k, ok := t.work.(*processWork)
		if !ok {
			continue
		}
		for _, s := range k.shifts {
			if err := w.store(store, s.path, s.from); err != nil {
				return err
			}
		}
		for _, n := range k.want.paths { // a later rollback needs nothing else
			if n.local == "" {
				continue
			}
			if err := storeLocal(store, n.local, n.Hash); err != nil {
				return err
			}
		}
	}
	return nil
}
