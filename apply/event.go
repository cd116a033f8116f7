package apply

import (
	"time"

	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// An Event is one thing that happened, as apply --json prints it: one a line.
type Event struct {
	Type    string        `json:"type"`
	Seq     int           `json:"seq"`
	Time    string        `json:"time"`
	Leaf    string        `json:"leaf"`
	Key     string        `json:"key"`
	Op      string        `json:"op,omitempty"`
	Outcome state.Outcome `json:"outcome,omitempty"`
	// Unchanged is of enacted: only the journal took note, nothing on the host was changed.
	Unchanged bool `json:"unchanged,omitempty"`
	// Glyphs is of leaf_started how many the leaf will enact, of enacting how many go
	// together.
	Glyphs  int     `json:"glyphs,omitempty"`
	Attempt int     `json:"attempt,omitempty"` // of retrying: the one that failed, from 1
	Delay   float64 `json:"delay,omitempty"`   // of retrying: seconds until the next one
	Elapsed float64 `json:"elapsed,omitempty"` // of alive: seconds so far
	Message string  `json:"message,omitempty"`
	Cause   string  `json:"cause,omitempty"` // of retrying and failed, in short
}

// tell numbers an event and hands it on. A step that takes long is told from a goroutine
// of its own: one at a time.
func (e *engine) tell(ev Event) {
	e.telling.Lock()
	defer e.telling.Unlock()
	e.pulse.rest()
	if e.o.Tell == nil || e.over {
		return
	}
	e.seq++
	ev.Seq = e.seq
	if e.plan != nil {
		ev.Message, ev.Cause = e.plan.Hush(ev.Message), e.plan.Hush(ev.Cause)
	}
	now := e.o.Now
	if now == nil {
		now = time.Now
	}
	ev.Time = now().UTC().Format(time.RFC3339Nano)
	e.o.Tell(ev)
}

// tellFailed tells what stopped a leaf, or what went wrong afterwards.
func (e *engine) tellFailed(leaf string, err error) {
	cause, _ := diagnose(err)
	e.tell(Event{Type: "failed", Leaf: leaf, Key: string(failedKey(err)), Message: message(err), Cause: cause})
}

// tellEnacting tells what is about to be done.
func (e *engine) tellEnacting(leaf *plan.Leaf, turns []*reconcilers.Turn) {
	ev := Event{Type: "enacting", Leaf: leaf.Path}
	for _, t := range turns {
		if ev.Glyphs += len(t.Step.Glyphs); ev.Key == "" && len(t.Step.Glyphs) > 0 {
			ev.Key, ev.Op = string(t.Step.Glyphs[0].Key), string(t.Step.Glyphs[0].Op)
		}
	}
	e.tell(ev)
}

// enacted notes glyphs whose step is done on the host.
func (e *engine) enacted(leaf *plan.Leaf, turns []*reconcilers.Turn) {
	for _, t := range turns {
		for _, part := range t.Step.Glyphs {
			e.report.mark(leaf.Path, part, Applied)
			e.tell(Event{Type: "enacted", Leaf: leaf.Path, Key: string(part.Key), Op: string(part.Op), Unchanged: !part.Changed})
		}
	}
}

// broke notes how far a batch came that will be taken back: to the turn that failed, or,
// where all of it is one transaction, as a whole.
func (e *engine) broke(leaf *plan.Leaf, turns []*reconcilers.Turn, at int, err error) {
	for i, t := range turns {
		if i > at && turns[0].Joint == nil {
			return
		}
		for _, part := range t.Step.Glyphs {
			outcome := RolledBack
			if i == at && part.Key == culprit(t, err) && !Interrupted(err) {
				outcome = Failed
			}
			e.report.mark(leaf.Path, part, outcome)
		}
	}
}

// mark notes what became of one glyph.
func (r *Report) mark(leaf string, part state.StepGlyph, outcome state.Outcome) {
	if g := r.glyph(leaf, part.Key); g != nil {
		g.Outcome, g.Changed = outcome, part.Changed && outcome == Applied
	}
}

// stuck notes that a step could not be taken back.
func (r *Report) stuck(leaf string, s *state.Step) {
	for _, part := range s.Glyphs {
		if g := r.glyph(leaf, part.Key); g != nil {
			g.Outcome, g.Changed, g.stuck = Failed, true, true
		}
	}
}

// glyph finds what the report says of a glyph of a leaf; nil for nothing. The last wave
// has none of its own: what it removes is some leaf's.
func (r *Report) glyph(leaf string, key scrolls.Key) *GlyphReport {
	if l := r.at[leaf]; l != nil && l.byKey[key] != nil {
		return l.byKey[key]
	}
	if leaf == plan.WaveLeaf {
		return r.removes[key]
	}
	return nil
}

// ended tells how a leaf ended, once that is durable.
func (e *engine) ended(leaf *plan.Leaf, outcome state.Outcome) {
	e.report.leaf(leaf.Path).ended = true
	e.tell(Event{Type: "leaf_ended", Leaf: leaf.Path, Outcome: outcome})
}
