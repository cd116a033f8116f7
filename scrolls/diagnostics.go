package scrolls

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
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
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "\n")
}

// Write shows the mistakes with file, line and snippet, wrapped at width columns. What
// could steer a terminal is shown as "?", whoever wrote it.
func (d *Diagnostics) Write(w io.Writer, width uint, color bool) error {
	files := map[string]*hcl.File{}
	for name, file := range d.Files {
		if file != nil {
			shown := *file
			shown.Bytes = printable(file.Bytes)
			files[string(printable([]byte(name)))] = &shown
		}
	}
	all := make(hcl.Diagnostics, len(d.All))
	for i, one := range d.All {
		shown := *one
		shown.Summary = string(printable([]byte(one.Summary)))
		shown.Detail = string(printable([]byte(one.Detail)))
		shown.Subject, shown.Context = shownAt(one.Subject), shownAt(one.Context)
		all[i] = &shown
	}
	return hcl.NewDiagnosticTextWriter(w, files, width, color).WriteDiagnostics(all)
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
