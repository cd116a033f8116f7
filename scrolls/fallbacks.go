package scrolls

import (
	"errors"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// coalesceFunc is the first value that is neither null nor, among strings, empty.
var coalesceFunc = function.New(&function.Spec{
	VarParam: &function.Parameter{
		Name: "values", Type: cty.DynamicPseudoType,
		AllowUnknown: true, AllowDynamicType: true, AllowNull: true, AllowMarked: true,
	},
	Type: stdlib.CoalesceFunc.ReturnTypeForValues,
	Impl: func(args []cty.Value, of cty.Type) (cty.Value, error) {
		var marks []cty.ValueMarks // of what was passed over: it decided too
		for _, arg := range args {
			value, own := arg.Unmark()
			marks = append(marks, own)
			if !value.IsKnown() {
				return cty.UnknownVal(of).WithMarks(marks...), nil
			}
			if value.IsNull() || of == cty.String && value.RawEquals(cty.StringVal("")) {
				continue
			}
			found, err := stdlib.CoalesceFunc.Call([]cty.Value{arg, cty.NullVal(of)})
			return found.WithMarks(marks...), err
		}
		return cty.NilVal, errors.New("every value is null or empty")
	},
})

// lookupFunc is an element of a map by its key, or else the default, which may be left
// out where the key is there.
var lookupFunc = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "map", Type: cty.DynamicPseudoType, AllowMarked: true},
		{Name: "key", Type: cty.String, AllowMarked: true},
	},
	VarParam: &function.Parameter{Name: "default", Type: cty.DynamicPseudoType, AllowMarked: true, AllowNull: true, AllowDynamicType: true},
	Type: func(args []cty.Value) (cty.Type, error) {
		found, err := lookup(args)
		return found.Type(), err
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		return lookup(args)
	},
})

// lookup finds a key in a map or an object.
func lookup(args []cty.Value) (cty.Value, error) {
	from, marks := args[0].Unmark()
	key, keyMarks := args[1].Unmark()
	t := from.Type()
	switch {
	case len(args) > 3:
		return cty.DynamicVal, function.NewArgErrorf(3, "there is one default at most")
	case !t.IsMapType() && !t.IsObjectType():
		return cty.DynamicVal, function.NewArgErrorf(0, "it is %s, not a map", t.FriendlyName())
	case !from.IsKnown() || !key.IsKnown():
		return cty.DynamicVal, nil
	}
	if element, ok := from.AsValueMap()[key.AsString()]; ok {
		return element.WithMarks(marks, keyMarks), nil
	}
	if len(args) < 3 {
		return cty.DynamicVal, function.NewArgErrorf(1, "the map has no such key; a third argument is what to take then")
	}
	instead := args[2]
	if t.IsMapType() {
		converted, err := convert.Convert(instead, t.ElementType())
		if err != nil {
			return cty.DynamicVal, function.NewArgErrorf(2, "it is not of the type that the map holds")
		}
		instead = converted
	}
	return instead.WithMarks(marks, keyMarks), nil
}
