package scrolls

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// The parser and the evaluation recurse, and a stack that is used up cannot be caught:
// what would use it up is refused before.
const (
	maxNesting = 500    // brackets and templates in each other
	maxChain   = 10_000 // operators, indexes and conditions that hang on each other
)

// parseable refuses source that the parser's or the evaluation's recursion could not
// take.
func parseable(src []byte, name string) error {
	return shallow(src, name, hclsyntax.LexConfig)
}

// shallow is parseable for what a lexer makes of source. Most is settled by looking at
// the bytes; only where there are many of them are the tokens looked at.
func shallow(src []byte, name string, lex func([]byte, string, hcl.Pos) (hclsyntax.Tokens, hcl.Diagnostics)) error {
	if wordsIn(src) > maxWords {
		return fmt.Errorf("it has more than %d words and signs; text of this size belongs into a file of its own", maxWords)
	}
	nesting, operators := byteDepth(src)
	if nesting <= maxNesting && operators <= maxChain {
		return nil
	}
	tokens, _ := lex(src, name, hcl.InitialPos)
	var n nest
	for i, token := range tokens {
		n.step(token.Type, word(tokens, i+1))
	}
	switch {
	case n.deepest > maxNesting:
		return fmt.Errorf("it is nested more than %d deep", maxNesting)
	case n.longest > maxChain:
		return fmt.Errorf("an expression in it has more than %d operators", maxChain)
	}
	return nil
}

// word is an identifier among the tokens, or "".
func word(tokens hclsyntax.Tokens, i int) string {
	if i >= len(tokens) || tokens[i].Type != hclsyntax.TokenIdent {
		return ""
	}
	return string(tokens[i].Bytes)
}

// wordsIn is an upper bound of what the parser makes of source.
func wordsIn(src []byte) int {
	words := 0
	inside := false // of a word
	for _, c := range src {
		switch {
		case c == ' ' || c == '\t':
			inside = false
		case c == '_', c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= 0x80:
			if !inside {
				words++
			}
			inside = true
		default:
			words++
			inside = false
		}
	}
	return words
}

// byteDepth is an upper bound of the nesting and of the operators: their bytes count
// wherever they stand.
func byteDepth(src []byte) (nesting, operators int) {
	now := 0
	for _, c := range src {
		switch c {
		case '{', '[', '(':
			now++
			nesting = max(nesting, now)
		case '}', ']', ')':
			now = max(now-1, 0)
		}
		switch c {
		case '!', '-', '?', '+', '*', '/', '%', '=', '<', '>', '&', '|', '[':
			operators++
		}
	}
	return nesting, operators
}

// A nest counts, token by token, how deep brackets nest, and how many operators hang
// on each other: those since the last comma or line's end on each level that is open.
type nest struct {
	levels           []level
	chain            int // on all levels together
	deepest, longest int
}

// A level is what one bracket opened.
type level struct {
	lines bool // a line's end ends an expression on it
	chain int
}

// step counts one token; next is the word behind it, for what begins a template's control.
func (n *nest) step(token hclsyntax.TokenType, next string) {
	if len(n.levels) == 0 {
		n.levels = append(n.levels, level{lines: true})
	}
	top := &n.levels[len(n.levels)-1]
	switch token {
	case hclsyntax.TokenBang, hclsyntax.TokenMinus, hclsyntax.TokenPlus, hclsyntax.TokenStar, hclsyntax.TokenSlash,
		hclsyntax.TokenPercent, hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual, hclsyntax.TokenLessThan,
		hclsyntax.TokenLessThanEq, hclsyntax.TokenGreaterThan, hclsyntax.TokenGreaterThanEq, hclsyntax.TokenAnd,
		hclsyntax.TokenOr, hclsyntax.TokenQuestion, hclsyntax.TokenOBrack:
		n.add(top, 1)
	case hclsyntax.TokenTemplateControl:
		switch next {
		case "if", "for":
			n.add(top, 1)
		case "endif", "endfor":
			n.add(top, -min(1, top.chain))
		}
	case hclsyntax.TokenNewline:
		if top.lines {
			n.add(top, -top.chain)
		}
	case hclsyntax.TokenComma:
		n.add(top, -top.chain)
	}
	switch token {
	case hclsyntax.TokenOBrace:
		n.levels = append(n.levels, level{lines: true})
	case hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc,
		hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
		n.levels = append(n.levels, level{})
	case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
		hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
		n.add(top, -top.chain)
		n.levels = n.levels[:len(n.levels)-1]
	}
	n.deepest = max(n.deepest, len(n.levels)-1)
}

func (n *nest) add(top *level, by int) {
	top.chain += by
	n.chain += by
	n.longest = max(n.longest, n.chain)
}
