package reconcilers

import (
	"strings"
	"testing"

	"golem/scrolls"
)

var regionCases = []struct {
	name       string
	a          scrolls.Attrs
	text, want string
}{
	{"at the end", scrolls.Attrs{"content": "x\n"}, "a\n", "a\n# BEGIN golem web\nx\n# END golem web\n"},
	{"no final newline", scrolls.Attrs{"content": "x"}, "a", "a\n# BEGIN golem web\nx\n# END golem web\n"},
	{"an empty file", scrolls.Attrs{"content": ""}, "", "# BEGIN golem web\n# END golem web\n"},
	{"CRLF", scrolls.Attrs{"content": "x\ny\n"}, "a\r\nb", "a\r\nb\r\n# BEGIN golem web\r\nx\r\ny\r\n# END golem web\r\n"},
	{"content in CRLF, file not", scrolls.Attrs{"content": "x\r\ny\r\n"}, "a\n", "a\n# BEGIN golem web\nx\ny\n# END golem web\n"},
	{"after a line", scrolls.Attrs{"content": "x\n", "after": "^a"}, "a\nb\n", "a\n# BEGIN golem web\nx\n# END golem web\nb\n"},
	{"before a line", scrolls.Attrs{"content": "x\n", "before": "^b"}, "a\nb", "a\n# BEGIN golem web\nx\n# END golem web\nb"},
	{"indented", scrolls.Attrs{"content": "x\n\n  y\n", "indent": "2"}, "a\n", "a\n  # BEGIN golem web\n  x\n\n    y\n  # END golem web\n"},
	{"with tabs", scrolls.Attrs{"content": "x\n", "indent": "\t"}, "", "\t# BEGIN golem web\n\tx\n\t# END golem web\n"},
	{"of CSS", scrolls.Attrs{"path": "/a.css", "content": "x\n"}, "", "/* BEGIN golem web */\nx\n/* END golem web */\n"},
	{"of a given comment", scrolls.Attrs{"comment": "<!-- -->", "content": "x\n"}, "", "<!-- BEGIN golem web -->\nx\n<!-- END golem web -->\n"},
	{"of given markers", scrolls.Attrs{"marker_begin": "# {{{ mine", "marker_end": "# }}}", "content": "x\n"}, "a\n", "a\n# {{{ mine\nx\n# }}}\n"},
	{"takes a block over", scrolls.Attrs{"content": "x\n"}, "a\n# BEGIN golem web\nold\nolder\n# END golem web\nb\n", "a\n# BEGIN golem web\nx\n# END golem web\nb\n"},
	{"takes an empty one over", scrolls.Attrs{"content": "x\n"}, "# BEGIN golem web\r\n# END golem web", "# BEGIN golem web\r\nx\r\n# END golem web"},
	{"takes one over that is indented", scrolls.Attrs{"content": "x\n"}, "\t# BEGIN golem web  \nx\n # END golem web\nb", "# BEGIN golem web\nx\n# END golem web\nb"},
	{"is there already", scrolls.Attrs{"content": "x\n"}, "a\n# BEGIN golem web\r\nx\n# END golem web", "a\n# BEGIN golem web\r\nx\n# END golem web"},
	{"a marker of another", scrolls.Attrs{"content": "x\n"}, "# BEGIN golem webs\n# END golem we\n", "# BEGIN golem webs\n# END golem we\n# BEGIN golem web\nx\n# END golem web\n"},
	{"bytes that are no UTF-8", scrolls.Attrs{"content": "caf\xe9\n"}, "\xff\n", "\xff\n# BEGIN golem web\ncaf\xe9\n# END golem web\n"},
}

func regionOf(t *testing.T, a scrolls.Attrs) *scrolls.Glyph {
	if a["name"] == nil {
		a["name"] = "web"
	}
	return editGlyph(t, "region", a)
}

func TestRegions(t *testing.T) {
	for _, c := range regionCases {
		t.Run(c.name, func(t *testing.T) {
			g := regionOf(t, c.a)
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

// TestBrokenMarkersAreRefused: nothing is taken for a block that is none, and nothing of
// the text is touched.
func TestBrokenMarkersAreRefused(t *testing.T) {
	g := regionOf(t, scrolls.Attrs{"content": "x\n"})
	const begin, end = "# BEGIN golem web\n", "# END golem web\n"
	for _, c := range []struct{ text, want string }{
		{"a\n" + begin + "x\n", `line 2, column 1: the block "web" begins, and no line after marks where it ends: # END golem web`},
		{"a\n" + end, `line 2, column 1: the block "web" ends, and no line before marks where it begins: # BEGIN golem web`},
		{end + begin, `line 1, column 1: the block "web" ends, and no line before marks where it begins: # BEGIN golem web`},
		{begin + begin + end, `line 2, column 1: the block "web" that begins in line 1 begins again before it ends`},
		{begin + "x\n" + end + "\n" + begin + end, `line 5, column 1: a second block "web" begins; the first is in line 1`},
		{begin + end + end, `line 3, column 1: the block "web" ends, and no line before marks where it begins: # BEGIN golem web`},
	} {
		_, err := putRegion(g, []byte(c.text), -1)
		if err == nil || err.Error() != c.want {
			t.Errorf("on %q it says %v, want %s", c.text, err, c.want)
		}
		if regionHolds(g, []byte(c.text)) {
			t.Errorf("it holds on %q", c.text)
		}
		inv := lineInverse{Added: true}
		off := peelRegion(g, encode(regionInverse{Added: &inv}), []byte(c.text))
		if string(off.content) != c.text || off.why != c.want {
			t.Errorf("peeled off %q it gives %q, and says %q", c.text, off.content, off.why)
		}
	}
}

func TestAChangedBlockIsNotLost(t *testing.T) {
	g := regionOf(t, scrolls.Attrs{"content": "x\n"})
	_, inverse := put(t, g, "a")
	off := peelRegion(g, inverse, []byte("0\na\n# BEGIN golem web\nx\nhis\n# END golem web\n"))
	if string(off.content) != "0\na" {
		t.Errorf("it gave %q", off.content)
	}
	if !strings.Contains(string(off.lost), "his") {
		t.Errorf("what he wrote into the block is lost: %q", off.lost)
	}
	_, inverse = put(t, g, "a\n# BEGIN golem web\nold\n# END golem web\nb")
	off = peelRegion(g, inverse, []byte("a\r\nb\r\n"))
	if string(off.content) != "a\r\nb\r\n" || !strings.Contains(string(off.lost), "old") {
		t.Errorf("it gave %q and lost %q", off.content, off.lost)
	}
	off = peelRegion(g, inverse, []byte("# BEGIN golem web\r\nx\r\n# END golem web\r\n"))
	if string(off.content) != "# BEGIN golem web\r\nold\r\n# END golem web\r\n" || len(off.lost) > 0 {
		t.Errorf("converted it gave %q and lost %q", off.content, off.lost)
	}
}

func TestRegionMistakes(t *testing.T) {
	for _, c := range []struct {
		a    scrolls.Attrs
		attr string
		want string
	}{
		{scrolls.Attrs{"name": ""}, "name", "Marker is empty"},
		{scrolls.Attrs{"name": "a\nb"}, "name", "Marker holds a line break"},
		{scrolls.Attrs{"comment": " "}, "comment", "Marker is empty"},
		{scrolls.Attrs{"marker_begin": "", "marker_end": "x"}, "marker_begin", "Marker is empty"},
		{scrolls.Attrs{"marker_begin": "a\nb", "marker_end": "x"}, "marker_begin", "Marker holds a line break"},
		{scrolls.Attrs{"marker_begin": "x", "marker_end": " x"}, "marker_end", "Markers are the same"},
		{scrolls.Attrs{"marker_begin": "x"}, "marker_begin", "Only one marker"},
		{scrolls.Attrs{"marker_end": "x"}, "marker_end", "Only one marker"},
		{scrolls.Attrs{"content": "a\n # END golem web \n"}, "content", "Content holds a marker"},
		{scrolls.Attrs{"content": "# BEGIN golem web"}, "content", "Content holds a marker"},
		{scrolls.Attrs{"content": "a\x00"}, "content", "Content holds a NUL byte"},
		{scrolls.Attrs{"path": "/etc/docker/daemon.json"}, "path", "File type has no comments"},
		{scrolls.Attrs{"name": "a --> b", "comment": "<!-- -->"}, "name", "Marker ends too soon"},
		{scrolls.Attrs{"indent": "x"}, "indent", "Not an indentation"},
		{scrolls.Attrs{"before": "("}, "before", "Not a regular expression"},
		{scrolls.Attrs{"path": "relative"}, "path", "Path is not absolute"},
	} {
		for name, value := range map[string]string{"path": "/p", "name": "web", "content": ""} {
			if c.a[name] == nil {
				c.a[name] = value
			}
		}
		problems := checkRegion(c.a)
		if len(problems) != 1 || problems[0].Attr != c.attr || problems[0].Summary != c.want {
			t.Errorf("%v: %+v, want %q of %q", c.a, problems, c.want, c.attr)
		}
	}
}

func TestCommentsGoByTheFilesName(t *testing.T) {
	for path, want := range map[string]string{
		"/etc/hosts": "#", "/etc/nginx/nginx.conf": "#", "/etc/bind/named.conf": "//", "/etc/php/8.2/cli/php.ini": ";",
		"/srv/a.JS": "//", "/srv/x.html": "<!-- -->", "/srv/x.css": "/* */", "/x.sql": "--", "/root/.vimrc": `"`,
		"/etc/docker/daemon.json": "", "/etc/systemd/system/a.service": "#", "/etc/foo.d/.hidden": "#", "/x.yaml": "#", "/x.lua": "--",
	} {
		if got := commentStyle(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
