package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"golem/apply"
	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// reading opens the journal for reading and gives it to fn.
func reading(c *cli.Command, fn func(*session, *state.Reader) error) error {
	s, err := open(c)
	if err != nil {
		return err
	}
	r, err := s.read()
	if err != nil {
		return err
	}
	return errors.Join(fn(s, r), r.Close())
}

// list shows a list: as a table, or as JSON under a name.
func (a *app) list(c *cli.Command, name string, rows any, table func(*plan.Printer) error) error {
	if c.Bool("json") {
		return plan.WriteJSON(a.out, map[string]any{"format_version": plan.FormatVersion, name: rows})
	}
	return table(a.printer(a.out))
}

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
		return nil, &missingError{fmt.Sprintf("compare with %s: there is no such revision of %s", other, rev.Lineage), historyHint}
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
	if lineage == "" && len(names) > 1 && id != "" {
		return nil, errors.New("show: there are several lineages here; say which, like web@4")
	}
	number := all[len(all)-1].Number
	if id != "" {
		if number, err = strconv.Atoi(id); err != nil {
			return nil, &missingError{fmt.Sprintf("show: %q is not a revision, nor a plan file", id), "write a number, or LINEAGE@NUMBER; " + historyHint}
		}
	}
	for _, rev := range all {
		if rev.Number == number && (id != "" || rev == all[len(all)-1]) {
			return r.Revision(rev.Lineage, rev.Number)
		}
	}
	newest := all[len(all)-1]
	if number > 0 && number < newest.Number {
		return nil, &missingError{fmt.Sprintf("show: revision %d was pruned", number), historyHint}
	}
	return nil, &missingError{
		fmt.Sprintf("show: there is no revision %d", number),
		fmt.Sprintf("the newest is %s@%d; %s", newest.Lineage, newest.Number, historyHint),
	}
}

func (a *app) stateCommand() *cli.Command {
	return &cli.Command{
		Name: "state", Usage: "look into the journal, and arrange it",
		Commands: append([]*cli.Command{
			{Name: "list", Usage: "list the keys in force", Flags: []cli.Flag{jsonFlag}, Action: withoutArgs(a.stateList)},
			{Name: "show", Usage: "show what the journal holds of a key", ArgsUsage: "KEY", Flags: []cli.Flag{jsonFlag}, Action: a.stateShow},
			{
				Name: "forget", Usage: "drop a key from the journal and leave the host as it is", ArgsUsage: "KEY", Action: a.stateForget,
				Description: "What an earlier run could not take back of it is given up, too.",
				Flags:       []cli.Flag{&cli.BoolFlag{Name: "found", Usage: "forget only what was there before it"}},
			},
			{Name: "check", Usage: "verify the journal", Flags: []cli.Flag{jsonFlag}, Action: withoutArgs(a.stateCheck)},
		}, a.arranging()...),
		Action: onlySubcommands,
	}
}

// onlySubcommands is what a command does that has subcommands alone: it lists them.
func onlySubcommands(_ context.Context, c *cli.Command) error {
	if c.Args().Present() {
		return unknownCommand(c, c.Args().First())
	}
	return cli.ShowSubcommandHelp(c)
}

func (a *app) stateList(_ context.Context, c *cli.Command) error {
	return reading(c, func(_ *session, r *state.Reader) error {
		snap, err := r.Snapshot()
		if err != nil {
			return err
		}
		if err := knownLineage("list keys", c.String("name"), snap); err != nil {
			return err
		}
		rows := plan.Keys(snap, c.String("name"))
		return a.list(c, "keys", rows, func(out *plan.Printer) error { return plan.KeyTable(out, rows) })
	})
}

func (a *app) stateShow(_ context.Context, c *cli.Command) error {
	if c.Args().Len() != 1 {
		return &usageError{command: c.FullName(), err: errors.New("one key")}
	}
	return reading(c, func(_ *session, r *state.Reader) error {
		snap, err := r.Snapshot()
		if err != nil {
			return err
		}
		key := scrolls.Key(c.Args().First())
		if _, ok := snap.InForce(key); !ok {
			return unknownKey("show", key, snap)
		}
		doc, err := plan.ShowKey(snap, key)
		if err != nil {
			return err
		}
		return a.list(c, "key", doc, func(out *plan.Printer) error { return doc.Text(out) })
	})
}

func (a *app) stateForget(ctx context.Context, c *cli.Command) error {
	if c.Args().Len() != 1 {
		return &usageError{command: c.FullName(), err: errors.New("one key")}
	}
	key := scrolls.Key(c.Args().First())
	s, journal, err := checked(ctx, c, func(_ *session, snap *state.Snapshot) error {
		if _, ok := snap.InForce(key); !ok && (c.Bool("found") || len(apply.OwedOf(snap, key)) == 0) {
			return unknownKey("forget", key, snap)
		}
		return nil
	})
	if err != nil {
		return err
	}
	rev, err := apply.Forget(ctx, apply.Options{Journal: journal, Host: s.host, Run: s.whoRuns("state forget", nil)}, key, c.Bool("found"))
	if err = errors.Join(err, journal.Close()); err != nil {
		return err
	}
	what := string(key)
	if c.Bool("found") {
		what = "what was there before " + what
	}
	return a.printer(a.out).Printf("Forgotten: %s. The host is as it was; revision %d of %s says so.\n",
		plan.Printable(what), rev.Number, plan.Printable(rev.Lineage))
}

func (a *app) stateCheck(_ context.Context, c *cli.Command) error {
	return reading(c, func(s *session, r *state.Reader) error {
		if !r.Exists() {
			return fmt.Errorf("check journal %s: there is none", s.journal)
		}
		findings, err := r.Check()
		if err != nil {
			return err
		}
		rows := plan.Findings(findings)
		err = a.list(c, "findings", rows, func(out *plan.Printer) error { return plan.FindingTable(out, s.journal, rows) })
		for _, f := range findings {
			if f.Level == state.Damage && err == nil {
				return exitCode(exitError)
			}
		}
		return err
	})
}

func (a *app) keptCommand() *cli.Command {
	return &cli.Command{
		Name: "kept", Usage: "what golem displaced, and how to get it back",
		Commands: []*cli.Command{
			{Name: "list", Usage: "list what is kept", Flags: []cli.Flag{jsonFlag}, Action: withoutArgs(a.keptList)},
			{
				Name: "show", Usage: "print one kept file's bytes", ArgsUsage: "ID", Action: a.keptShow,
				Description: "Of what is or was sensitive, --diff shows no line; without it golem prints\n" +
					"the bytes all the same: whoever may read the journal may read them.",
				Flags: []cli.Flag{jsonFlag, &cli.BoolFlag{Name: "diff", Usage: "compare with what is at its path now"}},
			},
			{
				Name: "restore", Usage: "write a kept file back", ArgsUsage: "ID", Action: a.keptRestore,
				Flags: []cli.Flag{&cli.StringFlag{Name: "to", Usage: "write to `PATH` and not to where it was"}},
			},
		},
		Action: onlySubcommands,
	}
}

func (a *app) keptList(_ context.Context, c *cli.Command) error {
	return reading(c, func(_ *session, r *state.Reader) error {
		kept, err := r.KeptList()
		if err != nil {
			return err
		}
		rows := plan.KeptRows(kept)
		return a.list(c, "kept", rows, func(out *plan.Printer) error { return plan.KeptTable(out, rows) })
	})
}

// keptByID finds what a command's only argument names.
func keptByID(c *cli.Command, r *state.Reader) (*state.Kept, error) {
	if c.Args().Len() != 1 {
		return nil, &usageError{command: c.FullName(), err: errOneID}
	}
	id, err := strconv.ParseInt(c.Args().First(), 10, 64)
	if err != nil {
		return nil, &missingError{fmt.Sprintf("find kept %q: it is not a number", c.Args().First()), keptHint}
	}
	k, err := r.KeptByID(id)
	if errors.Is(err, state.ErrMissing) {
		return nil, &missingError{fmt.Sprintf("find kept %d: there is none", id), keptHint}
	}
	return k, err
}

func (a *app) keptShow(_ context.Context, c *cli.Command) error {
	return reading(c, func(s *session, r *state.Reader) error {
		k, err := keptByID(c, r)
		if err != nil {
			return err
		}
		if c.Bool("diff") {
			return a.keptDiff(c, s, r, k)
		}
		if c.Bool("json") {
			return a.list(c, "kept", plan.KeptRows([]*state.Kept{k})[0], nil)
		}
		if k.Blob == "" {
			rows := plan.KeptRows([]*state.Kept{k})
			return plan.KeptTable(a.printer(a.out), rows)
		}
		src, _, err := r.OpenBlob(k.Blob)
		if err != nil {
			return err
		}
		_, err = io.Copy(a.out, src)
		return errors.Join(err, src.Close())
	})
}

// keptDiff compares what is kept with what is at its path now.
func (a *app) keptDiff(c *cli.Command, s *session, r *state.Reader, k *state.Kept) error {
	says, diff, err := reconcilers.KeptDiff(s.host, r, k)
	if err != nil {
		return err
	}
	row := struct {
		plan.KeptRow
		Now  string `json:"now"`
		Diff string `json:"diff"`
	}{plan.KeptRows([]*state.Kept{k})[0], says, diff}
	if row.Sensitive {
		diff = fmt.Sprintf("It is sensitive: no line is shown. golem kept show %d prints what is kept.\n", k.ID)
	}
	return a.list(c, "kept", row, func(out *plan.Printer) error {
		return out.Printf("%s, kept %d against now: %s\n%s", plan.Printable(reconcilers.Quote(k.Path)), k.ID, says, diff)
	})
}

func (a *app) keptRestore(_ context.Context, c *cli.Command) error {
	return reading(c, func(s *session, r *state.Reader) error {
		k, err := keptByID(c, r)
		if err != nil {
			return err
		}
		to := c.String("to")
		if to == "" {
			to = k.Path
		} else if !filepath.IsAbs(to) && s.host.Live() {
			cwd, err := os.Getwd()
			if err != nil {
				return fmt.Errorf("restore kept %d: %w", k.ID, err)
			}
			to = filepath.Join(cwd, to)
		}
		to = filepath.Clean("/" + to)
		if err := reconcilers.RestoreKept(s.host, r, k, to); err != nil {
			return err
		}
		return a.printer(a.out).Printf("Restored kept %d to %s.\n", k.ID, plan.Printable(reconcilers.Quote(to)))
	})
}
