package reconcilers

import (
	"testing"
	"time"
)

// TestRunsOfDpkgAreFoundInTheirZones: a host was set up in UTC, moved to Tokyo, upgraded there, and
// moved back; what unpacked nothing that is there still has the zone of what stands beside it.
func TestRunsOfDpkgAreFoundInTheirZones(t *testing.T) {
	const tokyo = 9 * time.Hour
	at := func(day, hour int) time.Time { return time.Date(2026, 3, day, hour, 0, 0, 0, time.UTC) }
	run := func(wall time.Time, unpacked ...string) *dpkgRun {
		r := &dpkgRun{wall, wall.Add(time.Minute), map[string]time.Time{}, map[string]time.Time{"all": wall}}
		for _, name := range unpacked {
			r.unpacked[name], r.complete[name] = wall, wall.Add(time.Second)
		}
		return r
	}
	l := &dpkgLog{done: map[string]time.Time{}, runs: []*dpkgRun{
		run(at(1, 8), "base", "old", "tool"), run(at(5, 20).Add(tokyo), "tool"), run(at(6, 1).Add(tokyo)), run(at(9, 8).Add(tokyo), "late"),
	}}
	l.settle(map[string]time.Time{
		"base": at(1, 8).Add(2 * time.Second), "old": at(1, 8).Add(7 * time.Minute), // its list was written anew later
		"tool": at(5, 20).Add(time.Second), "late": at(9, 8).Add(-time.Second),
	})
	for i, want := range []time.Time{at(1, 8), at(5, 20), at(6, 1), at(9, 8)} {
		if got := l.runs[i].from; !got.Equal(want) {
			t.Errorf("run %d began at %v, not %v", i, got, want)
		}
	}
	if got, want := l.done["tool"], at(5, 20).Add(time.Second); !got.Equal(want) {
		t.Errorf("tool was done at %v, not %v", got, want)
	}
	for _, when := range []struct {
		at  time.Time
		ran bool
	}{{at(1, 8).Add(30 * time.Second), true}, {at(6, 1).Add(time.Minute), true}, {at(6, 1).Add(tokyo), false}, {at(6, 1).Add(2 * time.Minute), false}} {
		if l.ran(when.at) != when.ran {
			t.Errorf("dpkg at work at %v: %v", when.at, !when.ran)
		}
	}
}
