package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/urfave/cli/v3"

	"golem/plan"
	"golem/reconcilers"
	"golem/state"
)

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
		return nil, &usageError{command: c.FullName(), err: errors.New("one id, as golem kept list shows it")}
	}
	id, err := strconv.ParseInt(c.Args().First(), 10, 64)
	if err != nil {
		return nil, &hintedError{fmt.Sprintf("find kept %q: it is not a number", c.Args().First()), keptHint}
	}
	k, err := r.KeptByID(id)
	if errors.Is(err, state.ErrMissing) {
		return nil, &hintedError{fmt.Sprintf("find kept %d: there is none", id), keptHint}
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
	snap, err := r.Snapshot()
	if err != nil {
		return err
	}
	now, err := reconcilers.KeptDiff(s.host, r, k, snap.Applied)
	if err != nil {
		return err
	}
	row := struct {
		plan.KeptRow
		Now  string `json:"now"`
		Diff string `json:"diff"`
	}{plan.KeptRows([]*state.Kept{k})[0], now.Says, now.Diff}
	row.Sensitive = now.Secret
	diff := now.Diff
	if now.Secret {
		diff = fmt.Sprintf("It is sensitive: no line is shown. golem kept show %d prints what is kept.\n", k.ID)
	}
	return a.list(c, "kept", row, func(out *plan.Printer) error {
		return out.Printf("%s, kept %d against now: %s\n%s", plan.Printable(reconcilers.Quote(k.Path)), k.ID, now.Says, diff)
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
