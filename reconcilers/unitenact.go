package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"golem/state"
)

// Enact implements Reconciler: unit after unit; then all that were started are watched
// together.
func (units) Enact(ctx context.Context, w *World, _ Store, turns []*Turn) (int, error) {
	defer w.forget()
	var watch []watched
	for i, t := range turns {
		k, ok := t.work.(*unitWork)
		if !ok {
			continue // only the ledger changes
		}
		k.w = w
		started, err := k.enact(ctx)
		if err != nil {
			return i, err
		}
		if started {
			watch = append(watch, watched{turn: i, id: k.u.ID})
		}
	}
	if i, err := w.watch(ctx, watch); err != nil {
		return i, err
	}
	for i, t := range turns {
		if k, ok := t.work.(*unitWork); ok && k.acting("stop") && k.wish.state == "stopped" {
			if err := w.staysDown(ctx, k.u.ID); err != nil {
				return i, err
			}
		}
	}
	if err := w.rereadUnits(ctx); err != nil {
		return len(turns) - 1, err
	}
	for i, t := range turns {
		if k, ok := t.work.(*unitWork); ok && k.acting("start") {
			if err := k.pulled(ctx, turns); err != nil {
				return i, err
			}
		}
	}
	return -1, nil
}

// pulled notes which units were started with the unit. Those that a turn beside it was to
// start, too, it notes itself.
func (k *unitWork) pulled(ctx context.Context, turns []*Turn) error {
	found, err := k.w.units(ctx, k.pulls()...)
	if err != nil {
		return err
	}
	var up []string
	for _, id := range k.pulls() {
		own := slices.ContainsFunc(turns, func(t *Turn) bool {
			o, ok := t.work.(*unitWork)
			return ok && t.Resource == id && o.acting("start")
		})
		if found[id].running() && !own {
			up = append(up, id)
		}
	}
	return k.enter(up, "inactive", unitDoings{Started: true})
}

// enact does one unit's acts. It says whether the unit was started.
func (k *unitWork) enact(ctx context.Context) (started bool, err error) {
	done := k.done
	for _, a := range k.acts {
		switch a.do {
		case "stop":
			err = k.stop(ctx)
		case "start":
			started = true
			err = k.start(ctx)
		default:
			err = k.relink(ctx, a, &done)
		}
		if err != nil {
			return started, err
		}
	}
	if k.g != nil && len(k.acts) > 0 {
		k.learn(done)
	}
	return started, nil
}

// learn writes into the record which links were made and taken, now that it is known.
func (k *unitWork) learn(links unitDoings) {
	layer := &k.t.Step.After.Layers[0]
	done := k.recordDoings()
	done.Made, done.Taken = links.Made, links.Taken
	layer.Inverse = encode(done)
}

// relink does an act that changes links, and notes what it changed.
func (k *unitWork) relink(ctx context.Context, a unitAct, done *unitDoings) error {
	before, err := k.w.linksOf(k.u.ID, k.done)
	if err != nil {
		return err
	}
	switch a.do {
	case "take":
		err = k.take(a.links)
	case "put":
		err = k.put(a.links)
	case "disable":
		err = k.disable(ctx, before)
	default:
		err = k.tellFiles(ctx, a.do)
	}
	if err != nil {
		return err
	}
	k.w.forgetUnits()
	after, err := k.w.linksOf(k.u.ID, k.done)
	if err != nil {
		return err
	}
	done.relink(before, after)
	return k.readBack(ctx, a.do)
}

// linksOf are a unit's links as they are now, and those that golem made or took, whatever
// the unit's file says by now.
func (w *World) linksOf(id string, done unitDoings) (unitState, error) {
	all, err := w.linkage()
	if err != nil {
		return unitState{}, err
	}
	k := w.kinOf(id)
	for _, l := range slices.Concat(done.Made, done.Taken) {
		k.paths[l.Path] = true
	}
	return unitState{Links: all.of(k), Dirs: all.wants()}, nil
}

func (k *unitWork) take(links []unitLink) error {
	for _, l := range links {
		if _, err := k.w.Host.takeLink(l); err != nil {
			return err
		}
		// As systemd does, a directory of wants goes with the last link in it; unless
		// it was found empty.
		dir, _ := split(l.Path)
		empty := slices.ContainsFunc(k.found.Dirs, func(d unitLink) bool { return d.Path == dir && d.Node.Size == 0 })
		if empty || !isWantDir(dir) {
			continue
		}
		if err := k.w.Host.dropDir(dir); err != nil {
			return err
		}
	}
	return nil
}

func (k *unitWork) put(links []unitLink) error {
	for _, l := range links {
		if err := k.w.Host.putLink(l, k.found.Dirs); err != nil {
			return err
		}
	}
	return nil
}

// disable takes the links by which the unit is wanted. The link that leads to its file,
// which disabling takes too, is put back: the unit is to be disabled, not to be gone.
func (k *unitWork) disable(ctx context.Context, before unitState) error {
	if err := k.tellFiles(ctx, "disable"); err != nil {
		return err
	}
	for _, l := range before.Links {
		dir, name := split(l.Path)
		if name == k.u.ID && slices.Contains(linkDirs, dir) {
			if err := k.w.Host.putLink(l, before.Dirs); err != nil {
				return err
			}
		}
	}
	return nil
}

// tellFiles lets systemd change the unit's links: for good, and until the next boot
// where there are such.
func (k *unitWork) tellFiles(ctx context.Context, verb string) error {
	if verb == "enable" {
		if err := k.w.rereadUnits(ctx, k.u); err != nil {
			return err
		}
	}
	runtime, lasting := false, verb == "enable" || verb == "mask"
	links := k.enabling()
	if verb == "unmask" {
		links = k.masks()
	}
	if verb == "disable" || verb == "unmask" {
		for _, l := range links {
			runtime, lasting = runtime || l.runtime(), lasting || !l.runtime()
		}
	}
	if lasting {
		if err := k.w.systemctl(ctx, verb, "--", k.u.ID); err != nil {
			return fmt.Errorf("%s %s: %w", verb, k.u.ID, err)
		}
	}
	if runtime {
		if err := k.w.systemctl(ctx, verb, "--runtime", "--", k.u.ID); err != nil {
			return fmt.Errorf("%s %s: %w", verb, k.u.ID, err)
		}
	}
	return nil
}

// readBack looks whether what was told happened: success is not believed.
func (k *unitWork) readBack(ctx context.Context, do string) error {
	u, err := k.w.unit(ctx, k.u.ID)
	if err != nil {
		return err
	}
	masked := strings.HasPrefix(u.File, "masked")
	holds := true
	switch do {
	case "enable":
		holds = u.File == "enabled" || masked
	case "disable":
		holds = u.File != "enabled" && u.File != "enabled-runtime"
	case "mask":
		holds = u.File == "masked"
	case "unmask":
		holds = !masked
	}
	if !holds {
		if err := k.refuseEnabling(u.File); do == "enable" && err != nil {
			return err
		}
		return fmt.Errorf("%s %s: systemd said that it is done, but the unit is %s", do, k.u.ID, cmp.Or(u.File, "of no state"))
	}
	return nil
}

// stop stops the unit, and with it what would start it again.
func (k *unitWork) stop(ctx context.Context) error {
	var names []string
	if k.wish.state == "stopped" {
		names = k.u.triggers(k.now)
	}
	if k.up() {
		names = append(names, k.u.ID)
	}
	if err := k.w.stopUnits(ctx, names...); err != nil {
		return err
	}
	return k.w.unfail(ctx, k.now, k.u.ID)
}

// stopUnits stops units in one go and looks whether they did.
func (w *World) stopUnits(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	if err := w.systemctl(ctx, append([]string{"stop", "--"}, ids...)...); err != nil {
		return fmt.Errorf("stop %s: %w", list(ids), err)
	}
	found, err := w.units(ctx, ids...)
	if err != nil {
		return err
	}
	for _, id := range ids {
		u := found[id]
		if u.running() {
			return fmt.Errorf("stop %s: systemd said that it is done, but the unit is %s; something may have started it again%s",
				id, u.Active, startedAgainBy(u))
		}
	}
	return nil
}

// unfail forgets the failure of a unit that failed when it was stopped, and had not
// before.
func (w *World) unfail(ctx context.Context, before unitState, id string) error {
	u, err := w.unit(ctx, id)
	if err != nil || u.Active != "failed" || before.Active == "failed" {
		return err
	}
	return w.resetFailed(ctx, id)
}

func (w *World) resetFailed(ctx context.Context, id string) error {
	if err := w.systemctl(ctx, "reset-failed", "--", id); err != nil {
		return fmt.Errorf("reset the failure of %s: %w", id, err)
	}
	return nil
}

// start starts the unit; a failure of before is forgotten first, or systemd may refuse.
func (k *unitWork) start(ctx context.Context) error {
	if err := k.w.rereadUnits(ctx, k.u); err != nil {
		return err
	}
	for _, id := range inStartOrder(append(slices.Clone(k.again), k.u.ID), k.u.ID) {
		if err := k.w.startUnit(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) startUnit(ctx context.Context, id string) error {
	u, err := w.unit(ctx, id)
	if err != nil || u.running() {
		return err
	}
	if u.Active == "failed" {
		if err := w.resetFailed(ctx, id); err != nil {
			return err
		}
	}
	if err := w.systemctl(ctx, "start", "--", id); err != nil {
		return w.broken(ctx, "start", id, err)
	}
	return nil
}

// Flush implements Flusher.
func (units) Flush(ctx context.Context, w *World) error { return w.rereadUnits(ctx) }

// Halt implements Halter.
func (units) Halt(ctx context.Context, w *World, s *state.Step) error {
	before, expect, err := readUnitStep(s)
	if err != nil || !expect.Runs && !expect.Links {
		return err
	}
	return w.halt(ctx, s, before.State, expect)
}

// halt stops what a step started, and takes the links that it made.
func (w *World) halt(ctx context.Context, s *state.Step, before unitState, expect unitExpect) error {
	defer w.forget()
	w.forgetUnits()
	if expect.Runs && !before.running() {
		if err := w.undoStart(ctx, s.Resource, before, expect); err != nil {
			return err
		}
	}
	if expect.Links {
		return w.undoLinks(s.Resource, before)
	}
	return nil
}

// Undo implements Reconciler: exactly the state before the step, from any half-way
// point. Unlike undeclaring it starts again what the step stopped.
func (units) Undo(ctx context.Context, w *World, _ Store, s *state.Step) error {
	before, expect, err := readUnitStep(s)
	if err != nil || !expect.Runs && !expect.Links {
		return err
	}
	if err := w.halt(ctx, s, before.State, expect); err != nil {
		return err
	}
	defer w.forget()
	if expect.Runs {
		if err := w.undoStop(ctx, s.Resource, before.State); err != nil {
			return err
		}
	}
	if err := w.putLinks(s.Resource, before.State); err != nil {
		return err
	}
	return w.rereadUnits(ctx)
}
