package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golem/scrolls"
	"golem/state"
)

// units is the reconciler of systemd's units.
type units struct{}

// Sort implements Reconciler.
func (units) Sort() string { return UnitSort }

// A unitWish is what a glyph says about a unit; what it does not say is given back.
type unitWish struct {
	state           string // running, stopped, "" for not golem's
	enabled, masked *bool
}

func wishOf(g *scrolls.Glyph) unitWish {
	if g == nil {
		return unitWish{}
	}
	return unitWish{str(g.Attrs, "state"), boolOf(g.Attrs, "enabled"), boolOf(g.Attrs, "masked")}
}

// says whether a link is of the kind that the wish is about.
func (w unitWish) says(l unitLink) bool {
	if l.masks() {
		return w.masked != nil
	}
	return w.enabled != nil
}

// wants says whether a link helps to what the wish says.
func (w unitWish) wants(l unitLink) bool {
	if l.masks() {
		return w.masked != nil && *w.masked
	}
	return w.enabled != nil && *w.enabled
}

// A unitAct is one thing that a turn does to a unit.
type unitAct struct {
	do    string // take, unmask, disable, enable, stop, start, put, mask
	unit  string
	links []unitLink
}

// A unitWork is what is worked out in a turn of a unit.
type unitWork struct {
	w   *World
	r   Request
	t   *Turn
	g   *scrolls.Glyph // the declared one; nil
	was *state.Layer   // what the journal has; nil
	u   *unit
	now unitState
	// found is what was there before golem; nil for unknown.
	found *unitState
	entry *unitEntry // what the ledger knows from before; nil
	done  unitDoings // what golem did and still stands
	wish  unitWish
	acts  []unitAct
	// serves are the services that get their sockets from the unit.
	serves map[string]*unit
	// again are triggers that are started again because the unit is to run again.
	again []string
}

// Turn implements Reconciler.
func (s units) Turn(ctx context.Context, w *World, r Request) (*Turn, error) {
	k := &unitWork{w: w, r: r, t: &Turn{Request: r, Wild: true}}
	k.t.work = k
	if len(r.Set) > 0 {
		k.g = r.Set[0]
	}
	k.wish = wishOf(k.g)
	if err := k.recall(); err != nil {
		return nil, err
	}
	if k.r.Blind && k.g != nil && k.was != nil && k.was.Key == k.g.Key && CID(k.was.Glyph) == CID(k.g) {
		k.t.Noops = []scrolls.Key{k.g.Key}
		return k.t, nil
	}
	if err := k.look(ctx); err != nil {
		return nil, err
	}
	if err := k.decide(); err != nil {
		return nil, err
	}
	k.judge()
	if k.g == nil && k.acting("start") && !k.r.Late {
		// A rollback starts it when the files are back that it reads.
		k.t.Postpone, k.t.Acts, k.t.Step = true, false, nil
	}
	return k.t, nil
}

// recall reads what the journal has of the unit.
func (k *unitWork) recall() error {
	var err error
	if k.entry, err = k.w.unitEntry(k.r.Resource); err != nil {
		return err
	}
	rec := k.r.Record
	if rec == nil {
		return nil
	}
	for i := range rec.Layers {
		layer := &rec.Layers[i]
		if layer.Lineage != k.r.Lineage && k.g != nil {
			return &AttrError{Attr: "unit", Summary: "Unit belongs to another lineage", Err: fmt.Errorf(
				"%s is %s in the lineage %q; a unit belongs to at most one", k.g.Key, layer.Key, layer.Lineage)}
		}
		k.was = layer
	}
	if k.was == nil || len(k.was.Inverse) == 0 {
		return nil
	}
	if err := json.Unmarshal(k.was.Inverse, &k.done); err != nil {
		return fmt.Errorf("read what golem did to %s: %w", quote(k.r.Resource), err)
	}
	if len(rec.Found) == 0 || string(rec.Found) == "null" {
		return nil
	}
	k.found = &unitState{}
	if err := json.Unmarshal(rec.Found, k.found); err != nil {
		return fmt.Errorf("read what was found of %s: %w", quote(k.r.Resource), err)
	}
	return nil
}

// look takes down the unit as it is.
func (k *unitWork) look(ctx context.Context) error {
	if !k.w.Host.systemd() {
		return fmt.Errorf("ask systemd about %s: this host is not run by it", quote(k.r.Resource))
	}
	if k.g != nil && k.wish.state != "stopped" {
		if err := k.w.rereadUnits(ctx); err != nil { // only where this run wrote unit files
			return err
		}
	}
	u, err := k.w.unit(ctx, k.r.Resource)
	if err != nil {
		return err
	}
	was := wishOf(nil)
	if k.was != nil {
		was = wishOf(k.was.Glyph)
	}
	if k.wish.state != "" || was.state != "" {
		if u, err = k.w.settled(ctx, u); err != nil {
			return err
		}
	}
	k.u = u
	starts := k.wish.state != "" || was.state != ""
	if u.running() && k.wish.state == "running" {
		starts = false // what it needs runs already
	}
	if k.now, err = k.w.stateOf(ctx, u, k.done, starts); err != nil {
		return err
	}
	if u.kind() == "socket" {
		if k.serves, err = k.w.units(ctx, u.Triggers...); err != nil {
			return err
		}
	}
	d := k.w.unitDesk()
	d.mu.Lock()
	fore, foreseen := d.fore[k.r.Resource]
	d.mu.Unlock()
	if foreseen { // a recovery comes first, and leaves it like this
		own := *u
		own.Active, own.Sub, own.File = fore.Active, fore.Sub, fore.File
		k.u, k.now = &own, fore
	}
	k.inherit()
	return nil
}

// inherit takes over what the ledger knows of the unit, as long as it is as golem left
// it: what was found before, for a unit without a record; and golem's doing, for a glyph
// that says whether it runs. For any other the ledger keeps it.
func (k *unitWork) inherit() {
	if k.r.Record == nil {
		k.found = &k.now
	}
	if k.entry == nil || k.entry.Done.Started != k.now.running() {
		return
	}
	if k.r.Record == nil {
		k.found = &k.entry.Found
	}
	if k.g != nil && k.wish.state != "" {
		k.done.Started, k.done.Stopped, k.done.With = k.entry.Done.Started, k.entry.Done.Stopped, k.entry.Done.With
	}
}

// decide works out what has to be done, each fact on its own: what the glyph says is
// made so, and of what it does not say golem's doing is taken back.
func (k *unitWork) decide() error {
	if k.g == nil && (k.found == nil || k.was == nil || !k.was.Changed) {
		return nil // nothing is known of it, or golem never did anything
	}
	if k.g != nil {
		if err := k.refuse(); err != nil {
			return err
		}
	}
	if k.found != nil {
		k.giveBackLinks()
	}
	k.decideMask()
	if err := k.decideEnabled(); err != nil {
		return err
	}
	if err := k.decideState(); err != nil {
		return err
	}
	k.sortActs()
	return k.refuseMasked()
}

func (k *unitWork) add(do, unit string, links ...unitLink) {
	k.acts = append(k.acts, unitAct{do, unit, links})
}

// acting says whether the turn does a thing.
func (k *unitWork) acting(do string) bool {
	return slices.ContainsFunc(k.acts, func(a unitAct) bool { return a.do == do })
}

// giveBackLinks takes back links that golem made where the glyph says nothing of them any
// more, and puts back those it took where the glyph does not say that they are to go.
func (k *unitWork) giveBackLinks() {
	var take, put []unitLink
	for _, l := range k.done.Made {
		if !k.wish.says(l) && has(k.now.Links, l) {
			take = append(take, l)
		}
	}
	for _, l := range k.done.Taken {
		if (!k.wish.says(l) || k.wish.wants(l)) && len(without([]unitLink{l}, k.now.Links)) > 0 {
			put = append(put, l)
		}
	}
	if len(take) > 0 {
		k.add("take", k.u.ID, take...)
	}
	if len(put) > 0 {
		k.add("put", k.u.ID, put...)
	}
}

// puts are the links that the turn puts back.
func (k *unitWork) puts() []unitLink {
	for _, a := range k.acts {
		if a.do == "put" {
			return slices.Clone(a.links)
		}
	}
	return nil
}

// masks are the links that mask the unit now, before anything is done.
func (k *unitWork) masks() []unitLink { return k.now.masksOf(k.u.ID) }

func (k *unitWork) decideMask() {
	if k.wish.masked == nil {
		return
	}
	masks := k.masks()
	lasting := slices.ContainsFunc(append(k.puts(), masks...), func(l unitLink) bool { return l.masks() && !l.runtime() })
	switch {
	case *k.wish.masked && !lasting:
		k.add("mask", k.u.ID)
	case !*k.wish.masked && len(masks) > 0:
		k.add("unmask", k.u.ID, masks...)
	}
}

// enabling are the links by which the unit is enabled: for a want, or by another name.
func (k *unitWork) enabling() []unitLink {
	return slices.DeleteFunc(slices.Clone(k.now.Links), func(l unitLink) bool {
		dir, name := split(l.Path)
		return l.masks() || l.script() || name == k.u.ID && slices.Contains(linkDirs, dir)
	})
}

// decideEnabled works out what it takes for the unit to start at boot, or not to.
func (k *unitWork) decideEnabled() error {
	if k.wish.enabled == nil {
		return nil
	}
	file := k.u.File
	if !*k.wish.enabled {
		if file == "enabled" || file == "enabled-runtime" || strings.HasPrefix(file, "masked") && k.wants(true) {
			k.add("disable", k.u.ID)
		}
		return nil
	}
	whole := true
	for _, l := range k.done.Made {
		whole = whole && (l.masks() || has(k.now.Links, l))
	}
	back := k.found != nil && k.found.File == "enabled" && len(k.puts()) > 0
	if back || file == "enabled" && whole || strings.HasPrefix(file, "masked") && whole && k.wants(false) {
		return nil
	}
	if k.u.known() {
		if err := k.refuseEnabling(file); err != nil {
			return err
		}
	}
	k.add("enable", k.u.ID)
	return nil
}

// wants says whether something wants the unit, masked or not: for good, or also only
// until the next boot.
func (k *unitWork) wants(runtime bool) bool {
	return slices.ContainsFunc(k.enabling(), func(l unitLink) bool {
		dir, name := split(l.Path)
		return (runtime || !l.runtime()) && name == k.u.ID && !slices.Contains(linkDirs, dir)
	})
}

func (k *unitWork) decideState() error {
	switch k.wish.state {
	case "running":
		for _, id := range k.done.With {
			if k.left(id) {
				k.again = append(k.again, id)
			}
		}
		if !k.u.running() || len(k.again) > 0 {
			k.add("start", k.u.ID)
		}
	case "stopped":
		if k.up() || len(k.u.triggers(k.now)) > 0 {
			k.add("stop", k.u.ID)
		}
	default:
		if k.mayStop() && k.neededBy() == "" {
			k.add("stop", k.u.ID)
		} else if err := k.decideBack(); err != nil {
			return err
		}
	}
	return nil
}

// mayStop says whether the unit runs because golem started it.
func (k *unitWork) mayStop() bool {
	return k.found != nil && !k.found.running() && k.done.Started && k.up()
}

// neededBy is a unit that stays declared and that would stop with this one, which its
// own glyph no longer keeps running; "" for none.
func (k *unitWork) neededBy() string {
	if k.wish.state != "" || !k.mayStop() {
		return ""
	}
	for _, id := range k.u.dependents(k.now) {
		if k.w.Needed(RecordKey(UnitSort, id)) {
			return id
		}
	}
	return ""
}

// left says whether a unit that golem stopped with this one is still as golem left it.
func (k *unitWork) left(id string) bool {
	if active := k.now.Beside[id]; active == "active" || active == "reloading" || k.w.runs(id) != "" {
		return false // it is up, or a glyph of its own says what it is to be
	}
	// A socket cannot be started beside its running service.
	return k.w.Ledger[RecordKey(UnitSort, id)] != nil && !(k.u.running() && unitSuffix(id) == "socket")
}

// up says whether the unit runs, or is about to.
func (k *unitWork) up() bool { return k.u.running() || k.u.Active == "activating" }

// actOrder is the order of what is done in a turn: what bars a start goes before it,
// and what would bar one comes after it.
var actOrder = []string{"take", "unmask", "disable", "enable", "stop", "start", "put", "mask"}

func (k *unitWork) sortActs() {
	slices.SortStableFunc(k.acts, func(a, b unitAct) int {
		return slices.Index(actOrder, a.do) - slices.Index(actOrder, b.do)
	})
}
