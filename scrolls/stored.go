package scrolls

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// stored is a Glyph as the journal holds it.
type stored struct {
	Kind    string         `json:"kind"`
	Key     Key            `json:"key"`
	Version int            `json:"version"`
	Attrs   map[string]any `json:"attrs"`
	Secret  []string       `json:"secret,omitempty"`
	Protect bool           `json:"protect,omitempty"`
	// OnUndeclare is Glyph.OnUndeclare.
	OnUndeclare string `json:"on_undeclare,omitempty"`
	// Adopt is Glyph.Adopt.
	Adopt bool `json:"adopt,omitempty"`
}

// MarshalStored returns the glyph as the journal holds it: equal glyphs give equal
// bytes, whatever leaf or file they are declared in.
func (g *Glyph) MarshalStored() ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(stored{g.Kind, g.Key, g.Version, g.Attrs, g.Secret, g.Protect, g.OnUndeclare, g.Adopt}); err != nil {
		return nil, fmt.Errorf("encode glyph %s: %w", g.Key, err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// UnmarshalStored turns the journal's bytes back into the glyph.
func UnmarshalStored(data []byte) (*Glyph, error) {
	var s stored
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&s); err != nil {
		return nil, fmt.Errorf("decode glyph: %w", err)
	}
	return &Glyph{
		Kind: s.Kind, Key: s.Key, Version: s.Version, Attrs: s.Attrs, Secret: s.Secret, Protect: s.Protect, OnUndeclare: s.OnUndeclare, Adopt: s.Adopt,
	}, nil
}
