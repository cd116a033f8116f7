package apply_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golem/apply"
	"golem/reconcilers"
	"golem/reconcilers/fake"
	"golem/scrolls"
)

// unfetched applies a leaf of a file and two packages, one of which cannot be fetched until
// golem has waited so many times; -1: for ever.
func unfetched(t *testing.T, waits int, change func(*pkgHost)) (*pkgHost, *apply.Report, []apply.Event) {
	h := newPkgHost(t)
	t.Cleanup(h.remove)
	h.m.Archive = []*fake.Package{{Name: "aa", Version: "1.0", Arch: "all"}, {Name: "bb", Version: "1.0", Arch: "all", Conffiles: map[string]string{"/etc/bb": "shipped\n"}}}
	h.m.Unreachable = true
	if change != nil {
		change(h)
	}
	h.arrange = func(host *reconcilers.Host) {
		runByApt(host, h.m)
		host.Sleep = func(ctx context.Context, _ time.Duration) error {
			if waits--; waits == 0 {
				h.m.Unreachable = false
			}
			return ctx.Err()
		}
	}
	leaf := leafOf("a", fileGlyph("/etc/first", "first\n"), glyph("apt", scrolls.Attrs{"name": "aa"}), glyph("apt", scrolls.Attrs{"name": "bb"}))
	leaf.Policy.Retry.MaxAttempts = 3
	var events []apply.Event
	report, err := h.applyAs(context.Background(), apply.Options{Scroll: scrollOf(leaf), Lineage: "run", Tell: func(ev apply.Event) { events = append(events, ev) }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return h, report, events
}

func retriesOf(events []apply.Event) (all []string) {
	for _, ev := range events {
		if ev.Type == "retrying" {
			all = append(all, fmt.Sprintf("%s %d", ev.Key, ev.Attempt))
		}
	}
	return all
}

// What fails before the first intent is tried again, too, under the same policy.
func TestWhatCannotBeFetchedYetIsTriedAgain(t *testing.T) {
	h, report, events := unfetched(t, 2, nil)
	if report.Partial() || report.Leaves[0].Attempts != 3 {
		t.Fatalf("%s, %d attempts: %v", report.Outcome, report.Leaves[0].Attempts, failures(report))
	}
	if got := strings.Join(retriesOf(events), ", "); got != "apt:aa 1, apt:aa 2" {
		t.Errorf("retries: %s", got)
	}
	prints := h.print(t)
	if prints["package bb"] != "install installed 1.0" || prints["/etc/bb"] != "shipped\n" {
		t.Errorf("there is %v", prints)
	}
}

// Its tries are those of the glyph: one that is never fetched and one that is, and breaks,
// have as many.
func TestTheTriesBeforeTheIntentCount(t *testing.T) {
	for name, waits := range map[string]int{"never fetched": -1, "fetched, and broken": 1} {
		t.Run(name, func(t *testing.T) {
			h, report, events := unfetched(t, waits, func(h *pkgHost) { h.m.Archive[0].FailsToConfigure = true })
			leaf := report.Leaves[0]
			if leaf.Outcome != apply.RolledBack || leaf.Attempts != 3 || len(retriesOf(events)) != 2 {
				t.Errorf("%s after %d attempts, told %v", leaf.Outcome, leaf.Attempts, retriesOf(events))
			}
			for _, g := range leaf.Glyphs {
				if g.Key == "apt:aa" && g.Outcome != apply.Failed {
					t.Errorf("%s is told as %s", g.Key, g.Outcome)
				}
			}
			if prints := h.print(t); prints["/etc/first"] != "" || prints["package aa"] != "" {
				t.Errorf("left behind: %v", prints)
			}
		})
	}
}
