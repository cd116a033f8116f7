package main

import (
	"context"
	"errors"

	"golem/apply"
	"golem/plan"
	"golem/scrolls"
)

// A goal is what a run is to reach.
type goal struct {
	command string
	scroll  *scrolls.Scroll // what was read; nil: none was
	lineage string
	destroy bool
	back    *apply.Back // of a rollback
	// policies are those under which a scroll is destroyed.
	policies map[string]scrolls.Policy
	saved    *plan.Saved // the plan file that it is from; nil: none
	moved    []string    // how that is known not to stand any more
}

// wanted is the scroll to bring the host to; nil is the empty one.
func (g goal) wanted() *scrolls.Scroll {
	if g.destroy {
		return nil
	}
	return g.scroll
}

// goal is the scroll a command acts on, with its lineage. A destroy that is told the
// lineage needs no readable scroll.
func (s *session) goal(ctx context.Context, command string, destroy bool) (goal, error) {
	g := goal{command: command, lineage: s.c.String("name"), destroy: destroy}
	var err error
	if destroy && g.lineage != "" {
		g.policies, err = scrolls.HostPolicy(s.hostPolicy(), s.host.Facts())
		return g, err
	}
	if g.scroll, err = s.load(ctx); err != nil {
		if destroy {
			err = errors.Join(err, unnamed(command))
		}
		return g, err
	}
	g.lineage, g.policies = g.scroll.Name, g.scroll.Policies
	return g, nil
}

// checkLineage refuses a name that is bound elsewhere, and to destroy what was never
// applied, which would only make a journal.
func (s *session) checkLineage(g goal) error {
	snap, err := s.snapshot()
	if err != nil {
		return err
	}
	if err := checkName(g.scroll, snap); err != nil {
		return err
	}
	if (g.destroy || g.back != nil) && snap.Lineages[g.lineage] == nil {
		return neverApplied(g.command, g.lineage, snap)
	}
	return nil
}
