package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"

	"golem/scrolls"
	"golem/state"
)

// Locate implements Reconciler: every unit there is to know of is asked about in one
// question, and those beside them in a second.
func (units) Locate(ctx context.Context, w *World, glyphs []*scrolls.Glyph, gone []Gone) (map[*scrolls.Glyph]Spot, []Mistake, error) {
	if len(glyphs)+len(gone) == 0 {
		return nil, nil, nil
	}
	if !w.Host.systemd() {
		return noSystemd(w.Host, glyphs, gone)
	}
	d := w.unitDesk()
	var names []string
	for _, g := range glyphs {
		names = append(names, unitName(str(g.Attrs, "unit")))
		if at := w.Where(g.Key); at != "" {
			names = append(names, at)
		}
	}
	for _, g := range gone {
		names = append(names, g.Resource)
		d.revisions[g.Key] = g.Revision
	}
	found, err := w.units(ctx, names...)
	if err != nil {
		return nil, nil, err
	}
	var beside []string
	for _, name := range names {
		u := found[name]
		beside = slices.Concat(beside, u.TriggeredBy, u.RequiredBy)
		if !u.running() {
			beside = slices.Concat(beside, u.rivals(), u.Pulls) // what starting it would touch
		}
	}
	if _, err := w.units(ctx, beside...); err != nil {
		return nil, nil, err
	}
	spots := map[*scrolls.Glyph]Spot{}
	about := map[*scrolls.Glyph]*unit{}
	for _, g := range glyphs {
		spots[g] = Spot{Resource: w.unitResource(g, found)}
		if about[g], err = w.unit(ctx, spots[g].Resource); err != nil {
			return nil, nil, err
		}
	}
	return spots, append(doubleUnits(glyphs, spots), triggerClashes(glyphs, about)...), nil
}

// unitResource is the name under which the journal has a unit: its real one. A name that
// was taken for the real one when the unit was not there yet stays; and so does the real
// one when the other name goes, as it does with disabling.
func (w *World) unitResource(g *scrolls.Glyph, found map[string]*unit) string {
	name := unitName(str(g.Attrs, "unit"))
	if at := w.Where(g.Key); at != "" && (at == name || !found[name].known()) {
		return at
	}
	return found[name].ID
}

// noSystemd refuses every glyph on a host that systemd does not run.
func noSystemd(h *Host, glyphs []*scrolls.Glyph, gone []Gone) (map[*scrolls.Glyph]Spot, []Mistake, error) {
	why := "Under --root golem changes a file tree and runs nothing in it. A service needs a live host that systemd runs; " +
		"to enable a unit in an image, declare the link that enabling makes."
	if h.Live() {
		why = "This host is not run by systemd"
		if name := h.initName(); name != "" {
			why += ", but by " + quote(name)
		}
		why += ". A service is the state of a unit of systemd."
	}
	var mistakes []Mistake
	for _, g := range glyphs {
		mistakes = append(mistakes, Mistake{Glyph: g, Problem: scrolls.Problem{Attr: "unit", Summary: "Service needs a live host", Detail: why}})
	}
	if len(gone) > 0 {
		return nil, mistakes, fmt.Errorf("give back %s: this host is not run by systemd now", gone[0].Key)
	}
	return nil, mistakes, nil
}

// doubleUnits finds two glyphs for one unit, by two of its names.
func doubleUnits(glyphs []*scrolls.Glyph, spots map[*scrolls.Glyph]Spot) []Mistake {
	first := map[string]*scrolls.Glyph{}
	var mistakes []Mistake
	for _, g := range glyphs {
		id := spots[g].Resource
		other := first[id]
		if other == nil {
			first[id] = g
			continue
		}
		mistakes = append(mistakes, Mistake{Glyph: g, Other: other, Problem: scrolls.Problem{
			Attr: "unit", Summary: "Two glyphs for one unit",
			Detail: fmt.Sprintf("%s and %s are both %s on this host. Keep one of the two.",
				unitName(str(g.Attrs, "unit")), unitName(str(other.Attrs, "unit")), id),
		}})
	}
	return mistakes
}

// triggerClashes finds units declared stopped beside declared running ones that would
// start them again, as what triggers them or what needs them.
func triggerClashes(glyphs []*scrolls.Glyph, about map[*scrolls.Glyph]*unit) []Mistake {
	running := map[string]*scrolls.Glyph{}
	starts := map[string][]string{} // by what would be started
	for _, g := range glyphs {
		if str(g.Attrs, "state") == "running" {
			u := about[g]
			running[u.ID] = g
			for _, id := range slices.Concat(u.Triggers, u.Pulls) {
				starts[id] = append(starts[id], u.ID)
			}
		}
	}
	var mistakes []Mistake
	for _, g := range glyphs {
		if str(g.Attrs, "state") != "stopped" {
			continue
		}
		u := about[g]
		by := slices.Concat(u.TriggeredBy, starts[u.ID])
		sort.Strings(by)
		for _, id := range slices.Compact(by) {
			if other := running[id]; other != nil {
				mistakes = append(mistakes, Mistake{Glyph: g, Other: other, Problem: scrolls.Problem{
					Attr: "state", Summary: "Stopped, and started by another",
					Detail: fmt.Sprintf("%s is declared stopped, but %s is declared running, and starts it again. Stop both, or neither.", u.ID, id),
				}})
			}
		}
	}
	return mistakes
}

// Batch implements Reconciler: units that follow each other are started one after the
// other and watched together. What comes after a stop has to be looked at anew.
func (units) Batch(turns []*Turn) int {
	for i, t := range turns {
		if i > 0 && (t.Sort != UnitSort || t.Late != turns[0].Late) {
			return i
		}
		if k, ok := t.work.(*unitWork); ok && (len(t.Drop) > 0 || k.acting("stop") || len(k.rivals()) > 0) {
			return i + 1
		}
	}
	return len(turns)
}

// Join implements Reconciler: units have nothing between them that Fit did not see.
func (units) Join(context.Context, *World, []*Turn) error { return nil }

// Capture implements Reconciler: there are no bytes; what is given back stands in the
// step.
func (units) Capture(context.Context, *World, Store, []*Turn) error { return nil }

// Foresee implements Reconciler.
func (units) Foresee(w *World, s *state.Step) error {
	before, expect, err := readUnitStep(s)
	if err != nil || !expect.Runs && !expect.Links {
		return err
	}
	d := w.unitDesk()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fore[s.Resource] = before.State
	return nil
}

// readUnitStep decodes a unit's step.
func readUnitStep(s *state.Step) (before unitInverse, expect unitExpect, err error) {
	if len(s.Inverse) == 0 {
		return before, expect, nil // it never was about the host
	}
	if err := json.Unmarshal(s.Inverse, &before); err != nil {
		return before, expect, fmt.Errorf("read the inverse of %s: %w", quote(s.Resource), err)
	}
	if err := json.Unmarshal(s.Expect, &expect); err != nil {
		return before, expect, fmt.Errorf("read the step on %s: %w", quote(s.Resource), err)
	}
	return before, expect, nil
}
