package plan

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"golem/reconcilers"
	"golem/state"
)

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
