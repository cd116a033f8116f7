package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"

	"golem/apply"
	"golem/plan"
	"golem/state"
)

const (
	drawEvery    = 100 * time.Millisecond
	maxLiveLines = 12
	maxLeafName  = 24 // columns
)

// A live shows a run on a terminal while it lasts: a line for each leaf, the last ones
// where there are many, drawn anew in place.
//
// The cursor rests at the beginning of the first line. Terminals that fold lines when they
// are made narrower take it along, so that clearing what is behind it clears all that was
// drawn, at whatever width; and whatever ends golem leaves no cursor hidden.
type live struct {
	// writing is held while the screen is written: a terminal that is halted (Ctrl-S)
	// holds up what is drawn, and not the run. It is taken before mu.
	writing sync.Mutex
	frame   string // what stands on the screen; "" for nothing
	width   int    // that it was drawn for

	mu    sync.Mutex
	out   io.Writer
	style *plan.Printer
	size  func() (columns, rows int)
	now   func() time.Time

	leaves []*liveLeaf
	byName map[string]*liveLeaf
	at     apply.Doing
	stop   chan struct{}
}

// A liveLeaf is one leaf's line.
type liveLeaf struct {
	name        string
	done, total int
	outcome     state.Outcome // "" while it runs
	failed      bool
	attempt     int // of what is being done
	together    int // glyphs that are being enacted together
	began       time.Time
	took        time.Duration
}

func newLive(out io.Writer, style *plan.Printer, size func() (int, int)) *live {
	return &live{out: out, style: style, size: size, now: time.Now, byName: map[string]*liveLeaf{}}
}

// event takes up what happened. It is drawn with the next tick, so that ten thousand
// events cost ten thousand additions.
func (v *live) event(ev apply.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tick()
	l := v.byName[ev.Leaf]
	if ev.Type == "leaf_started" {
		l = &liveLeaf{name: ev.Leaf, total: ev.Glyphs, began: v.now()}
		v.byName[ev.Leaf], v.leaves = l, append(v.leaves, l)
	}
	if l == nil {
		return // of a leaf that has nothing to do
	}
	switch ev.Type {
	case "enacting":
		l.attempt, l.together = 1, ev.Glyphs
	case "checking", "triggered":
		l.attempt = 1
	case "enacted":
		l.done++
	case "retrying":
		l.attempt = ev.Attempt + 1
	case "failed":
		l.failed = true
	case "leaf_ended":
		l.outcome, l.took = ev.Outcome, v.now().Sub(l.began)
	}
}

// doing takes up what the run is at.
func (v *live) doing(d apply.Doing) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.at = d
	v.tick()
}

// tick has the screen drawn at regular times, if it is not already.
func (v *live) tick() {
	if v.stop != nil {
		return
	}
	stop := make(chan struct{})
	v.stop = stop
	go func() {
		ticker := time.NewTicker(drawEvery)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				v.draw(stop)
			}
		}
	}()
}

// clear takes the lines off the screen. What is told later draws them again.
func (v *live) clear() {
	v.mu.Lock()
	if v.stop != nil {
		close(v.stop)
		v.stop = nil
	}
	v.mu.Unlock()
	v.writing.Lock()
	defer v.writing.Unlock()
	if v.frame != "" {
		_, _ = io.WriteString(v.out, "\r\x1b[J")
		v.frame = ""
	}
}

// draw writes the lines anew where they differ from what stands there. A screen that
// cannot be written any more must not stop a run.
func (v *live) draw(stop chan struct{}) {
	v.writing.Lock()
	defer v.writing.Unlock()
	v.mu.Lock()
	cleared := v.stop != stop
	columns, rows := v.size()
	lines := v.lines(columns, rows)
	v.mu.Unlock()
	if cleared {
		return
	}
	frame := strings.Join(lines, "\r\n")
	if frame == v.frame && columns == v.width {
		return
	}
	v.frame, v.width = frame, columns
	frame = "\r\x1b[J" + frame
	if n := len(lines) - 1; n > 0 {
		frame += fmt.Sprintf("\x1b[%dA", n)
	}
	_, _ = io.WriteString(v.out, frame+"\r")
}

// lines are what the screen is to show, none as wide as it.
func (v *live) lines(columns, rows int) []string {
	room := min(max(rows-1, 1), maxLiveLines)
	leaves := v.leaves
	current := v.byName[v.at.Leaf]
	loose := current == nil && !v.at.Since.IsZero()
	if loose {
		room-- // a line of its own
	}
	var hidden []*liveLeaf
	if len(leaves) > room {
		cut := len(leaves) - max(room-1, 0)
		hidden, leaves = leaves[:cut], leaves[cut:]
	}
	width := 0
	for _, l := range leaves {
		width = max(width, runewidth.StringWidth(plan.Printable(l.name)))
	}
	width = min(width, maxLeafName, columns/3)
	var lines []string
	if len(hidden) > 0 && len(lines) < room {
		lines = append(lines, v.line(columns, "·", before(hidden)))
	}
	for _, l := range leaves {
		mark, text := v.leaf(l, width, l == current)
		lines = append(lines, v.line(columns, mark, text))
	}
	if loose {
		lines = append(lines, v.line(columns, "▸", strings.TrimLeft(v.elapsed(v.at.Since)+"  ", " ")+v.what(nil)))
	}
	return lines
}

// line puts a mark before a text, and cuts it to the screen.
func (v *live) line(columns int, mark, text string) string {
	text = runewidth.Truncate(plan.Printable(text), max(columns-3, 1), "…")
	switch mark {
	case "✓":
		mark = v.style.Good(mark)
	case "✗":
		mark = v.style.Bad(mark)
	case "▸":
		mark = v.style.Bold(mark)
	}
	return strings.TrimRight(mark+" "+text, " ")
}

// before counts the leaves for which there is no room.
func before(leaves []*liveLeaf) string {
	bad := 0
	for _, l := range leaves {
		if l.failed || l.outcome != "" && l.outcome != apply.Settled {
			bad++
		}
	}
	text := plan.Count(len(leaves), "leaf", "leaves") + " before"
	if bad > 0 {
		text += fmt.Sprintf(", %d of them failed", bad)
	}
	return text
}

// leaf is a leaf's mark and line.
func (v *live) leaf(l *liveLeaf, width int, current bool) (mark, text string) {
	parts := []string{runewidth.FillRight(runewidth.Truncate(plan.Printable(l.name), width, "…"), width)}
	if l.total > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d", min(l.done, l.total), l.total))
	}
	switch {
	case l.outcome == apply.Settled && !l.failed:
		mark = "✓"
	case l.outcome == apply.Skipped:
		mark = "·"
	case l.outcome != "", l.failed:
		mark = "✗"
	default:
		mark = "▸"
	}
	if l.outcome != "" && mark != "✓" {
		parts = append(parts, strings.ReplaceAll(string(l.outcome), "_", " "))
	}
	if current {
		parts = append(parts, v.elapsed(v.at.Since), v.what(l))
	} else if l.outcome != "" {
		parts = append(parts, v.length(l.took))
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return mark, strings.Join(parts, "  ")
}

// what says in a few words what is being done.
func (v *live) what(l *liveLeaf) string {
	what := v.at.Command
	if what == "" {
		what = v.at.What
	}
	text := apply.About(string(v.at.Key), what)
	if l == nil {
		return text
	}
	if v.at.Command == "" && v.at.What == "" && l.together > 1 {
		text += fmt.Sprintf(" and %d more", l.together-1)
	}
	if l.attempt > 1 {
		text = fmt.Sprintf("attempt %d: %s", l.attempt, text)
	}
	return text
}

// elapsed is how long something has been going on; "" for less than a second.
func (v *live) elapsed(since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return v.length(v.now().Sub(since))
}

func (v *live) length(d time.Duration) string {
	if d < time.Second {
		return ""
	}
	return d.Truncate(time.Second).String()
}
