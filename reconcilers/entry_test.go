package reconcilers

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"golem/reconcilers/entry"
	"golem/scrolls"
)

func TestEntryKeysAreSpelledAsTheDesignSays(t *testing.T) {
	n := func(text string) json.Number { return json.Number(text) }
	for _, c := range []struct {
		a    scrolls.Attrs
		want scrolls.Key
	}{
		{scrolls.Attrs{"path": "/p", "key": "a.b.c", "value": "x"}, "entry:/p:a.b.c"},
		{scrolls.Attrs{"path": "/p", "key": []any{"a", n("0"), "b.c"}, "value": "x"}, "entry:/p:a.0.b%2Ec"},
		{scrolls.Attrs{"path": "/p", "key": []any{`remote "origin"`, "url"}, "value": "x"}, `entry:/p:remote "origin".url`},
		{scrolls.Attrs{"path": "/p", "key": []any{"", "x:y%"}, "absent": true}, "entry:/p:.x%3Ay%25"},
		{scrolls.Attrs{"path": "/p", "key": "a", "member": "m"}, "entry:/p:a:[m]"},
		{scrolls.Attrs{"path": "/p", "key": "a", "member": "1.5:[x]"}, "entry:/p:a:[1.5%3A%5Bx%5D]"},
		{scrolls.Attrs{"path": "/p", "key": "a", "member": "1"}, `entry:/p:a:["1"]`},
		{scrolls.Attrs{"path": "/p", "key": "a", "member": n("1")}, "entry:/p:a:[1]"},
		{scrolls.Attrs{"path": "/p", "key": "a", "member": nil}, "entry:/p:a:[null]"},
		{scrolls.Attrs{"path": "/p", "key": "a", "member": map[string]any{"b": n("1"), "a": "<"}}, `entry:/p:a:[{"a"%3A"<","b"%3A1}]`},
		{scrolls.Attrs{"path": "/p", "key": "a", "value": "x", "document": n("1")}, "entry:/p:document 1:a"},
	} {
		if got := entryKind.KeyOf(c.a); got != c.want {
			t.Errorf("%v: key %s, want %s", c.a, got, c.want)
		}
	}
}

func TestEntryIsTheSameHoweverItsKeyIsWritten(t *testing.T) {
	id := func(a scrolls.Attrs) scrolls.ContentID {
		return CID(&scrolls.Glyph{Kind: "entry", Attrs: a})
	}
	a := scrolls.Attrs{"path": "/p.json", "key": "a.b", "value": "x"}
	b := scrolls.Attrs{"path": "/p.json", "key": []any{"a", "b"}, "value": "x", "format": "json", "absent": false}
	if id(a) != id(b) {
		t.Error("two spellings of one entry have two content ids")
	}
	b["value"] = "y"
	if id(a) == id(b) {
		t.Error("another value has the same content id")
	}
}

func TestFormatsAreKnownByTheirNames(t *testing.T) {
	for path, want := range map[string]string{
		"/etc/docker/daemon.json": "json", "/srv/x.yml": "yaml", "/etc/app/config.toml": "toml", "/etc/php/8.2/php.ini": "ini",
		"/etc/systemd/system/x.service": "ini", "/etc/systemd/system/x.service.d/10.conf": "ini", "/etc/systemd/resolved.conf": "ini",
		"/etc/ssh/sshd_config": "keyword", "/etc/ssh/sshd_config.d/10-x.conf": "keyword", "/etc/default/grub": "env", "/srv/.env": "env",
		"/root/.gitconfig": "ini", "/srv/repo/.git/config": "ini", "/etc/containers/registries.conf": "toml", "/usr/share/applications/x.desktop": "ini",
		"/etc/cloud/cloud.cfg": "yaml", "/etc/cloud/cloud.cfg.d/90_x.cfg": "yaml", "/usr/share/containers/containers.conf": "toml",
		"/etc/nginx/nginx.conf": "", "/etc/motd": "",
	} {
		if got := formatOf(scrolls.Attrs{"path": path}); got != want {
			t.Errorf("%s: format %q, want %q", path, got, want)
		}
	}
	if got := formatOf(scrolls.Attrs{"path": "/x.json", "format": "yaml"}); got != "yaml" {
		t.Errorf("a format that is written counts %q", got)
	}
}

func TestMistakesInAnEntryAreFoundBeforeAnyFileIsRead(t *testing.T) {
	n := func(text string) json.Number { return json.Number(text) }
	for _, c := range []struct {
		name string
		a    scrolls.Attrs
		want string
	}{
		{"no format", scrolls.Attrs{"path": "/etc/motd", "key": "a", "value": "x"}, "path: Format is not known"},
		{"another format", scrolls.Attrs{"path": "/x.json", "format": "xml", "key": "a", "value": "x"}, "format: Format is not known"},
		{"an empty key", scrolls.Attrs{"path": "/x.json", "key": "", "value": "x"}, "key: Key cannot be read"},
		{"an empty step", scrolls.Attrs{"path": "/x.json", "key": "a..b", "value": "x"}, "key: Key cannot be read"},
		{"a negative step", scrolls.Attrs{"path": "/x.json", "key": []any{n("-1")}, "value": "x"}, "key: Key cannot be read"},
		{"half a step", scrolls.Attrs{"path": "/x.json", "key": []any{n("1.5")}, "value": "x"}, "key: Key cannot be read"},
		{"a step that is a list", scrolls.Attrs{"path": "/x.json", "key": []any{[]any{}}, "value": "x"}, "key: Key cannot be read"},
		{"a number for a key", scrolls.Attrs{"path": "/x.json", "key": n("1"), "value": "x"}, "key: Key cannot be read"},
		{"no steps", scrolls.Attrs{"path": "/x.json", "key": []any{}, "value": "x"}, "key: Key has no steps"},
		{"nothing", scrolls.Attrs{"path": "/x.json", "key": "a"}, ": Entry without a value"},
		{"not absent", scrolls.Attrs{"path": "/x.json", "key": "a", "absent": false}, ": Entry without a value"},
		{"two things", scrolls.Attrs{"path": "/x.json", "key": "a", "value": nil, "member": "x"}, "member: Entry says two things"},
		{"two more", scrolls.Attrs{"path": "/x.json", "key": "a", "member": "x", "absent": true}, "absent: Entry says two things"},
		{"before and after", scrolls.Attrs{"path": "/x.json", "key": "a", "member": "x", "before": "y", "after": "z"}, "after: Place given twice"},
		{"a place for no member", scrolls.Attrs{"path": "/x.json", "key": "a", "value": "x", "before": "y"}, "before: Only a member has a place"},
		{"an absent place", scrolls.Attrs{"path": "/x.json", "key": []any{"a", n("0")}, "absent": true}, "key: A place in a list cannot be absent"},
		{"a document of JSON", scrolls.Attrs{"path": "/x.json", "key": "a", "value": "x", "document": n("1")}, "document: Only YAML has documents"},
		{"half a document", scrolls.Attrs{"path": "/x.json", "key": "a", "value": "x", "document": n("0.5")}, "document: Document is no whole number"},
		{"nothing wrong", scrolls.Attrs{"path": "/x.json", "key": []any{"a", n("0")}, "value": nil, "document": n("0")}, ""},
		{"a member of the root", scrolls.Attrs{"path": "/x.json", "key": []any{}, "member": "x"}, ""},
	} {
		var got []string
		for _, p := range checkEntry(c.a) {
			got = append(got, p.Attr+": "+p.Summary)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestWhatCannotBeEditedIsToldWithItsPlace(t *testing.T) {
	g := &scrolls.Glyph{Kind: "entry", Attrs: scrolls.Attrs{"path": "/x.json", "key": "a.b", "value": "x"}}
	_, err := putEntry(g, []byte("{\n  \"a\": 1\n}"), -1)
	ae, ok := errors.AsType[*AttrError](err)
	if !ok || ae.Attr != "key" || !strings.HasPrefix(ae.Error(), "line 2, column 8: ") {
		t.Errorf("%T %v", err, err)
	}
	if _, ok := entry.Formats["json"]; !ok {
		t.Error("there is no JSON")
	}
}

// TestWhatAnEntryCannotTakeOffIsTold: a text that nobody can read any more still holds golem's
// value, so it is not told as gone; what golem had replaced goes to what is kept.
func TestWhatAnEntryCannotTakeOffIsTold(t *testing.T) {
	for _, c := range []struct {
		path, text, alien string
		key, value        any
		why, lost         string
	}{
		{"/x.json", `{"a": 1}`, `{"a": 2,, }`, "a", json.Number("2"), "line 1, column 9: ", "1\n"},
		{"/x.yaml", "a: one\n", "a: two\n\tb: [\n", "a", "two", "line ", " one\n"},
		{"/x.toml", "a = 1\n", "a = 2\nb\n", "a", json.Number("2"), "line 2, ", "1\n"},
		{"/x.ini", "[a]\nb=1\n", "[a]\nb=2\n[c\n", "a.b", json.Number("2"), "line 3, ", "1\n"},
		{"/x.json", `{"a": 1}`, `{"b": 2}`, "a", json.Number("2"), "", ""},
	} {
		g := editGlyph(t, "entry", scrolls.Attrs{"path": c.path, "key": c.key, "value": c.value})
		_, inverse := put(t, g, c.text)
		off := peelEntry(g, inverse, []byte(c.alien))
		if string(off.content) != c.alien || !strings.HasPrefix(off.why, c.why) || (off.why == "") != (c.why == "") || string(off.lost) != c.lost {
			t.Errorf("%s %q: it gives %q, told as %q, and keeps %q", c.path, c.alien, off.content, off.why, off.lost)
		}
	}
}

// TestAStrangersCommentWithinAnEntryIsKept: it goes with the value that it stands in, and so
// to what is kept; one beside the value stays where it is.
func TestAStrangersCommentWithinAnEntryIsKept(t *testing.T) {
	list := []any{"x", "y"}
	for _, c := range []struct{ path, text, alien, want, lost string }{
		{"/x.yaml", "b: 1\n", "b: 1\na:\n  - x\n  # his\n  - y\n", "b: 1\n", "a:\n  - x\n  # his\n  - y\n"},
		{"/x.yaml", "b: 1\n", "b: 1 # his\na:\n  - x\n  - y\n", "b: 1 # his\n", ""},
		{"/x.yaml", "b: 1\na: 1\n", "b: 1\na:\n  - x\n  - y\n# his\n", "b: 1\na: 1\n# his\n", ""},
		{"/x.toml", "a = 1\n", "a = [ # his\n \"x\", \"y\" ]\n", "a = 1\n", "a = [ # his\n \"x\", \"y\" ]\n"},
		{"/x.toml", "a = 1 # why\n", "a = [\"x\", \"y\"] # why\n# his\n", "a = 1 # why\n# his\n", ""},
		{"/x.json", "{\"b\": 1}", "{\"b\": 1, \"a\": [\"x\", // his\n\"y\"]}", "{\"b\": 1}", "{\"b\": 1, \"a\": [\"x\", // his\n\"y\"]}"},
	} {
		g := editGlyph(t, "entry", scrolls.Attrs{"path": c.path, "key": "a", "value": list})
		_, inverse := put(t, g, c.text)
		if off := peelEntry(g, inverse, []byte(c.alien)); string(off.content) != c.want || string(off.lost) != c.lost {
			t.Errorf("%q: it gives %q and keeps %q", c.alien, off.content, off.lost)
		}
	}
}
