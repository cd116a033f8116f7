package scrolls

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// glyphs evaluates one block: one glyph, or for each instance of one that repeats its
// own; without those that are not declared, and those with a mistake, which is noted.
func (l *loader) glyphs(block *hclsyntax.Block) []*Glyph {
	label, ok := l.label(block)
	if !ok {
		return nil
	}
	return l.repeated(block, l.kinds[block.Type], label)
}

// repeated evaluates the instances of a block of a kind.
func (l *loader) repeated(block *hclsyntax.Block, kind *kindInfo, label string) []*Glyph {
	var all []*Glyph
	each := block.Body.Attributes["for_each"]
	if each != nil && kind.LabelAttr != "" && block.Body.Attributes[kind.LabelAttr] == nil {
		l.fail("Missing argument", fmt.Sprintf("A label is the same for all that for_each makes, and would name them all: write %s = … with each.key in it.", kind.LabelAttr), each.NameRange)
		return nil
	}
	for _, i := range l.instances(block) {
		if i.absent {
			continue
		}
		if !i.each && !l.more(1, block.DefRange()) {
			return all
		}
		g := l.glyph(block, kind, label, i.ctx)
		if g == nil {
			return all // the next ones would say the same
		}
		g.Each = i.key
		all = append(all, g)
	}
	return all
}

// glyph evaluates a block as a glyph of a kind; nil with a mistake noted.
func (l *loader) glyph(block *hclsyntax.Block, kind *kindInfo, label string, ctx *hcl.EvalContext) *Glyph {
	g := &Glyph{
		Kind: kind.Name, Version: kind.Version, Label: label, Attrs: Attrs{}, At: block.DefRange(),
		Where: map[string]Place{},
	}
	before := len(l.diags)
	for _, inner := range block.Body.Blocks {
		l.fail("Unsupported block type", fmt.Sprintf("%s has no blocks in it.%s", kind.one("A"), other(otherBlocks, inner.Type)), inner.DefRange())
	}
	for _, name := range sortedAttrs(block.Body) {
		if attr := block.Body.Attributes[name]; kind.attrs[name] != nil || !l.metaArgument(g, kind, attr, ctx) {
			l.attribute(g, kind, attr, ctx)
		}
	}
	l.labelAttribute(g, kind, block)
	l.required(g, kind)
	if l.diags[before:].HasErrors() {
		return nil
	}
	slices.Sort(g.Secret)
	l.check(g, kind, block, ctx)
	if l.diags[before:].HasErrors() {
		return nil
	}
	l.inModule(g, kind)
	parts := kind.Identity(g.Attrs)
	l.identity(g, kind, parts)
	g.Key = kind.KeyOf(g.Attrs)
	return g
}

// labelAttribute gives the label's attribute the label, if it is not written.
func (l *loader) labelAttribute(g *Glyph, kind *kindInfo, block *hclsyntax.Block) {
	if kind.LabelAttr == "" {
		return
	}
	if _, written := block.Body.Attributes[kind.LabelAttr]; written && g.Where[kind.LabelAttr].Filename != "" {
		return
	}
	g.Attrs[kind.LabelAttr] = g.Label
	g.Where[kind.LabelAttr] = block.LabelRanges[0]
}

// inModule puts a module's path before a name that says nothing to the host.
func (l *loader) inModule(g *Glyph, kind *kindInfo) {
	if name, ok := g.Attrs[kind.LabelAttr].(string); ok && kind.Local && l.in.path != "" {
		g.Attrs[kind.LabelAttr] = l.in.path + "/" + name
	}
}

// required names every argument that is missing, in one mistake.
func (l *loader) required(g *Glyph, kind *kindInfo) {
	var missing []string
	for _, spec := range kind.Attrs {
		if _, ok := g.Where[spec.Name]; spec.Required && !ok {
			missing = append(missing, strconv.Quote(spec.Name))
		}
	}
	switch len(missing) {
	case 0:
	case 1:
		l.fail("Missing argument", fmt.Sprintf("%s needs the argument %s.", kind.one("A"), missing[0]), g.At)
	default:
		l.fail("Missing arguments", fmt.Sprintf("%s needs the arguments %s.", kind.one("A"), strings.Join(missing, " and ")), g.At)
	}
}

// check lets the kind look at the attributes, and shows what it finds at the places
// they are written, with the variables they were made from.
func (l *loader) check(g *Glyph, kind *kindInfo, block *hclsyntax.Block, ctx *hcl.EvalContext) {
	if kind.Check == nil {
		return
	}
	for _, problem := range kind.Check(g.Attrs) {
		at := g.At
		d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: problem.Summary, Detail: problem.Detail, Subject: &at}
		if where, ok := g.Where[problem.Attr]; ok {
			at = where
		}
		if shows(g, problem) {
			d.Detail = "The value is sensitive and not shown."
		} else if attr := block.Body.Attributes[problem.Attr]; attr != nil {
			d.Expression, d.EvalContext = attr.Expr, ctx
		}
		l.diags = append(l.diags, d)
	}
}

// shows says whether a problem's words could give a sensitive value away.
func shows(g *Glyph, problem Problem) bool {
	return slices.ContainsFunc(g.Secret, func(name string) bool {
		return name == problem.Attr || quotes(problem.Detail, g.Attrs[name])
	})
}

// quotes says whether a text has one of a value's texts in it.
func quotes(text string, value any) bool {
	switch v := value.(type) {
	case string:
		return v != "" && strings.Contains(text, v)
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return quotes(text, one) })
	case map[string]any:
		for name := range v {
			if quotes(text, name) || quotes(text, v[name]) {
				return true
			}
		}
	}
	return false
}
