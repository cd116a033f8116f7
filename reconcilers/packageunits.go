package reconcilers

import (
	"context"
	"path"
	"slices"
	"strings"

	"golem/scrolls"
)

// tellUnits lists the units that stop because their package goes, and those that a
// package's scripts may restart because it changes: each with the turn of its package, or
// with the first.
func (j *joining) tellUnits() error {
	if !j.w.Host.systemd() {
		return nil
	}
	for _, t := range j.turns {
		t.Units = nil
	}
	for i := range j.tx.effects {
		e := &j.tx.effects[i]
		if !e.From.there() || e.To.there() && e.To.Version == e.From.Version {
			continue
		}
		key := packageKey(e.Resource)
		units, err := j.w.unitsOfPackage(j.ctx, j.d.real.packages[e.Resource], key, !e.To.there())
		if err != nil {
			return err
		}
		turn := j.turns[0]
		for _, t := range j.turns {
			if t.Resource == e.Resource {
				turn = t
			}
		}
		if len(turn.Changes) > 0 && turn.Resource == e.Resource {
			key = turn.Changes[0].Key
		}
		for _, id := range units {
			effect := UnitEffect{Do: "stop", Unit: id, Key: key, Reason: "its package goes: " + string(key)}
			if e.To.there() {
				effect.Do, effect.Reason = "restart", "its package may restart it: "+string(key)+" changes its version"
			}
			turn.Units = append(turn.Units, effect)
		}
	}
	return nil
}

// unitsOfPackage lists the running units that a package ships. If it goes, all that it
// ships go with it.
func (w *World) unitsOfPackage(ctx context.Context, e *dpkgEntry, key scrolls.Key, goes bool) ([]string, error) {
	if e == nil {
		return nil, nil
	}
	list, err := w.Host.info(e, "list")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, line := range strings.Split(string(list), "\n") {
		dir, name := path.Split(line)
		if slices.Contains(unitDirs, strings.TrimSuffix(dir, "/")) && unitSuffix(name) != "" && !strings.Contains(name, "@.") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	found, err := w.units(ctx, names...)
	if err != nil {
		return nil, err
	}
	var running []string
	d := w.unitDesk()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range names {
		if goes && found[name].known() {
			d.goes[found[name].ID] = key
		}
		if u := found[name]; u.running() && !slices.Contains(running, u.ID) {
			running = append(running, u.ID)
		}
	}
	return running, nil
}
