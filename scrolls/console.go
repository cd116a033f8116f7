package scrolls

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// A Console evaluates expressions with the variables, locals and modules of a scroll.
type Console struct{ l *loader }

// OpenConsole reads a scroll as far as its names go; its glyphs are not looked at. Without
// a path there are only the host's facts and the functions.
func OpenConsole(path string, o Options) (*Console, error) {
	l := newLoader(o)
	if path == "" {
		l.s.Dir = "."
		l.in = l.newScope(nil, ".", "", "", &hclsyntax.Body{Attributes: hclsyntax.Attributes{}})
		l.ctx = l.in.ctx
		if err := l.variables(l.in.body, nil); err != nil {
			return nil, err
		}
		l.names(l.in.body)
		return &Console{l}, nil
	}
	_, err := l.guarded(func() error {
		return l.read(path, func(bodies []*hclsyntax.Body, vars []string) error { return l.resolve(merge(bodies), vars) })
	})
	if err != nil {
		return nil, err
	}
	return &Console{l}, nil
}

// Eval evaluates an expression, and spells its value as HCL. Sensitive values are not
// shown. What is wrong with it is *Diagnostics.
func (c *Console) Eval(text string) (string, error) {
	const name = "the expression"
	if err := parseable([]byte(text), name); err != nil {
		return "", fmt.Errorf("read the expression: %w", err)
	}
	l := c.l
	l.diags = nil
	expr, diags := hclsyntax.ParseExpression([]byte(text), name, hcl.InitialPos)
	l.diags = append(l.diags, diags...)
	var value cty.Value
	if !diags.HasErrors() {
		dividedIn(expr)
		value, _ = l.value(expr, l.ctx)
	}
	if l.diags.HasErrors() {
		files := map[string]*hcl.File{name: {Bytes: []byte(text)}}
		return "", &Diagnostics{All: quieter(l.diags), Files: files}
	}
	return spelledValue(value), nil
}

// Whole says whether a text is a whole expression, as far as its brackets tell: where it
// is not, more lines belong to it.
func Whole(text string) bool {
	tokens, _ := hclsyntax.LexExpression([]byte(text), "", hcl.InitialPos)
	open := 0
	for _, token := range tokens {
		switch token.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateInterp,
			hclsyntax.TokenTemplateControl, hclsyntax.TokenOHeredoc:
			open++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd, hclsyntax.TokenCHeredoc:
			open--
		}
	}
	return open <= 0
}

const hidden = Hidden

// spelledValue spells a value as HCL, without what is sensitive in it.
func spelledValue(v cty.Value) string {
	if v.IsMarked() {
		return hidden
	}
	shown, err := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if v.IsMarked() {
			return cty.StringVal(hidden), nil
		}
		return v, nil
	})
	if err != nil { // a list or map whose elements differ in type, now that some are hidden
		shown = hide(v)
	}
	text := string(hclwrite.Format(hclwrite.TokensForValue(shown).Bytes()))
	switch t := v.Type(); {
	case t.IsSetType():
		return "toset(" + text + ")"
	case t.IsListType():
		return "tolist(" + text + ")"
	case t.IsMapType():
		return "tomap(" + text + ")"
	}
	return text
}

// hide is a value as plain objects and tuples, with what is sensitive in it hidden.
func hide(v cty.Value) cty.Value {
	switch t := v.Type(); {
	case v.IsMarked():
		return cty.StringVal(hidden)
	case v.IsNull() || !v.IsKnown():
		return v
	case t.IsMapType() || t.IsObjectType():
		object := map[string]cty.Value{}
		for name, element := range v.AsValueMap() {
			object[name] = hide(element)
		}
		return cty.ObjectVal(object)
	case t.IsListType() || t.IsTupleType() || t.IsSetType():
		var list []cty.Value
		for _, element := range v.AsValueSlice() {
			list = append(list, hide(element))
		}
		return cty.TupleVal(list)
	}
	return v
}

// ErrNoScroll says that there is no scroll where one was looked for.
var ErrNoScroll = errors.New("there is no .hcl file in it")

// Statement says whether a line of a console says something, and is no comment.
func Statement(line string) bool {
	line = strings.TrimSpace(line)
	return line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "//")
}
