package scrolls

import (
	"fmt"
	"io"
	"strings"

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

// Write shows the mistakes with file, line and snippet, wrapped at width columns.
func (d *Diagnostics) Write(w io.Writer, width uint, color bool) error {
	return hcl.NewDiagnosticTextWriter(w, d.Files, width, color).WriteDiagnostics(d.All)
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
