package scrolls

import (
	"errors"
	"fmt"
	"os"
	"strings"
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
	for _, d := range diags {
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
