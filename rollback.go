package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"golem/apply"
)

func (a *app) rollbackCommand() *cli.Command {
	return &cli.Command{
		Name: "rollback", Usage: "bring back what an earlier revision declared", ArgsUsage: "[PATH]",
		Description: "Reconciles to what an earlier revision declared, with a plan like any other.\n" +
			"Without --to it is the settled revision before the current one; rollbacks\n" +
			"and what they took back are passed over. The lineage is that of PATH, of\n" +
			"--name, or the journal's only one. The scroll's files stay as they are: the\n" +
			"next apply of them goes forward again. With --target and --exclude only a\n" +
			"part goes back.\n" +
			"Exit codes are those of apply.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "to", Usage: "go back to `REV`, as golem history has it: 4, or web@4"},
			jsonFlag, quietFlag, approveFlag, blindFlag, confirmFlag, targetFlag, excludeFlag,
		},
		Action: a.rollback,
	}
}

func (a *app) rollback(ctx context.Context, c *cli.Command) error {
	s, err := open(c)
	if err != nil {
		return err
	}
	g, err := s.backGoal(ctx)
	if err != nil {
		return err
	}
	return a.enact(ctx, s, g)
}

// backGoal is where a rollback goes, and of which lineage.
func (s *session) backGoal(ctx context.Context) (goal, error) {
	g := goal{command: "rollback", lineage: s.c.String("name"), back: &apply.Back{}}
	to := s.c.String("to")
	if name, rev, ok := strings.Cut(to, "@"); ok {
		if g.lineage != "" && g.lineage != name {
			return g, &usageError{command: s.c.FullName(), err: fmt.Errorf("--to %s is no revision of %s", to, g.lineage)}
		}
		g.lineage, to = name, rev
	}
	if s.c.IsSet("to") {
		n, err := strconv.Atoi(to)
		if err != nil || n < 1 {
			return g, &usageError{command: s.c.FullName(), err: fmt.Errorf("--to %q is not a revision: write a number, or LINEAGE@NUMBER", s.c.String("to"))}
		}
		g.back.To = n
	}
	var err error
	switch {
	case g.lineage != "" && s.c.Args().Present():
		err = &usageError{command: s.c.FullName(), err: errors.New("the lineage is named twice: by its name, and by a scroll's path")}
	case g.lineage != "":
	case s.c.Args().Present():
		g.lineage, err = s.nameOfScroll(ctx)
	default:
		g.lineage, err = s.onlyLineage()
	}
	return g, err
}

// nameOfScroll is the lineage of the scroll that the command names.
func (s *session) nameOfScroll(ctx context.Context) (string, error) {
	scroll, err := s.load(ctx)
	if err != nil {
		return "", errors.Join(err, unnamed("rollback"))
	}
	return scroll.Name, nil
}

// onlyLineage is the journal's only one.
func (s *session) onlyLineage() (string, error) {
	snap, err := s.snapshot()
	if err != nil {
		return "", err
	}
	return apply.OnlyLineage(snap)
}
