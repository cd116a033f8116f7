package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"golem/plan"
	"golem/state"
)

func (a *app) historyCommand() *cli.Command {
	return &cli.Command{
		Name: "history", Usage: "list the revisions", Flags: []cli.Flag{jsonFlag},
		Action: withoutArgs(func(_ context.Context, c *cli.Command) error {
			return reading(c, func(_ *session, r *state.Reader) error {
				revisions, err := r.Revisions(c.String("name"))
				if err != nil {
					return err
				}
				snap, err := r.Snapshot()
				if err != nil {
					return err
				}
				if err := knownLineage("list revisions", c.String("name"), snap); err != nil {
					return err
				}
				rows := plan.Revisions(revisions, snap.Pending)
				return a.list(c, "revisions", rows, func(out *plan.Printer) error { return plan.RevisionTable(out, rows) })
			})
		}),
	}
}

func (a *app) showCommand() *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show one revision, or a saved plan", ArgsUsage: "[REV | LINEAGE@REV | PLANFILE | REV REV]",
		Description: "A revision is told with how it declares otherwise than the one before it;\n" +
			"the second of two, than the first. Of a sensitive value is only said that it\nchanged.",
		Flags: []cli.Flag{jsonFlag, &cli.StringFlag{Name: "against", Usage: "compare with the revision `REV` of the same lineage; 0 is none"}},
		Action: func(_ context.Context, c *cli.Command) error {
			if c.Args().Len() < 2 && plan.IsSaved(c.Args().First()) {
				return a.showSaved(c)
			}
			id, other, err := shown(c)
			if err != nil {
				return err
			}
			return reading(c, func(_ *session, r *state.Reader) error {
				rev, err := findRevision(r, c.String("name"), id)
				if err != nil {
					return err
				}
				steps, err := r.StepsOf(rev.Run.ID)
				if err != nil {
					return err
				}
				was, err := against(r, rev, other)
				if err != nil {
					return err
				}
				doc := plan.ShowAgainst(rev, steps, was)
				return a.list(c, "revision", doc, func(out *plan.Printer) error { return doc.Text(out) })
			})
		},
	}
}

// shown is the revision that is to be shown, and the one to compare it with: the first of
// two, or what a flag says; "" for the one before it.
func shown(c *cli.Command) (id, other string, err error) {
	args := c.Args().Slice()
	switch {
	case len(args) > 2:
		err = fmt.Errorf("one revision, or two to compare, not %d", len(args))
	case len(args) == 2 && c.IsSet("against"):
		err = errors.New("either two revisions, or --against")
	case c.IsSet("against") && c.String("against") == "":
		err = errors.New("--against says which revision to compare with")
	}
	if err != nil {
		return "", "", &usageError{command: c.FullName(), err: err}
	}
	if len(args) == 2 {
		return args[1], args[0], nil
	}
	return c.Args().First(), c.String("against"), nil
}

// against is the revision that one is compared with: the one before it, or the one that is
// named; nil for none.
func against(r *state.Reader, rev *state.Revision, other string) (*state.Revision, error) {
	number := rev.Number - 1
	if other != "" {
		text := other
		if name, rest, ok := strings.Cut(other, "@"); ok {
			if name != rev.Lineage {
				return nil, fmt.Errorf("compare with %s: it is no revision of %s", other, rev.Lineage)
			}
			text = rest
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("compare with %q: it is not a revision; write a number, or LINEAGE@NUMBER", other)
		}
		number = n
	}
	if number == 0 {
		return nil, nil
	}
	was, err := r.Revision(rev.Lineage, number)
	if errors.Is(err, state.ErrMissing) {
		if other == "" {
			return nil, nil // it was pruned
		}
		return nil, &hintedError{fmt.Sprintf("compare with %s: there is no such revision of %s", other, rev.Lineage), historyHint}
	}
	return was, err
}

// What lists the things that can be named.
const (
	historyHint = "golem history lists the revisions there are"
	keptHint    = "golem kept list shows what there is"
)

// findRevision finds a revision by "4", "web@4" or nothing: the newest one.
func findRevision(r *state.Reader, lineage, id string) (*state.Revision, error) {
	if name, number, ok := strings.Cut(id, "@"); ok {
		lineage, id = name, number
	}
	all, err := r.Revisions(lineage)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, rev := range all {
		names[rev.Lineage] = true
	}
	if len(all) == 0 && lineage != "" {
		snap, err := r.Snapshot()
		if err == nil {
			err = knownLineage("show", lineage, snap)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, errors.New("show: there is no revision yet")
	}
	number := all[len(all)-1].Number
	if id != "" {
		if number, err = strconv.Atoi(id); err != nil {
			return nil, &hintedError{fmt.Sprintf("show: %q is not a revision, nor a plan file", id), "write a number, or LINEAGE@NUMBER; " + historyHint}
		}
	}
	if lineage == "" && len(names) > 1 && id != "" {
		several := slices.Sorted(maps.Keys(names))
		return nil, &hintedError{
			"show: there are several lineages here: " + strings.Join(several, ", "),
			fmt.Sprintf("say which, like %s@%d", several[0], number),
		}
	}
	for _, rev := range all {
		if rev.Number == number && (id != "" || rev == all[len(all)-1]) {
			return r.Revision(rev.Lineage, rev.Number)
		}
	}
	return nil, noRevision(number, all[len(all)-1])
}

// noRevision is the error for a revision that is not there, or not any more.
func noRevision(number int, newest *state.Revision) error {
	if number > 0 && number < newest.Number {
		return &hintedError{fmt.Sprintf("show: revision %d was pruned", number), historyHint}
	}
	return &hintedError{
		fmt.Sprintf("show: there is no revision %d", number),
		fmt.Sprintf("the newest is %s@%d; %s", newest.Lineage, newest.Number, historyHint),
	}
}
