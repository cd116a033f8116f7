package apply_test

import (
	"context"
	"errors"
	"testing"

	"golem/apply"
	"golem/reconcilers"
	"golem/reconcilers/fake"
	"golem/scrolls"
)

// TestAnInterruptAtAnyLookIsCommitted interrupts a destroy at each of its commands: those
// that only look end at once, with the interrupt. Whatever was done by then is a revision,
// and the next run has nothing to recover; the looks of the last wave too.
func TestAnInterruptAtAnyLookIsCommitted(t *testing.T) {
	interrupted := 0
	for n := 1; ; n++ {
		h := newPkgHost(t)
		h.m.Archive = []*fake.Package{
			{Name: "p0", Version: "1.0", Arch: "all"}, {Name: "p1", Version: "1.0", Arch: "all", Depends: "p0"},
		}
		if err := h.m.Save(); err != nil {
			t.Fatal(err)
		}
		scroll := scrollOf(leafOf("one", glyph("apt", scrolls.Attrs{"name": "p1"})))
		if report, err := h.apply(scroll, "web"); err != nil || report.Partial() {
			t.Fatal(err, report)
		}
		ctx, cancel := context.WithCancel(context.Background())
		calls, arrange := 0, h.arrange
		h.arrange = func(host *reconcilers.Host) {
			arrange(host)
			answer := host.Exec
			host.Exec = func(_ context.Context, c reconcilers.Command) (reconcilers.Output, error) {
				if calls++; calls == n {
					cancel()
				}
				if ctx.Err() != nil && !c.Changes {
					return reconcilers.Output{}, ctx.Err()
				}
				return answer(ctx, c)
			}
		}
		_, err := h.applyAs(ctx, apply.Options{Lineage: "web", Destroy: true}, nil)
		cancel()
		if errors.As(err, new(*apply.TouchedError)) || err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted at command %d: %v", n, err)
		}
		if snap := h.snapshot(t); snap.Dead != nil {
			t.Errorf("interrupted at command %d, the next run has to recover", n)
		}
		h.remove()
		if calls < n {
			break
		}
		interrupted++
	}
	if interrupted < 3 {
		t.Errorf("only %d commands were interrupted", interrupted)
	}
}
