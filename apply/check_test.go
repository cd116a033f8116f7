package apply_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golem/apply"
	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
)

func commandCheck(words ...string) *scrolls.Glyph {
	var run []any
	for _, word := range words {
		run = append(run, word)
	}
	return &scrolls.Glyph{Kind: "command", Key: scrolls.MakeKey("command", words...), Attrs: scrolls.Attrs{"run": run}}
}

// A checked is a host with one leaf of one file and one check.
type checked struct {
	h      *lawHost
	policy scrolls.Policy
	events []apply.Event
	told   func(apply.Event) // called with each as it comes
}

func newChecked(t *testing.T) *checked {
	c := &checked{h: hostWith(t, map[string]string{"/etc/a": "old"}), policy: scrolls.BuiltinPolicy}
	c.policy.Retry.MaxAttempts = 3
	return c
}

func (c *checked) run(t *testing.T, ctx context.Context, content string, check *scrolls.Glyph) (*apply.Report, error) {
	t.Helper()
	c.events = nil
	leaf := leafOf("a", fileGlyph("/etc/a", content))
	leaf.Policy, leaf.Checks = c.policy, []*scrolls.Glyph{check}
	c.h.arrange = func(h *reconcilers.Host) {
		h.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	}
	return c.h.applyAs(ctx, apply.Options{
		Scroll: scrollOf(leaf), Lineage: "run",
		Tell: func(ev apply.Event) {
			c.events = append(c.events, ev)
			if c.told != nil {
				c.told(ev)
			}
		},
	}, nil)
}

func (c *checked) must(t *testing.T, content string, check *scrolls.Glyph) *apply.Report {
	t.Helper()
	report, err := c.run(t, context.Background(), content, check)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestACheckThatFailsIsTheLeafsFailure(t *testing.T) {
	c := newChecked(t)
	report := c.must(t, "new", commandCheck("false"))
	if report.Outcome != apply.RolledBack || report.Leaves[0].Attempts != 3 {
		t.Errorf("%s after %d attempts: %v", report.Outcome, report.Leaves[0].Attempts, failures(report))
	}
	if got := c.h.read(t, "/etc/a"); got != "old" {
		t.Errorf("/etc/a is %q", got)
	}
	if due := c.h.snapshot(t).Due; len(due) > 0 {
		t.Errorf("due after a rollback: %+v", due)
	}
	if said := fmt.Sprint(failures(report)); !strings.Contains(said, "check command: ") {
		t.Errorf("it says %q", said)
	}
}

func TestAKeptLeafsCheckStaysDueUntilItHolds(t *testing.T) {
	c := newChecked(t)
	c.policy.OnExhaust = "keep"
	ok := t.TempDir() + "/ok"
	check := commandCheck("test", "-e", ok)
	if report := c.must(t, "new", check); report.Leaves[0].Outcome != apply.Kept || c.h.read(t, "/etc/a") != "new" {
		t.Fatalf("%s, /etc/a is %q", report.Leaves[0].Outcome, c.h.read(t, "/etc/a"))
	}
	if due := c.h.snapshot(t).Due; len(due) != 1 || !strings.HasPrefix(due[0].Name, "check command:test") {
		t.Fatalf("due: %+v", due)
	}
	// Nothing changes, and the check is made all the same.
	if report := c.must(t, "new", check); report.Leaves[0].Outcome != apply.Kept || len(report.Plan.Checks) != 1 {
		t.Errorf("again: %s, checks %v", report.Leaves[0].Outcome, report.Plan.Checks)
	}
	c.h.write(t, "/etc/unrelated", "")
	if err := writeFile(ok); err != nil {
		t.Fatal(err)
	}
	if report := c.must(t, "new", check); report.Outcome != apply.Settled || len(c.h.snapshot(t).Due) > 0 {
		t.Errorf("mended: %s, due %v", report.Outcome, c.h.snapshot(t).Due)
	}
	if report := c.must(t, "new", check); !report.Plan.Empty() {
		t.Error("a check that held is made again though nothing changed")
	}
}

func TestACheckIsTriedUntilItHolds(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	c := newChecked(t)
	check := &scrolls.Glyph{Kind: "http", Key: "http:x", Attrs: scrolls.Attrs{"url": server.URL}}
	// On a file tree it is not made, and the plan says so.
	report := c.must(t, "new", check)
	if report.Outcome != apply.Settled || asked.Load() != 0 {
		t.Fatalf("on a file tree: %s, asked %d times", report.Outcome, asked.Load())
	}
	var text strings.Builder
	if err := report.Plan.Text(plan.NewPrinter(&text, plan.Style{})); err != nil || !strings.Contains(text.String(), "not made: this is a file tree") {
		t.Errorf("the plan says (%v)\n%s", err, text.String())
	}
	w := reconcilers.NewWorld(&reconcilers.Host{}, nil)
	defer w.Close()
	for n := range 3 {
		if err := reconcilers.RunCheck(context.Background(), w, check); (err == nil) != (n == 2) {
			t.Errorf("try %d: %v", n+1, err)
		}
	}
}

func TestAnInterruptInACheckTakesTheLeafBack(t *testing.T) {
	c := newChecked(t)
	c.policy.OnExhaust = "keep"
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c.told = func(ev apply.Event) {
		if ev.Type == "checking" {
			cancel()
		}
	}
	_, err := c.run(t, ctx, "new", commandCheck("sleep", "9"))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
	if got := c.h.read(t, "/etc/a"); got != "old" {
		t.Errorf("/etc/a is %q", got)
	}
	if !slices.ContainsFunc(c.events, func(ev apply.Event) bool { return ev.Type == "checking" }) {
		t.Errorf("events: %+v", c.events)
	}
}
