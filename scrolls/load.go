package scrolls

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Options are what a scroll is loaded with: everything that is not written in it.
type Options struct {
	Kinds []Kind
	// Checks are the kinds of checks: they are declared as kinds of glyphs are.
	Checks []Kind
	// Facts are the attributes of the host object, as plain values.
	Facts map[string]any
	// Environ is searched for GOLEM_VAR_x.
	Environ  []string
	VarFiles []string
	Vars     []string // name=value
	// Name overrides the scroll's own name.
	Name string
	// HostPolicy is a file with the host's own policy; it need not exist.
	HostPolicy string
	// Interrupt, when closed, ends the loading with context.Canceled.
	Interrupt <-chan struct{}

	may allowance // the usual one, where it is none
}

// A loader holds what is known while a scroll is loaded.
type loader struct {
	o             Options
	s             *Scroll
	kinds, checks map[string]*kindInfo
	diags         hcl.Diagnostics
	seen          digester
	facts         cty.Value
	// in is the module that is loaded, ctx what expressions see: the module's names, or
	// beside them those of one instance of a block that repeats.
	in  *scope
	ctx *hcl.EvalContext
	// bodies are the modules that were read, by directory; shownDir is the outermost's as
	// the user calls it.
	bodies   map[string]*hclsyntax.Body
	shownDir string
	// adopted are what the adopt blocks name.
	adopted []adoption

	may      allowance
	now      atomic.Pointer[mark] // for who watches
	declared int                  // glyphs, instances and modules
	full     bool                 // more are declared than may be, which is noted
}

// kindInfo is a kind with its attributes by name.
type kindInfo struct {
	Kind
	attrs map[string]*Attr
	check bool // a kind of check, not of glyph
}

// one names one of the kind, with its article, whose first letter is given.
func (k *kindInfo) one(article string) string {
	if strings.ContainsRune("aeio", rune(k.Name[0])) || k.check && k.Name == "http" {
		article += "n"
	}
	if k.check {
		return article + " " + k.Name + " check"
	}
	return article + " " + k.Name
}

// Load reads a scroll: a .hcl file, or a directory whose .hcl files are read in name
// order as one. Mistakes in it are *Diagnostics, all of them at once; anything else
// is an ordinary error. What cannot be read is never taken for an empty scroll.
func Load(path string, o Options) (*Scroll, error) {
	l := newLoader(o)
	return l.guarded(func() error { return l.read(path, l.evaluate) })
}

// read parses the files of a scroll and hands them on, unless something is wrong with them.
func (l *loader) read(path string, then func(bodies []*hclsyntax.Body, vars []string) error) error {
	files, vars, err := l.find(path)
	if err != nil {
		return err
	}
	bodies, err := l.parse(files, "")
	if err != nil || l.diags.HasErrors() {
		return err
	}
	return then(bodies, vars)
}

// LoadText loads a scroll of one file from its text; it has no directory.
func LoadText(text string, o Options) (*Scroll, error) {
	l := newLoader(o)
	const name = "the scroll"
	if err := parseable([]byte(text), name); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return l.guarded(func() error {
		file, diags := parseFile([]byte(text), name)
		l.diags = append(l.diags, diags...)
		l.s.Files[name] = file
		l.s.Source, l.s.Dir = name, "/"
		body, ok := file.Body.(*hclsyntax.Body)
		if !ok || diags.HasErrors() {
			return nil
		}
		return l.evaluate([]*hclsyntax.Body{body}, nil)
	})
}

func newLoader(o Options) *loader {
	l := &loader{
		o: o, s: &Scroll{Files: map[string]*hcl.File{}, Policies: map[string]Policy{}},
		facts: factsValue(o.Facts), bodies: map[string]*hclsyntax.Body{},
		may: cmp.Or(o.may, usual),
	}
	index := func(kinds []Kind) map[string]*kindInfo {
		all := map[string]*kindInfo{}
		for i := range kinds {
			info := &kindInfo{Kind: kinds[i], attrs: map[string]*Attr{}}
			for j := range info.Attrs {
				info.attrs[info.Attrs[j].Name] = &info.Attrs[j]
			}
			all[info.Name] = info
		}
		return all
	}
	l.kinds, l.checks = index(o.Kinds), index(o.Checks)
	for _, check := range l.checks {
		check.check = true
	}
	return l
}

// evaluate turns the parsed bodies into the scroll.
func (l *loader) evaluate(bodies []*hclsyntax.Body, varFiles []string) error {
	root := merge(bodies)
	if err := l.resolve(root, varFiles); err != nil || l.diags.HasErrors() {
		return err
	}
	named := l.name(root)
	policy, err := l.hostPolicy()
	if err != nil {
		return err
	}
	l.body(root, "", policy)
	if l.diags.HasErrors() {
		return nil
	}
	l.s.Written = writes(root)
	l.checkEmpty(root, named)
	l.checkKeys()
	l.markAdopted()
	return nil
}

// resolve gives the names of the outermost module their values.
func (l *loader) resolve(root *hclsyntax.Body, varFiles []string) error {
	dir, err := filepath.EvalSymlinks(l.s.Dir)
	if err != nil {
		dir = l.s.Dir
	}
	l.in = l.newScope(nil, dir, "", "", root)
	l.ctx = l.in.ctx
	if err := l.variables(root, varFiles); err != nil {
		return err
	}
	if l.diags.HasErrors() {
		return nil
	}
	l.names(root)
	if l.diags.HasErrors() {
		return nil
	}
	if l.validateLate(); l.diags.HasErrors() {
		return nil
	}
	l.readOutputs(root)
	return nil
}

func sortedAttrs(body *hclsyntax.Body) []string {
	names := make([]string, 0, len(body.Attributes))
	for name := range body.Attributes {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := body.Attributes[a].SrcRange, body.Attributes[b].SrcRange
		if c := strings.Compare(x.Filename, y.Filename); c != 0 {
			return c
		}
		return x.Start.Byte - y.Start.Byte
	})
	return names
}

// checkEmpty refuses a scroll that declares nothing without saying so.
func (l *loader) checkEmpty(root *hclsyntax.Body, named bool) {
	if len(l.s.Glyphs()) > 0 || named {
		return
	}
	l.fail("Scroll declares nothing",
		"There is no glyph in it. An empty scroll would take everything back, so it has to be meant: write name = \"…\" to declare an empty scroll, or run golem destroy.",
		top(root))
}

// writes says whether a glyph or a module is written in a scroll.
func writes(body *hclsyntax.Body) bool {
	return slices.ContainsFunc(body.Blocks, func(block *hclsyntax.Block) bool {
		switch block.Type {
		case "variable", "locals", "output", "policy", "adopt", "check":
			return false
		case "scroll":
			return block.Body.Attributes["source"] != nil || writes(block.Body)
		}
		return true
	})
}

// top is the place of what is wrong with a scroll as a whole.
func top(root *hclsyntax.Body) hcl.Range {
	return hcl.Range{Filename: root.SrcRange.Filename, Start: hcl.InitialPos, End: hcl.InitialPos}
}

// fail notes a mistake.
func (l *loader) fail(summary, detail string, at hcl.Range) {
	l.diags = append(l.diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &at})
}
