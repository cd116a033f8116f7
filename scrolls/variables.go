package scrolls

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"golang.org/x/text/unicode/norm"
)

// sensitive is the mark on values that must not be shown.
type sensitiveMark struct{}

var sensitive = sensitiveMark{}

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

// A given is a value for a variable from outside its module.
type given struct {
	expr  hcl.Expression
	value cty.Value // of expr, where it is worked out already: a module's input
	at    hcl.Range // where the input is named
	text  string    // as spelled, where expr is nil
	from  string    // for messages: "--var", a file's name
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

// validateLate holds variables to the conditions that see locals and modules.
func (l *loader) validateLate() {
	for _, v := range l.in.variables {
		l.validate(v, true)
	}
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
		attr := block.Body.Attributes[arg]
		switch arg {
		case "type":
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
		case "sensitive", "nullable":
			value, diags := attr.Expr.Value(nil)
			if diags.HasErrors() || value.IsNull() || value.Type() != cty.Bool {
				l.fail("Wrong type of value", fmt.Sprintf("%q is true or false, written out.", arg), attr.Expr.Range())
				continue
			}
			if arg == "sensitive" {
				v.secret = value.True()
			} else {
				v.nonNull = value.False()
			}
		case "default":
		case "description":
			l.description(attr)
		default:
			l.fail("Unsupported argument", fmt.Sprintf("A variable has no argument %q.%s%s", arg, other(otherArguments, arg), didYouMean(arg, variableArguments)), attr.NameRange)
		}
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

// constant evaluates what a file says a variable is: values, and nothing that refers
// to others.
func (l *loader) constant(v *variable, expr hcl.Expression) (cty.Value, bool) {
	value, diags := expr.Value(nil)
	if diags.HasErrors() && v.secret {
		l.fail("Variable cannot be read", fmt.Sprintf("The value of the sensitive variable %q, in %s, is not a constant.", v.name, expr.Range().Filename), v.block.DefRange())
		return value, false
	}
	for _, d := range diags {
		l.diags = append(l.diags, constantOnly(d, expr))
	}
	return value, !diags.HasErrors()
}

// spelled reads a value from the command line or the environment: text as it is for a
// variable of a simple type, else an expression.
func (l *loader) spelled(v *variable, g *given) (cty.Value, bool) {
	if !utf8.ValidString(g.text) || !norm.NFC.IsNormalString(g.text) {
		l.fail("Variable cannot be read", fmt.Sprintf("The value of %q, from %s, is not UTF-8 text in Unicode's normal form C, so that HCL would change its bytes.", v.name, g.from), v.block.DefRange())
		return cty.NilVal, false
	}
	if v.literal {
		return cty.StringVal(g.text), true
	}
	if err := parseable([]byte(g.text), g.from); err != nil {
		l.fail("Variable cannot be read", fmt.Sprintf("The value of %q, from %s: %s.", v.name, g.from, err), v.block.DefRange())
		return cty.NilVal, false
	}
	expr, diags := hclsyntax.ParseExpression([]byte(g.text), g.from, hcl.InitialPos)
	var value cty.Value
	if !diags.HasErrors() {
		value, diags = expr.Value(nil)
	}
	if !diags.HasErrors() {
		return value, true
	}
	shown := brief(g.text)
	if v.secret {
		shown = "its sensitive value"
	}
	l.fail("Variable cannot be read", fmt.Sprintf("The variable %q is %s; %s, from %s, is not a constant expression. %s", v.name, article(v.typ), shown, g.from, spelling), v.block.DefRange())
	return cty.NilVal, false
}

const spelling = `Write text in it in quotes: ["a", "b"].`

// givens collects values from outside, later sources over earlier ones.
func (l *loader) givens(known map[string]*variable, autoFiles []string) (map[string]*given, error) {
	values := map[string]*given{}
	const prefix = "GOLEM_VAR_"
	for _, entry := range l.o.Environ {
		name, text, ok := strings.Cut(entry, "=")
		if name, found := strings.CutPrefix(name, prefix); ok && found && known[name] != nil {
			values[name] = &given{text: text, from: prefix + name}
		}
	}
	for _, file := range slices.Concat(autoFiles, l.o.VarFiles) {
		if err := l.varFile(file, known, values); err != nil {
			return nil, err
		}
	}
	for _, entry := range l.o.Vars {
		name, text, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("read --var %s: it is not NAME=VALUE", name)
		}
		if known[name] == nil {
			return nil, fmt.Errorf("read --var %s: the scroll declares no such variable.%s", name, didYouMean(name, slices.Collect(maps.Keys(known))))
		}
		values[name] = &given{text: text, from: "--var"}
	}
	return values, nil
}

// varFile reads a file of name = value lines.
func (l *loader) varFile(name string, known map[string]*variable, values map[string]*given) error {
	src, err := readSource("variables", name)
	if err != nil {
		return err
	}
	file, diags := parseFile(src, name)
	if !anySecret(known) {
		l.s.Files[name] = file // a snippet would show the value beside a misspelled name
	}
	l.diags = append(l.diags, diags...)
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok || diags.HasErrors() {
		return nil
	}
	for _, block := range body.Blocks {
		l.fail("Unsupported block type", "A file of variables holds name = value, and nothing else.", block.DefRange())
	}
	for _, variable := range sortedAttrs(body) {
		attr := body.Attributes[variable]
		if known[variable] == nil {
			l.fail("Undeclared variable", fmt.Sprintf("The scroll declares no variable %q.%s", variable, didYouMean(variable, slices.Collect(maps.Keys(known)))), attr.NameRange)
			continue
		}
		values[variable] = &given{expr: attr.Expr, from: name}
	}
	return nil
}

// anySecret says whether one of the variables is sensitive.
func anySecret(known map[string]*variable) bool {
	for _, v := range known {
		if v.secret {
			return true
		}
	}
	return false
}

// validationArguments are what a validation block holds.
var validationArguments = []string{"condition", "error_message"}

// checkValidation refuses what a validation block cannot hold.
func (l *loader) checkValidation(block *hclsyntax.Block) {
	if len(block.Labels) > 0 {
		l.fail("Too many labels", "A validation block has no label.", block.LabelRanges[0])
	}
	for _, inner := range block.Body.Blocks {
		l.fail("Unsupported block type", "A validation has no blocks in it.", inner.DefRange())
	}
	for _, arg := range sortedAttrs(block.Body) {
		if !slices.Contains(validationArguments, arg) {
			l.fail("Unsupported argument", fmt.Sprintf("A validation has no argument %q.%s", arg, didYouMean(arg, validationArguments)), block.Body.Attributes[arg].NameRange)
		}
	}
	if block.Body.Attributes["condition"] == nil || block.Body.Attributes["error_message"] == nil {
		l.fail("Missing argument", "A validation block needs condition and error_message.", block.DefRange())
	}
}

// validate runs a variable's validation blocks: those that refer to variables alone, or,
// late, the others, once locals and modules have their values.
func (l *loader) validate(v *variable, late bool) {
	var wrong []string
	for _, block := range v.conditions {
		condition, message := block.Body.Attributes["condition"], block.Body.Attributes["error_message"]
		if condition == nil || message == nil || late != (needsNames(condition.Expr) || needsNames(message.Expr)) {
			continue
		}
		value, ok := l.value(condition.Expr, l.ctx)
		if !ok {
			continue
		}
		if value, _ = value.Unmark(); !value.IsKnown() {
			continue // of a variable with a mistake
		}
		is, err := convert.Convert(value, cty.Bool)
		if err != nil || is.IsNull() {
			l.fail("Wrong type of value", fmt.Sprintf("A condition is true or false; %s is given.", whatIs(value)), condition.Expr.Range())
			continue
		}
		if is.True() {
			continue
		}
		if detail, ok := l.validationMessage(v, block, message.Expr); ok {
			wrong = append(wrong, detail)
		}
	}
	if len(wrong) == 0 {
		return
	}
	at := v.block.DefRange()
	if v.call != nil {
		at = v.call.DefRange()
	}
	l.fail("Variable is not valid", strings.Join(wrong, "\n\n"), at)
}

// needsNames says whether an expression refers to locals or modules.
func needsNames(expr hcl.Expression) bool {
	return slices.ContainsFunc(expr.Variables(), func(t hcl.Traversal) bool { return t.RootName() == "local" || t.RootName() == "scroll" })
}

// validationMessage is what a validation block says of a value that does not hold.
func (l *loader) validationMessage(v *variable, block *hclsyntax.Block, expr hcl.Expression) (string, bool) {
	text, ok := l.value(expr, l.ctx)
	if !ok {
		return "", false
	}
	place := fmt.Sprintf("%s:%d", block.DefRange().Filename, block.DefRange().Start.Line)
	detail := fmt.Sprintf("The variable %q does not meet its condition at %s.", v.name, place)
	switch {
	case text.IsMarked():
		detail += " The message for it is sensitive, and not shown."
	case !text.IsNull() && text.IsKnown() && text.Type() == cty.String:
		detail = text.AsString()
		if v.call != nil {
			detail += fmt.Sprintf(" The condition stands at %s.", place)
		}
	}
	return detail, true
}

// factsValue turns plain values into the host object.
func factsValue(v any) cty.Value {
	switch v := v.(type) {
	case map[string]any:
		object := map[string]cty.Value{}
		for key := range v {
			object[key] = factsValue(v[key])
		}
		return cty.ObjectVal(object)
	case string:
		return cty.StringVal(v)
	case bool:
		return cty.BoolVal(v)
	case int:
		return cty.NumberIntVal(int64(v))
	case int64:
		return cty.NumberIntVal(v)
	}
	return cty.NullVal(cty.DynamicPseudoType)
}
