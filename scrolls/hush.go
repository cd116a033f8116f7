package scrolls

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Hidden stands for what is sensitive in what is told.
const Hidden = "(sensitive value)"

// Hush takes out of a text what it has of the glyph's sensitive arguments.
func (g *Glyph) Hush(text string) string {
	if g == nil || len(g.Secret) == 0 {
		return text
	}
	return Hush(text, g.SecretTexts())
}

// SecretTexts are the texts and numbers in a glyph's sensitive arguments, the longest first,
// since one may be a part of another. The names in a map, as those of variables, are not among
// them: what is wrong with which should still be read.
func (g *Glyph) SecretTexts() []string {
	var all []string
	for _, attr := range g.Secret {
		all = appendTexts(all, g.Attrs[attr])
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(all)
}

// appendTexts adds the texts in a value, the lines of one that has several, and what they are
// within quotes.
func appendTexts(all []string, value any) []string {
	switch v := value.(type) {
	case string:
		for _, text := range append(strings.Split(v, "\n"), v) {
			if text = strings.TrimSpace(text); text == "" {
				continue
			}
			all = append(all, text)
			if quoted := strconv.Quote(text); len(quoted) > len(text)+2 {
				all = append(all, quoted[1:len(quoted)-1])
			}
		}
	case json.Number:
		all = append(all, v.String())
	case []any:
		for _, one := range v {
			all = appendTexts(all, one)
		}
	case map[string]any:
		for _, one := range v {
			all = appendTexts(all, one)
		}
	}
	return all
}

// plainly is from what length on a secret is looked for within words, too.
const plainly = 8

// Hush takes secrets out of a text that is told to people: short ones only where they stand as a
// word, since what is left should still say something.
func Hush(text string, secrets []string) string {
	if text == "" {
		return text // most of what is told has no such part
	}
	for _, secret := range secrets {
		if len(secret) < plainly {
			text = replaceWord(text, secret, Hidden)
		} else {
			text = strings.ReplaceAll(text, secret, Hidden)
		}
	}
	return text
}

func replaceWord(text, what, with string) string {
	for at := 0; ; {
		next := Word(text[at:], what)
		if next < 0 {
			return text
		}
		text = text[:at+next] + with + text[at+next+len(what):]
		at += next + len(with)
	}
}

// Word is where a text has another, and not only as a part of a longer word; -1 for nowhere.
func Word(text, what string) int {
	within := func(c byte) bool {
		return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	for at := 0; what != ""; at++ {
		next := strings.Index(text[at:], what)
		if next < 0 {
			return -1
		}
		at += next
		end := at + len(what)
		longer := at > 0 && within(text[at-1]) && within(what[0]) || end < len(text) && within(text[end]) && within(what[len(what)-1])
		if !longer {
			return at
		}
	}
	return -1
}
