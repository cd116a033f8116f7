package scrolls

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// maxModules bounds how deep modules include each other.
const maxModules = 32

// callArguments are those of a scroll block that are no inputs of its module.
var callArguments = []string{"source", "for_each", "when"}

// include loads the module that a scroll block names, with the inputs that the block
// gives, as its variables, locals and outputs; nil with a mistake noted. path is the
// block's below the root.
func (l *loader) include(block *hclsyntax.Block, path string) *scope {
	before := len(l.diags)
	attr := block.Body.Attributes["source"]
	dir, shown, ok := l.moduleDir(attr)
	if !ok || !l.more(1, attr.Expr.Range()) {
		return nil
	}
	body, err := l.moduleBody(dir, shown)
	if err != nil {
		l.fail("Module cannot be read", Sentence(err), attr.Expr.Range())
	}
	if l.diags[before:].HasErrors() {
		return nil
	}
	s := l.newScope(l.in, dir, shown, path, body)
	inputs := l.inputs(block)
	leave := l.enter(s, s.ctx)
	defer leave()
	l.moduleName(body)
	l.moduleVariables(block, inputs)
	if !l.diags[before:].HasErrors() {
		l.names(body)
	}
	if !l.diags[before:].HasErrors() {
		l.validateLate()
	}
	if l.diags[before:].HasErrors() {
		return nil
	}
	l.readOutputs(body)
	return s
}

// moduleDir is the directory that a source names. It is written out, so that the tree of
// a scroll can be read off its files.
func (l *loader) moduleDir(attr *hclsyntax.Attribute) (dir, shown string, ok bool) {
	wrong := func(summary, format string, args ...any) (string, string, bool) {
		l.fail(summary, fmt.Sprintf(format, args...), attr.Expr.Range())
		return "", "", false
	}
	value, diags := attr.Expr.Value(nil)
	if diags.HasErrors() || value.IsNull() || value.Type() != cty.String {
		return wrong("Source is not written out", "The source of a module is a text in quotes without anything in it to be worked out: source = \"./modules/db\".")
	}
	name := value.AsString()
	switch {
	case strings.HasPrefix(name, "./"), strings.HasPrefix(name, "../"), name == ".", name == "..", filepath.IsAbs(name):
	case strings.Contains(name, "://"), strings.Contains(name, "::"), strings.Contains(name, "@"):
		return wrong("Source is not a directory", "%q is not on this host, and golem fetches no modules: put the directory beside the scroll, and name it as \"./modules/NAME\".", name)
	case strings.Contains(name, "/") && !isDir(l.abs(name)):
		return wrong("Source is not a directory", "There is no directory %q here, and golem fetches no modules: put the directory beside the scroll, and name it as \"./modules/NAME\".", name)
	default:
		return wrong("Source is not a directory", "A module is a directory, relative to this one's: %q begins with neither \"./\" nor \"../\". Did you mean %q?", name, "./"+name)
	}
	dir = l.abs(name)
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return wrong("Module cannot be read", "%q: %s.", name, bare(err))
	}
	depth := 0
	circle := []string{l.moduleTitle(real)}
	for s := l.in; s != nil; s = s.above {
		depth++
		circle = append(circle, l.moduleTitle(s.dir))
		if s.dir == real {
			slices.Reverse(circle)
			return wrong("Modules include each other in a circle", "%s.", strings.Join(circle, " → "))
		}
	}
	if depth > maxModules {
		return wrong("Modules are nested too deep", "There are more than %d in each other.", maxModules)
	}
	return real, filepath.Join(l.in.shown, name), true
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// moduleTitle is a module's directory as a person calls it.
func (l *loader) moduleTitle(dir string) string {
	rel, err := filepath.Rel(l.in.root().dir, dir)
	if err != nil || rel == "." {
		return filepath.Base(dir)
	}
	return rel
}

// moduleBody reads the files of a module, once for all that include it.
func (l *loader) moduleBody(dir, shown string) (*hclsyntax.Body, error) {
	if body := l.bodies[dir]; body != nil {
		return body, nil
	}
	st, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q: %w", shown, bare(err))
	case !st.IsDir():
		return nil, fmt.Errorf("%q is not a directory", shown)
	}
	files, _, err := sources(dir, filepath.Join(l.shownDir, shown), true)
	if err != nil {
		return nil, err
	}
	bodies, err := l.parse(files, shown)
	if err != nil {
		return nil, err
	}
	if len(bodies) == 0 {
		return nil, errors.New("there is nothing in it that can be read")
	}
	l.bodies[dir] = merge(bodies)
	return l.bodies[dir], nil
}

// moduleName takes a module's own name for what it is when it is a scroll by itself, and
// refuses other arguments.
func (l *loader) moduleName(body *hclsyntax.Body) {
	for _, key := range sortedAttrs(body) {
		if bare, _, _ := strings.Cut(key, "\x00"); bare != "name" {
			l.fail("Unsupported argument", "At the top of a module only name is an argument, and says nothing there."+didYouMean(bare, []string{"name"}), body.Attributes[key].NameRange)
		}
	}
}

// inputs evaluates what a scroll block gives its module, in the context of the block.
func (l *loader) inputs(block *hclsyntax.Block) map[string]*given {
	inputs := map[string]*given{}
	for _, name := range sortedAttrs(block.Body) {
		if slices.Contains(callArguments, name) {
			continue
		}
		attr := block.Body.Attributes[name]
		value, ok := l.value(attr.Expr, l.ctx)
		if !ok {
			value = cty.DynamicVal // the mistake is noted
		}
		inputs[name] = &given{value: value, expr: attr.Expr, at: attr.NameRange, from: "the scroll block"}
	}
	return inputs
}

// moduleVariables gives a module's variables the inputs, and refuses inputs that it does
// not declare.
func (l *loader) moduleVariables(block *hclsyntax.Block, inputs map[string]*given) {
	order := l.declareAll(l.in.body)
	known := map[string]bool{}
	for _, v := range order {
		known[v.name] = true
		v.call = block
	}
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if !known[name] {
			l.fail("Undeclared variable", fmt.Sprintf("The module %q declares no variable %q.%s%s", l.in.shown, name,
				other(otherArguments, name), didYouMean(name, slices.Collect(maps.Keys(known)))), inputs[name].at)
		}
	}
	l.giveValues(order, inputs)
}

// outputArguments are what an output block holds.
var outputArguments = []string{"value", "description", "sensitive"}

// readOutputs evaluates a module's output blocks.
func (l *loader) readOutputs(body *hclsyntax.Body) {
	outputs := map[string]cty.Value{}
	first := map[string]*hclsyntax.Block{}
	for _, block := range body.Blocks {
		if block.Type != "output" {
			continue
		}
		name, ok := l.label(block)
		switch {
		case !ok:
			continue
		case !hclsyntax.ValidIdentifier(name):
			l.fail("Name is not valid", fmt.Sprintf("An output's name is an identifier; %q is not.", name), block.LabelRanges[0])
			continue
		case first[name] != nil:
			l.clash(block.DefRange(), first[name].DefRange(), "Duplicate output", fmt.Sprintf("The output %q is declared already.", name))
			continue
		}
		first[name] = block
		outputs[name] = l.output(block)
	}
	l.in.outputs = cty.ObjectVal(outputs)
}

// output is the value of one output block; an unknown one after a mistake.
func (l *loader) output(block *hclsyntax.Block) cty.Value {
	for _, inner := range block.Body.Blocks {
		l.fail("Unsupported block type", "An output has no blocks in it.", inner.DefRange())
	}
	secret := false
	for _, arg := range sortedAttrs(block.Body) {
		attr := block.Body.Attributes[arg]
		switch arg {
		case "sensitive":
			secret = l.literalBool(attr, false)
		case "value":
		case "description":
			l.description(attr)
		default:
			l.fail("Unsupported argument", fmt.Sprintf("An output has no argument %q.%s", arg, didYouMean(arg, outputArguments)), attr.NameRange)
		}
	}
	attr := block.Body.Attributes["value"]
	if attr == nil {
		l.fail("Missing argument", "An output needs the argument \"value\".", block.DefRange())
		return cty.DynamicVal
	}
	value, ok := l.value(attr.Expr, l.ctx)
	if !ok {
		return cty.DynamicVal
	}
	if secret {
		value = value.Mark(sensitive)
	}
	return value
}
