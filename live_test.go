package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mattn/go-runewidth"

	"golem/apply"
	"golem/plan"
	"golem/scrolls"
	"golem/state"
)

// liveAt is a live view of so many columns and rows that draws nothing by itself, at a
// time that stands still.
func liveAt(columns, rows int) *live {
	v := newLive(io.Discard, plan.NewPrinter(io.Discard, plan.Style{}), func() (int, int) { return columns, rows })
	at := time.Unix(1_000_000, 0)
	v.now = func() time.Time { return at }
	v.stop = make(chan struct{})
	return v
}

// later lets time pass.
func (v *live) later(d time.Duration) {
	at := v.now().Add(d)
	v.now = func() time.Time { return at }
}

// begin is what a run is at from now on.
func (v *live) begin(leaf, key, what, command string) {
	v.doing(apply.Doing{Leaf: leaf, Key: scrolls.Key(key), What: what, Command: command, Since: v.now()})
}

func (v *live) events(all ...apply.Event) {
	for _, ev := range all {
		v.event(ev)
	}
}

// shows fails unless the screen is these lines.
func (v *live) shows(t *testing.T, when string, want ...string) {
	t.Helper()
	columns, rows := v.size()
	got := v.lines(columns, rows)
	if !slices.Equal(got, want) {
		t.Errorf("%s it shows\n%s\nwant\n%s", when, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(got) >= rows {
		t.Errorf("%s it shows %d lines on %d rows", when, len(got), rows)
	}
	for _, line := range got {
		if w := runewidth.StringWidth(line); w >= columns {
			t.Errorf("%s a line has %d of %d columns:\n%s", when, w, columns, line)
		}
	}
}

func TestALineForEachLeaf(t *testing.T) {
	v := liveAt(80, 24)
	v.begin("", "", "looking at the host", "")
	v.shows(t, "before the plan", "▸ looking at the host")
	v.begin("", "", "looking at the host", "apt-get update")
	v.later(4 * time.Second)
	v.shows(t, "while lists are fetched", "▸ 4s  apt-get update")
	v.doing(apply.Doing{})
	v.shows(t, "while it asks")

	v.events(apply.Event{Type: "leaf_started", Leaf: "base", Glyphs: 2})
	v.begin("base", "file:/etc/a", "", "")
	v.events(apply.Event{Type: "enacting", Leaf: "base", Key: "file:/etc/a", Glyphs: 2})
	v.shows(t, "in a batch", "▸ base  0 of 2  file:/etc/a and 1 more")
	v.events(apply.Event{Type: "enacted", Leaf: "base"}, apply.Event{Type: "enacted", Leaf: "base"}, apply.Event{Type: "leaf_ended", Leaf: "base", Outcome: "settled"})
	v.doing(apply.Doing{})
	v.shows(t, "after a leaf", "✓ base  2 of 2")

	v.events(apply.Event{Type: "leaf_started", Leaf: "nginx", Glyphs: 3}, apply.Event{Type: "enacting", Leaf: "nginx", Key: "apt:nginx", Glyphs: 1})
	v.begin("nginx", "apt:nginx", "", "apt-get install nginx")
	v.later(12 * time.Second)
	v.shows(t, "while apt runs", "✓ base   2 of 2", "▸ nginx  0 of 3  12s  apt-get install nginx")
	v.events(apply.Event{Type: "retrying", Leaf: "nginx", Key: "apt:nginx", Attempt: 1})
	v.begin("nginx", "apt:nginx", "waiting to try again", "")
	v.shows(t, "between attempts", "✓ base   2 of 2", "▸ nginx  0 of 3  attempt 2: apt:nginx: waiting to try again")
	v.events(apply.Event{Type: "enacted", Leaf: "nginx"}, apply.Event{Type: "checking", Leaf: "nginx"})
	v.begin("nginx", "", "check 127.0.0.1:80 accepts connections", "")
	v.shows(t, "in a check", "✓ base   2 of 2", "▸ nginx  1 of 3  check 127.0.0.1:80 accepts connections")
	v.events(apply.Event{Type: "failed", Leaf: "nginx"})
	v.begin("nginx", "", "taking it back", "")
	v.shows(t, "on the way back", "✓ base   2 of 2", "✗ nginx  1 of 3  taking it back")
	v.doing(apply.Doing{})
	v.events(apply.Event{Type: "leaf_ended", Leaf: "nginx", Outcome: "rolled_back"}, apply.Event{Type: "leaf_ended", Leaf: "idle", Outcome: "settled"})
	v.shows(t, "at the end", "✓ base   2 of 2", "✗ nginx  1 of 3  rolled back  12s")
}

func TestLinesFitAnyTerminal(t *testing.T) {
	long := strings.Repeat("long", 20)
	for _, columns := range []int{1, 2, 5, 20, 80, 120} {
		for _, rows := range []int{2, 3, 10, 50} {
			v := liveAt(columns, rows)
			for i := range 40 {
				leaf := fmt.Sprintf("%s-%d/日本語", long, i)
				v.events(apply.Event{Type: "leaf_started", Leaf: leaf, Glyphs: 1000}, apply.Event{Type: "leaf_ended", Leaf: leaf, Outcome: "kept"})
			}
			v.events(apply.Event{Type: "leaf_started", Leaf: "now", Glyphs: 2})
			for _, leaf := range []string{"now", "none"} {
				v.begin(leaf, "file:/"+long, long, "")
				lines := v.lines(columns, rows)
				if len(lines) >= rows || len(lines) > maxLiveLines {
					t.Errorf("%d lines on %d rows", len(lines), rows)
				}
				for _, line := range lines {
					if w := runewidth.StringWidth(line); w >= max(columns, 4) {
						t.Errorf("%d of %d columns: %s", w, columns, line)
					}
				}
			}
		}
	}
}

func TestManyLeavesAreCounted(t *testing.T) {
	v := liveAt(80, 5)
	for i, outcome := range []state.Outcome{"settled", "rolled_back", "settled", "settled", "settled"} {
		leaf := fmt.Sprintf("leaf%d", i)
		v.events(apply.Event{Type: "leaf_started", Leaf: leaf, Glyphs: 1}, apply.Event{Type: "enacted", Leaf: leaf}, apply.Event{Type: "leaf_ended", Leaf: leaf, Outcome: outcome})
	}
	v.shows(t, "with five leaves on five rows", "· 2 leaves before, 1 of them failed", "✓ leaf2  1 of 1", "✓ leaf3  1 of 1", "✓ leaf4  1 of 1")
}

// writes notes what is written.
type writes struct {
	mu  sync.Mutex
	all []string
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, string(p))
	return len(p), nil
}

// sofar is all that was written, once every goroutine rests.
func (w *writes) sofar() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

// last is what was written last.
func (w *writes) last() string {
	all := w.sofar()
	return all[len(all)-1]
}

// TestTenThousandGlyphsAreDrawnTenTimesASecond: events cost no writes of their own, what
// stays as it is is not drawn again, and nothing is left at the end.
func TestTenThousandGlyphsAreDrawnTenTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		screen := &writes{}
		v := newLive(screen, plan.NewPrinter(io.Discard, plan.Style{}), func() (int, int) { return 80, 24 })
		v.event(apply.Event{Type: "leaf_started", Leaf: "big", Glyphs: 10_000})
		for range 10_000 {
			v.event(apply.Event{Type: "enacted", Leaf: "big"})
			time.Sleep(100 * time.Microsecond)
		}
		drawn := len(screen.sofar())
		if drawn < 8 || drawn > 11 {
			t.Errorf("one second of events is drawn %d times", drawn)
		}
		time.Sleep(time.Minute)
		if more := len(screen.sofar()) - drawn; more > 1 {
			t.Errorf("a minute in which nothing happens is drawn %d times", more)
		}
		if last := screen.last(); last != "\r\x1b[J▸ big  10000 of 10000\r" {
			t.Errorf("it draws %q", last)
		}
		v.clear()
		v.clear()
		if last := screen.last(); last != "\r\x1b[J" {
			t.Errorf("it clears by %q", last)
		}
		cleared := len(screen.sofar())
		time.Sleep(time.Minute)
		if len(screen.sofar()) != cleared {
			t.Error("it goes on drawing after it was cleared")
		}
	})
}

// TestAStepsSecondsAreDrawn: what lasts is drawn once a second, for the time it shows.
func TestAStepsSecondsAreDrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		screen := &writes{}
		v := newLive(screen, plan.NewPrinter(io.Discard, plan.Style{}), func() (int, int) { return 80, 24 })
		v.event(apply.Event{Type: "leaf_started", Leaf: "a", Glyphs: 1})
		v.doing(apply.Doing{Leaf: "a", Command: "apt-get install a", Since: time.Now()})
		time.Sleep(10*time.Second + drawEvery)
		v.clear()
		if n := len(screen.sofar()); n != 12 { // at once, ten seconds, and the clearing
			t.Errorf("ten seconds are drawn %d times", n)
		}
		if last := screen.sofar()[len(screen.sofar())-2]; !strings.Contains(last, "0 of 1  10s  apt-get install a") {
			t.Errorf("at last it shows %q", last)
		}
	})
}

// TestAHaltedTerminalDoesNotHoldUpTheRun: events are taken up while nothing can be written.
func TestAHaltedTerminalDoesNotHoldUpTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		v := newLive(w, plan.NewPrinter(io.Discard, plan.Style{}), func() (int, int) { return 80, 24 })
		v.event(apply.Event{Type: "leaf_started", Leaf: "a", Glyphs: 2})
		time.Sleep(time.Second)
		synctest.Wait() // a frame is being written, and nobody reads
		v.event(apply.Event{Type: "enacted", Leaf: "a"})
		v.doing(apply.Doing{Leaf: "a", Key: "file:/x", Since: time.Now()})
		go func() { _, _ = io.Copy(io.Discard, r) }()
		v.clear()
		_ = r.Close()
	})
}
