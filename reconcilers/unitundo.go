package reconcilers

import (
	"context"
	"fmt"
	"slices"
)

// undoStart stops what a step started: the unit, which was not running before it, and
// the triggers it started.
func (w *World) undoStart(ctx context.Context, id string, before unitState, expect unitExpect) error {
	var up []string
	for _, name := range slices.Concat(expect.Again, []string{id}, before.Pulls) {
		u, err := w.unit(ctx, name)
		if err != nil {
			return err
		}
		if was := before.Beside[name]; name != id && was == "active" {
			continue
		}
		if u.running() || u.changing() {
			up = append(up, u.ID)
		}
	}
	if err := w.stopUnits(ctx, up...); err != nil {
		return err
	}
	return w.unfail(ctx, before, id)
}

// undoLinks takes the links that a step made.
func (w *World) undoLinks(id string, before unitState) error {
	now, err := w.linksOf(id, unitDoings{Made: before.Links})
	if err != nil {
		return err
	}
	defer w.forgetUnits()
	came := differ(now.Links, before.Links)
	for _, l := range came {
		if _, err := w.Host.takeLink(l); err != nil {
			return err
		}
	}
	// An empty directory of wants wants nothing: whoever made it since, it may go.
	for _, dir := range without(now.Dirs, before.Dirs) {
		if err := w.Host.dropDir(dir.Path); err != nil {
			return err
		}
	}
	return nil
}

// putLinks puts the links back that a step took: last of all, since a mask among them
// bars a start.
func (w *World) putLinks(id string, before unitState) error {
	now, err := w.linksOf(id, unitDoings{Made: before.Links})
	if err != nil {
		return err
	}
	defer w.forgetUnits()
	for _, l := range slices.Concat(differ(before.Links, now.Links), before.Masks) {
		if err := w.Host.putLink(l, before.Dirs); err != nil {
			return err
		}
	}
	return nil
}

// liftMasks takes the masks of units that are to start, for that moment: those of a unit
// itself and of those beside it. putLinks puts them back.
func (w *World) liftMasks(down []string, id string, before unitState) error {
	defer w.forgetUnits()
	for _, l := range slices.Concat(before.masksOf(id), before.Masks) {
		if _, name := split(l.Path); slices.Contains(down, name) {
			if _, err := w.Host.takeLink(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// undoStop starts what a step stopped: the unit if it ran, and those beside it.
func (w *World) undoStop(ctx context.Context, id string, before unitState) error {
	down, socket, err := w.fallen(ctx, before)
	if err != nil {
		return err
	}
	u, err := w.unit(ctx, id)
	if err != nil {
		return err
	}
	if before.running() && !u.running() {
		down = append(down, id)
		if u.kind() == "socket" { // nor can one whose service runs: that is started anew
			up, err := w.upOf(ctx, u.Triggers)
			if err == nil {
				err = w.stopUnits(ctx, up...)
			}
			if err != nil {
				return err
			}
			down = append(down, up...)
		}
	} else if socket && u.running() {
		// A socket cannot be started beside its running service.
		if err := w.stopUnits(ctx, id); err != nil {
			return err
		}
		if before.running() {
			down = append(down, id)
		}
	}
	if len(down) == 0 {
		return w.undoPulls(ctx, before)
	}
	if err := w.liftMasks(down, id, before); err != nil {
		return err
	}
	if err := w.rereadUnits(ctx, u); err != nil {
		return err
	}
	for _, name := range inStartOrder(down, id) {
		if err := w.startUnit(ctx, name); err != nil {
			return fmt.Errorf("start again what this run stopped: %w", err)
		}
	}
	return w.undoPulls(ctx, before)
}

// undoPulls stops what starting a unit again started with it, though it had not run.
func (w *World) undoPulls(ctx context.Context, before unitState) error {
	found, err := w.units(ctx, before.Pulls...)
	if err != nil {
		return err
	}
	var up []string
	for _, id := range before.Pulls {
		u := found[id]
		if !u.running() && !u.changing() {
			continue
		}
		needs, err := w.beside(ctx, u, u.RequiredBy)
		if err != nil {
			return err
		}
		needed := false
		for other := range needs {
			needed = needed || !slices.Contains(before.Pulls, other)
		}
		if !needed {
			up = append(up, id)
		}
	}
	return w.stopUnits(ctx, up...)
}

// inStartOrder puts the triggers of a unit first, then the unit, then what needs it.
func inStartOrder(names []string, id string) []string {
	slices.SortStableFunc(names, func(a, b string) int { return startRank(a, id) - startRank(b, id) })
	return names
}

func startRank(name, id string) int {
	switch {
	case name == id:
		return 1
	case isTrigger(name):
		return 0
	}
	return 2
}

func isTrigger(name string) bool {
	return slices.Contains([]string{"socket", "timer", "path"}, unitSuffix(name))
}

// fallen lists the units beside one that were up before and are not any more. socket
// says that a socket is among them.
func (w *World) fallen(ctx context.Context, before unitState) (down []string, socket bool, err error) {
	names := slices.Concat(before.up(func(string) bool { return true }), before.Rivals, before.Serves)
	found, err := w.units(ctx, names...)
	if err != nil {
		return nil, false, err
	}
	for _, name := range names {
		if !found[name].running() {
			down = append(down, name)
			socket = socket || unitSuffix(name) == "socket"
		}
	}
	return down, socket, nil
}
