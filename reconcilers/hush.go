package reconcilers

import (
	"fmt"

	"golem/scrolls"
)

// Hush takes out of what a turn tells of its glyphs what is sensitive in them, as they were and as
// they are to be. Paths do that by themselves: what they tell of has no words of the glyph's.
func (t *Turn) Hush() {
	if t.Sort == PathSort {
		return
	}
	secrets := map[scrolls.Key][]string{}
	note := func(key scrolls.Key, g *scrolls.Glyph) {
		if g != nil && len(g.Secret) > 0 {
			secrets[key] = append(secrets[key], g.SecretTexts()...)
		}
	}
	for _, g := range t.Set {
		note(g.Key, g)
	}
	for key, g := range t.Drop {
		note(key, g)
	}
	if t.Step != nil {
		for i := range t.Step.Glyphs {
			part := &t.Step.Glyphs[i]
			note(part.Key, part.Old)
			note(part.Key, part.New)
			part.Reason = scrolls.Hush(part.Reason, secrets[part.Key])
		}
	}
	for i := range t.Changes {
		c := &t.Changes[i]
		hidden := secrets[c.Key]
		c.Reason, c.Diff = scrolls.Hush(c.Reason, hidden), scrolls.Hush(c.Diff, hidden)
		for i, text := range c.Irreversible {
			c.Irreversible[i] = scrolls.Hush(text, hidden)
		}
		hushIn(c.Before, hidden)
		hushIn(c.After, hidden)
	}
}

// omitSecret takes sensitive arguments out of what is shown of an object, before and after.
func omitSecret(c *Change, glyphs ...*scrolls.Glyph) {
	for _, g := range glyphs {
		if g == nil {
			continue
		}
		for _, name := range g.Secret {
			delete(c.Before, name)
			delete(c.After, name)
		}
	}
}

// hushIn hushes what is shown of an object.
func hushIn(view map[string]any, secrets []string) {
	for name, value := range view {
		view[name] = hushed(value, secrets)
	}
}

func hushed(value any, secrets []string) any {
	switch v := value.(type) {
	case string:
		return scrolls.Hush(v, secrets)
	case []string:
		all := make([]string, len(v))
		for i := range v {
			all[i] = scrolls.Hush(v[i], secrets)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = hushed(v[i], secrets)
		}
		return all
	case map[string]any:
		hushIn(v, secrets)
	case int, int64, float64, fmt.Stringer: // json.Number is one
		if text := fmt.Sprint(v); scrolls.Hush(text, secrets) != text {
			return scrolls.Hidden
		}
	}
	return value
}
