package reconcilers

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// undoStart stops what a step started: the unit, which was not running before it, and
// the triggers it started.
func (w *World) undoStart(ctx context.Context, id string, before unitState, expect unitExpect) error {
	var up []string
	for _, name := range append(slices.Clone(expect.Again), id) {
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
	for _, l := range differ(before.Links, now.Links) {
		if err := w.Host.putLink(l, before.Dirs); err != nil {
			return err
		}
	}
	return nil
}

// liftMasks takes a unit's masks for the moment of a start.
func (w *World) liftMasks(id string, before unitState) error {
	defer w.forgetUnits()
	for _, l := range before.Links {
		if _, name := split(l.Path); l.masks() && name == id {
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
		return nil
	}
	if slices.Contains(down, id) {
		if err := w.liftMasks(id, before); err != nil {
			return err
		}
	}
	if err := w.rereadUnits(ctx, u); err != nil {
		return err
	}
	// The triggers first, then the unit, then what needs it.
	slices.SortStableFunc(down, func(a, b string) int { return startRank(a, id) - startRank(b, id) })
	for _, name := range down {
		if err := w.startUnit(ctx, name); err != nil {
			return fmt.Errorf("start again what this run stopped: %w", err)
		}
	}
	return nil
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
	names := slices.Sorted(maps.Keys(before.Beside))
	found, err := w.units(ctx, names...)
	if err != nil {
		return nil, false, err
	}
	for _, name := range names {
		if was := before.Beside[name]; (was == "active" || was == "reloading") && !found[name].running() {
			down = append(down, name)
			socket = socket || unitSuffix(name) == "socket"
		}
	}
	return down, socket, nil
}
