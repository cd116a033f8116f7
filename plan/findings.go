package plan

import "golem/state"

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
