package apply

import (
	"fmt"

	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
)

// A UnitReport is what became of one systemd unit. One whose leaf was rolled back moved
// all the same, there and back.
type UnitReport struct {
	Unit string `json:"unit"`
	Key  string `json:"key"`
	Do   string `json:"do"` // stop, restart, start, reload, restore, forget
	// TakenBack says that its leaf was rolled back, or that its step failed.
	TakenBack bool   `json:"taken_back"`
	Text      string `json:"text"`
}

// unitsDone lists the units whose glyph was applied and those that a trigger told, and
// then those that were moved there and back.
func (r *Report) unitsDone() []UnitReport {
	list := []UnitReport{}
	for _, u := range r.Plan.EffectsOf(r.unitStands) {
		list = append(list, UnitReport{Unit: u.Unit, Key: string(u.Key), Do: u.Do, Text: unitText(u)})
	}
	how := map[scrolls.Key]string{}
	back := r.Plan.EffectsOf(func(leaf string, u reconcilers.UnitEffect, fired bool) bool {
		way := r.wayBack(leaf, u, fired)
		if way != "" {
			how[u.Key] = way
		}
		return way != ""
	})
	for _, u := range back {
		list = append(list, UnitReport{Unit: u.Unit, Key: string(u.Key), Do: u.Do, TakenBack: true, Text: how[u.Key]})
	}
	return list
}

// unitStands says whether an effect of the plan came about and holds.
func (r *Report) unitStands(leaf string, u reconcilers.UnitEffect, fired bool) bool {
	l := r.at[leaf]
	switch {
	case l == nil:
		return false
	case fired:
		return l.Outcome != RolledBack && l.fired[u.Key] > 0
	case leaf == plan.WaveLeaf:
		return l.Outcome == Settled
	}
	g := l.byKey[u.Key]
	return g != nil && g.Outcome == Applied
}

// wayBack tells of a unit that moved in vain; "" for one that did not move.
func (r *Report) wayBack(leaf string, u reconcilers.UnitEffect, fired bool) string {
	l := r.at[leaf]
	if l == nil || u.Do == "forget" {
		return ""
	}
	if fired {
		return l.firedInVain(u)
	}
	g := l.byKey[u.Key]
	if g == nil {
		return ""
	}
	switch {
	case g.stuck:
		return u.Do + ": its step could not be taken back; the next run tries again"
	case g.Outcome == Failed:
		return u.Do + ": its step failed; it is as it was before this run"
	case g.Outcome == RolledBack:
		return movedBack[u.Do] + ": " + leaf + " was rolled back"
	}
	return ""
}

// movedBack tells what was done to a unit and taken back.
var movedBack = map[string]string{
	"stop": "stopped, and started again", "start": "started, and stopped again",
	"restart": "restarted, and taken back", "reload": "reloaded, and taken back", "restore": "restored, and taken back",
}

// firedInVain tells of a trigger of a leaf that was rolled back: what runs was made to read
// the new files, the old ones, or both.
func (l *LeafReport) firedInVain(u reconcilers.UnitEffect) string {
	first, again := l.fired[u.Key]-l.again[u.Key], l.again[u.Key]
	switch {
	case l.Outcome != RolledBack || first+again == 0:
		return ""
	case first == 0:
		return fmt.Sprintf("%s after %s was rolled back, to read what was put back", unitDone[u.Do], l.Leaf)
	case again == 0:
		return fmt.Sprintf("%s; then %s was rolled back", unitDone[u.Do], l.Leaf)
	}
	return fmt.Sprintf("%s, and again after %s was rolled back", unitDone[u.Do], l.Leaf)
}

// unitDone are the verbs of units, done.
var unitDone = map[string]string{
	"stop": "stopped", "restart": "restarted", "start": "started", "reload": "reloaded", "restore": "restored", "forget": "forgotten",
}

// unitText tells what became of one unit.
func unitText(u reconcilers.UnitEffect) string {
	if u.Done != "" {
		return u.Done
	}
	return unitDone[u.Do] + ": " + u.Reason
}
