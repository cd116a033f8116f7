package reconcilers

import (
	"bytes"
	"testing"

	"golem/scrolls"
)

// FuzzLine holds lines to the law of edits, whatever is in the file and whatever they say.
func FuzzLine(f *testing.F) {
	for _, c := range lineCases {
		beside := str(c.a, "before") + str(c.a, "after")
		f.Add([]byte(c.text), str(c.a, "line"), str(c.a, "match"), beside, str(c.a, "on_many"), goes(c.a), str(c.a, "after") != "", []byte("his\n"), uint16(1))
	}
	f.Fuzz(func(t *testing.T, text []byte, line, match, beside, many string, absent, after bool, his []byte, at uint16) {
		a := scrolls.Attrs{"path": "/p", "line": line}
		set := func(attr, value string) {
			if value != "" {
				a[attr] = value
			}
		}
		set("match", match)
		set("on_many", many)
		if after {
			set("after", beside)
		} else {
			set("before", beside)
		}
		if absent {
			a["ensure"] = "absent"
		}
		fuzzEdit(t, "line", a, text, his, int(at))
	})
}

// FuzzRegion holds regions to it.
func FuzzRegion(f *testing.F) {
	for _, c := range regionCases {
		f.Add([]byte(c.text), "web", str(c.a, "content"), str(c.a, "marker_begin"), str(c.a, "marker_end"), str(c.a, "before"), str(c.a, "indent"), []byte("his\n"), uint16(1))
	}
	f.Fuzz(func(t *testing.T, text []byte, name, content, begin, end, before, indent string, his []byte, at uint16) {
		a := scrolls.Attrs{"path": "/p", "name": name, "content": content, "indent": indent}
		for attr, value := range map[string]string{"marker_begin": begin, "marker_end": end, "before": before} {
			if value != "" {
				a[attr] = value
			}
		}
		fuzzEdit(t, "region", a, text, his, int(at))
	})
}

// fuzzEdit puts and peels: what comes off is what was there, what is put holds and stays,
// and with bytes of a stranger's anywhere nothing panics and none of them is lost.
func fuzzEdit(t *testing.T, kind string, a scrolls.Attrs, text, his []byte, at int) {
	k, _ := KindOf(kind)
	if len(k.Check(a)) > 0 {
		return
	}
	g := &scrolls.Glyph{Kind: kind, Attrs: a, Key: scrolls.MakeKey(kind, k.Identity(a)...)}
	if _, err := k.edit.put(g, text, -1); err != nil {
		return
	}
	got, inverse := put(t, g, string(text))
	if back := peel(g, inverse, got); back != string(text) {
		t.Fatalf("%v on %q gave %q", a, text, back)
	}
	at = min(at, len(got))
	changed := []byte(got[:at] + string(his) + got[at:])
	off := k.edit.peel(g, inverse, changed)
	for _, one := range bytes.SplitAfter(his, []byte("\n")) {
		whole := startsLine([]byte(got), at) && bytes.HasSuffix(one, []byte("\n"))
		equal := str(a, "line") != "" && bytes.Contains(one, []byte(str(a, "line")))
		if whole && !equal && !bytes.Contains(off.content, one) && !bytes.Contains(off.lost, bytes.TrimRight(one, "\r\n")) {
			t.Fatalf("%v on %q, then %q, gave %q and lost his line", a, text, changed, off.content)
		}
	}
	if again, err := k.edit.put(g, off.content, off.tail); err == nil && !k.edit.holds(g, again.content) {
		t.Fatalf("%v put again on %q does not hold on %q", a, off.content, again.content)
	}
}
