package main

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"golem/plan"
	"golem/reconcilers"
)

//go:embed docs/kinds/*.md
var kindPages embed.FS

func (a *app) explainCommand() *cli.Command {
	return &cli.Command{
		Name: "explain", Usage: "print a kind's page, or list the kinds", ArgsUsage: "[KIND]",
		Action: a.explain,
	}
}

// explain is golem explain: of one kind, or the list of them.
func (a *app) explain(_ context.Context, c *cli.Command) error {
	switch c.Args().Len() {
	case 0:
		return a.listKinds()
	case 1:
	default:
		return &usageError{command: c.FullName(), err: fmt.Errorf("one kind, not %d", c.Args().Len())}
	}
	name := c.Args().First()
	if _, ok := reconcilers.KindOf(name); !ok {
		return unknownKind("explain", name)
	}
	page, err := kindPages.ReadFile("docs/kinds/" + name + ".md")
	if err != nil {
		return fmt.Errorf("explain %s: %w", name, err)
	}
	text := string(page)
	for strings.HasPrefix(text, "<!--") { // how it was made
		_, text, _ = strings.Cut(text, "-->")
		text = strings.TrimLeft(text, "\n")
	}
	if width := columns(a.out); width > 0 {
		text = pageAt(text, max(width, 40))
	}
	return a.printer(a.out).Printf("%s", text)
}

// listKinds says of each kind what it is, in its first sentence.
func (a *app) listKinds() error {
	width := 0
	for _, kind := range reconcilers.All {
		width = max(width, len(kind.Name))
	}
	out := a.printer(a.out)
	beside := 0 // no limit
	if wide := columns(a.out); wide > 0 {
		beside = max(wide-width-2, 20)
	}
	for _, kind := range reconcilers.All {
		name := kind.Name
		for _, line := range plan.Wrap(gist(kind)+".", beside) {
			if err := out.Printf("%-*s  %s\n", width, name, line); err != nil {
				return err
			}
			name = ""
		}
	}
	return out.Printf("\ngolem explain KIND tells all of one.\n")
}

// gist is the first sentence about a kind, without its stop.
func gist(kind reconcilers.Kind) string {
	first, _, _ := strings.Cut(kind.Doc, ". ")
	return strings.TrimSuffix(strings.ReplaceAll(first, "`", ""), ".")
}
