package scrolls

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestWrittenGlyphLoadsAsItWas: whatever a glyph's attributes are, as long as HCL can hold
// them, what is written loads as the same glyph.
func TestWrittenGlyphLoadsAsItWas(t *testing.T) {
	file, job := testKinds()[0], testKinds()[3]
	text := rapid.OneOf(
		rapid.SampledFrom([]string{
			"", "\n", "a\nb\n", "a\nEOT\nb\n", " EOT\n\tEOT_\nx\n", "${x}\n%{y}\nz\n", "${x}", "\t\n\n\"q\"\\n\n", "a\r\nb\r\n", "no end\nof line", "  both  \n  sides  \n",
			"\x01\n\n", "tab\there\n\n", "é\n~\n",
		}),
		rapid.StringOfN(rapid.SampledFrom([]rune("ab \n\t\"\\${}%EOT_é")), 0, 30, -1),
	)
	rapid.Check(t, func(t *rapid.T) {
		content := text.Filter(func(s string) bool {
			return Spellable(s) && !strings.Contains(s, "$${") && !strings.Contains(s, "%%{")
		})
		glyphs := []struct {
			kind  Kind
			label string
			attrs Attrs
		}{
			{file, "/etc/a b", Attrs{"path": "/etc/a b", "content": content.Draw(t, "content"), "mode": "0644"}},
			{job, "label", Attrs{
				"name": "other", "command": []any{content.Draw(t, "word"), "x"}, "env": map[string]any{"A": content.Draw(t, "env")},
				"weight": json.Number("1.5"), "quiet": true, "more": map[string]any{"l": []any{json.Number("1"), "x", false}},
			}},
		}
		var written strings.Builder
		secret := rapid.SampledFrom([]string{"", "content", "command"}).Draw(t, "secret")
		for _, g := range glyphs {
			written.Write(WriteGlyph(g.kind, g.label, g.attrs, secret))
		}
		s, err := LoadText(written.String(), Options{Kinds: testKinds(), Name: "x"})
		if err != nil {
			t.Fatalf("%v in\n%s", err, written.String())
		}
		for i, g := range s.Glyphs() {
			if diff := cmp.Diff(glyphs[i].attrs, g.Attrs); diff != "" {
				t.Fatalf("%s\nis loaded as another: %s", written.String(), diff)
			}
			if _, there := g.Attrs[secret]; there != slices.Contains(g.Secret, secret) {
				t.Fatalf("%s\nhides %q", written.String(), g.Secret)
			}
		}
	})
}
