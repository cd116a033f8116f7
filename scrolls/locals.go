package scrolls

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// locals evaluates the locals, which may refer to each other in any order.
func (l *loader) locals(root *hclsyntax.Body) {
	attrs := map[string]*hclsyntax.Attribute{}
	for _, block := range root.Blocks {
		if block.Type != "locals" {
			continue
		}
		if len(block.Labels) > 0 {
			l.fail("Too many labels", "A locals block has no label.", block.LabelRanges[0])
		}
		for _, inner := range block.Body.Blocks {
			l.fail("Unsupported block type", "A locals block holds name = value, and nothing else.", inner.DefRange())
		}
		for _, name := range sortedAttrs(block.Body) {
			if other := attrs[name]; other != nil {
				l.clash(block.Body.Attributes[name].NameRange, other.NameRange, "Duplicate local", fmt.Sprintf("%q is written already.", name))
				continue
			}
			attrs[name] = block.Body.Attributes[name]
		}
	}
	l.declared["local"] = map[string]bool{}
	for name := range attrs {
		l.declared["local"][name] = true
	}
	w := &localWalk{l: l, attrs: attrs, values: map[string]cty.Value{}, done: map[string]bool{}, underway: map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(attrs)) {
		w.visit(name, nil)
	}
	l.ctx.Variables["local"] = cty.ObjectVal(w.values)
}

// A localWalk evaluates locals, each after those it refers to.
type localWalk struct {
	l      *loader
	attrs  map[string]*hclsyntax.Attribute
	values map[string]cty.Value
	done   map[string]bool
	// underway are the locals that wait for those they refer to.
	underway map[string]bool
}

func (w *localWalk) visit(name string, path []string) {
	if w.done[name] {
		return
	}
	attr := w.attrs[name]
	if w.underway[name] {
		cycle := strings.Join(append(path[slices.Index(path, name):], name), " → ")
		w.l.fail("Locals refer to each other in a circle", cycle+".", attr.NameRange)
		return
	}
	w.underway[name] = true
	defer delete(w.underway, name)
	deps, ok := w.deps(attr)
	for _, dep := range deps {
		w.visit(dep, append(path, name))
	}
	w.values[name] = cty.DynamicVal
	if ok && !w.l.diags.HasErrors() {
		w.evaluate(name, deps)
	}
	w.done[name] = true
}

// deps are the locals that a local refers to, sorted.
func (w *localWalk) deps(attr *hclsyntax.Attribute) (deps []string, ok bool) {
	ok = true
	for _, traversal := range attr.Expr.Variables() {
		root, name := reference(traversal)
		switch {
		case root != "local":
		case name == "":
			w.l.fail("Locals as a whole", "A local refers to other locals one by one, as local.NAME: all of them together would include itself.", traversal.SourceRange())
			ok = false
		case w.attrs[name] != nil:
			deps = append(deps, name)
		}
	}
	slices.Sort(deps)
	return slices.Compact(deps), ok
}

// evaluate gives a local its value. It sees only those it refers to, so that many
// locals do not cost their square.
func (w *localWalk) evaluate(name string, deps []string) {
	seen := map[string]cty.Value{}
	for _, dep := range deps {
		seen[dep] = w.values[dep]
	}
	w.l.ctx.Variables["local"] = cty.ObjectVal(seen)
	if value, ok := w.l.value(w.attrs[name].Expr, w.l.ctx); ok {
		w.values[name] = value
	}
}
