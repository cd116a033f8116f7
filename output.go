package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v3"
	"golang.org/x/sys/unix"

	"golem/apply"
	"golem/plan"
	"golem/scrolls"
)

// print writes an error to stderr: diagnostics with their snippets, anything else as
// one line, and a hint where the user can act.
func (a *app) print(err error) {
	if all := parts(err); len(all) > 0 {
		for _, one := range all {
			a.print(one)
		}
		return
	}
	var diags *scrolls.Diagnostics
	if errors.As(err, &diags) {
		width := columns(a.err)
		if width == 0 {
			width = 78
		}
		if werr := diags.Write(a.err, uint(width), a.color(a.err)); werr == nil {
			return
		}
	}
	a.say("golem: ", err.Error())
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		a.say("hint: ", hinted.Hint())
	}
}

// say writes a sentence to stderr behind what it is; a terminal has it wrapped between words.
func (a *app) say(what, text string) {
	const indent = "  "
	var lines []string
	for _, line := range strings.Split(what+text, "\n") {
		lines = append(lines, plan.Wrap(plan.Printable(strings.TrimRight(line, " \r")), max(columns(a.err)-len(indent), 0))...)
	}
	fmt.Fprintln(a.err, strings.Join(lines, "\n"+indent))
}

// parts are the errors that one joins and says nothing of its own about.
func parts(err error) []error {
	var touched *apply.TouchedError
	if errors.As(err, &touched) && touched.Error() == err.Error() {
		err = touched.Err
	}
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // what wraps a join has a text of its own
	if !ok {
		return nil
	}
	var texts []string
	for _, one := range joined.Unwrap() {
		texts = append(texts, one.Error())
	}
	if strings.Join(texts, "\n") != err.Error() {
		return nil
	}
	return joined.Unwrap()
}

// color says whether a stream gets colours: only a terminal does, and only if nobody
// asked for none (no-color.org; CLICOLOR_FORCE as in bixense.com/clicolors).
func (a *app) color(f *os.File) bool {
	if a.plain || os.Getenv("NO_COLOR") != "" {
		return false
	}
	if force := os.Getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	return os.Getenv("TERM") != "dumb" && isatty.IsTerminal(f.Fd())
}

// columns is the width of a terminal; 0 for anything else.
func columns(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// size is that of a terminal, or the usual one where it does not say.
func size(f *os.File) (columns, rows int) {
	got, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || got.Col == 0 || got.Row == 0 {
		return 80, 24
	}
	return int(got.Col), int(got.Row)
}

// printer writes text for people to a stream.
func (a *app) printer(f *os.File) *plan.Printer {
	return plan.NewPrinter(f, plan.Style{Color: a.color(f), Width: columns(f)})
}

// list shows a list: as a table, or as JSON under a name.
func (a *app) list(c *cli.Command, name string, rows any, table func(*plan.Printer) error) error {
	if c.Bool("json") {
		return plan.WriteJSON(a.out, map[string]any{"format_version": plan.FormatVersion, name: rows})
	}
	return table(a.printer(a.out))
}
