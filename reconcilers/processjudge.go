package reconcilers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golem/scrolls"
	"golem/state"
)

// judge makes the step and tells it.
func (k *processWork) judge(t *Turn) {
	step := &state.Step{Lineage: k.r.Lineage, Leaf: k.r.Leaf, Sort: processSort, Resource: k.r.Resource, Before: k.r.Record}
	if len(k.r.Set) == 0 {
		t.Step = step
		k.judgeRemove(t)
		return
	}
	g := k.r.Set[0]
	c := Change{Effect: EffectWrite, After: k.view()}
	var old *scrolls.Glyph
	if k.r.Record != nil {
		old = k.old0()
	}
	op := state.Op("")
	switch {
	case old == nil:
		op, c.Reason = state.Install, k.brief(g)+k.does()
	case CID(old) != CID(g):
		op, c.Reason, c.Before = state.Replace, k.brief(g)+k.does(), map[string]any{"unit": serviceOf(k.r.Resource)}
		c.Diff = k.diff()
	case t.Acts:
		op, c.Reason, c.Drift = state.Repair, "drifted: "+k.drift()+k.does(), true
		c.Diff = k.diff()
	default:
		t.Noops = []scrolls.Key{g.Key}
		return
	}
	if secret(g) || old != nil && secret(old) {
		c.Secret, c.Diff = true, ""
	}
	t.Step = step
	t.part(g.Key, old, g, op, c, t.Acts)
}

// part adds one glyph's part to a turn of its own.
func (t *Turn) part(key scrolls.Key, old, next *scrolls.Glyph, op state.Op, c Change, changed bool) {
	g := next
	if g == nil {
		g = old
	}
	c.Key, c.Kind, c.Op = key, g.Kind, op
	t.Changes = append(t.Changes, c)
	t.Step.Glyphs = append(t.Step.Glyphs, state.StepGlyph{
		Op: op, Key: key, CID: CID(g), Old: old, New: next, Leaf: t.Leaf, Changed: changed, Reason: c.Reason,
	})
}

// judgeRemove tells what goes with a process that is no longer declared.
func (k *processWork) judgeRemove(t *Turn) {
	c := Change{Effect: EffectDelete, Before: map[string]any{"unit": serviceOf(k.r.Resource)}}
	var goes []string
	if len(k.stop) > 0 {
		goes = append(goes, "stopped")
	}
	goes = append(goes, "its unit")
	if k.old.timed {
		goes = append(goes, "timer")
	}
	for p := range k.old.paths {
		if strings.HasPrefix(p, bundleDir+"/") {
			goes = append(goes, "bundle")
			break
		}
	}
	c.Reason = sentence(goes) + " removed: golem made it"
	if len(k.stop) > 0 {
		c.Reason = "stopped; " + sentence(goes[1:]) + " removed: golem made it"
	}
	if len(t.Keeps) > 0 {
		c.Reason += "; what was changed by hand is kept"
	}
	if !t.Acts {
		c.Effect, c.Reason = EffectForget, "it is gone already"
	}
	for key, g := range k.r.Drop {
		t.part(key, g, nil, state.Remove, c, t.Acts)
	}
}

// sentence joins words as people do.
func sentence(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// forget makes the turn drop the process and leave everything of it.
func (k *processWork) forget(t *Turn, reason string) {
	t.Step = &state.Step{Lineage: k.r.Lineage, Leaf: k.r.Leaf, Sort: processSort, Resource: k.r.Resource, Before: k.r.Record}
	t.Step.Inverse, t.Step.Expect = encode(processState{}), encode(processState{})
	for key, g := range k.r.Drop {
		t.part(key, g, nil, state.Remove, Change{Effect: EffectForget, Reason: reason}, false)
	}
	for _, unit := range []string{serviceOf(k.r.Resource), timerOf(k.r.Resource)} {
		if isRunning(k.active[unit]) {
			t.Units = append(t.Units, UnitEffect{Do: "forget", Unit: unit, Key: t.Changes[0].Key, Reason: reason})
		}
	}
}

// brief says what the process is.
func (k *processWork) brief(g *scrolls.Glyph) string {
	text := "a service"
	if k.want.timed {
		text = "a timer (" + str(g.Attrs, "schedule") + ") and its service"
	}
	if !slices.Contains(g.Secret, "command") {
		text += " that runs " + commandText(words(g.Attrs, "command"))
	}
	if files := object(g.Attrs, "bundle"); len(files) == 1 {
		text += " with a bundle of 1 file"
	} else if len(files) > 1 {
		text += fmt.Sprintf(" with a bundle of %d files", len(files))
	}
	if on, ok := g.Attrs["enabled"].(bool); ok && !on {
		text += ", not enabled"
	}
	return text
}

// commandText is a command as a person reads it, words with blanks in quotes.
func commandText(command []string) string {
	shown := make([]string, len(command))
	for i, word := range command {
		if shown[i] = word; word == "" || strings.ContainsAny(word, " \t\n\"'") {
			shown[i] = strconv.Quote(word)
		}
	}
	return strings.Join(shown, " ")
}

// does says what becomes of its units.
func (k *processWork) does() string {
	switch {
	case k.start != "":
		return "; started"
	case k.restart != "":
		return "; restarted"
	case len(k.stop) > 0:
		return "; stopped"
	}
	return ""
}

// drift says what somebody else changed.
func (k *processWork) drift() string {
	if len(k.shifts) > 0 {
		first := k.shifts[0]
		if first.from.Type == Absent {
			return quote(first.path) + " is gone"
		}
		return quote(first.path) + " was changed by hand"
	}
	if k.start != "" {
		state := k.active[k.start]
		if state == "failed" {
			return k.start + " failed"
		}
		return k.start + " does not run"
	}
	return "it runs"
}

// diff shows what changes in its units' texts.
func (k *processWork) diff() string {
	if k.r.Untold {
		return ""
	}
	var b strings.Builder
	for _, s := range k.shifts {
		if s.from.Type == File && s.to.Type == File && s.from.data != nil && s.to.data != nil && rank(s.path) == 1 {
			b.WriteString(unified(s.from.data, s.to.data))
		}
	}
	return b.String()
}

func (k *processWork) view() map[string]any {
	state := "stopped"
	if k.want.running {
		state = "running"
	}
	v := map[string]any{"unit": serviceOf(k.r.Resource), "state": state}
	if k.want.timed {
		v["timer"] = timerOf(k.r.Resource)
	}
	return v
}

// tellUnits lists what becomes of the process's units.
func (k *processWork) tellUnits(t *Turn) {
	key := t.Changes[0].Key
	add := func(do, unit, reason string) {
		t.Units = append(t.Units, UnitEffect{Do: do, Unit: unit, Key: key, Reason: reason})
	}
	for _, unit := range k.stop {
		reason := "golem's own; it is declared stopped"
		if len(k.want.paths) == 0 {
			reason = "golem's own; it goes"
		} else if unit != k.want.main {
			reason = "golem's own; it is no longer declared so"
		}
		add("stop", unit, reason)
	}
	if k.start != "" {
		add("start", k.start, "golem's own")
	}
	if k.restart != "" {
		add("restart", k.restart, "golem's own; it changes")
	}
}

// TellFound implements Teller.
func (processes) TellFound(json.RawMessage) string { return "nothing" }
