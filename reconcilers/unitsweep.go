package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"

	"golem/state"
)

// Sweep implements Reconciler: units stop that were started because golem started
// another, and that nothing needs any more. The ledger forgets what is not as golem left
// it: a stopped unit that somebody started again, a started one that was stopped.
func (s units) Sweep(ctx context.Context, w *World) ([]*Turn, error) {
	var ids []string
	for _, entry := range w.Ledger {
		if entry != nil && entry.Sort == UnitSort && w.runs(entry.Resource) == "" {
			ids = append(ids, entry.Resource)
		}
	}
	if len(ids) == 0 || !w.Host.systemd() {
		return nil, nil
	}
	sort.Strings(ids)
	found, err := w.units(ctx, ids...)
	if err != nil {
		return nil, err
	}
	var turns []*Turn
	spare := map[string]*unitEntry{} // running by-products
	for _, id := range ids {
		entry, err := w.unitEntry(id)
		if err != nil {
			return nil, err
		}
		switch running := w.willRun(found[id]); {
		case entry.Done.Started != running || !found[id].known():
			turns = append(turns, w.forgetTurn(id))
		case running:
			spare[id] = entry
		case entry.Done.Stopped:
			t, err := s.startAgain(ctx, w, id, found[id], entry)
			if err != nil {
				return nil, err
			}
			if t != nil {
				turns = append(turns, t)
			}
		}
	}
	if err := w.keepPulled(ctx, spare, found); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if entry := spare[id]; entry != nil {
			t, err := s.sweepTurn(ctx, w, found[id], entry)
			if err != nil {
				return nil, err
			}
			turns = append(turns, t)
		}
	}
	return turns, nil
}

// startAgain is the turn that starts a by-product which golem stopped, where the run goes back
// to when it ran; nil where it stays stopped.
func (s units) startAgain(ctx context.Context, w *World, id string, u *unit, entry *unitEntry) (*Turn, error) {
	if ran, err := w.ranBefore(id); err != nil || !ran {
		return nil, err
	}
	return s.startTurn(ctx, w, u, entry)
}

// runs is the state that a glyph declares of a unit when the run is over: "running",
// "stopped", or "" where none says one.
func (w *World) runs(id string) string {
	if g := w.Declares(UnitSort, id); g != nil {
		return str(g.Attrs, "state")
	}
	return ""
}

// knowsRuns says whether a unit's record tells why the unit runs or not: its glyph says
// that, and stays; or it was found so.
func (w *World) knowsRuns(id string, running bool) (bool, error) {
	rec := w.Record(UnitSort, id)
	if rec == nil || len(rec.Layers) == 0 {
		return false, nil
	}
	if state := str(rec.Layers[0].Glyph.Attrs, "state"); state != "" && state == w.runs(id) {
		return true, nil
	}
	var found unitState
	if err := json.Unmarshal(rec.Found, &found); err != nil {
		return false, fmt.Errorf("read what was found of %s: %w", quote(id), err)
	}
	return found.running() == running, nil
}

// willRun says whether a unit will be running by the run's last wave.
func (w *World) willRun(u *unit) bool {
	d := w.unitDesk()
	d.mu.Lock()
	defer d.mu.Unlock()
	if will, planned := d.will[u.ID]; planned && !w.Acts {
		return will.running
	}
	return u.running()
}

// keepPulled takes out of the units to stop those that others pull in which stay. What
// only a target wants is not needed: targets come up at boot.
func (w *World) keepPulled(ctx context.Context, spare map[string]*unitEntry, found map[string]*unit) error {
	for changed := true; changed; {
		changed = false
		for id := range spare {
			by, err := w.units(ctx, found[id].PulledBy...)
			if err != nil {
				return err
			}
			needed := slices.ContainsFunc(found[id].PulledBy, func(other string) bool {
				o := by[other]
				return o.kind() != "target" && o.kind() != "slice" && spare[o.ID] == nil && w.willRun(o)
			})
			if needed {
				delete(spare, id)
				changed = true
			}
		}
	}
	return nil
}

// forgetTurn takes a line out of the ledger.
func (w *World) forgetTurn(id string) *Turn {
	t := &Turn{Request: Request{Sort: UnitSort, Resource: id, Late: true}}
	t.Step = w.besideGlyph(id)
	t.setUnitEntry(w, id, nil)
	return t
}

// besideGlyph is a step about a unit and not about the glyph that may be in force on it.
func (w *World) besideGlyph(id string) *state.Step {
	rec := w.Record(UnitSort, id)
	return &state.Step{Sort: UnitSort, Resource: id, Before: rec, After: rec}
}

// sweepTurn stops a unit that was started with another.
func (units) sweepTurn(ctx context.Context, w *World, u *unit, entry *unitEntry) (*Turn, error) {
	t := &Turn{Request: Request{Sort: UnitSort, Resource: u.ID, Late: true}, Acts: true, Wild: true}
	k := &unitWork{w: w, r: t.Request, t: t, u: u, found: &entry.Found, done: entry.Done}
	t.work = k
	var err error
	if k.now, err = w.stateOf(ctx, u, k.done, false); err != nil {
		return nil, err
	}
	k.add("stop", u.ID)
	t.Step = w.besideGlyph(u.ID)
	t.Step.Inverse, t.Step.Expect = encode(unitInverse{k.now}), encode(unitExpect{Runs: true})
	t.Units = []UnitEffect{{Do: "stop", Unit: u.ID, Key: entry.By, Reason: "started with " + string(entry.By) + ", and nothing needs it any more"}}
	t.setUnitEntry(w, u.ID, nil)
	return t, nil
}
