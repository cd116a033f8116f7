package scrolls

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// names evaluates the locals and the modules of a module, which may refer to each other
// in any order.
func (l *loader) names(body *hclsyntax.Body) {
	w := &nameWalk{
		l: l, attrs: l.localAttrs(body), sites: map[string]*site{}, values: map[string]cty.Value{},
		done: map[string]bool{}, broken: map[string]bool{}, underway: map[string]bool{},
	}
	w.findSites(body, nil, nil)
	l.in.declared["local"], l.in.declared["scroll"] = map[string]bool{}, map[string]bool{}
	for name := range w.attrs {
		l.in.declared["local"][name] = true
	}
	for _, s := range w.sites {
		l.in.declared["scroll"][s.steps[0]] = true
	}
	for _, name := range slices.Sorted(maps.Keys(w.attrs)) {
		w.visit("local."+name, nil)
	}
	for _, s := range w.order {
		w.visit(s.name(), nil)
	}
	w.see(slices.Collect(maps.Keys(w.values)))
}

// localAttrs lists the locals by name.
func (l *loader) localAttrs(body *hclsyntax.Body) map[string]*hclsyntax.Attribute {
	attrs := map[string]*hclsyntax.Attribute{}
	for _, block := range body.Blocks {
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
	return attrs
}

// A site is a place in a module's tree that has outputs: a scroll block with a source, or
// one that repeats with such beneath it.
type site struct {
	steps []string // the labels that lead to it
	block *hclsyntax.Block
	whens []*hclsyntax.Attribute // of the scrolls that it lies in
}

func (s *site) name() string { return "scroll." + strings.Join(s.steps, "\x00") }

// A nameWalk evaluates locals and modules, each after those it refers to.
type nameWalk struct {
	l      *loader
	attrs  map[string]*hclsyntax.Attribute
	sites  map[string]*site // by name
	order  []*site          // as they are written
	values map[string]cty.Value
	done   map[string]bool
	broken map[string]bool // there is a mistake in it, or in what it refers to
	// underway are those that wait for what they refer to.
	underway map[string]bool
}

// findSites lists the sites in a body.
func (w *nameWalk) findSites(body *hclsyntax.Body, steps []string, whens []*hclsyntax.Attribute) {
	for _, block := range body.Blocks {
		if block.Type != "scroll" || len(block.Labels) != 1 {
			continue
		}
		below := append(slices.Clone(steps), block.Labels[0])
		if block.Body.Attributes["source"] == nil && block.Body.Attributes["for_each"] == nil {
			inner := whens
			if when := block.Body.Attributes["when"]; when != nil {
				inner = append(slices.Clone(whens), when)
			}
			w.findSites(block.Body, below, inner)
			continue
		}
		s := &site{steps: below, block: block, whens: whens}
		if w.sites[s.name()] != nil || !hasSource(block) {
			continue // a duplicate is told where the tree is read
		}
		w.sites[s.name()] = s
		w.order = append(w.order, s)
	}
}

// hasSource says whether a scroll block, or one in it, includes a module.
func hasSource(block *hclsyntax.Block) bool {
	if block.Body.Attributes["source"] != nil {
		return true
	}
	return slices.ContainsFunc(block.Body.Blocks, func(b *hclsyntax.Block) bool { return b.Type == "scroll" && hasSource(b) })
}

func (w *nameWalk) visit(name string, path []string) {
	if w.done[name] {
		return
	}
	if w.underway[name] {
		circle := append(slices.Clone(path[slices.Index(path, name):]), name)
		w.circle(circle)
		return
	}
	w.underway[name] = true
	defer delete(w.underway, name)
	deps, ok := w.deps(name)
	for _, dep := range deps {
		w.visit(dep, append(path, name))
	}
	w.values[name] = cty.DynamicVal
	before := len(w.l.diags)
	if ok && !slices.ContainsFunc(deps, func(dep string) bool { return w.broken[dep] || !w.done[dep] }) {
		w.evaluate(name, deps)
	} else {
		w.broken[name] = true // what it refers to has a mistake, which is told there
	}
	w.broken[name] = w.broken[name] || w.l.diags[before:].HasErrors()
	w.done[name] = true
}

// circle tells a circle of names, at the first local in it, or the first module.
func (w *nameWalk) circle(names []string) {
	at := hcl.Range{}
	summary := "Locals refer to each other in a circle"
	shown := make([]string, len(names))
	for i, name := range names {
		local, isLocal := strings.CutPrefix(name, "local.")
		shown[i] = local
		if !isLocal {
			summary = "Values refer to each other in a circle"
		}
	}
	for i, name := range names {
		if strings.HasPrefix(summary, "Values") {
			shown[i] = strings.ReplaceAll(name, "\x00", ".")
		}
	}
	if attr := w.attrs[strings.TrimPrefix(names[0], "local.")]; attr != nil && strings.HasPrefix(names[0], "local.") {
		at = attr.NameRange
	} else if s := w.sites[names[0]]; s != nil {
		at = s.block.DefRange()
	}
	w.l.fail(summary, strings.Join(shown, " → ")+".", at)
}

// deps are the names that one refers to, sorted.
func (w *nameWalk) deps(name string) (deps []string, ok bool) {
	ok = true
	for _, expr := range w.exprs(name) {
		for _, traversal := range expr.Variables() {
			names, whole := w.referred(traversal, name)
			if whole {
				w.l.fail("Locals as a whole", "A local refers to other locals one by one, as local.NAME: all of them together would include itself.", traversal.SourceRange())
				ok = false
			}
			deps = append(deps, names...)
		}
	}
	slices.Sort(deps)
	return slices.Compact(deps), ok
}

// exprs are the expressions that a name's value is made of.
func (w *nameWalk) exprs(name string) []hcl.Expression {
	if local, ok := strings.CutPrefix(name, "local."); ok {
		return []hcl.Expression{w.attrs[local].Expr}
	}
	s := w.sites[name]
	exprs := callExprs(s.block)
	for _, when := range s.whens {
		exprs = append(exprs, when.Expr)
	}
	return exprs
}

// callExprs are what the outputs of a scroll block depend on: for_each, when and inputs,
// its own and those of scrolls in it.
func callExprs(block *hclsyntax.Block) []hcl.Expression {
	var exprs []hcl.Expression
	for name, attr := range block.Body.Attributes {
		if name != "source" {
			exprs = append(exprs, attr.Expr)
		}
	}
	for _, inner := range block.Body.Blocks {
		if inner.Type == "scroll" {
			exprs = append(exprs, callExprs(inner)...)
		}
	}
	return exprs
}

// referred are the names that a reference is to. whole says that it is to all locals,
// from a local.
func (w *nameWalk) referred(traversal hcl.Traversal, from string) (names []string, whole bool) {
	root, first := reference(traversal)
	switch {
	case root == "local" && first == "":
		if strings.HasPrefix(from, "local.") {
			return nil, true
		}
		for name := range w.attrs {
			names = append(names, "local."+name)
		}
	case root == "local" && w.attrs[first] != nil:
		names = []string{"local." + first}
	case root == "scroll":
		steps := referenceSteps(traversal)
		for name, s := range w.sites {
			n := min(len(steps), len(s.steps))
			if slices.Equal(steps[:n], s.steps[:n]) {
				names = append(names, name)
			}
		}
	}
	return names, false
}

// referenceSteps are the names and keys that follow a reference's root.
func referenceSteps(traversal hcl.Traversal) []string {
	var steps []string
	for _, t := range traversal[1:] {
		switch step := t.(type) {
		case hcl.TraverseAttr:
			steps = append(steps, step.Name)
		case hcl.TraverseIndex:
			if step.Key.Type() != cty.String {
				return steps
			}
			steps = append(steps, step.Key.AsString())
		default:
			return steps
		}
	}
	return steps
}

// evaluate gives a name its value. It sees only those it refers to, so that many names do
// not cost their square.
func (w *nameWalk) evaluate(name string, deps []string) {
	w.see(deps)
	if local, ok := strings.CutPrefix(name, "local."); ok {
		if value, ok := w.l.value(w.attrs[local].Expr, w.l.ctx); ok {
			w.values[name] = value
		}
		return
	}
	s := w.sites[name]
	for _, when := range s.whens {
		if !w.l.when(when, w.l.ctx) {
			w.values[name] = cty.NullVal(cty.DynamicPseudoType)
			return
		}
	}
	w.values[name] = w.l.outputsOf(s.block, join(w.l.in.path, s.steps...))
}

// join is a path below the root.
func join(path string, steps ...string) string {
	for _, step := range steps {
		if path != "" {
			path += "/"
		}
		path += step
	}
	return path
}

// keyed is a label with the key of one of its instances.
func (i instance) keyed(label string) string {
	if !i.each {
		return label
	}
	return fmt.Sprintf("%s[%q]", label, i.key)
}

// outputsOf loads the modules of a scroll block and of those in it. Its value is the
// module's outputs, an object of what the scrolls in it have, or, where it repeats, an
// object of such by key; null where it is not declared.
func (l *loader) outputsOf(block *hclsyntax.Block, path string) cty.Value {
	before := len(l.diags)
	byKey := map[string]cty.Value{}
	all := l.instances(block)
	l.in.repeats[path] = all
	dir, label := parentPath(path)
	for _, i := range all {
		value := cty.NullVal(cty.DynamicPseudoType)
		if !i.absent {
			value = l.outputsIn(block, join(dir, i.keyed(label)), i.ctx)
		}
		if !i.each {
			return value
		}
		byKey[i.key] = value
	}
	if l.diags[before:].HasErrors() {
		return cty.DynamicVal
	}
	return cty.ObjectVal(byKey)
}

// outputsIn is outputsOf for one instance.
func (l *loader) outputsIn(block *hclsyntax.Block, path string, ctx *hcl.EvalContext) cty.Value {
	defer l.enter(l.in, ctx)()
	if block.Body.Attributes["source"] != nil {
		s := l.include(block, path)
		if s == nil {
			return cty.DynamicVal
		}
		l.in.modules[path] = s
		return s.outputs
	}
	below := map[string]cty.Value{}
	for _, inner := range block.Body.Blocks {
		if inner.Type == "scroll" && len(inner.Labels) == 1 && hasSource(inner) {
			below[inner.Labels[0]] = l.outputsOf(inner, join(path, inner.Labels[0]))
		}
	}
	return cty.ObjectVal(below)
}

// parentPath splits the last step off a path.
func parentPath(path string) (dir, last string) {
	at := strings.LastIndexByte(path, '/')
	if at < 0 {
		return "", path
	}
	return path[:at], path[at+1:]
}

// see puts values where expressions find them.
func (w *nameWalk) see(names []string) {
	locals := map[string]cty.Value{}
	tree := branch{}
	for _, name := range names {
		value, ok := w.values[name]
		if !ok {
			value = cty.DynamicVal // in a circle, which is told
		}
		if local, ok := strings.CutPrefix(name, "local."); ok {
			locals[local] = value
			continue
		}
		tree.put(w.sites[name].steps, value)
	}
	w.l.in.ctx.Variables["local"] = cty.ObjectVal(locals)
	w.l.in.ctx.Variables["scroll"] = tree.value()
}

// A branch is an object under way: values and further branches by name.
type branch map[string]any

func (b branch) put(steps []string, value cty.Value) {
	if len(steps) == 1 {
		b[steps[0]] = value
		return
	}
	next, ok := b[steps[0]].(branch)
	if !ok {
		next = branch{}
		b[steps[0]] = next
	}
	next.put(steps[1:], value)
}

func (b branch) value() cty.Value {
	object := map[string]cty.Value{}
	for name, is := range b {
		switch is := is.(type) {
		case cty.Value:
			object[name] = is
		case branch:
			object[name] = is.value()
		}
	}
	return cty.ObjectVal(object)
}
