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
)

// checkAsking refuses a run that could not ask: nobody is there to say yes.
func (a *app) checkAsking(c *cli.Command) error {
	if c.Bool("auto-approve") {
		return nil
	}
	if c.Bool("json") {
		return &usageError{command: c.FullName(), err: errors.New("--json cannot ask; it needs --auto-approve")}
	}
	return nil
}

// noTerminal is the error where there is nobody to ask.
func noTerminal() error {
	return &hintedError{
		"not applied: there is no terminal to ask at, and nothing was changed",
		"--auto-approve applies without asking",
	}
}

// checkApproval ends a run that would have to ask where nobody answers: after the plan,
// before it makes a journal, takes a lock or recovers anything.
func (a *app) checkApproval(ctx context.Context, s *session, events *eventWriter, g goal) error {
	if s.c.Bool("auto-approve") || isatty.IsTerminal(a.stdin.Fd()) {
		return nil
	}
	p, err := s.plan(ctx, g)
	if err != nil || p.Empty() {
		return err
	}
	if err := events.plan(p); err != nil {
		return err
	}
	return noTerminal()
}

// approve shows the plan and asks. Only "yes" is a yes.
func (a *app) approve(ctx context.Context, c *cli.Command, p *plan.Plan, events *eventWriter) (bool, error) {
	if err := events.plan(p); err != nil {
		return false, err
	}
	if within := c.Duration("confirm-within"); within > 0 && !c.Bool("json") {
		fmt.Fprintf(a.out, "\nIt is taken back unless golem confirm is called within %s of its end.\n", plan.Lasting(within))
	}
	if c.Bool("auto-approve") {
		return true, nil
	}
	if !isatty.IsTerminal(a.stdin.Fd()) {
		return false, noTerminal()
	}
	fmt.Fprintf(a.out, "\nApply this? Only \"yes\" is a yes: ")
	answer, err := readLine(ctx, a.stdin)
	fmt.Fprintln(a.out)
	events.asked = true
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read the answer: %w", err)
	}
	return strings.TrimSpace(answer) == "yes", nil
}

// readLine reads one line, or until the context ends: a read from a terminal cannot be
// called back, so it is left behind. Of a *bufio.Reader the rest is there for the next.
func readLine(ctx context.Context, r io.Reader) (string, error) {
	type result struct {
		line string
		err  error
	}
	read := make(chan result, 1)
	go func() {
		line, err := bufio.NewReader(r).ReadString('\n')
		read <- result{line, err}
	}()
	select {
	case got := <-read:
		return got.line, got.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
