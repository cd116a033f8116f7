package plan

import (
	"maps"
	"slices"
	"sort"

	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// gather sorts declared and dropped glyphs by the resource they are about and the
// leaf whose turn it is, and tells the world what will be in force when the run is over.
func (m *maker) gather() {
	m.plan.declares = map[string]*scrolls.Glyph{}
	m.plan.inForce = map[scrolls.Key]*scrolls.Glyph{}
	m.plan.claims = map[string][]scrolls.Key{}
	declared, movedTo := map[scrolls.Key]*scrolls.Glyph{}, map[scrolls.Key]*scrolls.Glyph{}
	for i, g := range m.glyphs {
		declared[g.Key] = g
		if g.MovedFrom != "" {
			movedTo[g.MovedFrom] = g
		}
		m.gatherDeclared(g, i)
	}
	for i := len(m.snap.Applied) - 1; i >= 0; i-- { // newest first
		was := m.snap.Applied[i]
		if was.Lineage != m.in.Lineage || !m.picks.Has(was.Key) {
			m.gatherUntouched(was)
			continue
		}
		g := declared[was.Key]
		if g == nil || m.spots[g].Resource != was.Resource {
			m.gatherDropped(was, g, movedTo[was.Key])
		}
	}
	for _, x := range m.things {
		x.dropWithBase()
	}
	slices.Sort(m.plan.needed)
	m.w.Needed, m.w.Declares, m.w.InForce, m.w.Claims = m.plan.Needed, m.plan.Declares, m.plan.InForce, m.plan.Claims
	m.w.Placed = true
}

// gatherDeclared takes in a declared glyph, which stands at a place in the scroll's order.
func (m *maker) gatherDeclared(g *scrolls.Glyph, place int) {
	m.plan.inForce[g.Key] = g
	spot := m.spots[g]
	kind, _ := reconcilers.KindOf(g.Kind)
	if kind.Sort != reconcilers.PathSort {
		m.plan.declares[reconcilers.RecordKey(kind.Sort, spot.Resource)] = g
	} else {
		m.plan.claims[spot.Resource] = append(m.plan.claims[spot.Resource], g.Key)
	}
	a := m.thing(kind.Sort, spot.Resource).ask(m.leafAt[g.Leaf])
	if len(a.set) == 0 {
		a.at = place
	}
	a.set = append(a.set, g)
	if len(spot.Via) > 0 {
		a.via[g.Key] = spot.Via
	}
	m.need(kind.Sort, spot.Resource, g)
}

// gatherUntouched takes in a glyph in force that this run leaves alone: another lineage's, or
// one that is left out of it.
func (m *maker) gatherUntouched(was state.Applied) {
	m.need(was.Sort, was.Resource, was.Glyph)
	m.plan.declares[reconcilers.RecordKey(was.Sort, was.Resource)] = was.Glyph
	m.plan.inForce[was.Key] = was.Glyph
	if was.Sort == reconcilers.PathSort {
		m.plan.claims[was.Resource] = append(m.plan.claims[was.Resource], was.Key)
	}
}

// need notes what has to be there for a glyph that is in force when the run is over.
func (m *maker) need(sort, resource string, g *scrolls.Glyph) {
	if reconcilers.NeedsPlace(g) {
		m.plan.needed = append(m.plan.needed, NeedName(sort, resource))
	}
	m.plan.needed = append(m.plan.needed, reconcilers.Keeps(m.w, resource, g)...)
}

// gatherDropped takes in a glyph that goes from a resource. Its key may be declared still, on
// another resource (now), or have been given to another glyph with moved_from (next); both
// are nil else.
func (m *maker) gatherDropped(was state.Applied, now, next *scrolls.Glyph) {
	x := m.thing(was.Sort, was.Resource)
	turn := m.dropTurn(x, was)
	if now != nil {
		turn = min(turn, m.leafAt[now.Leaf]) // taken off here before it is put on there
	}
	if now == nil && next != nil && m.spots[next].Resource == was.Resource {
		turn = m.leafAt[next.Leaf] // the new key stands where the old one did
	}
	a := x.ask(turn)
	if now == nil && was.Glyph.OnUndeclare == "leave" {
		a.leave[was.Key] = was.Glyph
	} else {
		a.drop[was.Key] = was.Glyph
	}
	a.last = max(a.last, was.Step)
	if now != nil {
		a.moves[was.Key] = true
	}
}

// NeedName is how a resource stands in the list of what is needed.
func NeedName(sort, resource string) string {
	if sort == reconcilers.PathSort {
		return resource
	}
	return reconcilers.RecordKey(sort, resource)
}

// dropTurn is the leaf in whose turn an undeclared glyph goes: its own; but a base goes
// in the turn of the base that takes its place, and so does the one glyph of a resource
// that is no path.
func (m *maker) dropTurn(x *thing, was state.Applied) int {
	if !reconcilers.Shared(was.Sort) {
		for at, a := range x.asks {
			if len(a.set) > 0 {
				return at
			}
		}
		return m.leafAt[was.Leaf]
	}
	if kind, ok := reconcilers.KindOf(was.Glyph.Kind); ok && kind.IsBase() {
		for at, a := range x.asks {
			for _, g := range a.set {
				if next, ok := reconcilers.KindOf(g.Kind); ok && next.IsBase() {
					return at
				}
			}
		}
	}
	return m.leafAt[was.Leaf]
}

// dropWithBase lets edits that go in a later turn go with the base they lie on, if
// that goes or comes: they may not fit on what is there after it.
func (x *thing) dropWithBase() {
	turns := slices.Sorted(maps.Keys(x.asks))
	first := -1
	for _, at := range turns {
		a := x.asks[at]
		if first < 0 && a.changesBase(x.record) {
			first = at
			continue
		}
		if first < 0 {
			continue
		}
		into := x.asks[first]
		for key, g := range a.drop {
			into.drop[key] = g
			into.moves[key] = a.moves[key]
		}
		maps.Copy(into.leave, a.leave)
		into.last = max(into.last, a.last)
		clear(a.drop)
		clear(a.leave)
		if len(a.set) == 0 {
			delete(x.asks, at)
		}
	}
	if first >= 0 && (!hasBase(x.asks[first].leave) || slices.ContainsFunc(x.asks[first].set, isBase)) {
		// What was to be left in a file that goes, or whose place another takes, goes with it.
		maps.Copy(x.asks[first].drop, x.asks[first].leave)
		clear(x.asks[first].leave)
	}
}

func hasBase(glyphs map[scrolls.Key]*scrolls.Glyph) bool {
	for _, g := range glyphs {
		if isBase(g) {
			return true
		}
	}
	return false
}

func isBase(g *scrolls.Glyph) bool {
	kind, ok := reconcilers.KindOf(g.Kind)
	return ok && kind.IsBase()
}

// changesBase says whether a base goes in this turn, or one comes that was not there.
func (a *ask) changesBase(record *state.Record) bool {
	if hasBase(a.drop) || hasBase(a.leave) {
		return true
	}
	for _, g := range a.set {
		kind, ok := reconcilers.KindOf(g.Kind)
		if !ok || !kind.IsBase() {
			continue
		}
		held := record != nil && slices.ContainsFunc(record.Layers, func(l state.Layer) bool { return l.Key == g.Key })
		if !held {
			return true
		}
	}
	return false
}

// leftOn are the layers on a thing that the run leaves out and the scroll declares.
func (m *maker) leftOn(x *thing) []*scrolls.Glyph {
	if m.picks == nil || x.record == nil {
		return nil
	}
	var left []*scrolls.Glyph
	for _, layer := range x.record.Layers {
		if _, declared := m.sources[layer.Key]; declared && layer.Lineage == m.in.Lineage && !m.picks[layer.Key] {
			left = append(left, layer.Glyph)
		}
	}
	return left
}

// thing is a resource in the plan, which begins to be in it here at the latest.
func (m *maker) thing(sort, resource string) *thing {
	name := reconcilers.RecordKey(sort, resource)
	x := m.things[name]
	if x == nil {
		x = &thing{
			sort: sort, resource: resource, record: m.snap.Records[name],
			asks: map[int]*ask{}, turns: map[int][]*reconcilers.Turn{},
		}
		m.things[name] = x
		m.order = append(m.order, name)
	}
	return x
}

// ask is what a leaf wants of the thing, to be filled in.
func (x *thing) ask(leaf int) *ask {
	if x.asks[leaf] == nil {
		x.asks[leaf] = &ask{
			drop: map[scrolls.Key]*scrolls.Glyph{}, leave: map[scrolls.Key]*scrolls.Glyph{}, moves: map[scrolls.Key]bool{}, via: map[scrolls.Key][]string{},
		}
	}
	return x.asks[leaf]
}

// layerOrder is the order of a thing's layers: lineages in the order they came, within
// this one the scroll's order, be they left out or not; what a later turn drops, or the
// scroll does not declare, stays behind what it was behind.
func (m *maker) layerOrder(x *thing) []scrolls.Key {
	var wanted []*scrolls.Glyph
	for _, a := range x.asks {
		wanted = append(wanted, a.set...)
	}
	wanted = append(wanted, m.leftOn(x)...)
	if x.record == nil && len(x.asks) == 1 {
		return nil // the set's own order
	}
	sort.Slice(wanted, func(i, j int) bool { return m.sources[wanted[i].Key] < m.sources[wanted[j].Key] })
	var own []scrolls.Key
	stays := map[scrolls.Key]bool{}
	for _, g := range wanted {
		own, stays[g.Key] = append(own, g.Key), true
	}
	if x.record == nil {
		return own
	}
	var order []scrolls.Key
	var prev scrolls.Key
	placed := false
	for _, layer := range x.record.Layers {
		if layer.Lineage != m.in.Lineage {
			order = append(order, layer.Key)
			continue
		}
		if !placed {
			placed = true
			order = append(order, "") // where this lineage's stand
		}
		if !stays[layer.Key] {
			own = slices.Insert(own, slices.Index(own, prev)+1, layer.Key)
		}
		prev = layer.Key
	}
	if !placed {
		return append(order, own...)
	}
	at := slices.Index(order, "")
	return slices.Replace(order, at, at+1, own...)
}
