package plan

import (
	"slices"
	"strings"

	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// A Trigger is one trigger of a declared glyph, and where it stands.
type Trigger struct {
	reconcilers.Trigger
	Leaf           string
	Glyph          *scrolls.Glyph
	Sort, Resource string
	// Left says that its glyph is left out of the run: it becomes due, and is not fired.
	Left bool
}

// Name is how the journal and JSON call a trigger in its leaf.
func (t Trigger) Name() string { return string(t.Glyph.Key) + " " + t.Action }

// Calls says whether a step's part makes the trigger due.
func (t Trigger) Calls(part state.StepGlyph) bool {
	return part.Changed && part.Key != t.Glyph.Key && t.Matches(part.Key)
}

// A Due is a trigger that the run has to fire.
type Due struct {
	Trigger
	// Because are the keys that change; none for a trigger that is due since an earlier
	// run.
	Because []scrolls.Key
	// Late says that it fires at the end of the run, not of its leaf's turn.
	Late bool
	// Effect is what it will do; nil for nothing.
	Effect *reconcilers.UnitEffect
}

// triggers lists the scroll's triggers, and those of what is in force and left out.
func (m *maker) triggers() {
	declared := map[scrolls.Key]bool{}
	if m.in.Scroll != nil {
		for _, g := range m.in.Scroll.Glyphs() {
			declared[g.Key] = true
			if m.picks.Has(g.Key) {
				m.trigger(g, g.Leaf, m.spots[g].Resource)
			} else if was, inForce := m.own[g.Key]; inForce {
				m.trigger(g, was.Leaf, was.Resource)
			} else {
				m.trigger(g, g.Leaf, "")
			}
		}
	}
	if m.picks == nil {
		return
	}
	for _, was := range m.snap.Applied {
		if was.Lineage == m.in.Lineage && !declared[was.Key] && !m.picks[was.Key] {
			m.trigger(was.Glyph, was.Leaf, was.Resource)
		}
	}
}

func (m *maker) trigger(g *scrolls.Glyph, leaf, resource string) {
	kind, _ := reconcilers.KindOf(g.Kind)
	for _, t := range reconcilers.Triggers(g) {
		m.plan.Triggers = append(m.plan.Triggers, Trigger{t, leaf, g, kind.Sort, resource, !m.picks.Has(g.Key)})
	}
}

// recallDue takes up what earlier runs left due.
func (m *maker) recallDue() {
	m.left()
	m.due = map[string]*Due{}
	for _, d := range m.plan.LeftDue {
		if t := m.plan.Trigger(d.Name); t != nil {
			m.due[d.Name] = &Due{Trigger: *t}
		}
	}
}

// Trigger finds a declared trigger by its name; nil where there is none.
func (p *Plan) Trigger(name string) *Trigger {
	for i, t := range p.Triggers {
		if t.Name() == name {
			return &p.Triggers[i]
		}
	}
	return nil
}

// call notes which triggers a turn makes due, and which it meets.
func (m *maker) call(t *reconcilers.Turn) {
	if t.Step == nil {
		return
	}
	for _, part := range t.Step.Glyphs {
		for name, d := range m.due {
			if t.Fresh && d.Glyph.Key == part.Key {
				delete(m.due, name)
			}
		}
		for _, trigger := range m.plan.Triggers {
			if !trigger.Calls(part) {
				continue
			}
			d := m.due[trigger.Name()]
			if d == nil {
				d = &Due{Trigger: trigger}
				m.due[trigger.Name()] = d
			}
			d.Because = append(d.Because, part.Key)
		}
	}
}

// Firing lists the triggers that fire of those that are due, in the scroll's order: at
// the end of a leaf's turn its own, late all. A reload beside a restart of the same unit
// is met by that.
func (p *Plan) Firing(due func(name string) bool, leaf string, late bool) (fire, met []Trigger) {
	for _, t := range p.Triggers {
		if t.Left || !due(t.Name()) || !late && t.Leaf != leaf {
			continue
		}
		same := func(o Trigger) bool {
			return !o.Left && o.Resource == t.Resource && o.Action == "restart" && due(o.Name()) && (late || o.Leaf == leaf)
		}
		if t.Action != "restart" && slices.ContainsFunc(p.Triggers, same) {
			met = append(met, t)
			continue
		}
		fire = append(fire, t)
	}
	return fire, met
}

// fire puts down what is due at the end of a leaf's turn, or of the run.
func (m *maker) fire(leaf string, late bool) error {
	fire, met := m.plan.Firing(func(name string) bool { return m.due[name] != nil }, leaf, late)
	for _, t := range met {
		delete(m.due, t.Name())
	}
	m.w.Loose = m.w.Loose || len(fire) > 0
	for _, t := range fire {
		d := m.due[t.Name()]
		delete(m.due, t.Name())
		d.Late = late
		effect, err := reconcilers.Reconcilers[t.Sort].(reconcilers.Firer).Foretell(m.w, t.Glyph, t.Resource, t.Action)
		if err != nil {
			return err
		}
		if d.Effect = effect; effect != nil {
			effect.Key, effect.Reason = t.Glyph.Key, d.reason(effect.Reason)
		}
		m.plan.Due = append(m.plan.Due, *d)
	}
	return nil
}

func (d *Due) reason(more string) string {
	why := "due since an earlier run"
	if n := len(d.Because); n > 0 {
		why = string(d.Because[0]) + " changes"
		if n > 1 {
			why = string(d.Because[0]) + " and " + count(n-1, "other changes", "others change")
		}
	}
	return strings.Join(slices.DeleteFunc([]string{why, more}, func(s string) bool { return s == "" }), "; ")
}
