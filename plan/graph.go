package plan

import (
	"fmt"
	"io"
	"strings"

	"golem/state"
)

// A GraphFormat is what a graph is written as.
type GraphFormat string

// The formats of a graph.
const (
	Mermaid GraphFormat = "mermaid"
	Dot     GraphFormat = "dot"
)

// opColors are the fill colours of what a graph shows, by op: pale, so that black text
// stands out on each.
var opColors = map[state.Op]string{
	state.Install: "#c8e6c9", state.Replace: "#fff3c4", state.Repair: "#ffe0b2", state.Remove: "#ffcdd2", state.Noop: "#eceff1",
}

// A graphNode is a scroll or a glyph of the tree.
type graphNode struct {
	id, label, under string
	op               state.Op // of a glyph; "" for a scroll
}

// graph lists the tree that a plan is about: its scrolls, leaves and glyphs, each after
// what it stands under.
func (p *Plan) graph() []graphNode {
	nodes := []graphNode{{id: "n0", label: p.Name}}
	ids := map[string]string{"": "n0"}
	add := func(under, label string, op state.Op) string {
		id := fmt.Sprintf("n%d", len(nodes))
		nodes = append(nodes, graphNode{id: id, label: label, under: under, op: op})
		return id
	}
	for _, leaf := range p.Leaves {
		under := "n0"
		for end, step := range leafSteps(leaf.Path) {
			if leaf.Path == p.Name && !leaf.Gone {
				break // the only leaf of a flat scroll
			}
			if ids[end] == "" {
				if end == leaf.Path && leaf.Gone {
					step += " (no longer declared)"
				}
				ids[end] = add(under, step, "")
			}
			under = ids[end]
		}
		for _, t := range leaf.Turns {
			for _, c := range t.Changes {
				add(under, string(c.Key), c.Op)
			}
			for _, key := range t.Noops {
				add(under, string(key), state.Noop)
			}
		}
	}
	return nodes
}

// leafSteps are the steps of a leaf's path, each with the path as far as it goes. A key of
// for_each may hold slashes.
func leafSteps(path string) func(yield func(end, step string) bool) {
	return func(yield func(end, step string) bool) {
		start, quoted := 0, false
		for i := 0; i <= len(path); i++ {
			switch {
			case i < len(path) && path[i] == '"' && path[i-min(i, 1)] != '\\':
				quoted = !quoted
				continue
			case i < len(path) && (path[i] != '/' || quoted):
				continue
			}
			if !yield(path[:i], path[start:i]) {
				return
			}
			start = i + 1
		}
	}
}

// Graph writes the tree with its ops in colour, as a Mermaid flowchart or for Graphviz.
func (p *Plan) Graph(w io.Writer, format GraphFormat) error {
	var b strings.Builder
	nodes := p.graph()
	if format == Dot {
		writeDot(&b, p.Name, nodes)
	} else {
		writeMermaid(&b, nodes)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeDot(b *strings.Builder, name string, nodes []graphNode) {
	fmt.Fprintf(b, "digraph %s {\n  rankdir = LR\n  node [shape = box, style = \"filled,rounded\", fillcolor = white, fontname = \"sans-serif\"]\n", dotText(name))
	for _, n := range nodes {
		if n.op == "" {
			fmt.Fprintf(b, "  %s [label = %s]\n", n.id, dotText(n.label))
		} else {
			fmt.Fprintf(b, "  %s [label = %s, fillcolor = \"%s\", tooltip = \"%s\"]\n", n.id, dotText(graphLabel(n)), opColors[n.op], n.op)
		}
	}
	for _, n := range nodes {
		if n.under != "" {
			fmt.Fprintf(b, "  %s -> %s\n", n.under, n.id)
		}
	}
	b.WriteString("}\n")
}

// graphLabel is a glyph's key with its mark.
func graphLabel(n graphNode) string {
	if n.op == "" || n.op == state.Noop {
		return n.label
	}
	return Mark(n.op) + " " + n.label
}

// dotText is a text as DOT has it (graphviz.org/doc/info/lang.html); Graphviz reads entities
// in it, too.
func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;").Replace(Printable(s)) + `"`
}

func writeMermaid(b *strings.Builder, nodes []graphNode) {
	b.WriteString("flowchart LR\n")
	for _, n := range nodes {
		fmt.Fprintf(b, "  %s[\"%s\"]\n", n.id, mermaidText(graphLabel(n)))
	}
	for _, n := range nodes {
		if n.under != "" {
			fmt.Fprintf(b, "  %s --> %s\n", n.under, n.id)
		}
	}
	for _, op := range []state.Op{state.Install, state.Replace, state.Repair, state.Remove, state.Noop} {
		var ids []string
		for _, n := range nodes {
			if n.op == op {
				ids = append(ids, n.id)
			}
		}
		if len(ids) > 0 {
			fmt.Fprintf(b, "  classDef %s fill:%s,color:#000\n  class %s %s\n", op, opColors[op], strings.Join(ids, ","), op)
		}
	}
}

// mermaidText is a text in a Mermaid label: what it would read as markup by its number.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range Printable(s) {
		if strings.ContainsRune("\"#;<>&`\\*_", r) {
			fmt.Fprintf(&b, "#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
