package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v3"

	"golem/apply"
	"golem/plan"
	"golem/scrolls"
)

// drift is plan --drift: what the scroll and what the host have moved since the revision
// in force. With --name and no scroll there, only the host is looked at.
func (a *app) drift(ctx context.Context, c *cli.Command, s *session) error {
	for _, other := range []string{"destroy", "markdown", "no-observe"} {
		if c.IsSet(other) {
			return &usageError{command: c.FullName(), err: errors.New("--drift does not go with --" + other)}
		}
	}
	g, err := s.goal(ctx, "plan", false)
	if name := c.String("name"); errors.Is(err, scrolls.ErrNoScroll) && name != "" {
		g, err = goal{command: "plan", lineage: name}, nil
	}
	if err != nil {
		return err
	}
	d, err := s.drift(ctx, g)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if c.Bool("json") {
		err = d.JSON(a.out)
	} else {
		err = d.Text(a.printer(a.out))
	}
	if err == nil && c.Bool("detailed-exitcode") && !d.Empty() {
		return exitCode(exitChanges)
	}
	return err
}

// drift plans twice: what is in force, and the scroll.
func (s *session) drift(ctx context.Context, g goal) (*plan.Drift, error) {
	journal, err := s.read()
	if err != nil {
		return nil, err
	}
	snap, err := journal.Snapshot()
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	newest := snap.Revision(g.lineage)
	inForce := goal{command: "plan", lineage: g.lineage, policies: g.policies, destroy: true}
	switch newest {
	case 0:
		if g.scroll == nil {
			err = neverApplied("plan", g.lineage, snap)
		}
	default:
		var t *apply.Target
		if t, err = apply.FindTarget(journal, g.lineage, apply.Back{To: newest}, false); err == nil {
			inForce.scroll, inForce.destroy = t.Scroll, false
		}
	}
	if err = errors.Join(err, journal.Close()); err != nil {
		return nil, err
	}
	host, err := s.plan(ctx, inForce)
	if err != nil {
		return nil, err
	}
	if g.scroll == nil {
		return plan.CompareDrift(host, nil), nil
	}
	wanted, err := s.plan(ctx, g)
	if err != nil {
		return nil, err
	}
	return plan.CompareDrift(host, wanted), nil
}
