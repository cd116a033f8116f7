package reconcilers

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"golem/scrolls"
	"golem/state"
)

// TestASecondLookWorksOutTheSame: what the plan reckoned is used for the bytes that it saw,
// small and large, and for no others.
func TestASecondLookWorksOutTheSame(t *testing.T) {
	long := strings.Repeat("  \"k\": [1, 2, 3],\n", keepBytes/16)
	for name, text := range map[string]string{
		"small": "{\n  \"a\": 1\n}\n",
		"large": "{\n" + strings.ReplaceAll(long, `"k": [1, 2, 3],`, `// [1, 2, 3],`) + "  \"a\": 1\n}\n",
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			h, err := OpenHost(root)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			look := func(record *state.Record, planned *Turn, value string) *Turn {
				g := &scrolls.Glyph{Kind: "entry", Version: 1, Attrs: scrolls.Attrs{"path": "/f.json", "key": "a", "value": json.Number(value)}}
				g.Key = entryKind.KeyOf(g.Attrs)
				w := NewWorld(h, nil)
				defer w.Close()
				turn, err := surfaces{}.turn(w, Request{
					Lineage: "l", Leaf: "l", Sort: PathSort, Resource: "/f.json", Record: record,
					Set: []*scrolls.Glyph{g}, Planned: planned, Untold: planned != nil,
				})
				if err != nil {
					t.Fatal(err)
				}
				return turn
			}
			write := func(text string) {
				if err := os.WriteFile(root+"/f.json", []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			same := func(what string, planned *Turn, record *state.Record, value string) {
				t.Helper()
				again, fresh := look(record, planned, value), look(record, nil, value)
				a, b := again.Leaves.(Node), fresh.Leaves.(Node)
				if !bytes.Equal(a.data, b.data) || a.Hash != b.Hash || a.Mtime != b.Mtime || !bytes.Equal(encode(again.Step.After), encode(fresh.Step.After)) {
					t.Errorf("%s: the second look works out\n%.200q\n%s\nand a first one\n%.200q\n%s", what, a.data, encode(again.Step.After), b.data, encode(fresh.Step.After))
				}
			}
			write(text)
			planned := look(nil, nil, "2")
			same("the same bytes", planned, nil, "2")
			if used := look(nil, planned, "2").Leaves.(Node).data; &used[0] != &planned.Leaves.(Node).data[0] {
				t.Error("what the plan put together is put together again")
			}
			record := planned.Step.After
			write(strings.Replace(text, "1\n}", "5, \"b\": 0\n}", 1))
			same("other bytes", planned, nil, "2")

			write(string(planned.Leaves.(Node).data))
			replaced := look(record, nil, "3")
			same("an edit that is replaced", replaced, record, "3")
			same("with another value", replaced, record, "4")
			write(strings.Replace(text, "1\n}", "7\n}", 1))
			other := look(nil, nil, "2").Step.After
			write(string(planned.Leaves.(Node).data))
			same("with another record", replaced, other, "3")
			write(strings.Replace(string(planned.Leaves.(Node).data), "2\n}", "2, \"b\": 0\n}", 1))
			same("an edit that is replaced in other bytes", replaced, record, "3")
		})
	}
}

// TestALargeEditHoldsTheTextOnceMoreAndNoMore: what a splice makes is made at its size.
func TestALargeEditHoldsTheTextOnceMoreAndNoMore(t *testing.T) {
	text := []byte("{\"a\": 1, \"s\": \"" + strings.Repeat("x", 4<<20) + "\"}\n")
	g := &scrolls.Glyph{Kind: "entry", Attrs: scrolls.Attrs{"path": "/f.json", "key": "a", "value": json.Number("22")}}
	put, err := putEntry(g, text, -1)
	if err != nil || len(put.content) != len(text)+1 || cap(put.content) > len(text)+(len(text)>>4) {
		t.Errorf("%v: %d bytes for %d, room for %d", err, len(put.content), len(text), cap(put.content))
	}
}
