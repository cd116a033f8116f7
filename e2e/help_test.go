package e2e

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestHelpFitsATerminal: the help of every command is at most 80 columns wide.
func TestHelpFitsATerminal(t *testing.T) {
	for _, name := range append(commands(t), "") {
		help := call{}.must(t, 0, append(strings.Fields(name), "--help")...).stdout
		for line := range strings.Lines(help) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("golem %s --help has a line of %d columns: %s", name, n, line)
			}
		}
	}
}
