package apply

import (
	"fmt"

	"golem/plan"
)

// A Saved is the plan that a run is to enact, as a person approved it. Where it does not
// stand any more, the run ends before it touches anything.
type Saved struct {
	Journal  string // its id
	Revision int
	Prints   []plan.Print
}

// checkSaved sees, before anything is settled or refreshed, whether the journal is still
// where the saved plan left it.
func (e *engine) checkSaved() error {
	snap, err := e.j.Snapshot()
	if err != nil {
		return err
	}
	var why []string
	if snap.Journal != e.o.Saved.Journal {
		why = append(why, "it was made with another journal")
	}
	if revision := snap.Revision(e.o.Lineage); revision != e.o.Saved.Revision {
		why = append(why, fmt.Sprintf("%s is at revision %d, and it was made at %d", e.o.Lineage, revision, e.o.Saved.Revision))
	}
	if snap.Unsettled() {
		why = append(why, "a run has died since, or could not take something back: golem recover settles it")
	}
	if len(why) > 0 {
		return &plan.StaleError{Why: why}
	}
	return pendingNow(snap)
}

// sameAsSaved compares what the plan rests on now with what the saved one rested on.
func (e *engine) sameAsSaved() error {
	if e.o.Saved == nil {
		return nil
	}
	prints, err := e.plan.Prints()
	if err != nil {
		return err
	}
	if why := plan.Moved(e.o.Saved.Prints, prints); len(why) > 0 {
		return &plan.StaleError{Why: why}
	}
	return nil
}
