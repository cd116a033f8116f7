package state

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"golem/scrolls"
)

// TestRecordsAreSpelledAsTheirBody: what is put together from layers spelled before is what
// the whole body is, whichever layers came, went or changed in between.
func TestRecordsAreSpelledAsTheirBody(t *testing.T) {
	j, err := Open(t.TempDir()+"/planroom.db", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	rnd := rand.New(rand.NewPCG(1, 2))
	var glyphs []*scrolls.Glyph
	for i := range 40 {
		glyphs = append(glyphs, &scrolls.Glyph{Kind: "line", Key: scrolls.Key(fmt.Sprintf("line:/f:%d", i)), Version: 1, Attrs: scrolls.Attrs{"line": fmt.Sprint(i)}})
	}
	r := &Record{Sort: "path", Resource: "/f"}
	for range 300 {
		switch g := glyphs[rnd.IntN(len(glyphs))]; rnd.IntN(6) {
		case 0:
			r.Found, r.After = nil, json.RawMessage(`{"a":"<&>"}`)
		case 1:
			r.Found, r.After = json.RawMessage(`{ "found" : 1 }`), nil
		case 2:
			if n := len(r.Layers); n > 0 {
				at := rnd.IntN(n)
				r.Layers = append(append([]Layer{}, r.Layers[:at]...), r.Layers[at+1:]...)
			}
		case 3:
			if n := len(r.Layers); n > 0 {
				r.Layers = append([]Layer{}, r.Layers...)
				r.Layers[rnd.IntN(n)].Inverse = json.RawMessage(fmt.Sprintf(`{"n":%d}`, rnd.IntN(5)))
			}
		default:
			at := rnd.IntN(len(r.Layers) + 1)
			layer := Layer{Key: g.Key, Lineage: fmt.Sprint("l", rnd.IntN(2)), Glyph: g, Changed: rnd.IntN(2) == 0}
			r.Layers = append(append(append([]Layer{}, r.Layers[:at]...), layer), r.Layers[at:]...)
		}
		err := j.Do(func(tx *Tx) error {
			got, err := tx.encodeRecord(r)
			if err != nil {
				return err
			}
			body := recordBody{Found: r.Found, After: r.After}
			for _, l := range r.Layers {
				lineage, err1 := tx.lineage(l.Lineage)
				glyph, err2 := tx.glyph(l.Glyph)
				if err1 != nil || err2 != nil {
					t.Fatal(err1, err2)
				}
				body.Layers = append(body.Layers, layerBody{l.Key, lineage, glyph.Int64, l.Changed, l.Inverse})
			}
			want, err := encode(body)
			if err == nil && got.String != string(want) {
				t.Fatalf("spelled\n%s\nand whole\n%s", got.String, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
