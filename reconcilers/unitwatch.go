package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golem/scrolls"
)

// How long a started service has to stay up before it counts as started, and a stopped
// one down.
const (
	upTime   = 3 * time.Second
	downTime = 1500 * time.Millisecond
)

// A watched is a unit that was started and has to stay up.
type watched struct {
	turn     int // of the batch
	id       string
	restarts int
}

// watch looks at started units until each has stayed up for a while. It says which turn
// of the batch is to blame.
func (w *World) watch(ctx context.Context, all []watched) (int, error) {
	if len(all) == 0 {
		return -1, nil
	}
	for waited := time.Duration(0); ; waited += lookEvery {
		w.forgetUnits()
		var names []string
		for _, x := range all {
			names = append(names, x.id)
		}
		found, err := w.units(ctx, names...)
		if err != nil {
			return all[0].turn, err
		}
		patient := false
		for i := range all {
			u := found[all[i].id]
			if waited == 0 {
				all[i].restarts = u.Restarts
			}
			if why := fell(u, all[i].restarts); why != "" {
				return all[i].turn, w.broken(ctx, "start", u.ID, errors.New(why))
			}
			patient = patient || mayFall(u)
		}
		if !patient || waited >= upTime {
			return -1, nil
		}
		if err := w.Host.Wait(ctx, lookEvery); err != nil {
			return all[0].turn, err
		}
	}
}

// mayFall says whether a unit that is up has a program that may end.
func mayFall(u *unit) bool { return u.kind() == "service" && u.Sub != "exited" }

// fell says in what way a unit is not up; "" for up.
func fell(u *unit, restarts int) string {
	switch {
	case u.Sub == "auto-restart" || u.Restarts > restarts:
		return "it ends again and again, and systemd starts it each time"
	case u.Active == "failed":
		return "it failed"
	case u.Active == "activating":
		return "it does not get ready"
	case !u.running() && u.Unmet:
		return "a condition in its file is not met, so that systemd does not start it"
	case !u.running() && u.Result == "success":
		return "it ended by itself; what is to be running must not end, unless its file says RemainAfterExit=yes"
	case !u.running():
		return "it is " + u.Active
	}
	return ""
}

// staysDown looks for a while whether a stopped unit stays so.
func (w *World) staysDown(ctx context.Context, id string) error {
	for waited := time.Duration(0); ; waited += lookEvery {
		w.forgetUnits()
		u, err := w.unit(ctx, id)
		if err != nil {
			return err
		}
		if u.running() || u.Active == "activating" {
			return fmt.Errorf("stop %s: something started it again%s", id, startedAgainBy(u))
		}
		if waited >= downTime {
			return nil
		}
		if err := w.Host.Wait(ctx, lookEvery); err != nil {
			return err
		}
	}
}

func startedAgainBy(u *unit) string {
	if len(u.TriggeredBy) == 0 {
		return ""
	}
	return ", perhaps " + list(u.TriggeredBy)
}

// A BrokenUnitError tells of a unit that did not do what it was told, with what it last
// said, a line each.
type BrokenUnitError struct {
	Verb, Unit string
	Result     string
	Lines      []string
	Err        error // in words for people
	Cause      error // what the command said, whole; nil where none failed
}

func (e *BrokenUnitError) Error() string {
	text := fmt.Sprintf("%s %s: %s", e.Verb, e.Unit, e.Err)
	if e.Result != "" {
		text += " (" + e.Result + ")"
	}
	if len(e.Lines) > 0 {
		text += "; its last lines:\n  " + strings.Join(e.Lines, "\n  ")
	}
	return text
}

func (e *BrokenUnitError) Unwrap() error {
	if e.Cause != nil {
		return e.Cause
	}
	return e.Err
}

// logLines is how many lines of a unit's log stand in a report.
const logLines = 10

// broken gathers what there is to say about a unit that failed, while it lies there.
func (w *World) broken(ctx context.Context, verb, id string, cause error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s %s: %w", verb, id, cause)
	}
	e := &BrokenUnitError{Verb: verb, Unit: id, Err: cause}
	var failed *CommandError
	if errors.As(cause, &failed) && failed.Said != "" {
		e.Cause = cause
		first, _, _ := strings.Cut(failed.Said, "\n")
		e.Err = errors.New(shorten(strings.TrimSuffix(first, ".")))
		if strings.HasPrefix(first, "Job for ") {
			e.Err = errors.New("it failed") // what follows says how
		}
	}
	w.forgetUnits()
	if u, err := w.unit(ctx, id); err == nil {
		e.Result = resultText(u)
	}
	if name, _, _ := cutLast(id, '.'); w.keepsSecret(scrolls.MakeKey(processKind.Name, name)) {
		e.Lines = []string{"(its log is not shown: what it runs with is sensitive)"}
		return e
	}
	out, err := w.Host.Run(ctx, lookTime, "journalctl", "--unit="+id, fmt.Sprintf("--lines=%d", logLines), "--no-pager", "--output=cat", "--quiet")
	if err != nil {
		e.Lines = []string{"(its log cannot be read: " + err.Error() + ")"}
		return e
	}
	for _, line := range strings.Split(strings.TrimRight(string(out.Stdout), "\n"), "\n") {
		if strings.TrimSpace(line) != "" {
			e.Lines = append(e.Lines, shorten(line))
		}
	}
	return e
}

// keepsSecret says whether a key in force has anything sensitive in it.
func (w *World) keepsSecret(key scrolls.Key) bool {
	g := w.InForce(key)
	return g != nil && secret(g)
}

// resultText is how a unit's main process ended.
func resultText(u *unit) string {
	const exited, killed, dumped = 1, 2, 3 // si_code of a child
	var parts []string
	if u.Result != "" && u.Result != "success" {
		parts = append(parts, "result "+u.Result)
	}
	switch u.ExitCode {
	case exited:
		parts = append(parts, fmt.Sprintf("exit status %d", u.ExitStatus))
	case killed, dumped:
		parts = append(parts, fmt.Sprintf("killed by signal %d", u.ExitStatus))
	}
	return strings.Join(parts, ", ")
}

// Foretell implements Firer: only a unit that will be running by then is told.
func (units) Foretell(w *World, _ *scrolls.Glyph, resource, action string) (*UnitEffect, error) {
	d := w.unitDesk()
	d.mu.Lock()
	defer d.mu.Unlock()
	u := d.seen[resource]
	effect := &UnitEffect{Do: action, Unit: resource}
	if u != nil {
		effect.Unit = u.ID
	}
	will, planned := d.will[resource]
	switch {
	case planned && !will.running:
		return nil, nil
	case planned, u != nil && u.running():
		if u != nil && action == "restart" {
			for _, id := range u.RequiredBy {
				if o := d.seen[id]; o != nil && o.running() && o.kind() == "service" {
					effect.Along = append(effect.Along, o.ID)
				}
			}
		}
		return effect, nil
	case u == nil || !u.known():
		effect.Reason = "if it runs by then"
		return effect, nil
	case u.Active == "failed":
		effect.Do, effect.Reason = "restart", "it failed"
		return effect, nil
	}
	return nil, nil
}

// Fire implements Firer. A failed unit is started anew, since it may have failed over
// what changed; one that is not running is left alone.
func (units) Fire(ctx context.Context, w *World, _ *scrolls.Glyph, resource, action string) error {
	defer w.forget()
	if !w.Host.systemd() {
		return nil
	}
	w.forgetUnits()
	u, err := w.unit(ctx, resource)
	if err == nil {
		u, err = w.settled(ctx, u)
	}
	if err != nil {
		return err
	}
	failed := u.Active == "failed"
	if !u.running() && !failed {
		return nil
	}
	if err := w.rereadUnits(ctx, u); err != nil {
		return err
	}
	if failed {
		if err := w.resetFailed(ctx, u.ID); err != nil {
			return err
		}
		action = "restart"
	}
	if err := w.systemctl(ctx, action, "--", u.ID); err != nil {
		return w.broken(ctx, action, u.ID, err)
	}
	if action == "reload" && !slices.Contains([]string{"service"}, u.kind()) {
		return nil
	}
	_, err = w.watch(ctx, []watched{{id: u.ID}})
	return err
}
