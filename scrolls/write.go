package scrolls

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/text/unicode/norm"
)

// WriteGlyph spells a glyph as HCL: the block whose loading gives these attributes. What
// the label says is not written again. The values of secret attributes are marked sensitive.
func WriteGlyph(kind Kind, label string, attrs Attrs, secret ...string) []byte {
	f := hclwrite.NewEmptyFile()
	body := f.Body().AppendNewBlock(kind.Name, []string{label}).Body()
	for _, spec := range kind.Attrs {
		value, ok := attrs[spec.Name]
		if !ok || spec.Name == kind.LabelAttr && value == label {
			continue
		}
		hidden := slices.Contains(secret, spec.Name)
		tokens := hclwrite.TokensForValue(ctyOf(value))
		if text, ok := value.(string); ok && heredocable(text) {
			if tokens = heredoc(text); hidden { // nothing stands beside the word that ends one
				tokens = append(tokens, &hclwrite.Token{Type: hclsyntax.TokenNewline, Bytes: []byte("\n")})
			}
		}
		if hidden {
			tokens = hclwrite.TokensForFunctionCall("sensitive", tokens)
		}
		body.SetAttributeRaw(spec.Name, tokens)
	}
	return hclwrite.Format(f.Bytes())
}

// Spellable says whether HCL can hold a text as it is: UTF-8 in Unicode's normal form C,
// without a NUL byte.
func Spellable(text string) bool {
	return strings.ToValidUTF8(text, "") == text && norm.NFC.IsNormalString(text) && !strings.ContainsRune(text, 0)
}

// heredocable says whether a text of several lines can stand as a heredoc, to the last
// byte: it ends a line, and holds nothing that the eye would miss.
func heredocable(text string) bool {
	return strings.Count(text, "\n") > 1 && strings.HasSuffix(text, "\n") &&
		!strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) })
}

// heredoc spells a text as a heredoc, under a word that is no line of it.
func heredoc(text string) hclwrite.Tokens {
	word := "EOT"
	for strings.Contains("\n"+text, "\n"+word+"\n") || strings.Contains(text, "\t"+word+"\n") || strings.Contains(text, " "+word+"\n") {
		word += "_"
	}
	body := strings.NewReplacer("${", "$${", "%{", "%%{").Replace(text)
	return hclwrite.Tokens{{Type: 'h', Bytes: []byte("<<" + word + "\n" + body + word)}}
}

// ctyOf is a plain value as cty has it.
func ctyOf(value any) cty.Value {
	switch v := value.(type) {
	case string:
		return cty.StringVal(v)
	case bool:
		return cty.BoolVal(v)
	case json.Number:
		n, err := cty.ParseNumberVal(string(v))
		if err != nil {
			return cty.StringVal(string(v))
		}
		return n
	case []any:
		list := make([]cty.Value, len(v))
		for i := range v {
			list[i] = ctyOf(v[i])
		}
		return cty.TupleVal(list)
	case map[string]any:
		object := map[string]cty.Value{}
		for name := range v {
			object[name] = ctyOf(v[name])
		}
		return cty.ObjectVal(object)
	}
	return cty.NullVal(cty.DynamicPseudoType)
}
