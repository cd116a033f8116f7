package apply

import (
	"fmt"
	"strings"
	"time"

	"golem/plan"
	"golem/state"
)

// A Pruned tells what was dropped of a journal.
type Pruned struct{ *state.Pruned }

// Prune drops the history of before a moment, but nothing that undoing, or going back to
// what was in force at that moment or later, needs.
func Prune(j *state.Journal, before time.Time) (*Pruned, error) {
	snap, err := j.Snapshot()
	if err == nil {
		err = atRest("prune the journal", snap)
	}
	if err != nil {
		return nil, err
	}
	p, err := j.Prune(before)
	if err != nil {
		return nil, err
	}
	return &Pruned{p}, nil
}

// Sentence tells it to a person.
func (p *Pruned) Sentence() string {
	if p.Revisions+p.Steps+p.Blobs == 0 && p.Before == p.After {
		return "Nothing to drop: all of the history is younger, or needed."
	}
	dropped := []string{plan.Count(p.Revisions, "revision", "revisions"), plan.Count(p.Steps, "step", "steps"), plan.Count(p.Blobs, "file's bytes", "files' bytes")}
	return fmt.Sprintf("Dropped: %s. The journal has %d bytes, of %d before.", strings.Join(dropped, ", "), p.After, p.Before)
}
