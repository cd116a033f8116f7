package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"

	"golem/reconcilers"
)

// Units are the systemd units a run stops, restores, forgets, starts, reloads or
// restarts.
type Units struct {
	Stop    []UnitJSON `json:"stop"`
	Restore []UnitJSON `json:"restore"`
	Forget  []UnitJSON `json:"forget"`
	Start   []UnitJSON `json:"start"`
	Reload  []UnitJSON `json:"reload"`
	Restart []UnitJSON `json:"restart"`
}

// UnitJSON is one unit in Units.
type UnitJSON struct {
	Unit   string `json:"unit"`
	Key    string `json:"key"`
	Reason string `json:"reason"`
}

// Effects lists what becomes of each unit, the strongest thing that happens to it, in
// the order of UnitVerbs and then of the run. Its reason tells all of it.
func (p *Plan) Effects() []reconcilers.UnitEffect {
	return p.EffectsOf(func(string, reconcilers.UnitEffect, bool) bool { return true })
}

// EffectsOf is Effects of those that came about: the leaf, or WaveLeaf, the effect, and
// whether a trigger's.
func (p *Plan) EffectsOf(came func(leaf string, u reconcilers.UnitEffect, fired bool) bool) []reconcilers.UnitEffect {
	var all []reconcilers.UnitEffect
	turns := func(leaf string, turns []*reconcilers.Turn) {
		for _, t := range turns {
			for _, u := range t.Units {
				if came(leaf, u, false) {
					all = append(all, u)
				}
			}
		}
	}
	fired := func(leaf string, late bool) {
		for _, d := range p.Due {
			if d.Effect != nil && d.Effect.Unit != "" && d.Late == late && (late || d.Leaf == leaf) && came(d.Leaf, *d.Effect, true) {
				all = append(all, *d.Effect)
			}
		}
	}
	for _, leaf := range p.Leaves {
		turns(leaf.Path, leaf.Turns)
		fired(leaf.Path, false)
	}
	turns(WaveLeaf, p.Wave)
	fired("", true)
	for _, e := range all {
		for _, unit := range e.Along {
			along := e
			along.Unit, along.Reason = unit, "it is bound to "+e.Unit+", which does: "+e.Reason
			all = append(all, along)
		}
	}
	return strongest(all)
}

// retell corrects what is said of units that a glyph lets go of and that stop all the
// same, with their package.
func (m *maker) retell() {
	m.plan.Leaves = m.leaves
	stops := map[string]reconcilers.UnitEffect{}
	for _, e := range m.plan.Effects() {
		if e.Do == "stop" {
			stops[e.Unit] = e
		}
	}
	for _, leaf := range m.leaves {
		for _, t := range leaf.Turns {
			for _, u := range t.Units {
				stop, ok := stops[u.Unit]
				if !ok || u.Do != "forget" || stop.Key == u.Key {
					continue
				}
				for i := range t.Changes {
					if c := &t.Changes[i]; c.Key == u.Key && c.Effect == reconcilers.EffectForget {
						c.Reason = "golem lets go of it; " + stop.Reason
					}
				}
			}
		}
	}
}

// strongest leaves one effect for each unit.
func strongest(all []reconcilers.UnitEffect) []reconcilers.UnitEffect {
	rank := func(e reconcilers.UnitEffect) int { return slices.Index(reconcilers.UnitVerbs, e.Do) }
	var out []reconcilers.UnitEffect
	at := map[string]int{}
	for _, e := range all {
		i, known := at[e.Unit]
		if !known {
			at[e.Unit] = len(out)
			out = append(out, e)
			continue
		}
		was := out[i]
		if rank(e) < rank(was) {
			was, e = e, was
		}
		if e.Do == "forget" && was.Do != "forget" {
			out[i] = was // it is not left as it is
			continue
		}
		if !strings.Contains(was.Reason, e.Reason) {
			was.Reason = strings.TrimPrefix(was.Reason+"; "+e.Reason, "; ")
		}
		out[i] = was
	}
	slices.SortStableFunc(out, func(a, b reconcilers.UnitEffect) int { return rank(a) - rank(b) })
	return out
}

// unitsJSON sorts effects into their lists; every list is there.
func unitsJSON(effects []reconcilers.UnitEffect) Units {
	none := []UnitJSON{}
	u := Units{none, none, none, none, none, none}
	lists := map[string]*[]UnitJSON{
		"stop": &u.Stop, "restore": &u.Restore, "forget": &u.Forget, "start": &u.Start, "reload": &u.Reload, "restart": &u.Restart,
	}
	for _, e := range effects {
		list := lists[e.Do]
		*list = append(*list, UnitJSON{valid(e.Unit), string(e.Key), valid(e.Reason)})
	}
	return u
}

// Units writes the units section: every unit that is stopped, started or left.
func (out *Printer) Units(b *strings.Builder, effects []reconcilers.UnitEffect) {
	if len(effects) == 0 {
		return
	}
	width := 0
	for _, e := range effects {
		width = max(width, runewidth.StringWidth(Printable(e.Unit)))
	}
	width = min(width, maxKeyColumn)
	fmt.Fprintf(b, "\n%s\n", out.bold.Render("Units"))
	for _, e := range effects {
		verb := pad(e.Do, 9)
		switch e.Do {
		case "stop":
			verb = out.bad.Render(verb)
		case "restart":
			verb = out.warn.Render(verb)
		case "start", "reload":
			verb = out.good.Render(verb)
		}
		unit := Printable(e.Unit)
		head := "  " + verb + pad(unit, width)
		column := 2 + 9 + max(width, runewidth.StringWidth(unit)) + 2
		reason := Printable(e.Reason)
		if wide := out.style.Width; wide == 0 || column+runewidth.StringWidth(reason) <= wide {
			b.WriteString(strings.TrimRight(head+"  "+reason, " ") + "\n")
			continue
		}
		b.WriteString(strings.TrimRight(head, " ") + "\n")
		for _, line := range Wrap(reason, out.wrapAt(11)) {
			b.WriteString(strings.Repeat(" ", 11) + line + "\n")
		}
	}
}
