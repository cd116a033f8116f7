package reconcilers

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

const (
	briefNames = 3  // how many of what a command is about are named
	briefWidth = 60 // columns
)

// terse are the programs of golem's own steps, of which only what they are told to do and
// to what is worth a word: their options are always the same.
var terse = []string{"apt-get", "apt-cache", "apt-mark", "systemctl", "journalctl", "dpkg", "dpkg-query", "dpkg-deb"}

// Brief is a command in a few words, for people who wait for it. Of a command that has a
// secret in it, only the program.
func (c Command) Brief() string {
	program := filepath.Base(c.Argv[0])
	text := ""
	switch {
	case c.Secret:
		return program + " (secret)"
	case slices.Contains(terse, program):
		text = strings.Join(append([]string{program}, c.gist(program == "dpkg")...), " ")
	default:
		text = commandText(append([]string{program}, c.Argv[1:]...))
	}
	return runewidth.Truncate(text, briefWidth, "…")
}

// gist are the words that are no options; of dpkg, which is told what to do by an option,
// the long ones too.
func (c Command) gist(long bool) []string {
	var words []string
	for i := 1; i < len(c.Argv); i++ {
		word := c.Argv[i]
		switch {
		case word == "-o" || word == "-f": // an option of apt's, a format of dpkg's
			i++
		case !strings.HasPrefix(word, "-"), long && strings.HasPrefix(word, "--") && len(word) > 2:
			words = append(words, word)
		}
	}
	if more := len(words) - 1 - briefNames; more > 1 {
		words = append(words[:1+briefNames], fmt.Sprintf("and %d more", more))
	}
	return words
}
