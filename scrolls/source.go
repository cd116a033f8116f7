package scrolls

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// readSource reads a file of HCL; what names it in messages.
func readSource(what, name string) ([]byte, error) {
	st, err := os.Stat(name)
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err == nil && st.Size() > maxSourceFile {
		err = fmt.Errorf("it is larger than %d MiB", maxSourceFile>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", what, name, bare(err))
	}
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", what, name, bare(err))
	}
	if err := parseable(src, name); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", what, name, err)
	}
	return src, nil
}

// parseFile parses a file of HCL, and refuses numbers that would take all memory to
// spell out.
func parseFile(src []byte, name string) (*hcl.File, hcl.Diagnostics) {
	if at, ok := notUTF8(src, name); ok {
		return &hcl.File{Bytes: src}, hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Text is not UTF-8",
			Detail: "A scroll is UTF-8 text. Save it so; bytes of any other kind are written as content_base64, or stand in a file of their own.", Subject: &at,
		}}
	}
	file, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	diags = firstQuote(diags)
	for _, d := range diags {
		d.Extra = badSyntax{}
		if d.Summary == "Invalid escape sequence" {
			d.Detail += ` A backslash itself is written twice, as in "\\d+".`
		}
	}
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok || diags.HasErrors() {
		return file, explainLabels(diags)
	}
	return file, append(diags, hclsyntax.VisitAll(body, func(node hclsyntax.Node) hcl.Diagnostics {
		divided(node)
		literal, ok := node.(*hclsyntax.LiteralValueExpr)
		if !ok || spellable(literal.Val) {
			return nil
		}
		return hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Number is beyond measure",
			Detail: "A number has at most about 300 digits.", Subject: literal.SrcRange.Ptr(),
		}}
	})...)
}

// firstQuote leaves of the strings without an end only the first: the parser goes on about
// every line behind it, and what stands there is inside out.
func firstQuote(diags hcl.Diagnostics) hcl.Diagnostics {
	found := false
	return slices.DeleteFunc(diags, func(d *hcl.Diagnostic) bool {
		again := found && d.Summary == "Invalid multi-line string"
		found = found || d.Summary == "Invalid multi-line string"
		return again
	})
}

// explainLabels says what to write where a label was to be worked out.
func explainLabels(diags hcl.Diagnostics) hcl.Diagnostics {
	for _, d := range diags {
		if strings.HasPrefix(d.Detail, "Template sequences are not allowed in this string.") {
			d.Summary = "A label is fixed text"
			d.Detail = `Nothing can be put into it with "${". What is to be worked out goes into the block: path = …, name = … or unit = …, as the kind calls it. ` +
				`To have a literal "$", double it: "$$".`
		}
	}
	return diags
}

// notUTF8 finds the first byte that is no part of UTF-8 text.
func notUTF8(src []byte, name string) (at hcl.Range, found bool) {
	if utf8.Valid(src) {
		return hcl.Range{}, false
	}
	line, start := 1, 0
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size == 1 {
			pos := hcl.Pos{Line: line, Column: i - start + 1, Byte: i}
			return hcl.Range{Filename: name, Start: pos, End: pos}, true
		}
		if i += size; r == '\n' {
			line, start = line+1, i
		}
	}
	return hcl.Range{}, false
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
