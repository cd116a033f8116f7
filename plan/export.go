package plan

import (
	"maps"
	"slices"

	"golem/state"
)

// An Export is a journal as JSON, for other programs to read; docs/export.schema.json
// describes it. No secret is in it, and no bytes of files.
type Export struct {
	FormatVersion string         `json:"format_version"`
	Journal       string         `json:"journal"` // its id
	Machine       string         `json:"machine"`
	Root          string         `json:"root"`
	Schema        int            `json:"schema"`
	Lineages      []LineageRow   `json:"lineages"`
	Keys          []*KeyDoc      `json:"keys"`
	Unknown       []string       `json:"unknown"` // keys of kinds that this golem does not know
	ByProducts    []string       `json:"by_products"`
	Due           []DueRow       `json:"due"`
	Pending       *PendingJSON   `json:"pending"` // null: no run waits to be confirmed
	Unsettled     bool           `json:"unsettled"`
	Revisions     []*RevisionDoc `json:"revisions"`
	Kept          []KeptRow      `json:"kept"`
}

// A LineageRow is one lineage.
type LineageRow struct {
	Name     string `json:"name"`
	Dir      string `json:"dir"` // that a defaulted name is bound to; "" for a written one
	Revision int    `json:"revision"`
}

// A DueRow is a trigger or a check that must still run.
type DueRow struct {
	Lineage string `json:"lineage"`
	Leaf    string `json:"leaf"`
	Name    string `json:"name"`
}

// A journal is what an export reads.
type journal interface {
	Meta(name string) (string, error)
	Schema() (int, error)
	Snapshot() (*state.Snapshot, error)
	Revisions(lineage string) ([]*state.Revision, error)
	Revision(lineage string, number int) (*state.Revision, error)
	StepsOf(run int64) ([]*state.Step, error)
	KeptList() ([]*state.Kept, error)
}

// MakeExport reads a journal for other programs.
func MakeExport(j journal) (*Export, error) {
	snap, err := j.Snapshot()
	if err != nil {
		return nil, err
	}
	e := &Export{
		FormatVersion: FormatVersion, Journal: snap.Journal, Lineages: []LineageRow{}, Keys: []*KeyDoc{}, Unknown: []string{},
		ByProducts: append([]string{}, slices.Sorted(maps.Keys(snap.Ledger))...), Due: []DueRow{}, Revisions: []*RevisionDoc{},
		Unsettled: snap.Unsettled(),
	}
	for i, name := range e.ByProducts {
		e.ByProducts[i] = valid(name)
	}
	for _, key := range snap.Unknown {
		e.Unknown = append(e.Unknown, string(key))
	}
	for _, name := range slices.Sorted(maps.Keys(snap.Lineages)) {
		l := snap.Lineages[name]
		e.Lineages = append(e.Lineages, LineageRow{l.Name, valid(l.Dir), l.Revision})
	}
	for _, d := range snap.Due {
		e.Due = append(e.Due, DueRow{d.Lineage, d.Leaf, d.Name})
	}
	if err := e.read(j, snap); err != nil {
		return nil, err
	}
	for _, a := range snap.Applied {
		doc, err := ShowKey(snap, a.Key)
		if err != nil {
			return nil, err
		}
		e.Keys = append(e.Keys, doc)
	}
	return e, nil
}

// read reads what a snapshot does not hold.
func (e *Export) read(j journal, snap *state.Snapshot) error {
	pending, err := ReadPending(snap.Pending)
	if err != nil {
		return err
	}
	e.Pending = pending.JSON()
	for name, to := range map[string]*string{"machine": &e.Machine, "root": &e.Root} {
		if *to, err = j.Meta(name); err != nil {
			return err
		}
	}
	if e.Schema, err = j.Schema(); err != nil {
		return err
	}
	kept, err := j.KeptList()
	if err != nil {
		return err
	}
	e.Kept = KeptRows(kept)
	all, err := j.Revisions("")
	if err != nil {
		return err
	}
	last := map[string]*state.Revision{}
	for _, r := range all {
		rev, err := j.Revision(r.Lineage, r.Number)
		if err != nil {
			return err
		}
		steps, err := j.StepsOf(rev.Run.ID)
		if err != nil {
			return err
		}
		doc := ShowRevision(rev, steps)
		doc.compare(last[rev.Lineage], rev)
		last[rev.Lineage] = rev
		e.Revisions = append(e.Revisions, doc)
	}
	return nil
}
