package scrolls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// A variable is one variable block.
type variable struct {
	name       string
	block      *hclsyntax.Block
	typ        cty.Type
	literal    bool // a value from the command line or the environment is plain text
	broken     bool // its block has a mistake
	defaults   *typeexpr.Defaults
	secret     bool
	nonNull    bool
	conditions []*hclsyntax.Block
	call       *hclsyntax.Block // the scroll block that includes its module; nil in the outermost
}

// variables finds every variable's value: GOLEM_VAR_x, *.auto.vars.hcl, --var-file,
// --var, later wins; else its default.
func (l *loader) variables(root *hclsyntax.Body, autoFiles []string) error {
	order := l.declareAll(root)
	known := map[string]*variable{}
	for _, v := range order {
		known[v.name] = v
	}
	before := len(l.diags)
	values, err := l.givens(known, autoFiles)
	if err != nil {
		return err
	}
	for _, d := range l.diags[before:] {
		if d.Severity == hcl.DiagError && d.Summary != "Undeclared variable" {
			return nil // what a file with a mistake gives is not known
		}
	}
	l.giveValues(order, values)
	return nil
}

// declareAll reads the variable blocks of a module.
func (l *loader) declareAll(root *hclsyntax.Body) []*variable {
	known := map[string]*variable{}
	l.in.declared["var"] = map[string]bool{}
	var order []*variable
	for _, block := range root.Blocks {
		if block.Type != "variable" {
			continue
		}
		v := l.declare(block)
		if v == nil {
			continue
		}
		if other := known[v.name]; other != nil {
			l.clash(block.DefRange(), other.block.DefRange(), "Duplicate variable", fmt.Sprintf("The variable %q is declared already.", v.name))
			continue
		}
		known[v.name] = v
		l.in.declared["var"][v.name] = true
		order = append(order, v)
	}
	return order
}

// giveValues gives variables their values, and holds them to their conditions.
func (l *loader) giveValues(order []*variable, values map[string]*given) {
	object := map[string]cty.Value{}
	for _, v := range order {
		value := l.valueOf(v, values[v.name])
		if v.secret {
			value = value.Mark(sensitive)
		}
		object[v.name] = value
	}
	l.ctx.Variables["var"] = cty.ObjectVal(object)
	for _, v := range order {
		l.validate(v, false)
	}
	l.in.variables = order
}

// variableArguments are what a variable block holds.
var variableArguments = []string{"type", "default", "description", "sensitive", "nullable"}

// declare reads one variable block.
func (l *loader) declare(block *hclsyntax.Block) *variable {
	name, ok := l.label(block)
	if !ok {
		return nil
	}
	if !hclsyntax.ValidIdentifier(name) {
		l.fail("Name is not valid", fmt.Sprintf("A variable's name is an identifier; %q is not.", name), block.LabelRanges[0])
		return nil
	}
	v := &variable{name: name, block: block, typ: cty.DynamicPseudoType, literal: true}
	before := len(l.diags)
	for _, arg := range sortedAttrs(block.Body) {
		l.declareArgument(v, block.Body.Attributes[arg])
	}
	for _, inner := range block.Body.Blocks {
		if inner.Type != "validation" {
			l.fail("Unsupported block type", fmt.Sprintf("A variable has no block %q.%s", inner.Type, didYouMean(inner.Type, []string{"validation"})), inner.DefRange())
			continue
		}
		l.checkValidation(inner)
		v.conditions = append(v.conditions, inner)
	}
	v.broken = l.diags[before:].HasErrors()
	return v
}

// declareArgument reads one argument of a variable block; the default is read when the
// variable needs it.
func (l *loader) declareArgument(v *variable, attr *hclsyntax.Attribute) {
	switch arg := attr.Name; arg {
	case "type":
		l.declareType(v, attr)
	case "sensitive":
		v.secret = l.literalBool(attr, false)
	case "nullable":
		v.nonNull = !l.literalBool(attr, true)
	case "default":
	case "description":
		l.description(attr)
	default:
		l.fail("Unsupported argument", fmt.Sprintf("A variable has no argument %q.%s%s", arg, other(otherArguments, arg), didYouMean(arg, variableArguments)), attr.NameRange)
	}
}

// declareType reads the type that a variable has to be of.
func (l *loader) declareType(v *variable, attr *hclsyntax.Attribute) {
	typ, defaults, diags := typeexpr.TypeConstraintWithDefaults(attr.Expr)
	for _, d := range diags {
		if strings.HasSuffix(d.Detail, "is not a valid type specification.") {
			d.Detail += " The types are string, number, bool, any, list(…), set(…), map(…), tuple([…]) and object({ … }), with optional(…) in it."
		}
	}
	l.diags = append(l.diags, diags...)
	if !diags.HasErrors() {
		v.typ, v.defaults, v.literal = typ, defaults, typ.IsPrimitiveType()
	}
}

// literalBool is an argument that is written out as true or false; after a mistake what
// goes without the argument.
func (l *loader) literalBool(attr *hclsyntax.Attribute, without bool) bool {
	value, diags := attr.Expr.Value(nil)
	if diags.HasErrors() || value.IsNull() || value.Type() != cty.Bool {
		l.fail("Wrong type of value", fmt.Sprintf("%q is true or false, written out.", attr.Name), attr.Expr.Range())
		return without
	}
	return value.True()
}

// description refuses one that is no text, which nobody would notice.
func (l *loader) description(attr *hclsyntax.Attribute) {
	value, diags := attr.Expr.Value(nil)
	if diags.HasErrors() || value.IsNull() || value.Type() != cty.String {
		l.fail("Wrong type of value", `"description" is a text, written out.`, attr.Expr.Range())
	}
}

// valueOf is a variable's value, converted to its type; an unknown one after a
// mistake, so that nothing else is blamed for it.
func (l *loader) valueOf(v *variable, g *given) cty.Value {
	if v.broken {
		return cty.UnknownVal(v.typ)
	}
	value, place, ok := l.found(v, g)
	if !ok {
		return cty.UnknownVal(v.typ)
	}
	if v.secret {
		place = v.block.DefRange() // the line with the value would be shown
	}
	if value.IsNull() && v.nonNull && g != nil && v.block.Body.Attributes["default"] != nil {
		return l.valueOf(v, nil) // as if it was not given
	}
	if v.defaults != nil && !value.IsNull() {
		value = v.defaults.Apply(value)
	}
	typed, err := convert.Convert(value, v.typ)
	if err != nil {
		l.fail("Wrong type of value", fmt.Sprintf("The variable %q is %s%s.", v.name, article(v.typ), v.mismatch(value, g, err)), place)
		return cty.UnknownVal(v.typ)
	}
	if typed.IsNull() && v.nonNull {
		l.fail("Variable is null", fmt.Sprintf("The variable %q is not nullable.", v.name), place)
		return cty.UnknownVal(v.typ)
	}
	if v.call == nil {
		l.seen.add("variable", v.name, fmt.Appendf(nil, "%#v", typed))
	}
	return typed
}

// mismatch says why a value is not of the variable's type.
func (v *variable) mismatch(value cty.Value, g *given, err error) string {
	complex := func(t cty.Type) bool { return !t.IsPrimitiveType() }
	switch {
	case v.secret || value.ContainsMarked():
		return ": its sensitive value is not of that type"
	case g != nil && g.expr == nil && v.literal:
		return fmt.Sprintf("; %s, from %s, is given", brief(g.text), g.from)
	case !complex(v.typ) || !complex(value.Type()):
		return fmt.Sprintf("; %s is given", whatIs(value))
	case v.typ.IsTupleType() && value.Type().IsTupleType() && v.typ.Length() != value.Type().Length():
		return fmt.Sprintf(" of %d; one of %d is given", v.typ.Length(), value.Type().Length())
	}
	return ": " + inside(err)
}

// found is the value that was given for a variable, or its default, and the place it
// is written at.
func (l *loader) found(v *variable, g *given) (value cty.Value, place hcl.Range, ok bool) {
	place = v.block.DefRange()
	attr := v.block.Body.Attributes["default"]
	switch {
	case g != nil && g.value != cty.NilVal:
		return g.value, g.expr.Range(), g.value != cty.DynamicVal
	case g != nil && g.expr != nil:
		value, ok = l.constant(v, g.expr)
		return value, g.expr.Range(), ok
	case g != nil:
		value, ok = l.spelled(v, g)
		return value, place, ok
	case attr != nil:
		value, ok = l.constant(v, attr.Expr)
		return value, attr.Expr.Range(), ok
	}
	if v.call != nil {
		l.missingInput(v)
		return value, place, false
	}
	detail := fmt.Sprintf("The variable %q has no default. Give it with --var %s=…, in a --var-file, or as GOLEM_VAR_%s.", v.name, v.name, v.name)
	if slices.ContainsFunc(l.o.Environ, func(entry string) bool { return strings.HasPrefix(entry, "TF_VAR_"+v.name+"=") }) {
		detail += fmt.Sprintf(" TF_VAR_%s, which is set, is terraform's.", v.name)
	}
	l.fail("Variable is missing", detail, place)
	return value, place, false
}

// missingInput names, at the scroll block, a variable that its module needs.
func (l *loader) missingInput(v *variable) {
	at := v.call.DefRange()
	l.fail("Variable is missing", fmt.Sprintf("The module %q needs its variable %q, which has no default: write %s = … in the scroll block.", l.in.shown, v.name, v.name), at)
}
