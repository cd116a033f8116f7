package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"golem/apply"
	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
)

// A timedHost is a host with units on a clock that nobody waits for. Every change and
// every command goes by meets, which may fail it or let time pass.
type timedHost struct {
	*unitHost
	now   time.Time
	slept []time.Duration
	meets func(what string) error
	took  map[string]time.Duration // how long each command might have taken
}

func newTimedHost(t *testing.T) *timedHost {
	h := &timedHost{unitHost: newUnitHost(t), now: time.Unix(1_000_000, 0), meets: func(string) error { return nil }, took: map[string]time.Duration{}}
	h.arrange = func(host *reconcilers.Host) {
		runBySystemd(host, h.Systemd)
		answer := host.Exec
		host.Exec = func(ctx context.Context, c reconcilers.Command) (reconcilers.Output, error) {
			line := strings.Join(c.Argv, " ")
			if c.Changes {
				h.took[line] = c.Timeout
			}
			if err := h.meets(line); err != nil || c.Argv[0] == "probe" {
				return reconcilers.Output{}, err
			}
			return answer(ctx, c)
		}
		host.Sleep = func(_ context.Context, d time.Duration) error {
			h.slept = append(h.slept, d)
			h.now = h.now.Add(d)
			return nil
		}
	}
	return h
}

func (h *timedHost) run(t *testing.T, leaves ...*scrolls.Leaf) *apply.Report {
	t.Helper()
	h.slept = nil
	report, err := h.applyAs(context.Background(), apply.Options{
		Scroll: scrollOf(leaves...), Lineage: "run", Now: func() time.Time { return h.now },
	}, func(op, path string) error {
		if op != "rename" && op != "rmdir" {
			return nil
		}
		return h.meets(op + " " + path)
	})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// failing lets what a text names fail some times; -1: for ever.
func (h *timedHost) failing(what string, times int, err error) {
	h.meets = func(line string) error {
		if times != 0 && strings.Contains(line, what) {
			times--
			return err
		}
		return nil
	}
}

// steady is a policy without chance.
func steadyPolicy(change func(*scrolls.Policy)) scrolls.Policy {
	p := scrolls.BuiltinPolicy
	p.Retry = scrolls.Retry{MaxAttempts: 6, BaseDelay: 100 * time.Millisecond, BackoffMultiplier: 3, MaxDelay: time.Second, MaxElapsed: time.Hour}
	if change != nil {
		change(&p)
	}
	return p
}

func leafUnder(p scrolls.Policy, leaf *scrolls.Leaf) *scrolls.Leaf {
	leaf.Policy = p
	return leaf
}

// toldToFail is a program that says no.
func toldToFail(program string) error {
	return &reconcilers.CommandError{Argv: []string{program}, Code: 1, Said: "told to fail", Err: errors.New("exit status 1")}
}

// watched is a leaf of a file, a unit that is told of its changes, and a check.
func watchedLeaf(policy scrolls.Policy, content string) *scrolls.Leaf {
	leaf := leafUnder(policy, leafOf("watched", fileGlyph("/etc/f", content), service("web.service", "reload_on", []any{"file:/etc/f"})))
	leaf.Checks = []*scrolls.Glyph{commandCheck("probe")}
	return leaf
}

// whatFails are the three things that a leaf may fail at.
var whatFails = map[string]error{
	"rename /etc/f": unix.EBUSY, "reload -- web.service": toldToFail("systemctl"), "probe": toldToFail("probe"),
}

func TestDelaysGrowUpToTheLongest(t *testing.T) {
	for what, err := range whatFails {
		t.Run(what, func(t *testing.T) {
			h := newTimedHost(t)
			h.ctl("start", "web.service")
			h.failing(what, -1, err)
			r := h.run(t, watchedLeaf(steadyPolicy(nil), "new")).Leaves[0]
			want := []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, 900 * time.Millisecond, time.Second, time.Second}
			waits := slices.DeleteFunc(h.slept, func(d time.Duration) bool { return d == 250*time.Millisecond }) // those that look whether a unit stays up
			// The way back fires the trigger again, as patiently.
			if len(waits) < 5 || !slices.Equal(waits[:5], want) || r.Attempts != 6 || r.Outcome != apply.RolledBack {
				t.Errorf("%s after %d attempts with waits %v, want 6 with %v", r.Outcome, r.Attempts, waits, want)
			}
		})
	}
}

// The longest delay is the longest, whatever scroll the first is written in.
func TestTheFirstDelayIsNoLongerThanTheLongest(t *testing.T) {
	h := newTimedHost(t)
	h.failing("rename /etc/f", -1, unix.EBUSY)
	h.run(t, leafUnder(steadyPolicy(func(p *scrolls.Policy) { p.Retry.BaseDelay, p.Retry.MaxDelay = time.Minute, time.Second }), leafOf("a", fileGlyph("/etc/f", "x"))))
	if len(h.slept) == 0 || slices.Max(h.slept) != time.Second {
		t.Errorf("it waits %v", h.slept)
	}
}

func TestOneFailureLessThanTheTriesSettles(t *testing.T) {
	for what, err := range whatFails {
		for tries := 1; tries <= 3; tries++ {
			for fails := range 4 {
				h := newTimedHost(t)
				h.ctl("start", "web.service")
				h.failing(what, fails, err)
				r := h.run(t, watchedLeaf(steadyPolicy(func(p *scrolls.Policy) { p.Retry.MaxAttempts = tries }), "new")).Leaves[0]
				want := apply.Settled
				if fails >= tries {
					want = apply.RolledBack
				}
				if n := min(fails+1, tries); r.Outcome != want || r.Attempts != n {
					t.Errorf("%s fails %d times, max_attempts %d: %s after %d attempts, want %s after %d", what, fails, tries, r.Outcome, r.Attempts, want, n)
				}
			}
		}
	}
}

func TestJitterStaysInItsBounds(t *testing.T) {
	h := newTimedHost(t)
	h.failing("/etc/f", -1, unix.EBUSY)
	h.run(t, leafUnder(steadyPolicy(func(p *scrolls.Policy) {
		p.Retry.MaxAttempts, p.Retry.BaseDelay, p.Retry.BackoffMultiplier, p.Retry.JitterFraction = 300, time.Second, 1, 0.5
	}), leafOf("a", fileGlyph("/etc/f", "new"))))
	if len(h.slept) != 299 {
		t.Fatalf("it waited %d times", len(h.slept))
	}
	least, most := slices.Min(h.slept), slices.Max(h.slept)
	if least < 500*time.Millisecond || most > 1500*time.Millisecond || least > 700*time.Millisecond || most < 1300*time.Millisecond {
		t.Errorf("around 1s by up to a half it waited %s to %s", least, most)
	}
}

// Three files share a batch: each has tries of its own.
func TestEachGlyphHasTriesOfItsOwn(t *testing.T) {
	h := newTimedHost(t)
	left := map[string]int{"rename /etc/a": 2, "rename /etc/b": 2, "rename /etc/c": 2}
	h.meets = func(what string) error {
		if left[what] > 0 {
			left[what]--
			return unix.EBUSY
		}
		return nil
	}
	r := h.run(t, leafUnder(steadyPolicy(func(p *scrolls.Policy) { p.Retry.MaxAttempts = 3 }),
		leafOf("abc", fileGlyph("/etc/a", "new"), fileGlyph("/etc/b", "new"), fileGlyph("/etc/c", "new")))).Leaves[0]
	waits := []time.Duration{100 * time.Millisecond, 300 * time.Millisecond}
	if want := slices.Concat(waits, waits, waits); r.Outcome != apply.Settled || r.Attempts != 3 || !slices.Equal(h.slept, want) {
		t.Errorf("%s after %d attempts, waiting %v: %+v", r.Outcome, r.Attempts, h.slept, r.Failures)
	}
}

// The time is up a while after a leaf's first failure, whatever of it fails then; a
// sibling has all of its own.
func TestTheTimeOfALeafIsItsOwn(t *testing.T) {
	h := newTimedHost(t)
	fails := map[string]int{"rename /etc/a1": 1, "rename /etc/a2": 1, "rename /etc/b": 3}
	h.meets = func(what string) error {
		if strings.Contains(what, "start -- plain.service") {
			h.now = h.now.Add(3 * time.Minute)
		}
		if fails[what] > 0 {
			fails[what]--
			return unix.EBUSY
		}
		return nil
	}
	policy := steadyPolicy(func(p *scrolls.Policy) { p.Retry.MaxElapsed = 2 * time.Minute })
	report := h.run(t,
		leafUnder(policy, leafOf("a", fileGlyph("/etc/a1", "x"), service("plain.service", "state", "running"), fileGlyph("/etc/a2", "x"))),
		leafUnder(policy, leafOf("b", fileGlyph("/etc/b", "x"))))
	a, b := report.Leaves[0], report.Leaves[1]
	if a.Outcome != apply.RolledBack || a.Failures[0].Key != "file:/etc/a2" || a.Attempts != 2 {
		t.Errorf("three minutes after its first failure, of two: %s after %d attempts %+v", a.Outcome, a.Attempts, a.Failures)
	}
	if b.Outcome != apply.Settled || b.Attempts != 4 {
		t.Errorf("its sibling is %s after %d attempts", b.Outcome, b.Attempts)
	}
}

// The same three minutes before the first failure spend nothing.
func TestTimeBeforeTheFirstFailureDoesNotCount(t *testing.T) {
	h := newTimedHost(t)
	fails := 3
	h.meets = func(what string) error {
		if strings.Contains(what, "start -- plain.service") {
			h.now = h.now.Add(3 * time.Minute)
		}
		if what == "rename /etc/a" && fails > 0 {
			fails--
			return unix.EBUSY
		}
		return nil
	}
	policy := steadyPolicy(func(p *scrolls.Policy) { p.Retry.MaxElapsed = 2 * time.Minute })
	r := h.run(t, leafUnder(policy, leafOf("a", service("plain.service", "state", "running"), fileGlyph("/etc/a", "x")))).Leaves[0]
	if r.Outcome != apply.Settled || r.Attempts != 4 {
		t.Errorf("%s after %d attempts", r.Outcome, r.Attempts)
	}
}

func TestATriggerThatCannotBeMendedIsFatalAtOnce(t *testing.T) {
	h := newTimedHost(t)
	h.ctl("start", "web.service")
	h.failing("reload -- web.service", 1, fmt.Errorf("run systemctl: %w", unix.EACCES))
	r := h.run(t, watchedLeaf(steadyPolicy(nil), "new")).Leaves[0]
	if r.Outcome != apply.RolledBack || r.Attempts != 1 || r.Failures[0].Key != "service:web.service" {
		t.Errorf("%s after %d attempts: %+v", r.Outcome, r.Attempts, r.Failures)
	}
	if h.Called("reload", "web.service") != 1 {
		t.Error("the trigger was not fired again over the file that was put back")
	}
}

// A trigger that a later leaf makes due fires at the end of the run, under the policy of
// its own leaf.
func TestALateTriggerIsUnderItsOwnLeafsPolicy(t *testing.T) {
	h := newTimedHost(t)
	h.ctl("start", "web.service")
	h.failing("reload -- web.service", -1, toldToFail("systemctl"))
	own := steadyPolicy(func(p *scrolls.Policy) { p.Retry.MaxAttempts, p.Timeout = 2, 90*time.Second })
	other := steadyPolicy(func(p *scrolls.Policy) { p.Timeout = 5 * time.Minute })
	report := h.run(t,
		leafUnder(own, leafOf("web", service("web.service", "reload_on", []any{"file:/etc/late"}))),
		leafUnder(other, leafOf("late", fileGlyph("/etc/late", "x"))))
	web, late := report.Leaves[0], report.Leaves[1]
	if web.Outcome != apply.Kept || web.Attempts != 2 || late.Outcome != apply.Settled {
		t.Errorf("%s after %d attempts; the later leaf is %s", web.Outcome, web.Attempts, late.Outcome)
	}
	if took := h.took["systemctl --no-ask-password reload -- web.service"]; took != 90*time.Second {
		t.Errorf("it might have taken %s", took)
	}
	h.meets = func(string) error { return nil }
	if report := h.run(t,
		leafUnder(own, leafOf("web", service("web.service", "reload_on", []any{"file:/etc/late"}))),
		leafUnder(other, leafOf("late", fileGlyph("/etc/late", "x")))); report.Outcome != apply.Settled || h.Called("reload", "web.service") != 1 {
		t.Errorf("the next run is %s and reloads %d times", report.Outcome, h.Called("reload", "web.service"))
	}
}

// What a kept leaf left due is the next run's, not the end of this one's.
func TestAKeptLeafsTriggerWaitsForTheNextRun(t *testing.T) {
	h := newTimedHost(t)
	h.ctl("start", "web.service")
	h.failing("/etc/g", 1, unix.ENOSPC)
	leaf := func() *scrolls.Leaf {
		return leafUnder(steadyPolicy(func(p *scrolls.Policy) { p.OnExhaust = "keep" }),
			leafOf("web", fileGlyph("/etc/f", "x"), service("web.service", "state", "running", "reload_on", []any{"file:/etc/f"}), fileGlyph("/etc/g", "x")))
	}
	if r := h.run(t, leaf()).Leaves[0]; r.Outcome != apply.Kept || h.Called("reload", "web.service") != 0 {
		t.Errorf("%s, and %d reloads", r.Outcome, h.Called("reload", "web.service"))
	}
	if r := h.run(t, leaf()).Leaves[0]; r.Outcome != apply.Settled || h.Called("reload", "web.service") != 1 {
		t.Errorf("then %s, and %d reloads", r.Outcome, h.Called("reload", "web.service"))
	}
}

// The last wave is nobody's leaf: the root's policy holds for it, and without a scroll
// that of the host.
func TestTheLastWaveIsUnderTheRootsPolicy(t *testing.T) {
	for _, destroy := range []bool{false, true} {
		h := newTimedHost(t)
		h.run(t, leafUnder(steadyPolicy(nil), leafOf("a", fileGlyph("/made/f", "x"))), leafUnder(steadyPolicy(nil), leafOf("b", fileGlyph("/etc/b", "x"))))
		h.failing("rmdir /made", -1, unix.EBUSY)
		root := steadyPolicy(func(p *scrolls.Policy) { p.Retry.MaxAttempts = 2 })
		o := apply.Options{Lineage: "run", Now: func() time.Time { return h.now }, Policies: map[string]scrolls.Policy{"": root}}
		if !destroy {
			o.Scroll = scrollOf(leafUnder(steadyPolicy(nil), leafOf("b", fileGlyph("/etc/b", "x"))))
			o.Scroll.Policies[""] = root
		}
		report, err := h.applyAs(context.Background(), o, func(op, path string) error { return h.meets(op + " " + path) })
		if err != nil || report.Outcome != "partial" {
			t.Fatalf("%v, %s", err, report.Outcome)
		}
		for _, leaf := range report.Leaves {
			if leaf.Leaf == plan.WaveLeaf && leaf.Attempts != 2 {
				t.Errorf("destroy %v: %d attempts, want 2", destroy, leaf.Attempts)
			}
		}
	}
}
