package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// A DeclaredChange is how one key is declared otherwise than in another revision.
type DeclaredChange struct {
	Key  string `json:"key"`
	Leaf string `json:"leaf"` // in the revision shown; of what is gone, in the other
	// Op is "added", "removed", "changed", or "moved" for another leaf alone.
	Op    string       `json:"op"`
	Was   string       `json:"was_leaf,omitempty"` // the other revision's leaf, where it is another
	Attrs []AttrChange `json:"attrs"`
}

// An AttrChange is one attribute that differs. Of a sensitive one only that is told.
type AttrChange struct {
	Name      string `json:"name"`
	Before    any    `json:"before"`
	After     any    `json:"after"`
	Diff      string `json:"diff"`
	Sensitive bool   `json:"sensitive"`
}

type declaredGlyph struct {
	leaf  string
	glyph *scrolls.Glyph
}

func declaredIn(rev *state.Revision) ([]scrolls.Key, map[scrolls.Key]declaredGlyph) {
	var order []scrolls.Key
	all := map[scrolls.Key]declaredGlyph{}
	if rev == nil {
		return nil, all
	}
	for _, leaf := range rev.Declared {
		for _, g := range leaf.Glyphs {
			order = append(order, g.Key)
			all[g.Key] = declaredGlyph{leaf.Leaf, g}
		}
	}
	return order, all
}

// DeclaredDiff is how a revision declares otherwise than another; nil is one that declares
// nothing.
func DeclaredDiff(was, is *state.Revision) []DeclaredChange {
	oldOrder, old := declaredIn(was)
	order, now := declaredIn(is)
	all := []DeclaredChange{}
	for _, key := range order {
		n := now[key]
		o, there := old[key]
		c := DeclaredChange{Key: string(key), Leaf: n.leaf, Op: "added", Attrs: []AttrChange{}}
		if there {
			c.Op, c.Attrs = "changed", attrChanges(o.glyph, n.glyph)
			if o.leaf != n.leaf {
				c.Was = o.leaf
			}
			if len(c.Attrs) == 0 {
				c.Op = "moved"
			}
		}
		if c.Op != "moved" || c.Was != "" {
			all = append(all, c)
		}
	}
	for _, key := range oldOrder {
		if _, stays := now[key]; !stays {
			all = append(all, DeclaredChange{Key: string(key), Leaf: old[key].leaf, Op: "removed", Attrs: []AttrChange{}})
		}
	}
	return all
}

// attrChanges lists the attributes that two versions of a glyph do not have alike, without what
// is not to be shown.
func attrChanges(was, is *scrolls.Glyph) []AttrChange {
	names := map[string]bool{}
	for name := range was.Attrs {
		names[name] = true
	}
	for name := range is.Attrs {
		names[name] = true
	}
	oldShown, newShown := shown(was), shown(is)
	all := []AttrChange{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if reflect.DeepEqual(was.Attrs[name], is.Attrs[name]) {
			continue
		}
		c := AttrChange{Name: name, Before: oldShown[name], After: newShown[name]}
		c.Sensitive = c.Before == secretShown || c.After == secretShown
		if c.Sensitive {
			c.Before, c.After = secretShown, secretShown
		}
		before, isText := c.Before.(string)
		after, still := c.After.(string)
		if isText && still && !c.Sensitive && strings.Contains(before+after, "\n") {
			c.Diff = reconcilers.Diff([]byte(before), []byte(after))
		}
		all = append(all, c)
	}
	return all
}

// against writes how a revision declares otherwise than the one it is compared with.
func (d *RevisionDoc) against(out *Printer, b *strings.Builder) {
	if len(d.Diff) == 0 {
		return
	}
	title := "Declared anew"
	if d.Against != "" {
		title = "Declared otherwise than in " + d.Against
	}
	fmt.Fprintf(b, "\n%s\n", Printable(title))
	marks := map[string]state.Op{"added": state.Install, "removed": state.Remove, "changed": state.Replace, "moved": state.Replace}
	for _, c := range d.Diff {
		op := marks[c.Op]
		where := "leaf " + c.Leaf
		if c.Was != "" {
			where = "leaf " + c.Was + " → " + c.Leaf
		}
		fmt.Fprintf(b, "  %s %s\n", out.marks[op].Render(Mark(op)), out.beside(Printable(c.Key), Printable(where), 4))
		for _, a := range c.Attrs {
			a.text(out, b)
		}
	}
}

func (a AttrChange) text(out *Printer, b *strings.Builder) {
	switch {
	case a.Sensitive:
		fmt.Fprintf(b, "      %s changed %s\n", a.Name, secretShown)
	case a.Diff != "":
		fmt.Fprintf(b, "      %s\n", a.Name)
		out.diff(b, reconcilers.Change{Diff: a.Diff})
	default:
		fmt.Fprintf(b, "      %s\n", out.clip(fmt.Sprintf("%s %s → %s", a.Name, valueText(a.Before), valueText(a.After)), 6))
	}
}

// valueText is a value as it is written; "(none)" for none.
func valueText(v any) string {
	if v == nil {
		return "(none)"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return Printable(string(text))
}
