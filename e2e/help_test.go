package e2e

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestHelpFitsATerminal: the help of every command, and of every command beneath one, is
// at most 80 columns wide.
func TestHelpFitsATerminal(t *testing.T) {
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	var walk func(words ...string)
	walk = func(words ...string) {
		seen++
		out, err := exec.Command(bin, append(words, "--help")...).Output()
		if err != nil {
			t.Fatalf("golem %v --help: %v", words, err)
		}
		listed := false
		for line := range strings.Lines(string(out)) {
			line = strings.TrimRight(line, "\n")
			if n := utf8.RuneCountInString(line); n > 80 {
				t.Errorf("golem %v --help has a line of %d columns: %s", words, n, line)
			}
			name, _, more := strings.Cut(strings.TrimPrefix(line, "   "), " ")
			switch {
			case strings.HasPrefix(line, "COMMANDS:"):
				listed = true
			case !strings.HasPrefix(line, "   "):
				listed = false
			case listed && more && len(words) < 2 && !strings.HasPrefix(name, " ") && name != "":
				walk(append(words[:len(words):len(words)], strings.TrimSuffix(name, ","))...)
			}
		}
	}
	walk()
	if seen < 15 {
		t.Errorf("it saw the help of %d commands", seen)
	}
}
