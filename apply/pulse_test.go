package apply_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golem/apply"
	"golem/reconcilers"
	"golem/scrolls"
)

// aliveRun applies a file and a check whose command takes so long, on a clock that nobody
// waits for. It returns the signs of life, as "ELAPSED LEAF MESSAGE", and all that the
// run was ever at.
func aliveRun(t *testing.T, takes time.Duration, secret bool) (signs []string, at []apply.Doing) {
	t.Helper()
	h := hostWith(t, nil)
	check := commandCheck("/usr/bin/probe", "--quiet", "the-door")
	if secret {
		check.Secret = []string{"run"}
	}
	synctest.Test(t, func(t *testing.T) {
		h.arrange = func(host *reconcilers.Host) {
			host.Exec = func(context.Context, reconcilers.Command) (reconcilers.Output, error) {
				time.Sleep(takes)
				return reconcilers.Output{}, nil
			}
		}
		leaf := leafOf("slow", fileGlyph("/etc/a", "a"))
		leaf.Checks = []*scrolls.Glyph{check}
		check.Leaf = "slow"
		var mu sync.Mutex
		report, err := h.applyAs(context.Background(), apply.Options{
			Scroll: scrollOf(leaf), Lineage: "run",
			Tell: func(ev apply.Event) {
				if ev.Type == "alive" {
					signs = append(signs, fmt.Sprintf("%g %s %s", ev.Elapsed, ev.Leaf, ev.Message))
				}
			},
			Watch: func(d apply.Doing) { mu.Lock(); defer mu.Unlock(); at = append(at, d) },
		}, nil)
		if err != nil || report.Outcome != apply.Settled {
			t.Fatalf("%v %+v", err, report)
		}
	})
	return signs, at
}

func TestALongStepShowsThatItIsAlive(t *testing.T) {
	for takes, want := range map[time.Duration][]string{
		9 * time.Second:  nil,
		11 * time.Second: {"10 slow probe --quiet the-door"},
		31 * time.Second: {"10 slow probe --quiet the-door", "30 slow probe --quiet the-door"},
		20 * time.Minute: {
			"10 slow probe --quiet the-door", "30 slow probe --quiet the-door", "70 slow probe --quiet the-door", "150 slow probe --quiet the-door",
			"310 slow probe --quiet the-door", "610 slow probe --quiet the-door", "910 slow probe --quiet the-door",
		},
	} {
		if got, _ := aliveRun(t, takes, false); !slices.Equal(got, want) {
			t.Errorf("in %s it is told %q, want %q", takes, got, want)
		}
	}
}

func TestASignOfLifeTellsNoSecret(t *testing.T) {
	got, at := aliveRun(t, 11*time.Second, true)
	if want := []string{"10 slow probe (secret)"}; !slices.Equal(got, want) {
		t.Errorf("it is told %q, want %q", got, want)
	}
	for _, d := range at {
		if strings.Contains(fmt.Sprint(d), "the-door") {
			t.Errorf("it is at %+v", d)
		}
	}
}

func TestWhatARunIsAtIsAlwaysKnown(t *testing.T) {
	_, at := aliveRun(t, time.Second, false)
	var told []string
	for _, d := range at {
		told = append(told, fmt.Sprintf("%s|%s|%s|%s", d.Leaf, d.Key, d.What, d.Command))
	}
	for _, want := range []string{
		"||looking at the host|", "slow|file:/etc/a||", "slow||check /usr/bin/probe --quiet the-door succeeds|",
		"slow||check /usr/bin/probe --quiet the-door succeeds|probe --quiet the-door",
	} {
		if !slices.Contains(told, want) {
			t.Errorf("it is never at %q, but at %q", want, told)
		}
	}
	if last := at[len(at)-1]; last != (apply.Doing{}) {
		t.Errorf("at the end it is at %+v", last)
	}
}
