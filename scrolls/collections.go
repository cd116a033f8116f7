package scrolls

import (
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// every makes alltrue (want true) and anytrue (want false): the answer is want, unless
// one element is not.
func every(want bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			for it := args[0].ElementIterator(); it.Next(); {
				_, value := it.Element()
				if (!value.IsNull() && value.True()) != want {
					return cty.BoolVal(!want), nil
				}
			}
			return cty.BoolVal(want), nil
		},
	})
}

// indexFunc is the place of the first element that equals a value.
var indexFunc = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "list", Type: cty.DynamicPseudoType}, {Name: "value", Type: cty.DynamicPseudoType},
	},
	Type: function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if t := args[0].Type(); !t.IsListType() && !t.IsTupleType() {
			return cty.NilVal, function.NewArgErrorf(0, "it is %s, not a list", t.FriendlyName())
		}
		for it := args[0].ElementIterator(); it.Next(); {
			at, value := it.Element()
			if equal := value.Equals(args[1]); equal.IsKnown() && equal.True() {
				return at, nil
			}
		}
		return cty.NilVal, function.NewArgErrorf(1, "it is not in the list")
	},
})

// matchKeysFunc picks the values whose key, in a second list, is one of a third.
var matchKeysFunc = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "values", Type: cty.List(cty.DynamicPseudoType)},
		{Name: "keys", Type: cty.List(cty.DynamicPseudoType)},
		{Name: "wanted", Type: cty.List(cty.DynamicPseudoType)},
	},
	Type: func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
	Impl: func(args []cty.Value, of cty.Type) (cty.Value, error) {
		values, keys, wanted := args[0].AsValueSlice(), args[1].AsValueSlice(), args[2].AsValueSlice()
		if len(values) != len(keys) {
			return cty.NilVal, function.NewArgErrorf(1, "it has another length than the values")
		}
		var picked []cty.Value
		for i, key := range keys {
			for _, want := range wanted {
				if equal := key.Equals(want); equal.IsKnown() && equal.True() {
					picked = append(picked, values[i])
					break
				}
			}
		}
		if len(picked) == 0 {
			return cty.ListValEmpty(of.ElementType()), nil
		}
		return cty.ListVal(picked), nil
	},
})

// transposeFunc turns a map of lists of words into a map from each word to the keys
// that had it, sorted.
var transposeFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "map", Type: cty.Map(cty.List(cty.String))}},
	Type:   function.StaticReturnType(cty.Map(cty.List(cty.String))),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		turned := map[string][]cty.Value{}
		for it := args[0].ElementIterator(); it.Next(); { // in the order of the keys
			key, words := it.Element()
			for inner := words.ElementIterator(); inner.Next(); {
				_, word := inner.Element()
				if word.IsNull() {
					return cty.NilVal, function.NewArgErrorf(0, "a list in it holds null")
				}
				turned[word.AsString()] = append(turned[word.AsString()], key)
			}
		}
		if len(turned) == 0 {
			return cty.MapValEmpty(cty.List(cty.String)), nil
		}
		out := map[string]cty.Value{}
		for word, keys := range turned {
			out[word] = cty.ListVal(keys)
		}
		return cty.MapVal(out), nil
	},
})

// timeCompareFunc is -1, 0 or 1 as the first time is before, at or after the second.
var timeCompareFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "a", Type: cty.String}, {Name: "b", Type: cty.String}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		var times [2]time.Time
		for i := range times {
			t, err := time.Parse(time.RFC3339, args[i].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgErrorf(i, `it is not a time like "2006-01-02T15:04:05Z"`)
			}
			times[i] = t
		}
		return cty.NumberIntVal(int64(times[0].Compare(times[1]))), nil
	},
})
