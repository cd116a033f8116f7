package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v3"

	"golem/apply"
	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

var (
	jsonFlag    = &cli.BoolFlag{Name: "json", Usage: "print JSON"}
	blindFlag   = &cli.BoolFlag{Name: "no-observe", Usage: "compare with the journal only; look for no drift"}
	approveFlag = &cli.BoolFlag{Name: "auto-approve", Usage: "do not ask before changing the host"}
	quietFlag   = &cli.BoolFlag{Name: "quiet", Usage: "print nothing when there is nothing to do"}
)

func (a *app) planCommand() *cli.Command {
	return &cli.Command{
		Name: "plan", Usage: "show what apply would do; change nothing", ArgsUsage: "[PATH]",
		Description: "Exit codes: 0 done (with --detailed-exitcode: no changes), 1 error,\n2 changes (only with --detailed-exitcode), 130 interrupted.",
		Flags: []cli.Flag{
			jsonFlag, blindFlag,
			&cli.BoolFlag{Name: "destroy", Usage: "plan what destroy would do"},
			&cli.BoolFlag{Name: "detailed-exitcode", Usage: "exit 2 when there are changes"},
		},
		Action: a.plan,
	}
}

func (a *app) plan(ctx context.Context, c *cli.Command) error {
	s, err := open(c)
	if err != nil {
		return err
	}
	scroll, lineage, err := s.target(c.Bool("destroy"))
	if err != nil {
		return err
	}
	journal, err := s.read()
	if err != nil {
		return err
	}
	defer journal.Close()
	snap, err := journal.Snapshot()
	if err == nil {
		err = checkName(scroll, snap)
	}
	if err != nil {
		return err
	}
	world := reconcilers.NewWorld(s.host, journal)
	defer world.Close()
	wanted := scroll
	if c.Bool("destroy") {
		wanted = nil
	}
	p, err := plan.Make(plan.Input{
		Scroll: wanted, Lineage: lineage, Host: s.host.Name(), Snapshot: snap, World: world,
		Blind: c.Bool("no-observe"), Destroy: c.Bool("destroy"),
	})
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := a.show(c, p); err != nil {
		return err
	}
	if c.Bool("detailed-exitcode") && !p.Empty() {
		return exitCode(exitChanges)
	}
	return nil
}

func (a *app) show(c *cli.Command, p *plan.Plan) error {
	if c.Bool("json") {
		return p.JSON(a.out)
	}
	return p.Text(a.printer(a.out))
}

// target is the scroll a command acts on and its lineage. A destroy that is told the
// lineage needs no readable scroll.
func (s *session) target(destroy bool) (*scrolls.Scroll, string, error) {
	if name := s.c.String("name"); destroy && name != "" {
		return nil, name, nil
	}
	scroll, err := s.load()
	if err != nil {
		if destroy {
			err = errors.Join(err, &unnamedError{})
		}
		return nil, "", err
	}
	return scroll, scroll.Name, nil
}

// An unnamedError says that destroy cannot tell what to destroy.
type unnamedError struct{}

func (*unnamedError) Error() string { return errNoLineage.Error() }
func (*unnamedError) Hint() string  { return "golem destroy --name NAME needs no scroll" }

func (a *app) applyCommand() *cli.Command {
	return &cli.Command{
		Name: "apply", Usage: "bring the host to the scroll", ArgsUsage: "[PATH]",
		Description: "Exit codes: 0 settled, 1 error before anything was touched, 3 partial: a leaf was\n" +
			"rolled back or a reverse failed, 4 another run holds the journal, 130 interrupted.",
		Flags:  []cli.Flag{jsonFlag, quietFlag, approveFlag, blindFlag},
		Action: func(ctx context.Context, c *cli.Command) error { return a.enact(ctx, c, false) },
	}
}

func (a *app) destroyCommand() *cli.Command {
	return &cli.Command{
		Name: "destroy", Usage: "take back everything a scroll did", ArgsUsage: "[PATH]",
		Description: "Reconciles to the empty scroll. With --name it needs no readable scroll.\nExit codes are those of apply.",
		Flags:       []cli.Flag{jsonFlag, quietFlag, approveFlag, blindFlag},
		Action:      func(ctx context.Context, c *cli.Command) error { return a.enact(ctx, c, true) },
	}
}

// enact is apply and destroy.
func (a *app) enact(ctx context.Context, c *cli.Command, destroy bool) error {
	s, err := open(c)
	if err != nil {
		return err
	}
	scroll, lineage, err := s.target(destroy)
	if err != nil {
		return err
	}
	if err := a.checkAsking(c); err != nil {
		return err
	}
	journal, err := s.openJournal(ctx, scroll, lineage, destroy)
	if err != nil || journal == nil {
		return err
	}
	defer journal.Close()
	command, wanted := "apply", scroll
	if destroy {
		command, wanted = "destroy", nil
	}
	quiet, asJSON := c.Bool("quiet"), c.Bool("json")
	events := &eventWriter{a: a, quiet: quiet, asJSON: asJSON}
	report, err := apply.Run(ctx, apply.Options{
		Journal: journal, Host: s.host, HostName: s.host.Name(), Scroll: wanted, Lineage: lineage,
		Blind: c.Bool("no-observe"), Destroy: destroy, Unattended: c.Bool("auto-approve"),
		Approve: func(p *plan.Plan) (bool, error) { return a.approve(ctx, c, p, events) },
		Tell:    events.tell, Run: s.whoRuns(command, scroll),
	})
	return a.conclude(c, events, report, errors.Join(err, journal.Close()))
}

// openJournal opens the journal for writing. A destroy where there is none has
// nothing to do, and makes none.
func (s *session) openJournal(ctx context.Context, scroll *scrolls.Scroll, lineage string, destroy bool) (*state.Journal, error) {
	reader, err := s.read()
	if err != nil {
		return nil, err
	}
	exists := reader.Exists()
	snap, err := reader.Snapshot()
	if err = errors.Join(err, reader.Close()); err != nil {
		return nil, err
	}
	if err := checkName(scroll, snap); err != nil {
		return nil, err
	}
	if destroy && snap.Lineages[lineage] == nil {
		return nil, &unknownLineage{name: lineage, exists: exists}
	}
	return s.write(ctx)
}

// An unknownLineage is a name that the journal has nothing of.
type unknownLineage struct {
	name   string
	exists bool
}

func (e *unknownLineage) Error() string {
	return fmt.Sprintf("destroy: nothing was ever applied under the name %q here", e.name)
}

func (e *unknownLineage) Hint() string { return "golem history lists the names there are" }

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

// errNoTerminal says that there is nobody to ask.
type errNoTerminal struct{}

func (errNoTerminal) Error() string {
	return "not applied: there is no terminal to ask at, and nothing was changed"
}
func (errNoTerminal) Hint() string { return "--auto-approve applies without asking" }

// approve shows the plan and asks. Only "yes" is a yes.
func (a *app) approve(ctx context.Context, c *cli.Command, p *plan.Plan, events *eventWriter) (bool, error) {
	if err := events.plan(p); err != nil {
		return false, err
	}
	if c.Bool("auto-approve") {
		return true, nil
	}
	if !isatty.IsTerminal(a.stdin.Fd()) {
		return false, errNoTerminal{}
	}
	fmt.Fprintf(a.out, "\nApply this? Only \"yes\" is a yes: ")
	answer, err := readLine(ctx, a.stdin)
	fmt.Fprintln(a.out)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read the answer: %w", err)
	}
	return strings.TrimSpace(answer) == "yes", nil
}

// readLine reads one line, or until the context ends: a read from a terminal cannot be
// called back, so it is left behind.
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

// conclude prints how a run ended.
func (a *app) conclude(c *cli.Command, events *eventWriter, report *apply.Report, err error) error {
	if report.Plan == nil {
		return err
	}
	if werr := events.report(report); err == nil {
		err = werr
	}
	if err == nil && report.Partial() {
		return exitCode(exitPartial)
	}
	if apply.Interrupted(err) && !errors.As(err, new(*apply.TouchedError)) {
		if !events.quiet {
			fmt.Fprintln(a.err, "golem: interrupted; what was in flight is rolled back")
		}
		return exitCode(exitInterrupted)
	}
	return err
}

func (a *app) recoverCommand() *cli.Command {
	return &cli.Command{
		Name: "recover", Usage: "settle an interrupted run; apply does it by itself",
		Flags:  []cli.Flag{jsonFlag},
		Action: a.recover,
	}
}

func (a *app) recover(ctx context.Context, c *cli.Command) error {
	s, err := open(c)
	if err != nil {
		return err
	}
	reader, err := s.read()
	if err != nil {
		return err
	}
	snap, err := reader.Snapshot()
	if err = errors.Join(err, reader.Close()); err != nil {
		return err
	}
	if snap.Dead == nil {
		return a.tellRecovered(c, nil)
	}
	journal, err := s.write(ctx)
	if err != nil {
		return err
	}
	defer journal.Close()
	r, err := apply.Recover(ctx, apply.Options{Journal: journal, Host: s.host, Run: s.whoRuns("recover", nil)})
	if err != nil {
		return err
	}
	return a.tellRecovered(c, r)
}

func (a *app) tellRecovered(c *cli.Command, r *apply.Recovered) error {
	if c.Bool("json") {
		return plan.WriteJSON(a.out, map[string]any{"format_version": plan.FormatVersion, "recovered": r})
	}
	if r == nil {
		return a.printer(a.out).Printf("Nothing to recover: no run was interrupted.\n")
	}
	return a.printer(a.out).Printf("%s\n", plan.Printable(r.Sentence()))
}

// An eventWriter tells what happens as it happens: as text, or as JSON, one event a
// line, the last one the report.
type eventWriter struct {
	a      *app
	quiet  bool
	asJSON bool
	seq    int
}

func (w *eventWriter) line(v any) error {
	enc := json.NewEncoder(w.a.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// tell is given to the engine. What cannot be printed any more must not stop a run.
func (w *eventWriter) tell(ev apply.Event) {
	if w.asJSON {
		w.seq = ev.Seq
		_ = w.line(ev)
		return
	}
	if ev.Type == "recovered" {
		_ = w.a.printer(w.a.out).Printf("%s\n\n", plan.Printable(ev.Message))
	}
}

func (w *eventWriter) plan(p *plan.Plan) error {
	if w.asJSON {
		return nil
	}
	return p.Text(w.a.printer(w.a.out))
}

func (w *eventWriter) report(r *apply.Report) error {
	if w.asJSON {
		return w.line(reportLine{Seq: w.seq + 1, Time: time.Now().UTC().Format(time.RFC3339Nano), Report: r})
	}
	if r.Plan.Empty() {
		if w.quiet {
			return nil
		}
		return r.Plan.Text(w.a.printer(w.a.out))
	}
	if !r.Ran() {
		return nil
	}
	out := w.a.printer(w.a.out)
	if err := out.Printf("\n"); err != nil {
		return err
	}
	return r.Text(out)
}

// reportLine is the last event, with the fields that every event has.
type reportLine struct {
	Seq  int    `json:"seq"`
	Time string `json:"time"`
	Leaf string `json:"leaf"`
	Key  string `json:"key"`
	*apply.Report
}
