package scrolls

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"golang.org/x/text/unicode/norm"
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

// attribute evaluates one written attribute.
func (l *loader) attribute(g *Glyph, kind *kindInfo, attr *hclsyntax.Attribute, ctx *hcl.EvalContext) {
	spec := kind.attrs[attr.Name]
	if spec == nil {
		l.unknownAttribute(kind, attr)
		return
	}
	g.Where[attr.Name] = attr.Expr.Range()
	value, ok := l.value(attr.Expr, ctx)
	if !ok {
		return
	}
	value, marks := value.UnmarkDeep()
	secret := len(marks) > 0 || spec.Secret
	if value.IsNull() && !spec.Null {
		delete(g.Where, attr.Name)
		return
	}
	typed, why := convertTo(value, spec, secret)
	if why != "" {
		l.fail("Wrong type of value", fmt.Sprintf("The argument %q of %s is %s; %s.%s", attr.Name, kind.one("a"),
			article(spec.Type), why, spaced(spec.Hint)), attr.Expr.Range())
		return
	}
	if secret {
		g.Secret = append(g.Secret, attr.Name)
	}
	if spec.File && !(spec.URL && strings.Contains(typed.AsString(), "://")) {
		l.file(g, attr, typed.AsString(), secret)
		return
	}
	if spec.Folder && typed.Type() == cty.String {
		l.folder(g, attr, typed.AsString(), secret)
		return
	}
	g.Attrs[attr.Name] = plain(typed)
}

func spaced(s string) string {
	if s == "" {
		return ""
	}
	return " " + s
}

func (l *loader) unknownAttribute(kind *kindInfo, attr *hclsyntax.Attribute) {
	known := slices.Clone(metaArguments)
	if kind.check {
		known = []string{"for_each", "when"}
	}
	for name := range kind.attrs {
		known = append(known, name)
	}
	slices.Sort(known)
	l.fail("Unsupported argument", fmt.Sprintf("%s has no argument %q.%s%s", kind.one("A"), attr.Name, other(otherArguments, attr.Name), didYouMean(attr.Name, known)), attr.NameRange)
}

// convertTo converts a value to what the attribute holds, or says why it cannot.
func convertTo(value cty.Value, spec *Attr, secret bool) (cty.Value, string) {
	given := article(value.Type()) + " is given"
	if spec.Exact && !value.Type().Equals(spec.Type) {
		return value, given
	}
	typed, err := convert.Convert(value, spec.Type)
	switch {
	case err != nil && !secret && !value.Type().IsPrimitiveType() && !spec.Type.IsPrimitiveType(): // what is wrong is inside
		return value, fmt.Sprintf("%s: %s", given, inside(err))
	case err != nil:
		return value, given
	case !typed.IsWhollyKnown():
		return value, "its value is not known"
	case !spellable(typed):
		return value, "a number beyond measure is given"
	}
	return typed, ""
}

// article is a type's name with its article.
func article(t cty.Type) string {
	name := t.FriendlyName()
	switch {
	case t == cty.DynamicPseudoType:
		return "a value of any type"
	case t.IsTupleType():
		return "a list"
	}
	if strings.HasPrefix(name, "object") || strings.HasPrefix(name, "any") {
		return "an " + name
	}
	return "a " + name
}

// maxExponent bounds numbers, as powers of two: what is larger or finer is no number
// of anything on a host, and would take all memory to spell.
const maxExponent = 1024

// spellable says whether all numbers in a value can be spelled out.
func spellable(v cty.Value) bool {
	ok := true
	_ = cty.Walk(v, func(_ cty.Path, v cty.Value) (bool, error) {
		if !v.IsNull() && v.Type() == cty.Number {
			f := v.AsBigFloat()
			exponent := f.MantExp(nil)
			ok = ok && !f.IsInf() && exponent <= maxExponent && exponent >= -maxExponent
		}
		return ok, nil
	})
	return ok
}

// identity refuses a key that cannot be shown, or that HCL made of other bytes than
// those written: it holds all strings in Unicode's normal form C, and a path in another
// form is another path.
func (l *loader) identity(g *Glyph, kind *kindInfo, parts []string) {
	for name, at := range g.Where {
		secret, changed := slices.Contains(g.Secret, name), l.changedForm(at)
		if !secret && !changed || !identifies(kind, g.Attrs, name, parts) {
			continue
		}
		if secret {
			l.fail("Identity is sensitive", fmt.Sprintf("%q is part of the glyph's key, which is shown everywhere. It cannot come from a sensitive value.%s", name, spaced(kind.attrs[name].Sensitive)), at)
		} else {
			l.fail("Text is not in normal form C", "HCL would change the bytes of it. No glyph can name what is not in Unicode's normal form C.", at)
		}
	}
}

// identifies says whether an attribute is part of the key: whether another value of it
// makes another key.
func identifies(kind *kindInfo, attrs Attrs, name string, parts []string) bool {
	text, _ := attrs[name].(string)
	other := maps.Clone(attrs)
	other[name] = text + "x"
	return !slices.Equal(parts, kind.Identity(other))
}

// changedForm says whether HCL changed the bytes that are written at a place.
func (l *loader) changedForm(at hcl.Range) bool {
	file := l.s.Files[at.Filename]
	return file != nil && at.CanSliceBytes(file.Bytes) && !norm.NFC.IsNormal(unescaped(at.SliceBytes(file.Bytes)))
}

// escapedRune is a character in a string of HCL that is written as its number.
var escapedRune = regexp.MustCompile(`\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}`)

// unescaped is source text with such characters as themselves.
func unescaped(src []byte) []byte {
	return escapedRune.ReplaceAllFunc(src, func(escape []byte) []byte {
		r, err := strconv.ParseUint(string(escape[2:]), 16, 32)
		if err != nil || r > unicode.MaxRune {
			return escape
		}
		return utf8.AppendRune(nil, rune(r))
	})
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

// file puts a local file's hash and size in the place of its name.
func (l *loader) file(g *Glyph, attr *hclsyntax.Attribute, name string, secret bool) {
	path := l.abs(name)
	sum, size, err := hashFile(path)
	if err != nil {
		l.fail("Source cannot be read", fmt.Sprintf("%s: %s.", named(name, "The file", secret), err), attr.Expr.Range())
		return
	}
	l.seen.addSum("file", l.noted(name), sum)
	g.Attrs[attr.Name] = map[string]any{"path": name, "sha256": sum, "size": json.Number(strconv.FormatInt(size, 10))}
	if g.Files == nil {
		g.Files = map[string]string{}
	}
	g.Files[attr.Name] = path
}

// named is a name in quotes, or what it is the name of where that is sensitive.
func named(name, what string, secret bool) string {
	if secret {
		return what
	}
	return strconv.Quote(name)
}

// hashFile hashes a regular file of any size, in little memory.
func hashFile(path string) (sum string, size int64, err error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", 0, bare(err)
	}
	if st.IsDir() {
		return "", 0, errors.New("it is a directory, not a file")
	}
	if !st.Mode().IsRegular() {
		return "", 0, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", 0, bare(err)
	}
	defer f.Close()
	hash := sha256.New()
	if size, err = io.Copy(hash, f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(hash.Sum(nil)), size, nil
}

// plain turns a value into what Attrs hold.
func plain(v cty.Value) any {
	switch t := v.Type(); {
	case v.IsNull():
		return nil
	case t == cty.String:
		return v.AsString()
	case t == cty.Bool:
		return v.True()
	case t == cty.Number:
		return number(v.AsBigFloat())
	case t.IsObjectType() || t.IsMapType():
		object := map[string]any{}
		for it := v.ElementIterator(); it.Next(); {
			key, value := it.Element()
			object[key.AsString()] = plain(value)
		}
		return object
	default:
		list := []any{}
		for it := v.ElementIterator(); it.Next(); {
			_, value := it.Element()
			list = append(list, plain(value))
		}
		return list
	}
}

// number spells a number in as few digits as say it exactly.
func number(f *big.Float) json.Number {
	if f.IsInt() {
		i, _ := f.Int(nil)
		return json.Number(i.String())
	}
	return json.Number(f.Text('g', -1))
}
