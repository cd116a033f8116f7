package reconcilers

import (
	"encoding/json"
	"strings"
	"testing"

	"golem/scrolls"
)

// The ids of what could be declared before lines had more arguments: if one changes, every
// host that has such a glyph is told of a replace.
func TestContentIDsOfPlainGlyphsArePinned(t *testing.T) {
	for want, g := range map[scrolls.ContentID]*scrolls.Glyph{
		"48e3386c754f87fb344eae2fb3c1046b6ff02bfdb5676e86d53692b2d7611f32": {Kind: "line", Attrs: scrolls.Attrs{"path": "/etc/hosts", "line": "10.0.0.5 db.internal"}},
		"f978b1cfdd8c3fb665161e0a4504141477fcd577379f75eb5ec6ce099c5cd111": {Kind: "line", Attrs: scrolls.Attrs{"path": "/etc/ssh/sshd_config", "line": `a.b*[c]$ \ é`}},
		"63d094e2b4329bfcb4f6b7ce3faf0141de746040c40883ed5611fb21840aa99e": {Kind: "file", Attrs: scrolls.Attrs{"path": "/etc/motd", "content": "hello\n", "mode": "644", "owner": "root"}},
		"7e34e3691fa3ede262c2200d00e681ca5c2c2807d2af345d54215f36f00de652": {Kind: "file", Attrs: scrolls.Attrs{"path": "/etc/motd", "content": ""}},
	} {
		if got := CID(g); got != want {
			t.Errorf("%s %v: %s, want %s", g.Kind, g.Attrs, got, want)
		}
		g.Attrs["validate"] = []any{"true", "%s"}
		if got := CID(g); got != want {
			t.Errorf("%s: a validate command changes the content id", g.Kind)
		}
	}
}

func TestLinesAreKeyedAsTheContractSays(t *testing.T) {
	for want, a := range map[scrolls.Key]scrolls.Attrs{
		"line:/p:a b":             {"path": "/p", "line": "a b"},
		"line:/p:absent:a b":      {"path": "/p", "line": "a b", "ensure": "absent"},
		"line:/p:^x=":             {"path": "/p", "line": "x=1", "match": "^x="},
		"line:/p:absent:^x=":      {"path": "/p", "match": "^x=", "ensure": "absent"},
		"line:/p:%5Ba%5D%3A":      {"path": "/p", "line": "[a]:", "ensure": "present"},
		"region:/p:web":           {"path": "/p", "name": "web", "content": ""},
		"region:/a%3Ab:my block.": {"path": "/a:b", "name": "my block.", "content": ""},
	} {
		kind := strings.Split(string(want), ":")[0]
		if got := editGlyph(t, kind, a).Key; got != want {
			t.Errorf("%v has the key %s, want %s", a, got, want)
		}
	}
}

// lineCases are texts before and after a line is put on them; peeling it off gives the text
// before.
var lineCases = []struct {
	name       string
	a          scrolls.Attrs
	text, want string
}{
	{"replaces what matches", scrolls.Attrs{"line": "PermitRootLogin no", "match": "^#?PermitRootLogin"}, "a\n#PermitRootLogin yes\nb\n", "a\nPermitRootLogin no\nb\n"},
	{"is added where nothing matches", scrolls.Attrs{"line": "X no", "match": "^#?X "}, "a\nb", "a\nb\nX no\n"},
	{"keeps the ending of the line", scrolls.Attrs{"line": "X no", "match": "^X"}, "a\nX yes\r\nb", "a\nX no\r\nb"},
	{"keeps a missing final newline", scrolls.Attrs{"line": "X no", "match": "^X"}, "a\nX yes", "a\nX no"},
	{"keeps a byte order mark", scrolls.Attrs{"line": "X no", "match": "^X"}, "\xef\xbb\xbfX yes\n", "\xef\xbb\xbfX no\n"},
	{"replaces the first", scrolls.Attrs{"line": "X no", "match": "^X", "on_many": "first"}, "X 1\nX 2\nX 3\n", "X no\nX 2\nX 3\n"},
	{"replaces the last", scrolls.Attrs{"line": "X no", "match": "^X", "on_many": "last"}, "X 1\nX 2\nX 3\n", "X 1\nX 2\nX no\n"},
	{"replaces all", scrolls.Attrs{"line": "X no", "match": "^X", "on_many": "all"}, "X 1\nb\nX no\nX 3\n", "X no\nb\nX no\nX no\n"},
	{"is there though the match is another", scrolls.Attrs{"line": "X=1", "match": `^X=\s+#`}, "X=1\nb\n", "X=1\nb\n"},
	{"a match that does not match its own line", scrolls.Attrs{"line": "X=1", "match": `^X=\s+#`}, "X=  # unset\nb\n", "X=1\nb\n"},
	{"text is literal", scrolls.Attrs{"line": `a.b*[c]$ \1 $1`, "match": "^x"}, "x\naab\n", `a.b*[c]$ \1 $1` + "\naab\n"},
	{"bytes that are no UTF-8", scrolls.Attrs{"line": "name=caf\xe9", "match": "^name="}, "\xe9\nname=th\xe9\n", "\xe9\nname=caf\xe9\n"},
	{"after a line", scrolls.Attrs{"line": "new", "after": "^a"}, "a\nab\nc\n", "a\nab\nnew\nc\n"},
	{"before a line", scrolls.Attrs{"line": "new", "before": "^Match "}, "a\nMatch x\nMatch y\n", "a\nnew\nMatch x\nMatch y\n"},
	{"after a last line without newline", scrolls.Attrs{"line": "new", "after": "^b"}, "a\r\nb", "a\r\nb\r\nnew\r\n"},
	{"before the only line, which has none", scrolls.Attrs{"line": "new", "before": "."}, "b", "new\nb"},
	{"beside a line that is not there", scrolls.Attrs{"line": "new", "after": "^nowhere"}, "a\nb\n", "a\nb\nnew\n"},
	{"there already, elsewhere", scrolls.Attrs{"line": "a", "after": "^b"}, "a\nb\n", "a\nb\n"},
	{"every equal line goes", scrolls.Attrs{"line": "x", "ensure": "absent"}, "x\na\nx\r\nx\nxx\nx", "a\nxx\n"},
	{"every match goes", scrolls.Attrs{"match": "^#", "ensure": "absent"}, "#a\nb\n  #c\n#d", "b\n  #c\n"},
	{"nothing to go", scrolls.Attrs{"line": "x", "ensure": "absent"}, "a\nb", "a\nb"},
	{"all goes", scrolls.Attrs{"match": ".*", "ensure": "absent"}, "a\n\nb", ""},
	{"an empty file", scrolls.Attrs{"line": "x", "match": "^x"}, "", "x\n"},
	{"a file of one newline", scrolls.Attrs{"line": "x", "after": "^$"}, "\n", "\nx\n"},
	{"lone carriage returns inside lines", scrolls.Attrs{"line": "x", "match": "^a"}, "a\rb\nc\n", "x\nc\n"},
}

func TestLines(t *testing.T) {
	for _, c := range lineCases {
		t.Run(c.name, func(t *testing.T) {
			g := editGlyph(t, "line", c.a)
			got, inverse := put(t, g, c.text)
			if got != c.want {
				t.Errorf("on %q it left %q, want %q", c.text, got, c.want)
			}
			if back := peel(g, inverse, got); back != c.text {
				t.Errorf("it gave back %q, not %q", back, c.text)
			}
		})
	}
}

func TestSeveralMatchesAreAnErrorWithTheirLines(t *testing.T) {
	g := editGlyph(t, "line", scrolls.Attrs{"line": "X no", "match": "^X"})
	_, err := putLine(g, []byte("a\nX 1\nb\nX 2\n"), -1)
	if want := `line 4, column 1: it matches "^X", and so does line 2; write on_many to say which is meant`; err == nil || err.Error() != want {
		t.Errorf("it says %v, want %s", err, want)
	}
	if lineHolds(g, []byte("X no\nX 2\n")) {
		t.Error("it holds though another line matches too")
	}
}

func TestAMatchThatMissesItsOwnLineIsTold(t *testing.T) {
	if note := matchMisses(editGlyph(t, "line", scrolls.Attrs{"line": "X=1", "match": "^Y"})); !strings.Contains(note, "does not match the line itself") {
		t.Errorf("it says %q", note)
	}
	if note := matchMisses(editGlyph(t, "line", scrolls.Attrs{"line": "X=1", "match": "^X"})); note != "" {
		t.Errorf("it says %q", note)
	}
}

// strangerCases are texts that a stranger changed after golem: what peeling then gives.
var strangerCases = []struct {
	name              string
	a                 scrolls.Attrs
	text, after, want string
	lost              string
}{
	{"he adds above", scrolls.Attrs{"line": "X no", "match": "^X"}, "X yes\nb\n", "his\nX no\nb\n", "his\nX yes\nb\n", ""},
	{"he converts the file", scrolls.Attrs{"line": "X no", "match": "^X"}, "a\nX yes\n", "a\r\nX no\r\n", "a\r\nX yes\r\n", ""},
	{"he writes an equal line above", scrolls.Attrs{"line": "X no", "match": "^X"}, "a\nX yes\nb\n", "X no\na\nX no\nb\n", "X no\na\nX yes\nb\n", ""},
	{"he writes an equal line below", scrolls.Attrs{"line": "X no", "match": "^X"}, "a\nX yes\nb\n", "a\nX no\nb\nX no\n", "a\nX yes\nb\nX no\n", ""},
	{"he takes golem's line out", scrolls.Attrs{"line": "X no", "match": "^X"}, "a\nX yes\nb\n", "a\nb\n", "a\nb\n", "X yes\n"},
	{"he changes golem's line", scrolls.Attrs{"line": "X no", "match": "^X"}, "a\nX yes\n", "a\nX maybe\n", "a\nX maybe\n", "X yes\n"},
	{"he takes one of three out", scrolls.Attrs{"line": "X", "match": "^x", "on_many": "all"}, "x1\na\nx2\nb\nx3\n", "X\na\nb\nX\n", "x1\na\nb\nx3\n", "x2\n"},
	{"he adds around a gap", scrolls.Attrs{"line": "x", "ensure": "absent"}, "a\nx\nb\n", "0\na\nb\nc\n", "0\na\nx\nb\nc\n", ""},
	{"he adds behind a gap at the end", scrolls.Attrs{"line": "x", "ensure": "absent"}, "a\nx", "a\nc\n", "a\nx\nc\n", ""},
	{"he takes the lines beside a gap", scrolls.Attrs{"line": "x", "ensure": "absent"}, "a\nb\nx\nc\nd\n", "a\nd\n", "a\nd\nx\n", ""},
	{"he converts what is around a gap", scrolls.Attrs{"line": "x", "ensure": "absent"}, "a\nx\nx\nb\n", "a\r\nb\r\n", "a\r\nx\r\nx\r\nb\r\n", ""},
	{"he takes the final newline", scrolls.Attrs{"line": "x", "ensure": "absent"}, "a\nx\n", "a", "a\nx\n", ""},
	{"he puts the line back", scrolls.Attrs{"line": "x", "ensure": "absent"}, "a\nx\nb\n", "a\nx\nb\n", "a\nx\nb\n", ""},
}

func TestLinesComeOffAChangedFile(t *testing.T) {
	for _, c := range strangerCases {
		t.Run(c.name, func(t *testing.T) {
			g := editGlyph(t, "line", c.a)
			_, inverse := put(t, g, c.text)
			off := peelLine(g, inverse, []byte(c.after))
			if string(off.content) != c.want || string(off.lost) != c.lost {
				t.Errorf("on %q, then %q, it gave %q, want %q; lost %q, want %q", c.text, c.after, off.content, c.want, off.lost, c.lost)
			}
		})
	}
}

// TestOldReceiptsOfLinesAreRead: what an earlier golem wrote down comes off.
func TestOldReceiptsOfLinesAreRead(t *testing.T) {
	g := editGlyph(t, "line", scrolls.Attrs{"line": "X"})
	old := json.RawMessage(`{"added":true,"sep":"\n","prev":"` + lineBefore([]byte("a\nb"), 3) + `"}`)
	if back := peel(g, old, "a\nb\nX\n"); back != "a\nb" {
		t.Errorf("it gave back %q", back)
	}
	if back := peel(g, json.RawMessage(`{"added":false}`), "a\nX\n"); back != "a\nX\n" {
		t.Errorf("it took a line that it had not added: %q", back)
	}
}

func TestLineMistakes(t *testing.T) {
	for _, c := range []struct {
		a    scrolls.Attrs
		attr string
		want string
	}{
		{scrolls.Attrs{}, "", "Missing argument"},
		{scrolls.Attrs{"ensure": "absent"}, "", "Missing argument"},
		{scrolls.Attrs{"match": "^x"}, "", "Missing argument"},
		{scrolls.Attrs{"line": ""}, "line", "Line is empty"},
		{scrolls.Attrs{"line": "a\nb"}, "line", "Line holds a line break"},
		{scrolls.Attrs{"line": "a", "match": "("}, "match", "Not a regular expression"},
		{scrolls.Attrs{"line": "a", "before": "[z-a]"}, "before", "Not a regular expression"},
		{scrolls.Attrs{"line": "a", "after": "*"}, "after", "Not a regular expression"},
		{scrolls.Attrs{"line": "a", "match": ""}, "match", "Regular expression is empty"},
		{scrolls.Attrs{"line": "a", "before": "x", "after": "y"}, "before", "Place given twice"},
		{scrolls.Attrs{"line": "a", "on_many": "first"}, "on_many", "Argument means nothing here"},
		{scrolls.Attrs{"line": "a", "match": "a", "on_many": "none"}, "on_many", "Unknown word"},
		{scrolls.Attrs{"line": "a", "ensure": "gone"}, "ensure", "Unknown word"},
		{scrolls.Attrs{"line": "a", "ensure": "absent", "match": "a", "on_many": "all"}, "on_many", "Argument means nothing here"},
		{scrolls.Attrs{"line": "a", "ensure": "absent", "after": "b"}, "after", "Argument means nothing here"},
		{scrolls.Attrs{"line": "a", "validate": []any{}}, "validate", "Command is empty"},
		{scrolls.Attrs{"line": "a", "validate": []any{"sshd", "-t"}}, "validate", "Command does not look at the new file"},
		{scrolls.Attrs{"line": "a", "validate": []any{"%s"}}, "validate", "Command is the new file"},
	} {
		c.a["path"] = "/p"
		problems := checkLine(c.a)
		if len(problems) != 1 || problems[0].Attr != c.attr || problems[0].Summary != c.want {
			t.Errorf("%v: %+v, want %q of %q", c.a, problems, c.want, c.attr)
		}
	}
}
