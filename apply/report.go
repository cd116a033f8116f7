package apply

import (
	"context"
	"errors"
	"time"

	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// How a leaf can end.
const (
	Settled    = "settled"
	RolledBack = "rolled_back"
	Skipped    = "skipped"
	Kept       = "kept"
)

// A Report is what a run did: the plan it enacted, and how each leaf ended.
type Report struct {
	Type string `json:"type"`
	plan.Document
	Leaves    []*LeafReport `json:"leaves"`
	Outcome   string        `json:"outcome"` // settled, partial, rolled_back
	Recovered *Recovered    `json:"recovered"`
	Kept      []state.Kept  `json:"-"`

	Plan *plan.Plan `json:"-"`

	at       map[string]*LeafReport
	recorded bool // the run is a revision
	// untouched says that nothing was written, on the host or in the journal.
	untouched bool
}

// A LeafReport is how one leaf ended.
type LeafReport struct {
	Leaf     string        `json:"leaf"`
	Outcome  string        `json:"outcome"`
	Attempts int           `json:"attempts"`
	Glyphs   []GlyphReport `json:"glyphs"`
	Failures []Failure     `json:"failures"`

	told bool
}

// A GlyphReport is what was done about one glyph.
type GlyphReport struct {
	Key     string   `json:"key"`
	Op      state.Op `json:"op"`
	Changed bool     `json:"changed"`
	Outcome string   `json:"outcome"` // applied, rolled_back, not_reached
}

// A Failure is what stopped a leaf.
type Failure struct {
	Key     string `json:"key"`
	Message string `json:"message"`

	err error
}

// An Event is one thing that happened, as apply --json prints it: one a line.
type Event struct {
	Type    string `json:"type"`
	Seq     int    `json:"seq"`
	Time    string `json:"time"`
	Leaf    string `json:"leaf"`
	Key     string `json:"key"`
	Op      string `json:"op,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	Attempt int    `json:"attempt,omitempty"` // of retrying: the one that failed, from 1
	Message string `json:"message,omitempty"`
}

// begin takes the plan into the report.
func (r *Report) begin(p *plan.Plan) {
	r.Type, r.Plan, r.Document = "report", p, p.Document()
	r.Outcome = "partial" // until it is on disk that it is not
	r.Leaves = []*LeafReport{}
	r.at = map[string]*LeafReport{}
	for _, leaf := range p.Leaves {
		l := r.leaf(leaf.Path)
		for _, c := range leaf.Changes() {
			l.Glyphs = append(l.Glyphs, GlyphReport{Key: string(c.Key), Op: c.Op, Outcome: "not_reached"})
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
	l := &LeafReport{Leaf: path, Outcome: Skipped, Attempts: 0, Glyphs: []GlyphReport{}, Failures: []Failure{}}
	r.at[path] = l
	r.Leaves = append(r.Leaves, l)
	return l
}

func (l *LeafReport) fail(err error) {
	l.Failures = append(l.Failures, Failure{Key: string(failedKey(err)), Message: message(err), err: err})
}

// message is what a person reads of an error.
func message(err error) string {
	if Interrupted(err) {
		return "the run was interrupted"
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

// takenBack marks what was applied and is not any more, and what failed.
func (l *LeafReport) takenBack(failed scrolls.Key) {
	for i := range l.Glyphs {
		if l.Glyphs[i].Outcome == "applied" || l.Glyphs[i].Key == string(failed) {
			l.Glyphs[i].Outcome, l.Glyphs[i].Changed = RolledBack, false
		}
	}
}

// outcome is the run's: how its leaves ended taken together.
func (r *Report) outcome() string {
	settled, failed := 0, 0
	for _, l := range r.Leaves {
		switch {
		case l.Outcome != Settled:
			failed++
		case l.Leaf != plan.WaveLeaf: // which is no leaf of the scroll
			settled++
		}
	}
	switch {
	case failed == 0:
		return Settled
	case settled == 0:
		return RolledBack
	}
	return "partial"
}

func (r *Report) outcomes() []state.LeafOutcome {
	all := make([]state.LeafOutcome, 0, len(r.Leaves))
	for _, l := range r.Leaves {
		all = append(all, state.LeafOutcome{Leaf: l.Leaf, Outcome: l.Outcome, Failures: l.texts()})
	}
	return all
}

func (r *Report) finish(revision int) {
	r.Revision, r.Outcome, r.recorded = revision, r.outcome(), true
}

// Partial says that a leaf did not settle.
func (r *Report) Partial() bool { return r.Outcome != Settled }

func (e *engine) tell(ev Event) {
	if e.o.Tell == nil {
		return
	}
	e.seq++
	ev.Seq = e.seq
	now := e.o.Now
	if now == nil {
		now = time.Now
	}
	ev.Time = now().UTC().Format(time.RFC3339Nano)
	e.o.Tell(ev)
}

// enacted notes glyphs whose step is done on the host.
func (e *engine) enacted(leaf *plan.Leaf, turns []*reconcilers.Turn) {
	done := map[scrolls.Key]state.StepGlyph{}
	for _, t := range turns {
		for _, part := range t.Step.Glyphs {
			done[part.Key] = part
			e.tell(Event{Type: "enacted", Leaf: leaf.Path, Key: string(part.Key), Op: string(part.Op)})
		}
	}
	for _, l := range e.report.Leaves {
		for i := range l.Glyphs {
			part, ok := done[scrolls.Key(l.Glyphs[i].Key)]
			if ok && (l.Leaf == leaf.Path || leaf.Path == plan.WaveLeaf && part.Op == state.Remove) {
				l.Glyphs[i].Outcome, l.Glyphs[i].Changed = "applied", part.Changed
			}
		}
	}
}

// ended tells how a leaf ended, once that is durable.
func (e *engine) ended(leaf *plan.Leaf, outcome string) {
	e.report.leaf(leaf.Path).told = true
	e.tell(Event{Type: "leaf_ended", Leaf: leaf.Path, Outcome: outcome})
}

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
		if l.told || l.Attempts > 0 || len(l.Failures) > 0 {
			return true
		}
	}
	return false
}
