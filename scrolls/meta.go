package scrolls

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// metaArguments stand on glyphs of every kind.
var metaArguments = []string{"for_each", "when", "on_undeclare", "protect", "moved_from"}

// metaArgument reads an argument that every kind has. It says whether it was one.
func (l *loader) metaArgument(g *Glyph, kind *kindInfo, attr *hclsyntax.Attribute, ctx *hcl.EvalContext) bool {
	switch attr.Name {
	case "for_each", "when":
		return true // read before
	case "protect", "on_undeclare", "moved_from":
		if kind.check {
			return false
		}
	default:
		return false
	}
	value, ok := l.value(attr.Expr, ctx)
	if !ok {
		return true
	}
	wrong := func(summary, detail string) bool {
		l.fail(summary, detail, attr.Expr.Range())
		return true
	}
	if value.IsMarked() {
		return wrong("Argument is sensitive", fmt.Sprintf("%q says what golem does, which is shown; it cannot come from a sensitive value.", attr.Name))
	}
	switch {
	case attr.Name == "protect":
		if value.IsNull() {
			return true
		}
		is, err := convert.Convert(value, cty.Bool)
		if err != nil || is.IsNull() || !is.IsKnown() {
			return wrong("Wrong type of value", fmt.Sprintf("protect is true or false; %s is given.", whatIs(value)))
		}
		g.Protect = is.True()
		return true
	case value.IsNull():
		return true
	case value.Type() != cty.String || !value.IsKnown():
		return wrong("Wrong type of value", fmt.Sprintf("%q is a text; %s is given.", attr.Name, whatIs(value)))
	case attr.Name == "on_undeclare":
		switch text := value.AsString(); text {
		case "give-back":
		case "leave":
			g.OnUndeclare = text
		default:
			return wrong("Unknown word", fmt.Sprintf("%q is neither \"give-back\", which gives back what was there before golem, nor \"leave\", which leaves what is there.", text))
		}
		return true
	}
	return l.movedFrom(g, kind, attr, Key(value.AsString()))
}

// movedFrom notes the key that a glyph had before, for the kinds whose key the label alone
// makes: every other key names what is on the host, and survives any renaming in the scroll.
func (l *loader) movedFrom(g *Glyph, kind *kindInfo, attr *hclsyntax.Attribute, key Key) bool {
	switch {
	case !kind.Renames:
		l.fail("Not needed here", fmt.Sprintf("The key of %s names what is on the host, not where it stands in the scroll: blocks can be renamed, regrouped and moved into modules as they are. Where the thing on the host has another name now, golem takes the old one back and makes the new one.", kind.one("a")), attr.NameRange)
	case key.Kind() != kind.Name || len(key.Parts()) == 0:
		l.fail("Not a key", fmt.Sprintf("%q is not the key of %s, like %s.", key, kind.one("a"), MakeKey(kind.Name, "old-label")), attr.Expr.Range())
	default:
		g.MovedFrom = key
	}
	return true
}
