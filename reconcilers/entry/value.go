package entry

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// isWide says whether a text looks like UTF-16 or UTF-32: by its mark, or by a NUL in its
// first bytes.
func isWide(text []byte) bool {
	return bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) ||
		bytes.IndexByte(text[:min(len(text), 4)], 0) >= 0
}

// sameValue says whether two plain values are the same: numbers by what they say, not by
// how they are spelled, and objects without regard to order.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || sameNumber(string(a), string(b)))
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameValue(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name := range a {
			other, there := b[name]
			if !there || !sameValue(a[name], other) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case []any, map[string]any: // which cannot be compared
		return false
	}
	return a == b
}

// sameNumber compares decimal numbers exactly, however large their exponents.
func sameNumber(a, b string) bool {
	aDigits, aExp, aOK := decimal(a)
	bDigits, bExp, bOK := decimal(b)
	return aOK && bOK && aDigits == bDigits && aExp == bExp
}

// decimal takes a number apart: its digits, with the sign and without zeros at either
// end, and the power of ten that they are times.
func decimal(s string) (digits string, exp int64, ok bool) {
	mantissa := s
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		var err error
		if exp, err = strconv.ParseInt(s[i+1:], 10, 48); err != nil {
			return "", 0, false
		}
		mantissa = s[:i]
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exp -= int64(len(fraction))
	digits = strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	exp += int64(len(digits) - len(short))
	if short == "" {
		return "0", 0, true
	}
	if negative {
		short = "-" + short
	}
	return short, exp, true
}

// holdsMember says whether a list has a member equal to a value.
func holdsMember(list []any, value any) bool {
	return slices.ContainsFunc(list, func(m any) bool { return sameValue(m, value) })
}

// shows says whether what is at a wish's key, if anything is there, shows the wish.
func shows(have any, there bool, w Wish) bool {
	switch {
	case w.Absent:
		return !there
	case w.Member:
		list, _ := have.([]any)
		return holdsMember(list, w.Value)
	}
	return there && sameValue(have, w.Value)
}

// withMember is a list with the wished member, at the place that the wish names.
func withMember(list []any, w Wish) []any {
	if holdsMember(list, w.Value) {
		return list
	}
	at := len(list)
	for i, m := range list {
		if w.Before != nil && sameValue(m, w.Before) {
			at = i
		}
		if w.After != nil && sameValue(m, w.After) {
			at = i + 1
		}
	}
	return slices.Insert(slices.Clone(list), at, w.Value)
}

// wished is what a value is to be once a wish is true of it.
func wished(v any, w Wish) any {
	if len(w.Steps) == 0 {
		switch {
		case w.Absent:
			return nil
		case w.Member:
			list, _ := v.([]any)
			return withMember(list, w)
		}
		return w.Value
	}
	step, rest := w.Steps[0], w
	rest.Steps = w.Steps[1:]
	if list, ok := v.([]any); ok || step.Place {
		place, _ := step.index()
		list = slices.Clone(list)
		if place >= len(list) {
			if w.Absent {
				return list
			}
			list = append(list, nil)
		}
		list[place] = wished(list[place], rest)
		return list
	}
	old, _ := v.(map[string]any)
	object := maps.Clone(old)
	if object == nil {
		object = map[string]any{}
	}
	member, there := object[step.Name]
	if w.Absent && (!there || len(rest.Steps) == 0) {
		delete(object, step.Name)
	} else {
		object[step.Name] = wished(member, rest)
	}
	return object
}
