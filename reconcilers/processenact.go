package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golem/state"
)

// Enact implements Reconciler: what has to stop stops by its old definition, the files
// change, systemd reads them, and what is to run is started.
func (processes) Enact(ctx context.Context, w *World, store Store, turns []*Turn) (int, error) {
	for i, t := range turns {
		k, ok := t.work.(*processWork)
		if !ok || !t.Acts {
			continue
		}
		if err := k.enact(ctx, w, store, t); err != nil {
			return i, err
		}
	}
	return -1, nil
}

// enact stops what runs, exchanges the files, and starts what is to run.
func (k *processWork) enact(ctx context.Context, w *World, store Store, t *Turn) error {
	defer w.forget()
	if err := w.stopOwn(ctx, k.active, k.stop...); err != nil {
		return err
	}
	if len(k.want.paths) == 0 {
		if err := w.unfailOwn(ctx, k.active); err != nil {
			return err
		}
	}
	if len(k.shifts) > 0 {
		b := w.Host.newBatch(w.Blobs, keepWith(store, t.Step), len(k.shifts))
		defer b.close()
		if _, err := b.run(ctx, k.shifts); err != nil {
			return err
		}
		if err := w.rereadUnits(ctx); err != nil {
			return err
		}
	}
	switch {
	case k.restart != "":
		return w.runOwn(ctx, true, k.restart)
	case k.start != "":
		return w.runOwn(ctx, false, k.start)
	}
	return nil
}

// stopOwn stops units of golem's own, in order. A failure of their stopping is
// forgotten: they were to end.
func (w *World) stopOwn(ctx context.Context, before map[string]string, ids ...string) error {
	for _, id := range ids {
		if err := w.stopUnits(ctx, id); err != nil {
			return err
		}
		if err := w.unfail(ctx, unitState{Active: before[id]}, id); err != nil {
			return err
		}
	}
	return nil
}

// runOwn starts a unit of golem's own, or starts it anew, and sees it stay up.
func (w *World) runOwn(ctx context.Context, anew bool, id string) error {
	if !anew {
		if err := w.startUnit(ctx, id); err != nil {
			return err
		}
	} else if err := w.systemctl(ctx, "restart", "--", id); err != nil {
		return w.broken(ctx, "restart", id, err)
	}
	_, err := w.watch(ctx, []watched{{id: id}})
	return err
}

// unfailOwn lets systemd forget that units failed, which are about to go.
func (w *World) unfailOwn(ctx context.Context, active map[string]string) error {
	for _, id := range slices.Sorted(maps.Keys(active)) {
		if active[id] != "failed" {
			continue
		}
		if err := w.resetFailed(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// readProcess decodes a process's step.
func readProcess(s *state.Step) (before, after processState, err error) {
	err = errors.Join(json.Unmarshal(s.Inverse, &before), json.Unmarshal(s.Expect, &after))
	if err != nil {
		err = fmt.Errorf("read the step on process %s: %w", s.Resource, err)
	}
	return before, after, err
}

// Halt implements Halter.
func (processes) Halt(ctx context.Context, w *World, s *state.Step) error {
	before, _, err := readProcess(s)
	if err != nil || len(before.Active) == 0 {
		return err
	}
	defer w.forget()
	w.forget()
	return stopNewcomers(ctx, w, before)
}

// Undo implements Reconciler.
func (processes) Undo(ctx context.Context, w *World, store Store, s *state.Step) error {
	before, after, err := readProcess(s)
	if err != nil || len(before.Active) == 0 {
		return err // only its record changed
	}
	defer w.forget()
	w.forget()
	if err := stopNewcomers(ctx, w, before); err != nil {
		return err
	}
	moved, err := pathsBack(ctx, w, store, s, before, after)
	if err != nil {
		return err
	}
	if err := w.rereadUnits(ctx); err != nil {
		return err
	}
	w.forget()
	for _, unit := range slices.Sorted(maps.Keys(before.Active)) {
		u, err := w.unit(ctx, unit)
		if err != nil {
			return err
		}
		up := isRunning(u.Active)
		switch {
		case !isRunning(before.Active[unit]):
			err = w.unfailOwn(ctx, map[string]string{unit: u.Active})
		case !up:
			err = w.runOwn(ctx, false, unit)
		case moved:
			err = w.runOwn(ctx, true, unit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stopNewcomers stops the units that did not run before the step, by the definition
// that they run by.
func stopNewcomers(ctx context.Context, w *World, before processState) error {
	units := slices.Sorted(maps.Keys(before.Active))
	slices.Reverse(units) // a timer before what it starts
	for _, unit := range units {
		u, err := w.unit(ctx, unit)
		if err != nil {
			return err
		}
		if !isRunning(before.Active[unit]) && isRunning(u.Active) {
			if err := w.stopOwn(ctx, before.Active, unit); err != nil {
				return err
			}
		}
	}
	return nil
}

// pathsBack puts every path back to what stood there before the step, last one first.
// It says whether anything had to be changed.
func pathsBack(ctx context.Context, w *World, store Store, s *state.Step, before, after processState) (moved bool, err error) {
	var made []string
	for _, up := range after.Made {
		made = append(made, string(up.Path))
	}
	for i := len(before.Paths) - 1; i >= 0; i-- {
		p := before.Paths[i]
		next, ok := after.node(p.Path)
		temp := after.Paths[slices.IndexFunc(after.Paths, func(o pathState) bool { return o.Path == p.Path })].Temp
		now, err := w.Host.observe(w.d, p.Path, 0)
		if err != nil {
			return moved, err
		}
		if p.Path == stamp(s.Resource) {
			next, ok = now, true // systemd's own, and nothing worth keeping
		}
		if !ok {
			return moved, fmt.Errorf("read the step on process %s: %s has no end", s.Resource, p.Path)
		}
		if temp == "" {
			temp = tempPrefix + "none"
		}
		moved = moved || differs(now, p.Node) != ""
		u := undoing{path: p.Path, before: p.Node, after: next, temp: temp}
		if i == 0 {
			u.made = made
		}
		if err := w.Host.undo(ctx, w.Blobs, keepWith(store, s), u); err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// Foresee implements Reconciler.
func (processes) Foresee(w *World, s *state.Step) error {
	before, after, err := readProcess(s)
	if err != nil {
		return err
	}
	for _, p := range before.Paths {
		w.predict(p.Path, p.Node)
	}
	for _, up := range after.Made {
		w.predict(string(up.Path), absent())
	}
	d := w.unitDesk()
	d.mu.Lock()
	defer d.mu.Unlock()
	for unit, active := range before.Active {
		d.will[unit] = unitWill{running: isRunning(active)}
	}
	return nil
}

// willBe is what the run leaves of a unit, where it was worked out.
func (w *World) willBe(unit string) (unitWill, bool) {
	d := w.unitDesk()
	d.mu.Lock()
	defer d.mu.Unlock()
	will, ok := d.will[unit]
	return will, ok
}
