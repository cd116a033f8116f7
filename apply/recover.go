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

// A Recovered tells what a run did about an interrupted one before it.
type Recovered struct {
	Lineage  string              `json:"lineage"`
	Command  string              `json:"command"`
	Started  string              `json:"started"`
	Revision int                 `json:"revision"` // the interrupted run's, now
	Leaves   []state.LeafOutcome `json:"leaves"`
	Keys     []string            `json:"keys"` // taken back
}

// Recover settles an interrupted run and nothing else. It returns nil where there is
// none.
func Recover(ctx context.Context, o Options) (*Recovered, error) {
	e := &engine{o: o, j: o.Journal, store: &store{o.Journal}, report: &Report{}}
	defer e.listen()()
	r, err := e.recover(ctx)
	return r, errors.Join(err, e.sweepReturn(ctx))
}

// recover takes back the leaf that was in flight when a run died, from the steps' own
// inverses; leaves that had settled stay settled. The attempt becomes a revision that
// says so. Recovery may itself die at any point: it starts again where it was.
func (e *engine) recover(ctx context.Context) (*Recovered, error) {
	if err := e.o.Host.AwaitCommands(ctx, scrolls.BuiltinPolicy.Timeout); err != nil {
		return nil, err
	}
	snap, err := e.j.Snapshot()
	if err == nil {
		err = e.o.Host.ClearScratch()
	}
	if err != nil || snap.Dead == nil {
		return nil, err
	}
	dead := snap.Dead
	defer e.pulse.begin(Doing{What: "taking back what an interrupted run left"})()
	w := reconcilers.NewWorld(e.o.Host, e.store)
	defer w.Close()
	stuck := reconcilers.TakeBack(ctx, w, e.store, dead.Steps, func(_ *state.Step, act func() error) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return act()
	})
	if err := ctx.Err(); err != nil {
		return nil, &TouchedError{err}
	}
	for _, s := range dead.Steps {
		if err := stuck[s]; err != nil {
			return nil, &TouchedError{fmt.Errorf("recover %s: %w", s.Resource, err)}
		}
	}
	if err := reconcilers.Flush(ctx, w); err != nil {
		return nil, &TouchedError{fmt.Errorf("recover: %w", err)}
	}
	if err := e.leftOver(w, dead.Steps); err != nil {
		return nil, &TouchedError{err}
	}
	r, rev := recovered(dead)
	var before rules
	if l := snap.Lineages[dead.Run.Lineage]; l != nil {
		if before, err = rulesBefore(e.j, l.Name, l.Revision); err != nil {
			return nil, err
		}
	}
	err = e.j.Do(func(tx *state.Tx) error { return settleDead(tx, dead, r, rev, before) })
	if err != nil {
		return nil, &TouchedError{err}
	}
	r.Revision = rev.Number
	e.tell(Event{Type: "recovered", Message: r.Sentence()})
	return r, nil
}

// leftOver lets the ledger keep what steps made beside their glyphs and what is there all
// the same: somebody else needs it by now.
func (e *engine) leftOver(w *reconcilers.World, steps []*state.Step) error {
	for _, s := range steps {
		for i := range s.Ledger {
			c := &s.Ledger[i]
			looks, ok := reconcilers.Reconcilers[c.Sort].(reconcilers.Lasting)
			if !ok || c.Before != nil || c.After == nil {
				continue
			}
			there, err := looks.There(w, c.Resource)
			if err != nil {
				return fmt.Errorf("recover: look for %s: %w", c.Resource, err)
			}
			if there {
				c.Before = c.After
			}
		}
	}
	return nil
}

// recovered is the account of a recovery, and the revision it makes of the attempt.
func recovered(dead *state.Dead) (*Recovered, *state.Revision) {
	r := &Recovered{
		Lineage: dead.Run.Lineage, Command: dead.Run.Command, Started: dead.Run.Started.UTC().Format("2006-01-02T15:04:05Z"),
		Leaves: append([]state.LeafOutcome{}, dead.Leaves...), Keys: []string{},
	}
	seen := map[string]bool{}
	for _, leaf := range dead.Leaves { // one that ended, but for a step that could not be taken back
		seen[leaf.Leaf] = true
	}
	for _, s := range dead.Steps {
		if !seen[s.Leaf] {
			seen[s.Leaf] = true
			r.Leaves = append(r.Leaves, state.LeafOutcome{
				Leaf: s.Leaf, Outcome: RolledBack, Failures: []string{"the run was interrupted"},
			})
		}
		for _, part := range s.Glyphs {
			r.Keys = append(r.Keys, string(part.Key))
		}
	}
	return r, &state.Revision{Lineage: dead.Run.Lineage, Run: dead.Run, Outcome: "recovered", Leaves: r.Leaves}
}

// settleDead writes the ends of a dead run.
func settleDead(tx *state.Tx, dead *state.Dead, r *Recovered, rev *state.Revision, before rules) error {
	for i := len(dead.Steps) - 1; i >= 0; i-- {
		if err := tx.Reverse(dead.Steps[i], "the run was interrupted"); err != nil {
			return err
		}
	}
	for _, leaf := range r.Leaves[len(dead.Leaves):] {
		if err := tx.LeafEnd(dead.Run.ID, leaf); err != nil {
			return err
		}
	}
	applied, err := tx.Applied(dead.Run.Lineage)
	if err != nil {
		return err
	}
	rev.Declared = declaredOf(applied)
	before.lay(rev.Declared)
	return tx.Commit(rev)
}

// declaredOf lists what is in force, leaf by leaf, in the order of application.
func declaredOf(applied []state.Applied) []state.Declared {
	var all []state.Declared
	byLeaf := map[string]int{}
	for _, a := range applied {
		at, ok := byLeaf[a.Leaf]
		if !ok {
			at = len(all)
			byLeaf[a.Leaf] = at
			all = append(all, state.Declared{Leaf: a.Leaf, Glyphs: []*scrolls.Glyph{}})
		}
		all[at].Glyphs = append(all[at].Glyphs, a.Glyph)
	}
	return all
}

// Sentence tells a recovery to a person.
func (r *Recovered) Sentence() string {
	where := ""
	for _, leaf := range r.Leaves {
		if leaf.Outcome == RolledBack && leaf.Leaf != plan.WaveLeaf {
			where = " in " + leaf.Leaf
		}
	}
	return fmt.Sprintf("Recovered: the %s of %s was interrupted; %d of its glyphs%s taken back, as revision %d of %s.",
		r.Command, r.Started, len(r.Keys), where, r.Revision, r.Lineage)
}
