package entry

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const (
	unitText = "[Unit]\nDescription=web; the one\n\n[Service]\n# how\nExecStart=/bin/a \\\n  # why\n  --flag\nEnvironment=A=b # no comment\nRestart=on-failure\n\n[Install]\nWantedBy=multi-user.target\n"
	gitText  = "[core]\n\tbare = false ; really\n\tfileMode = true\n[remote \"origin\"]\n\turl = \"a b\"\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n"
	phpText  = "[PHP]\n; a comment\n;engine = Off\nengine = On\nmemory_limit = 128M ; much\nerror_log = \"/var/log/php\"\n\n[Date]\n;date.timezone =\n"
)

func TestINICases(t *testing.T) {
	sub := strings.NewReplacer
	runLineCases(t, ini, []lineCase{
		{"a unit's value", unitText, Wish{Steps: steps("Service", "Restart"), Value: "always"}, sub("on-failure", "always").Replace(unitText), ""},
		{"a unit has no comments behind values", unitText, Wish{Steps: steps("Service", "Environment"), Value: "A=c"}, sub("A=b # no comment", "A=c").Replace(unitText), ""},
		{"a value over several lines", unitText, Wish{Steps: steps("Service", "ExecStart"), Value: "/bin/b"}, sub("/bin/a \\\n  # why\n  --flag", "/bin/b").Replace(unitText), ""},
		{"new in a unit", unitText, Wish{Steps: steps("Unit", "After"), Value: "x.target"}, sub("the one\n", "the one\nAfter=x.target\n").Replace(unitText), ""},
		{"one more line", unitText, Wish{Steps: steps("Service", "Environment"), Value: "B=c", Member: true}, sub("comment\n", "comment\nEnvironment=B=c\n").Replace(unitText), ""},
		{"a drop-in from nothing", "", Wish{Steps: steps("Service", "ExecStart"), Value: "", Member: true}, "[Service]\nExecStart=\n", ""},
		{"after the reset", "[Service]\nExecStart=/a\nExecStart=\n", Wish{Steps: steps("Service", "ExecStart"), Value: "/a", Member: true}, "[Service]\nExecStart=/a\nExecStart=\nExecStart=/a\n", ""},
		{"a new section", unitText, Wish{Steps: steps("X-Golem", "A"), Value: "b"}, unitText + "\n[X-Golem]\nA=b\n", ""},
		{"git keeps the comment", gitText, Wish{Steps: steps("core", "bare"), Value: true}, sub("bare = false", "bare = true").Replace(gitText), ""},
		{"git, case aside", gitText, Wish{Steps: steps("Core", "filemode"), Value: false}, sub("fileMode = true", "fileMode = false").Replace(gitText), ""},
		{"git's subsection", gitText, Wish{Steps: steps(`remote "origin"`, "url"), Value: "c;d"}, sub(`"a b"`, `"c;d"`).Replace(gitText), ""},
		{"git reads quotes", gitText, Wish{Steps: steps(`remote "origin"`, "url"), Value: "a b"}, gitText, ""},
		{"git's new section", gitText, Wish{Steps: steps(`remote "up"`, "url"), Value: "x"}, gitText + "[remote \"up\"]\n\turl = x\n", ""},
		{"php", phpText, Wish{Steps: steps("PHP", "memory_limit"), Value: "1G"}, sub("128M", "1G").Replace(phpText), ""},
		{"php's quotes", phpText, Wish{Steps: steps("PHP", "error_log"), Value: "syslog"}, sub("/var/log/php", "syslog").Replace(phpText), ""},
		{"a commented default is not the key", phpText, Wish{Steps: steps("Date", "date.timezone"), Value: "UTC"}, phpText[:len(phpText)-len(";date.timezone =\n")] + "date.timezone = UTC\n;date.timezone =\n", ""},
		{"the last section that has it", "[a]\nk=1\n[b]\n[a]\nx=1\n[a]\n", Wish{Steps: steps("a", "k"), Value: "2"}, "[a]\nk=2\n[b]\n[a]\nx=1\n[a]\n", ""},
		{"else the last", "[a]\nk=1\n[b]\n[a]\nx=1\n", Wish{Steps: steps("a", "y"), Value: "2"}, "[a]\nk=1\n[b]\n[a]\nx=1\ny=2\n", ""},
		{"before any section", "; head\n\n[a]\nk=1\n", Wish{Steps: steps("", "y"), Value: "2"}, "; head\n\ny=2\n[a]\nk=1\n", ""},
		{"gone from all", "[a]\nk=1\nk=2\n[b]\n[a]\nk=3", Wish{Steps: steps("a", "k"), Absent: true}, "[a]\n[b]\n[a]\n", ""},
		{"no final newline", "[a]\nk = 1", Wish{Steps: steps("a", "l"), Value: "2"}, "[a]\nk = 1\nl = 2\n", ""},
		{"CRLF", "[a]\r\nk=1\r\n", Wish{Steps: steps("b", "l"), Value: "2"}, "[a]\r\nk=1\r\n\r\n[b]\r\nl=2\r\n", ""},
		{"in columns", "[a]\nkey      = 1\n", Wish{Steps: steps("a", "longer"), Value: "2"}, "[a]\nkey      = 1\nlonger   = 2\n", ""},
		{"colons", "[a]\nkey: 1\n", Wish{Steps: steps("a", "l"), Value: "2"}, "[a]\nkey: 1\nl: 2\n", ""},
		{"a bare key", "[mysqld]\nskip-networking\nuser = a\n", Wish{Steps: steps("mysqld", "skip-networking"), Value: json.Number("1")}, "[mysqld]\nskip-networking = 1\nuser = a\n", ""},
		{"deeper lines", "[o]\nreq =\n    a\n    b\nx = 1\n", Wish{Steps: steps("o", "req"), Value: "c"}, "[o]\nreq = c\nx = 1\n", ""},
		{"behind deeper lines", "[o]\nreq = x\n    a\n\n    b\n", Wish{Steps: steps("o", "y"), Value: "c"}, "[o]\nreq = x\n    a\n\n    b\ny = c\n", ""},
		{"a desktop file", "[Desktop Entry]\nName=A\nName[de]=B\nExec=a %u; b\n", Wish{Steps: steps("Desktop Entry", "Name[de]"), Value: "C; D"}, "[Desktop Entry]\nName=A\nName[de]=C; D\nExec=a %u; b\n", ""},
		{"Latin-1", "[a]\n; caf\xe9\nk=\xe9\n", Wish{Steps: steps("a", "k"), Value: "e"}, "[a]\n; caf\xe9\nk=e\n", ""},
		{"not plain", "[a]\nk = 1\n  l = 2\n", Wish{Steps: steps("a", "k"), Value: "2"}, "", "line 2, column 1: it is not plain"},
		{"a comment in the value", "[a]\nk = 1\n", Wish{Steps: steps("a", "k"), Value: "2 ; 3"}, "", "read as a comment"},
		{"an open section", "[a]\nk = 1\n[b\n", Wish{Steps: steps("a", "k"), Value: "2"}, "", "line 3, column 1"},
		{"three steps", "", Wish{Steps: steps("remote", "origin", "url"), Value: "2"}, "", "between the brackets"},
		{"a line break", "[a]\n", Wish{Steps: steps("a", "k"), Value: "2\n3"}, "", "line break"},
		{"a backslash", "[Service]\n", Wish{Steps: steps("Service", "k"), Value: `2\`}, "", "backslash"},
		{"null", "", Wish{Steps: steps("a", "k"), Value: nil}, "", "null"},
		{"a list", "", Wish{Steps: steps("a", "k"), Value: []any{"a"}}, "", "member"},
		{"XML", "<?xml version=\"1.0\"?>\n<a b=\"c\"/>\n", Wish{Steps: steps("a", "k"), Value: "2"}, "", "line 1, column 1: it begins as XML does"},
		{"one more of a bare key", "[s]\n\ta\n\tb\n", Wish{Steps: steps("s", "b"), Value: "x", Member: true}, "[s]\n\ta\n\tb\nb = x\n", ""},
		{"UTF-16", "\xff\xfe[\x00a\x00", Wish{Steps: steps("a", "k"), Value: "2"}, "", "NUL"},
	})
}

// TestINIStrangers takes golem's edits off texts in which others have changed what lies
// right beside them.
func TestINIStrangers(t *testing.T) {
	for _, c := range []struct {
		name, text, alien, want string
		w                       Wish
	}{
		{"converted to CRLF", "[a]\nk=1\n[b]\nl=1\n", "[a]\r\n[b]\r\nl=1\r\n", "[a]\r\nk=1\r\n[b]\r\nl=1\r\n", Wish{Steps: steps("a", "k"), Absent: true}},
		{"converted, with golem's own section", "[a]\nk=1", "[a]\r\nk=1\r\n\r\n[b]\r\nl=2\r\n", "[a]\r\nk=1", Wish{Steps: steps("b", "l"), Value: "2"}},
		{"a key in golem's section", "[a]\nk=1\n", "[a]\nk=1\n\n[b]\nl=2\nm=3\n", "[a]\nk=1\n\n[b]\nm=3\n", Wish{Steps: steps("b", "l"), Value: "2"}},
		{"a comment in golem's section", "[a]\nk=1\n", "[a]\nk=1\n\n[b]\n# mine\nl=2\n", "[a]\nk=1\n\n[b]\n# mine\n", Wish{Steps: steps("b", "l"), Value: "2"}},
		{"a comment behind the value", "[a]\nk = 1\n", "[a]\nk = 2 ; mine\n", "[a]\nk = 1 ; mine\n", Wish{Steps: steps("a", "k"), Value: "2"}},
		{"the value", "[a]\nk=1\n", "[a]\nk=3\n", "[a]\nk=1\n", Wish{Steps: steps("a", "k"), Value: "2"}},
		{"a member stays whose it is", "[a]\nk=1\n", "[a]\nk=1\nk=3\n", "[a]\nk=1\nk=3\n", Wish{Steps: steps("a", "k"), Value: "2", Member: true}},
		{"one more of the key", "[a]\nk=1\n", "[a]\nk=2\nk=3\n", "[a]\nk=1\nk=3\n", Wish{Steps: steps("a", "k"), Value: "2"}},
		{"one more of the key in front", "[a]\nk=1\n", "[a]\nk=3\nk=2\n", "[a]\nk=3\nk=1\n", Wish{Steps: steps("a", "k"), Value: "2"}},
		{"the row is gone", "[a]\nk=1\n", "[a]\nl=1\n", "[a]\nl=1\n", Wish{Steps: steps("a", "k"), Value: "2"}},
		{"between neighbours that moved", "[a]\nk=1\nl=2\nm=3\n", "[a]\nk=1\nnew=4\nm=3\n", "[a]\nk=1\nl=2\nnew=4\nm=3\n", Wish{Steps: steps("a", "l"), Absent: true}},
		{"the section is gone", "[a]\nk=1\n[b]\n", "[b]\n", "[b]\n", Wish{Steps: steps("a", "k"), Absent: true}},
		{"several rows, all back", "[a]\nk=1\nx=1\nk=2\n", "[a]\nx=1\ny=1\n", "[a]\nk=1\nx=1\nk=2\ny=1\n", Wish{Steps: steps("a", "k"), Absent: true}},
		{"no INI any more", "[a]\nk=1\n", "[a\nk=2\n", "[a\nk=2\n", Wish{Steps: steps("a", "k"), Value: "2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, receipt := putLaws(t, ini, []byte(c.text), c.w)
			if got := ini.Peel([]byte(c.alien), c.w, receipt); receipt == nil || string(got) != c.want {
				t.Fatalf("got\n%q\nwant\n%q", got, c.want)
			}
		})
	}
}

// TestChecks says of values and keys what is wrong with them before there is a text.
func TestChecks(t *testing.T) {
	for _, c := range []struct {
		format    string
		w         Wish
		attr, why string
	}{
		{"ini", Wish{Steps: steps("a")}, "key", "A key of this format is a section"},
		{"ini", Wish{Steps: steps("a", "b"), Value: nil}, "value", "Null cannot"},
		{"ini", Wish{Steps: steps("a", "b"), Value: []any{}, Member: true}, "member", "A list cannot"},
		{"ini", Wish{Steps: steps("a", "b"), Value: "x # y"}, "", ""},
		{"keyword", Wish{Steps: steps("Match all"), Value: "x"}, "key", "is no keyword"},
		{"keyword", Wish{Steps: steps("User git", "A"), Value: "x"}, "key", "is no block"},
		{"env", Wish{Steps: steps("A"), Value: "\a"}, "value", "control character"},
		{"env", Wish{Steps: steps("A"), Value: "a", Member: true}, "member", "no members"},
		{"toml", Wish{Steps: steps("A"), Value: map[string]any{"a": nil}}, "value", "TOML has no null"},
		{"toml", Wish{Steps: steps("A"), Absent: true}, "", ""},
	} {
		checker, ok := Formats[c.format].(Checker)
		if !ok {
			t.Fatalf("%s checks nothing", c.format)
		}
		if attr, why := checker.Check(c.w); attr != c.attr || !strings.Contains(why, c.why) {
			t.Errorf("%s, %s: %s: %s", c.format, wishText(c.w), attr, why)
		}
	}
}

// iniText draws texts that every reader of INI reads alike, and of each flavour.
var iniText = rapid.Custom(func(t *rapid.T) []byte {
	eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "eol")
	flavour := rapid.SampledFrom([][]string{
		{"[a]", "[b]", "[a]", "k = 1", "k=2", "l = \"q r\"", "m = x ; why", "n: 3", "bare", "k =", "l   = 4", "  deep", "\tk = 5"},
		{"[Unit]", "[Service]", "k=1", "k=", "l=\"a\" b", "m = x ; part", "k=a \\" + eol + "  # within" + eol + "  last", "n=2"},
		{`[remote "o"]`, "[user]", "\tk = 1", "\tl = \"a ; b\" ; why", "\tm = a\\\\b\\\"", "\tn", "\tK = 2"},
		{"[PHP]", "[a]", "k = On", "l = \"a;b\" ; why", "m = 1 ; why", "k[] = 2", "n ="},
		{"[Desktop Entry]", "[Desktop Action x]", "k=1;2;", "l[de]=ä", "k=\\s", "n="},
	}).Draw(t, "flavour")
	line := rapid.SampledFrom(append([]string{"", "# note", "; note", "#k = 1", "caf\xe9 = \xe9"}, flavour...))
	text := strings.Join(rapid.SliceOfN(line, 0, 14).Draw(t, "lines"), eol)
	if rapid.Bool().Draw(t, "final") && text != "" {
		text += eol
	}
	if rapid.IntRange(0, 9).Draw(t, "bom") == 0 {
		text = bom + text
	}
	return []byte(text)
})

var iniWish = rapid.Custom(func(t *rapid.T) Wish {
	w := Wish{Steps: steps(
		rapid.SampledFrom([]string{"a", "a", "b", "", "Service", "Unit", `remote "o"`, "user", "PHP", "Desktop Entry", "new"}).Draw(t, "section"),
		rapid.SampledFrom([]string{"k", "l", "m", "n", "bare", "new", "K", "l[de]", "k[]"}).Draw(t, "key"),
	)}
	drawValue(t, &w)
	return w
})

func TestINILaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { lineLaws(t, ini, iniText, iniWish, readINIText) })
}

// readINIText is an independent, simple reader: a line with an equals sign is a pair, and
// what goes on in the next line goes on.
func readINIText(text string) [][3]string {
	var said [][3]string
	section := ""
	joined, headed := false, true
	for _, line := range strings.Split(strings.TrimPrefix(text, bom), "\n") {
		line = strings.TrimSuffix(line, "\r")
		trim := strings.TrimSpace(line)
		comment := strings.HasPrefix(trim, "#") || strings.HasPrefix(trim, ";")
		switch {
		case joined || !headed && strings.HasPrefix(line, "  deep"):
			said[len(said)-1][2] = strings.TrimSuffix(said[len(said)-1][2]+"|"+trim, "|")
			joined = strings.HasSuffix(trim, `\`) || joined && comment
			continue
		case trim == "" || comment:
			continue
		case trim[0] == '[':
			headed = true
			section = trim[1:strings.LastIndex(trim, "]")]
			continue
		}
		headed = false
		key, value, ok := strings.Cut(trim, "=")
		if !ok {
			key, value, _ = strings.Cut(trim, ":")
		}
		value = strings.TrimSpace(value)
		joined = strings.HasSuffix(value, ` \`)
		value = strings.TrimSuffix(value, " ; why")
		value = strings.TrimSuffix(value, " ; part") // a part for systemd, a comment for others
		said = append(said, [3]string{section, strings.TrimSpace(key), value})
	}
	return said
}

// TestINIGitAgrees asks git itself what it reads.
func TestINIGitAgrees(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	dir := t.TempDir()
	list := func(t *rapid.T, text []byte) (map[string]string, []string, bool) {
		path := filepath.Join(dir, "config")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("git", "config", "-f", path, "-z", "--list").Output()
		if err != nil {
			return nil, nil, false
		}
		last := map[string]string{}
		var all []string
		for _, item := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			key, value, _ := strings.Cut(item, "\n")
			last[key] = value
			all = append(all, item)
		}
		return last, all, true
	}
	line := rapid.SampledFrom([]string{
		`[remote "o"]`, "[user]", "[core] ; x", "\tk = 1", "\tk=2", "\tl = \"a ; b\" ; why", "\tm = a\\\\b\\\"", "\tnn", "\tK = 2", "\tk = 3 \\", "  4", "", "# c",
		"\tl = a  b", "[User]",
	})
	value := rapid.StringOf(rapid.RuneFrom([]rune(" ab\"'\\#;=[]\t\n\u00e4")))
	rapid.Check(t, func(t *rapid.T) {
		text := "[user]\n\tname = x\n" + strings.Join(rapid.SliceOfN(line, 0, 8).Draw(t, "lines"), "\n")
		w := Wish{Steps: steps(rapid.SampledFrom([]string{"user", `remote "o"`, "core", `branch "A.b"`}).Draw(t, "section"),
			rapid.SampledFrom([]string{"k", "l", "new"}).Draw(t, "key")), Value: value.Draw(t, "value")}
		_, before, ok := list(t, []byte(text))
		out, receipt := putLaws(t, ini, []byte(text), w)
		if receipt == nil || !ok {
			return
		}
		last, after, ok := list(t, out)
		if !ok {
			t.Fatalf("git does not read\n%s", out)
		}
		section, sub, _ := strings.Cut(w.Steps[0].Name, " ")
		name := section + "." + w.Steps[1].Name
		if sub != "" {
			name = section + "." + strings.Trim(sub, `"`) + "." + w.Steps[1].Name
		}
		if got, ok := last[name]; !ok || got != w.Value {
			t.Fatalf("git reads %s as %q, want %q, in\n%s", name, got, w.Value, out)
		}
		others := func(list []string) (rest []string) {
			for _, item := range list {
				if !strings.HasPrefix(item, name+"\n") {
					rest = append(rest, item)
				}
			}
			return rest
		}
		if !slices.Equal(others(before), others(after)) {
			t.Fatalf("git reads %q, and read %q", after, before)
		}
	})
}

func TestINIRealFiles(t *testing.T) {
	ext := map[string]bool{}
	for _, e := range strings.Fields(".service .socket .timer .mount .target .path .slice .network .link .netdev .desktop .ini .cfg .cnf .theme .directory .keyfile .policy") {
		ext[e] = true
	}
	files := realFiles(t, func(path string) bool {
		return ext[filepath.Ext(path)] || strings.HasSuffix(path, ".conf") && strings.Contains(path, "systemd") || strings.HasSuffix(path, "/gitconfig")
	}, "/etc", "/usr/lib/systemd", "/usr/share", "/usr/lib/python3")
	if len(files) > 3000 && os.Getenv("GOLEM_SOAK") == "" {
		files = files[:3000]
	}
	lawsOnReal(t, ini, files, func(s *sheet, r *row) []Step {
		if r != nil {
			return steps(s.blocks[r.block].name, "GolemWasHere")
		}
		return steps("Golem", "GolemWasHere")
	})
}

func FuzzINI(f *testing.F) {
	f.Add([]byte(unitText), "Service", "Restart", "no", byte(0))
	f.Add([]byte(gitText), `remote "origin"`, "url", "x;y", byte(1))
	f.Add([]byte(phpText), "PHP", "memory_limit", "1", byte(2))
	f.Add([]byte("[a]\r\nk = 1\r\n  deeper"), "a", "k", "x", byte(0))
	fuzzLines(f, ini, true)
}
