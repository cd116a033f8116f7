package reconcilers

import (
	"maps"
	"slices"
	"strings"

	"golem/scrolls"
	"golem/state"
)

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
