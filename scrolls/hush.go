package scrolls

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Hidden stands for what is sensitive in what is told.
const Hidden = "(sensitive value)"

// SecretTexts are the texts and numbers in a glyph's sensitive arguments, the longest first.
func (g *Glyph) SecretTexts() []string {
	var all []string
	for _, attr := range g.Secret {
		all = appendTexts(all, g.Attrs[attr])
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(all)
}

// appendTexts adds the texts in a value, and the lines of one that has several.
func appendTexts(all []string, value any) []string {
	switch v := value.(type) {
	case string:
		for _, text := range append(strings.Split(v, "\n"), v) {
			if text = strings.TrimSpace(text); text != "" {
				all = append(all, text)
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
	for _, secret := range secrets {
		if len(secret) < plainly {
			text = replaceWord(text, secret, Hidden)
		} else {
			text = strings.ReplaceAll(text, secret, Hidden)
		}
	}
	return text
}
