package scrolls

import (
	"fmt"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// A scope is one module while it is loaded: the files of a directory, with variables,
// locals and modules of their own. The scroll that golem was given is the outermost.
type scope struct {
	above *scope // the module that includes it
	// dir is absolute: names of files are relative to it. shown is how messages and the
	// digest call it, relative to the outermost; "" for that.
	dir, shown string
	path       string // of the scroll block that it stands for, below the root
	body       *hclsyntax.Body
	variables  []*variable
	// declared holds, for "var", "local" and "scroll", the names that there are.
	declared map[string]map[string]bool
	// modules are those that it includes, by the paths of their scroll blocks.
	modules map[string]*scope
	// repeats are the instances of scroll blocks that were worked out for their outputs, by
	// path.
	repeats map[string][]instance
	outputs cty.Value
	ctx     *hcl.EvalContext
}

func (l *loader) newScope(above *scope, dir, shown, path string, body *hclsyntax.Body) *scope {
	s := &scope{
		above: above, dir: dir, shown: shown, path: path, body: body,
		declared: map[string]map[string]bool{}, modules: map[string]*scope{}, repeats: map[string][]instance{}, outputs: cty.EmptyObjectVal,
	}
	var functions map[string]function.Function
	if above == nil {
		functions = l.functions()
	} else {
		functions = above.root().ctx.Functions
	}
	s.ctx = &hcl.EvalContext{Functions: functions, Variables: map[string]cty.Value{
		"host": l.facts, "path": cty.ObjectVal(map[string]cty.Value{
			"module": cty.StringVal("."), "root": cty.StringVal(s.toRoot()),
		}),
	}}
	return s
}

func (s *scope) root() *scope {
	for s.above != nil {
		s = s.above
	}
	return s
}

// toRoot is the outermost module's directory, as it is named from this one.
func (s *scope) toRoot() string {
	rel, err := filepath.Rel(s.dir, s.root().dir)
	if err != nil {
		return s.root().dir
	}
	return filepath.ToSlash(rel)
}

// enter makes a module the one that is loaded, in a context of its own or below; what it
// returns goes back.
func (l *loader) enter(s *scope, ctx *hcl.EvalContext) (leave func()) {
	was, wasCtx := l.in, l.ctx
	l.in, l.ctx = s, ctx
	return func() { l.in, l.ctx = was, wasCtx }
}

func (l *loader) abs(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(l.in.dir, name)
}

// noted is a file's name as the digest has it: two modules may name different files alike.
func (l *loader) noted(name string) string {
	if l.in == nil || l.in.shown == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(l.in.shown, name)
}

// title is how a mistake calls the module.
func (s *scope) title() string {
	if s.shown == "" {
		return "The scroll"
	}
	return fmt.Sprintf("The module %q", s.shown)
}

// factsValue turns plain values into the host object.
func factsValue(v any) cty.Value {
	switch v := v.(type) {
	case map[string]any:
		object := map[string]cty.Value{}
		for key := range v {
			object[key] = factsValue(v[key])
		}
		return cty.ObjectVal(object)
	case string:
		return cty.StringVal(v)
	case bool:
		return cty.BoolVal(v)
	case int:
		return cty.NumberIntVal(int64(v))
	case int64:
		return cty.NumberIntVal(v)
	}
	return cty.NullVal(cty.DynamicPseudoType)
}
