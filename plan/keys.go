package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// A KeyRow is one key in force in a list.
type KeyRow struct {
	Key      string `json:"key"`
	Lineage  string `json:"lineage"`
	Leaf     string `json:"leaf"`
	Revision int    `json:"revision"`
	Changed  bool   `json:"changed"`
}

// Keys are the rows of a list of keys, in the order of application; lineage "" is all.
func Keys(snap *state.Snapshot, lineage string) []KeyRow {
	rows := []KeyRow{}
	for _, a := range snap.Applied {
		if lineage == "" || a.Lineage == lineage {
			rows = append(rows, KeyRow{string(a.Key), a.Lineage, a.Leaf, a.Revision, a.Changed})
		}
	}
	return rows
}

// KeyTable shows a list of keys.
func KeyTable(out *Printer, rows []KeyRow) error {
	if len(rows) == 0 {
		return out.Printf("Nothing is in force.\n")
	}
	cells := make([][]string, 0, len(rows))
	for _, r := range rows {
		cells = append(cells, []string{Printable(r.Key), Printable(fmt.Sprintf("%s@%d", r.Lineage, r.Revision)), Printable(r.Leaf)})
	}
	return out.table([]string{"KEY", "SINCE", "LEAF"}, cells)
}

// A KeyDoc is what the journal holds of one key.
type KeyDoc struct {
	KeyRow
	Kind     string          `json:"kind"`
	Resource string          `json:"resource"`
	Attrs    map[string]any  `json:"attrs"`
	Secret   []string        `json:"secret"`
	Found    json.RawMessage `json:"found"`
	Layers   []string        `json:"layers"`

	sort string // of its record; "" for none
}

// ShowKey finds a key in force and its record. Sensitive values are not in it.
func ShowKey(snap *state.Snapshot, key scrolls.Key) (*KeyDoc, error) {
	a, ok := snap.InForce(key)
	if !ok {
		return nil, fmt.Errorf("show %s: it is not in force", key)
	}
	d := &KeyDoc{
		KeyRow: KeyRow{string(a.Key), a.Lineage, a.Leaf, a.Revision, a.Changed},
		Kind:   a.Glyph.Kind, Resource: valid(a.Resource), Attrs: shown(a.Glyph), Secret: append([]string{}, a.Glyph.Secret...),
		Layers: []string{},
	}
	if rec := snap.Records[reconcilers.RecordKey(a.Sort, a.Resource)]; rec != nil {
		d.Found, d.sort = reconcilers.FoundShown(rec), rec.Sort
		for _, layer := range rec.Layers {
			d.Layers = append(d.Layers, string(layer.Key))
		}
	}
	return d, nil
}

// shown are a glyph's attributes without what is secret.
func shown(g *scrolls.Glyph) map[string]any {
	attrs := maps.Clone(map[string]any(g.Attrs))
	for _, name := range reconcilers.HiddenAttrs(g) {
		if _, ok := attrs[name]; ok {
			attrs[name] = secretShown
		}
	}
	return attrs
}

// Text shows a key to a person.
func (d *KeyDoc) Text(out *Printer) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s  %s@%d, leaf %s\n", out.Bold(Printable(d.Key)), Printable(d.Lineage), d.Revision, Printable(d.Leaf))
	for _, name := range slices.Sorted(maps.Keys(d.Attrs)) {
		value, err := json.Marshal(d.Attrs[name])
		if err != nil || !utf8.Valid(value) {
			value = []byte("?")
		}
		fmt.Fprintf(b, "  %s = %s\n", name, out.clip(Printable(string(value)), len(name)+5))
	}
	if d.sort != "" {
		fmt.Fprintf(b, "found before golem: %s\n", out.hanging(Printable(reconcilers.FoundText(d.sort, d.Found)), 20, 2))
	}
	if len(d.Layers) > 1 {
		fmt.Fprintf(b, "layers, oldest first: %s\n", out.hanging(Printable(strings.Join(d.Layers, ", ")), 22, 2))
	}
	return out.Printf("%s", b.String())
}

// secretShown stands for a sensitive value.
const secretShown = "(secret)"
