package plan

import (
	"fmt"
	"strings"

	"golem/state"
)

// A RevisionRow is one revision in a list.
type RevisionRow struct {
	ID       string        `json:"id"` // web@4
	Lineage  string        `json:"lineage"`
	Revision int           `json:"revision"`
	Kind     string        `json:"kind"`
	Command  string        `json:"command"`
	Target   int           `json:"target,omitempty"` // what a rollback or a return goes back to
	Outcome  state.Outcome `json:"outcome"`
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
		return string(r.Outcome) + ", unconfirmed"
	}
	return string(r.Outcome)
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
		if leaf.Outcome != state.Settled {
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
