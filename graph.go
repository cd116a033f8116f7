package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"golem/plan"
)

func (a *app) graphCommand() *cli.Command {
	return &cli.Command{
		Name: "graph", Usage: "draw the scroll's tree with what a plan would do to it", ArgsUsage: "[PATH]",
		Description: "Mermaid reads in Markdown on most forges; dot is for Graphviz.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Usage: "`mermaid` or dot", Value: string(plan.Mermaid), HideDefault: true},
			blindFlag, &cli.BoolFlag{Name: "destroy", Usage: "draw what destroy would do"},
		},
		Action: a.graph,
	}
}

func (a *app) graph(ctx context.Context, c *cli.Command) error {
	format := plan.GraphFormat(c.String("format"))
	if format != plan.Mermaid && format != plan.Dot {
		return &usageError{command: c.FullName(), err: fmt.Errorf("--format is mermaid or dot, not %q", string(format))}
	}
	s, err := open(c)
	if err != nil {
		return err
	}
	g, err := s.goal(ctx, "graph", c.Bool("destroy"))
	if err != nil {
		return err
	}
	p, err := s.plan(ctx, g)
	if err != nil {
		return err
	}
	return p.Graph(a.out, format)
}
