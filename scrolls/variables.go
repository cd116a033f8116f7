package scrolls

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// sensitive is the mark on values that must not be shown.
type sensitiveMark struct{}

var sensitive = sensitiveMark{}

// A variable is one variable block.
type variable struct {
	name       string
	block      *hclsyntax.Block
	typ        cty.Type
	defaults   *typeexpr.Defaults
	value      cty.Value // NilVal until it is known
	secret     bool
	nonNull    bool
	conditions []*hclsyntax.Block
}

// A given is a value for a variable from outside the scroll.
type given struct {
	expr hcl.Expression
	text string // literal, for a string
	from string // for messages: "--var", a file's name
	at   *hcl.Range
}

// variables finds every variable's value: GOLEM_VAR_x, *.auto.vars.hcl, --var-file,
// --var, later wins; else its default.
func (l *loader) variables(root *hclsyntax.Body, autoFiles []string) error {
	known := map[string]*variable{}
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
			at, also := block.DefRange(), other.block.DefRange()
			p := PlacedProblem{At: at, Also: &also, Problem: Problem{Summary: "Duplicate variable", Detail: fmt.Sprintf("The variable %q is declared already.", v.name)}}
			l.diags = append(l.diags, p.diagnostics()...)
			continue
		}
		known[v.name] = v
		order = append(order, v)
	}
	values, err := l.givens(known, autoFiles)
	if err != nil {
		return err
	}
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
		l.validate(v)
	}
	return nil
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
	v := &variable{name: name, block: block, typ: cty.DynamicPseudoType}
	for _, arg := range sortedAttrs(block.Body) {
		attr := block.Body.Attributes[arg]
		switch arg {
		case "type":
			typ, defaults, diags := typeexpr.TypeConstraintWithDefaults(attr.Expr)
			l.diags = append(l.diags, diags...)
			if !diags.HasErrors() {
				v.typ, v.defaults = typ, defaults
			}
		case "sensitive", "nullable":
			value, diags := attr.Expr.Value(nil)
			l.diags = append(l.diags, diags...)
			if diags.HasErrors() || value.IsNull() || value.Type() != cty.Bool {
				l.fail("Wrong type of value", fmt.Sprintf("%q is true or false, written out.", arg), attr.Expr.Range())
				continue
			}
			if arg == "sensitive" {
				v.secret = value.True()
			} else {
				v.nonNull = value.False()
			}
		case "default", "description":
		default:
			l.fail("Unsupported argument", fmt.Sprintf("A variable has no argument %q.%s", arg, didYouMean(arg, variableArguments)), attr.NameRange)
		}
	}
	for _, inner := range block.Body.Blocks {
		if inner.Type != "validation" {
			l.fail("Unsupported block type", fmt.Sprintf("A variable has no block %q.%s", inner.Type, didYouMean(inner.Type, []string{"validation"})), inner.DefRange())
			continue
		}
		v.conditions = append(v.conditions, inner)
	}
	return v
}

// valueOf is a variable's value, converted to its type; an unknown one after a
// mistake, so that nothing else is blamed for it.
func (l *loader) valueOf(v *variable, g *given) cty.Value {
	place := v.block.DefRange()
	var value cty.Value
	switch {
	case g != nil:
		var ok bool
		if value, ok = l.read(v, g); !ok {
			return cty.UnknownVal(v.typ)
		}
		if g.at != nil {
			place = *g.at
		}
	case v.block.Body.Attributes["default"] != nil:
		attr := v.block.Body.Attributes["default"]
		var diags hcl.Diagnostics
		value, diags = attr.Expr.Value(nil)
		l.diags = append(l.diags, diags...)
		if diags.HasErrors() {
			return cty.UnknownVal(v.typ)
		}
		place = attr.Expr.Range()
	default:
		l.fail("Variable is missing", fmt.Sprintf("The variable %q has no default. Give it with --var %s=…, in a --var-file, or as GOLEM_VAR_%s.", v.name, v.name, v.name), place)
		return cty.UnknownVal(v.typ)
	}
	if v.defaults != nil && !value.IsNull() {
		value = v.defaults.Apply(value)
	}
	typed, err := convert.Convert(value, v.typ)
	if err != nil {
		why := err.Error()
		if v.secret {
			why = "its sensitive value is not of that type"
		}
		l.fail("Wrong type of value", fmt.Sprintf("The variable %q is %s: %s.", v.name, v.typ.FriendlyName(), why), place)
		return cty.UnknownVal(v.typ)
	}
	if typed.IsNull() && v.nonNull {
		l.fail("Variable is null", fmt.Sprintf("The variable %q is not nullable.", v.name), place)
		return cty.UnknownVal(v.typ)
	}
	if text := fmt.Sprintf("%#v", typed); true {
		l.seen.add("variable", v.name, []byte(text))
	}
	return typed
}

// read evaluates a value from outside.
func (l *loader) read(v *variable, g *given) (cty.Value, bool) {
	if g.expr == nil && v.typ == cty.String {
		return cty.StringVal(g.text), true
	}
	expr := g.expr
	if expr == nil {
		parsed, diags := hclsyntax.ParseExpression([]byte(g.text), g.from, hcl.InitialPos)
		if diags.HasErrors() {
			if v.typ == cty.DynamicPseudoType {
				return cty.StringVal(g.text), true
			}
			shown := fmt.Sprintf("%q", g.text)
			if v.secret {
				shown = "its sensitive value"
			}
			l.fail("Variable cannot be read", fmt.Sprintf("The variable %q is %s; %s, from %s, is not an expression.", v.name, v.typ.FriendlyName(), shown, g.from), v.block.DefRange())
			return cty.NilVal, false
		}
		expr = parsed
	}
	value, diags := expr.Value(nil)
	if !diags.HasErrors() {
		return value, true
	}
	if g.expr == nil && v.typ == cty.DynamicPseudoType {
		return cty.StringVal(g.text), true
	}
	if g.expr == nil {
		l.fail("Variable cannot be read", fmt.Sprintf("The variable %q is %s; what %s gives is not one.", v.name, v.typ.FriendlyName(), g.from), v.block.DefRange())
		return cty.NilVal, false
	}
	l.diags = append(l.diags, diags...)
	return cty.NilVal, false
}

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
		if !ok {
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
	src, err := readSource(name)
	if err != nil {
		return err
	}
	file, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	l.s.Files[name] = file
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
		at := attr.Expr.Range()
		values[variable] = &given{expr: attr.Expr, from: name, at: &at}
	}
	return nil
}

// validate runs a variable's validation blocks.
func (l *loader) validate(v *variable) {
	for _, block := range v.conditions {
		condition, message := block.Body.Attributes["condition"], block.Body.Attributes["error_message"]
		if condition == nil || message == nil {
			l.fail("Missing argument", "A validation block needs condition and error_message.", block.DefRange())
			continue
		}
		value, diags := condition.Expr.Value(l.ctx)
		l.diags = append(l.diags, diags...)
		value, _ = value.Unmark()
		if diags.HasErrors() || !value.IsKnown() {
			continue
		}
		if value.IsNull() || value.Type() != cty.Bool {
			l.fail("Wrong type of value", "A condition is true or false.", condition.Expr.Range())
			continue
		}
		if value.True() {
			continue
		}
		text, diags := message.Expr.Value(l.ctx)
		l.diags = append(l.diags, diags...)
		if diags.HasErrors() || text.IsNull() || text.Type() != cty.String {
			continue
		}
		detail := "The message is sensitive and not shown."
		if !text.IsMarked() {
			detail = text.AsString()
		}
		l.fail("Variable is not valid", detail, v.block.DefRange())
	}
}

// locals evaluates the locals, which may refer to each other in any order.
func (l *loader) locals(root *hclsyntax.Body) {
	attrs := map[string]*hclsyntax.Attribute{}
	for _, block := range root.Blocks {
		if block.Type != "locals" {
			continue
		}
		if len(block.Labels) > 0 {
			l.fail("Too many labels", "A locals block has no label.", block.LabelRanges[0])
		}
		for _, inner := range block.Body.Blocks {
			l.fail("Unsupported block type", "A locals block holds name = value, and nothing else.", inner.DefRange())
		}
		for _, name := range sortedAttrs(block.Body) {
			if other := attrs[name]; other != nil {
				at, also := block.Body.Attributes[name].NameRange, other.NameRange
				p := PlacedProblem{At: at, Also: &also, Problem: Problem{Summary: "Duplicate local", Detail: fmt.Sprintf("%q is written already.", name)}}
				l.diags = append(l.diags, p.diagnostics()...)
				continue
			}
			attrs[name] = block.Body.Attributes[name]
		}
	}
	w := &localWalk{l: l, attrs: attrs, values: map[string]cty.Value{}, state: map[string]int{}}
	names := slices.Sorted(maps.Keys(attrs))
	for _, name := range names {
		w.visit(name, nil)
	}
	l.ctx.Variables["local"] = cty.ObjectVal(w.values)
}

// A localWalk evaluates locals, each after those it refers to.
type localWalk struct {
	l      *loader
	attrs  map[string]*hclsyntax.Attribute
	values map[string]cty.Value
	state  map[string]int // 1 under way, 2 done
}

func (w *localWalk) visit(name string, path []string) {
	if w.state[name] == 2 {
		return
	}
	attr := w.attrs[name]
	if w.state[name] == 1 {
		from := slices.Index(path, name)
		cycle := strings.Join(append(path[from:], name), " → ")
		w.l.fail("Locals refer to each other in a circle", cycle+".", attr.NameRange)
		return
	}
	w.state[name] = 1
	deps := map[string]bool{}
	for _, traversal := range attr.Expr.Variables() {
		if traversal.RootName() != "local" || len(traversal) < 2 {
			continue
		}
		if step, ok := traversal[1].(hcl.TraverseAttr); ok && w.attrs[step.Name] != nil {
			deps[step.Name] = true
		}
	}
	for _, dep := range slices.Sorted(maps.Keys(deps)) {
		w.visit(dep, append(path, name))
	}
	value := cty.DynamicVal
	if !w.l.diags.HasErrors() {
		w.l.ctx.Variables["local"] = cty.ObjectVal(w.values)
		got, diags := attr.Expr.Value(w.l.ctx)
		w.l.diags = append(w.l.diags, diags...)
		if !diags.HasErrors() {
			value = got
		}
	}
	w.values[name] = value
	w.state[name] = 2
}

// factsValue turns plain values into the host object.
func factsValue(v any) cty.Value {
	switch v := v.(type) {
	case map[string]any:
		object := map[string]cty.Value{}
		keys := slices.Collect(maps.Keys(v))
		sort.Strings(keys)
		for _, key := range keys {
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
