package reconcilers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"golem/reconcilers/entry"
	"golem/scrolls"
)

// entrySteps reads a key; why says what is wrong with it.
func entrySteps(a scrolls.Attrs) (steps []entry.Step, why string) {
	switch key := a["key"].(type) {
	case string:
		if key == "" {
			return nil, `The key is empty. Write a list, ["", "name"], for a name before the first section of an INI file.`
		}
		for name := range strings.SplitSeq(key, ".") {
			if name == "" {
				return nil, fmt.Sprintf("%q is split at its dots and has an empty step. Write a list where a step holds a dot or is empty: [\"a.b\", \"c\"].", key)
			}
			steps = append(steps, entry.Step{Name: name})
		}
	case []any:
		for i, step := range key {
			switch step := step.(type) {
			case string:
				steps = append(steps, entry.Step{Name: step})
			case json.Number:
				n, err := strconv.Atoi(string(step))
				if err != nil || n < 0 {
					return nil, fmt.Sprintf("Step %d is %s. The members of a list are numbered from 0.", i+1, step)
				}
				steps = append(steps, entry.Step{Index: n, Place: true})
			default:
				return nil, fmt.Sprintf("Step %d is neither a name nor a number.", i+1)
			}
		}
	default:
		return nil, `A key is a string, like "a.b", or a list of steps, like ["a", 0, "b.c"].`
	}
	return steps, ""
}

// stepTexts are the steps of a key as text.
func stepTexts(a scrolls.Attrs) []string {
	steps, _ := entrySteps(a)
	texts := make([]string, len(steps))
	for i, step := range steps {
		if texts[i] = step.Name; step.Place {
			texts[i] = strconv.Itoa(step.Index)
		}
	}
	return texts
}

// memberText spells a member in a key: a string as it is, unless it could be taken for
// another value; everything else as JSON.
func memberText(v any) string {
	if text, ok := v.(string); ok && !json.Valid([]byte(text)) {
		return text
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("spell a member: %v", err)) // attributes hold only what JSON has
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func entryIdentity(a scrolls.Attrs) []string {
	parts := []string{str(a, "path"), strings.Join(stepTexts(a), "\x00")}
	if n := wholeNumber(a, "document", 0); n > 0 {
		parts = append(parts, "document "+strconv.Itoa(n))
	}
	if member, ok := a["member"]; ok {
		parts = append(parts, memberText(member))
	}
	return parts
}

// entryKey spells the key: entry:/p:a.b.c, entry:/p:a.b.c:[MEMBER]. Another document than
// the first stands before the steps.
func entryKey(a scrolls.Attrs) scrolls.Key {
	parts := []string{str(a, "path")}
	if n := wholeNumber(a, "document", 0); n > 0 {
		parts = append(parts, "document "+strconv.Itoa(n))
	}
	key := scrolls.MakeKey("entry", parts...).Steps(stepTexts(a)...)
	if member, ok := a["member"]; ok {
		key = key.Member(memberText(member))
	}
	return key
}

// canonicalEntry has one spelling of every key, and the format that is meant.
func canonicalEntry(a scrolls.Attrs) scrolls.Attrs {
	c := lessAttrs(a, "validate")
	if steps, why := entrySteps(a); why == "" {
		list := make([]any, len(steps))
		for i, step := range steps {
			if list[i] = step.Name; step.Place {
				list[i] = json.Number(strconv.Itoa(step.Index))
			}
		}
		c["key"] = list
	}
	c["format"] = formatOf(a)
	if gone := boolOf(a, "absent"); gone != nil && !*gone {
		delete(c, "absent")
	}
	if wholeNumber(a, "document", 0) == 0 {
		delete(c, "document")
	}
	return c
}
