package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	// Owed are the keys taken back now that earlier runs could not.
	Owed []string `json:"owed"`
	// Stays are keys whose steps had nothing to take them back by, each with what is known.
	Stays []string `json:"stays"`
}

// Recover settles an interrupted run and nothing else. It returns nil where there is
// none.
func Recover(ctx context.Context, o Options) (*Recovered, error) {
	e := newEngine(o)
	defer e.listen()()
	r, err := e.recover(ctx)
	if err == nil && len(e.owed) > 0 {
		err = &TouchedError{e.owing()}
	}
	return r, errors.Join(err, e.sweepReturn(ctx))
}

// recover takes back the leaf that was in flight when a run died, from the steps' own
// inverses; leaves that had settled stay settled. The attempt becomes a revision that
// says so. Then it tries again what earlier runs could not take back. Recovery may itself
// die at any point: it starts again where it was.
func (e *engine) recover(ctx context.Context) (*Recovered, error) {
	if err := e.o.Host.AwaitCommands(ctx, scrolls.BuiltinPolicy.Timeout); err != nil {
		return nil, err
	}
	snap, err := e.j.Snapshot()
	if err == nil {
		err = e.o.Host.ClearScratch()
	}
	if err != nil || !snap.Unsettled() {
		return nil, err
	}
	defer e.pulse.begin(Doing{What: "taking back what an interrupted run left"})()
	lineage := e.o.Lineage
	defer func() { e.o.Lineage, e.plan, e.report = lineage, nil, &Report{} }()
	var r *Recovered
	if snap.Dead != nil {
		if r, err = e.recoverDead(ctx, snap); err != nil {
			return nil, &TouchedError{err}
		}
	}
	r, err = e.payOwed(ctx, snap, r)
	if err != nil {
		return nil, &TouchedError{err}
	}
	if r != nil {
		e.tell(Event{Type: "recovered", Message: r.Sentence()})
	}
	return r, nil
}

// recoverDead settles a dead run. What cannot be taken back is owed from then on.
func (e *engine) recoverDead(ctx context.Context, snap *state.Snapshot) (*Recovered, error) {
	dead := snap.Dead
	e.ready(snap, dead.Run.Lineage, dead.Steps)
	defer e.w.Close()
	stuck, failed, err := e.takeBackSteps(ctx, dead.Steps)
	if err != nil {
		return nil, err
	}
	r, rev := recovered(dead, stuck, failed)
	before, err := rulesBefore(e.j, dead.Run.Lineage, snap.Revision(dead.Run.Lineage))
	if err != nil {
		return nil, err
	}
	err = e.do(func(tx *state.Tx) error {
		if err := e.settleDues(tx, dead.Steps, failed); err != nil {
			return err
		}
		return settleDead(tx, dead, r, rev, before, stuck)
	})
	r.Revision = rev.Number
	return r, err
}

// takeBackSteps undoes steps and lets what runs read what was put back. An interrupt
// leaves the rest to the next run.
func (e *engine) takeBackSteps(ctx context.Context, steps []*state.Step) (map[*state.Step]error, []unfired, error) {
	stuck := reconcilers.TakeBack(ctx, e.w, e.store, steps, func(_ *state.Step, act func() error) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return act()
	})
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	for s, err := range stuck {
		stuck[s] = &takeBackError{s, err}
		e.owed[s] = stuck[s]
	}
	failed := e.refireRun(steps, stuck)
	return stuck, failed, e.leftOver(e.w, steps)
}

// payOwed tries again what earlier runs could not take back. What is still not to be had
// is owed on.
func (e *engine) payOwed(ctx context.Context, snap *state.Snapshot, r *Recovered) (*Recovered, error) {
	for _, lineage := range slices.Sorted(maps.Keys(snap.Lineages)) {
		steps := slices.DeleteFunc(slices.Clone(snap.Owed), func(s *state.Step) bool {
			return s.Lineage != lineage || snap.Dead != nil && s.Run == snap.Dead.Run.ID // which was just tried
		})
		if len(steps) == 0 {
			continue
		}
		e.ready(snap, lineage, steps)
		stuck, failed, err := e.takeBackSteps(ctx, steps)
		e.w.Close()
		if err == nil {
			err = e.do(func(tx *state.Tx) error {
				if err := e.settleDues(tx, steps, failed); err != nil {
					return err
				}
				return reverse(tx, steps, stuck, errOwed)
			})
		}
		if err != nil {
			return nil, err
		}
		for _, s := range steps {
			if stuck[s] != nil {
				continue
			}
			if r == nil {
				r = &Recovered{Lineage: lineage, Leaves: []state.LeafOutcome{}, Keys: []string{}, Owed: []string{}, Stays: []string{}}
			}
			r.Owed = append(r.Owed, string(keyOfStep(s)))
		}
	}
	return r, nil
}

var errInterrupted = errors.New("the run was interrupted")

var errOwed = errors.New("an earlier run could not take it back")

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
func recovered(dead *state.Dead, stuck map[*state.Step]error, failed []unfired) (*Recovered, *state.Revision) {
	r := &Recovered{
		Lineage: dead.Run.Lineage, Command: dead.Run.Command, Started: dead.Run.Started.UTC().Format("2006-01-02T15:04:05Z"),
		Leaves: append([]state.LeafOutcome{}, dead.Leaves...), Keys: []string{}, Owed: []string{}, Stays: []string{},
	}
	at := map[string]int{}
	for i, leaf := range r.Leaves { // one that ended, but for a step that could not be taken back
		at[leaf.Leaf] = i
	}
	for _, s := range dead.Steps {
		if _, ok := at[s.Leaf]; !ok {
			at[s.Leaf] = len(r.Leaves)
			r.Leaves = append(r.Leaves, state.LeafOutcome{Leaf: s.Leaf, Outcome: RolledBack, Failures: []string{errInterrupted.Error()}})
		}
		leaf := &r.Leaves[at[s.Leaf]]
		if err := stuck[s]; err != nil {
			leaf.Failures = append(leaf.Failures, err.Error())
			continue
		}
		if stays := reconcilers.Stays(s, false); stays != "" {
			text := string(keyOfStep(s)) + ": " + stays
			leaf.Failures, r.Stays = append(leaf.Failures, text), append(r.Stays, text)
			continue
		}
		for _, part := range s.Glyphs {
			r.Keys = append(r.Keys, string(part.Key))
		}
	}
	for _, f := range failed {
		if len(at) > 0 {
			leaf := &r.Leaves[len(r.Leaves)-1]
			leaf.Failures = append(leaf.Failures, "after taking it back: "+f.err.Error())
		}
	}
	return r, &state.Revision{Lineage: dead.Run.Lineage, Run: dead.Run, Outcome: recoveredOutcome, Leaves: r.Leaves}
}

// settleDead writes the ends of a dead run.
func settleDead(tx *state.Tx, dead *state.Dead, r *Recovered, rev *state.Revision, before rules, stuck map[*state.Step]error) error {
	if err := reverse(tx, dead.Steps, stuck, errInterrupted); err != nil {
		return err
	}
	for _, leaf := range r.Leaves[len(dead.Leaves):] {
		if err := tx.LeafEnd(dead.Run.ID, leaf); err != nil {
			return err
		}
	}
	return commitInForce(tx, rev, before)
}

// Sentence tells a recovery to a person.
func (r *Recovered) Sentence() string {
	if r.Command == "" {
		return fmt.Sprintf("Taken back now, what an earlier run could not: %s.", strings.Join(r.Owed, ", "))
	}
	where := ""
	for _, leaf := range r.Leaves {
		if leaf.Outcome == RolledBack && leaf.Leaf != plan.WaveLeaf {
			where = " in " + leaf.Leaf
		}
	}
	text := fmt.Sprintf("Recovered: the %s of %s was interrupted; %d of its glyphs%s taken back, as revision %d of %s.",
		r.Command, r.Started, len(r.Keys), where, r.Revision, r.Lineage)
	for _, stays := range r.Stays {
		text += fmt.Sprintf(" Not taken back: %s.", stays)
	}
	return text
}

// owing says what could still not be taken back.
func (e *engine) owing() error {
	var all []error
	for _, s := range e.owedSteps() {
		all = append(all, e.owed[s])
	}
	return errors.Join(all...)
}

// owedSteps are the steps that could not be taken back, oldest first.
func (e *engine) owedSteps() []*state.Step {
	return slices.SortedFunc(maps.Keys(e.owed), func(a, b *state.Step) int { return int(a.ID - b.ID) })
}

// bar bars what is owed from the run, and lets the report say so.
func (e *engine) bar() {
	for _, s := range e.owedSteps() {
		e.barred[reconcilers.RecordKey(s.Sort, s.Resource)] = s.Leaf
		e.stuck = append(e.stuck, plan.NeedName(s.Sort, s.Resource))
	}
}

// tellOwed puts what is owed from earlier runs into the report, at the run's end.
func (e *engine) tellOwed() {
	for _, s := range e.owedSteps() {
		name := s.Leaf
		if s.Lineage != e.o.Lineage {
			name = s.Lineage + ": " + s.Leaf
		}
		r := e.report.leaf(name)
		r.Outcome = RolledBack
		r.fail(e.owed[s])
	}
}
