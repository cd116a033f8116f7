package plan

import (
	"testing"

	"golem/scrolls"
)

func TestPatternsNameKeysAndLeaves(t *testing.T) {
	for _, c := range []struct {
		pattern, leaf, key string
		want               bool
	}{
		{"file:/etc/motd", "base", "file:/etc/motd", true},
		{"file:/etc/*", "base", "file:/etc/motd", true},
		{"file:/etc/*", "base", "file:/etc/a/b", false},
		{"file:/etc/**", "base", "file:/etc/a/b", true},
		{"file:/etc/[mn]otd", "base", "file:/etc/motd", true},
		{"file:*", "base", "file:/etc/a/b", true},
		{"file:*", "base", "line:/etc/a/b:c", false},
		{"file:/*", "base", "file:/etc/a", false},
		{"base", "base", "file:/x", true},
		{"ba*", "base", "file:/x", true},
		{"web[12]", "web2", "file:/x", true},
		{"bas", "base", "file:/x", false},
		{"web", "web/nginx", "file:/x", true},
		{"nginx", "web/nginx", "file:/x", false},
		{"*/nginx", "web/nginx", "file:/x", true},

		// What is in brackets of a key: a member of a list.
		{"entry:/p:a.b:[q]", "base", "entry:/p:a.b:[q]", true},
		{"entry:/p:a.b:[*]", "base", "entry:/p:a.b:[q]", true},
		{"entry:/p:a.b:[*]", "base", "entry:/p:a.b", false},

		// Instances of for_each: one, all of a block, and some.
		{`sites["a"]`, `sites["a"]/nginx`, "file:/x", true},
		{`sites["a"]/nginx`, `sites["a"]/nginx`, "file:/x", true},
		{`sites["b"]`, `sites["a"]/nginx`, "file:/x", false},
		{`sites`, `sites["a"]/nginx`, "file:/x", true},
		{`site`, `sites["a"]/nginx`, "file:/x", false},
		{`sites/nginx`, `sites["a"]/nginx`, "file:/x", true},
		{`sites/more`, `sites["a"]/nginx`, "file:/x", false},
		{`sites["a*"]/nginx`, `sites["a1"]/nginx`, "file:/x", true},
		{`sites["a*"]/nginx`, `sites["b1"]/nginx`, "file:/x", false},
		{`sites[*]/*`, `sites["a"]/nginx`, "file:/x", true},
		{`*/nginx`, `sites["a"]/nginx`, "file:/x", true},

		// A key of for_each that holds a slash, brackets, quotes.
		{`sites["b/c"]/nginx`, `sites["b/c"]/nginx`, "file:/x", true},
		{`sites["*"]/nginx`, `sites["b/c"]/nginx`, "file:/x", true},
		{`sites/nginx`, `sites["b/c"]/nginx`, "file:/x", true},
		{`sites["[x]"]`, `sites["[x]"]/nginx`, "file:/x", true},
		{`sites["x"]`, `sites["[x]"]/nginx`, "file:/x", false},
		{`sites["[*]"]`, `sites["[x]"]/nginx`, "file:/x", true},
		{`sites["a\"/]"]/n`, `sites["a\"/]"]/n`, "file:/x", true},
		{`all["m1"]/sites/nginx`, `all["m1"]/sites["a"]/nginx`, "file:/x", true},
		{`all/sites["a"]`, `all["m1"]/sites["b"]/nginx`, "file:/x", false},
	} {
		n := named{key: scrolls.Key(c.key), leaf: c.leaf}
		if got := n.matches(c.pattern); got != c.want {
			t.Errorf("%s names %s in %s: %v, want %v", c.pattern, c.key, c.leaf, got, c.want)
		}
	}
}
