package apply_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"golem/apply"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// A patienceTest is a leaf that fails some times, on a clock that nobody waits for.
type patienceTest struct {
	h      *lawHost
	policy scrolls.Policy
	err    error
	fails  int // how often the change of "/etc/b" fails; -1: for ever
	now    time.Time
	slept  []time.Duration
	events []apply.Event
}

func newPatienceTest(t *testing.T, err error, fails int) *patienceTest {
	p := &patienceTest{
		h:   hostWith(t, map[string]string{"/etc/a": "old a", "/etc/b": "old b"}),
		err: err, fails: fails, policy: scrolls.BuiltinPolicy, now: time.Unix(1_000_000, 0),
	}
	p.policy.Retry.JitterFraction = 0
	return p
}

// run applies two leaves: one whose second file fails, and its sibling.
func (p *patienceTest) run(t *testing.T) *apply.Report {
	t.Helper()
	bad := leafOf("bad", fileGlyph("/etc/a", "new a"), fileGlyph("/etc/b", "new b"), fileGlyph("/etc/c", "new c"))
	bad.Policy = p.policy
	good := leafOf("good", fileGlyph("/etc/good", "good"))
	p.h.arrange = func(h *reconcilers.Host) {
		h.Sleep = func(_ context.Context, d time.Duration) error {
			p.slept = append(p.slept, d)
			p.now = p.now.Add(d)
			return nil
		}
	}
	report, err := p.h.applyAs(context.Background(), apply.Options{
		Scroll: scrollOf(bad, good), Lineage: "run",
		Now:  func() time.Time { return p.now },
		Tell: func(ev apply.Event) { p.events = append(p.events, ev) },
	}, func(op, path string) error {
		if path == "/etc/b" && op == "rename" && p.fails != 0 {
			p.fails--
			return p.err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestAGlyphThatFailsTwiceIsRetriedInPlace(t *testing.T) {
	p := newPatienceTest(t, unix.EBUSY, 2)
	report := p.run(t)
	if report.Outcome != apply.Settled || report.Leaves[0].Attempts != 3 || report.Leaves[1].Attempts != 1 {
		t.Errorf("%s after %d and %d attempts: %v", report.Outcome, report.Leaves[0].Attempts, report.Leaves[1].Attempts, failures(report))
	}
	if want := []time.Duration{200 * time.Millisecond, 400 * time.Millisecond}; !slices.Equal(p.slept, want) {
		t.Errorf("it waited %v, want %v", p.slept, want)
	}
	retries := 0
	for _, ev := range p.events {
		if ev.Type == "retrying" {
			retries++
			if ev.Attempt != retries || ev.Key != "file:/etc/b" || !strings.Contains(ev.Message, "trying again in") {
				t.Errorf("event %+v", ev)
			}
		}
	}
	if retries != 2 {
		t.Errorf("%d retries are told, want 2", retries)
	}
	// A retry captures nothing: what was found is what was there before the first try.
	if _, err := p.h.apply(nil, "run"); err != nil {
		t.Fatal(err)
	}
	if got := p.h.read(t, "/etc/b"); got != "old b" {
		t.Errorf("after destroy /etc/b is %q", got)
	}
}

func TestTriesRunOut(t *testing.T) {
	p := newPatienceTest(t, unix.EBUSY, -1)
	p.policy.Retry.MaxAttempts = 4
	p.policy.Retry.MaxDelay = 300 * time.Millisecond
	report := p.run(t)
	if report.Outcome != "partial" || report.Leaves[0].Outcome != apply.RolledBack || report.Leaves[0].Attempts != 4 {
		t.Errorf("%s, %s after %d attempts", report.Outcome, report.Leaves[0].Outcome, report.Leaves[0].Attempts)
	}
	if want := []time.Duration{200 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond}; !slices.Equal(p.slept, want) {
		t.Errorf("it waited %v, want %v", p.slept, want)
	}
	if a, b := p.h.read(t, "/etc/a"), p.h.read(t, "/etc/b"); a != "old a" || b != "old b" {
		t.Errorf("the leaf is %q and %q", a, b)
	}
	for _, g := range report.Leaves[0].Glyphs {
		want := map[string]state.Outcome{"file:/etc/a": apply.RolledBack, "file:/etc/b": apply.Failed, "file:/etc/c": apply.NotReached}
		if g.Outcome != want[g.Key] || (g.Attempts == 4) != (g.Outcome == apply.Failed) {
			t.Errorf("%s is %s after %d attempts, want %s", g.Key, g.Outcome, g.Attempts, want[g.Key])
		}
	}
	if p.h.read(t, "/etc/good") != "good" {
		t.Error("its sibling did not settle")
	}
}

func TestMaxElapsedCountsFromTheLeafsFirstFailure(t *testing.T) {
	p := newPatienceTest(t, unix.EBUSY, -1)
	p.policy.Retry.MaxAttempts, p.policy.Retry.MaxElapsed = 100, 2*time.Second
	p.run(t)
	var total time.Duration
	for _, d := range p.slept {
		total += d
	}
	if want := 1400 * time.Millisecond; total != want { // 200 + 400 + 800; 1600 more would be too long
		t.Errorf("it waited %v in all (%v), want %v", total, p.slept, want)
	}
}

func TestAnErrorThatARetryCannotMendIsFatalAtOnce(t *testing.T) {
	for _, err := range []error{unix.ENOSPC, unix.EROFS, unix.EACCES} {
		p := newPatienceTest(t, err, -1)
		if report := p.run(t); report.Leaves[0].Attempts != 1 || len(p.slept) > 0 || report.Leaves[0].Outcome != apply.RolledBack {
			t.Errorf("%v: %d attempts, %v slept, %s", err, report.Leaves[0].Attempts, p.slept, report.Leaves[0].Outcome)
		}
	}
}

func TestKeepLeavesWhatIsDoneAndResurfaces(t *testing.T) {
	p := newPatienceTest(t, unix.EACCES, -1)
	p.policy.OnExhaust = "keep"
	for run := range 2 {
		report := p.run(t)
		if report.Outcome != "partial" || report.Leaves[0].Outcome != apply.Kept || len(report.Leaves[0].Failures) == 0 {
			t.Fatalf("run %d: %s, %s %v", run, report.Outcome, report.Leaves[0].Outcome, failures(report))
		}
		if a, b := p.h.read(t, "/etc/a"), p.h.read(t, "/etc/b"); a != "new a" || b != "old b" {
			t.Errorf("run %d: kept are %q and %q", run, a, b)
		}
	}
	p.fails = 0
	report := p.run(t)
	if report.Outcome != apply.Settled || report.Plan.Summary().Unchanged != 2 { // /etc/a and the sibling's
		t.Errorf("mended: %s, %+v", report.Outcome, report.Plan.Summary())
	}
	was := map[string]string{"/etc/a": "old a", "/etc/b": "old b"}
	if _, err := p.h.apply(nil, "run"); err != nil {
		t.Fatal(err)
	}
	for path, want := range was {
		if got := p.h.read(t, path); got != want {
			t.Errorf("after destroy %s is %q", path, got)
		}
	}
}

func (h *lawHost) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(h.root + name)
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

func writeFile(path string) error { return os.WriteFile(path, nil, 0o600) }
