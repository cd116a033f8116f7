package reconcilers

import (
	"context"
	"sort"

	"golem/state"
)

// Sweep implements Reconciler: directories that golem made on the way to something,
// and that nothing needs any more, go; deepest first. What it remembered of others is
// forgotten with them.
func (surfaces) Sweep(_ context.Context, w *World) ([]*Turn, error) {
	var turns []*Turn
	var forget []string
	for _, entry := range w.Ledger {
		if entry == nil || entry.Sort != PathSort {
			continue
		}
		body, ok := w.ledger(entry.Resource)
		if !ok {
			continue
		}
		if w.Needed(entry.Resource) {
			t, err := ownerTurn(w, entry.Resource, body)
			if err != nil {
				return nil, err
			}
			if t != nil {
				turns = append(turns, t)
			}
			continue
		}
		made, err := w.madeAfterAll(body)
		if err != nil {
			return nil, err
		}
		if !made {
			forget = append(forget, entry.Resource)
			continue
		}
		t, err := sweepTurn(w, entry.Resource)
		if err != nil {
			return nil, err
		}
		turns = append(turns, t)
	}
	sort.Slice(turns, func(i, j int) bool { return turns[i].Resource > turns[j].Resource })
	if len(forget) == 0 {
		return turns, nil
	}
	last, err := forgetDirs(w, forget)
	return append(turns, last), err
}

// forgetDirs is a turn that changes nothing, and drops directories from the ledger.
func forgetDirs(w *World, dirs []string) (*Turn, error) {
	sort.Strings(dirs)
	first := dirs[0]
	is, err := w.look(first) // it stays as it is, and so it is told
	if err != nil {
		return nil, err
	}
	t := &Turn{Request: Request{Sort: PathSort, Late: true, Resource: first}}
	t.Step = &state.Step{Sort: PathSort, Resource: first}
	t.shift = &shift{path: first, from: is, to: is, temp: tempPrefix + "none"}
	t.encodeStep(is)
	for _, dir := range dirs {
		t.setLedger(w, dir, nil)
	}
	return t, nil
}

// madeAfterAll says that a directory would not be there without golem: golem made it, or
// a package did which golem had brought and which is gone.
func (w *World) madeAfterAll(body ledgerBody) (bool, error) {
	if body.Made || body.Lent == "" {
		return body.Made, nil
	}
	there, err := w.packageThere(body.Lent)
	return !there, err
}

// ownerTurn lets a made parent follow the owner of what it lies in, which this run may
// have changed: made parents look the same whatever came before. Nil: it does already,
// or a stranger gave it to somebody else.
func ownerTurn(w *World, dir string, body ledgerBody) (*Turn, error) {
	if !body.Made || body.Node.UID == Any {
		return nil, nil
	}
	uid, gid, err := w.madeOwner(dir)
	if err != nil || uid == body.Node.UID && gid == body.Node.GID {
		return nil, err
	}
	now, err := w.Host.observe(w.d, dir, 0)
	if err != nil {
		return nil, err
	}
	if n, ok := w.over[dir]; ok {
		now = n
	}
	if now.Type != Dir || now.UID != body.Node.UID || now.GID != body.Node.GID {
		return nil, nil
	}
	to := now
	to.UID, to.GID = uid, gid
	t := &Turn{Request: Request{Sort: PathSort, Resource: dir, Late: true}, Acts: true, Seen: now, Leaves: to}
	t.Step = &state.Step{Sort: PathSort, Resource: dir}
	t.shift = &shift{path: dir, from: now, to: to, temp: tempName()}
	t.encodeStep(now)
	body.Node.UID, body.Node.GID = uid, gid
	t.setLedger(w, dir, &body)
	return t, nil
}

// madeOwner is the owner of the nearest directory above that golem did not make on the
// way.
func (w *World) madeOwner(dir string) (uid, gid int, err error) {
	for up, _ := split(dir); ; up, _ = split(up) {
		if body, ok := w.ledger(up); ok && body.Made {
			continue
		}
		n, err := w.look(up)
		return n.UID, n.GID, err
	}
}

// sweepTurn is the removal of one made directory that no glyph is about.
func sweepTurn(w *World, dir string) (*Turn, error) {
	now, err := w.Host.observe(w.d, dir, 0)
	if err != nil {
		return nil, err
	}
	if n, ok := w.over[dir]; ok {
		now = n
	}
	to := absent()
	if now.Type != Dir {
		to = now // gone, or somebody's own thing by now
	}
	t := &Turn{Request: Request{Sort: PathSort, Resource: dir, Late: true}, Acts: to.Type != now.Type}
	t.Step = &state.Step{Sort: PathSort, Resource: dir}
	t.shift = &shift{path: dir, from: now, to: to, temp: tempName(), yields: true}
	t.Seen, t.Leaves = now, to
	t.encodeStep(now)
	t.setLedger(w, dir, nil)
	return t, nil // Fit looks whether it is empty
}

// leftIn turns the removal of a directory that still holds something into leaving
// it. It says whether it did.
func (surfaces) leftIn(w *World, t *Turn) (bool, error) {
	names, err := w.names(t.shift.path)
	if err != nil || len(names) == 0 {
		return false, err
	}
	t.stay("left as it is: it holds " + someNames(names))
	return true, nil
}

// stay makes a turn leave the directory it would have removed.
func (t *Turn) stay(reason string) {
	t.shift.to = t.shift.from
	t.Acts, t.Leaves = false, t.Seen
	for i := range t.Changes {
		t.Changes[i].Effect, t.Changes[i].Reason = EffectForget, reason
	}
	for i := range t.Step.Glyphs {
		t.Step.Glyphs[i].Reason = reason
		t.Step.Glyphs[i].Changed = false
	}
	t.encodeStep(t.shift.from)
}

// There implements Lasting.
func (surfaces) There(w *World, resource string) (bool, error) {
	n, err := w.Host.observe(w.d, resource, 0)
	return n.Type == Dir, err
}
