package scrolls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// validateLate holds variables to the conditions that see locals and modules.
func (l *loader) validateLate() {
	for _, v := range l.in.variables {
		l.validate(v, true)
	}
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
	case !text.IsNull() && text.IsKnown() && text.Type() == cty.String && strings.TrimSpace(text.AsString()) != "":
		detail = strings.TrimSpace(text.AsString()) // a heredoc ends in a newline
		if v.call != nil {
			detail += fmt.Sprintf(" The condition stands at %s.", place)
		}
	}
	return detail, true
}
