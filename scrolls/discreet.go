package scrolls

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Discreet takes out of a text what it has of the glyph's sensitive values.
func (g *Glyph) Discreet(text string) string {
	if g == nil || len(g.Secret) == 0 {
		return text
	}
	var values []string
	for _, name := range g.Secret {
		values = append(values, textsOf(g.Attrs[name])...)
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) }) // one may be a part of another
	for _, value := range values {
		quoted := strconv.Quote(value)
		text = replaceWord(text, quoted[1:len(quoted)-1], hidden)
		text = replaceWord(text, value, hidden)
	}
	return text
}

// textsOf are the texts and numbers in a value.
func textsOf(value any) []string {
	switch v := value.(type) {
	case string:
		return []string{v}
	case json.Number:
		return []string{v.String()}
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, textsOf(one)...)
		}
		return all
	case map[string]any:
		var all []string
		for name, one := range v {
			all = append(all, name)
			all = append(all, textsOf(one)...)
		}
		return all
	}
	return nil
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
