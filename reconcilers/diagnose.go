package reconcilers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Diagnostic is what was found out about a failure while it lay there, before
// anything was taken back.
type Diagnostic struct {
	Kind  string   `json:"kind"` // status, log, stderr
	Of    string   `json:"of"`   // the unit, or the command in a few words
	Lines []string `json:"lines"`
}

// maxDiagnosticLines is how many lines of one diagnostic are kept: the last.
const maxDiagnosticLines = 20

// Diagnose parts an error into its cause, which is one line wherever that can be, and
// what was found out about it.
func Diagnose(err error) (cause string, found []Diagnostic) {
	cause = err.Error()
	var unit *BrokenUnitError
	var failed *CommandError
	if errors.As(err, &unit) {
		brief := *unit
		brief.Lines = nil
		cause = strings.Replace(cause, unit.Error(), brief.Error(), 1)
		if unit.Result != "" {
			found = append(found, Diagnostic{"status", unit.Unit, []string{unit.Result}})
		}
		if len(unit.Lines) > 0 {
			found = append(found, Diagnostic{"log", unit.Unit, unit.Lines})
		}
	}
	if errors.As(err, &failed) && failed.Said != "" {
		lines := said(failed.Said)
		if apt := (*AptError)(nil); errors.As(err, &apt) {
			lines = slices.DeleteFunc(lines, isNoise)
		}
		if len(lines) > 0 {
			found = append(found, Diagnostic{"stderr", failed.brief(), lines})
		}
		if len(lines) > 1 {
			cause = strings.Replace(cause, failed.Error(), fmt.Sprintf("run %s: %s", failed.Argv[0], failed.Err), 1)
		}
	}
	return cause, found
}

func (e *CommandError) brief() string { return Command{Argv: e.Argv, Secret: e.Secret}.Brief() }

// said are the last lines of what a program said that hold anything.
func said(text string) []string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimRight(line, "\r \t"); line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-maxDiagnosticLines):]
}
