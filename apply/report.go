package apply

import (
	"context"
	"errors"

	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// How a leaf can end.
const (
	Settled                  = state.Settled
	RolledBack state.Outcome = "rolled_back" // of a glyph, too
	Skipped    state.Outcome = "skipped"
	Kept       state.Outcome = "kept"
)

// What can become of a glyph, beside that it is rolled back.
const (
	Applied    state.Outcome = "applied" // and in force after the run, in a leaf that was kept, too
	Failed     state.Outcome = "failed"
	NotReached state.Outcome = "not_reached"
)

// How a run can end, beside that it settled or is rolled back; and what becomes of one that
// died.
const (
	partial          state.Outcome = "partial"
	recoveredOutcome state.Outcome = "recovered"
)

// A Report is what a run did: the plan it enacted, and how each leaf ended.
type Report struct {
	Type string `json:"type"`
	plan.Document
	Leaves    []*LeafReport `json:"leaves"`
	UnitsDone []UnitReport  `json:"units_done"`
	Outcome   state.Outcome `json:"outcome"` // settled, partial, rolled_back
	Recovered *Recovered    `json:"recovered"`
	Kept      []state.Kept  `json:"-"`

	Plan *plan.Plan `json:"-"`

	at       map[string]*LeafReport
	removes  map[scrolls.Key]*GlyphReport
	hush     func(string) string // takes out what is sensitive; nil before there is a plan
	recorded bool                // the run is a revision
	// untouched says that nothing was written, on the host or in the journal.
	untouched bool
}

// A LeafReport is how one leaf ended.
type LeafReport struct {
	Leaf      string        `json:"leaf"`
	Outcome   state.Outcome `json:"outcome"`
	Attempts  int           `json:"attempts"`
	Unchanged int           `json:"unchanged"` // glyphs that held already
	Glyphs    []GlyphReport `json:"glyphs"`
	Failures  []Failure     `json:"failures"`

	byKey map[scrolls.Key]*GlyphReport
	// fired and again count the leaf's triggers that were fired, by the glyph's key, and
	// of them those that a rollback fired.
	fired, again map[scrolls.Key]int
	hush         func(string) string
	undone       int  // steps that were taken back
	stays        bool // something of it could not be undone
	held         int  // checks that were made and hold
	ended        bool // and that was told
}

// A GlyphReport is what was done about one glyph.
type GlyphReport struct {
	Key      string        `json:"key"`
	Op       state.Op      `json:"op"`
	Changed  bool          `json:"changed"`
	Outcome  state.Outcome `json:"outcome"`            // applied, failed, rolled_back, not_reached
	Attempts int           `json:"attempts,omitempty"` // where it took more than one

	stuck bool // it could not be taken back
}

// A Failure is what stopped a leaf, or what went wrong when it was taken back.
type Failure struct {
	Key string `json:"key"`
	// Message is all there is to say; Cause is it without what Diagnostics hold.
	Message     string                   `json:"message"`
	Cause       string                   `json:"cause"`
	Diagnostics []reconcilers.Diagnostic `json:"diagnostics"`
	// Hint is what can be done; "" where golem knows nothing.
	Hint string `json:"hint,omitempty"`

	err error
}

// begin takes the plan into the report.
func (r *Report) begin(p *plan.Plan) {
	r.Type, r.Plan, r.Document = "report", p, p.Document()
	r.Outcome = partial // until it is on disk that it is not
	r.Leaves, r.UnitsDone = []*LeafReport{}, []UnitReport{}
	r.hush = p.Hush
	r.at, r.removes = map[string]*LeafReport{}, map[scrolls.Key]*GlyphReport{}
	for _, leaf := range p.Leaves {
		l := r.leaf(leaf.Path)
		l.Unchanged = leaf.Unchanged()
		for _, c := range leaf.Changes() {
			l.Glyphs = append(l.Glyphs, GlyphReport{Key: string(c.Key), Op: c.Op, Outcome: NotReached})
		}
		for i := range l.Glyphs {
			g := &l.Glyphs[i]
			l.byKey[scrolls.Key(g.Key)] = g
			if g.Op == state.Remove {
				r.removes[scrolls.Key(g.Key)] = g
			}
		}
	}
	if p.Empty() {
		r.Outcome, r.recorded = Settled, true
		for _, l := range r.Leaves {
			l.Outcome = Settled
		}
	}
}

func (r *Report) leaf(path string) *LeafReport {
	if l := r.at[path]; l != nil {
		return l
	}
	l := &LeafReport{
		Leaf: path, Outcome: Skipped, Glyphs: []GlyphReport{}, Failures: []Failure{},
		hush: r.hush, byKey: map[scrolls.Key]*GlyphReport{}, fired: map[scrolls.Key]int{}, again: map[scrolls.Key]int{},
	}
	r.at[path] = l
	r.Leaves = append(r.Leaves, l)
	return l
}

func (l *LeafReport) fail(err error) {
	f := Failure{Key: string(failedKey(err)), Message: message(err), err: err}
	f.Cause, f.Diagnostics = diagnose(err)
	if l.hush != nil {
		f.Message, f.Cause = l.hush(f.Message), l.hush(f.Cause)
		for _, d := range f.Diagnostics {
			for i, line := range d.Lines {
				d.Lines[i] = l.hush(line)
			}
		}
	}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) && !Interrupted(err) {
		f.Hint = hinted.Hint()
	}
	l.Failures = append(l.Failures, f)
}

// diagnose parts an error into its cause and what was found out about it.
func diagnose(err error) (string, []reconcilers.Diagnostic) {
	found := []reconcilers.Diagnostic{}
	if Interrupted(err) {
		return message(err), found
	}
	cause, more := reconcilers.Diagnose(err)
	return cause, append(found, more...)
}

// WasInterrupted is the cause of a leaf that did not fail, but was stopped by a signal.
const WasInterrupted = "the run was interrupted"

// message is what a person reads of an error.
func message(err error) string {
	if Interrupted(err) {
		return WasInterrupted
	}
	return err.Error()
}

// attempted notes how often the leaf's most stubborn batch was tried.
func (l *LeafReport) attempted(n int) { l.Attempts = max(l.Attempts, n) }

func failedKey(err error) scrolls.Key {
	var se *stepError
	if errors.As(err, &se) {
		return se.key
	}
	return ""
}

func (l *LeafReport) texts() []string {
	var all []string
	for _, f := range l.Failures {
		all = append(all, f.Message)
	}
	return all
}

// tried notes that a glyph was tried so many times.
func (l *LeafReport) tried(key scrolls.Key, n int) {
	if g := l.byKey[key]; g != nil && n > 1 {
		g.Attempts = max(g.Attempts, n)
	}
}

// takenBack marks what was applied and is not any more.
func (r *Report) takenBack(leaf string, steps []*state.Step) {
	r.leaf(leaf).undone += len(steps)
	for _, s := range steps {
		for _, part := range s.Glyphs {
			if g := r.glyph(leaf, part.Key); g != nil && g.Outcome == Applied {
				g.Outcome, g.Changed = RolledBack, false
			}
		}
	}
}

// blame marks the glyph that failed. One that was applied has not: something that it
// called for has.
func (r *Report) blame(leaf string, err error) {
	if g := r.glyph(leaf, failedKey(err)); g != nil && g.Outcome != Applied && !Interrupted(err) {
		g.Outcome, g.Changed = Failed, false
	}
}

// outcome is the run's: how its leaves ended taken together.
func (r *Report) outcome() state.Outcome {
	settled, failed, kept := 0, 0, 0
	for _, l := range r.Leaves {
		switch {
		case l.Outcome == Kept:
			failed++
			kept++
		case l.Outcome != Settled:
			failed++
		case l.Leaf != plan.WaveLeaf: // which is no leaf of the scroll
			settled++
		}
	}
	switch {
	case failed == 0:
		return Settled
	case settled+kept == 0:
		return RolledBack
	}
	return partial
}

// outcomes are the leaves' as the journal has them.
func (r *Report) outcomes() []state.LeafOutcome {
	all := make([]state.LeafOutcome, 0, len(r.Leaves))
	for _, l := range r.Leaves {
		all = append(all, state.LeafOutcome{Leaf: l.Leaf, Outcome: l.Outcome, Failures: l.texts()})
	}
	return all
}

// finish notes that the run is a revision on disk.
func (r *Report) finish(revision int) {
	r.Revision, r.Outcome, r.recorded = revision, r.outcome(), true
}

// Partial says that a leaf did not settle.
func (r *Report) Partial() bool { return r.Outcome != Settled }

// Interrupted says that a run was stopped by a signal.
func Interrupted(err error) bool { return errors.Is(err, context.Canceled) }

// Closed tells of an error that came when the journal was closed behind the run: what
// the run did stands all the same.
func (r *Report) Closed(err error) error {
	if err != nil && (r.Recovered != nil || r.Plan != nil && !r.Plan.Empty() && r.Ran()) {
		return &TouchedError{err}
	}
	return err
}

// firstFailure is what stopped a run that did nothing.
func (r *Report) firstFailure() error {
	for _, l := range r.Leaves {
		for _, f := range l.Failures {
			return f.err
		}
	}
	return nil
}

// Ran says whether the run began to enact its plan.
func (r *Report) Ran() bool {
	if r.untouched {
		return false
	}
	for _, l := range r.Leaves {
		if l.ended || l.Attempts > 0 || len(l.Failures) > 0 {
			return true
		}
	}
	return false
}
