package scrolls

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// functions is the language's function set: terraform's core set under its names, as
// far as it is pure. Nothing here tells the time or makes up a value: a plan must be
// repeatable.
func (l *loader) functions() map[string]function.Function {
	all := map[string]function.Function{
		// numbers
		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "log": stdlib.LogFunc,
		"max": stdlib.MaxFunc, "min": stdlib.MinFunc, "parseint": stdlib.ParseIntFunc, "pow": stdlib.PowFunc,
		"signum": stdlib.SignumFunc,
		// strings
		"chomp": stdlib.ChompFunc, "format": stdlib.FormatFunc, "formatlist": stdlib.FormatListFunc,
		"indent": indentFunc, "join": joinFunc, "lower": stdlib.LowerFunc, "regex": stdlib.RegexFunc,
		"regexall": stdlib.RegexAllFunc, "replace": replaceFunc, "split": stdlib.SplitFunc,
		"strrev": stdlib.ReverseFunc, "substr": stdlib.SubstrFunc, "title": stdlib.TitleFunc, "trim": stdlib.TrimFunc,
		"trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc, "trimsuffix": stdlib.TrimSuffixFunc,
		"upper": stdlib.UpperFunc, "startswith": affix(true), "endswith": affix(false), "strcontains": containsText,
		// collections
		"chunklist": stdlib.ChunklistFunc, "coalesce": coalesceFunc, "coalescelist": stdlib.CoalesceListFunc,
		"compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc,
		"distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc, "flatten": stdlib.FlattenFunc,
		"keys": stdlib.KeysFunc, "length": lengthFunc, "lookup": lookupFunc, "merge": stdlib.MergeFunc,
		"one": oneFunc, "range": stdlib.RangeFunc, "reverse": stdlib.ReverseListFunc,
		"setintersection": stdlib.SetIntersectionFunc, "setproduct": setProductFunc,
		"setsubtract": stdlib.SetSubtractFunc, "setunion": stdlib.SetUnionFunc, "slice": stdlib.SliceFunc,
		"alltrue": every(true), "anytrue": every(false), "index": indexFunc, "matchkeys": matchKeysFunc,
		"transpose": transposeFunc,
		"sort":      stdlib.SortFunc, "sum": sumFunc, "values": stdlib.ValuesFunc, "zipmap": stdlib.ZipmapFunc,
		// types
		"can": tryfunc.CanFunc, "try": tryfunc.TryFunc,
		"tobool":   stdlib.MakeToFunc(cty.Bool),
		"tolist":   stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)),
		"tomap":    stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
		"tonumber": stdlib.MakeToFunc(cty.Number),
		"toset":    stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
		"tostring": stdlib.MakeToFunc(cty.String),
		// encoding
		"csvdecode": stdlib.CSVDecodeFunc, "jsondecode": stdlib.JSONDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc,
		"base64encode": text(func(s string) (string, error) { return base64.StdEncoding.EncodeToString([]byte(s)), nil }),
		"base64decode": text(decodeBase64),
		"urlencode":    text(func(s string) (string, error) { return url.QueryEscape(s), nil }),
		"urldecode":    text(decodeURL),
		"yamlencode":   ctyyaml.YAMLEncodeFunc, "yamldecode": ctyyaml.YAMLDecodeFunc,
		"textencodebase64": textEncodeFunc, "textdecodebase64": textDecodeFunc,
		"base64sha256": text(hashed(sha256.New, base64.StdEncoding.EncodeToString)),
		"base64sha512": text(hashed(sha512.New, base64.StdEncoding.EncodeToString)),
		"md5":          text(hashed(md5.New, hex.EncodeToString)), "sha1": text(hashed(sha1.New, hex.EncodeToString)),
		"sha256": text(hashed(sha256.New, hex.EncodeToString)), "sha512": text(hashed(sha512.New, hex.EncodeToString)),
		"uuidv5": uuidFunc,
		// dates
		"formatdate": stdlib.FormatDateFunc, "timeadd": stdlib.TimeAddFunc, "timecmp": timeCompareFunc,
		// networks
		"cidrhost": cidr([]string{"number"}, cidrHost), "cidrnetmask": cidr(nil, cidrNetmask),
		"cidrsubnet": cidr([]string{"bits", "number"}, cidrSubnet), "cidrsubnets": cidrSubnetsFunc,
		// names of files
		"basename": text(func(s string) (string, error) { return path.Base(s), nil }),
		"dirname":  text(func(s string) (string, error) { return path.Dir(s), nil }),
		// marks
		"sensitive": markFunc(true), "nonsensitive": markFunc(false), "issensitive": isSensitiveFunc,
	}
	l.fileFunctions(all)
	return all
}

// text makes a function of one string.
func text(fn func(string) (string, error)) function.Function { return textNamed("text", fn) }

// textNamed makes a function of one string, which messages call by a name.
func textNamed(name string, fn func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: name, Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			out, err := fn(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.StringVal(out), nil
		},
	})
}

func hashed(make func() hash.Hash, spell func([]byte) string) func(string) (string, error) {
	return func(s string) (string, error) {
		h := make()
		h.Write([]byte(s))
		return spell(h.Sum(nil)), nil
	}
}

func decodeBase64(s string) (string, error) {
	out, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return "", fmt.Errorf("it is not base64: %w", err)
	}
	if !utf8.Valid(out) {
		return "", fmt.Errorf("what it holds is not UTF-8; a file takes it as content_base64")
	}
	return string(out), nil
}

// replaceFunc is terraform's replace: a pattern between slashes is a regular
// expression, anything else is literal.
var replaceFunc = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "text", Type: cty.String}, {Name: "old", Type: cty.String}, {Name: "new", Type: cty.String},
	},
	Type: function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		old := args[1].AsString()
		if len(old) > 1 && old[0] == '/' && old[len(old)-1] == '/' {
			return replacePattern(args[0], old[1:len(old)-1], args[2])
		}
		if n := strings.Count(args[0].AsString(), old) * len(args[2].AsString()); n > maxValue {
			return cty.NilVal, errTooLong
		}
		return stdlib.Replace(args[0], args[1], args[2])
	},
})

// affix makes startswith and endswith.
func affix(start bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: "part", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			s, part := args[0].AsString(), args[1].AsString()
			if len(part) > len(s) {
				return cty.False, nil
			}
			if start {
				return cty.BoolVal(s[:len(part)] == part), nil
			}
			return cty.BoolVal(s[len(s)-len(part):] == part), nil
		},
	})
}

var containsText = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: "part", Type: cty.String}},
	Type:   function.StaticReturnType(cty.Bool),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		s, part := args[0].AsString(), args[1].AsString()
		for i := 0; i+len(part) <= len(s); i++ {
			if s[i:i+len(part)] == part {
				return cty.True, nil
			}
		}
		return cty.False, nil
	},
})

// lengthFunc counts elements of a collection or characters of a string.
var lengthFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true, AllowMarked: true}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		value, marks := args[0].Unmark()
		t := value.Type()
		switch {
		case t == cty.String:
			n, err := stdlib.Strlen(value)
			return n.WithMarks(marks), err
		case t.IsObjectType():
			return cty.NumberIntVal(int64(len(t.AttributeTypes()))).WithMarks(marks), nil
		case t.IsTupleType() || t.IsCollectionType():
			return value.Length().WithMarks(marks), nil
		}
		return cty.NilVal, function.NewArgErrorf(0, "it is %s, not a string or a collection", t.FriendlyName())
	},
})

// oneFunc is the only element of a list, or null for none.
var oneFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
	Type:   function.StaticReturnType(cty.DynamicPseudoType),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if !args[0].CanIterateElements() {
			return cty.NilVal, function.NewArgErrorf(0, "it is not a list, set or tuple")
		}
		switch args[0].LengthInt() {
		case 0:
			return cty.NullVal(cty.DynamicPseudoType), nil
		case 1:
			it := args[0].ElementIterator()
			it.Next()
			_, value := it.Element()
			return value, nil
		}
		return cty.NilVal, function.NewArgErrorf(0, "it has more than one element")
	},
})

var sumFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Number)}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if args[0].LengthInt() == 0 {
			return cty.NilVal, function.NewArgErrorf(0, "it is empty. Where it may be, add a 0: sum(concat([0], …))")
		}
		total := cty.Zero
		for it := args[0].ElementIterator(); it.Next(); {
			_, value := it.Element()
			total = total.Add(value)
		}
		return total, nil
	},
})

// markFunc makes sensitive and nonsensitive.
func markFunc(mark bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowNull: true, AllowMarked: true, AllowDynamicType: true}},
		Type:   func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			value, _ := args[0].Unmark()
			if mark {
				return value.Mark(sensitive), nil
			}
			return value, nil
		},
	})
}

var isSensitiveFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowNull: true, AllowMarked: true, AllowDynamicType: true}},
	Type:   function.StaticReturnType(cty.Bool),
	Impl:   func(args []cty.Value, _ cty.Type) (cty.Value, error) { return cty.BoolVal(args[0].IsMarked()), nil },
})
