package apply

import (
	"fmt"
	"slices"
	"strings"

	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// textIndent is where the second column begins, behind the words for how a leaf ended.
const textIndent = 13

// maxLeafColumn keeps a long name from pushing what is said of the others away.
const maxLeafColumn = 20

// maxKeysTold is how many keys a line names; --json has them all.
const maxKeysTold = 8

// Text writes what a run did, as a person reads it: how each leaf ended, and of one that
// failed why, what was taken back and what was never reached. What settled is counted,
// since the plan has just shown it.
func (r *Report) Text(out *plan.Printer) error {
	b := &strings.Builder{}
	leaves, glyphs, width := 0, 0, 0
	for _, leaf := range r.Leaves {
		if n := len(plan.Printable(leaf.Leaf)) + 1; leaf.told() && n <= maxLeafColumn {
			width = max(width, n)
		}
	}
	for _, leaf := range r.Leaves {
		if leaf.idle() {
			if leaf.Unchanged > 0 { // else all that it had stands elsewhere by now
				leaves, glyphs = leaves+1, glyphs+leaf.Unchanged
			}
		} else if leaf.told() {
			leaf.text(out, b, width)
		}
	}
	if leaves > 0 {
		as := "as the scroll says"
		if r.Plan.Back != 0 {
			as = fmt.Sprintf("as revision %d declared", r.Plan.Back)
		}
		fmt.Fprintf(b, "%s  %s with nothing to do: %s %s\n", out.Faint("unchanged  "),
			plan.Count(leaves, "leaf", "leaves"), plan.Count(glyphs, "glyph is", "glyphs are"), as)
	}
	r.units(out, b)
	for _, sentence := range r.LeftOut.Sentences() {
		fmt.Fprintf(b, "%s\n", strings.Join(plan.Wrap(plan.Printable(sentence), out.Columns(0)), "\n"))
	}
	for _, k := range r.Kept {
		fmt.Fprintf(b, "%s %s: golem kept show %d\n", out.Warn("kept"), plan.Printable(k.Path), k.ID)
	}
	b.WriteString(r.verdict(out) + "\n")
	if p := r.Pending; p != nil && r.recorded {
		fmt.Fprintf(b, "%s golem confirm keeps it; else it is taken back at %s.\n", out.Warn("Not confirmed yet:"), p.Clock())
	}
	if r.Plan.Back != 0 && r.recorded {
		b.WriteString("The scroll's files are as they were: the next apply of them goes forward again.\n")
	}
	return out.Printf("%s", b.String())
}

// told says that there is something to tell of a leaf.
func (l *LeafReport) told() bool { return len(l.Glyphs)+len(l.Failures)+len(l.fired)+l.held > 0 }

// idle says that a leaf had nothing to do.
func (l *LeafReport) idle() bool {
	return !l.told() && l.Outcome == Settled && l.Leaf != plan.WaveLeaf
}

// text writes how the leaf ended, and of one that failed why and what became of its glyphs.
func (l *LeafReport) text(out *plan.Printer, b *strings.Builder, width int) {
	label := map[state.Outcome]string{
		Settled: out.Good("settled    "), RolledBack: out.Bad("rolled back"),
		Kept: out.Bad("kept       "), Skipped: out.Warn("skipped    "),
	}[l.Outcome]
	line := fmt.Sprintf("%-*s %s", width, plan.Printable(l.Leaf)+":", l.sentence())
	lines := plan.Wrap(line, out.Columns(textIndent))
	fmt.Fprintf(b, "%s  %s\n", label, strings.Join(lines, "\n"+indent(textIndent)))
	for _, f := range l.Failures {
		if !Interrupted(f.err) { // which the line says
			f.text(out, b)
		}
	}
	if l.Outcome == Settled || l.Outcome == Skipped {
		return
	}
	for _, told := range []struct {
		outcome state.Outcome
		word    string
	}{
		{Applied, "applied"}, {RolledBack, "rolled back"}, {Failed, "failed"}, {NotReached, "not reached"},
	} {
		word := told.word
		if told.outcome == Applied && l.Outcome == Kept {
			word = "kept"
		}
		l.keys(out, b, told.outcome, word)
	}
}

// sentence tells how the leaf ended.
func (l *LeafReport) sentence() string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	already := l.already()
	applied, end := l.count(Applied)-already, "it failed"
	if slices.ContainsFunc(l.Failures, func(f Failure) bool { return Interrupted(f.err) }) {
		end = "it was interrupted"
	}
	switch l.Outcome {
	case RolledBack:
		parts = append(parts, end+", and is as it was before this run")
		if end != "it failed" && !l.acted() {
			parts[0] = end + " before it changed anything"
		}
		if l.stays {
			parts[0] = end + ", and is as it was before this run but for what has no undo"
		}
		if slices.ContainsFunc(l.Glyphs, func(g GlyphReport) bool { return g.stuck }) {
			parts[0] = end + ", and could not be taken back whole"
		}
	case Kept:
		parts = append(parts, "it failed; nothing was applied before that")
		if applied > 0 {
			parts[0] = fmt.Sprintf("it failed; %d applied before that, and kept", applied)
		}
		add(already, "so already")
	case Skipped:
		parts = append(parts, "not reached")
		add(l.count(NotReached), "to apply")
	default:
		add(applied, "applied")
		add(already, "so already")
		if n := len(l.fired); n > 0 {
			parts = append(parts, plan.Count(n, "trigger fired", "triggers fired"))
		}
	}
	add(l.Unchanged, "unchanged")
	if l.held > 0 && l.Outcome == Settled {
		parts = append(parts, plan.Count(l.held, "check holds", "checks hold"))
	}
	text := strings.Join(parts, ", ")
	if l.Attempts > 1 {
		text += fmt.Sprintf(" (%d attempts)", l.Attempts)
	}
	return text
}

// acted says whether a step of the leaf was begun, or a trigger of it fired.
func (l *LeafReport) acted() bool { return l.undone+len(l.fired) > 0 }

// count counts the glyphs that ended in one way.
func (l *LeafReport) count(outcome state.Outcome) int {
	n := 0
	for _, g := range l.Glyphs {
		if g.Outcome == outcome {
			n++
		}
	}
	return n
}

// already counts the glyphs for which nothing had to be changed.
func (l *LeafReport) already() int {
	n := 0
	for _, g := range l.Glyphs {
		if g.Outcome == Applied && !g.Changed {
			n++
		}
	}
	return n
}

// keys names the glyphs that ended in one way.
func (l *LeafReport) keys(out *plan.Printer, b *strings.Builder, outcome state.Outcome, word string) {
	var keys []string
	for _, g := range l.Glyphs {
		if g.Outcome != outcome {
			continue
		}
		key := g.Key
		if g.Attempts > 1 {
			key += fmt.Sprintf(" (%d attempts)", g.Attempts)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return
	}
	if more := len(keys) - maxKeysTold; more > 1 {
		keys = append(keys[:maxKeysTold], fmt.Sprintf("and %d more", more))
	}
	const column = textIndent + 13
	lines := plan.Lines(strings.Join(keys, ", "), out.Columns(column))
	fmt.Fprintf(b, "%s%-11s  %s\n", indent(textIndent), word, strings.Join(lines, "\n"+indent(column)))
}

// About puts a key before a text that does not name what it is about.
func About(key, text string) string {
	_, what, _ := strings.Cut(key, ":")
	switch {
	case key == "" || text != "" && scrolls.Word(text, what) >= 0:
		return text
	case text == "":
		return key
	}
	return key + ": " + text
}

// text writes why a leaf failed, and what was found out about it.
func (f Failure) text(out *plan.Printer, b *strings.Builder) {
	cause := About(f.Key, f.Cause)
	write := func(column int, text string) {
		fmt.Fprintf(b, "%s%s\n", indent(column), strings.Join(plan.Lines(text, out.Columns(column)), "\n"+indent(column)))
	}
	write(textIndent, cause)
	of := slices.IndexFunc(f.Diagnostics, func(d reconcilers.Diagnostic) bool { return d.Kind == "log" })
	for i, d := range f.Diagnostics {
		lines := unsaid(d, cause)
		if of >= 0 && i != of || len(lines) == 0 {
			continue // a unit's log says more than what systemctl said of it
		}
		heading := d.Of + " said:"
		if d.Kind == "log" {
			heading = "last in the log of " + d.Of + ":"
		}
		write(textIndent, heading)
		for _, line := range lines {
			write(textIndent+2, line)
		}
	}
	if f.Hint != "" {
		write(textIndent, "hint: "+f.Hint)
	}
}

// unsaid are the lines of a diagnostic that the cause does not hold.
func unsaid(d reconcilers.Diagnostic, cause string) []string {
	return slices.DeleteFunc(slices.Clone(d.Lines), func(line string) bool {
		return strings.Contains(cause, strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "E: "), "."))
	})
}

func indent(columns int) string { return strings.Repeat(" ", columns) }

// units writes what became of units.
func (r *Report) units(out *plan.Printer, b *strings.Builder) {
	if len(r.UnitsDone) == 0 {
		return
	}
	fmt.Fprintf(b, "%s\n", out.Bold("Units"))
	width := 0
	for _, u := range r.UnitsDone {
		width = max(width, len(plan.Printable(u.Unit)))
	}
	for _, u := range r.UnitsDone {
		line := fmt.Sprintf("%-*s  %s", min(width, 30), plan.Printable(u.Unit), plan.Printable(u.Text))
		fmt.Fprintf(b, "  %s\n", strings.Join(plan.Wrap(line, out.Columns(4)), "\n    "))
	}
}

// verdict is the report's last line.
func (r *Report) verdict(out *plan.Printer) string {
	if !r.recorded {
		return out.Bad("Not recorded") + " to its end. The next run settles what this one left."
	}
	counts := map[state.Op]int{}
	for _, l := range r.Leaves {
		for _, g := range l.Glyphs {
			if g.Outcome == Applied {
				counts[g.Op]++
			}
		}
	}
	head := out.Good("Applied")
	switch r.Outcome {
	case partial:
		head = out.Bad("Partly applied")
	case RolledBack:
		head = out.Bad("Rolled back")
	}
	return fmt.Sprintf("%s as revision %d: %d installed, %d replaced, %d repaired, %d removed.", head, r.Revision,
		counts[state.Install], counts[state.Replace], counts[state.Repair], counts[state.Remove])
}
