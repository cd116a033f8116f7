package scrolls

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
)

// brief is a text in quotes as a message shows it: as it is written, if it is short.
func brief(text string) string {
	const most = 80
	if len(text) > most {
		cut := most
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return `"` + text + `"`
}

// inside tells a conversion's error with the place in the value.
func inside(err error) string {
	var at cty.PathError
	if !errors.As(err, &at) || len(at.Path) == 0 {
		return err.Error()
	}
	var b strings.Builder
	for _, step := range at.Path {
		switch step := step.(type) {
		case cty.GetAttrStep:
			b.WriteString("." + step.Name)
		case cty.IndexStep:
			switch key := step.Key; {
			case !key.IsKnown() || key.IsNull():
			case key.Type() == cty.String:
				fmt.Fprintf(&b, "[%q]", key.AsString())
			case key.Type() == cty.Number:
				fmt.Fprintf(&b, "[%s]", key.AsBigFloat().Text('f', -1))
			}
		}
	}
	return "in " + b.String() + ", " + at.Error()
}

// spaced is a sentence that goes on behind another; "" stays "".
func spaced(s string) string {
	if s == "" {
		return ""
	}
	return " " + s
}

// article is a type's name with its article.
func article(t cty.Type) string {
	name := t.FriendlyName()
	switch {
	case t == cty.DynamicPseudoType:
		return "a value of any type"
	case t.IsTupleType():
		return "a list"
	}
	if strings.HasPrefix(name, "object") || strings.HasPrefix(name, "any") {
		return "an " + name
	}
	return "a " + name
}

// named is a name in quotes, or what it is the name of where that is sensitive.
func named(name, what string, secret bool) string {
	if secret {
		return what
	}
	return strconv.Quote(name)
}

// whatIs names what was given in the place of something else.
func whatIs(v cty.Value) string {
	if v.IsNull() {
		return "null"
	}
	return article(v.Type())
}
