package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"
	"golang.org/x/sys/unix"

	"golem/apply"
	"golem/plan"
)

func (a *app) applyCommand() *cli.Command {
	return &cli.Command{
		Name: "apply", Usage: "bring the host to the scroll", ArgsUsage: "[PATH | PLANFILE]",
		Description: "Without a terminal and without --auto-approve it stops and says so.\n" +
			"Exit codes: 0 settled, 1 error before anything was touched, 3 partial: a leaf\n" +
			"was rolled back or a reverse failed, 4 another run holds the journal,\n" +
			"5 the saved plan is stale, 130 interrupted.",
		Flags: []cli.Flag{jsonFlag, quietFlag, approveFlag, blindFlag, confirmFlag, targetFlag, excludeFlag},
		Action: func(ctx context.Context, c *cli.Command) error {
			if plan.IsSaved(c.Args().First()) {
				return a.applySaved(ctx, c)
			}
			return a.enactScroll(ctx, c, "apply")
		},
	}
}

func (a *app) destroyCommand() *cli.Command {
	return &cli.Command{
		Name: "destroy", Usage: "take back everything a scroll did", ArgsUsage: "[PATH]",
		Description: "Reconciles to the empty scroll. With --name it needs no readable scroll.\n" +
			"Exit codes are those of apply.",
		Flags:  []cli.Flag{jsonFlag, quietFlag, approveFlag, blindFlag, confirmFlag, targetFlag, excludeFlag},
		Action: func(ctx context.Context, c *cli.Command) error { return a.enactScroll(ctx, c, "destroy") },
	}
}

// enactScroll is apply and destroy.
func (a *app) enactScroll(ctx context.Context, c *cli.Command, command string) error {
	s, err := open(c)
	if err != nil {
		return err
	}
	g, err := s.goal(ctx, command, command == "destroy")
	if err != nil {
		return err
	}
	return a.enact(ctx, s, g)
}

// enact shows a plan, asks, and enacts it.
func (a *app) enact(ctx context.Context, s *session, g goal) error {
	c := s.c
	if g.saved == nil {
		if err := a.checkAsking(c); err != nil {
			return err
		}
	}
	confirm, err := s.confirming()
	if err != nil {
		return err
	}
	events := a.newEventWriter(c.Bool("quiet"), c.Bool("json"))
	defer events.close()
	if err := s.checkLineage(g); err != nil {
		return err
	}
	if g.saved == nil {
		if err := a.checkApproval(ctx, s, events, g); err != nil {
			return err
		}
	}
	journal, err := s.write(ctx)
	if err != nil {
		return err
	}
	defer journal.Close()
	o := apply.Options{
		Journal: journal, Host: s.host, HostName: s.host.Name(), Scroll: g.wanted(), Policies: g.policies, Lineage: g.lineage, Back: g.back, Confirm: confirm,
		Blind: c.Bool("no-observe"), Destroy: g.destroy, Choice: s.choice(), Unattended: c.Bool("auto-approve"),
		Approve: func(p *plan.Plan) (bool, error) { return a.approve(ctx, c, p, events) },
		Tell:    events.tell, Watch: events.watch, Run: s.whoRuns(g.command, g.scroll),
	}
	if g.saved != nil {
		g.enactSaved(&o, func(p *plan.Plan) error { return events.plan(p) })
	}
	report, err := apply.Run(ctx, o)
	err = a.conclude(c, events, report, errors.Join(err, report.Closed(journal.Close())))
	if err == nil && confirm != nil && report.Plan.Empty() && report.Plan.Pending == nil && !events.quiet && !events.asJSON {
		return a.printer(a.out).Printf("So there is nothing to confirm, either.\n")
	}
	return err
}

// conclude prints how a run ended.
func (a *app) conclude(c *cli.Command, events *eventWriter, report *apply.Report, err error) error {
	if report.Plan == nil {
		return err
	}
	werr := events.report(report)
	if report.Ran() || report.Recovered != nil {
		werr = a.untold(werr)
	}
	if err == nil {
		err = werr
	}
	if err == nil && report.Partial() {
		return exitCode(exitPartial)
	}
	if apply.Interrupted(err) && !errors.As(err, new(*apply.TouchedError)) {
		if !report.Ran() {
			return err
		}
		if !events.quiet {
			fmt.Fprintln(a.err, "golem: interrupted; what was in flight is rolled back")
		}
		return exitCode(exitInterrupted)
	}
	return err
}

// untold is what becomes of an error to tell what was done: it stands, and so does its exit
// code. Where somebody may still read that it could not be told, it is said.
func (a *app) untold(err error) error {
	if err != nil && !errors.Is(err, unix.EPIPE) {
		a.print(fmt.Errorf("print what was done: %w", err))
	}
	return nil
}
