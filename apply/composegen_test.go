package apply_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"golem/scrolls"
)

// A craft is one format of structured files: what such files look like, and ten entries,
// three lines and a region that are put on one.
type craft struct {
	format string
	texts  []string
	// entries are ten keys and what is wished of them; v is a value that no other entry and
	// no other version has.
	entries []func(v string) scrolls.Attrs
	lines   []scrolls.Attrs
	region  func(v string) scrolls.Attrs
	// pair is a line that a human writes, of a name and a number.
	pair func(n int) string
	// comment begins a comment.
	comment string
}

func value(key any) func(string) scrolls.Attrs {
	return func(v string) scrolls.Attrs { return scrolls.Attrs{"key": key, "value": v} }
}

func member(key any) func(string) scrolls.Attrs {
	return func(v string) scrolls.Attrs { return scrolls.Attrs{"key": key, "member": v} }
}

func gone(key any) func(string) scrolls.Attrs {
	return func(string) scrolls.Attrs { return scrolls.Attrs{"key": key, "absent": true} }
}

func steps(names ...any) []any { return names }

var crafts = map[string]*craft{
	"json": {
		format: "json", comment: "//",
		pair: func(n int) string { return fmt.Sprintf(`"human%d": %d,`, n, n) },
		texts: []string{
			"{\n  \"storage-driver\" : \"overlay2\",  // odd, and stays so\n  \"log\": {\n    \"level\": \"info\",\n    \"max\":   3\n  },\n  \"dns\": [\"8.8.8.8\", \"1.1.1.1\"],\n  // why this is here\n  \"debug\": true,\n  \"hosts\": [\n    \"fd://\",\n    \"tcp://0\"\n  ],\n  \"old\": 1e3\n}\n",
			"{\n\t\"old\": 9007199254740993,\n\n\t/* a block\n\t   of comment */\n\t\"debug\": true,\n\t\"hosts\": [],\n\t\"log\": { \"level\": \"info\" },\n\t\"z\": [ {\"a\":1}, {\"a\":2} ]\n}",
			"{ \"a\": 1, \"debug\": false, \"dns\": [ \"8.8.8.8\" ] }\n",
		},
		entries: []func(string) scrolls.Attrs{
			value("storage-driver"), value("log.level"), value("debug"), value("new"), value("log.new"), value("made.deep.er"),
			gone("old"), member("dns"), member("hosts"), func(v string) scrolls.Attrs {
				return scrolls.Attrs{"key": steps("made", "a.b"), "value": map[string]any{"v": v, "n": json.Number("1")}}
			},
		},
		lines:  []scrolls.Attrs{{"line": "// golem line 1"}, {"line": "// golem line 2", "after": "debug"}, {"line": "// golem line 3", "before": "log"}},
		region: func(v string) scrolls.Attrs { return scrolls.Attrs{"content": "// " + v, "comment": "//"} },
	},
	"yaml": {
		format: "yaml", comment: "#",
		pair: func(n int) string { return fmt.Sprintf("human%d: %d", n, n) },
		texts: []string{
			"# the service\nserver:\n  host: localhost   # where\n  port: 8080\n  tls:\n    cert: /etc/x.pem\n\nlog:\n    level: info\n    old: 1e3\nhosts:\n- a\n- b   # second\ndebug: true\nold: 0x1f\n",
			"---\nserver: {host: localhost, port: 80}\n\n# hosts follow\nhosts:\n  - name: a\n    port: 1\n  - name: b\n\nlog:\n  text: |\n    one\n    two\n  level: 'info'\nold: &x [1, 2]\ndebug: yes\n",
			"old: 1\ndebug: true\n",
		},
		entries: []func(string) scrolls.Attrs{
			value("server.host"), value("log.level"), value("debug"), value("new"), value("log.new"), value("made.deep.er"),
			gone("old"), member("hosts"), member("list"), func(v string) scrolls.Attrs {
				return scrolls.Attrs{"key": steps("made", "a.b"), "value": map[string]any{"v": v, "n": json.Number("1")}}
			},
		},
		lines:  []scrolls.Attrs{{"line": "# golem line 1"}, {"line": "# golem line 2", "after": "^debug"}, {"line": "# golem line 3", "before": "^log"}},
		region: func(v string) scrolls.Attrs { return scrolls.Attrs{"content": "# " + v, "comment": "#"} },
	},
	"toml": {
		format: "toml", comment: "#",
		pair: func(n int) string { return fmt.Sprintf("human%d = %d", n, n) },
		texts: []string{
			"# the registry\nversion = 2\nroot   = '/var'   # where\nold = 1e3\nhosts = [\"a\", \"b\"]\n\n[log]\nlevel = \"info\"\nsize = 0x10\n\n[server.tls]\ncert = \"/x\"\n\n[[mirror]]\nurl = \"one\"\n\n[[mirror]]\nurl = \"two\"\n",
			"old.deep = true\nroot = \"/\"\nhosts = [\n  \"a\",   # first\n  \"b\",\n]\nlog = { level = \"info\", n = 1 }\n\n[server]\n  host = \"h\"\n",
			"[log]\nlevel=\"x\"",
		},
		entries: []func(string) scrolls.Attrs{
			value("root"), value("log.level"), value("version"), value("new"), value("log.new"), value("made.deep.er"),
			gone("old"), member("hosts"), value(steps("server", "tls", "new")), func(v string) scrolls.Attrs {
				return scrolls.Attrs{"key": steps("made", "a.b"), "value": map[string]any{"v": v, "n": json.Number("1")}}
			},
		},
		lines: []scrolls.Attrs{{"line": "# golem line 1"}, {"line": "# golem line 2", "after": "^root"}, {"line": "# golem line 3", "before": "^.log"}},
		region: func(v string) scrolls.Attrs {
			return scrolls.Attrs{"content": "region = \"" + v + "\"", "comment": "#"}
		},
	},
	"ini": {
		format: "ini", comment: ";",
		pair: func(n int) string { return fmt.Sprintf("human%d = %d", n, n) },
		texts: []string{
			"; top\nglobal=1\n\n[main]\n; about the host\nhost = localhost ; here\nport=80\nold = 1\n\n[log]\n\tlevel\t= info\n\n\n[empty]\n; nothing yet\n[tail]\nlast = \"q\"\n",
			"[Unit]\nDescription=it is\n\n[Service]\nExecStart=/bin/true \\\n  --long\n#Restart=no\nEnvironment=A=1\nEnvironment=B=2\n\n[main]\nold=1\nhost=h\n",
			"[log]\nlevel = x",
		},
		entries: []func(string) scrolls.Attrs{
			value(steps("main", "host")), value(steps("log", "level")), value(steps("main", "port")), value(steps("main", "new")), value(steps("log", "new")),
			value(steps("made", "one")), gone(steps("main", "old")), member(steps("Service", "Environment")), value(steps("made", "two")), value(steps("other", "x")),
		},
		lines:  []scrolls.Attrs{{"line": "line1 = golem"}, {"line": "line2 = golem", "after": "^host"}, {"line": "; golem line 3", "before": "^.log"}},
		region: func(v string) scrolls.Attrs { return scrolls.Attrs{"content": "region = " + v, "comment": ";"} },
	},
	"env": {
		format: "env", comment: "#",
		pair: func(n int) string { return fmt.Sprintf("HUMAN%d=%d", n, n) },
		texts: []string{
			"# defaults\nOPTS=\"--a --b\"   # all\nHOST=localhost\n\n#OLD=0\nOLD='1'\nexport PATH=$PATH:/x\nif [ -f /x ]; then\n  . /x\nfi\nLAST=end\n",
			"export HOST=a\nexport OLD=\"two\nlines\"\nexport OPTS=\n",
			"HOST=h",
		},
		entries: []func(string) scrolls.Attrs{
			value("HOST"), value("OPTS"), value("PATH"), value("LAST"), value("NEW_A"), value("NEW_B"), gone("OLD"), value("NEW_C"), value("NEW_D"), value("NEW_E"),
		},
		lines:  []scrolls.Attrs{{"line": "LINE_1=golem"}, {"line": "LINE_2=golem", "after": "HOST="}, {"line": "# golem line 3", "before": "OLD="}},
		region: func(v string) scrolls.Attrs { return scrolls.Attrs{"content": "REGION=" + v, "comment": "#"} },
	},
	"keyword": {
		format: "keyword", comment: "#",
		pair: func(n int) string { return fmt.Sprintf("Human%d %d", n, n) },
		texts: []string{
			"# sshd\nInclude /etc/ssh/sshd_config.d/*.conf\n\nPort 22\n#PermitRootLogin no\nPermitRootLogin  yes # for now\nAcceptEnv LANG LC_*\nHostKey /a\nHostKey /b\n\nUsePAM yes\n\n# git\nMatch User git\n\tPermitTTY no\n\tX11Forwarding no\n\nMatch Group sftp\n\tForceCommand internal-sftp\n",
			"Port 22\nUsePAM = yes\nHostKey /a",
			"Match User git\n    PermitTTY no\n",
		},
		entries: []func(string) scrolls.Attrs{
			value("PermitRootLogin"), value("Banner"), value("UsePAM"), gone("Port"), value(steps("Match User git", "PermitTTY")), value(steps("Match User git", "Banner")),
			value(steps("Match User new", "Banner")), value(steps("Match User new", "Other")), member("HostKey"), value("LogLevel"),
		},
		lines:  []scrolls.Attrs{{"line": "# golem line 1"}, {"line": "Line2 golem", "after": "^UsePAM"}, {"line": "Line3 golem", "before": "^Match"}},
		region: func(v string) scrolls.Attrs { return scrolls.Attrs{"content": "Region " + v, "comment": "#"} },
	},
}

const craftPath = "/etc/app/file"

// drawText draws what the file holds before golem; no, where there is none.
func (c *craft) drawText(t *rapid.T) (string, bool) {
	text := rapid.SampledFrom(c.texts).Draw(t, "text")
	switch rapid.IntRange(0, 11).Draw(t, "form") {
	case 0:
		return "", false
	case 1:
		return "", true
	case 2:
		return strings.ReplaceAll(text, "\n", "\r\n"), true
	case 3:
		return strings.TrimSuffix(text, "\n"), true
	}
	return text, true
}

// A declared is one of a craft's fourteen glyphs as a scroll has it.
type declared struct {
	i, version, leaf int
}

// stamp is a value that only this glyph has in this version.
func stamp(i, version int) string { return fmt.Sprintf("golem-%d-v%d", i, version) }

// glyph is the glyph of a declaration.
func (c *craft) glyph(d declared) *scrolls.Glyph {
	v, kind := stamp(d.i, d.version), "entry"
	var attrs scrolls.Attrs
	switch n := len(c.entries); {
	case d.i < n:
		attrs = c.entries[d.i](v)
		attrs["format"] = c.format
	case d.i < n+len(c.lines):
		kind, attrs = "line", scrolls.Attrs{}
		for name, x := range c.lines[d.i-n] {
			attrs[name] = x
		}
	default:
		kind, attrs = "region", c.region(v)
		attrs["name"] = "block"
	}
	attrs["path"] = craftPath
	return glyph(kind, attrs)
}

// count is how many glyphs there are.
func (c *craft) count() int { return len(c.entries) + len(c.lines) + 1 }

// drawDeclared draws which glyphs are declared, in what version, leaf and order.
func (c *craft) drawDeclared(t *rapid.T) []declared {
	var list []declared
	few := rapid.IntRange(0, 2).Draw(t, "few")
	for _, i := range rapid.Permutation(numbers(c.count())).Draw(t, "order") {
		if rapid.IntRange(0, few+1).Draw(t, "in") == 0 {
			list = append(list, declared{i: i, version: rapid.IntRange(1, 3).Draw(t, "version"), leaf: rapid.IntRange(0, 2).Draw(t, "leaf")})
		}
	}
	return list
}

func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// scroll is a scroll of three leaves; base, where not empty, is the content of the whole
// file, declared before the edits.
func (c *craft) scroll(list []declared, base string) *scrolls.Scroll {
	s := &scrolls.Scroll{Name: "law", Policies: map[string]scrolls.Policy{}, Dir: "/law"}
	for i, name := range []string{"a", "b", "c"} {
		leaf := &scrolls.Leaf{Path: name, Policy: scrolls.BuiltinPolicy}
		add := func(g *scrolls.Glyph) {
			g.Leaf = name
			leaf.Glyphs = append(leaf.Glyphs, g)
		}
		if i == 0 && base != "" {
			add(glyph("file", scrolls.Attrs{"path": craftPath, "content": base}))
		}
		for _, d := range list {
			if d.leaf == i {
				add(c.glyph(d))
			}
		}
		s.Leaves = append(s.Leaves, leaf)
	}
	return s
}
