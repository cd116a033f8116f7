// Package apply is the spine: it settles an interrupted run, makes a plan, has it
// approved, enacts it leaf by leaf with the journal always ahead of the host, takes a
// failing leaf back, and reports. It knows no kind by name.
package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// Options say what to run, on what, and who is asked and told.
type Options struct {
	Journal *state.Journal
	Host    *reconcilers.Host
	// HostName is the host's name, for people.
	HostName string
	// Scroll is what is wanted; nil is the empty scroll.
	Scroll *scrolls.Scroll
	// Policies are those that hold where Scroll is nil, by the scrolls' paths.
	Policies map[string]scrolls.Policy
	Lineage  string
	Blind    bool // --no-observe
	// Choice says which part of the scroll the run is about; nil: all of it.
	Choice *plan.Choice
	// Saved, where set, is the plan that was saved, and that the run must still have.
	Saved *Saved
	// Back, where set, says that the run goes back to an earlier revision of the lineage,
	// which then stands for the scroll.
	Back *Back
	// Confirm, where set, says that the run is taken back unless somebody confirms it.
	Confirm *Confirm
	Destroy bool
	// Unattended says that nobody was there to see the plan (--auto-approve).
	Unattended bool
	// Approve shows the plan and asks; it is not called when there is nothing to do.
	Approve func(*plan.Plan) (bool, error)
	// Tell is called for each event as it happens; nil: nobody listens.
	Tell func(Event)
	// Watch is called whenever the run begins or ends something, with what it is at; nil:
	// nobody looks.
	Watch func(Doing)
	// Run says who runs golem, from where and with what.
	Run state.Run
	Now func() time.Time
}

// ErrDeclined says that the plan was shown and not approved.
var ErrDeclined = errors.New("not approved; nothing was changed")

// A TouchedError is an error after which the host is not what it was: the run could
// not come to an end. The next run settles it.
type TouchedError struct{ Err error }

func (e *TouchedError) Error() string { return e.Err.Error() }
func (e *TouchedError) Unwrap() error { return e.Err }

// An engine is one run.
type engine struct {
	o      Options
	j      *state.Journal
	w      *reconcilers.World
	store  *store
	plan   *plan.Plan
	target *Target       // of a rollback
	armed  *plan.Pending // what takes the run back unless it is confirmed; nil: nothing does
	report *Report
	run    state.Run
	begun  bool
	// moved is what is known not to be as the saved plan had it, and outdated says that the
	// journal is not.
	moved    []string
	outdated bool

	records map[string]*state.Record
	touched map[string]bool // resources that this run's steps changed
	// last is the turn that was worked out last on a resource that has several in this run.
	last map[string]*reconcilers.Turn
	wild bool // a program ran that may have changed any of them
	// firsts are the plan's first turns on each resource; nil until they are looked for.
	firsts map[string]*reconcilers.Turn
	// due is what must still run, callers are the steps that called for it, and undone are
	// the steps that were taken back.
	due     map[duty]state.Due
	callers map[duty][]int64
	undone  map[int64]bool
	// patience is that of the leaf whose turn it is.
	patience *patience
	stuck    []string // paths that stay though the plan meant them to go
	standing []string // what is in force, sorted, once every leaf has ended; nil before that
	// owed are the steps of earlier runs that still could not be taken back, and why.
	owed map[*state.Step]error
	// barred are the resources of such steps, and whose leaf's they are.
	barred  map[string]string
	queue   []func(*state.Tx) error
	pulse   pulse
	telling sync.Mutex
	seq     int
	over    bool // nothing is told any more
}

func newEngine(o Options) *engine {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &engine{
		o: o, j: o.Journal, store: &store{o.Journal}, run: o.Run, report: &Report{},
		records: map[string]*state.Record{}, touched: map[string]bool{}, last: map[string]*reconcilers.Turn{}, barred: map[string]string{}, owed: map[*state.Step]error{},
	}
}

// Run brings the host to the scroll. The report is there even with an error, as far
// as the run came; an error with nothing changed means that nothing was touched.
func Run(ctx context.Context, o Options) (*Report, error) {
	e := newEngine(o)
	defer e.listen()()
	if o.Saved != nil {
		if err := e.checkSaved(); err != nil {
			return e.report, err
		}
	}
	recovered, err := e.recover(ctx)
	e.report.Recovered = recovered
	if err != nil {
		return e.report, err
	}
	returned, err := e.returnOverdue(ctx)
	if err == nil {
		err = e.sweepReturn(ctx)
	}
	if err == nil {
		err = e.sameAsSaved(e.lookAndPlan(ctx))
		if err != nil && o.Saved != nil {
			if e.w != nil {
				e.w.Close()
			}
			return &Report{}, err // there is no plan to tell of
		}
	}
	if err != nil {
		if recovered != nil || returned != nil {
			err = &TouchedError{err}
		}
		return e.report, err
	}
	e.bar()
	defer e.w.Close()
	defer func() { e.report.UnitsDone = e.report.unitsDone() }()
	if err := e.approved(ctx); err != nil || e.plan.Empty() {
		if err != nil && (recovered != nil || returned != nil) {
			err = &TouchedError{err}
		}
		return e.report, err
	}
	err = e.enact(ctx)
	return e.report, errors.Join(err, e.disarmIdle(ctx))
}

// lookAndPlan works out what to do from the journal and the host as they are now. What
// the reconcilers look up to make themselves ready serves the plan, too.
func (e *engine) lookAndPlan(ctx context.Context) error {
	snap, err := e.j.Snapshot()
	if err == nil {
		err = e.aim()
	}
	if err != nil {
		return err
	}
	defer e.pulse.begin(Doing{What: "looking at the host"})()
	w := reconcilers.NewWorld(e.o.Host, e.store)
	defer w.Close()
	if e.o.Saved == nil { // what was approved rests on what was known then
		if err := e.refreshAll(ctx, w, snap); err != nil {
			return err
		}
	}
	return e.makePlan(ctx, w, snap)
}

// aim finds what a rollback goes back to.
func (e *engine) aim() error {
	if e.o.Back == nil {
		return nil
	}
	t, err := FindTarget(e.j, e.o.Lineage, *e.o.Back, false)
	if err != nil {
		return err
	}
	e.target, e.o.Scroll = t, t.Scroll
	e.run.Command, e.run.Target, e.run.Source = state.CommandRollback, t.Revision, t.Scroll.Source
	return nil
}

// refreshAll lets the reconcilers make themselves ready for a plan that will be enacted.
func (e *engine) refreshAll(ctx context.Context, w *reconcilers.World, snap *state.Snapshot) error {
	picks, err := e.o.Choice.Pick(e.o.Scroll, e.o.Lineage, snap.Applied)
	if err != nil {
		return err
	}
	var declared, applied []*scrolls.Glyph
	if e.o.Scroll != nil {
		declared = picks.Of(e.o.Scroll.Glyphs())
	}
	for _, a := range snap.Applied {
		if a.Lineage == e.o.Lineage && picks.Has(a.Key) {
			applied = append(applied, a.Glyph)
		}
	}
	return reconcilers.Refresh(ctx, w, declared, applied)
}

// makePlan makes the plan, and the world that it is enacted in.
func (e *engine) makePlan(ctx context.Context, w *reconcilers.World, snap *state.Snapshot) error {
	p, err := plan.Make(plan.Input{
		Context: ctx,
		Scroll:  e.o.Scroll, Policies: e.o.Policies, Lineage: e.o.Lineage, Host: e.o.HostName, Snapshot: snap, World: w,
		Blind: e.o.Blind, Destroy: e.o.Destroy, Choice: e.o.Choice, Back: e.target.Back(),
	})
	if err != nil {
		return err
	}
	e.plan = p
	e.records = snap.Records
	e.w = reconcilers.NewWorld(e.o.Host, e.store)
	snap, err = e.j.Snapshot() // the plan played with the ledger of the first
	if err != nil {
		return err
	}
	e.w.Ledger = snap.Ledger
	e.w.Needed, e.w.Declares, e.w.InForce, e.w.Claims = e.needed, e.plan.Declares, e.plan.InForce, e.plan.Claims
	e.w.Records = e.records
	e.w.Acts = true
	if e.target != nil {
		e.w.TakenBack = e.target.Since
	}
	e.recall(snap.Due)
	e.report.begin(p)
	return nil
}

// needed says whether something stands at or beneath a path when the run is over:
// what the plan declares, and what a failed leaf left. Once every leaf has ended, it is
// what is in force: a leaf that failed does not need what it did not come to.
func (e *engine) needed(path string) bool {
	if e.standing == nil && e.plan.Needed(path) || plan.Covers(e.standing, path) {
		return true
	}
	return slices.ContainsFunc(e.stuck, func(name string) bool {
		return name == path || len(name) > len(path) && name[:len(path)+1] == path+"/"
	})
}

// stand lists what is in force, and what that keeps, but what the last wave is about.
func (e *engine) stand() {
	e.standing = []string{}
	goes := map[string]bool{}
	for _, t := range e.plan.Wave {
		goes[reconcilers.RecordKey(t.Sort, t.Resource)] = true
	}
	for name, r := range e.records {
		if goes[name] {
			continue
		}
		if slices.ContainsFunc(r.Layers, func(l state.Layer) bool { return reconcilers.NeedsPlace(l.Glyph) }) {
			e.standing = append(e.standing, plan.NeedName(r.Sort, r.Resource))
		}
		for _, layer := range r.Layers {
			e.standing = append(e.standing, reconcilers.Keeps(e.w, r.Resource, layer.Glyph)...)
		}
	}
	slices.Sort(e.standing)
}

// approved has the plan seen and agreed to. What lies outside the content ids needs
// no approval: it changes nothing on the host.
func (e *engine) approved(ctx context.Context) error {
	if e.plan.Pending != nil {
		if e.plan.Empty() {
			return nil // what is to be updated waits, too
		}
		return &PendingError{e.plan.Pending}
	}
	if e.plan.Empty() {
		return e.update()
	}
	if err := errors.Join(e.guard(), e.returned()); err != nil {
		return err
	}
	yes, err := e.o.Approve(e.plan)
	if err != nil {
		return err
	}
	if !yes {
		return ErrDeclined
	}
	return e.arm(ctx)
}

// A ManyRemovesError says that an unattended run would remove too much.
type ManyRemovesError struct{ Removes, InForce int }

func (e *ManyRemovesError) Error() string {
	return fmt.Sprintf("apply: this would remove %d of %d glyphs, and nobody is watching", e.Removes, e.InForce)
}

// Hint says how to allow it.
func (e *ManyRemovesError) Hint() string {
	return fmt.Sprintf("if that is meant, set policy { max_removes = %d }, run it at a terminal, or use golem destroy", e.Removes)
}

// guard stops an unattended run that would remove more than half of the lineage's
// glyphs and more than twenty (design: "Many removes"). A destroy, a rollback and a
// declared empty scroll say what they mean; one whose for_each leaves nothing does not.
func (e *engine) guard() error {
	const few = 20
	if !e.o.Unattended || e.o.Destroy || e.target != nil || e.o.Scroll == nil || len(e.o.Scroll.Glyphs()) == 0 && !e.o.Scroll.Written {
		return nil
	}
	s := e.plan.Summary()
	inForce := s.Remove + s.Replace + s.Repair + s.Unchanged + e.plan.LeftOut.StaysInForce()
	if policy, ok := e.o.Scroll.Policies[""]; ok && policy.MaxRemoves >= 0 {
		if s.Remove > policy.MaxRemoves {
			return &ManyRemovesError{s.Remove, inForce}
		}
		return nil
	}
	if s.Remove > few && s.Remove*2 > inForce {
		return &ManyRemovesError{s.Remove, inForce}
	}
	return nil
}

// update brings what lies outside the content ids up to date in the journal.
func (e *engine) update() error {
	if len(e.plan.Updates) == 0 {
		return nil
	}
	return e.j.Do(e.writeUpdates)
}

func (e *engine) writeUpdates(tx *state.Tx) error {
	for _, u := range e.plan.Updates {
		if err := tx.UpdateGlyph(e.o.Lineage, u.Key, u.Leaf, u.Glyph); err != nil {
			return err
		}
	}
	return nil
}

// do commits what is queued together with fn, which may be nil.
func (e *engine) do(fn func(*state.Tx) error) error {
	queue := e.queue
	err := e.j.Do(func(tx *state.Tx) error {
		for _, write := range queue {
			if err := write(tx); err != nil {
				return err
			}
		}
		if fn == nil {
			return nil
		}
		return fn(tx)
	})
	if err == nil {
		e.queue = nil
	}
	return err
}
