package apply

import (
	"context"
	"errors"
	"fmt"

	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// adoptedLeaf is where adopted glyphs stand until a scroll declares them.
const adoptedLeaf = "adopted"

// Adopt puts the glyphs of a scroll, which are as they are, into its lineage beside what is in
// force there. It is a run that changes nothing: one that would change something is refused.
// Of the options it takes who runs golem, on what and with which journal.
func Adopt(ctx context.Context, o Options, adopted *scrolls.Scroll) error {
	snap, err := o.Journal.Snapshot()
	if err != nil {
		return err
	}
	name := adopted.Name
	whole := &scrolls.Scroll{Name: name, Policies: map[string]scrolls.Policy{"": scrolls.BuiltinPolicy}}
	if newest := snap.Revision(name); newest > 0 {
		t, err := FindTarget(o.Journal, name, Back{To: newest}, false)
		if err != nil {
			return err
		}
		whole = t.Scroll
	}
	leaf := &scrolls.Leaf{Path: adoptedLeaf, Policy: scrolls.BuiltinPolicy}
	var keys []string
	for _, g := range adopted.Glyphs() {
		if err := notOurs(g, snap); err != nil {
			return err
		}
		g.Leaf = adoptedLeaf
		leaf.Glyphs = append(leaf.Glyphs, g)
		keys = append(keys, string(g.Key))
	}
	if at := leafNamed(whole, adoptedLeaf); at != nil {
		at.Glyphs = append(at.Glyphs, leaf.Glyphs...)
	} else {
		whole.Leaves = append(whole.Leaves, leaf)
	}
	o.Scroll, o.Lineage, o.Unattended, o.Choice = whole, name, true, plan.MakeChoice(keys, nil)
	o.Approve = func(p *plan.Plan) (bool, error) { return true, changesNothing(p) }
	report, err := Run(ctx, o)
	if err == nil && report.Partial() {
		err = errors.New("adopt: what is there could not be recorded; golem history tells why")
	}
	return err
}

// notOurs refuses to adopt what is in force already, and a whole file that golem edits: what
// it holds is not only the host's own.
func notOurs(g *scrolls.Glyph, snap *state.Snapshot) error {
	kind, _ := reconcilers.KindOf(g.Kind)
	for _, was := range snap.Applied {
		if was.Key == g.Key {
			return fmt.Errorf("adopt %s: it is in force already, in the lineage %q", g.Key, was.Lineage)
		}
		if kind.IsBase() && was.Sort == kind.Sort && was.Resource == g.Attrs["path"] {
			return fmt.Errorf("adopt %s: golem has %s there already, in the lineage %q", g.Key, was.Key, was.Lineage)
		}
	}
	return nil
}

func leafNamed(s *scrolls.Scroll, path string) *scrolls.Leaf {
	for _, leaf := range s.Leaves {
		if leaf.Path == path {
			return leaf
		}
	}
	return nil
}

// changesNothing refuses a plan that would do more than record what is there.
func changesNothing(p *plan.Plan) error {
	for _, c := range p.Changes() {
		if c.Effect != reconcilers.EffectRecord {
			return fmt.Errorf("adopt %s: it is not as it was a moment ago: %s", c.Key, c.Reason)
		}
	}
	return nil
}
