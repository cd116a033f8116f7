package reconcilers

import (
	"context"

	"golem/state"
)

// golemStopped is why a rollback starts a unit.
const golemStopped = "golem stopped it since the revision that this goes back to"

// ranBefore says whether a unit ran before the steps that a rollback undoes: where the
// first of them that starts or stops it, or something beside it, found it running.
func (w *World) ranBefore(id string) (bool, error) {
	if len(w.TakenBack) == 0 {
		return false, nil
	}
	seen := keepAt(w, "ran before", func() *unitsBefore { return readBefore(w.TakenBack) })
	return seen.ran[id], seen.err
}

// unitsBefore are the units that steps moved, and whether each ran before the first of
// them.
type unitsBefore struct {
	ran map[string]bool
	err error
}

// readBefore says of each unit that some steps, oldest first, were about whether it ran before
// them.
func readBefore(steps []*state.Step) *unitsBefore {
	b := &unitsBefore{ran: map[string]bool{}}
	note := func(id string, ran bool) {
		if _, noted := b.ran[id]; !noted {
			b.ran[id] = ran
		}
	}
	for _, s := range steps {
		if s.Sort != UnitSort || s.Status != state.Done {
			continue
		}
		before, expect, err := readUnitStep(s)
		if err != nil {
			b.err = err
			return b
		}
		if !expect.Runs {
			continue
		}
		note(s.Resource, before.State.running())
		for id, active := range before.State.Beside {
			note(id, active == "active" || active == "reloading")
		}
		for _, id := range before.State.Rivals {
			note(id, true)
		}
		for _, id := range before.State.Pulls {
			note(id, false)
		}
	}
	return b
}

// decideBack starts again what golem stopped, where a rollback undoes the stop (design:
// "Rollback is not undeclare"): the unit, and what was stopped with it.
func (k *unitWork) decideBack() error {
	for _, id := range k.done.With {
		ran, err := k.w.ranBefore(id)
		if err != nil {
			return err
		}
		if ran && k.left(id) {
			k.again = append(k.again, id)
		}
	}
	ran, err := k.w.ranBefore(k.u.ID)
	if err != nil {
		return err
	}
	if ran && k.done.Stopped && !k.up() || len(k.again) > 0 {
		k.add("start", k.u.ID)
	}
	return nil
}

// startTurn starts a unit again that golem left stopped, where a rollback undoes that.
func (units) startTurn(ctx context.Context, w *World, u *unit, entry *unitEntry) (*Turn, error) {
	t := &Turn{Request: Request{Sort: UnitSort, Resource: u.ID, Late: true}, Acts: true, Wild: true}
	k := &unitWork{w: w, r: t.Request, t: t, u: u, found: &entry.Found, done: entry.Done, entry: entry}
	t.work = k
	var err error
	if k.now, err = w.stateOf(ctx, u, k.done, true); err != nil {
		return nil, err
	}
	k.add("start", u.ID)
	t.Step = w.besideGlyph(u.ID)
	t.Step.Inverse, t.Step.Expect = encode(unitInverse{k.now}), encode(unitExpect{Runs: true})
	t.Units = []UnitEffect{{Do: "start", Unit: u.ID, Key: entry.By, Reason: golemStopped}}
	t.setUnitEntry(w, u.ID, nil)
	return t, nil
}
