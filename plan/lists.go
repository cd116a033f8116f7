package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// table writes rows under a header, columns aligned; the last one may be as long as
// it likes.
func (out *Printer) table(header []string, rows [][]string) error {
	width := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			width[i] = max(width[i], runewidth.StringWidth(cell))
		}
	}
	line := func(row []string) string {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = pad(cell, width[i])
		}
		return out.clip(strings.TrimRight(strings.Join(cells, "  "), " "), 0) + "\n"
	}
	b := out.faint.Render(strings.TrimSuffix(line(header), "\n")) + "\n"
	for _, row := range rows {
		b += line(row)
	}
	return out.Printf("%s", b)
}

// A RevisionRow is one revision in a list.
type RevisionRow struct {
	ID       string `json:"id"` // web@4
	Lineage  string `json:"lineage"`
	Revision int    `json:"revision"`
	Kind     string `json:"kind"`
	Command  string `json:"command"`
	Target   int    `json:"target,omitempty"` // what a rollback or a return goes back to
	Outcome  string `json:"outcome"`
	// Unconfirmed says that it is taken back unless somebody confirms it.
	Unconfirmed bool                `json:"unconfirmed,omitempty"`
	At          string              `json:"at"`
	UID         int                 `json:"uid"`
	SudoUser    string              `json:"sudo_user"`
	Source      string              `json:"source"`
	Version     string              `json:"version"`
	Counts      map[state.Op]int    `json:"counts"`
	Leaves      []state.LeafOutcome `json:"leaves"`
}

// Revisions are the rows of a list of revisions; pending is the run that waits to be
// confirmed, if one does.
func Revisions(all []*state.Revision, pending *state.Pending) []RevisionRow {
	rows := make([]RevisionRow, 0, len(all))
	for _, r := range all {
		row := revisionRow(r)
		row.Unconfirmed = pending != nil && pending.Run == r.Run.ID
		rows = append(rows, row)
	}
	return rows
}

func revisionRow(r *state.Revision) RevisionRow {
	return RevisionRow{
		ID: fmt.Sprintf("%s@%d", r.Lineage, r.Number), Lineage: r.Lineage, Revision: r.Number, Kind: r.Kind,
		Command: r.Run.Command, Target: r.Run.Target, Outcome: r.Outcome, At: stamp(r.At), UID: r.Run.UID, SudoUser: r.Run.SudoUser,
		Source: valid(r.Run.Source), Version: r.Run.Version, Counts: r.Counts, Leaves: r.Leaves,
	}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// RevisionTable shows a list of revisions.
func RevisionTable(out *Printer, rows []RevisionRow) error {
	if len(rows) == 0 {
		return out.Printf("No revision yet.\n")
	}
	cells := make([][]string, 0, len(rows))
	for _, r := range rows {
		cells = append(cells, []string{r.ID, r.At, r.does(), r.ended(), countsText(r.Counts), r.who(), Printable(r.Source)})
	}
	return out.table([]string{"ID", "TIME", "COMMAND", "OUTCOME", "CHANGES", "BY", "FROM"}, cells)
}

// does is the command, and where it went back to.
func (r RevisionRow) does() string {
	if r.Target == 0 {
		return r.Command
	}
	return fmt.Sprintf("%s to %d", r.Command, r.Target)
}

// ended is the outcome, and whether that is the last word.
func (r RevisionRow) ended() string {
	if r.Unconfirmed {
		return r.Outcome + ", unconfirmed"
	}
	return r.Outcome
}

func (r RevisionRow) who() string {
	if r.SudoUser != "" {
		return Printable(r.SudoUser)
	}
	return fmt.Sprintf("uid %d", r.UID)
}

func countsText(counts map[state.Op]int) string {
	var parts []string
	for _, op := range []state.Op{state.Install, state.Replace, state.Repair, state.Remove} {
		if n := counts[op]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s%d", Mark(op), n))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " ")
}

// A RevisionDoc is one revision in full.
type RevisionDoc struct {
	RevisionRow
	Changes  []RevisionChange `json:"changes"`
	Declared []DeclaredLeaf   `json:"declared"`
	// Against is the revision that Diff compares with; "" for one that declares nothing.
	Against string           `json:"against"`
	Diff    []DeclaredChange `json:"diff"`
}

// A RevisionChange is one glyph's part in a revision.
type RevisionChange struct {
	Leaf    string       `json:"leaf"`
	Key     string       `json:"key"`
	Op      state.Op     `json:"op"`
	Changed bool         `json:"changed"`
	Reason  string       `json:"reason"`
	Status  state.Status `json:"status"`
}

// A DeclaredLeaf is what a leaf declares in a revision.
type DeclaredLeaf struct {
	Leaf string   `json:"leaf"`
	Keys []string `json:"keys"`
}

// compare tells how the revision declares otherwise than another; nil is none.
func (d *RevisionDoc) compare(was, is *state.Revision) {
	d.Diff = DeclaredDiff(was, is)
	if was != nil {
		d.Against = fmt.Sprintf("%s@%d", was.Lineage, was.Number)
	}
}

// ShowAgainst is a revision in full, compared with another; nil is none.
func ShowAgainst(r *state.Revision, steps []*state.Step, was *state.Revision) *RevisionDoc {
	doc := ShowRevision(r, steps)
	doc.compare(was, r)
	return doc
}

// ShowRevision is a revision in full.
func ShowRevision(r *state.Revision, steps []*state.Step) *RevisionDoc {
	doc := &RevisionDoc{RevisionRow: revisionRow(r), Changes: []RevisionChange{}, Declared: []DeclaredLeaf{}, Diff: []DeclaredChange{}}
	for _, s := range steps {
		for _, part := range s.Glyphs {
			doc.Changes = append(doc.Changes, RevisionChange{
				Leaf: part.Leaf, Key: string(part.Key), Op: part.Op, Changed: part.Changed, Reason: valid(part.Reason), Status: s.Status,
			})
		}
	}
	for _, leaf := range r.Declared {
		d := DeclaredLeaf{Leaf: leaf.Leaf, Keys: []string{}}
		for _, g := range leaf.Glyphs {
			d.Keys = append(d.Keys, string(g.Key))
		}
		doc.Declared = append(doc.Declared, d)
	}
	return doc
}

// Text shows a revision to a person.
func (d *RevisionDoc) Text(out *Printer) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s  %s  %s by %s, golem %s\n", out.Bold(Printable(d.ID)), d.At, d.Outcome, d.who(), Printable(d.Version))
	if d.Source != "" {
		fmt.Fprintf(b, "from %s\n", Printable(d.Source))
	}
	for _, leaf := range d.Leaves {
		if leaf.Outcome != "settled" {
			fmt.Fprintf(b, "%s: %s\n", Printable(leaf.Leaf), leaf.Outcome)
			for _, f := range leaf.Failures {
				fmt.Fprintf(b, "    %s\n", strings.Join(Lines(f, out.wrapAt(4)), "\n    "))
			}
		}
	}
	if len(d.Changes) > 0 {
		b.WriteString("\nChanges\n")
	}
	for _, c := range d.Changes {
		status := ""
		if c.Status != state.Done {
			status = " (" + string(c.Status) + ")"
		}
		fmt.Fprintf(b, "  %s %s\n", out.marks[c.Op].Render(Mark(c.Op)), out.beside(Printable(c.Key), Printable(c.Reason)+status, 4))
	}
	d.against(out, b)
	b.WriteString("\nIn force after it\n")
	for _, leaf := range d.Declared {
		fmt.Fprintf(b, "  %s\n", Printable(leaf.Leaf))
		for _, key := range leaf.Keys {
			fmt.Fprintf(b, "    %s\n", out.hanging(Printable(key), 4, 6))
		}
	}
	if len(d.Declared) == 0 {
		b.WriteString("  nothing\n")
	}
	return out.Printf("%s", b.String())
}

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
	hide := g.Secret
	if marked, _ := g.Attrs["sensitive"].(bool); marked {
		hide = append(slices.Clone(hide), "content", "content_base64", "source")
	}
	for _, name := range hide {
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

// A KeptRow is one displaced thing in a list.
type KeptRow struct {
	ID      int64           `json:"id"`
	At      string          `json:"at"`
	Path    string          `json:"path"`
	PathB64 []byte          `json:"path_b64,omitempty"`
	Size    int64           `json:"size"`
	SHA256  string          `json:"sha256"`
	Reason  string          `json:"reason"`
	Node    json.RawMessage `json:"node"`
	// Sensitive says that size and hash are not told.
	Sensitive bool `json:"sensitive"`
}

// KeptRows are the rows of a list of what is kept.
func KeptRows(all []*state.Kept) []KeptRow {
	rows := make([]KeptRow, 0, len(all))
	for _, k := range all {
		r := KeptRow{ID: k.ID, At: stamp(k.At), Path: valid(k.Path), Size: k.Size, SHA256: k.Blob, Reason: k.Reason}
		if r.Node, r.Sensitive = reconcilers.KeptShown(k); r.Sensitive {
			r.Size, r.SHA256 = 0, ""
		}
		if !utf8.ValidString(k.Path) {
			r.PathB64 = []byte(k.Path)
		}
		rows = append(rows, r)
	}
	return rows
}

// KeptTable shows a list of what is kept.
func KeptTable(out *Printer, rows []KeptRow) error {
	if len(rows) == 0 {
		return out.Printf("Nothing is kept.\n")
	}
	cells := make([][]string, 0, len(rows))
	for _, r := range rows {
		size := fmt.Sprint(r.Size)
		if r.Sensitive {
			size = secretShown
		}
		cells = append(cells, []string{fmt.Sprint(r.ID), r.At, size, Printable(r.Path), Printable(r.Reason)})
	}
	return out.table([]string{"ID", "TIME", "BYTES", "PATH", "WHY"}, cells)
}

// A FindingRow is one thing that a check of the journal found.
type FindingRow struct {
	Level  state.Level `json:"level"`
	What   string      `json:"what"`
	Detail string      `json:"detail"`
}

// Findings are the rows of a check's result.
func Findings(all []state.Finding) []FindingRow {
	rows := make([]FindingRow, 0, len(all))
	for _, f := range all {
		rows = append(rows, FindingRow{f.Level, f.What, f.Detail})
	}
	return rows
}

// FindingTable shows a check's result.
func FindingTable(out *Printer, journal string, rows []FindingRow) error {
	if len(rows) == 0 {
		return out.Printf("%s is whole.\n", Printable(journal))
	}
	for _, r := range rows {
		dress := out.Warn
		if r.Level == state.Damage {
			dress = out.Bad
		}
		if err := out.Printf("%s  %s: %s\n", dress(string(r.Level)), Printable(r.What), Printable(r.Detail)); err != nil {
			return err
		}
	}
	return nil
}
