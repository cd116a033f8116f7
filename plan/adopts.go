package plan

import (
	"fmt"
	"strings"

	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// adopts tells which glyphs take over what is there, as adopt blocks have it, and refuses
// those for which nothing is. What is in force already was adopted before.
func (m *maker) adopts() {
	named := map[scrolls.Key]*scrolls.Glyph{}
	if m.in.Scroll != nil {
		for _, g := range m.in.Scroll.Glyphs() {
			if _, inForce := m.own[g.Key]; !inForce && g.AdoptAt.Filename != "" {
				named[g.Key] = g
			}
		}
	}
	if len(named) == 0 {
		return
	}
	for _, leaf := range m.leaves {
		for _, t := range leaf.Turns {
			for i := range t.Changes {
				if g := named[t.Changes[i].Key]; g != nil {
					m.adopt(g, &t.Changes[i])
				}
			}
		}
	}
}

// adopt tells one glyph's adoption.
func (m *maker) adopt(g *scrolls.Glyph, c *reconcilers.Change) {
	if c.Op != state.Install || !c.There {
		m.wrong = append(m.wrong, scrolls.PlacedProblem{At: g.AdoptAt, Problem: scrolls.Problem{
			Summary: "Nothing to adopt",
			Detail: fmt.Sprintf("There is no %s to take over: golem would make it (%s). If that is meant, remove the adopt block.",
				c.Key, Printable(c.Reason)),
		}})
		return
	}
	c.Adopts = true
	switch {
	case strings.HasPrefix(c.Reason, "adopted"):
	case c.Effect == reconcilers.EffectRecord:
		c.Reason = "adopted: " + c.Reason
	default:
		c.Reason = "adopted, and changed: " + c.Reason
	}
}

// adopted says how many glyphs take over what is there, and how many of them change it.
func (out *Printer) adopted(b *strings.Builder, leaves []LeafView) {
	all, changed := 0, 0
	for _, leaf := range leaves {
		for _, c := range leaf.Changes {
			if c.Adopts {
				all++
				if c.Effect != reconcilers.EffectRecord {
					changed++
				}
			}
		}
	}
	if all == 0 {
		return
	}
	fmt.Fprintf(b, "\nAdopted: %s there already", count(all, "glyph is", "glyphs are"))
	if changed > 0 {
		b.WriteString("; " + out.warn.Render(count(changed, "of them is changed", "of them are changed")))
	}
	b.WriteString(".\n")
}
