package scrolls

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"golang.org/x/text/unicode/norm"
)

// fileFunctions adds the functions that read files. A name is relative to the
// scroll's directory; what is read is part of the scroll's digest.
func (l *loader) fileFunctions(all map[string]function.Function) {
	whole := func(spell func([]byte) (string, error)) function.Function {
		return textNamed("path", func(name string) (string, error) {
			data, err := l.readFile(name)
			if err != nil {
				return "", err
			}
			out, err := spell(data)
			if err != nil {
				return "", fmt.Errorf("cannot use %q: %w", name, err)
			}
			return out, nil
		})
	}
	sum := func(fn func([]byte) []byte, spell func([]byte) string) function.Function {
		return whole(func(data []byte) (string, error) { return spell(fn(data)), nil })
	}
	all["file"] = whole(utf8Text)
	all["filebase64"] = whole(func(data []byte) (string, error) { return base64.StdEncoding.EncodeToString(data), nil })
	all["filemd5"] = sum(func(d []byte) []byte { s := md5.Sum(d); return s[:] }, hex.EncodeToString)
	all["filesha1"] = sum(func(d []byte) []byte { s := sha1.Sum(d); return s[:] }, hex.EncodeToString)
	all["filesha256"] = sum(func(d []byte) []byte { s := sha256.Sum256(d); return s[:] }, hex.EncodeToString)
	all["filesha512"] = sum(func(d []byte) []byte { s := sha512.Sum512(d); return s[:] }, hex.EncodeToString)
	all["filebase64sha256"] = sum(func(d []byte) []byte { s := sha256.Sum256(d); return s[:] }, base64.StdEncoding.EncodeToString)
	all["filebase64sha512"] = sum(func(d []byte) []byte { s := sha512.Sum512(d); return s[:] }, base64.StdEncoding.EncodeToString)
	all["fileexists"] = l.fileExists()
	all["fileset"] = l.fileSet()
	all["templatefile"], all["templatestring"] = l.templates(all)
}

func utf8Text(data []byte) (string, error) {
	if !utf8.Valid(data) {
		return "", errors.New("it is not UTF-8; use filebase64, or a file's source argument, which takes any bytes")
	}
	if !norm.NFC.IsNormal(data) {
		return "", errors.New("it is not in Unicode's normal form C, so that HCL would change its bytes; use filebase64, or a file's source argument, which takes any bytes")
	}
	return string(data), nil
}

// maxFunctionFile is the largest file that a function reads into a value.
const maxFunctionFile = 64 << 20

func (l *loader) readFile(name string) ([]byte, error) {
	path := l.abs(name)
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read %q: %w", name, bare(err))
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("cannot read %q: it is not a regular file", name)
	case st.Size() > maxFunctionFile:
		return nil, fmt.Errorf("cannot read %q: it is larger than 64 MiB; a file's source argument takes any size", name)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", name, bare(err))
	}
	l.seen.add("file", l.noted(name), data)
	return data, nil
}

func (l *loader) fileExists() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			name := args[0].AsString()
			st, err := os.Stat(l.abs(name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return cty.NilVal, function.NewArgError(0, err)
			}
			there := err == nil && st.Mode().IsRegular()
			l.seen.addSum("exists", l.noted(name), fmt.Sprint(there))
			return cty.BoolVal(there), nil
		},
	})
}

// fileSet is the set of regular files beneath a directory that match a pattern.
func (l *loader) fileSet() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}, {Name: "pattern", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Set(cty.String)),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			dir, pattern := args[0].AsString(), args[1].AsString()
			if st, err := os.Stat(l.abs(dir)); err != nil || !st.IsDir() {
				return cty.NilVal, function.NewArgErrorf(0, "%q is not a directory", dir)
			}
			if !doublestar.ValidatePattern(pattern) {
				return cty.NilVal, function.NewArgErrorf(1, "%q is not a pattern", pattern)
			}
			names, err := doublestar.Glob(os.DirFS(l.abs(dir)), pattern, doublestar.WithFilesOnly(), doublestar.WithFailOnIOErrors())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, bare(err))
			}
			sort.Strings(names)
			values := make([]cty.Value, len(names))
			for i, name := range names {
				values[i] = cty.StringVal(name)
			}
			l.seen.add("files", l.noted(dir)+" "+pattern, fmt.Append(nil, names))
			if len(values) == 0 {
				return cty.SetValEmpty(cty.String), nil
			}
			return cty.SetVal(values), nil
		},
	})
}

// templates are the functions that evaluate a file or a text as a template, with the given
// variables and every function but themselves.
func (l *loader) templates(all map[string]function.Function) (file, text function.Function) {
	inner := maps.Clone(all)
	param := func(name string) function.Parameter { return function.Parameter{Name: name, Type: cty.String} }
	vars := function.Parameter{Name: "vars", Type: cty.DynamicPseudoType, AllowMarked: true}
	file = function.New(&function.Spec{
		Params: []function.Parameter{param("path"), vars}, Type: function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			name := args[0].AsString()
			data, err := l.readFile(name)
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			if _, err := utf8Text(data); err != nil {
				return cty.NilVal, function.NewArgErrorf(0, "cannot use %q: %w", name, err)
			}
			return render(data, name, args[1], inner)
		},
	})
	text = function.New(&function.Spec{
		Params: []function.Parameter{param("template"), vars}, Type: function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return render([]byte(args[0].AsString()), "the template", args[1], inner)
		},
	})
	return file, text
}

// render evaluates a template; shown is how messages call it.
func render(data []byte, shown string, args cty.Value, functions map[string]function.Function) (cty.Value, error) {
	if err := shallow(data, shown, hclsyntax.LexTemplate); err != nil {
		return cty.NilVal, function.NewArgErrorf(0, "cannot use %q: %w", shown, err)
	}
	vars, marks := args.Unmark()
	if !vars.CanIterateElements() || !(vars.Type().IsObjectType() || vars.Type().IsMapType()) {
		return cty.NilVal, function.NewArgErrorf(1, "the variables are a map or an object")
	}
	expr, diags := hclsyntax.ParseTemplate(data, shown, hcl.InitialPos)
	if diags.HasErrors() {
		return cty.NilVal, templateError(shown, diags)
	}
	dividedIn(expr)
	given := vars.AsValueMap()
	if given == nil {
		given = map[string]cty.Value{} // none, but allowed
	}
	value, diags := expr.Value(&hcl.EvalContext{Variables: given, Functions: functions})
	if diags.HasErrors() {
		return cty.NilVal, templateError(shown, diags)
	}
	text, err := convert.Convert(value, cty.String)
	if err != nil || text.IsNull() || !text.IsKnown() {
		return cty.NilVal, function.NewArgErrorf(0, "%q makes %s, not text", shown, value.Type().FriendlyName())
	}
	return text.WithMarks(marks), nil
}

// templateError tells a template's first mistake with its place in the template.
func templateError(name string, diags hcl.Diagnostics) error {
	d := diags[0]
	line := 0
	if d.Subject != nil {
		line = d.Subject.Start.Line
	}
	return function.NewArgErrorf(0, "%s:%d: %s; %s", name, line, d.Summary, strings.TrimSuffix(d.Detail, "."))
}
