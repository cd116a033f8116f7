package scrolls

import (
	"bytes"
	"regexp"
)

// badSyntax marks a diagnostic of text that could not be read: what is sensitive in it is not
// known for sure.
type badSyntax struct{}

var (
	// secretWord is what says of a block, or of a value in it, that it is sensitive.
	secretWord = regexp.MustCompile(`\b(sensitive|password)\b`)
	// labelled begins a block that may say so: those within it have no labels.
	labelled = regexp.MustCompile(`^[ \t]*(locals|[A-Za-z_][\w-]*([ \t]+("[^"]*"|[\w-]+))+)[ \t]*\{[ \t]*`)
	// opening is how a line ends behind which a heredoc begins.
	opening = regexp.MustCompile(`<<-?([A-Za-z_][\w-]*)[ \t]*$`)
	// argument is a line as far as its value.
	argument = regexp.MustCompile(`^[ \t]*([A-Za-z_][\w-]*[ \t]*=)?[ \t]*`)
	// harmless is what may be shown in the place of a value.
	harmless = regexp.MustCompile(`^(true|false|[\[\](){},]*)$`)
)

// unreadable are the veils over the lines between two places that could not be read. Where
// the block that they stand in speaks of what is sensitive, no value is shown.
func unreadable(src []byte, start, end int) []veil {
	lines := linesOf(src)
	first, last, near := 0, 0, false
	for i, l := range lines {
		if l.begins && l.from <= start {
			first = i
		}
		if l.from < end {
			last = i
		}
	}
	for i := first; i < len(lines) && (i <= last || !lines[i].begins); i++ {
		near = near || secretWord.Match(lines[i].text)
	}
	if !near {
		return nil
	}
	var all []veil
	for _, l := range lines[first : last+1] {
		shown := argument.Find(l.text)
		if l.begins {
			shown = labelled.Find(l.text)
		}
		from := len(shown)
		rest := bytes.TrimSpace(l.text[from:])
		if harmless.Match(rest) {
			continue
		}
		at := veil{max(l.from+from, start), min(l.from+from+len(rest), end)}
		if at.from < at.to {
			all = append(all, at)
		}
	}
	return all
}

// A sourceLine is one line of a file, where it is, and whether a block with labels begins
// on it.
type sourceLine struct {
	from   int
	text   []byte
	begins bool
}

// linesOf parts a file into lines. What stands in a heredoc begins no block.
func linesOf(src []byte) []sourceLine {
	var all []sourceLine
	at, until := 0, ""
	for text := range bytes.Lines(src) {
		l := sourceLine{from: at, text: bytes.TrimRight(text, "\r\n")}
		at += len(text)
		if until != "" {
			if string(bytes.TrimSpace(l.text)) == until {
				until = ""
			}
		} else {
			l.begins = labelled.Match(l.text)
			if found := opening.FindSubmatch(l.text); found != nil {
				until = string(found[1])
			}
		}
		all = append(all, l)
	}
	return all
}
