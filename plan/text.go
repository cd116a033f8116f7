package plan

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"
	"github.com/mattn/go-runewidth"
	"github.com/muesli/termenv"

	"golem/reconcilers"
	"golem/state"
)

// A Style says how text for people is laid out.
type Style struct {
	Color bool
	Width int // columns; 0: no limit, as in a pipe
}

// A Printer writes text for people. Its colours are the sixteen that every terminal
// has, whatever its background.
type Printer struct {
	w     io.Writer
	style Style
	marks map[state.Op]lipgloss.Style
	bold  lipgloss.Style
	faint lipgloss.Style
	good  lipgloss.Style
	bad   lipgloss.Style
	warn  lipgloss.Style
}

// NewPrinter makes a printer for a stream.
func NewPrinter(w io.Writer, style Style) *Printer {
	r := lipgloss.NewRenderer(w)
	r.SetHasDarkBackground(true) // asked for, it would wait for a terminal that may not answer
	if style.Color {
		r.SetColorProfile(termenv.ANSI)
	} else {
		r.SetColorProfile(termenv.Ascii)
	}
	color := func(c string) lipgloss.Style { return r.NewStyle().Foreground(lipgloss.Color(c)) }
	return &Printer{
		w: w, style: style, bold: r.NewStyle().Bold(style.Color), faint: r.NewStyle().Faint(style.Color),
		good: color("2"), bad: color("1"), warn: color("3"),
		marks: map[state.Op]lipgloss.Style{
			state.Install: color("2"), state.Replace: color("3"), state.Repair: color("6"), state.Remove: color("1"),
		},
	}
}

// Printf writes text for people.
func (out *Printer) Printf(format string, args ...any) error {
	_, err := fmt.Fprintf(out.w, format, args...)
	return err
}

// Say writes a sentence, broken at spaces where a line ends.
func (out *Printer) Say(format string, args ...any) error {
	return out.Printf("%s\n", strings.Join(Wrap(fmt.Sprintf(format, args...), out.wrapAt(0)), "\n"))
}

// Bold, Good, Bad and Warn dress a text for what it says.
func (out *Printer) Bold(s string) string { return out.bold.Render(s) }

// Good is for what ended well.
func (out *Printer) Good(s string) string { return out.good.Render(s) }

// Bad is for what failed.
func (out *Printer) Bad(s string) string { return out.bad.Render(s) }

// Warn is for what a person should see before going on.
func (out *Printer) Warn(s string) string { return out.warn.Render(s) }

// Faint is for what need not be read.
func (out *Printer) Faint(s string) string { return out.faint.Render(s) }

// Columns is the width to wrap at from a column; 0 for no limit.
func (out *Printer) Columns(from int) int { return out.wrapAt(from) }

// Mark is the sign of an op.
func Mark(op state.Op) string {
	switch op {
	case state.Install:
		return "+"
	case state.Replace:
		return "~"
	case state.Repair:
		return "!"
	case state.Remove:
		return "-"
	}
	return " "
}

// Text writes a plan as a person reads it.
func (p *Plan) Text(out *Printer) error { return p.View().Text(out) }

func (r *Recovery) sentence() string {
	if r.Owed {
		return fmt.Sprintf("An earlier run could not take back %s in %s. First, that is tried again.",
			count(len(r.Keys), "glyph", "glyphs"), strings.Join(r.Leaves, ", "))
	}
	return fmt.Sprintf("An %s of %s was interrupted. First, what it left unfinished is taken back: %s in %s.",
		r.Command, r.Started, count(len(r.Keys), "glyph", "glyphs"), strings.Join(r.Leaves, ", "))
}

// Count says how many of something there are.
func Count(n int, one, many string) string { return count(n, one, many) }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// leaf writes one leaf's changes; a leaf without any is not mentioned.
func (out *Printer) leaf(b *strings.Builder, leaf LeafView) {
	changes := leaf.Changes
	if len(changes) == 0 {
		return
	}
	title := out.bold.Render(Printable(leaf.Path))
	if leaf.Gone {
		title += " (no longer declared)"
	}
	fmt.Fprintf(b, "\n%s\n", title)
	width := 0
	for _, c := range changes {
		width = max(width, runewidth.StringWidth(Printable(string(c.Key))))
	}
	for _, c := range changes {
		out.change(b, c, min(width, maxKeyColumn))
	}
}

// maxKeyColumn keeps one long key from pushing every op off the screen.
const maxKeyColumn = 40

// wrapAt returns the width to wrap text at, from a column.
func (out *Printer) wrapAt(column int) int {
	if out.style.Width == 0 {
		return 0
	}
	return max(out.style.Width-column, 24)
}

// change writes one glyph's part: mark, key, op, reason, and the diff beneath.
func (out *Printer) change(b *strings.Builder, c reconcilers.Change, width int) {
	key := Printable(string(c.Key))
	op := string(c.Op)
	if c.Op == state.Remove && c.Effect == reconcilers.EffectForget {
		op = "forget"
	}
	mark := out.marks[c.Op]
	const opColumn, indent = 9, 6
	head := "  " + mark.Render(Mark(c.Op)) + " "
	reason := Printable(c.Reason)
	column := 4 + max(width, runewidth.StringWidth(key)) + 2 + opColumn
	if wide := out.style.Width; wide == 0 || column+runewidth.StringWidth(reason) <= wide {
		b.WriteString(strings.TrimRight(head+pad(key, width)+"  "+mark.Render(pad(op, opColumn))+reason, " ") + "\n")
	} else {
		// What does not fit beside the key stands beneath it, at full width.
		if 4+max(width, runewidth.StringWidth(key))+2+len(op) <= wide {
			fmt.Fprintf(b, "%s%s  %s\n", head, pad(key, width), mark.Render(op))
		} else {
			fmt.Fprintf(b, "%s%s\n%s%s\n", head, out.hanging(key, 4, indent), strings.Repeat(" ", indent), mark.Render(op))
		}
		for _, line := range Wrap(reason, out.wrapAt(indent)) {
			fmt.Fprintf(b, "%s%s\n", strings.Repeat(" ", indent), line)
		}
	}
	for _, no := range c.Irreversible {
		fmt.Fprintf(b, "      %s\n", out.warn.Render("cannot be undone: "+Printable(no)))
	}
	out.diff(b, c)
}

// maxDiffLines is how much of one diff the text shows; JSON has it all.
const maxDiffLines = 60

// diff writes a unified diff, cut to the terminal's width.
func (out *Printer) diff(b *strings.Builder, c reconcilers.Change) {
	if c.Secret && c.Effect == reconcilers.EffectWrite {
		b.WriteString("      (secret)\n")
	}
	if c.Diff == "" {
		return
	}
	lines := strings.Split(strings.TrimSuffix(c.Diff, "\n"), "\n")
	hunks := strings.Count("\n"+c.Diff, "\n@@ ")
	for i, line := range lines {
		if i == maxDiffLines {
			fmt.Fprintf(b, "      %s\n", out.faint.Render(fmt.Sprintf("… %d more lines; --json has them all", len(lines)-i)))
			return
		}
		if strings.HasPrefix(line, "@@ ") && hunks == 1 {
			continue
		}
		line = out.clip(strings.ReplaceAll(line, "\t", "    "), 6)
		switch {
		case strings.HasPrefix(line, "+"):
			line = out.good.Render(line)
		case strings.HasPrefix(line, "-"):
			line = out.bad.Render(line)
		case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, `\`):
			line = out.faint.Render(line)
		}
		b.WriteString(strings.TrimRight("      "+line, " ") + "\n")
	}
}

// clip cuts a line that would wrap, and says so.
func (out *Printer) clip(line string, indent int) string {
	if out.style.Width == 0 || runewidth.StringWidth(line) <= out.style.Width-indent {
		return line
	}
	return runewidth.Truncate(line, out.style.Width-indent, "…")
}

// byProducts names what golem made or brought beside its glyphs, and what becomes of it
// now.
func (out *Printer) byProducts(b *strings.Builder, all []ByProductView) {
	lines := map[string][]string{}
	for _, p := range all {
		lines[p.Sort] = append(lines[p.Sort], fmt.Sprintf("  %s %s", out.marks[p.Op].Render(Mark(p.Op)), out.beside(Printable(p.Resource), p.Why, 4)))
	}
	for _, sort := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(b, "\n%s\n%s\n", reconcilers.ByProductTitle(sort), strings.Join(lines[sort], "\n"))
	}
}

// runs names what runs because something else changes.
func (out *Printer) runs(b *strings.Builder, runs []RunView) {
	if len(runs) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", out.bold.Render("Triggered"))
	for _, r := range runs {
		fmt.Fprintf(b, "  %s %s\n", out.good.Render(r.Action), out.beside(Printable(string(r.Key)), Printable(r.Reason), 3+len(r.Action)))
	}
}

// warnings repeats what cannot be taken back, where it cannot be overlooked.
func (out *Printer) warnings(b *strings.Builder, leaves []LeafView) {
	var lines []string
	for _, leaf := range leaves {
		for _, c := range leaf.Changes {
			for _, no := range c.Irreversible {
				lines = append(lines, "  "+out.beside(Printable(string(c.Key)), Printable(no), 2))
			}
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(b, "\n%s\n%s\n", out.warn.Render("Cannot be undone"), strings.Join(lines, "\n"))
	}
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(width-runewidth.StringWidth(s), 0))
}

// Printable escapes what could move the cursor or forge a line.
func Printable(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || isBidi(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size <= 1 {
			fmt.Fprintf(&b, `\x%02x`, s[i])
		} else if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || isBidi(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// isBidi says that a rune changes the direction in which others are shown.
func isBidi(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f
}
