package scrolls

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// An instance is one of what a block stands for: one for each key of its for_each, or the
// block itself.
type instance struct {
	key  string
	each bool // it has a key
	ctx  *hcl.EvalContext
	// absent says that its when is false: it is not declared.
	absent bool
}

// instances evaluates a block's for_each and when. Without a mistake noted, a block that
// stands for nothing has none.
func (l *loader) instances(block *hclsyntax.Block) []instance {
	all := []instance{{ctx: l.ctx}}
	if attr := block.Body.Attributes["for_each"]; attr != nil {
		all = l.forEach(attr)
	}
	when := block.Body.Attributes["when"]
	if when == nil {
		return all
	}
	for i := range all {
		all[i].absent = !l.when(when, all[i].ctx)
	}
	return all
}

// forEach evaluates for_each: a map or an object, or a set of strings. Its keys are part
// of names that are shown everywhere; they come in the order of their bytes.
func (l *loader) forEach(attr *hclsyntax.Attribute) []instance {
	wrong := func(format string, args ...any) []instance {
		l.fail("for_each cannot be used", fmt.Sprintf(format, args...), attr.Expr.Range())
		return nil
	}
	value, ok := l.value(attr.Expr, l.ctx)
	if !ok {
		return nil
	}
	if value.IsMarked() {
		return wrong("%sIts keys are part of names that are shown everywhere, and cannot be sensitive. Where only the values are to be hidden, mark those: { for k, v in … : k => sensitive(v) }.", secretsIn(attr.Expr, l.ctx))
	}
	t := value.Type()
	switch {
	case value.IsNull():
		return wrong("It is null. Where nothing is to be declared, give an empty map, {}.")
	case !value.IsKnown():
		return wrong("It is not known.")
	case t.IsTupleType() || t.IsListType():
		return wrong("It is a list, which has no keys that stay when it changes. Make it a set with toset(…), or a map.")
	case t.IsSetType() && t.ElementType() != cty.String && value.LengthInt() > 0, !t.IsSetType() && !t.IsMapType() && !t.IsObjectType():
		return wrong("It is a map, an object or a set of strings; %s is given.", article(t))
	}
	if !l.more(value.LengthInt(), attr.Expr.Range()) {
		return nil
	}
	var all []instance
	for it := value.ElementIterator(); it.Next(); {
		k, v := it.Element()
		switch {
		case k.IsNull():
			return wrong("One of its keys is null. compact(…) leaves null and empty texts out of a list.")
		case !k.IsKnown():
			return wrong("One of its keys is not known.")
		case strings.ContainsFunc(k.AsString(), func(r rune) bool { return !unicode.IsPrint(r) }):
			return wrong("Its key %q holds what is not printable, and keys are shown everywhere.", k.AsString())
		case k.AsString() == "":
			return wrong("One of its keys is empty.")
		}
		ctx := l.ctx.NewChild()
		ctx.Variables = map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": k, "value": v})}
		all = append(all, instance{key: k.AsString(), each: true, ctx: ctx})
	}
	slices.SortFunc(all, func(a, b instance) int { return strings.Compare(a.key, b.key) })
	return all
}

// when evaluates a when: true, or it is not declared.
func (l *loader) when(attr *hclsyntax.Attribute, ctx *hcl.EvalContext) bool {
	value, ok := l.value(attr.Expr, ctx)
	if !ok {
		return true // the mistake is noted
	}
	if value.IsMarked() {
		l.fail("when is sensitive", secretsIn(attr.Expr, ctx)+"Whether something is declared is shown everywhere, so it cannot depend on a sensitive value. Where it gives nothing away, say nonsensitive(…).", attr.Expr.Range())
		return true
	}
	is, err := convert.Convert(value, cty.Bool)
	if err != nil || is.IsNull() || !is.IsKnown() {
		l.fail("Wrong type of value", fmt.Sprintf("when is true or false; %s is given.", whatIs(value)), attr.Expr.Range())
		return true
	}
	return is.True()
}

// secretsIn names what an expression refers to that is sensitive, as a sentence.
func secretsIn(expr hcl.Expression, ctx *hcl.EvalContext) string {
	var names []string
	for _, traversal := range expr.Variables() {
		value, diags := traversal.TraverseAbs(ctx)
		if !diags.HasErrors() && value.ContainsMarked() {
			names = append(names, spell(traversal))
		}
	}
	slices.Sort(names)
	switch names = slices.Compact(names); len(names) {
	case 0:
		return ""
	case 1:
		return names[0] + " is sensitive. "
	}
	return strings.Join(names, ", ") + " are sensitive. "
}
