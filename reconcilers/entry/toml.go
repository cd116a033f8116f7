package entry

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
)

// tomlFormat edits TOML: tables, lists of tables, dotted keys and inline tables. A statement
// is a row, so that most of an edit and of its way back is that of a text of lines; what
// lies within one value is found by the value's own members.
type tomlFormat struct{}

// tomlLines is TOML as rows.
var tomlLines = &dialect{
	parse:     parseTOML,
	sameBlock: func(_ *sheet, a, b string) bool { return a == b },
	sameKey:   func(_ *sheet, a, b string) bool { return a == b },
	spell:     spellTOML,
	pair:      pairTOML,
	ahead:     func(*sheet, int) int { return -1 },
	gap:       gapINI,
	loose:     looseTOML,
}

var placesTOML = regexp.MustCompile(`#[0-9]+`)

// looseTOML implements dialect.loose: a table of a list is another one by number when
// somebody puts one before it.
func looseTOML(name string) string { return placesTOML.ReplaceAllString(name, "#") }

// Put implements Format.
func (tomlFormat) Put(text []byte, w Wish) ([]byte, json.RawMessage, error) {
	if len(w.Steps) == 0 {
		return nil, nil, refuse("a key has at least one step")
	}
	s, err := tomlLines.read(text, target{})
	if err != nil {
		return nil, nil, err
	}
	before, err := readTOML(text)
	if err != nil {
		return nil, nil, err
	}
	if tomlHolds(before, w) {
		return text, nil, nil
	}
	m, err := (&tomlEdit{sheet: s, w: w, doc: before}).plan()
	if err != nil {
		return nil, nil, err
	}
	out := m.seal(text)
	m.Did = m.Ops[0].Do
	if in := m.Ops[0].Inner; in != nil {
		if m.Did = in.Do; in.Do == doMember {
			m.Did = doAdd
		}
	}
	if err := auditTOML(text, out, before, w, m); err != nil {
		return nil, nil, err
	}
	return out, encode(m), nil
}

// Peel implements Format.
func (f tomlFormat) Peel(text []byte, w Wish, receipt json.RawMessage) []byte {
	return tomlLines.peel(f, text, w, receipt)
}

// Check implements Checker.
func (tomlFormat) Check(w Wish) (attr, why string) {
	if w.Absent {
		return "", ""
	}
	_, err := tomlSpell(w.Value, "")
	return wrong(w, err)
}

// Holds implements Format.
func (tomlFormat) Holds(text []byte, w Wish) bool {
	if len(w.Steps) == 0 || bytes.IndexByte(text, 0) >= 0 {
		return false
	}
	doc, err := readTOML(text)
	return err == nil && tomlHolds(doc, w)
}

// tomlHolds says whether a wish is true of what a text says.
func tomlHolds(doc map[string]any, w Wish) bool {
	v, there := tomlGet(doc, w.Steps)
	return shows(v, there, w)
}

// tomlGet follows a key into plain values.
func tomlGet(v any, steps []Step) (any, bool) {
	for _, step := range steps {
		switch in := v.(type) {
		case map[string]any:
			x, ok := in[step.text()]
			if !ok {
				return nil, false
			}
			v = x
		case []any:
			i, ok := step.index()
			if !ok || i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// auditTOML checks that an edit does what it should and nothing more, as the library reads
// both texts.
func auditTOML(text, out []byte, before map[string]any, w Wish, m mark) error {
	where := m.Ops[0].At
	after, err := readTOML(out)
	if err != nil {
		return at(text, where, "it cannot be edited here: the result would not be readable: %v", err)
	}
	if !tomlHolds(after, w) {
		return at(text, where, "it cannot be edited here: the value would not be read back as it was written")
	}
	was, _ := tomlGet(before, w.Steps)
	now, _ := tomlGet(after, w.Steps)
	if w.Member && !sameValue(withoutOne(now, w.Value), listOf(was)) {
		return at(text, where, "it cannot be edited here without changing the list's other members")
	}
	if !reflect.DeepEqual(tomlWithout(before, w.Steps, true), tomlWithout(after, w.Steps, !w.Absent)) {
		return at(text, where, "it cannot be edited here without changing what lies beside it")
	}
	if !bytes.Equal(m.back(out), text) {
		return at(text, where, "it cannot be edited here: the way back would not be exact")
	}
	return nil
}

func listOf(v any) any {
	if v == nil {
		return []any{}
	}
	return v
}

// withoutOne is a list without the one member that equals a value.
func withoutOne(v, value any) any {
	list, _ := v.([]any)
	rest := []any{}
	gone := false
	for _, x := range list {
		if !gone && sameValue(x, value) {
			gone = true
			continue
		}
		rest = append(rest, x)
	}
	return rest
}

// tomlWithout is what a text says without a key (if drop says so), and without the tables
// and lists on the way that hold nothing else. It shares what it need not change.
func tomlWithout(v any, steps []Step, drop bool) any {
	if len(steps) == 0 {
		if drop || isEmpty(v) {
			return nil
		}
		return v
	}
	switch in := v.(type) {
	case map[string]any:
		rest := map[string]any{}
		for k, x := range in {
			if k == steps[0].text() {
				if x = tomlWithout(x, steps[1:], drop); x == nil {
					continue
				}
			}
			rest[k] = x
		}
		if len(rest) == 0 {
			return nil
		}
		return rest
	case []any:
		i, ok := steps[0].index()
		if !ok || i >= len(in) || len(steps) == 1 && !drop {
			break
		}
		rest := append([]any{}, in[:i]...)
		if x := tomlWithout(in[i], steps[1:], drop); x != nil || len(steps) > 1 && i < len(in)-1 {
			rest = append(rest, x)
		}
		rest = append(rest, in[i+1:]...)
		if len(rest) == 0 {
			return nil
		}
		return rest
	}
	if isEmpty(v) {
		return nil
	}
	return v
}

func isEmpty(v any) bool {
	switch in := v.(type) {
	case map[string]any:
		return len(in) == 0
	case []any:
		return len(in) == 0
	}
	return v == nil
}

// pairTOML implements dialect.pair; the target's key is spelled already.
func pairTOML(s *sheet, near *row, t target, raw string) string {
	indent, between := "", " = "
	if near != nil {
		if s.blocks[near.block].name == t.block {
			indent = string(s.text[near.start:near.keyStart])
		}
		between = s.sign(near, len(t.key))
	}
	return indent + t.key + between + raw
}
