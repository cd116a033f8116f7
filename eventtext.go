package main

import (
	"fmt"
	"strings"
	"time"

	"golem/apply"
	"golem/plan"
)

// eventText tells an event in one line, as a log has it; "" for one that says nothing to
// a person that another does not.
func eventText(ev apply.Event) string {
	text := ""
	switch ev.Type {
	case "leaf_started":
		text = "started"
		if ev.Glyphs > 0 {
			text += fmt.Sprintf(", %d to enact", ev.Glyphs)
		}
	case "enacted":
		text = opDone[ev.Op] + " " + ev.Key
		switch {
		case ev.Unchanged && ev.Op == "remove":
			text = "forgot " + ev.Key
		case ev.Unchanged:
			text = "recorded " + ev.Key
		}
	case "triggered":
		text = ev.Message + " " + ev.Key
		if done := triggerDone[ev.Message]; done != "" {
			text = done + " " + ev.Key
		}
	case "checking":
		text = "checking that " + ev.Message
	case "retrying":
		text = fmt.Sprintf("attempt %d failed, trying again in %s: %s", ev.Attempt, seconds(ev.Delay), apply.About(ev.Key, ev.Cause))
	case "alive":
		text = fmt.Sprintf("still running after %s: %s", seconds(ev.Elapsed), apply.About(ev.Key, ev.Message))
	case "armed":
		text = ev.Message
	case "failed":
		if text = "interrupted"; ev.Cause != apply.WasInterrupted {
			text = "failed: " + apply.About(ev.Key, ev.Cause)
		}
	case "leaf_ended":
		text = strings.ReplaceAll(string(ev.Outcome), "_", " ")
	}
	if text != "" && ev.Leaf != "" {
		text = ev.Leaf + ": " + text
	}
	first, _, _ := strings.Cut(text, "\n")
	return plan.Printable(first)
}

var (
	opDone      = map[string]string{"install": "installed", "replace": "replaced", "repair": "repaired", "remove": "removed"}
	triggerDone = map[string]string{"reload": "reloaded", "restart": "restarted"}
)

// seconds writes a length of time as short as it is read: tenths only below ten seconds.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
