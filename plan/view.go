package plan

import (
	"fmt"
	"io"
	"strings"

	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// A View is what a person reads of a plan, as plain values that can be kept in a file.
// Nothing secret is in it.
type View struct {
	Name       string
	Host       string
	Revision   int
	Back       int
	Empty      bool
	Recovers   *Recovery
	Busy       *state.Holder
	Pending    *Pending
	Leaves     []LeafView
	ByProducts []ByProductView
	Effects    []reconcilers.UnitEffect
	Runs       []RunView
	Checks     []CheckView
	Unknown    []scrolls.Key
	Updates    int
	LeftOut    *LeftOut
	Summary    Summary
}

// A LeafView is one leaf's changes.
type LeafView struct {
	Path    string
	Gone    bool
	Changes []reconcilers.Change
}

// A ByProductView is what becomes of something that golem made beside a glyph.
type ByProductView struct {
	Sort, Resource string
	Op             state.Op
	Why            string
}

// A RunView is what runs because something else changes, and is no unit.
type RunView struct {
	Action string
	Key    scrolls.Key
	Reason string
}

// A CheckView is what has to hold of a leaf.
type CheckView struct{ Leaf, Text string }

// View is the plan as a person reads it.
func (p *Plan) View() *View {
	v := &View{
		Name: p.Name, Host: p.Host, Revision: p.Revision, Back: p.Back, Empty: p.Empty(), Recovers: p.Recovers, Busy: p.Busy, Pending: p.Pending,
		Effects: p.Effects(), Unknown: p.Unknown, Updates: len(p.Updates), LeftOut: p.LeftOut, Summary: p.Summary(),
	}
	for _, leaf := range p.Leaves {
		l := LeafView{Path: leaf.Path, Gone: leaf.Gone}
		for _, c := range leaf.Changes() {
			l.Changes = append(l.Changes, c.Change)
		}
		v.Leaves = append(v.Leaves, l)
	}
	for _, t := range p.Wave {
		if t.Step == nil || !t.ByProduct() || !t.Acts && reconcilers.ByProductLeft(t) == "" || reconcilers.ByProductTitle(t.Sort) == "" {
			continue // what becomes of units stands in a section of its own
		}
		b := ByProductView{t.Sort, t.Resource, state.Replace, reconcilers.ByProductText(t)}
		switch {
		case t.Removes():
			b.Op = state.Remove
		case !t.Acts:
			b.Op = state.Noop
		}
		v.ByProducts = append(v.ByProducts, b)
	}
	for _, d := range p.Due {
		if d.Effect != nil && d.Effect.Unit == "" {
			v.Runs = append(v.Runs, RunView{d.Action, d.Glyph.Key, d.Effect.Reason})
		}
	}
	for _, c := range p.Checks {
		text := reconcilers.CheckText(c.Glyph)
		if c.Skipped {
			text += " (not made: this is a file tree, not a running host)"
		}
		v.Checks = append(v.Checks, CheckView{c.Leaf, text})
	}
	return v
}

// Text writes the plan as a person reads it.
func (v *View) Text(out *Printer) error {
	_, err := io.WriteString(out.w, v.heading(out)+"\n"+v.body(out)+"\n"+v.verdict(out)+"\n")
	return err
}

// body is all between the heading and the verdict.
func (v *View) body(out *Printer) string {
	b := &strings.Builder{}
	if v.Busy != nil {
		fmt.Fprintf(b, "\n%s\n", out.warn.Render(strings.Join(Wrap(busySentence(v.Busy), out.wrapAt(0)), "\n")))
	}
	if v.Recovers != nil {
		fmt.Fprintf(b, "\n%s\n", out.warn.Render(v.Recovers.sentence()))
	}
	if v.Pending != nil {
		fmt.Fprintf(b, "\n%s\n", out.warn.Render(fmt.Sprintf("Not now: %s. Until then nothing else is changed.", v.Pending.Sentence())))
	}
	for _, leaf := range v.Leaves {
		out.leaf(b, leaf)
	}
	out.byProducts(b, v.ByProducts)
	out.Units(b, v.Effects)
	out.runs(b, v.Runs)
	out.checks(b, v.Checks)
	out.warnings(b, v.Leaves)
	for _, key := range v.Unknown {
		fmt.Fprintf(b, "\n%s: unknown kind, left alone\n", Printable(string(key)))
	}
	if v.Updates > 0 {
		fmt.Fprintf(b, "\n%s brought up to date in the journal, without a change to the host.\n", count(v.Updates, "record is", "records are"))
	}
	out.leftOut(b, v.LeftOut)
	out.adopted(b, v.Leaves)
	return b.String()
}

// heading is the plan's first line.
func (v *View) heading(out *Printer) string {
	next := fmt.Sprintf("revision %d", v.Revision)
	switch {
	case v.Revision == 0 && v.Empty:
		next = "no revision yet"
	case v.Revision == 0:
		next = "first revision"
	case !v.Empty:
		next = fmt.Sprintf("revision %d → %d", v.Revision, v.Revision+1)
	}
	if v.Back != 0 {
		next += fmt.Sprintf(" · back to revision %d", v.Back)
	}
	return fmt.Sprintf("%s · %s on %s · %s", out.bold.Render("golem plan"), Printable(v.Name), Printable(v.Host), next)
}

// verdict is the plan's last line.
func (v *View) verdict(out *Printer) string {
	s := v.Summary
	if s.Install+s.Replace+s.Repair+s.Remove == 0 && v.Empty {
		says := "the scroll says"
		if v.Back != 0 {
			says = fmt.Sprintf("revision %d declared", v.Back)
		}
		return fmt.Sprintf("No changes. %s as %s.", count(s.Unchanged, "glyph is", "glyphs are"), says)
	}
	return out.bold.Render("Plan:") + fmt.Sprintf(" %d to install, %d to replace, %d to repair, %d to remove, %d unchanged.",
		s.Install, s.Replace, s.Repair, s.Remove, s.Unchanged)
}
