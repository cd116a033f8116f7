package entry

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A tomlTime is a date or time, which no other plain value equals.
type tomlTime string

// hasTime says whether a date or time is in a value.
func hasTime(v any) bool {
	switch v := v.(type) {
	case tomlTime:
		return true
	case []any:
		return slices.ContainsFunc(v, hasTime)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), hasTime)
	}
	return false
}

// plainTOML turns what the library reads into plain values.
func plainTOML(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, x := range v {
			m[k] = plainTOML(x)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, x := range v {
			list[i] = plainTOML(x)
		}
		return list
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case float64:
		return json.Number(strconv.FormatFloat(v, 'g', -1, 64))
	case string, bool:
		return v
	}
	return tomlTime(fmt.Sprint(v))
}

// spellTOML implements dialect.spell.
func spellTOML(s *sheet, value any, old *row) (string, error) {
	was := ""
	if old != nil {
		was = s.raw(*old)
	}
	return tomlSpell(value, was)
}

// tomlSpell spells a value. Of the one that it replaces it takes the quotes, and that a
// number is a fraction.
func tomlSpell(value any, was string) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", refuse("TOML has no null; to be rid of a key, declare it absent")
	case bool:
		return strconv.FormatBool(v), nil
	case json.Number:
		return tomlNumber(v, was)
	case string:
		if strings.HasPrefix(was, "'") && !strings.HasPrefix(was, "''") && !strings.ContainsFunc(v, func(c rune) bool { return c == '\'' || c < ' ' && c != '\t' || c == 0x7f }) {
			return "'" + v + "'", nil
		}
		return tomlQuote(v), nil
	case []any:
		return tomlList(v)
	case map[string]any:
		return tomlTable(v)
	}
	return "", refuse("a value of the type %T cannot be written in TOML", value)
}

func tomlNumber(v json.Number, was string) (string, error) {
	text := v.String()
	if strings.ContainsAny(text, ".eE") {
		return text, nil
	}
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		return "", refuse("the number %s is beyond the 64 bits that TOML promises", text)
	}
	fraction := strings.ContainsAny(was, ".eE") && !strings.HasPrefix(was, "0x") && !strings.ContainsAny(was, "\"'[{:")
	if _, err := strconv.ParseFloat(strings.ReplaceAll(was, "_", ""), 64); fraction && err == nil {
		return text + ".0", nil // a reader that wants a fraction there gets one
	}
	return text, nil
}

// tomlKind names what a value is; lists of several kinds are refused by many readers.
func tomlKind(v any) string {
	switch v := v.(type) {
	case bool:
		return "truth value"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") || strings.ContainsAny(v.String(), "nN") {
			return "fraction"
		}
		return "whole number"
	case string:
		return "text"
	case tomlTime:
		return "time"
	case []any:
		return "list"
	case map[string]any:
		return "table"
	}
	return "null"
}

func tomlList(list []any) (string, error) {
	var items []string
	for i, x := range list {
		if a, b := tomlKind(list[0]), tomlKind(x); a != b && x != nil {
			return "", refuse("a list in TOML holds values of one kind; the first is a %s, number %d a %s", a, i+1, b)
		}
		item, err := tomlSpell(x, "")
		if err != nil {
			return "", err
		}
		items = append(items, item)
	}
	return "[" + strings.Join(items, ", ") + "]", nil
}

func tomlTable(m map[string]any) (string, error) {
	var items []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		item, err := tomlSpell(m[name], "")
		if err != nil {
			return "", err
		}
		items = append(items, tomlBare(name)+" = "+item)
	}
	if len(items) == 0 {
		return "{}", nil
	}
	return "{ " + strings.Join(items, ", ") + " }", nil
}

// tomlBare spells a name of a key, without quotes where it can stand so.
func tomlBare(name string) string {
	bare := name != ""
	for _, c := range name {
		bare = bare && (c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z')
	}
	if bare {
		return name
	}
	return tomlQuote(name)
}

func tomlQuote(text string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			out.WriteByte('\\')
			out.WriteRune(c)
		case c == '\n':
			out.WriteString(`\n`)
		case c == '\t':
			out.WriteString(`\t`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&out, `\u%04X`, c)
		default:
			out.WriteRune(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}

// dottedTOML spells names as a key.
func dottedTOML(names []string) string {
	spelled := make([]string, len(names))
	for i, n := range names {
		spelled[i] = tomlBare(n)
	}
	return strings.Join(spelled, ".")
}
