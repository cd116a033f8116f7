package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"golem/scrolls"
)

// A home may be there before its user: as a directory that golem made on the way to a file in
// it. Then it becomes the user's, with what golem made on the way below it; and it is but a
// directory on the way again when the user goes before that file.

// How a plan tells of a home.
const (
	homeMade  = "(made)"
	homeFound = "(it is there already, and left as it is)"
	homeTaken = "(golem made it on the way to something else; it becomes the user's)"
)

// comes works out what a home that is made begins with, and tells what comes after of it.
func (w *World) comes(v view[userState], g *goal[userState]) error {
	home := g.to.MadeHome
	n, err := w.look(home)
	if err != nil {
		return err
	}
	body, listed := w.ledger(home)
	switch {
	case n.Type == Dir && !w.onHost(home) && listed && body.Made:
		return &AttrError{Attr: "name", Summary: "Made too late", Err: fmt.Errorf("an earlier glyph makes %s on the way to what it declares there, and so it would be root's. "+
			"What is written first is done first: move %s up, above what lies in its home", quote(home), v.glyph.Key)}
	case n.Type == Dir && listed && body.Made:
		if err := w.takes(&g.to); err != nil {
			return err
		}
	case n.Type == Dir: // another glyph's
		g.to.MadeHome, g.reason = "", g.to.retold(homeFound)
		return nil
	default:
		if g.to.Up, err = w.wayTo(home); err != nil {
			return err
		}
	}
	files, err := w.newHome(g.to)
	for _, h := range g.to.Hands {
		files = append(files, pkgFile{h.Path, h.Is})
	}
	for _, f := range files {
		if !w.Acts {
			w.predict(f.Path, f.Node)
		}
		g.touches = append(g.touches, f.Path)
	}
	return err
}

// takes notes what becomes a new user's: a home that golem made on the way to something else,
// and what it made below it.
func (w *World) takes(to *userState) error {
	for _, dir := range w.ledgerIn(to.MadeHome) {
		n, err := w.look(dir)
		if err != nil {
			return err
		}
		if n.Type != Dir || !w.onTheWay(dir) {
			continue
		}
		h := hand{dir, Node{Type: Dir, Mode: n.Mode, UID: n.UID, GID: n.GID, Flags: Any}, Node{Type: Dir, Mode: n.Mode, UID: to.uid(), GID: to.gid(), Flags: Any}}
		if dir == to.MadeHome {
			h.Is.Mode = homeMode(w)
		}
		to.Hands = append(to.Hands, h)
	}
	skel, err := w.skel()
	if err != nil {
		return err
	}
	to.Before = nil
	for rel := range skel {
		if n, err := w.look(to.MadeHome + rel); err != nil {
			return err
		} else if n.Type != Absent {
			to.Before = append(to.Before, to.MadeHome+rel)
		}
	}
	slices.Sort(to.Before)
	return nil
}

// ledgerIn lists the directories that the ledger has at a path and below, sorted.
func (w *World) ledgerIn(top string) []string {
	var dirs []string
	for _, entry := range w.Ledger {
		if entry != nil && entry.Sort == PathSort && (entry.Resource == top || beneath(entry.Resource, top)) {
			dirs = append(dirs, entry.Resource)
		}
	}
	slices.Sort(dirs)
	return dirs
}

// wayTo lists the directories that have to be made before a path can be.
func (w *World) wayTo(p string) ([]pkgFile, error) {
	above, err := w.look("/")
	if err != nil {
		return nil, err
	}
	var way []pkgFile
	for _, dir := range slices.Backward(ancestors(p)) {
		n, err := w.look(dir)
		if err != nil {
			return nil, err
		}
		if n.Type == Absent {
			if n = parentNode(w.Host, above); !w.madeHere(dir) {
				body, _ := w.ledger(dir)
				n = body.Node // as it was found once
			}
			way = append(way, pkgFile{dir, n})
		}
		above = n
	}
	return way, nil
}

// madeHere says whether a directory on the way would be golem's: it was not found there once.
func (w *World) madeHere(dir string) bool {
	body, ok := w.ledger(dir)
	return !ok || body.Made
}

// leavesHome works out what becomes of a home that golem made when its user goes.
func (w *World) leavesHome(v view[userState], g goal[userState], planned *goal[userState], later bool) (goal[userState], error) {
	home := v.now.MadeHome
	stock, err := w.stock(v.now, w.Needed)
	if err != nil || !stock.there {
		return g, err
	}
	if planned != nil && planned.to.MadeHome != "" {
		g.reason, g.to.MadeHome = planned.reason, home
		return g, nil
	}
	if len(stock.strange) > 0 && planned != nil { // the plan has it go
		return g, &InUseError{"home of " + v.Resource, stock.strange}
	}
	if len(stock.strange) > 0 {
		g.reason += fmt.Sprintf("; its home %s is left, it holds %s", quote(home), someOf(stock.strange))
		g.to.MadeHome, g.postpone = home, later
		return g, nil
	}
	if len(stock.declared) == 0 {
		g.reason += ", and its home " + quote(home)
		if !w.Acts {
			w.predict(home, absent())
		}
		return g, nil
	}
	g.reason += fmt.Sprintf("; its home %s stays for %s, as a directory made on the way", quote(home), someOf(stock.declared))
	if g.to.Hands, err = w.gives(home, stock.way); err != nil {
		return g, err
	}
	for _, h := range g.to.Hands {
		if !w.Acts {
			w.predict(h.Path, h.Is)
		}
		g.touches = append(g.touches, h.Path)
	}
	for _, f := range stock.own {
		if !w.Acts {
			w.predict(f.Path, absent())
		}
		g.touches = append(g.touches, f.Path)
	}
	return g, nil
}

// gives notes what of a home is on the way to something declared, and looks like it again.
func (w *World) gives(home string, way []string) ([]hand, error) {
	uid, gid, err := w.madeOwner(home)
	if err != nil {
		return nil, err
	}
	var hands []hand
	for _, dir := range append([]string{home}, way...) {
		n, err := w.look(dir)
		if err != nil {
			return nil, err
		}
		is := parentNode(w.Host, Node{UID: uid, GID: gid})
		hands = append(hands, hand{dir, Node{Type: Dir, Mode: n.Mode, UID: n.UID, GID: n.GID, Flags: Any}, is})
	}
	return hands, nil
}

// fit implements fitter: the ledger's lines about directories on the way.
func (users) fit(w *World, t *Turn, m motion[userState]) error {
	for _, up := range m.to.Up {
		if w.madeHere(up.Path) {
			t.setLedger(w, up.Path, &ledgerBody{Made: true, Node: up.Node})
		}
	}
	if drops(m) { // what was noted of directories that go with it is of no use any more
		for _, dir := range w.ledgerIn(m.from.MadeHome) {
			if body, ok := w.ledger(dir); ok && !body.Made {
				t.setLedger(w, dir, nil)
			}
		}
	}
	for _, h := range m.to.Hands {
		if m.to.There && h.Path == m.to.MadeHome {
			t.setLedger(w, h.Path, nil)
		} else {
			t.setLedger(w, h.Path, &ledgerBody{Made: true, Node: h.Is})
		}
	}
	return nil
}

// handsOf are the directories that change hands in a motion: those that a user gets from
// below, and those that it gives from above.
func handsOf(m motion[userState]) []hand {
	hands := slices.Clone(m.to.Hands)
	if m.undo {
		hands = slices.Clone(m.from.Hands)
		for i, h := range hands {
			hands[i].Was, hands[i].Is = h.Is, h.Was
		}
	}
	if m.to.There {
		slices.Reverse(hands)
	}
	return hands
}

// handOver gives directories to others. One that somebody else has done so with stays.
func (w *World) handOver(ctx context.Context, keep keeper, hands []hand) error {
	b := w.Host.newBatch(w.Blobs, keep, 1)
	defer b.close()
	for _, h := range hands {
		now, err := w.Host.observe(w.d, h.Path, 0)
		if err != nil {
			return err
		}
		if now.Type != Dir || now.UID != h.Was.UID || now.GID != h.Was.GID || now.Mode != h.Was.Mode {
			continue
		}
		to := now
		to.UID, to.GID, to.Mode = h.Is.UID, h.Is.GID, h.Is.Mode
		if _, err := b.run(ctx, []*shift{{path: h.Path, from: now, to: to, temp: tempName()}}); err != nil {
			return err
		}
	}
	return nil
}

// dropHome removes what golem put into a home that it made, and the home. What else is in it
// stays, and the home with it; but for one that was there before, or is on the way to
// something declared, which goes back to what it is then.
func (w *World) dropHome(ctx context.Context, store Store, m motion[userState], now userState) error {
	hands := handsOf(m)
	if err := w.handOver(ctx, keepWith(store, m.step), hands); err != nil {
		return err
	}
	needed := w.Needed
	if m.undo { // what is declared there had not come yet, or was there before
		needed = func(string) bool { return false }
	}
	stock, err := w.stock(now, needed)
	if err != nil || len(hands) == 0 && len(stock.strange)+len(stock.declared) > 0 {
		return err
	}
	files := slices.Clone(stock.own)
	slices.Reverse(files) // what is below a directory before it
	if len(hands) == 0 && stock.there {
		files = append(files, stock.home)
	}
	if m.undo {
		for _, up := range slices.Backward(m.from.Up) {
			if n, err := w.Host.observe(w.d, up.Path, 0); err != nil {
				return err
			} else if n.Type == Dir {
				files = append(files, pkgFile{up.Path, n})
			}
		}
	}
	b := w.Host.newBatch(w.Blobs, keepWith(store, m.step), len(files))
	defer b.close()
	w.d.drop(now.MadeHome)
	for _, f := range files {
		if _, err := b.run(ctx, []*shift{{path: f.Path, from: f.Node, to: absent(), temp: tempName(), yields: true}}); err != nil {
			return err
		}
	}
	return nil
}

// A userKeeper keeps users, and with each the home that golem made for it.
type userKeeper struct{ sole[userState] }

// Keeps implements Keeper.
func (userKeeper) Keeps(w *World, resource string, g *scrolls.Glyph) []string {
	if rec := w.Record(userSort, resource); rec != nil {
		var left userState
		if json.Unmarshal(rec.After, &left) == nil && left.MadeHome != "" {
			return []string{left.MadeHome}
		}
		return nil
	}
	if _, there := w.Host.names().users[resource]; there || g.Attrs["system"] == true {
		return nil
	}
	home := "/home/" + resource
	if text, ok := g.Attrs["home"].(string); ok {
		home = text
	}
	if at, err := w.resolve(home, true); err == nil {
		return []string{at.real}
	}
	return nil
}

// homesOf are the homes that users of a last wave leave.
func homesOf(turns []*Turn) []string {
	var homes []string
	for _, t := range turns {
		if k, ok := t.work.(*soleWork[userState]); ok && k.m.from.MadeHome != "" {
			homes = append(homes, k.m.from.MadeHome)
		}
	}
	return homes
}
