package main

import (
	"encoding/json"
	"os"
	"time"

	"github.com/mattn/go-isatty"

	"golem/apply"
	"golem/plan"
)

// An eventWriter tells what happens as it happens: as JSON, one event a line, the last one
// the report; on a terminal as lines that are drawn anew; and anywhere else as a line of
// text for each event. With --quiet it tells nothing but how the run ended.
type eventWriter struct {
	a       *app
	quiet   bool
	asJSON  bool
	seq     int
	asked   bool  // a person was asked, and an empty line follows the answer
	planned bool  // the plan was shown
	spaced  bool  // what happens stands apart from the plan
	logged  bool  // events stand there, a line each
	live    *live // nil: not at a terminal
	// started are the leaves that were told of.
	started map[string]bool
}

func (a *app) newEventWriter(quiet, asJSON bool) *eventWriter {
	w := &eventWriter{a: a, quiet: quiet, asJSON: asJSON, started: map[string]bool{}}
	if !quiet && !asJSON && os.Getenv("TERM") != "dumb" && isatty.IsTerminal(a.out.Fd()) {
		w.live = newLive(a.out, a.printer(a.out), func() (int, int) { return size(a.out) })
	}
	return w
}

// close leaves nothing on the screen but what was printed to stay.
func (w *eventWriter) close() {
	if w.live != nil {
		w.live.clear()
	}
}

func (w *eventWriter) line(v any) error {
	enc := json.NewEncoder(w.a.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// tell is given to the engine. What cannot be printed any more must not stop a run.
func (w *eventWriter) tell(ev apply.Event) {
	switch {
	case w.asJSON:
		w.seq = ev.Seq
		_ = w.line(ev)
	case ev.Type == "recovered", ev.Type == "returned":
		w.close()
		_ = w.a.printer(w.a.out).Printf("%s\n\n", plan.Printable(ev.Message))
	case w.quiet:
	case w.live != nil:
		if w.planned {
			_ = w.space()
		}
		w.live.event(ev)
	default:
		w.log(ev)
	}
}

// alive is given to the engine by commands that tell nothing else as it happens.
func (w *eventWriter) alive(ev apply.Event) {
	if ev.Type == "alive" {
		w.tell(ev)
	}
}

// log writes an event as a line of text, at once.
func (w *eventWriter) log(ev apply.Event) {
	// Of a leaf that had nothing to do, and of the last wave, only a failure is told.
	quiet := ev.Leaf == plan.WaveLeaf && ev.Glyphs == 0
	if ev.Type == "leaf_started" {
		w.started[ev.Leaf] = !quiet
	}
	over := ev.Type == "leaf_ended" && !w.started[ev.Leaf] && ev.Outcome == apply.Settled
	text := eventText(ev)
	if text == "" || over || quiet && ev.Type == "leaf_started" {
		return
	}
	if w.planned { // else there is nothing to stand apart from
		_ = w.space()
		w.logged = true
	}
	_ = w.a.printer(w.a.out).Printf("%s\n", text)
}

// space puts an empty line behind the plan, once.
func (w *eventWriter) space() error {
	if w.spaced || w.asked {
		return nil
	}
	w.spaced = true
	return w.a.printer(w.a.out).Printf("\n")
}

// watch is given to the engine, and called with what the run is at.
func (w *eventWriter) watch(d apply.Doing) {
	if w.live == nil {
		return
	}
	if w.planned { // before anything is drawn: what is drawn is drawn anew in its place
		_ = w.space()
	}
	w.live.doing(d)
}

func (w *eventWriter) plan(p *plan.Plan) error {
	w.close()
	w.planned = true
	if w.asJSON {
		return nil
	}
	return p.Text(w.a.printer(w.a.out))
}

func (w *eventWriter) report(r *apply.Report) error {
	w.close()
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
	err := w.space()
	if w.logged {
		err = out.Printf("\n")
	}
	if err != nil {
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
