package reconcilers

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"golem/scrolls"
	"golem/state"
)

// A chained draws what leaves want of one file, run after run, and works their turns out as
// a plan does.
type chained struct {
	t      *rapid.T
	w      *World
	record *state.Record
}

// glyph draws an edit of the file.
func (c *chained) glyph() *scrolls.Glyph {
	n := rapid.IntRange(0, 11).Draw(c.t, "n")
	kind, attrs := lineKind, scrolls.Attrs{"path": "/f.ini", "line": fmt.Sprintf("k%d = %d", n%4, n)}
	switch rapid.IntRange(0, 5).Draw(c.t, "kind") {
	case 0:
		kind, attrs = regionKind, scrolls.Attrs{"path": "/f.ini", "name": fmt.Sprint("r", n%3), "content": fmt.Sprintf("k%d = x\n", n)}
	case 1:
		kind, attrs = entryKind, scrolls.Attrs{"path": "/f.ini", "format": "ini", "key": []any{"", fmt.Sprint("k", n%5)}, "value": fmt.Sprint(n)}
	case 2:
		attrs["match"] = fmt.Sprintf("^k%d *=", n%4)
		attrs["on_many"] = "last"
	case 3:
		attrs["ensure"] = "absent"
	case 4:
		attrs["before"] = "^k2"
	}
	return &scrolls.Glyph{Kind: kind.Name, Version: 1, Attrs: attrs, Key: kind.KeyOf(attrs)}
}

// turns works out one run's turns: twice from the same record and bytes, once as if each
// were alone. They have to be the same.
func (c *chained) turns(sets, drops []map[scrolls.Key]*scrolls.Glyph, order map[scrolls.Key]int) {
	var last *Turn
	var now any
	for i := range sets {
		if len(sets[i])+len(drops[i]) == 0 {
			continue
		}
		r := Request{Lineage: "l", Leaf: fmt.Sprint(i), Sort: PathSort, Resource: "/f.ini", Record: c.record, Now: now, Order: order, Drop: drops[i]}
		for _, key := range slices.SortedFunc(maps.Keys(sets[i]), func(a, b scrolls.Key) int { return order[a] - order[b] }) {
			r.Set = append(r.Set, sets[i][key])
		}
		alone, err := surfaces{}.turn(c.w, r)
		r.Shares, r.Last = true, last
		t, err2 := surfaces{}.turn(c.w, r)
		if fmt.Sprint(err) != fmt.Sprint(err2) {
			c.t.Fatalf("turn %d: alone %v, after another %v", i, err, err2)
		}
		if err != nil {
			return
		}
		if a, b := told(alone), told(t); a != b {
			c.t.Fatalf("turn %d works out alone\n%s\nand after another\n%s", i, a, b)
		}
		if last = t; t.Step != nil {
			c.record = t.Step.After
		}
		if t.Leaves != nil {
			now = t.Leaves
		}
	}
	if n, ok := now.(Node); ok {
		c.write(n)
	}
}

// told is all of a turn but the name of its temp.
func told(t *Turn) string {
	var step string
	if t.Step != nil {
		step = fmt.Sprintf("%s %s\n%s", encode(t.Step.After), t.Step.Inverse, encode(t.Step.Glyphs))
	}
	leaves, _ := t.Leaves.(Node)
	return fmt.Sprintf("%s\n%s\n%v %v\n%s\n%d %q", step, encode(t.Changes), t.Noops, t.Acts, encode(t.Keeps), leaves.Mtime, leaves.data)
}

func (c *chained) file() string { return c.w.Host.Root + "/f.ini" }

func (c *chained) write(n Node) {
	var err error
	if c.w.forget(); n.Type == File {
		err = os.WriteFile(c.file(), n.data, 0o644)
	} else {
		err = os.RemoveAll(c.file())
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// TestTurnsThatTakeUpTheLastOneAreTheSame: what a turn takes over of what the run's last one
// reckoned is what it would work out itself, whatever comes, changes and goes in which leaf,
// and whatever a stranger does to the file in between.
func TestTurnsThatTakeUpTheLastOneAreTheSame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h, err := OpenHost(t.TempDir())
		if err != nil {
			rt.Fatal(err)
		}
		defer h.Close()
		c := &chained{t: rt, w: NewWorld(h, nil)}
		defer c.w.Close()
		text := rapid.SampledFrom([]string{"", "k1 = 1", "k0 = 9\n# c\nk1 = 2\nk2 = 3\n", "a = 1\r\nk3 = 1\r\n", "k1 = 1\n\n[s]\nk1 = 4\n"}).Draw(rt, "text")
		c.write(fileNode([]byte(text)))
		for range rapid.IntRange(1, 4).Draw(rt, "runs") {
			const leaves = 6
			sets, drops := make([]map[scrolls.Key]*scrolls.Glyph, leaves), make([]map[scrolls.Key]*scrolls.Glyph, leaves)
			for i := range sets {
				sets[i], drops[i] = map[scrolls.Key]*scrolls.Glyph{}, map[scrolls.Key]*scrolls.Glyph{}
			}
			order, declared := map[scrolls.Key]int{}, map[scrolls.Key]bool{}
			for range rapid.IntRange(0, 8).Draw(rt, "glyphs") {
				g := c.glyph()
				if leaf := rapid.IntRange(0, leaves-1).Draw(rt, "leaf"); !declared[g.Key] {
					declared[g.Key], sets[leaf][g.Key] = true, g
				}
			}
			if c.record != nil {
				for _, layer := range c.record.Layers { // some stay as they are, the others go
					leaf := rapid.IntRange(0, leaves-1).Draw(rt, "leaf")
					switch {
					case declared[layer.Key]:
					case rapid.Bool().Draw(rt, "stays"):
						sets[leaf][layer.Key] = layer.Glyph
					default:
						drops[leaf][layer.Key] = layer.Glyph
					}
				}
			}
			for i := range sets {
				for _, key := range slices.Sorted(maps.Keys(sets[i])) {
					order[key] = len(order)
				}
			}
			c.turns(sets, drops, order)
			if rapid.IntRange(0, 2).Draw(rt, "stranger") == 0 {
				if data, err := os.ReadFile(c.file()); err == nil {
					lines := bytes.SplitAfter(data, []byte("\n"))
					at := rapid.IntRange(0, len(lines)-1).Draw(rt, "at")
					lines[at] = append([]byte("own = 1\n"), lines[at]...)
					c.write(fileNode(bytes.Join(lines, nil)))
				}
			}
		}
	})
}
