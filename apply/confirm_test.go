package apply_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"golem/apply"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// confirmed applies a scroll that is taken back unless it is confirmed.
func (h *unitHost) unconfirmed(s *scrolls.Scroll, fault func(op, path string) error) (*apply.Report, error) {
	return h.applyAs(context.Background(), h.unconfirmedOptions(s), fault)
}

func (h *unitHost) unconfirmedOptions(s *scrolls.Scroll) apply.Options {
	program := filepath.Join(h.dir, "golem")
	if err := os.WriteFile(program, []byte("golem"), 0o755); err != nil {
		h.t.Fatal(err)
	}
	return apply.Options{
		Scroll: s, Lineage: "run", Confirm: &apply.Confirm{Within: time.Hour, Program: program, Args: []string{"return"}},
		Run: state.Run{Command: "apply", Digest: describe(s)},
	}
}

// on opens the host and its journal for something that is no run of a scroll.
func (h *unitHost) on(fault func(op, path string) error, does func(o apply.Options) error) error {
	host, err := reconcilers.OpenHost(h.root)
	if err != nil {
		return err
	}
	defer host.Close()
	h.arrange(host)
	so := state.Options{Root: h.root, LockTimeout: 10 * time.Second}
	if fault != nil {
		host.Fault = fault
		so.Fault = func(op string) error { return fault("journal "+op, "") }
	}
	journal, err := state.Open(filepath.Join(h.dir, "journal", "planroom.db"), so)
	if err != nil {
		return err
	}
	return errors.Join(does(apply.Options{Journal: journal, Host: host}), journal.Close())
}

func (h *unitHost) takenBack(fault func(op, path string) error) (r *apply.Returned, err error) {
	err = h.on(fault, func(o apply.Options) error {
		r, err = apply.Return(context.Background(), o, false)
		return err
	})
	return r, err
}

func (h *unitHost) confirm(fault func(op, path string) error) error {
	return h.on(fault, func(o apply.Options) error {
		_, err := apply.ConfirmRun(context.Background(), o)
		return err
	})
}

// armed lists what stands ready to take a run back.
func (h *unitHost) armed() []string {
	var all []string
	for _, pattern := range []string{"root/etc/systemd/system/*golem-return-*", "root/etc/systemd/system/*/*golem-return-*", "journal/*.golem*"} {
		found, err := filepath.Glob(filepath.Join(h.dir, pattern))
		if err != nil {
			h.t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

func TestReturnGoesBackByTheStepsInverses(t *testing.T) {
	h := newUnitHost(t)
	h.ctl("start", "web.service")
	h.declare(service("filter.service", "state", "running"))
	was := h.Print()
	s := scrollOf(leafOf("units", service("filter.service", "state", "running"), service("web", "state", "stopped"), service("plain.service", "state", "running", "masked", false)))
	r, err := h.unconfirmed(s, nil)
	if err != nil || r.Partial() || r.Pending == nil || r.Pending.Revision != 2 {
		t.Fatalf("%v %+v %+v", err, failures(r), r.Pending)
	}
	if len(h.armed()) != 4 {
		t.Errorf("what stands ready is %q", h.armed())
	}
	h.is("web.service", "inactive")
	back, err := h.takenBack(nil)
	if err != nil || back == nil || back.Revision != 2 || back.As != 3 {
		t.Fatalf("%+v %v", back, err)
	}
	h.same("taken back", was) // the unit that the run stopped runs again
	if len(h.armed()) != 0 {
		t.Errorf("afterwards there still is %q", h.armed())
	}
	if back, err := h.takenBack(nil); back != nil || err != nil {
		t.Errorf("a second time: %+v %v", back, err)
	}

	// The same scroll is refused unattended, until somebody says yes or arms it again.
	o := h.unconfirmedOptions(s)
	o.Confirm, o.Unattended = nil, true
	var returned *apply.ReturnedError
	if _, err := h.applyAs(context.Background(), o, nil); !errors.As(err, &returned) {
		t.Errorf("unattended: %v", err)
	}
	h.same("refused", was)
	o.Unattended = false
	if r, err := h.applyAs(context.Background(), o, nil); err != nil || r.Partial() {
		t.Errorf("with a yes: %v", err)
	}
	o.Unattended = true
	if r, err := h.applyAs(context.Background(), o, nil); err != nil || !r.Plan.Empty() {
		t.Errorf("unattended after the yes: %v", err)
	}
}

func TestPendingRefusesEveryOtherChange(t *testing.T) {
	h := newUnitHost(t)
	s := scrollOf(leafOf("units", service("plain.service", "state", "running")))
	if _, err := h.unconfirmed(s, nil); err != nil {
		t.Fatal(err)
	}
	was := h.Print()
	var waits *apply.PendingError
	if r, err := h.apply(s, "run"); err != nil || !r.Plan.Empty() {
		t.Errorf("a run that changes nothing: %v", err)
	}
	other := scrollOf(leafOf("units", service("web.service", "state", "running")))
	for name, run := range map[string]func() error{
		"apply":        func() error { _, err := h.apply(other, "run"); return err },
		"a lineage":    func() error { _, err := h.apply(other, "other"); return err },
		"destroy":      func() error { _, err := h.apply(nil, "run"); return err },
		"armed, too":   func() error { _, err := h.unconfirmed(other, nil); return err },
		"state forget": func() error { return h.forget("service:plain.service") },
	} {
		if err := run(); !errors.As(err, &waits) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h.same("refused", was)
	if err := h.confirm(nil); err != nil {
		t.Fatal(err)
	}
	if len(h.armed()) != 0 {
		t.Errorf("confirmed, there still is %q", h.armed())
	}
	if err := h.confirm(nil); !errors.Is(err, apply.ErrNothingPending) {
		t.Errorf("a second confirmation: %v", err)
	}
	if r, err := h.apply(other, "run"); err != nil || r.Partial() {
		t.Errorf("after the confirmation: %v", err)
	}
}

func (h *unitHost) forget(key scrolls.Key) error {
	return h.on(nil, func(o apply.Options) error {
		_, err := apply.Forget(context.Background(), o, key, false)
		return err
	})
}

// The wait counts from the run's end, on a clock that nobody sets.
func TestWaitCountsFromTheRunsEnd(t *testing.T) {
	h := newUnitHost(t)
	var up time.Duration
	arrange := h.arrange
	h.arrange = func(host *reconcilers.Host) {
		arrange(host)
		host.Clock = func() time.Duration { return up }
		host.Sleep = func(_ context.Context, d time.Duration) error { up += d; return nil }
	}
	if _, err := h.unconfirmed(scrollOf(leafOf("units", service("plain.service", "enabled", false, "state", "running"))), func(string, string) error {
		up += time.Second // every change takes its time
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	end := up
	err := h.on(nil, func(o apply.Options) error {
		if err := o.Journal.Close(); err != nil {
			return err
		}
		j, err := apply.Wait(context.Background(), o.Host, func() (*state.Journal, error) {
			return state.Open(filepath.Join(h.dir, "journal", "planroom.db"), state.Options{Root: h.root, LockTimeout: 10 * time.Second})
		})
		return errors.Join(err, j.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
	if waited := up - end; waited > time.Hour || waited < time.Hour-time.Minute {
		t.Errorf("it is due %s after the run's end", waited)
	}
}

// TestLawReturn: whatever an unconfirmed run did, taking it back leaves the host as the
// run found it, units that it stopped running, and the keys in force those before it.
func TestLawReturn(t *testing.T) {
	unitLaw(t, func(t *rapid.T) {
		h := lawUnitHost(t, drawFound(t))
		first := drawUnitScroll(t)
		if !h.run(t, first, map[string]bool{}) {
			t.Skip("refused")
		}
		was := h.Print()
		second := drawUnitScroll(t)
		t.Logf("unconfirmed %s", describe(second))
		r, err := h.unconfirmed(second, nil)
		var wrong *scrolls.Diagnostics
		if errors.As(err, &wrong) {
			t.Skip("refused")
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Plan.Empty() || r.Outcome == apply.RolledBack {
			if len(h.armed()) != 0 {
				t.Fatalf("nothing stands of it, but %q does", h.armed())
			}
			return
		}
		back, err := h.takenBack(nil)
		if err != nil || back == nil {
			t.Fatalf("take back: %+v %v", back, err)
		}
		sameBut(t, was, h.Print(), nil)
		h.inForce(t, first, "run")
		if len(h.armed()) != 0 {
			t.Fatalf("afterwards there still is %q", h.armed())
		}
		h.check(t)
	})
}

// TestLawReturnOfPaths is the same over files, lines, links and directories, to the last
// byte and time.
func TestLawReturnOfPaths(t *testing.T) {
	lawChecks(t)
	rapid.Check(t, func(t *rapid.T) {
		h := newUnitHost(t)
		if err := drawTree(t).build(h.root); err != nil {
			t.Fatal(err)
		}
		first, second := drawScroll(t, "law", everything), drawScroll(t, "law", everything)
		h.lawHost.run(t, first, "run")
		was := h.fingerprint(t, true)
		t.Logf("unconfirmed %s", describe(second))
		r, err := h.unconfirmed(second, nil)
		var wrong *scrolls.Diagnostics
		if errors.As(err, &wrong) || err == nil && r.Plan.Empty() {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.takenBack(nil); err != nil {
			t.Fatal(err)
		}
		if diff := compare(was, h.fingerprint(t, true)); diff != "" {
			t.Fatalf("the run shows after it was taken back:\n%s", diff)
		}
		h.check(t)
	})
}

// TestUnconfirmedRunCrashesAnywhere: golem dies at any change of an unconfirmed run, of
// its confirmation, or of its return. As soon as the host is touched everything stands
// ready to take it back; the next call comes to the same end; and nothing stays behind.
func TestUnconfirmedRunCrashesAnywhere(t *testing.T) {
	t.Parallel()
	scroll := scrollOf(leafOf("one", service("web", "state", "stopped"), fileGlyph("/etc/a", "new")), leafOf("two", service("plain.service", "state", "running", "masked", false)))
	for _, act := range []string{"apply", "confirm", "return"} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				h := newUnitHost(t)
				h.write(t, "/etc/a", "old")
				h.ctl("start", "web.service")
				was := h.everything(t)
				died := &dying{at: n}
				var err error
				if act == "apply" {
					_, err = h.unconfirmed(scroll, died.fault)
				} else if _, err = h.unconfirmed(scroll, nil); err == nil {
					applied := h.everything(t)
					if act == "confirm" {
						err = h.confirm(died.fault)
						was = applied
					} else {
						_, err = h.takenBack(died.fault)
					}
				}
				if died.calls < n {
					if err != nil || n < 5 {
						t.Fatalf("%d calls: %v", died.calls, err)
					}
					return
				}
				if act == "apply" && !slices.Equal(h.everything(t), was) && len(h.armed()) != 4 {
					t.Fatalf("dead at %s: the host is touched, and %q stands ready", died.where, h.armed())
				}
				if act == "confirm" {
					if err := h.confirm(nil); err != nil && !errors.Is(err, apply.ErrNothingPending) {
						t.Fatalf("dead at %s: confirm: %v", died.where, err)
					}
				}
				if _, err := h.takenBack(nil); err != nil {
					t.Fatalf("dead at %s: take back: %v", died.where, err)
				}
				if now := h.everything(t); !slices.Equal(now, was) {
					t.Fatalf("dead at %s: the host is\n%s\nand was\n%s", died.where, strings.Join(now, "\n"), strings.Join(was, "\n"))
				}
				if len(h.armed()) != 0 {
					t.Fatalf("dead at %s: there still is %q", died.where, h.armed())
				}
				h.check(t)
			}
		})
	}
}

// everything is a host's files and units, but for what takes a run back.
func (h *unitHost) everything(t tester) []string {
	var all []string
	for name, is := range h.fingerprint(t, false) {
		if !strings.Contains(name, "golem-return-") && !strings.HasSuffix(name, "multi-user.target.wants") {
			all = append(all, name+" "+is)
		}
	}
	for _, line := range strings.Split(h.Print(), "\n") {
		if !strings.Contains(line, "golem-return-") && !strings.HasSuffix(line, "multi-user.target.wants") {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return all
}

// A dying golem goes no further than one of its changes: from there on every one fails.
type dying struct {
	at, calls int
	where     string
}

var errDead = errors.New("dead")

func (d *dying) fault(op, path string) error {
	d.calls++
	if d.calls == d.at {
		d.where = op + " " + path
	}
	if d.calls >= d.at {
		return errDead
	}
	return nil
}

// An overdue run is taken back by the next one, whose scroll is another: it is the first
// one's that must not come back by itself.
func TestTheScrollThatTakesAnOverdueRunBackIsNotRefused(t *testing.T) {
	h := newUnitHost(t)
	var up time.Duration
	arrange := h.arrange
	h.arrange = func(host *reconcilers.Host) {
		arrange(host)
		host.Clock = func() time.Duration { return up }
	}
	if _, err := h.unconfirmed(scrollOf(leafOf("units", service("plain.service", "state", "running"))), nil); err != nil {
		t.Fatal(err)
	}
	was := h.armed()
	up = 2 * time.Hour
	o := h.unconfirmedOptions(scrollOf(leafOf("units", service("web.service", "state", "running"))))
	o.Confirm, o.Unattended = nil, true
	if r, err := h.applyAs(context.Background(), o, nil); err != nil || r.Partial() {
		t.Fatalf("the next scroll: %v", err)
	}
	if len(was) != 4 || len(h.armed()) != 0 {
		t.Errorf("what stood ready is %q, and then %q", was, h.armed())
	}
	h.is("plain.service", "inactive")
	h.is("web.service", "active")
}
