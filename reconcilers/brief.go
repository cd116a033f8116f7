package reconcilers

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/mattn/go-runewidth"
)

const (
	briefNames = 3  // how many of what a command is about are named
	briefWidth = 60 // columns
)

// Brief is a command in a few words, for people who wait for it: the program, what it is
// told to do, and to what. Of a command that has a secret in it, only the program.
func (c Command) Brief() string {
	program := filepath.Base(c.Argv[0])
	if c.Secret {
		return program + " (secret)"
	}
	var words []string
	for i := 1; i < len(c.Argv); i++ {
		word := c.Argv[i]
		switch {
		case word == "-o" || word == "-f": // an option of apt's, a format of dpkg's
			i++
		case !strings.HasPrefix(word, "-"), strings.HasPrefix(program, "dpkg") && strings.HasPrefix(word, "--") && len(word) > 2:
			words = append(words, word) // dpkg is told what to do by an option
		}
	}
	if more := len(words) - 1 - briefNames; more > 1 {
		words = append(words[:1+briefNames], fmt.Sprintf("and %d more", more))
	}
	return runewidth.Truncate(strings.Join(append([]string{program}, words...), " "), briefWidth, "…")
}
