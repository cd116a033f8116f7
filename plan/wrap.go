package plan

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// Wrap breaks text at spaces so that no line is wider than width; 0 is no limit. A
// word that is wider is cut.
func Wrap(text string, width int) []string {
	if width == 0 || runewidth.StringWidth(text) <= width {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && runewidth.StringWidth(line)+1+runewidth.StringWidth(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		pieces := fold(word, width)
		lines = append(lines, pieces[:len(pieces)-1]...)
		line += pieces[len(pieces)-1]
	}
	return append(lines, line)
}

// Lines makes text that may have several lines printable, line by line, and wraps each.
// The last line's end is no line.
func Lines(text string, width int) []string {
	var lines []string
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		lines = append(lines, Wrap(Printable(line), width)...)
	}
	return lines
}

// fold cuts text into lines of at most width columns, wherever that falls: nothing is
// added or dropped, so that the parts put together are the text. 0 is no limit.
func fold(text string, width int) []string {
	var lines []string
	for width > 0 && runewidth.StringWidth(text) > width {
		head := runewidth.Truncate(text, width, "")
		if head == "" {
			break // a sign that is wider than the line
		}
		lines = append(lines, head)
		text = text[len(head):]
	}
	return append(lines, text)
}

// hanging folds a text that begins at one column and goes on at another.
func (out *Printer) hanging(text string, first, rest int) string {
	at := out.wrapAt(max(first, rest))
	return strings.Join(fold(text, at), "\n"+strings.Repeat(" ", rest))
}

// beside writes a thing that begins at a column, and a word on it: beside it, or where
// that is too wide, beneath it.
func (out *Printer) beside(thing, word string, column int) string {
	wide := out.style.Width
	if wide == 0 || column+runewidth.StringWidth(thing)+2+runewidth.StringWidth(word) <= wide {
		return thing + "  " + word
	}
	indent := column + 2
	beneath := "\n" + strings.Repeat(" ", indent)
	return out.hanging(thing, column, indent) + beneath + strings.Join(Wrap(word, out.wrapAt(indent)), beneath)
}
