package apply

import (
	"fmt"
	"strings"

	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// An UnsettledError says that the journal cannot be arranged anew yet.
type UnsettledError struct{ What string }

func (e *UnsettledError) Error() string {
	return e.What + ": an earlier run is to be settled first"
}

// Hint says how.
func (*UnsettledError) Hint() string { return "golem recover settles it" }

// A NoLineageError says that there is no lineage of a name.
type NoLineageError struct{ What, Name string }

func (e *NoLineageError) Error() string {
	return fmt.Sprintf("%s: there is no lineage %q here", e.What, e.Name)
}

// Hint says where the names are.
func (*NoLineageError) Hint() string { return "golem history lists the names there are" }

// atRest refuses while a run is to be settled or to be confirmed: either refers to lineages
// and keys as they are.
func atRest(what string, snap *state.Snapshot) error {
	if snap.Unsettled() {
		return &UnsettledError{what}
	}
	return pendingNow(snap)
}

// CheckRename says why a lineage cannot be renamed; nil: it can.
func CheckRename(snap *state.Snapshot, old, name string) error {
	what := fmt.Sprintf("rename %q to %q", old, name)
	switch {
	case snap.Lineages[old] == nil:
		return &NoLineageError{what, old}
	case scrolls.CheckName(name) != nil:
		return fmt.Errorf("%s: %w", what, scrolls.CheckName(name))
	case snap.Lineages[name] != nil:
		return fmt.Errorf("%s: there is a lineage of that name already", what)
	}
	return atRest(what, snap)
}

// Rename gives a lineage another name, throughout its history. Nothing else changes.
func Rename(j *state.Journal, old, name string) error {
	snap, err := j.Snapshot()
	if err == nil {
		err = CheckRename(snap, old, name)
	}
	if err != nil {
		return err
	}
	return j.Do(func(tx *state.Tx) error { return tx.RenameLineage(old, name) })
}

// CheckMove says why a key cannot go to a lineage; nil: it can. The lineage need not be
// there yet.
func CheckMove(snap *state.Snapshot, key scrolls.Key, to string) error {
	what := fmt.Sprintf("move %s to %q", key, to)
	a, ok := snap.InForce(key)
	switch {
	case !ok:
		return &UnknownKeyError{"move", key}
	case scrolls.CheckName(to) != nil:
		return fmt.Errorf("%s: %w", what, scrolls.CheckName(to))
	case a.Lineage == to:
		return fmt.Errorf("%s: it is there already", what)
	}
	if err := together(what, snap, a, to); err != nil {
		return err
	}
	return atRest(what, snap)
}

// together refuses to part a whole file from the edits on it: they are one lineage's.
func together(what string, snap *state.Snapshot, a state.Applied, to string) error {
	record := snap.Records[reconcilers.RecordKey(a.Sort, a.Resource)]
	if record == nil || a.Sort != reconcilers.PathSort {
		return nil
	}
	based := false
	var others []string
	for _, l := range record.Layers {
		kind, ok := reconcilers.KindOf(l.Glyph.Kind)
		based = based || ok && kind.IsBase()
		if l.Key != a.Key && l.Lineage != to {
			others = append(others, string(l.Key))
		}
	}
	if !based || len(others) == 0 {
		return nil
	}
	return fmt.Errorf("%s: what is edited on a file is of the file's own lineage, and %s would stay behind; golem state forget them first, or undeclare them",
		what, strings.Join(others, ", "))
}

// A Moved tells where a key went.
type Moved struct{ From, To *state.Revision }

// Move gives a key that is in force to another lineage, with what it made due. The host
// stays as it is. Both lineages get a revision that says what each declares from then on.
func Move(o Options, key scrolls.Key, to string) (*Moved, error) {
	snap, err := o.Journal.Snapshot()
	if err == nil {
		err = CheckMove(snap, key, to)
	}
	if err != nil {
		return nil, err
	}
	a, _ := snap.InForce(key)
	m := &Moved{}
	var before [2]rules
	for i, name := range []string{a.Lineage, to} {
		if before[i], err = rulesBefore(o.Journal, name, snap.Revision(name)); err != nil {
			return nil, err
		}
	}
	err = o.Journal.Do(func(tx *state.Tx) error {
		if err := moveKey(tx, snap, a, to); err != nil {
			return err
		}
		var err error
		if m.From, err = arrange(tx, o.Run, a.Lineage, a.Leaf, before[0]); err == nil {
			m.To, err = arrange(tx, o.Run, to, a.Leaf, before[1])
		}
		return err
	})
	return m, err
}

// moveKey moves a key with its layer, and what it has due.
func moveKey(tx *state.Tx, snap *state.Snapshot, a state.Applied, to string) error {
	if err := tx.MoveKey(a.Key, a.Lineage, to, a.Leaf); err != nil {
		return err
	}
	for _, d := range snap.Due {
		if d.Lineage != a.Lineage || !strings.HasPrefix(d.Name, string(a.Key)+" ") {
			continue
		}
		if err := tx.ClearDue(d); err != nil {
			return err
		}
		d.Lineage = to
		if err := tx.SetDue(d); err != nil {
			return err
		}
	}
	return nil
}

// arrange commits a revision of what is in force in a lineage, of a run that did nothing
// else.
func arrange(tx *state.Tx, run state.Run, lineage, leaf string, before rules) (*state.Revision, error) {
	run.ID, run.Lineage = 0, lineage
	if err := tx.Begin(&run); err != nil {
		return nil, err
	}
	outcome := state.LeafOutcome{Leaf: leaf, Outcome: Settled}
	if err := tx.LeafEnd(run.ID, outcome); err != nil {
		return nil, err
	}
	rev := &state.Revision{Lineage: lineage, Run: run, Outcome: Settled, Leaves: []state.LeafOutcome{outcome}}
	return rev, commitInForce(tx, rev, before)
}
