package reconcilers

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"iter"
	"regexp"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"golem/reconcilers/entry"
	"golem/scrolls"
)

// A row is one line of a text: from start to stop is what it says, from stop to end its
// ending. A byte order mark before the first line is no part of it.
type row struct{ start, stop, end int }

// rows are the lines of a text, numbered from 0.
func rows(content []byte) iter.Seq2[int, row] {
	return func(yield func(int, row) bool) {
		from := 0
		if bytes.HasPrefix(content, bom) {
			from = len(bom)
		}
		for n := 0; from < len(content); n++ {
			r := row{start: from, stop: len(content), end: len(content)}
			if i := bytes.IndexByte(content[from:], '\n'); i >= 0 {
				r.stop, r.end = from+i, from+i+1
			}
			if r.stop > r.start && content[r.stop-1] == '\r' {
				r.stop--
			}
			if !yield(n, r) {
				return
			}
			from = r.end
		}
	}
}

// rowsWith are the lines of a text that hold one of two words somewhere, in their order. Other
// lines are not looked at.
func rowsWith(content, word, other []byte) iter.Seq[row] {
	next := func(word []byte, from int) int {
		if i := bytes.Index(content[from:], word); i >= 0 {
			return from + i
		}
		return len(content)
	}
	return func(yield func(row) bool) {
		from, a, b := 0, next(word, 0), next(other, 0)
		for at := min(a, b); at < len(content); at = min(a, b) {
			r := row{start: from + bytes.LastIndexByte(content[from:at], '\n') + 1, stop: len(content), end: len(content)}
			if r.start == 0 && bytes.HasPrefix(content, bom) {
				r.start = len(bom)
			}
			if i := bytes.IndexByte(content[at:], '\n'); i >= 0 {
				r.stop, r.end = at+i, at+i+1
			}
			if r.stop > r.start && content[r.stop-1] == '\r' {
				r.stop--
			}
			if !yield(r) {
				return
			}
			if from = r.end; a < from {
				a = next(word, from)
			}
			if b < from {
				b = next(other, from)
			}
		}
	}
}

// rowNumber is the number, from 0, of the line that begins at an offset.
func rowNumber(content []byte, at int) int { return bytes.Count(content[:at], []byte("\n")) }

// countRows counts the lines of a text.
func countRows(content []byte) int {
	content = bytes.TrimPrefix(content, bom)
	n := bytes.Count(content, []byte("\n"))
	if len(content) > 0 && content[len(content)-1] != '\n' {
		n++
	}
	return n
}

// A spotted row is one with its number in its text, from 0.
type spotted struct {
	row
	n int
}

// matching lists the lines that a regular expression matches. Each is looked at on its
// own, without its ending.
func matching(content []byte, re *regexp.Regexp) []spotted {
	var all []spotted
	for n, r := range rows(content) {
		if re.Match(content[r.start:r.stop]) {
			all = append(all, spotted{r, n})
		}
	}
	return all
}

// equalRows lists the lines that say exactly a text.
func equalRows(content, text []byte) []spotted {
	if !bytes.Contains(content, text) {
		return nil
	}
	var all []spotted
	for n, r := range rows(content) {
		if bytes.Equal(content[r.start:r.stop], text) {
			all = append(all, spotted{r, n})
		}
	}
	return all
}

// rowHash names a line by what it says.
func rowHash(text []byte) string {
	h := fnv.New64a()
	_, _ = h.Write(text) // never fails (hash.Hash)
	return fmt.Sprintf("%016x", h.Sum64())
}

// headHashes names the texts that end at some offsets, and tailHashes those that begin at
// them; "" for one outside of the text. The offsets are in order.
func headHashes(content []byte, at []int) []string {
	h, last := fnv.New64a(), 0
	names := make([]string, len(at))
	for i, end := range at {
		if end < 0 || end > len(content) {
			continue
		}
		_, _ = h.Write(content[last:end])
		last, names[i] = end, fmt.Sprintf("%016x", h.Sum64())
	}
	return names
}

func tailHashes(content []byte, at []int) []string {
	sum, last := uint64(14695981039346656037), len(content) // FNV-1a, from the end
	names := make([]string, len(at))
	for i, start := range slices.Backward(at) {
		if start < 0 || start > len(content) {
			continue
		}
		for ; last > start; last-- {
			sum = (sum ^ uint64(content[last-1])) * 1099511628211
		}
		names[i] = fmt.Sprintf("%016x", sum)
	}
	return names
}

// rowAbove names the line that ends before an offset at which a line begins, and rowBelow
// the one that begins there; "-" for none.
func rowAbove(content []byte, at int) string {
	if at == 0 || at == len(bom) && bytes.HasPrefix(content, bom) {
		return "-"
	}
	line := bytes.TrimSuffix(content[:at], []byte("\n"))
	line = bytes.TrimPrefix(line[bytes.LastIndexByte(line, '\n')+1:], bom)
	return rowHash(bytes.TrimSuffix(line, []byte("\r")))
}

func rowBelow(content []byte, at int) string {
	if at >= len(content) {
		return "-"
	}
	line, _, _ := bytes.Cut(content[at:], []byte("\n"))
	return rowHash(bytes.TrimSuffix(line, []byte("\r")))
}

// where is the offset at which new lines go: behind every line that `after` matches, or
// before every line that `before` matches; where none does, where they were when they were
// last peeled off; else at the end.
func where(a scrolls.Attrs, content []byte, hint int) (int, error) {
	stood := -1
	if hint >= 0 && hint <= len(content) {
		stood = len(content) - hint
		if rest := content[stood:]; stood > 0 && bytes.HasPrefix(bytes.TrimPrefix(rest, []byte("\r")), []byte("\n")) && !startsLine(content, stood) {
			stood += bytes.IndexByte(rest, '\n') + 1
		}
		if stood < len(content) && !startsLine(content, stood) {
			stood = -1
		}
	}
	for _, attr := range []string{"before", "after"} {
		text, ok := a[attr].(string)
		if !ok {
			continue
		}
		re, err := regexp.Compile(text)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", attr, err) // checked when loaded
		}
		all := matching(content, re)
		switch {
		case len(all) == 0:
		case attr == "before" && stood >= 0 && stood <= all[0].start, attr == "after" && stood >= all[len(all)-1].end:
			return stood, nil
		case attr == "before":
			return all[0].start, nil
		default:
			return all[len(all)-1].end, nil
		}
	}
	if stood >= 0 {
		return stood, nil
	}
	return len(content), nil
}

// unplaced says where a line or block went if no line of the text gives it the place that it
// asks for.
func unplaced(a scrolls.Attrs, content []byte) string {
	for _, attr := range []string{"before", "after"} {
		text, ok := a[attr].(string)
		if !ok {
			continue
		}
		if re, err := regexp.Compile(text); err == nil && len(matching(content, re)) == 0 {
			return "note: no line matches " + attr + ", so it goes to the end"
		}
	}
	return ""
}

// insert puts whole lines at an offset, with the ending that the neighbours have.
func insert(content []byte, at int, lines ...[]byte) ([]byte, lineInverse) {
	end := ending(content, at)
	inv := lineInverse{Added: true}
	var out bytes.Buffer
	size := 2 * len(end)
	for _, line := range lines {
		size += len(line) + len(end)
	}
	out.Grow(len(content) + size)
	out.Write(content[:at])
	if !startsLine(content, at) {
		inv.Sep, inv.CR = end, bytes.HasSuffix(content[:at], []byte("\r"))
		out.WriteString(end)
	}
	inv.Prev = lineBefore(out.Bytes(), out.Len())
	if inv.Sep != "" {
		inv.Up = lineBefore(content, lastLine(content))
	}
	for _, line := range lines {
		out.Write(line)
		out.WriteString(end)
	}
	out.Write(content[at:])
	return out.Bytes(), inv
}

// cut takes the lines from start to end off again that insert put there.
func (inv lineInverse) cut(content []byte, start, end int) []byte {
	before := content[:start]
	if end == len(content) && inv.Sep != "" && (lineBefore(content, start) == inv.Prev || inv.Up != "" && lineBefore(content, lastLine(before)) == inv.Up) {
		before = trimSep(before, inv)
	}
	out := make([]byte, 0, len(before)+len(content)-end)
	return append(append(out, before...), content[end:]...)
}

// lastLine is where the last line of a text begins.
func lastLine(text []byte) int {
	return bytes.LastIndexByte(bytes.TrimSuffix(text, []byte("\n")), '\n') + 1
}

// withEnding gives every line of a text that ends another ending.
func withEnding(text []byte, end string) []byte {
	var out []byte
	for _, line := range bytes.SplitAfter(text, []byte("\n")) {
		says, ended := bytes.CutSuffix(line, []byte("\n"))
		if !ended {
			out = append(out, line...)
			continue
		}
		out = append(append(out, bytes.TrimSuffix(says, []byte("\r"))...), end...)
	}
	return out
}

// rowError says what is wrong with a line of the text, by its number from 0, and which
// attribute of the glyph that is about.
func rowError(attr, summary string, n int, format string, args ...any) error {
	return &AttrError{Attr: attr, Summary: summary, Err: &entry.PlaceError{Line: n + 1, Column: 1, Why: fmt.Sprintf(format, args...)}}
}

// checkRegexps says which of some attributes are no regular expressions.
func checkRegexps(a scrolls.Attrs, attrs ...string) []scrolls.Problem {
	var problems []scrolls.Problem
	for _, attr := range attrs {
		text, ok := a[attr].(string)
		if !ok {
			continue
		}
		if _, err := regexp.Compile(text); err != nil {
			problems = append(problems, scrolls.Problem{
				Attr: attr, Summary: "Not a regular expression",
				Detail: Sentence(err) + " In a string of HCL a backslash is written twice: \"\\\\s\".",
			})
		} else if text == "" {
			problems = append(problems, scrolls.Problem{
				Attr: attr, Summary: "Regular expression is empty", Detail: "An empty one matches every line. Leave it out, or write what the line looks like.",
			})
		}
	}
	return problems
}

// checkPlace says what is wrong with where new lines are to go.
func checkPlace(a scrolls.Attrs) []scrolls.Problem {
	if _, before := a["before"]; before {
		if _, after := a["after"]; after {
			return []scrolls.Problem{{Attr: "before", Summary: "Place given twice", Detail: "Both before and after say where it goes. Keep one."}}
		}
	}
	return nil
}

var (
	beforeAttr = scrolls.Attr{Name: "before", Type: cty.String, Doc: "A regular expression: it is put before every line that matches, where it is not there already. At the end where none does."}
	afterAttr  = scrolls.Attr{Name: "after", Type: cty.String, Doc: "A regular expression: it is put behind every line that matches, where it is not there already. At the end where none does."}
)
