package entry

import (
	"bytes"
	"strings"
)

// An innerOp is an edit within one value: of a member of a list or of an inline table.
type innerOp struct {
	Do    string `json:"do"`
	Steps []Step `json:"steps"` // from the value on; of a member of a list, to the list
	Elem  string `json:"elem"`  // as golem spelled it
	Old   string `json:"old,omitempty"`
}

const doMember = "member"

// innerEdit is the splice that makes a wish true within a value.
func innerEdit(text []byte, v tval, steps []Step, w Wish) (splice, *innerOp, error) {
	in := &innerOp{Do: doSet, Steps: steps}
	hold, k, rest, err := descend(text, v, steps)
	if err != nil {
		return splice{}, nil, err
	}
	if len(rest) > 0 {
		return innerKey(text, hold, rest, w, in)
	}
	here := v
	if k >= 0 {
		here = hold.kids[k].val
	}
	switch {
	case w.Absent:
		in.Do, in.Old = doCut, string(text[hold.kids[k].start:here.end])
		sp, err := removeKid(text, hold, k)
		return sp, in, err
	case w.Member:
		return innerMember(text, here, w, in)
	}
	raw, err := tomlSpell(w.Value, string(text[here.start:here.end]))
	if err != nil {
		return splice{}, nil, placed(text, here.start, err)
	}
	if hold.open == '[' && len(hold.kids) > 1 {
		other := hold.kids[(k+1)%len(hold.kids)].val
		if a, b := kindOf(text[other.start:other.end]), tomlKind(w.Value); a != b && a != kindOf([]byte(raw)) {
			return splice{}, nil, at(text, here.start, "the list holds values of one kind, %s, and this is a %s", a, b)
		}
	}
	in.Elem, in.Old = raw, string(text[here.start:here.end])
	return splice{At: here.start, End: here.end, With: []byte(raw)}, in, nil
}

// descend follows steps into a value: to the member number k of what holds it (-1: to the
// value itself), or, with steps left, to the inline table that has no such key yet.
func descend(text []byte, v tval, steps []Step) (hold tval, k int, rest []Step, err error) {
	k = -1
	for len(steps) > 0 {
		here := v
		if k >= 0 {
			here = hold.kids[k].val
		}
		switch here.open {
		case '[':
			n, ok := steps[0].index()
			if ok && n == len(here.kids) {
				return v, 0, nil, at(text, here.start, "the list has %d members, and so no number %d; member = … adds one", n, n)
			}
			if !ok || n > len(here.kids) {
				return v, 0, nil, at(text, here.start, "the key leads through a list of %d members, by %s; they have numbers, from 0", len(here.kids), quote(steps[0].text()))
			}
			hold, k, steps = here, n, steps[1:]
		case '{':
			found := -1
			for i, kid := range here.kids {
				if len(kid.names) <= len(steps) && meant(partsOf(kid.names), steps) {
					found = i
				}
			}
			if found < 0 {
				return here, -1, steps, nil
			}
			hold, k, steps = here, found, steps[len(here.kids[found].names):]
		default:
			return v, 0, nil, at(text, here.start, "the key leads through a value that is no table, by %s", quote(steps[0].text()))
		}
	}
	return hold, k, nil, nil
}

func partsOf(names []string) []part {
	path := make([]part, len(names))
	for i, n := range names {
		path[i] = part{name: n, place: -1}
	}
	return path
}

// innerKey adds a key to an inline table.
func innerKey(text []byte, hold tval, rest []Step, w Wish, in *innerOp) (splice, *innerOp, error) {
	if w.Absent {
		return splice{}, nil, at(text, hold.start, "the key cannot be taken away: it is made by dotted keys of an inline table")
	}
	for _, kid := range hold.kids {
		if len(kid.names) > len(rest) && meant(partsOf(kid.names), rest) {
			return splice{}, nil, at(text, kid.start, "it is a table made by dotted keys; declare its keys one by one")
		}
	}
	list, _, err := names(rest)
	if err != nil {
		return splice{}, nil, placed(text, hold.start, err)
	}
	value := w.Value
	if w.Member {
		value = []any{value}
	}
	raw, err := tomlSpell(value, "")
	if err != nil {
		return splice{}, nil, placed(text, hold.start, err)
	}
	in.Do, in.Elem = doAdd, raw
	between := " = "
	if n := len(hold.kids); n > 0 {
		last := hold.kids[n-1]
		if i := bytes.LastIndexByte(text[last.start:last.val.start], '='); i > 0 && text[last.start+i-1] != ' ' {
			between = "="
		}
	}
	return addKid(text, hold, len(hold.kids), dottedTOML(list)+between+raw), in, nil
}

// innerMember adds a member to a list.
func innerMember(text []byte, list tval, w Wish, in *innerOp) (splice, *innerOp, error) {
	if list.open != '[' {
		return splice{}, nil, at(text, list.start, "it is no list, and so has no members")
	}
	raw, err := tomlSpell(w.Value, "")
	if err != nil {
		return splice{}, nil, placed(text, list.start, err)
	}
	if len(list.kids) > 0 {
		first := list.kids[0].val
		if a, b := kindOf(text[first.start:first.end]), tomlKind(w.Value); a != b {
			if a != "fraction" || b != "whole number" {
				return splice{}, nil, at(text, list.start, "the list holds values of one kind, %s, and this is a %s", a, b)
			}
			raw += ".0"
		}
	}
	k := len(list.kids)
	for _, beside := range []struct {
		value any
		by    int
		word  string
	}{{w.Before, 0, "before"}, {w.After, 1, "after"}} {
		if beside.value == nil {
			continue
		}
		found := -1
		for i, kid := range list.kids {
			if v, ok := readValue(text[kid.val.start:kid.val.end]); ok && sameValue(v, beside.value) {
				found = i + beside.by
			}
		}
		if found < 0 {
			return splice{}, nil, at(text, list.start, "there is no member to put it %s", beside.word)
		}
		k = found
		break
	}
	in.Do, in.Elem = doMember, raw
	return addKid(text, list, k, raw), in, nil
}

// readValue reads one value as a plain one.
func readValue(raw []byte) (any, bool) {
	doc, err := readTOML(append([]byte("v = "), raw...))
	return doc["v"], err == nil
}

func kindOf(raw []byte) string {
	v, _ := readValue(raw)
	if n, ok := v.(interface{ String() string }); ok && strings.ContainsAny(string(raw), ".eE") && !bytes.HasPrefix(raw, []byte("0x")) && n.String() != "" {
		return "fraction"
	}
	return tomlKind(v)
}

// addKid is the splice that puts a member in front of member number k, or at the end.
func addKid(text []byte, v tval, k int, raw string) splice {
	if len(v.kids) == 0 {
		inner := text[v.start+1 : v.end-1]
		if len(bytes.Trim(inner, " \t")) > 0 {
			return splice{At: v.start + 1, End: v.start + 1, With: []byte(raw)}
		}
		if v.open == '{' {
			raw = " " + raw + " "
		}
		return splice{At: v.start + 1, End: v.end - 1, With: []byte(raw)}
	}
	lead := leadOf(text, v)
	if k < len(v.kids) {
		return splice{At: v.kids[k].start, End: v.kids[k].start, With: []byte(raw + "," + lead)}
	}
	end := v.kids[len(v.kids)-1].val.end
	if v.comma && strings.Contains(lead, "\n") {
		// Behind the comma, and behind a comment that belongs to the member before.
		if stop, next := lineEnd(text, end); next < v.end {
			return splice{At: stop, End: stop, With: []byte(lead + raw + ",")}
		}
	}
	return splice{At: end, End: end, With: []byte("," + lead + raw)}
}

// leadOf is what stands in front of a new member: a line's end and an indentation where the
// members have lines of their own, else a blank.
func leadOf(text []byte, v tval) string {
	last := v.kids[len(v.kids)-1]
	start := bytes.LastIndexByte(text[:last.start], '\n') + 1
	if start > v.start && skipBlank(text, start, last.start) == last.start {
		return ending(text, last.start) + string(text[start:last.start])
	}
	if n := len(v.kids); n > 1 {
		between := string(text[v.kids[n-2].val.end:last.start])
		if strings.Trim(between, " ,") == "" {
			return strings.Replace(between, ",", "", 1)
		}
	}
	return " "
}

// removeKid is the splice that takes a member away.
func removeKid(text []byte, v tval, k int) (splice, error) {
	kid := v.kids[k]
	start := bytes.LastIndexByte(text[:kid.start], '\n') + 1
	stop := skipBlank(text, kid.val.end, len(text))
	if stop < len(text) && text[stop] == ',' {
		stop = skipBlank(text, stop+1, len(text))
	}
	content, next := lineEnd(text, stop)
	if v.open == '[' && start > v.start && skipBlank(text, start, kid.start) == kid.start && next < v.end && (stop == content || text[stop] == '#') {
		return splice{At: start, End: next}, nil // it has its lines for itself
	}
	from, to := kid.start, kid.val.end
	switch {
	case k > 0:
		from = v.kids[k-1].val.end
	case len(v.kids) > 1:
		to = v.kids[1].start
	case v.comma:
		to = tomlSpace(text, to) + 1
	}
	between := append(bytes.Clone(text[from:kid.start]), text[kid.val.end:to]...)
	if bytes.IndexByte(between, '#') >= 0 {
		return splice{}, at(text, kid.start, "it cannot be taken away without the comment beside it")
	}
	return splice{At: from, End: to}, nil
}

// peelInner takes an edit off a value that others have changed since.
func peelInner(text []byte, r row, w Wish, o op) []byte {
	v, err := tomlValue(text, r.val, 0)
	if err != nil {
		return text
	}
	hold, k, rest, err := descend(text, v, o.Inner.Steps)
	if err != nil {
		return text
	}
	here := v
	if k >= 0 {
		here = hold.kids[k].val
	}
	var sp splice
	switch o.Inner.Do {
	case doMember:
		err = refuse("it is gone")
		for i := len(here.kids) - 1; i >= 0 && err != nil && len(rest) == 0; i-- {
			if kid := here.kids[i]; string(text[kid.val.start:kid.val.end]) == o.Inner.Elem {
				sp, err = removeKid(text, here, i)
			}
		}
	case doAdd, doSet:
		same := len(rest) == 0 && k >= 0 && string(text[here.start:here.end]) == o.Inner.Elem
		if len(rest) > 0 || k < 0 || !same && (w.Member || hold.open != '{') {
			return text // it is gone, or another has its place in a list
		}
		sp = splice{At: here.start, End: here.end, With: []byte(o.Inner.Old)}
		if o.Inner.Do == doAdd {
			sp, err = removeKid(text, hold, k)
		}
	case doCut:
		switch {
		case hold.open != '{':
			return text // a place in a list is another's by now
		case len(rest) == 0:
			sp = splice{At: hold.kids[k].start, End: here.end, With: []byte(o.Inner.Old)}
		default:
			sp = addKid(text, hold, len(hold.kids), o.Inner.Old)
		}
	}
	if err != nil {
		return text
	}
	return apply(text, sp)
}
