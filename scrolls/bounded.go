package scrolls

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	"github.com/zclconf/go-cty/cty/gocty"
)

const (
	// maxProduct bounds what setproduct makes of a few short lists.
	maxProduct = 100_000
	// maxIndent bounds what indent puts before every line.
	maxIndent = 1_000
)

// setProductFunc is terraform's setproduct, of no more combinations than fit in memory.
var setProductFunc = function.New(&function.Spec{
	VarParam: &function.Parameter{Name: "sets", Type: cty.DynamicPseudoType, AllowMarked: true, AllowUnknown: true},
	Type:     stdlib.SetProductFunc.ReturnTypeForValues,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		total := 1
		for i, arg := range args {
			set, _ := arg.Unmark()
			if !set.IsKnown() {
				continue
			}
			if total *= set.LengthInt(); total > maxProduct {
				return cty.NilVal, function.NewArgErrorf(i, "it makes more than %d combinations", maxProduct)
			}
		}
		return stdlib.SetProductFunc.Call(args)
	},
})

// indentFunc is terraform's indent, by no more than a line could need.
var indentFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "spaces", Type: cty.Number}, {Name: "text", Type: cty.String}},
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		var spaces int
		if gocty.FromCtyValue(args[0], &spaces) != nil || spaces < 0 || spaces > maxIndent {
			return cty.NilVal, function.NewArgErrorf(0, "it is not a whole number from 0 to %d", maxIndent)
		}
		if strings.Count(args[1].AsString(), "\n")*spaces > maxValue {
			return cty.NilVal, errTooLong
		}
		return stdlib.IndentFunc.Call(args)
	},
})

var errTooLong = fmt.Errorf("what it makes is longer than %d MiB", maxValue>>20)

// replacePattern is replace with a regular expression.
func replacePattern(text cty.Value, pattern string, with cty.Value) (cty.Value, error) {
	if found, err := regexp.Compile(pattern); err == nil {
		places := len(found.FindAllStringIndex(text.AsString(), -1))
		longest := len(with.AsString()) + strings.Count(with.AsString(), "$")*len(text.AsString())
		if longest > 0 && places > maxValue/longest {
			return cty.NilVal, errTooLong
		}
	}
	return stdlib.RegexReplace(text, cty.StringVal(pattern), with)
}

// joinFunc is terraform's join, of no more than fits in memory.
var joinFunc = function.New(&function.Spec{
	Params:   stdlib.JoinFunc.Params(),
	VarParam: stdlib.JoinFunc.VarParam(),
	Type:     function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		parts := 0
		for _, list := range args[1:] {
			if list.CanIterateElements() {
				parts += list.LengthInt()
			}
		}
		if long := len(args[0].AsString()); long > 0 && parts > maxValue/long {
			return cty.NilVal, errTooLong
		}
		return stdlib.JoinFunc.Call(args)
	},
})

// divideFunc and moduloFunc are the operators, which take nothing for a divisor.
var (
	divideFunc = dividing(stdlib.DivideFunc)
	moduloFunc = dividing(stdlib.ModuloFunc)
)

func dividing(by function.Function) function.Function {
	return function.New(&function.Spec{
		Params: by.Params(),
		Type:   function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if args[1].AsBigFloat().Sign() == 0 {
				return cty.NilVal, errors.New("a number is divided by 0")
			}
			return by.Call(args)
		},
	})
}
