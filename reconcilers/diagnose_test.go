package reconcilers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// What a program says is told as far as somebody can read it, the first and the last of
// each line.
func TestWhatAProgramSaysIsBounded(t *testing.T) {
	long := "first " + strings.Repeat("ä ", 5000) + "last"
	failed := &CommandError{Argv: []string{"sh"}, Code: 3, Said: long, Err: errors.New("exit status 3")}
	for _, text := range []string{failed.Error(), fmt.Sprint(Diagnose(&CheckError{"command", failed}))} {
		if n := len([]rune(text)); n > 3*maxDiagnosticWidth || !strings.Contains(text, "run sh: first ä") || !strings.Contains(text, "ä last") {
			t.Errorf("%d runes: %.60s", n, text)
		}
	}
	failed.Said = strings.Repeat(long+"\n", 5000)
	if n := len([]rune(failed.Error())); n > (maxDiagnosticLines+1)*maxDiagnosticWidth {
		t.Errorf("of many lines, %d runes", n)
	}
	failed.Said = "first\nlast\n"
	if text := failed.Error(); text != "run sh: first\nlast" {
		t.Errorf("it says %q", text)
	}
}
