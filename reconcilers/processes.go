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
	"golem/state"
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
	if k.want.timed && (r.Record == nil || CID(k.old0()) != CID(r.Set[0])) {
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
		if u.known() {
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
		// What an earlier run made on the way, and could not take away yet, is golem's.
		if body, ok := w.ledger(path.Join(dir, name)); !ok || !body.Made {
			return taken(dir)
		}
	}
	return nil
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

// isRunning says whether an ActiveState means that a unit is up or about to be.
func isRunning(active string) bool {
	return active == "active" || active == "activating" || active == "reloading"
}

// turn works out what to do.
func (k *processWork) turn() *Turn {
	t := &Turn{Request: k.r, Wild: true, work: k, Seen: processSight{k.now, k.active}}
	if k.r.Record != nil && IsUnknown(k.r.Record.Found) && len(k.r.Set) == 0 {
		k.forget(t, "nothing is known of it before golem; left as it is")
		return t
	}
	if len(k.r.Set) > 0 && k.r.Blind && k.r.Record != nil && CID(k.old0()) == CID(k.r.Set[0]) {
		t.Noops = []scrolls.Key{k.r.Set[0].Key}
		return t
	}
	k.shiftPaths(t)
	k.runUnits()
	t.Acts = len(k.shifts) > 0 || len(k.stop) > 0 || k.start != "" || k.restart != ""
	k.judge(t)
	if t.Step != nil {
		t.Step.After = k.record()
		t.Fresh = k.start == serviceOf(k.r.Resource) || k.restart == serviceOf(k.r.Resource)
		k.encode(t, nil)
		k.tellUnits(t)
	}
	return t
}

// old0 is the record's glyph.
func (k *processWork) old0() *scrolls.Glyph { return k.r.Record.Layers[0].Glyph }

// rank orders a process's paths: what a unit needs is there before it.
func rank(p string) int {
	switch {
	case strings.HasPrefix(p, unitDir) && strings.Contains(p, ".wants/"):
		return 2
	case strings.HasPrefix(p, unitDir):
		return 1
	}
	return 0
}

// shiftPaths lists the changes of paths: what is made in order, then what goes in
// reverse.
func (k *processWork) shiftPaths(t *Turn) {
	paths := slices.Collect(maps.Keys(k.now))
	slices.SortFunc(paths, func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var gone []*shift
	for _, p := range paths {
		want, wanted := k.want.paths[p]
		now := k.now[p]
		switch {
		case wanted && differs(now, want) == "":
			continue
		case wanted:
			k.shifts = append(k.shifts, &shift{path: p, from: now, to: want, temp: tempName()})
		case p == stamp(k.r.Resource) && k.want.timed, now.Type == Absent:
			continue
		default:
			gone = append(gone, &shift{path: p, from: now, to: absent(), temp: tempName()})
		}
		left, known := k.left.node(p)
		if known && now.Type != Absent && p != stamp(k.r.Resource) && (left.Type != now.Type || left.Hash != now.Hash || left.Target != now.Target) {
			t.Keeps = append(t.Keeps, kept(p, now, "changed by hand since golem wrote it"))
		}
	}
	slices.Reverse(gone)
	k.shifts = append(k.shifts, gone...)
}

// runUnits works out which units are stopped, started or started anew.
func (k *processWork) runUnits() {
	service, timer := serviceOf(k.r.Resource), timerOf(k.r.Resource)
	goes := len(k.want.paths) == 0
	for _, unit := range []string{timer, service} {
		up := isRunning(k.active[unit])
		switch {
		case !up:
		case goes, unit == timer && !k.want.timed, unit == service && k.want.timed && !k.old.timed:
			k.stop = append(k.stop, unit)
		case unit == k.want.main && !k.want.running:
			k.stop = append(k.stop, unit)
		}
	}
	if goes || !k.want.running {
		return
	}
	changed := slices.ContainsFunc(k.shifts, func(s *shift) bool {
		return k.want.paths[s.path].Type == File && (!k.want.timed || s.path == unitDir+"/"+timer)
	})
	switch up := isRunning(k.active[k.want.main]); {
	case !up:
		k.start = k.want.main
	case changed:
		k.restart = k.want.main
	}
}

// record is the journal's record after the turn; nil when the process goes.
func (k *processWork) record() *state.Record {
	if len(k.want.paths) == 0 {
		return nil
	}
	rec := &state.Record{Sort: processSort, Resource: k.r.Resource, Found: encode(map[string]Type{"type": Absent})}
	if k.r.Record != nil {
		rec.Found = k.r.Record.Found
	}
	g := k.r.Set[0]
	rec.Layers = []state.Layer{{Key: g.Key, Lineage: k.r.Lineage, Glyph: g, Changed: true}}
	var after processState
	for _, p := range slices.Sorted(maps.Keys(k.want.paths)) {
		after.Paths = append(after.Paths, pathState{Path: p, Node: slim(k.want.paths[p])})
	}
	rec.After = encode(after)
	return rec
}

// encode writes the step's inverses, with the directories that Fit found missing.
func (k *processWork) encode(t *Turn, made []upward) {
	before := processState{Active: k.active}
	after := processState{Active: map[string]string{}, Made: made}
	moved := map[string]*shift{}
	for _, s := range k.shifts {
		moved[s.path] = s
	}
	for _, p := range slices.Sorted(maps.Keys(k.now)) {
		s := moved[p]
		switch {
		case s != nil:
			before.Paths = append(before.Paths, pathState{Path: p, Node: stored(k.now[p])})
			after.Paths = append(after.Paths, pathState{Path: p, Node: s.to, Temp: s.temp})
		case p == stamp(k.r.Resource) && k.now[p].Type == Absent: // systemd may make it
			before.Paths = append(before.Paths, pathState{Path: p, Node: absent()})
			after.Paths = append(after.Paths, pathState{Path: p, Node: absent()})
		}
	}
	t.Step.Inverse, t.Step.Expect = encode(before), encode(after)
}

// A processSight is what a turn saw of a process.
type processSight struct {
	now    map[string]Node
	active map[string]string
}

// Same implements Sight.
func (s processSight) Same(other any) bool {
	was, ok := other.(processSight)
	if !ok {
		return true
	}
	return maps.EqualFunc(s.now, was.now, sameSight) && maps.EqualFunc(s.active, was.active, func(a, b string) bool { return isRunning(a) == isRunning(b) })
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
