package scrolls

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

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

// unknownAttribute notes an argument that the kind does not have.
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
