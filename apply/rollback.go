package apply

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// Back says which earlier revision a rollback goes to.
type Back struct {
	To int // 0: the settled one before the current one
}

// A Target is what a rollback brings back.
type Target struct {
	Revision int
	Scroll   *scrolls.Scroll // what the revision declares
	// Since are the steps of the lineage after it, oldest first.
	Since []*state.Step
}

// Back is the target as the plan is told it; nil for none.
func (t *Target) Back() *plan.Back {
	if t == nil {
		return nil
	}
	return &plan.Back{Revision: t.Revision, Since: t.Since}
}

// A history is what a rollback reads of the journal.
type history interface {
	Revisions(lineage string) ([]*state.Revision, error)
	Revision(lineage string, number int) (*state.Revision, error)
	StepsOf(run int64) ([]*state.Step, error)
}

// A NoTargetError says that there is no revision to go back to.
type NoTargetError struct{ Lineage, Why, Way string }

func (e *NoTargetError) Error() string { return fmt.Sprintf("roll back %s: %s", e.Lineage, e.Why) }

// Hint says what else there is to do.
func (e *NoTargetError) Hint() string { return e.Way }

// FindTarget finds the revision that a rollback goes to, and what it declares. interrupted
// says that the lineage's last run is still to be settled: that makes a revision before the
// rollback does.
func FindTarget(h history, lineage string, back Back, interrupted bool) (*Target, error) {
	all, err := h.Revisions(lineage)
	if err != nil {
		return nil, err
	}
	to := back.To
	if to == 0 {
		if to, err = before(all, wholeIn(h, lineage), interrupted); err != nil {
			return nil, err
		}
		if to == 0 {
			return nil, &NoTargetError{lineage, "there is no settled revision before the current one", "golem rollback --to REV goes to any of golem history; golem destroy takes back everything"}
		}
	}
	if to < 0 || to > newest(all) {
		return nil, &NoTargetError{lineage, fmt.Sprintf("there is no revision %d", to), "golem history lists the revisions there are"}
	}
	rev, err := h.Revision(lineage, to)
	if errors.Is(err, state.ErrMissing) {
		return nil, &NoTargetError{lineage, fmt.Sprintf("revision %d was pruned", to), "golem history lists the revisions there are"}
	}
	if err != nil {
		return nil, err
	}
	t := &Target{Revision: to}
	if t.Scroll, err = scrollOfRevision(rev); err != nil {
		return nil, err
	}
	for _, later := range all {
		if later.Number <= to {
			continue
		}
		steps, err := h.StepsOf(later.Run.ID)
		if err != nil {
			return nil, err
		}
		t.Since = append(t.Since, steps...)
	}
	return t, nil
}

// A whole says of a revision that goes back whether all of the lineage went, and not only
// what --target and --exclude chose.
type whole func(rev *state.Revision) (bool, error)

// wholeIn looks at what the revision declares: all went back where that is what its target
// declares.
func wholeIn(h history, lineage string) whole {
	return func(rev *state.Revision) (bool, error) {
		is, err := h.Revision(lineage, rev.Number)
		if err != nil {
			return false, err
		}
		was, err := h.Revision(lineage, rev.Run.Target)
		if errors.Is(err, state.ErrMissing) {
			return true, nil // it was pruned: there is nothing before it to go back to
		}
		if err != nil {
			return false, err
		}
		return maps.Equal(declaredIn(is), declaredIn(was)), nil
	}
}

// declaredIn are the glyphs that a revision declares, by key.
func declaredIn(rev *state.Revision) map[scrolls.Key]scrolls.ContentID {
	all := map[scrolls.Key]scrolls.ContentID{}
	for _, d := range rev.Declared {
		for _, g := range d.Glyphs {
			all[g.Key] = reconcilers.CID(g)
		}
	}
	return all
}

// before is the settled revision before the current one; 0 for none. Revisions that go
// back are passed over, with all that they took back: the host is then as their own
// target left it (design: "Rollback is not undeclare"). Where only a part went back, the
// next rollback goes where all would have. all are a lineage's, in order.
func before(all []*state.Revision, whole whole, interrupted bool) (int, error) {
	at := newest(all)
	var err error
	if interrupted {
		at++ // the revision that the interrupted run will be
	} else if at > 0 {
		if last := numbered(all, at); last.Run.Command == state.CommandRollback && last.Outcome != Settled {
			return last.Run.Target, nil // it is not there yet
		}
		if at, err = arrived(all, whole, at); err != nil {
			return 0, err
		}
		for rev := numbered(all, at); rev != nil && rev.Run.GoesBack(); rev = numbered(all, at) {
			if at, err = arrived(all, whole, at-1); err != nil {
				return 0, err
			}
		}
	}
	for at--; at > 0; at-- {
		if at, err = arrived(all, whole, at); err != nil {
			return 0, err
		}
		if rev := numbered(all, at); rev == nil {
			return 0, nil // it was pruned, and so was all before it
		} else if rev.Outcome == Settled {
			return at, nil
		}
	}
	return 0, nil
}

// arrived follows revisions that go back to the one whose state they brought: to one that
// does not go back, or that goes back with a part.
func arrived(all []*state.Revision, whole whole, at int) (int, error) {
	for {
		rev := numbered(all, at)
		if rev == nil || !rev.Run.GoesBack() {
			return at, nil
		}
		if went, err := whole(rev); err != nil || !went {
			return at, err
		}
		at = rev.Run.Target
	}
}

// numbered is the revision of a number, of a lineage's that are left of pruning; nil for
// none.
func numbered(all []*state.Revision, number int) *state.Revision {
	if len(all) == 0 {
		return nil
	}
	if i := number - all[0].Number; i >= 0 && i < len(all) {
		return all[i]
	}
	return nil
}

// newest is the number of the newest revision; 0 for none.
func newest(all []*state.Revision) int {
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1].Number
}

// scrollOfRevision is what a revision declares, as a scroll.
func scrollOfRevision(rev *state.Revision) (*scrolls.Scroll, error) {
	s := &scrolls.Scroll{
		Name: rev.Lineage, Source: fmt.Sprintf("%s@%d", rev.Lineage, rev.Number),
		Policies: map[string]scrolls.Policy{"": scrolls.BuiltinPolicy},
	}
	var unknown []string
	at := map[string]*scrolls.Leaf{}
	for _, d := range rev.Declared {
		leaf := at[d.Leaf]
		if leaf == nil {
			leaf = &scrolls.Leaf{Path: d.Leaf, Policy: scrolls.BuiltinPolicy}
			at[d.Leaf], s.Leaves = leaf, append(s.Leaves, leaf)
		}
		if d.Policy != nil {
			leaf.Policy = *d.Policy
		}
		for _, g := range d.Glyphs {
			if _, ok := reconcilers.KindOf(g.Kind); !ok {
				unknown = append(unknown, string(g.Key))
				continue
			}
			leaf.Glyphs = append(leaf.Glyphs, inLeaf(g, d.Leaf))
		}
		for _, c := range d.Checks {
			leaf.Checks = append(leaf.Checks, inLeaf(c, d.Leaf))
		}
		s.Policies[d.Leaf] = leaf.Policy
	}
	if len(unknown) > 0 {
		return nil, &NoTargetError{
			rev.Lineage, fmt.Sprintf("revision %d declares %s, of a kind that this golem does not know", rev.Number, strings.Join(unknown, ", ")),
			fmt.Sprintf("golem %s made that revision", rev.Run.Version),
		}
	}
	return s, nil
}

func inLeaf(g *scrolls.Glyph, leaf string) *scrolls.Glyph {
	own := *g
	own.Leaf = leaf
	return &own
}

// OnlyLineage is the journal's only lineage, for a rollback that was told none.
func OnlyLineage(snap *state.Snapshot) (string, error) {
	var names []string
	for name, l := range snap.Lineages {
		if l.Revision > 0 || snap.Dead != nil && snap.Dead.Run.Lineage == name {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	switch len(names) {
	case 0:
		return "", errors.New("roll back: nothing was ever applied here")
	case 1:
		return names[0], nil
	}
	return "", &severalError{names}
}

// A severalError says that it is not clear which lineage is meant.
type severalError struct{ names []string }

func (e *severalError) Error() string {
	return fmt.Sprintf("roll back: there are several lineages here: %s", strings.Join(e.names, ", "))
}

// Hint says how to name one.
func (e *severalError) Hint() string {
	return fmt.Sprintf("say which: --name %s, or give the scroll's path", e.names[0])
}
