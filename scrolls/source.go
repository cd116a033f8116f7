package scrolls

import (
	"errors"
	"fmt"
	"os"
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
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", what, name, bare(err))
	}
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", what, name, bare(err))
	}
	if tooDeep(src, name) {
		return nil, fmt.Errorf("read %s %s: it is nested more than %d deep", what, name, maxNesting)
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
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok || diags.HasErrors() {
		return file, diags
	}
	return file, append(diags, hclsyntax.VisitAll(body, func(node hclsyntax.Node) hcl.Diagnostics {
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

// maxNesting guards the parser's recursion against a file made to exhaust it.
const maxNesting = 500

// tooDeep says whether expressions or blocks nest deeper than the parser should go.
// Most files are settled by looking at their bytes; only where strings or comments
// are full of brackets are the tokens looked at.
func tooDeep(src []byte, name string) bool {
	if byteDepth(src) <= maxNesting {
		return false
	}
	tokens, _ := hclsyntax.LexConfig(src, name, hcl.InitialPos)
	return tokenDepth(tokens) > maxNesting
}

// templateDepth is how deep a template's expressions nest.
func templateDepth(src []byte, name string) int {
	tokens, _ := hclsyntax.LexTemplate(src, name, hcl.InitialPos)
	return tokenDepth(tokens)
}

// byteDepth is an upper bound of the nesting: brackets count wherever they stand, and
// so do signs in a row and the conditions of one line.
func byteDepth(src []byte) int {
	deepest, now, signs, conditions := 0, 0, 0, 0
	for _, c := range src {
		switch c {
		case '{', '[', '(':
			now++
		case '}', ']', ')':
			now = max(now-1, 0)
		case '!', '-':
			signs++
		case '?':
			conditions++
		case '\n':
			conditions = 0
		}
		if c != '!' && c != '-' && c != ' ' {
			signs = 0
		}
		deepest = max(deepest, now+signs+conditions)
	}
	return deepest
}

// tokenDepth is how deep brackets, templates, signs and conditions nest.
func tokenDepth(tokens hclsyntax.Tokens) int {
	deepest, now, run := 0, 0, 0
	for _, token := range tokens {
		switch token.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen,
			hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			now++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd:
			now--
		case hclsyntax.TokenBang, hclsyntax.TokenMinus, hclsyntax.TokenQuestion:
			run++
		case hclsyntax.TokenNewline, hclsyntax.TokenComma:
			run = 0
		}
		deepest = max(deepest, now+run)
	}
	return deepest
}
