package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// A Returned is a run that was taken back because nobody confirmed it.
type Returned struct {
	Lineage  string              `json:"lineage"`
	Revision int                 `json:"revision"` // the one that was taken back
	As       int                 `json:"as"`       // the revision that says so
	Leaves   []state.LeafOutcome `json:"leaves"`
	Keys     []string            `json:"keys"`
}

// Sentence tells it to a person.
func (r *Returned) Sentence() string {
	return fmt.Sprintf("Taken back: nobody confirmed revision %d of %s; %d of its glyphs are as they were before it, as revision %d.",
		r.Revision, r.Lineage, len(r.Keys), r.As)
}

// Wait returns once the run that waits to be confirmed is due to be taken back, or none
// waits any more. open opens the journal, which is not held while time passes: the run
// may still be going on, and somebody may confirm it.
func Wait(ctx context.Context, h *reconcilers.Host, open func() (*state.Journal, error)) (*state.Journal, error) {
	for {
		j, err := open()
		if err != nil {
			return nil, err
		}
		left, err := dueIn(j, h)
		if err != nil || left == 0 {
			return j, err
		}
		if err := j.Close(); err != nil {
			return nil, err
		}
		if err := h.Wait(ctx, left); err != nil {
			return nil, err
		}
	}
}

func dueIn(j *state.Journal, h *reconcilers.Host) (time.Duration, error) {
	snap, err := j.Snapshot()
	if err != nil || snap.Pending == nil {
		return 0, err
	}
	p, err := plan.ReadPending(snap.Pending)
	if err != nil {
		return 0, err
	}
	return timeLeft(p, h), nil
}

// Return takes back the run that waits to be confirmed, by its own steps' inverses, newest
// first: what it stopped is started, and what runs reads the files that were put back
// (design: "--confirm-within"). It is nil where none waits. What cannot be taken back
// keeps its receipt, and so does the wait: the next call tries again.
//
// inside says that the unit which takes the run back is what calls.
func Return(ctx context.Context, o Options, inside bool) (*Returned, error) {
	e := newEngine(o)
	defer e.listen()()
	defer e.pulse.begin(Doing{What: "taking back what nobody confirmed"})()
	if _, err := e.recover(ctx); err != nil {
		return nil, err
	}
	if len(e.owed) > 0 {
		return nil, &TouchedError{e.owing()}
	}
	snap, err := e.j.Snapshot()
	if err != nil {
		return nil, err
	}
	unit := pendingUnit(e.j.Path())
	var r *Returned
	if snap.Pending != nil {
		if r, err = e.takeRunBack(snap); err != nil {
			return nil, &TouchedError{err}
		}
	}
	return r, disarm(context.WithoutCancel(ctx), e.j, o.Host, unit, !inside)
}

// takeRunBack undoes a run's steps and journals that as a revision.
func (e *engine) takeRunBack(snap *state.Snapshot) (*Returned, error) {
	p, err := plan.ReadPending(snap.Pending)
	if err != nil {
		return nil, err
	}
	was, err := e.j.Revision(p.Lineage, p.Revision)
	if err != nil {
		return nil, err
	}
	all, err := e.j.StepsOf(snap.Pending.Run)
	if err != nil {
		return nil, err
	}
	steps := slices.DeleteFunc(slices.Clone(all), func(s *state.Step) bool { return s.Status != state.Done })
	e.ready(snap, p.Lineage, steps)
	defer e.w.Close()
	stuck := e.undoRun(steps)
	failed := e.refireRun(steps, stuck)
	if len(stuck) > 0 {
		return nil, e.returnPart(steps, stuck, failed)
	}
	return e.commitReturn(p, was, steps, slices.DeleteFunc(all, func(s *state.Step) bool { return !wentBack(s) }), failed)
}

// returnPart journals what of a run could be taken back; the rest stays in force, and the
// run goes on waiting.
func (e *engine) returnPart(steps []*state.Step, stuck map[*state.Step]error, failed []unfired) error {
	back := slices.DeleteFunc(slices.Clone(steps), func(s *state.Step) bool { return stuck[s] != nil })
	err := e.do(func(tx *state.Tx) error {
		if err := reverse(tx, back, nil, errUnconfirmed); err != nil {
			return err
		}
		return e.settleDues(tx, back, failed)
	})
	var causes []error
	for _, s := range steps {
		causes = append(causes, stuck[s])
	}
	return errors.Join(append(causes, err)...)
}

// wentBack says that a step of an unconfirmed run was taken back after the run: by its
// return, one that came not to its end included, or by recovery.
func wentBack(s *state.Step) bool {
	return s.Status == state.Done || s.Status == state.Reversed &&
		slices.Contains([]string{errUnconfirmed.Error(), errInterrupted.Error(), errOwed.Error()}, s.Detail)
}

var errUnconfirmed = errors.New("nobody confirmed the run")

// ready gives the engine what undoing steps of a lineage needs: the world, and the
// triggers of what is in force, or was to be.
func (e *engine) ready(snap *state.Snapshot, lineage string, steps []*state.Step) {
	e.o.Lineage = lineage
	e.plan = &plan.Plan{Name: lineage, Triggers: triggersOf(snap, lineage, steps)}
	e.report.at = map[string]*LeafReport{}
	e.due, e.callers, e.undone = map[duty]state.Due{}, map[duty][]int64{}, map[int64]bool{}
	for _, d := range snap.Due {
		if d.Lineage == lineage {
			e.due[duty{d.Leaf, d.Name}] = d
		}
	}
	e.records = snap.Records
	e.w = reconcilers.NewWorld(e.o.Host, e.store)
	e.w.Ledger, e.w.Records = snap.Ledger, snap.Records
	e.under("", e.plan.PolicyAt(""))
}

// triggersOf are the triggers of a lineage: of what is in force, and of the glyphs that some
// steps were about.
func triggersOf(snap *state.Snapshot, lineage string, steps []*state.Step) []plan.Trigger {
	var all []plan.Trigger
	seen := map[string]bool{}
	add := func(g *scrolls.Glyph, leaf, sort, resource string) {
		for _, t := range reconcilers.Triggers(g) {
			trigger := plan.Trigger{Trigger: t, Leaf: leaf, Glyph: g, Sort: sort, Resource: resource}
			if !seen[trigger.Name()] {
				seen[trigger.Name()] = true
				all = append(all, trigger)
			}
		}
	}
	for _, a := range snap.Applied {
		if a.Lineage == lineage {
			add(a.Glyph, a.Leaf, a.Sort, a.Resource)
		}
	}
	for _, s := range steps {
		for _, part := range s.Glyphs {
			if part.New != nil {
				add(part.New, s.Leaf, s.Sort, s.Resource)
			}
		}
	}
	return all
}

// undoRun takes steps back, each as often as patience lasts. The way back is not to be
// interrupted.
func (e *engine) undoRun(steps []*state.Step) map[*state.Step]error {
	ctx := context.Background()
	stuck := reconcilers.TakeBack(ctx, e.w, e.store, steps, func(s *state.Step, act func() error) error {
		return e.persist(ctx, s.Leaf, keyOfStep(s), act)
	})
	for i := len(steps) - 1; i >= 0; i-- {
		if s := steps[i]; stuck[s] == nil {
			e.unremember(s)
		} else {
			stuck[s] = &takeBackError{s, stuck[s]}
		}
	}
	return stuck
}

func keyOfStep(s *state.Step) scrolls.Key {
	if len(s.Glyphs) > 0 {
		return s.Glyphs[0].Key
	}
	return scrolls.Key(s.Resource)
}

// An unfired is a trigger that could not be fired.
type unfired struct {
	due state.Due
	err error
}

// refireRun lets what runs read what was put back: the triggers that the steps pulled, of
// the glyphs in force before and after. The files are back by then: a trigger that fails
// stays due, and is told.
func (e *engine) refireRun(steps []*state.Step, stuck map[*state.Step]error) []unfired {
	ctx := context.Background()
	var failed []unfired
	if err := e.flush(ctx, plan.WaveLeaf); err != nil {
		failed = append(failed, unfired{err: err})
	}
	pulled := map[string]bool{}
	for _, t := range e.plan.Triggers {
		for _, s := range steps {
			for _, part := range s.Glyphs {
				pulled[t.Name()] = pulled[t.Name()] || stuck[s] == nil && t.Calls(part)
			}
		}
	}
	fire, _ := e.plan.Firing(func(name string) bool { return pulled[name] }, "", true)
	for _, t := range fire {
		if err := e.pull(ctx, t); err != nil {
			failed = append(failed, unfired{state.Due{Lineage: e.o.Lineage, Leaf: t.Leaf, Name: t.Name()}, err})
		}
	}
	return failed
}

// commitReturn writes that the run is taken back. It is one commit: a return that dies
// before it begins anew, and every undo may be done twice.
func (e *engine) commitReturn(p *plan.Pending, was *state.Revision, steps, all []*state.Step, failed []unfired) (*Returned, error) {
	r := &Returned{Lineage: p.Lineage, Revision: p.Revision}
	r.Leaves, r.Keys = takenBackOf(all)
	for _, s := range steps {
		if stays := reconcilers.Stays(s, true); stays != "" {
			i := slices.IndexFunc(r.Leaves, func(l state.LeafOutcome) bool { return l.Leaf == s.Leaf })
			r.Leaves[i].Failures = append(r.Leaves[i].Failures, string(keyOfStep(s))+": "+stays)
		}
	}
	e.run.Lineage, e.run.Command = p.Lineage, state.CommandReturn
	e.run.Target, e.run.Source, e.run.Digest = p.Revision-1, was.Run.Source, ""
	if was.Run.Command == "apply" {
		e.run.Digest = was.Run.Digest // that scroll is not to come back by itself
	}
	for _, f := range failed {
		r.Leaves = append(r.Leaves, state.LeafOutcome{Leaf: plan.WaveLeaf, Outcome: Kept, Failures: []string{f.err.Error()}})
	}
	before, err := rulesBefore(e.j, p.Lineage, e.run.Target)
	if err != nil {
		return nil, err
	}
	rev := &state.Revision{Lineage: p.Lineage, Outcome: RolledBack, Leaves: r.Leaves}
	err = e.do(func(tx *state.Tx) error {
		if err := tx.Begin(&e.run); err != nil {
			return err
		}
		if err := reverse(tx, steps, nil, errUnconfirmed); err != nil {
			return err
		}
		if err := e.settleDues(tx, steps, failed); err != nil {
			return err
		}
		if err := tx.SetPending(nil); err != nil {
			return err
		}
		rev.Run = e.run
		return commitInForce(tx, rev, before)
	})
	r.As = rev.Number
	return r, err
}

// settleDues clears what the steps had made due, and leaves due what could not be fired.
func (e *engine) settleDues(tx *state.Tx, steps []*state.Step, failed []unfired) error {
	own := map[int64]bool{}
	for _, s := range steps {
		own[s.ID] = true
	}
	for _, d := range e.due {
		if own[d.Step] {
			if err := tx.ClearDue(d); err != nil {
				return err
			}
		}
	}
	for _, f := range failed {
		if f.due.Name == "" {
			continue
		}
		if err := tx.SetDue(f.due); err != nil {
			return err
		}
	}
	return nil
}

// takenBackOf lists the leaves and keys of steps.
func takenBackOf(steps []*state.Step) (leaves []state.LeafOutcome, keys []string) {
	leaves, keys = []state.LeafOutcome{}, []string{}
	seen := map[string]bool{}
	for _, s := range steps {
		if !seen[s.Leaf] {
			seen[s.Leaf] = true
			leaves = append(leaves, state.LeafOutcome{Leaf: s.Leaf, Outcome: RolledBack, Failures: []string{errUnconfirmed.Error()}})
		}
		for _, part := range s.Glyphs {
			if !seen["key "+string(part.Key)] {
				seen["key "+string(part.Key)] = true
				keys = append(keys, string(part.Key))
			}
		}
	}
	return leaves, keys
}
