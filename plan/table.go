package plan

import (
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
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

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
