package scrolls

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/text/unicode/norm"
)

// A given is a value for a variable from outside its module.
type given struct {
	expr  hcl.Expression
	value cty.Value // of expr, where it is worked out already: a module's input
	at    hcl.Range // where the input is named
	text  string    // as spelled, where expr is nil
	from  string    // for messages: "--var", a file's name
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
