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
	Of    string   `json:"of"`   // the unit or container, or the command in a few words
	Lines []string `json:"lines"`
}

const (
	maxDiagnosticLines = 20  // of one diagnostic: the last
	maxDiagnosticWidth = 400 // of one line, in runes
)

// Diagnose parts an error into its cause, which is one line wherever that can be, and
// what was found out about it.
func Diagnose(err error) (cause string, found []Diagnostic) {
	cause = err.Error()
	var unit *BrokenUnitError
	var failed *CommandError
	var pod *ContainerError
	if errors.As(err, &pod) {
		brief := *pod
		brief.Lines = nil
		cause = strings.Replace(cause, pod.Error(), brief.Error(), 1)
		if len(pod.Lines) > 0 {
			found = append(found, Diagnostic{"log", pod.Name, pod.Lines})
		}
	}
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

// said are the last lines of what a program said that hold anything, none of them endless.
func said(text string) []string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimRight(line, "\r \t"); line != "" {
			lines = append(lines, line)
		}
	}
	lines = lines[max(0, len(lines)-maxDiagnosticLines):]
	for i := range lines {
		lines[i] = shorten(lines[i])
	}
	return lines
}

// shorten takes the middle out of a line that is too long to read: a program says first
// what it is about, and last what is wrong.
func shorten(line string) string {
	if len(line) <= maxDiagnosticWidth {
		return line
	}
	runes := []rune(strings.ToValidUTF8(line, "\uFFFD"))
	if len(runes) <= maxDiagnosticWidth {
		return line
	}
	return string(runes[:maxDiagnosticWidth/2]) + " … " + string(runes[len(runes)-maxDiagnosticWidth/2+3:])
}
