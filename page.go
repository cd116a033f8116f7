package main

import (
	"regexp"
	"strings"

	"golem/plan"
)

// fileMark is how a page says which file the text beneath it is of.
var fileMark = regexp.MustCompile(`^<!-- (before|after) (\S+) -->$`)

// pageAt lays a kind's page out for a terminal of so many columns: paragraphs and lists are
// wrapped between words, and each row of a table is an entry of its own.
func pageAt(page string, width int) string {
	var out, block []string
	flush := func() {
		out = append(out, laidOut(block, width)...)
		block = nil
	}
	fenced := false
	for _, line := range strings.Split(strings.TrimRight(page, "\n"), "\n") {
		mark := fileMark.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "```"):
			flush()
			fenced = !fenced
			out = append(out, line)
		case fenced, line == "", strings.HasPrefix(line, "#"):
			flush()
			out = append(out, line)
		case mark != nil:
			flush()
			out = append(out, mark[2]+", "+mark[1]+":")
		case strings.HasPrefix(line, "| "):
			flush()
			out = append(out, row(line, width)...)
		case strings.HasPrefix(line, "|-"):
		case strings.HasPrefix(line, "- "):
			flush()
			block = []string{line}
		default:
			block = append(block, line)
		}
	}
	flush()
	return strings.Join(out, "\n") + "\n"
}

// laidOut wraps a paragraph, or an item of a list.
func laidOut(block []string, width int) []string {
	if len(block) == 0 {
		return nil
	}
	lead, text := "", strings.Join(block, " ")
	if rest, ok := strings.CutPrefix(text, "- "); ok {
		lead, text = "- ", rest
	}
	lines := plan.Wrap(text, width-len(lead))
	for i := range lines {
		lines[i] = lead + lines[i]
		lead = strings.Repeat(" ", len(lead))
	}
	return lines
}

// row is a row of a table: its name with what is said of it in short, as an argument's type and
// default, and beneath what it is; nothing of the table's head, whose last cell is empty.
func row(line string, width int) []string {
	cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), "|"), " | ")
	last := strings.TrimSpace(cells[len(cells)-1])
	if last == "" {
		return nil
	}
	head := ""
	for i, cell := range cells[:len(cells)-1] {
		switch cell = strings.TrimSpace(cell); {
		case i == 0:
			head = cell + ":"
		case i == 1:
			head += " " + cell
		case strings.HasPrefix(cell, "`"):
			head += "; by default " + cell
		case cell != "":
			head += "; " + cell
		}
	}
	var out []string
	for i, line := range plan.Wrap(head, width-4) {
		out = append(out, strings.Repeat(" ", 4*min(i, 1))+line)
	}
	for _, line := range plan.Wrap(last, width-4) {
		out = append(out, "    "+line)
	}
	return out
}
