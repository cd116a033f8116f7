package scrolls

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
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

// find lists the files of a scroll and its variable files.
func (l *loader) find(path string) (files, vars []string, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, fmt.Errorf("find scroll %s: %w", path, err)
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read scroll %s: %w", path, bare(err))
	}
	l.s.Source, l.s.Dir = abs, abs
	dir := path
	if !st.IsDir() {
		l.s.Dir, dir = filepath.Dir(abs), filepath.Dir(path)
	}
	l.shownDir = dir
	files, vars, err = sources(l.s.Dir, dir, st.IsDir())
	if err == nil && !st.IsDir() {
		files = []string{path}
	}
	return files, vars, err
}

// sources lists the files of a scroll's or a module's directory, by the name that the
// user gave it; the scroll files only where they are what is read.
func sources(at, dir string, whole bool) (files, vars []string, err error) {
	entries, err := os.ReadDir(at)
	if err != nil {
		return nil, nil, fmt.Errorf("read scroll directory %s: %w", dir, bare(err))
	}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case strings.HasPrefix(name, "."):
		case strings.HasSuffix(name, ".auto.vars.hcl"):
			vars = append(vars, filepath.Join(dir, name))
		case whole && strings.HasSuffix(name, ".hcl"):
			files = append(files, filepath.Join(dir, name))
		}
	}
	if whole && len(files) == 0 {
		return nil, vars, fmt.Errorf("read scroll directory %s: %w", dir, ErrNoScroll)
	}
	return files, vars, nil
}

// bare takes the path off an error whose message names it already.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// parse reads and parses files, beside each other; the bodies come back in order. shown
// is the module's directory, relative to the outermost's.
func (l *loader) parse(files []string, shown string) ([]*hclsyntax.Body, error) {
	type result struct {
		file  *hcl.File
		diags hcl.Diagnostics
		src   []byte
		err   error
	}
	if len(files) > 0 {
		l.at(hcl.Range{Filename: files[0], Start: hcl.InitialPos, End: hcl.InitialPos})
	}
	results := make([]result, len(files))
	var wait sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, name := range files {
		wait.Add(1)
		go func() {
			defer wait.Done()
			slots <- struct{}{}
			defer func() { <-slots }()
			r := &results[i]
			if r.src, r.err = readSource("scroll", name); r.err == nil {
				r.file, r.diags = parseFile(r.src, name)
			}
		}()
	}
	wait.Wait()
	var bodies []*hclsyntax.Body
	for i, r := range results {
		if r.err != nil {
			return nil, r.err
		}
		l.seen.add("source", filepath.Join(shown, filepath.Base(files[i])), r.src)
		l.s.Files[files[i]] = r.file
		l.diags = append(l.diags, r.diags...)
		if len(files) > 1 && len(bytes.TrimSpace(r.src)) == 0 {
			l.fail("File is blank", "A file that came out blank would take back what it declared. Remove it, or write a comment in it.", hcl.Range{Filename: files[i], Start: hcl.InitialPos, End: hcl.InitialPos})
		}
		if body, ok := r.file.Body.(*hclsyntax.Body); ok {
			bodies = append(bodies, body)
		}
	}
	return bodies, nil
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

// merge reads several bodies as one.
func merge(bodies []*hclsyntax.Body) *hclsyntax.Body {
	if len(bodies) == 1 {
		return bodies[0]
	}
	all := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}}
	for _, b := range bodies {
		all.Blocks = append(all.Blocks, b.Blocks...)
		for name, attr := range b.Attributes {
			if _, twice := all.Attributes[name]; twice {
				// Kept apart under a name no attribute can have; name reports it.
				name += "\x00" + attr.SrcRange.Filename
			}
			all.Attributes[name] = attr
		}
		if all.SrcRange.Filename == "" {
			all.SrcRange = b.SrcRange
		}
	}
	return all
}

// validName is what a lineage may be called.
var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// name finds the lineage's name: the flag's, the scroll's, or the directory's. It says
// whether one is written in the scroll.
func (l *loader) name(root *hclsyntax.Body) (written bool) {
	for _, key := range sortedAttrs(root) {
		attr := root.Attributes[key]
		bare, _, twice := strings.Cut(key, "\x00")
		switch {
		case twice:
			l.clash(attr.NameRange, root.Attributes[bare].NameRange, "Argument written twice", fmt.Sprintf("%q is written in another file of this scroll too. Keep one.", bare))
		case bare == "name":
			written = true
			l.writtenName(attr)
		default:
			l.fail("Unsupported argument", "At the top of a scroll only name is an argument."+didYouMean(bare, []string{"name"}), attr.NameRange)
		}
	}
	if l.o.Name != "" {
		l.s.Name = l.o.Name
		if !validName.MatchString(l.o.Name) {
			l.fail("Name is not valid", fmt.Sprintf("%q, from --name, is not a name. %s", l.o.Name, nameRule), top(root))
		}
		return written
	}
	if written {
		return true
	}
	l.s.Defaulted = true
	l.s.Name = strings.TrimSuffix(filepath.Base(l.s.Source), ".hcl")
	if !validName.MatchString(l.s.Name) {
		l.fail("Name is missing", fmt.Sprintf("%q, after which the scroll would be named, is not a name. Write name = \"…\" at the top. %s", l.s.Name, nameRule), top(root))
	}
	return false
}

const nameRule = "A name has letters, digits, \".\", \"_\" and \"-\", begins with a letter or digit, and is at most 64 long."

func (l *loader) writtenName(attr *hclsyntax.Attribute) {
	value, ok := l.value(attr.Expr, l.ctx)
	if !ok {
		return
	}
	if value.IsMarked() {
		l.fail("Name is sensitive", "A name is shown everywhere, so it cannot come from a sensitive value.", attr.Expr.Range())
		return
	}
	if value.IsNull() || value.Type() != cty.String || !validName.MatchString(value.AsString()) {
		l.fail("Name is not valid", nameRule, attr.Expr.Range())
		return
	}
	l.s.Name = value.AsString()
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

// top is the place of what is wrong with a scroll as a whole.
func top(root *hclsyntax.Body) hcl.Range {
	return hcl.Range{Filename: root.SrcRange.Filename, Start: hcl.InitialPos, End: hcl.InitialPos}
}

// fail notes a mistake.
func (l *loader) fail(summary, detail string, at hcl.Range) {
	l.diags = append(l.diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &at})
}

// quieter leaves out what only follows from an earlier mistake at the same place.
func quieter(diags hcl.Diagnostics) hcl.Diagnostics {
	var kept hcl.Diagnostics
	blamed := map[string]bool{}
	for _, d := range diags {
		if d.Subject != nil {
			place := d.Subject.String()
			if blamed[place] && d.Severity == hcl.DiagError {
				continue
			}
			blamed[place] = true
		}
		kept = append(kept, d)
	}
	return kept
}

// A digester adds up everything that a scroll was made from.
type digester struct {
	mu    sync.Mutex
	parts []string
}

func (d *digester) add(what, name string, data []byte) {
	sum := sha256.Sum256(data)
	d.addSum(what, name, hex.EncodeToString(sum[:]))
}

func (d *digester) addSum(what, name, sum string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parts = append(d.parts, what+"\x00"+name+"\x00"+sum)
}

func (d *digester) sum() string {
	slices.Sort(d.parts)
	var buf bytes.Buffer
	for _, part := range slices.Compact(d.parts) {
		buf.WriteString(part)
		buf.WriteByte('\n')
	}
	sum := sha256.Sum256(buf.Bytes())
	return hex.EncodeToString(sum[:])
}
