package scrolls

import (
	"cmp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// A veil is a part of a file that no snippet shows: a sensitive value as it is written.
type veil struct{ from, to int }

// veils are those of a file that reach into the bytes from start to end, which a diagnostic
// is about, last first.
func veils(file *hcl.File, d *hcl.Diagnostic, start, end int) []veil {
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		return nil
	}
	var all []veil
	if _, ok := d.Extra.(badSyntax); ok {
		all = unreadable(file.Bytes, start, end)
	}
	add := func(at hcl.Range) {
		if at.Start.Byte < end && at.End.Byte > start {
			all = append(all, veil{max(at.Start.Byte, start), min(at.End.Byte, end)})
		}
	}
	var walk func(body *hclsyntax.Body)
	walk = func(body *hclsyntax.Body) {
		for _, attr := range body.Attributes {
			if at := attr.Range(); at.Start.Byte < end && at.End.Byte > start {
				veiledCalls(attr.Expr, add)
			}
		}
		for _, block := range body.Blocks {
			if at := block.Range(); at.Start.Byte >= end || at.End.Byte <= start {
				continue
			}
			names := secretNames
			if marked(block) {
				names = slices.Concat(names, spelledOut)
			}
			for _, name := range names {
				if attr := block.Body.Attributes[name]; attr != nil && spellsOut(attr.Expr) {
					add(attr.Expr.Range())
				}
			}
			walk(block.Body)
		}
	}
	walk(body)
	return joined(all)
}

// joined makes one veil of those that overlap, and puts the last first.
func joined(all []veil) []veil {
	slices.SortFunc(all, func(a, b veil) int { return cmp.Compare(a.from, b.from) })
	var out []veil
	for _, v := range all {
		if n := len(out); n > 0 && v.from < out[n-1].to {
			out[n-1].to = max(out[n-1].to, v.to)
		} else {
			out = append(out, v)
		}
	}
	slices.Reverse(out)
	return out
}

// secretNames are the arguments that are sensitive whatever stands beside them: a user's.
var secretNames = []string{"password"}

// spelledOut are the arguments that "sensitive = true" is about, where they are written: of
// a file, a variable and an output.
var spelledOut = []string{"content", "content_base64", "default", "value"}

// marked says whether a block has "sensitive = true" in it, written out.
func marked(block *hclsyntax.Block) bool {
	attr := block.Body.Attributes["sensitive"]
	if attr == nil {
		return false
	}
	value, diags := attr.Expr.Value(nil)
	return diags.HasErrors() || value.RawEquals(cty.True)
}

// veiledCalls tells the calls of sensitive() in an expression in which a value is spelled out.
func veiledCalls(expr hclsyntax.Expression, add func(hcl.Range)) {
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) hcl.Diagnostics {
		if call, ok := n.(*hclsyntax.FunctionCallExpr); ok && call.Name == "sensitive" && spellsOut(call) {
			add(call.Range())
		}
		return nil
	})
}

// spellsOut says whether an expression has a text or a number of its own in it, or a word
// that is no reference to anything: a text whose quotes were forgotten.
func spellsOut(expr hclsyntax.Expression) bool {
	found := false
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) hcl.Diagnostics {
		literal, ok := n.(*hclsyntax.LiteralValueExpr)
		found = found || ok && !literal.Val.IsNull() && literal.Val.Type() != cty.Bool
		word, ok := n.(*hclsyntax.ScopeTraversalExpr)
		found = found || ok && !slices.Contains(namesThereAre, word.Traversal.RootName())
		return nil
	})
	return found
}

// namesThereAre are the words that references begin with.
var namesThereAre = []string{"var", "local", "each", "scroll", "host", "path"}

// bareSecret says of a mistake that the name which is not there is what a sensitive value was
// to be, without its quotes.
func (d *Diagnostics) bareSecret(one *hcl.Diagnostic) bool {
	if one.Summary != "Unknown variable" || one.Subject == nil || d.Files[one.Subject.Filename] == nil {
		return false
	}
	at := *one.Subject
	return len(veils(d.Files[at.Filename], one, at.Start.Byte, at.End.Byte)) > 0
}

// detail is what is told of a mistake.
func (d *Diagnostics) detail(one *hcl.Diagnostic) string {
	if d.bareSecret(one) {
		return "There is no variable of the name that stands here. If it is meant as text, write it in quotes."
	}
	return one.Detail
}

// draw puts the veil over an excerpt, whose bytes are by further on than the file's, and
// moves the places of a diagnostic of it.
func (v veil) draw(text []byte, by int, d *hcl.Diagnostic) []byte {
	from, to := v.from+by, v.to+by
	if text[to-1] == '\n' { // a heredoc's
		to--
	}
	for _, at := range []*hcl.Range{d.Subject, d.Context} {
		if at != nil {
			at.Start.Byte, at.End.Byte = shift(at.Start.Byte, from, to, 0), shift(at.End.Byte, from, to, len(hidden))
		}
	}
	return slices.Concat(text[:from], []byte(hidden), text[to:])
}

// shift is where a byte of the excerpt is once the veil is drawn: one under it is inside
// bytes from the veil's start.
func shift(at, from, to, inside int) int {
	switch {
	case at <= from:
		return at
	case at < to:
		return from + inside
	}
	return at - (to - from) + len(hidden)
}
