package plan

import (
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"

	"golem/reconcilers"
	"golem/state"
)

// FormatVersion is the version of the JSON that golem prints. It grows without
// changing what is there.
const FormatVersion = "1"

// A Document is a plan as JSON; docs/plan.schema.json describes it.
type Document struct {
	FormatVersion string        `json:"format_version"`
	Name          string        `json:"name"`
	Host          string        `json:"host"`
	Revision      int           `json:"revision"`
	Changes       []ChangeJSON  `json:"changes"`
	Updates       int           `json:"updates"`
	Due           []string      `json:"due"`
	Recovers      *Recovery     `json:"recovers"`
	Busy          *state.Holder `json:"busy"`        // null: no other golem is at work
	RollbackTo    *int          `json:"rollback_to"` // null: it is no rollback
	Pending       *PendingJSON  `json:"pending"`     // null: no run waits to be confirmed
	Units         Units         `json:"units"`
	Summary       Summary       `json:"summary"`
	Unknown       []string      `json:"unknown"`
	ByProducts    []string      `json:"by_products"`
	LeftOut       *LeftOut      `json:"left_out"` // null: the run is about everything
}

// ChangeJSON is one glyph's part as JSON.
type ChangeJSON struct {
	Leaf         string             `json:"leaf"`
	Key          string             `json:"key"`
	Kind         string             `json:"kind"`
	Op           state.Op           `json:"op"`
	Effect       reconcilers.Effect `json:"effect"`
	Reason       string             `json:"reason"`
	Before       map[string]any     `json:"before"`
	After        map[string]any     `json:"after"`
	Diff         string             `json:"diff"`
	Drift        bool               `json:"drift"`
	Sensitive    bool               `json:"sensitive"`
	Irreversible []string           `json:"irreversible"`
	Adopts       bool               `json:"adopts"`
}

// Document is the plan as JSON has it.
func (p *Plan) Document() Document {
	d := Document{
		FormatVersion: FormatVersion, Name: p.Name, Host: p.Host, Revision: p.Revision,
		Changes: []ChangeJSON{}, Updates: len(p.Updates), Due: []string{}, Recovers: p.Recovers, Busy: p.Busy, Pending: p.Pending.JSON(),
		LeftOut: p.LeftOut, Units: unitsJSON(p.Effects()), Summary: p.Summary(), Unknown: []string{}, ByProducts: []string{},
	}
	for _, c := range p.Changes() {
		d.Changes = append(d.Changes, changeJSON(c.Leaf, c.Change))
	}
	if p.Back != 0 {
		d.RollbackTo = &p.Back
	}
	for _, key := range p.Unknown {
		d.Unknown = append(d.Unknown, string(key))
	}
	for _, due := range p.Due {
		d.Due = append(d.Due, due.Name())
	}
	for _, c := range p.Checks {
		d.Due = append(d.Due, c.Name())
	}
	for _, t := range p.Wave {
		if t.Step != nil && t.ByProduct() && t.Removes() {
			d.ByProducts = append(d.ByProducts, valid(reconcilers.ByProductName(t)))
		}
	}
	return d
}

func changeJSON(leaf string, c reconcilers.Change) ChangeJSON {
	j := ChangeJSON{
		Leaf: leaf, Key: string(c.Key), Kind: c.Kind, Op: c.Op, Effect: c.Effect, Reason: valid(c.Reason),
		Before: c.Before, After: c.After, Diff: valid(c.Diff), Drift: c.Drift, Sensitive: c.Secret,
		Irreversible: c.Irreversible, Adopts: c.Adopts,
	}
	if j.Irreversible == nil {
		j.Irreversible = []string{}
	}
	return j
}

func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// JSON writes the plan as one document.
func (p *Plan) JSON(w io.Writer) error { return WriteJSON(w, p.Document()) }

// WriteJSON writes a value as indented JSON, with < and > as they are.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
