package reconcilers

import (
	"encoding/json"
	"maps"
	"time"

	"golem/scrolls"
)

// str is a string attribute; "" if it was not written.
func str(a scrolls.Attrs, name string) string {
	s, _ := a[name].(string)
	return s
}

// object is an attribute that holds an object; empty if it was not written.
func object(a scrolls.Attrs, name string) map[string]any {
	o, _ := a[name].(map[string]any)
	return o
}

// words is an attribute that holds a list of strings.
func words(a scrolls.Attrs, name string) []string {
	list, _ := a[name].([]any)
	all := make([]string, 0, len(list))
	for _, v := range list {
		s, _ := v.(string)
		all = append(all, s)
	}
	return all
}

// boolOf is a boolean attribute; nil if it was not written.
func boolOf(a scrolls.Attrs, name string) *bool {
	if b, ok := a[name].(bool); ok {
		return &b
	}
	return nil
}

// duration is an attribute that holds a length of time; d if it was not written.
func duration(a scrolls.Attrs, attr string, d time.Duration) time.Duration {
	if given, err := time.ParseDuration(str(a, attr)); err == nil {
		return given
	}
	return d
}

// wholeNumber is an attribute that holds one; n if it was not written, -1 for what is
// none.
func wholeNumber(a scrolls.Attrs, attr string, n int) int {
	given, ok := a[attr].(json.Number)
	if !ok {
		return n
	}
	whole, err := given.Int64()
	if err != nil || whole > 1<<30 {
		return -1
	}
	return int(whole)
}

// lessAttrs are a glyph's attributes less some.
func lessAttrs(a scrolls.Attrs, names ...string) scrolls.Attrs {
	c := maps.Clone(a)
	for _, name := range names {
		delete(c, name)
	}
	return c
}
