package apply

import (
	"fmt"
	"strings"

	"golem/plan"
	"golem/reconcilers"
	"golem/state"
)

// Text writes what a run did, as a person reads it: what was applied, what was taken
// back, what was never reached.
func (r *Report) Text(out *plan.Printer) error {
	b := &strings.Builder{}
	for _, leaf := range r.Leaves {
		leaf.text(out, b)
	}
	r.units(out, b)
	for _, k := range r.Kept {
		fmt.Fprintf(b, "%s %s: golem kept show %d\n", out.Warn("kept"), plan.Printable(k.Path), k.ID)
	}
	b.WriteString(r.verdict(out) + "\n")
	if r.Plan.Back != 0 && r.recorded {
		b.WriteString("The scroll's files are as they were: the next apply of them goes forward again.\n")
	}
	return out.Printf("%s", b.String())
}

func (l *LeafReport) text(out *plan.Printer, b *strings.Builder) {
	if len(l.Glyphs) == 0 && len(l.Failures) == 0 {
		return
	}
	applied, changed := 0, 0
	for _, g := range l.Glyphs {
		if g.Outcome == "applied" {
			applied++
		}
		if g.Changed {
			changed++
		}
	}
	name := plan.Printable(l.Leaf)
	switch l.Outcome {
	case Settled:
		fmt.Fprintf(b, "%s  %s: %d applied, %d changed the host\n", out.Good("settled    "), name, applied, changed)
	case RolledBack:
		fmt.Fprintf(b, "%s  %s: it failed, and is as it was before this run\n", out.Bad("rolled back"), name)
	case Kept:
		fmt.Fprintf(b, "%s  %s: it failed; %d applied before that, and kept\n", out.Bad("kept       "), name, applied)
	case Skipped:
		fmt.Fprintf(b, "%s  %s: not reached\n", out.Warn("skipped    "), name)
	}
	for _, f := range l.Failures {
		text := f.Message
		if _, what, _ := strings.Cut(f.Key, ":"); f.Key != "" && !strings.Contains(text, what) {
			text = f.Key + ": " + text
		}
		fmt.Fprintf(b, "             %s\n", strings.Join(plan.Lines(text, out.Columns(13)), "\n             "))
	}
}

// units writes what became of units: of those whose glyph was applied, and of those
// that a trigger of a settled leaf told.
func (r *Report) units(out *plan.Printer, b *strings.Builder) {
	lines := r.unitLines()
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "%s\n", out.Bold("Units"))
	for _, line := range lines {
		fmt.Fprintf(b, "  %s\n", strings.Join(plan.Lines(line, out.Columns(4)), "\n    "))
	}
}

func (r *Report) unitLines() []string {
	if r.Plan == nil {
		return nil
	}
	applied := map[string]bool{}
	for _, l := range r.Leaves {
		for _, g := range l.Glyphs {
			applied[g.Key] = g.Outcome == "applied"
		}
	}
	came := func(leaf string, u reconcilers.UnitEffect, fired bool) bool {
		if fired || leaf == plan.WaveLeaf {
			l := r.at[leaf]
			return l != nil && l.Outcome == Settled
		}
		return applied[string(u.Key)]
	}
	var lines []string
	for _, u := range r.Plan.EffectsOf(came) {
		lines = append(lines, unitLine(u))
	}
	return lines
}

// unitDone are the verbs of units, done.
var unitDone = map[string]string{
	"stop": "stopped", "restart": "restarted", "start": "started", "reload": "reloaded", "restore": "restored", "forget": "forgotten",
}

// unitLine tells what became of one unit.
func unitLine(u reconcilers.UnitEffect) string {
	if u.Done != "" {
		return u.Unit + "  " + u.Done
	}
	return fmt.Sprintf("%s  %s: %s", u.Unit, unitDone[u.Do], u.Reason)
}

// verdict is the report's last line.
func (r *Report) verdict(out *plan.Printer) string {
	if !r.recorded {
		return out.Bad("Not recorded") + " to its end. The next run settles what this one left."
	}
	counts := map[state.Op]int{}
	for _, l := range r.Leaves {
		for _, g := range l.Glyphs {
			if g.Outcome == "applied" {
				counts[g.Op]++
			}
		}
	}
	head := out.Good("Applied")
	switch r.Outcome {
	case "partial":
		head = out.Bad("Partly applied")
	case RolledBack:
		head = out.Bad("Rolled back")
	}
	return fmt.Sprintf("%s as revision %d: %d installed, %d replaced, %d repaired, %d removed.", head, r.Revision,
		counts[state.Install], counts[state.Replace], counts[state.Repair], counts[state.Remove])
}
