package scrolls

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
)

// cidFormat names the encoding that a content id is a hash of. Another encoding has
// another name; golem compares ids that it made itself, never stored ones.
const cidFormat = "golem glyph 1\n"

// CID is the content id of a glyph: a hash over its kind and canonical attributes
// alone, not over its leaf, label, position or policy.
func CID(k Kind, g *Glyph) ContentID {
	attrs := g.Attrs
	if k.Canonical != nil {
		attrs = k.Canonical(attrs)
	}
	attrs = withoutNames(k, attrs)
	var buf bytes.Buffer
	buf.WriteString(cidFormat)
	buf.WriteString(k.Name)
	buf.WriteByte('\n')
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(canonical(map[string]any(attrs))); err != nil {
		panic(fmt.Sprintf("encode %s: %v", g.Key, err)) // Attrs hold only what JSON has
	}
	sum := sha256.Sum256(bytes.TrimSuffix(buf.Bytes(), []byte("\n")))
	return ContentID(hex.EncodeToString(sum[:]))
}

// withoutNames leaves out the names that local files were read from: their bytes count.
func withoutNames(k Kind, attrs Attrs) Attrs {
	out := maps.Clone(attrs)
	for _, spec := range k.Attrs {
		ref, ok := attrs[spec.Name].(map[string]any)
		if !spec.File || !ok {
			continue
		}
		ref = maps.Clone(ref)
		delete(ref, "path")
		out[spec.Name] = ref
	}
	return out
}

// canonical returns a value with every number in one spelling.
func canonical(v any) any {
	switch v := v.(type) {
	case json.Number:
		return canonicalNumber(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = canonical(v[i])
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, value := range v {
			object[name] = canonical(value)
		}
		return object
	}
	return v
}

// canonicalNumber spells 1, 1.0 and 1e0 alike, exactly.
func canonicalNumber(n json.Number) json.Number {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok || len(n) > 400 {
		return n
	}
	if r.IsInt() {
		return json.Number(r.Num().String())
	}
	digits, exact := r.FloatPrec()
	if !exact {
		return n
	}
	return json.Number(r.FloatString(digits))
}
