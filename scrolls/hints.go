package scrolls

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// What golem has in the place of terraform's words: for who has those in their fingers.
var (
	otherBlocks = map[string]string{
		"resource":  `A glyph's block begins with its kind: file "/etc/motd" { … }.`,
		"module":    `A module is a scroll block with a source: scroll "db" { source = "./modules/db" }.`,
		"terraform": "There is nothing to set up: golem is one binary with all kinds in it, and its journal is a file on the host.",
		"provider":  "There are no providers: golem is one binary with all kinds in it.",
		"moved":     "Nothing needs it: keys name what is on the host, so that blocks can be renamed, regrouped and moved into modules. A region or a command takes moved_from.",
		"import":    `adopt { key = "file:/etc/motd" } takes over what is there; golem adopt KIND ID prints the block for it.`,
		"removed":   `on_undeclare = "leave" on the glyph, applied before its block goes, leaves what is there.`,
		"ephemeral": "Nothing is asked for while golem runs: the journal has to undo later.",
		"dynamic":   "Glyphs have no blocks in them: for_each makes several glyphs, and a for expression several members of a list.",
		"lifecycle": `protect = true is prevent_destroy, on_undeclare = "leave" lets it stay; what is not written is not compared.`,
	}
	otherArguments = map[string]string{
		"count":      "There is no count: for_each, whose keys stay when one goes, or when = … for none or one.",
		"depends_on": "The order written is the order run: put it behind what it needs.",
		"provider":   otherBlocks["provider"],
		"providers":  otherBlocks["provider"],
		"version":    "golem fetches no modules: the directory beside the scroll is the version.",
		"ephemeral":  otherBlocks["ephemeral"],

		"prevent_destroy": "Write protect = true.",
		"ignore_changes":  "What is not written is not compared.",
	}
	otherNames = map[string]string{
		"count":     "There is no count: for_each has each.key.",
		"module":    "A module's outputs are scroll.LABEL.NAME.",
		"data":      "There are no data sources: host holds facts of the host, like host.hostname.",
		"terraform": "There are no workspaces: lineages by name stand beside each other in a journal.",
		"self":      "A block cannot refer to itself: give the value a name in locals.",
	}
	otherFunctions = map[string]string{
		"timestamp":       repeatable,
		"plantimestamp":   repeatable,
		"uuid":            repeatable + " uuidv5 makes the same one of a name each time.",
		"bcrypt":          repeatable,
		"base64gzip":      "What compresses differs from one golem to the next, and so would the host: a file's source takes a file as it is.",
		"base64gunzip":    "A file's source takes a file as it is, and an archive unpacks one.",
		"abspath":         machines,
		"pathexpand":      machines,
		"rsadecrypt":      "It is for passwords that a cloud hands out. Give the password as a sensitive variable.",
		"ephemeralasnull": "There are no ephemeral values.",
		"list":            "A list is written [a, b]; tolist(…) makes one of a set.",
		"map":             "A map is written { a = b }; tomap(…) makes one of an object.",
		"type":            "golem console prints a value with what it is.",
	}
)

const (
	repeatable = "It would answer otherwise each time, and a plan has to be repeatable."
	machines   = "It would put the paths of this machine into the scroll. path.module and path.root are there."
)

// other is a sentence on what golem has instead of a word, or "".
func other(words map[string]string, word string) string { return spaced(words[word]) }

// helpful adds to a mistake in an expression what to write instead.
func (l *loader) helpful(d *hcl.Diagnostic, expr hcl.Expression, ctx *hcl.EvalContext) *hcl.Diagnostic {
	better := *d
	traversal, at := failing(d, expr)
	switch {
	case d.Summary == "Call to unknown function":
		if words := strings.Split(d.Detail, `"`); len(words) > 1 && otherFunctions[words[1]] != "" {
			better.Detail = fmt.Sprintf("There is no function named %q.%s", words[1], other(otherFunctions, words[1]))
		}
	case traversal == nil:
		return d
	case d.Summary == "Unknown variable":
		better.Detail = l.unknownName(d, expr, traversal)
	case d.Summary == "Unsupported attribute" || d.Summary == "Invalid index":
		if detail := missingIn(traversal, at, ctx); detail != "" {
			better.Detail = detail
		}
	case d.Summary == "Attempt to get attribute from null value" && traversal.RootName() == "scroll":
		better.Detail = fmt.Sprintf("%s is not declared, since a when is false, and has no outputs then. Where it may be so, write try(%s, …).", spell(traversal[:at]), spell(traversal))
	}
	return &better
}

// failing is the reference in an expression that a mistake is about, and the step in it.
func failing(d *hcl.Diagnostic, expr hcl.Expression) (hcl.Traversal, int) {
	if d.Subject == nil {
		return nil, 0
	}
	for _, traversal := range expr.Variables() {
		for i, step := range traversal {
			if step.SourceRange() == *d.Subject {
				return traversal, i
			}
		}
		if traversal.SourceRange() == *d.Subject && len(traversal) > 1 { // the last step, as an index has it
			return traversal, len(traversal) - 1
		}
	}
	return nil, 0
}

// unknownName says what is known instead of a reference's first word.
func (l *loader) unknownName(d *hcl.Diagnostic, expr hcl.Expression, traversal hcl.Traversal) string {
	root := traversal.RootName()
	switch whole, diags := hcl.AbsTraversalForExpr(expr); {
	case root == "each":
		return "There is no for_each in this block, nor in a scroll block around it: each stands for one of its keys and values."
	case otherNames[root] != "":
		return fmt.Sprintf("There is no variable named %q.%s", root, other(otherNames, root))
	case l.kinds[root] != nil:
		return d.Detail + " A glyph's arguments cannot be referred to: give the value a name in locals, and write that in both places."
	case !diags.HasErrors() && len(whole) == 1:
		return fmt.Sprintf("%s If it is meant as text, write it in quotes: %q.", d.Detail, root)
	}
	if root == strings.ToUpper(root) { // a shell's
		return fmt.Sprintf("%s Where the text is to hold ${%s} as it is, write $${%s}.", d.Detail, root, root)
	}
	return d.Detail
}

// missingIn says what there is where a step of a reference leads nowhere, or "".
func missingIn(traversal hcl.Traversal, at int, ctx *hcl.EvalContext) string {
	name := stepName(traversal[at])
	if at == 0 || name == "" || ctx == nil {
		return ""
	}
	of, diags := traversal[:at].TraverseAbs(ctx)
	if diags.HasErrors() || of.IsMarked() || of.IsNull() || !of.IsKnown() || !(of.Type().IsObjectType() || of.Type().IsMapType()) {
		return ""
	}
	const most = 12
	there := slices.Sorted(maps.Keys(of.AsValueMap()))
	text := fmt.Sprintf("There is no %q in %s", name, spell(traversal[:at]))
	switch meant := didYouMean(name, there); {
	case len(there) == 0:
		return text + ", which is empty."
	case meant != "":
		return text + "." + meant
	case len(there) > most:
		return fmt.Sprintf("%s, which has %s and %d more.", text, strings.Join(there[:most], ", "), len(there)-most)
	}
	return fmt.Sprintf("%s, which has %s.", text, strings.Join(there, ", "))
}

// stepName is the name, or the key, that a step of a reference asks for.
func stepName(step hcl.Traverser) string {
	switch step := step.(type) {
	case hcl.TraverseAttr:
		return step.Name
	case hcl.TraverseIndex:
		if step.Key.Type() == cty.String && step.Key.IsKnown() && !step.Key.IsNull() {
			return step.Key.AsString()
		}
	}
	return ""
}

// spell writes a reference as it stands in a scroll.
func spell(traversal hcl.Traversal) string {
	text := traversal.RootName()
	for _, step := range traversal[1:] {
		switch step := step.(type) {
		case hcl.TraverseAttr:
			text += "." + step.Name
		case hcl.TraverseIndex:
			if name := stepName(step); name != "" {
				text += fmt.Sprintf("[%q]", name)
			} else if step.Key.Type() == cty.Number {
				text += fmt.Sprintf("[%s]", step.Key.AsBigFloat().Text('f', -1))
			}
		}
	}
	return text
}

// constantOnly explains a mistake in what has to be a constant.
func constantOnly(d *hcl.Diagnostic, expr hcl.Expression) *hcl.Diagnostic {
	better := *d
	switch d.Summary {
	case "Variables not allowed", "Function calls not allowed":
		better.Detail = "The value of a variable is a constant: it refers to nothing, and calls no function. What is worked out of others is a local."
		if word := hcl.ExprAsKeyword(expr); word != "" {
			better.Detail += fmt.Sprintf(" If it is meant as text, write it in quotes: %q.", word)
		}
	}
	return &better
}

// divided gives the divisions in what was parsed another way to be worked out: by nothing
// is no number.
func divided(node hclsyntax.Node) {
	binary, ok := node.(*hclsyntax.BinaryOpExpr)
	if !ok {
		return
	}
	switch binary.Op {
	case hclsyntax.OpDivide:
		binary.Op = &hclsyntax.Operation{Impl: divideFunc, Type: cty.Number}
	case hclsyntax.OpModulo:
		binary.Op = &hclsyntax.Operation{Impl: moduloFunc, Type: cty.Number}
	}
}

// dividedIn is divided for all of an expression.
func dividedIn(expr hclsyntax.Expression) {
	_ = hclsyntax.VisitAll(expr, func(node hclsyntax.Node) hcl.Diagnostics {
		divided(node)
		return nil
	})
}
