package state

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"golem/scrolls"
)

// A recordBody is a Record as it is stored: lineages and glyphs by number, sort and
// resource in columns of their own.
type recordBody struct {
	Found  json.RawMessage `json:"found,omitempty"`
	Layers []layerBody     `json:"layers,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

type layerBody struct {
	Key     scrolls.Key     `json:"key"`
	Lineage int64           `json:"lineage"`
	Glyph   int64           `json:"glyph,omitempty"`
	Changed bool            `json:"changed,omitempty"`
	Inverse json.RawMessage `json:"inverse,omitempty"`
}

// A ledgerBody is a LedgerChange as it is stored with its step.
type ledgerBody struct {
	Sort     string     `json:"sort"`
	Resource text       `json:"resource"`
	Before   *entryBody `json:"before,omitempty"`
	After    *entryBody `json:"after,omitempty"`
}

type entryBody struct {
	Body json.RawMessage `json:"body,omitempty"`
}

// An amendment is what of a step turned out otherwise than its intent said.
type amendment struct {
	Record  *json.RawMessage `json:"record,omitempty"` // a recordBody, or null for none
	Ledger  *json.RawMessage `json:"ledger,omitempty"`
	Changed []bool           `json:"changed,omitempty"` // of each glyph
}

// A declaredBody is one leaf of a revision as it is stored.
type declaredBody struct {
	Leaf   string          `json:"leaf"`
	Glyphs []int64         `json:"glyphs"`
	Checks []int64         `json:"checks,omitempty"`
	Policy *scrolls.Policy `json:"policy,omitempty"`
}

// A text is a string of any bytes that survives JSON: UTF-8 as it is, anything else
// as {"b64": …}.
type text string

type textB64 struct {
	B64 string `json:"b64"`
}

func (t text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return encode(string(t))
	}
	return encode(textB64{base64.StdEncoding.EncodeToString([]byte(t))})
}

func (t *text) UnmarshalJSON(src []byte) error {
	var s string
	if json.Unmarshal(src, &s) == nil {
		*t = text(s)
		return nil
	}
	var b textB64
	if err := json.Unmarshal(src, &b); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(b.B64)
	*t = text(raw)
	return err
}

// encode is json.Marshal that leaves <, > and & in what a reconciler wrote alone.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// null is a JSON body as a column's value; no body is NULL.
func null(raw json.RawMessage) any {
	if raw == nil {
		return nil
	}
	return string(raw)
}

// raw is a column's value as a JSON body.
func raw(s sql.NullString) json.RawMessage {
	if !s.Valid {
		return nil
	}
	return json.RawMessage(s.String)
}

// checkJSON refuses a body that is none before it is journaled.
func checkJSON(what string, bodies ...json.RawMessage) error {
	for _, b := range bodies {
		if b != nil && !json.Valid(b) {
			return fmt.Errorf("journal %s: it is not JSON", what)
		}
	}
	return nil
}

func encodeLedger(changes []LedgerChange) (sql.NullString, error) {
	if len(changes) == 0 {
		return sql.NullString{}, nil
	}
	bodies := make([]ledgerBody, len(changes))
	for i, c := range changes {
		bodies[i] = ledgerBody{Sort: c.Sort, Resource: text(c.Resource)}
		if c.Before != nil {
			bodies[i].Before = &entryBody{c.Before.Body}
		}
		if c.After != nil {
			bodies[i].After = &entryBody{c.After.Body}
		}
	}
	data, err := encode(bodies)
	if err != nil {
		return sql.NullString{}, fmt.Errorf("journal ledger: %w", err)
	}
	return sql.NullString{String: string(data), Valid: true}, nil
}

// A decoder turns stored bodies back into values. It reads each glyph and lineage
// once, so that equal ones are the same pointer.
type decoder struct {
	c        *conn
	glyphs   map[int64]*scrolls.Glyph
	lineages map[int64]string
}

func newDecoder(c *conn) (*decoder, error) {
	d := &decoder{c: c, glyphs: map[int64]*scrolls.Glyph{}, lineages: map[int64]string{}}
	err := c.query(func(scan func(...any) error) error {
		var id int64
		var name string
		if err := scan(&id, &name); err != nil {
			return err
		}
		d.lineages[id] = name
		return nil
	}, "SELECT id, name FROM lineages")
	return d, err
}

// glyph reads a glyph by number; 0 is none.
func (d *decoder) glyph(id int64) (*scrolls.Glyph, error) {
	if g := d.glyphs[id]; g != nil || id == 0 {
		return g, nil
	}
	var body []byte
	ok, err := d.c.one([]any{&body}, "SELECT body FROM glyphs WHERE id = ?", id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, d.c.damaged(fmt.Sprintf("glyph %d is missing", id), nil)
	}
	return d.keep(id, body)
}

// keep decodes a glyph that was read along with something else.
func (d *decoder) keep(id int64, body []byte) (*scrolls.Glyph, error) {
	if g := d.glyphs[id]; g != nil {
		return g, nil
	}
	g, err := scrolls.UnmarshalStored(body)
	if err != nil {
		return nil, d.c.damaged(fmt.Sprintf("glyph %d cannot be decoded", id), err)
	}
	d.glyphs[id] = g
	return g, nil
}

func (d *decoder) lineage(id int64) (string, error) {
	name, ok := d.lineages[id]
	if !ok {
		return "", d.c.damaged(fmt.Sprintf("lineage %d is missing", id), nil)
	}
	return name, nil
}

// record decodes a record's column; nil for NULL.
func (d *decoder) record(sort, resource string, body []byte) (*Record, error) {
	if body == nil {
		return nil, nil
	}
	var b recordBody
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, d.c.damaged(fmt.Sprintf("the record of %q cannot be decoded", resource), err)
	}
	r := &Record{Sort: sort, Resource: resource, Found: b.Found, After: b.After}
	if len(b.Layers) > 0 {
		r.Layers = make([]Layer, len(b.Layers))
	}
	for i, l := range b.Layers {
		lineage, err := d.lineage(l.Lineage)
		if err != nil {
			return nil, err
		}
		glyph, err := d.glyph(l.Glyph)
		if err != nil {
			return nil, err
		}
		r.Layers[i] = Layer{l.Key, lineage, glyph, l.Changed, l.Inverse}
	}
	return r, nil
}

func (d *decoder) ledger(body []byte) ([]LedgerChange, error) {
	if body == nil {
		return nil, nil
	}
	var bodies []ledgerBody
	if err := json.Unmarshal(body, &bodies); err != nil {
		return nil, d.c.damaged("a step's ledger cannot be decoded", err)
	}
	changes := make([]LedgerChange, len(bodies))
	for i, b := range bodies {
		changes[i] = LedgerChange{Sort: b.Sort, Resource: string(b.Resource)}
		if b.Before != nil {
			changes[i].Before = &Entry{b.Sort, string(b.Resource), b.Before.Body}
		}
		if b.After != nil {
			changes[i].After = &Entry{b.Sort, string(b.Resource), b.After.Body}
		}
	}
	return changes, nil
}
