package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"golem/apply"
	"golem/reconcilers"
	"golem/scrolls"
)

func (a *app) adoptCommand() *cli.Command {
	return &cli.Command{
		Name: "adopt", Usage: "record what is there, and print the scroll that declares it", ArgsUsage: "KIND ID…",
		Description: "The printed scroll changes nothing. What is adopted goes into the lineage\n" +
			"that --name names, and is left as it is if that no longer declares it.\n" +
			"--scan proposes a scroll for what differs from the host's packages, and\n" +
			"records nothing.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "print-only", Usage: "record nothing"},
			&cli.BoolFlag{Name: "scan", Usage: "look through the whole host, and record nothing"},
		},
		Action: a.adopt,
	}
}

// adopt prints the glyphs for what is named, and records them unless that is not wanted.
func (a *app) adopt(ctx context.Context, c *cli.Command) error {
	s, err := open(c)
	if err != nil {
		return err
	}
	if c.Bool("scan") {
		if c.Args().Present() {
			return &usageError{command: c.FullName(), err: errors.New("--scan takes no arguments")}
		}
		return a.scan(ctx, s)
	}
	if c.Args().Len() < 2 {
		return &usageError{command: c.FullName(), err: errors.New("a kind, and at least one thing of it")}
	}
	kind := c.Args().First()
	if _, ok := reconcilers.KindOf(kind); !ok {
		return unknownKind("adopt", kind)
	}
	if !c.Bool("print-only") && c.String("name") == "" {
		return &usageError{command: c.FullName(), err: errors.New("--name says which lineage it goes into; with --print-only nothing is recorded")}
	}
	world := reconcilers.NewWorld(s.host, nil)
	defer world.Close()
	var text strings.Builder
	for _, id := range c.Args().Slice()[1:] {
		adopted, err := reconcilers.Adopt(ctx, world, kind, id)
		if err != nil {
			return err
		}
		text.Write(adopted.Text())
		text.WriteByte('\n')
	}
	found := strings.TrimSuffix(text.String(), "\n")
	if !c.Bool("print-only") {
		if err := s.record(ctx, found); err != nil {
			return err
		}
	}
	_, err = a.out.WriteString(found)
	return err
}

// record puts what would be printed into a lineage.
func (s *session) record(ctx context.Context, text string) error {
	adopted, err := scrolls.LoadText(text, scrolls.Options{Kinds: reconcilers.Kinds(), Checks: reconcilers.Checks, Facts: s.host.Facts(), Name: s.c.String("name")})
	if err != nil {
		return fmt.Errorf("read what would be printed: %w", err)
	}
	journal, err := s.write(ctx)
	if err != nil {
		return err
	}
	err = apply.Adopt(ctx, apply.Options{Journal: journal, Host: s.host, HostName: s.host.Name(), Run: s.whoRuns("adopt", nil)}, adopted)
	return errors.Join(err, journal.Close())
}
