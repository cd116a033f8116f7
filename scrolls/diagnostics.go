package scrolls

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Diagnostics are the mistakes in a scroll, each with its place. They are an error
// that is best shown with Write, which adds the lines they are about.
type Diagnostics struct {
	All   hcl.Diagnostics
	Files map[string]*hcl.File
}

// Error lists the mistakes, one a line.
func (d *Diagnostics) Error() string {
	lines := make([]string, 0, len(d.All))
	for _, one := range d.All {
		told := *one
		told.Detail = d.detail(one)
		lines = append(lines, told.Error())
	}
	return strings.Join(lines, "\n")
}

// maxShown is how many mistakes Write shows: one wrong variable can make thousands.
const maxShown = 100

// Write shows the mistakes with file, line and snippet, wrapped at width columns. What
// could steer a terminal is shown as "?", whoever wrote it.
func (d *Diagnostics) Write(w io.Writer, width uint, color bool) error {
	for _, one := range d.All[:min(len(d.All), maxShown)] {
		shown := *one
		shown.Summary = string(printable([]byte(one.Summary)))
		shown.Detail = string(printable([]byte(d.detail(one))))
		if one.Expression != nil && one.EvalContext != nil && longValues(one.Expression, one.EvalContext) {
			shown.Expression, shown.EvalContext = nil, nil
		}
		files := map[string]*hcl.File{}
		if one.Subject != nil {
			file := excerpt(d.Files[one.Subject.Filename], &shown)
			shown.Subject, shown.Context = shownAt(shown.Subject), shownAt(shown.Context)
			files[shown.Subject.Filename] = file
		}
		if err := hcl.NewDiagnosticTextWriter(w, files, width, color).WriteDiagnostic(&shown); err != nil {
			return err
		}
	}
	if more := len(d.All) - maxShown; more > 0 {
		if _, err := fmt.Fprintf(w, "%d more mistakes are not shown.\n\n", more); err != nil {
			return err
		}
	}
	return nil
}

// excerpt is the lines of a file that a diagnostic is about, on the lines that they
// are on, and moves the diagnostic there: the writer walks through the whole file for
// every diagnostic, letter by letter.
func excerpt(file *hcl.File, d *hcl.Diagnostic) *hcl.File {
	if file == nil {
		return nil
	}
	whole := *d.Subject
	if d.Context != nil && d.Context.Filename == whole.Filename {
		whole = hcl.RangeOver(whole, *d.Context)
	} else {
		d.Context = nil
	}
	src := file.Bytes
	if whole.Start.Byte < 0 || whole.Start.Byte > len(src) || whole.End.Byte < whole.Start.Byte || whole.Start.Line < 1 {
		return &hcl.File{Bytes: printable(src), Nav: file.Nav}
	}
	start := bytes.LastIndexByte(src[:whole.Start.Byte], '\n') + 1
	end := len(src)
	if last := min(whole.End.Byte, end); bytes.IndexByte(src[last:], '\n') >= 0 {
		end = last + bytes.IndexByte(src[last:], '\n') + 1
	}
	lines := bytes.Repeat([]byte("\n"), whole.Start.Line-1)
	first, last := start, end
	if start, end = clipped(src, start, end, whole.Start.Byte); start > first {
		lines = append(lines, "… "...)
	}
	by := len(lines) - start
	d.Subject, d.Context = moved(d.Subject, by, start, end), moved(d.Context, by, start, end)
	text := append(lines, printable(src[start:end])...)
	var nav any = movedNav{file.Nav, by}
	for _, veil := range veils(file, d, start, end) {
		text = veil.draw(text, by, d)
		if _, ok := d.Extra.(badSyntax); ok {
			nav = nil // a value may have been read for a label
		}
	}
	if end < last {
		text = append(bytes.TrimRight(text, "\r\n"), " …\n"...)
	}
	return &hcl.File{Bytes: text, Nav: nav}
}

const (
	maxSnippet     = 10  // lines
	maxSnippetText = 800 // bytes
	maxShownValue  = 200 // bytes of a text
)

// clipped is as much of the source between two places as a person reads, with what begins
// at a third.
func clipped(src []byte, start, end, from int) (int, int) {
	if from-start > maxSnippetText/2 {
		start = from - maxSnippetText/8
	}
	end = min(end, start+maxSnippetText)
	for start < from && !utf8.RuneStart(src[start]) {
		start++
	}
	for end > start && end < len(src) && !utf8.RuneStart(src[end]) {
		end--
	}
	at := start
	for range maxSnippet {
		next := bytes.IndexByte(src[at:end], '\n')
		if next < 0 {
			return start, end
		}
		at += next + 1
	}
	return start, at
}

// longValues says whether one of the values that an expression refers to is a long text:
// it would be shown whole.
func longValues(expr hcl.Expression, ctx *hcl.EvalContext) bool {
	return slices.ContainsFunc(expr.Variables(), func(traversal hcl.Traversal) bool {
		value, diags := traversal.TraverseAbs(ctx)
		value, _ = value.Unmark()
		return !diags.HasErrors() && value.Type() == cty.String && value.IsKnown() && !value.IsNull() && len(value.AsString()) > maxShownValue
	})
}

// moved is a place so many bytes further on, as far as it is between two places.
func moved(at *hcl.Range, by, start, end int) *hcl.Range {
	if at == nil {
		return nil
	}
	out := *at
	out.Start.Byte = min(max(out.Start.Byte, start), end) + by
	out.End.Byte = min(max(out.End.Byte, start), end) + by
	return &out
}

// movedNav tells which block an excerpt's byte is in.
type movedNav struct {
	of any
	by int
}

// ContextString is what the writer asks for.
func (n movedNav) ContextString(offset int) string {
	if of, ok := n.of.(interface{ ContextString(int) string }); ok {
		return string(printable([]byte(of.ContextString(offset - n.by))))
	}
	return ""
}

// shownAt is a place whose file name is printable.
func shownAt(at *hcl.Range) *hcl.Range {
	if at == nil {
		return nil
	}
	shown := *at
	shown.Filename = string(printable([]byte(at.Filename)))
	return &shown
}

// printable replaces what is no text or steers a terminal, byte by byte, so that places
// stay right.
func printable(src []byte) []byte {
	out := src
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size <= 1 || steers(r) && !bytes.HasPrefix(src[i:], []byte("\r\n")) {
			if &out[0] == &src[0] {
				out = bytes.Clone(src)
			}
			copy(out[i:i+size], "????")
		}
		i += size
	}
	return out
}

// steers says that a rune moves the cursor, or changes how others are shown.
func steers(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r < ' ', r >= 0x7f && r < 0xa0:
		return true
	}
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f
}

// A PlacedProblem is a problem at a place in the scroll.
type PlacedProblem struct {
	Problem
	At   Place
	Also *Place // the other of two that clash
}

// Diagnose makes diagnostics of problems that were found after the scroll was loaded.
func (s *Scroll) Diagnose(problems ...PlacedProblem) *Diagnostics {
	d := &Diagnostics{Files: s.Files}
	for _, p := range problems {
		d.All = append(d.All, p.diagnostics()...)
	}
	return d
}

// diagnostics is the problem, and for a clash a second diagnostic at the other place,
// so that both snippets are seen.
func (p PlacedProblem) diagnostics() hcl.Diagnostics {
	at := p.At
	one := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: p.Summary, Detail: p.Detail, Subject: &at}
	if at.Filename == "" { // a glyph of the journal stands in no file
		one.Subject = nil
		return hcl.Diagnostics{one}
	}
	if p.Also == nil {
		return hcl.Diagnostics{one}
	}
	also := *p.Also
	one.Detail = fmt.Sprintf("%s The other is at %s:%d.", p.Detail, also.Filename, also.Start.Line)
	other := &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: p.Summary + ": the other place",
		Detail: fmt.Sprintf("This is the one that %s:%d clashes with.", at.Filename, at.Start.Line), Subject: &also,
	}
	return hcl.Diagnostics{one, other}
}

// A Told is one mistake for a program that reads JSON.
type Told struct {
	Severity string     `json:"severity"` // error or warning
	Summary  string     `json:"summary"`
	Detail   string     `json:"detail"`
	Range    *ToldRange `json:"range"` // null where it has no place
}

// A ToldRange is where a mistake is, lines and columns from 1, bytes from 0.
type ToldRange struct {
	File  string  `json:"file"`
	Start ToldPos `json:"start"`
	End   ToldPos `json:"end"`
}

// A ToldPos is one end of a range.
type ToldPos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

// Told lists all mistakes for a program; of none an empty list.
func (d *Diagnostics) Told() []Told {
	all := []Told{}
	if d == nil {
		return all
	}
	for _, one := range d.All {
		t := Told{Severity: "error", Summary: one.Summary, Detail: d.detail(one)}
		if one.Severity == hcl.DiagWarning {
			t.Severity = "warning"
		}
		if at := one.Subject; at != nil {
			t.Range = &ToldRange{
				File: at.Filename, Start: ToldPos{at.Start.Line, at.Start.Column, at.Start.Byte}, End: ToldPos{at.End.Line, at.End.Column, at.End.Byte},
			}
		}
		all = append(all, t)
	}
	return all
}

// Sentence makes an error's text one, as a diagnostic's detail is.
func Sentence(err error) string {
	return upperFirst(err.Error()) + "."
}

// upperFirst makes the first letter a capital, unless the first word is a name.
func upperFirst(s string) string {
	word, _, _ := strings.Cut(s, " ")
	if s == "" || s[0] < 'a' || s[0] > 'z' || strings.ContainsAny(word, ".@_/\\") {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}

// quieter leaves out what only follows from an earlier mistake at the same place.
func quieter(diags hcl.Diagnostics) hcl.Diagnostics {
	var kept hcl.Diagnostics
	blamed := map[string]bool{}
	for _, d := range diags {
		if d.Subject != nil {
			place := d.Subject.String()
			if blamed[place] && d.Severity == hcl.DiagError {
				continue
			}
			blamed[place] = true
		}
		kept = append(kept, d)
	}
	return kept
}
