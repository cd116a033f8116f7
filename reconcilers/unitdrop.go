package reconcilers

import (
	"fmt"
	"slices"
	"strings"

	"golem/scrolls"
	"golem/state"
)

// judgeDrop tells what undeclaring gives back. Nothing is started on the way out.
func (k *unitWork) judgeDrop() {
	k.newStep()
	c := Change{Effect: EffectForget, Reason: k.leftText(), Before: k.before()}
	switch {
	case k.acting("start"):
		c.Effect, c.Reason = "start", "started again: "+golemStopped
		if links := k.does(); len(k.acts) > 1 {
			c.Reason += "; " + links
		}
	case k.acting("stop"):
		c.Effect, c.Reason = "stop", givenBack
		for _, a := range k.acts {
			c.Reason = strings.Join(append([]string{c.Reason}, k.linksBack(a)...), "; ")
		}
	case k.acting("take") || k.acting("put"):
		c.Effect = EffectRestore
		c.Reason = strings.TrimPrefix(k.leftText()+"; "+k.does()+", as golem found it", "; ")
	case c.Reason == "":
		c.Reason = "what golem made is gone already"
	}
	for _, key := range sortedKeys(k.r.Drop) {
		if k.was == nil || key == k.was.Key {
			k.tell(state.Remove, c, k.r.Drop[key])
		}
	}
}

// leftText says why the unit is not stopped when its glyph goes.
func (k *unitWork) leftText() string {
	was := unitWish{}
	changed := false
	if k.was != nil {
		was, changed = wishOf(k.was.Glyph), k.was.Changed
	}
	switch {
	case k.found == nil:
		return "nothing is known of it before golem; left as it is"
	case !k.u.known():
		return "there is no such unit any more"
	case was == unitWish{}:
		return "golem only reloads it; left as it is"
	case k.neededBy() != "":
		return k.neededBy() + " needs it; left running for that"
	case k.done.left() && !k.u.running():
		return "golem stopped it; nothing is started on the way out"
	case was.state == "" && changed:
		return "" // its links are all there was
	case was.state == "" && !changed:
		return "it was so before golem; left as it is"
	case k.found.running() && k.u.running():
		return "it was running before golem; left as it is"
	case k.found.running():
		return "it was running before golem, and is not now; nothing is started on the way out"
	case k.done.Started:
		return "it is stopped already"
	case k.u.running():
		return "golem did not start it; left as it is"
	}
	return "it was stopped before golem; left as it is"
}

// tellUnits lists what becomes of which unit.
func (k *unitWork) tellUnits() {
	key := keyOfTurn(k)
	tell := func(do, unit, reason string) {
		k.t.Units = append(k.t.Units, UnitEffect{Do: do, Unit: unit, Key: key, Reason: reason})
	}
	for _, a := range k.acts {
		switch a.do {
		case "stop":
			k.tellStops(tell)
		case "start":
			if !k.u.running() {
				tell("start", k.u.ID, k.startReason())
			}
			for _, id := range k.again {
				tell("start", id, "golem stopped it with "+k.u.ID)
			}
			for _, id := range k.rivals() {
				tell("stop", id, fmt.Sprintf("it cannot run beside %s", k.u.ID))
			}
			for _, id := range k.pulls() {
				tell("start", id, fmt.Sprintf("%s pulls it in", k.u.ID))
			}
		}
	}
	if k.g == nil && !k.acting("stop") && !k.acting("start") && len(k.t.Changes) > 0 {
		c := k.t.Changes[0]
		tell(map[Effect]string{EffectForget: "forget", EffectRestore: "restore"}[c.Effect], k.u.ID, c.Reason)
	} else if k.g != nil && !k.acting("stop") && (k.acting("take") || k.acting("put")) {
		tell("restore", k.u.ID, k.does())
	}
}

func keyOfTurn(k *unitWork) scrolls.Key {
	if k.g != nil {
		return k.g.Key
	}
	if k.was != nil {
		return k.was.Key
	}
	if len(k.r.Drop) == 0 {
		return k.entry.By // of a by-product
	}
	return sortedKeys(k.r.Drop)[0]
}

func (k *unitWork) startReason() string {
	if k.wish.state == "" {
		return golemStopped
	}
	if k.was != nil && k.was.Key == k.g.Key && CID(k.was.Glyph) == CID(k.g) {
		return "declared running, and is " + k.now.Active
	}
	return "declared running"
}

// tellStops names every unit that stops, before it happens.
func (k *unitWork) tellStops(tell func(do, unit, reason string)) {
	if k.wish.state == "stopped" {
		for _, id := range k.u.triggers(k.now) {
			tell("stop", id, fmt.Sprintf("it would start %s again", k.u.ID))
		}
	}
	if !k.up() {
		return
	}
	if k.wish.state == "stopped" {
		tell("stop", k.u.ID, "declared stopped")
	} else {
		tell("stop", k.u.ID, k.startedBy())
		k.t.Units[len(k.t.Units)-1].Done = "restored: " + k.t.Changes[0].Reason
	}
	for _, id := range k.u.dependents(k.now) {
		tell("stop", id, fmt.Sprintf("it needs %s, and stops with it", k.u.ID))
	}
}

// startedBy says when golem started the unit, where that is known.
func (k *unitWork) startedBy() string {
	d := k.w.unitDesk()
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := d.revisions[keyOfTurn(k)]; n > 0 && k.done.Fresh {
		return fmt.Sprintf("started by golem in revision %d", n)
	}
	return "started by golem"
}

// Fit implements Reconciler.
func (units) Fit(w *World, t *Turn) error {
	k, ok := t.work.(*unitWork)
	if !ok || k.u == nil {
		return nil
	}
	k.w = w
	if err := k.fitUnit(); err != nil {
		return err
	}
	d := w.unitDesk()
	d.mu.Lock()
	switch {
	case k.acting("start"):
		d.will[k.r.Resource] = unitWill{running: true}
		for _, id := range k.rivals() {
			d.will[id] = unitWill{}
		}
		for _, id := range slices.Concat(k.again, k.pulls()) {
			d.will[id] = unitWill{running: true}
		}
	case k.acting("stop"):
		for _, id := range append(k.stopsWith(), k.r.Resource) {
			d.will[id] = unitWill{}
		}
	}
	d.mu.Unlock()
	if t.Step == nil || t.ByProduct() {
		return nil
	}
	if !k.u.known() {
		k.tellComing()
	}
	if w.rewritten(k.u.ID) {
		t.Seen = unseen // what the run has done to its file by then shows in it
	}
	return k.fitLedger()
}

// tellComing says what brings a unit that is not there yet.
func (k *unitWork) tellComing() {
	if k.g == nil {
		return
	}
	by := "comes with " + k.w.comesWith(k.u.ID)
	for i := range k.t.Changes {
		c := &k.t.Changes[i]
		if c.Op == state.Remove || strings.Contains(c.Reason, by) {
			continue
		}
		if c.Effect == EffectRecord { // what it will be found as is not known before it is there
			c.Reason = "made as declared when it is there"
		}
		c.Reason = strings.TrimSuffix(by+"; "+c.Reason, "; ")
	}
	if k.wish.state == "stopped" {
		k.t.Units = append(k.t.Units, UnitEffect{Do: "stop", Unit: k.u.ID, Key: k.g.Key, Reason: "declared stopped, if what brings it starts it"})
	}
}

// fitLedger brings the ledger up to date: what golem leaves stopped keeps the state it
// was found in until it is declared again.
func (k *unitWork) fitLedger() error {
	id := k.r.Resource
	k.t.Step.Ledger = nil
	switch {
	case k.g != nil && k.entry != nil && (k.wish.state != "" || k.entry.Done.Started != k.now.running()):
		k.t.setUnitEntry(k.w, id, nil) // its record knows it from here on, or it is no longer so
	case k.g == nil && k.was != nil && k.found != nil && k.done.left() && !k.u.running() && !k.acting("start"):
		k.t.setUnitEntry(k.w, id, &unitEntry{Found: *k.found, Done: k.done, By: keyOfTurn(k)})
	case k.neededBy() != "":
		k.t.setUnitEntry(k.w, id, &unitEntry{Found: *k.found, Done: unitDoings{Started: true}, By: keyOfTurn(k)})
	}
	if k.acting("stop") && k.wish.state == "stopped" {
		if err := k.enter(k.stopsWith(), "active", unitDoings{Stopped: true}); err != nil {
			return err
		}
	}
	if err := k.enter(k.rivals(), "active", unitDoings{Stopped: true}); err != nil {
		return err
	}
	for _, other := range k.again {
		k.t.setUnitEntry(k.w, other, nil)
	}
	return nil
}

// enter writes units into the ledger that are stopped or started because of this one.
// One that is again as it was found before is taken out.
func (k *unitWork) enter(ids []string, found string, done unitDoings) error {
	for _, id := range ids {
		known, err := k.w.knowsRuns(id, done.Started)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		was, err := k.w.unitEntry(id)
		switch {
		case err != nil:
			return err
		case was == nil:
			k.t.setUnitEntry(k.w, id, &unitEntry{Found: unitState{Active: found}, Done: done, By: keyOfTurn(k)})
		case was.Done.Started != done.Started:
			k.t.setUnitEntry(k.w, id, nil)
		}
	}
	return nil
}
