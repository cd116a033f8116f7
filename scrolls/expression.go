package scrolls

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// value evaluates an expression and notes the mistakes in it; ok says that there are
// none.
func (l *loader) value(expr hcl.Expression, ctx *hcl.EvalContext) (value cty.Value, ok bool) {
	if !l.refers(expr) {
		return cty.DynamicVal, false
	}
	l.at(expr.Range())
	value, diags := expr.Value(ctx)
	for _, d := range diags {
		l.diags = append(l.diags, discreet(calm(l.helpful(d, expr, ctx)), expr, ctx))
	}
	if diags.HasErrors() {
		return value, false
	}
	return value, l.bounded(value, expr.Range())
}

// refers says whether every variable and local that an expression names is declared,
// and notes those that are not: here the likely spelling is still known.
func (l *loader) refers(expr hcl.Expression) bool {
	ok := true
	for _, traversal := range expr.Variables() {
		root, name := reference(traversal)
		known := l.in.declared[root]
		if known == nil || name == "" || known[name] {
			continue
		}
		ok = false
		meant := didYouMean(name, slices.Collect(maps.Keys(known)))
		switch root {
		case "var":
			l.fail("Undeclared variable", fmt.Sprintf("%s declares no variable %q.%s", l.in.title(), name, meant), traversal.SourceRange())
		case "local":
			l.fail("Undeclared local", fmt.Sprintf("%s has no local %q.%s", l.in.title(), name, meant), traversal.SourceRange())
		default:
			l.fail("Undeclared module", fmt.Sprintf("%s has no scroll block %q with a source: only such a one has outputs.%s", l.in.title(), name, meant), traversal.SourceRange())
		}
	}
	return ok
}

// reference takes var.x or var["x"] apart; name is "" where a reference has none.
func reference(traversal hcl.Traversal) (root, name string) {
	if len(traversal) < 2 {
		return traversal.RootName(), ""
	}
	switch step := traversal[1].(type) {
	case hcl.TraverseAttr:
		return traversal.RootName(), step.Name
	case hcl.TraverseIndex:
		if step.Key.Type() == cty.String {
			return traversal.RootName(), step.Key.AsString()
		}
	}
	return traversal.RootName(), ""
}

// calm takes the trace of a function's own panic out of a diagnostic, and the full stop that
// HCL puts behind what a function asks.
func calm(d *hcl.Diagnostic) *hcl.Diagnostic {
	if strings.HasSuffix(d.Detail, "?.") {
		asked := *d
		asked.Detail = strings.TrimSuffix(d.Detail, ".")
		d = &asked
	}
	call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d)
	if !ok {
		return d
	}
	var panicked function.PanicError
	if !errors.As(call.FunctionCallError(), &panicked) {
		return d
	}
	better := *d
	better.Detail = fmt.Sprintf("The function %q has no answer for these values.", call.CalledFunctionName())
	return &better
}

// quotesNothing are the mistakes whose words hold nothing of a value. Others quote a
// function's argument, a key, or the names in an object.
var quotesNothing = map[string]bool{
	"Unknown variable": true, "Call to unknown function": true, "Not enough function arguments": true,
	"Too many function arguments": true, "Unsupported attribute": true, "Invalid operand": true,
	"Incorrect condition type": true, "Iteration over non-iterable value": true,
	"Invalid template interpolation value": true,
}

// discreet takes out of a diagnostic what could show a sensitive value: words that
// quote it, and the values of variables.
func discreet(d *hcl.Diagnostic, expr hcl.Expression, ctx *hcl.EvalContext) *hcl.Diagnostic {
	secret := touchesSecret(expr, ctx)
	if !secret && d.Expression != nil && d.EvalContext != nil {
		secret = touchesSecret(d.Expression, d.EvalContext)
	}
	if !secret {
		return d
	}
	quiet := *d
	quiet.Expression, quiet.EvalContext = nil, nil
	if !quotesNothing[d.Summary] {
		quiet.Detail = "A sensitive value took part, so what is wrong with it is not shown."
	}
	return &quiet
}

// touchesSecret says whether a sensitive value takes part in an expression.
func touchesSecret(expr hcl.Expression, ctx *hcl.EvalContext) bool {
	if ctx == nil {
		return false
	}
	for _, traversal := range expr.Variables() {
		value, diags := traversal.TraverseAbs(ctx)
		if !diags.HasErrors() && value.ContainsMarked() {
			return true
		}
	}
	node, ok := expr.(hclsyntax.Node)
	if !ok {
		return false
	}
	found := false
	_ = hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl.Diagnostics {
		call, ok := n.(*hclsyntax.FunctionCallExpr)
		found = found || ok && call.Name == "sensitive"
		return nil
	})
	return found
}

// sensitive is the mark on values that must not be shown.
type sensitiveMark struct{}

var sensitive = sensitiveMark{}
