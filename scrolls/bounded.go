package scrolls

import (
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
		return stdlib.IndentFunc.Call(args)
	},
})
