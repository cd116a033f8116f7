package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v3"

	"golem/plan"
	"golem/scrolls"
)

func (a *app) consoleCommand() *cli.Command {
	return &cli.Command{
		Name: "console", Usage: "evaluate expressions with a scroll's variables and locals", ArgsUsage: "[PATH]",
		Description: "Reads expressions from standard input, and prints their values as HCL.\n" +
			"An expression goes on over lines until its brackets are closed; exit, or\n" +
			"the end of the input, ends it.",
		Action: a.console,
	}
}

func (a *app) console(ctx context.Context, c *cli.Command) error {
	s, err := open(c)
	if err != nil {
		return err
	}
	path, o, err := s.source(ctx)
	if err != nil {
		return err
	}
	names, err := scrolls.OpenConsole(path, o)
	if errors.Is(err, scrolls.ErrNoScroll) && !c.Args().Present() {
		names, err = scrolls.OpenConsole("", o) // facts and functions are there without one
	}
	if err != nil {
		return err
	}
	return a.answer(ctx, names)
}

// answer evaluates what is typed, line by line; an expression goes on until its brackets
// are closed. A mistake ends it only where nobody types.
func (a *app) answer(ctx context.Context, names *scrolls.Console) error {
	asks := isatty.IsTerminal(a.stdin.Fd()) && isatty.IsTerminal(a.out.Fd())
	lines := bufio.NewReader(a.stdin)
	out := a.printer(a.out)
	failed := false
	text := ""
	for {
		if prompt := map[bool]string{true: "> ", false: "… "}[text == ""]; asks {
			fmt.Fprintf(a.out, "%s", prompt)
		}
		line, err := readLine(ctx, lines)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read expression: %w", err)
		}
		ended := err != nil
		if word := strings.TrimSpace(line); text == "" && (word == "exit" || word == "quit") {
			line, ended = "", true
		}
		if text += line; scrolls.Statement(text) && (ended || scrolls.Whole(text)) {
			value, err := names.Eval(text)
			if err != nil {
				a.print(err)
				failed = true
			} else if err := out.Printf("%s\n", printableLines(value)); err != nil {
				return err
			}
			text = ""
		} else if !scrolls.Statement(text) {
			text = ""
		}
		if !ended {
			continue
		}
		if asks && err != nil {
			fmt.Fprintln(a.out)
		}
		if !asks && failed {
			return exitCode(exitError)
		}
		return nil
	}
}

// printableLines escapes what a text of several lines could forge.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = plan.Printable(lines[i])
	}
	return strings.Join(lines, "\n")
}
