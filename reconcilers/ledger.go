package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"golem/state"
)

// ledger reads the ledger's line about a directory.
func (w *World) ledger(dir string) (ledgerBody, bool) {
	entry, ok := w.Ledger[RecordKey(PathSort, dir)]
	if !ok || entry == nil {
		return ledgerBody{}, false
	}
	var body ledgerBody
	if json.Unmarshal(entry.Body, &body) != nil {
		return ledgerBody{}, false
	}
	return body, true
}

// setLedger notes a change of the ledger in the step, and in the world, where the
// turns after it find it. A nil body takes the line out.
func (t *Turn) setLedger(w *World, dir string, body *ledgerBody) { setEntry(t, w, PathSort, dir, body) }

// setEntry is setLedger for a resource of any sort.
func setEntry[T any](t *Turn, w *World, sort, resource string, body *T) {
	key := RecordKey(sort, resource)
	change := state.LedgerChange{Sort: sort, Resource: resource, Before: w.Ledger[key]}
	if body != nil {
		change.After = &state.Entry{Sort: sort, Resource: resource, Body: encode(body)}
		w.Ledger[key] = change.After
	} else {
		delete(w.Ledger, key)
	}
	if change.Before != nil || change.After != nil {
		t.Step.Ledger = append(t.Step.Ledger, change)
	}
}

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
	sort.Strings(forget)
	is, err := w.look(forget[0]) // it stays as it is, and so it is told
	if err != nil {
		return nil, err
	}
	last := &Turn{Request: Request{Sort: PathSort, Late: true, Resource: forget[0]}}
	last.Step = &state.Step{Sort: PathSort, Resource: forget[0]}
	last.shift = &shift{path: forget[0], from: is, to: is, temp: tempPrefix + "none"}
	last.encodeStep(is)
	for _, dir := range forget {
		last.setLedger(w, dir, nil)
	}
	return append(turns, last), nil
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

// Removes says whether a turn takes its resource away.
func (t *Turn) Removes() bool {
	if k, ok := t.work.(*pkgWork); ok {
		return k.takes()
	}
	if t.Sort == imageSort {
		return t.Acts
	}
	return t.Acts && t.shift != nil && t.shift.to.Type == Absent
}

// ByProductName is how a by-product is called where its sort is not told: a directory by
// its path, a package by a key, an image by its engine and name.
func ByProductName(t *Turn) string {
	if t.Sort == PackageSort {
		return string(packageKey(t.Resource))
	}
	if t.Sort == imageSort {
		return RecordKey(imageSort, t.Resource)
	}
	return t.Resource
}

// ByProductTitle is what stands above the by-products of a sort.
func ByProductTitle(sort string) string {
	switch sort {
	case PackageSort:
		return "Packages golem brought along, or that made way"
	case PathSort:
		return "Directories golem made on the way"
	case imageSort:
		return "Images golem pulled"
	}
	return ""
}

// ByProductText says what becomes of a by-product.
func ByProductText(t *Turn) string {
	k, ok := t.work.(*pkgWork)
	switch why := ByProductLeft(t); {
	case why != "":
		return "left as it is: " + why
	case ok && k.takes():
		return k.sweepText()
	case ok:
		return "version " + k.want.Version + " comes back: what it made way for is gone"
	case t.Removes():
		return "removed: nothing needs it any more"
	}
	return "its owner follows the directory it lies in"
}

// ByProductLeft says why a by-product that nothing declared needs any more stays on the
// host; "" for one that does not, or of which the plan has nothing to say.
func ByProductLeft(t *Turn) string {
	if k, ok := t.work.(*soleWork[imageState]); ok && !t.Acts {
		return k.g.reason
	}
	return ""
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
		t.Changes[i].Effect, t.Changes[i].Reason = "forget", reason
	}
	for i := range t.Step.Glyphs {
		t.Step.Glyphs[i].Reason = reason
		t.Step.Glyphs[i].Changed = false
	}
	t.encodeStep(t.shift.from)
}

// someNames lists names for a person: the first few, and how many more.
func someNames(names []string) string {
	sort.Strings(names)
	const most = 3
	shown := make([]string, 0, most)
	for _, name := range names[:min(len(names), most)] {
		shown = append(shown, quote(name))
	}
	text := strings.Join(shown, ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// A Lasting is a reconciler that can say whether a by-product is still there.
type Lasting interface {
	There(w *World, resource string) (bool, error)
}

// There implements Lasting.
func (surfaces) There(w *World, resource string) (bool, error) {
	n, err := w.Host.observe(w.d, resource, 0)
	return n.Type == Dir, err
}

// There implements Lasting.
func (packages) There(w *World, resource string) (bool, error) {
	v, err := readDpkg(context.Background(), w.Host)
	if err != nil {
		return false, err
	}
	return v.state(resource).there(), nil
}
