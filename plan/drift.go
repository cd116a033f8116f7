package plan

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"

	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// A Mover is who changed something since the last revision.
type Mover string

// Who can have moved.
const (
	ByScroll Mover = "scroll" // it says something else than what is in force
	ByHost   Mover = "host"   // it is not as golem left it
	ByBoth   Mover = "both"
)

// A Drift tells apart what the scroll and what the host have moved since the revision in
// force.
type Drift struct {
	Name     string
	Host     string
	Revision int // 0: nothing was ever applied
	Moved    []DriftedKey
	Still    int // keys that nobody moved
	Recovers *Recovery
	Busy     *state.Holder
	LeftOut  *LeftOut
}

// A DriftedKey is one key that somebody moved.
type DriftedKey struct {
	Key  scrolls.Key
	Leaf string
	Kind string
	By   Mover
	// Op is what a plan would do of the scroll's own wish: "" where only the host moved.
	Op state.Op
	// Found says how the host differs from what golem left; "" where it does not.
	Found  string
	Diff   string // of what the host did
	Secret bool
}

// CompareDrift tells drift from two plans of one host: to what is in force, where every
// change is the host's doing, and to the scroll. Without the second only the host is told.
func CompareDrift(inForce, wanted *Plan) *Drift {
	d := &Drift{Name: inForce.Name, Host: inForce.Host, Revision: inForce.Revision, Recovers: inForce.Recovers, Busy: inForce.Busy, LeftOut: inForce.LeftOut}
	rows := map[scrolls.Key]*DriftedKey{}
	var order []scrolls.Key
	row := func(leaf string, c reconcilers.Change) *DriftedKey {
		m := rows[c.Key]
		if m == nil {
			m = &DriftedKey{Key: c.Key, Leaf: leaf, Kind: c.Kind}
			rows[c.Key] = m
			order = append(order, c.Key)
		}
		m.Secret = m.Secret || c.Secret
		return m
	}
	for _, c := range inForce.Changes() {
		m := row(c.Leaf, c.Change)
		// What a repair would do about it stands behind a semicolon, and is plan's to tell.
		m.Found, _, _ = strings.Cut(strings.TrimPrefix(c.Reason, "drifted: "), "; ")
		m.By, m.Diff = ByHost, c.Diff
	}
	d.Still = inForce.Summary().Unchanged
	if wanted != nil {
		d.LeftOut = wanted.LeftOut
		d.Still = 0
		for _, c := range wanted.Changes() {
			if c.Op == state.Repair && rows[c.Key] != nil {
				continue // what is declared is in force; only the host moved
			}
			m := row(c.Leaf, c.Change)
			m.Op, m.Leaf = c.Op, c.Leaf
			if m.By = ByScroll; m.Found != "" {
				m.By = ByBoth
			}
		}
		d.Still = wanted.Summary().Unchanged
	}
	for _, key := range order {
		if m := rows[key]; m.By != "" {
			d.Moved = append(d.Moved, *m)
		}
	}
	return d
}

// Empty says that nobody moved anything.
func (d *Drift) Empty() bool { return len(d.Moved) == 0 }

// Text writes the drift as a person reads it: a column for the scroll, one for the host.
func (d *Drift) Text(out *Printer) error {
	var b strings.Builder
	since := "nothing was applied yet"
	if d.Revision > 0 {
		since = fmt.Sprintf("since revision %d", d.Revision)
	}
	fmt.Fprintf(&b, "%s · %s on %s · %s\n", out.bold.Render("golem plan --drift"), Printable(d.Name), Printable(d.Host), since)
	if d.Busy != nil {
		fmt.Fprintf(&b, "\n%s\n", out.warn.Render(strings.Join(Wrap(busySentence(d.Busy), out.wrapAt(0)), "\n")))
	}
	if d.Recovers != nil {
		fmt.Fprintf(&b, "\n%s\n", d.Recovers.sentence())
	}
	width := 0
	for _, m := range d.Moved {
		width = max(width, runewidth.StringWidth(Printable(string(m.Key))))
	}
	if len(d.Moved) > 0 {
		b.WriteString("\nscroll  host\n")
	}
	for _, m := range d.Moved {
		out.moved(&b, m, min(width, maxKeyColumn))
	}
	out.leftOut(&b, d.LeftOut)
	fmt.Fprintf(&b, "\n%s\n", d.verdict())
	return out.Printf("%s", b.String())
}

// moved writes one key that moved: what the scroll has become to it, and what the host.
func (out *Printer) moved(b *strings.Builder, m DriftedKey, width int) {
	scroll, host := " ", " "
	if m.Op != "" {
		scroll = out.marks[m.Op].Render(Mark(m.Op))
	}
	if m.Found != "" {
		host = out.marks[state.Repair].Render(Mark(state.Repair))
	}
	tells := m.Found
	if m.Op != "" {
		tells = string(m.Op)
		if m.Found != "" {
			tells += "; " + m.Found
		}
	}
	key := Printable(string(m.Key))
	line := pad(key, width) + "  "
	const indent = 14
	if wide := out.style.Width; wide == 0 || indent+runewidth.StringWidth(line)+runewidth.StringWidth(tells) <= wide {
		fmt.Fprintf(b, "   %s      %s   %s%s\n", scroll, host, line, Printable(tells))
	} else {
		fmt.Fprintf(b, "   %s      %s   %s\n", scroll, host, out.hanging(key, indent, indent))
		for _, part := range Wrap(Printable(tells), out.wrapAt(indent+2)) {
			fmt.Fprintf(b, "%s%s\n", strings.Repeat(" ", indent+2), part)
		}
	}
	if m.Found != "" && !m.Secret {
		out.diff(b, reconcilers.Change{Diff: m.Diff})
	}
}

// verdict is the last line.
func (d *Drift) verdict() string {
	if d.Empty() {
		return fmt.Sprintf("No drift. %s as revision %d left it, and as the scroll says.", count(d.Still, "glyph is", "glyphs are"), d.Revision)
	}
	n := d.counts()
	return fmt.Sprintf("Moved: %d by the scroll, %d by the host, %d by both; %d unmoved.", n[ByScroll], n[ByHost], n[ByBoth], d.Still)
}

func (d *Drift) counts() map[Mover]int {
	n := map[Mover]int{ByScroll: 0, ByHost: 0, ByBoth: 0}
	for _, m := range d.Moved {
		n[m.By]++
	}
	return n
}

// MovedJSON is one key that somebody moved, as JSON.
type MovedJSON struct {
	Leaf string    `json:"leaf"`
	Key  string    `json:"key"`
	Kind string    `json:"kind"`
	By   Mover     `json:"by"`
	Op   *state.Op `json:"op"` // null where only the host moved
	Host string    `json:"host"`
	Diff string    `json:"diff"`
}

// JSON writes the drift as one document.
func (d *Drift) JSON(w io.Writer) error {
	moved := []MovedJSON{}
	for _, m := range d.Moved {
		j := MovedJSON{Leaf: m.Leaf, Key: string(m.Key), Kind: m.Kind, By: m.By, Host: valid(m.Found), Diff: valid(m.Diff)}
		if m.Op != "" {
			j.Op = &m.Op
		}
		if m.Secret {
			j.Diff = ""
		}
		moved = append(moved, j)
	}
	slices.SortStableFunc(moved, func(a, b MovedJSON) int { return strings.Compare(a.Key, b.Key) })
	return WriteJSON(w, map[string]any{
		"format_version": FormatVersion, "name": d.Name, "host": d.Host, "revision": d.Revision, "busy": d.Busy,
		"moved": moved, "summary": map[string]int{
			"scroll": d.counts()[ByScroll], "host": d.counts()[ByHost], "both": d.counts()[ByBoth], "unmoved": d.Still,
		},
	})
}
