package apply

import (
	"errors"
	"fmt"

	"golem/plan"
	"golem/scrolls"
)

// A Saved is the plan that a run is to enact, as a person approved it. Where it does not
// stand any more, the run ends before it touches anything.
type Saved struct {
	Journal  string // its id
	Revision int
	Prints   []plan.Print
	// Moved tells what is known already not to be as the plan had it.
	Moved []string
}

// checkSaved sees, before anything is settled or refreshed, whether the journal is still
// where the saved plan left it. What has moved since is told with what moved on the host,
// where the journal is in a state to be compared with that.
func (e *engine) checkSaved() error {
	snap, err := e.j.Snapshot()
	if err != nil {
		return err
	}
	s := e.o.Saved
	e.moved = s.Moved
	if snap.Journal != s.Journal {
		e.moved = append(e.moved, "it was made with another journal")
	}
	if revision := snap.Revision(e.o.Lineage); revision != s.Revision {
		e.moved = append(e.moved, fmt.Sprintf("%s is at revision %d, and it was made at %d", e.o.Lineage, revision, s.Revision))
		e.outdated = true
	}
	if snap.Unsettled() {
		return &plan.StaleError{Why: append(e.moved, "a run has died since, or could not take something back: golem recover settles it")}
	}
	if snap.Pending != nil && len(e.moved) > 0 {
		return &plan.StaleError{Why: e.moved}
	}
	return pendingNow(snap)
}

// sameAsSaved compares what the plan rests on now with what the saved one rested on.
// planned is why no plan could be made; nil: one was.
func (e *engine) sameAsSaved(planned error) error {
	if e.o.Saved == nil || Interrupted(planned) {
		return planned
	}
	why := e.moved
	switch wrong, ok := errors.AsType[*scrolls.Diagnostics](planned); {
	case ok: // it could be made once
		for _, one := range wrong.Told() {
			why = append(why, "it cannot be done any more: "+one.Detail)
		}
	case planned != nil && len(why) == 0:
		return planned
	case planned == nil:
		prints, err := e.plan.Prints()
		if err != nil {
			return err
		}
		if e.outdated { // that the journal has something else is told already
			why = append(why, plan.MovedOnHost(e.o.Saved.Prints, prints)...)
		} else {
			why = append(why, plan.Moved(e.o.Saved.Prints, prints)...)
		}
	}
	if len(why) > 0 {
		return &plan.StaleError{Why: why}
	}
	return nil
}
