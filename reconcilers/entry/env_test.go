package entry

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const (
	envText  = "# defaults\n#PORT=80\nHOST=localhost\nexport NAME='a b'\nARGS=\"-x \\\n  -y\" # why\nLAST=1\n"
	grubText = "GRUB_DISTRIBUTOR=`lsb_release -i -s 2> /dev/null || echo Debian`\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n# GRUB_TERMINAL=console\n"
)

func TestEnvCases(t *testing.T) {
	sub := strings.NewReplacer
	runLineCases(t, env, []lineCase{
		{"plain", envText, Wish{Steps: steps("HOST"), Value: "a.b"}, sub("localhost", "a.b").Replace(envText), ""},
		{"quoted as it was", envText, Wish{Steps: steps("NAME"), Value: "c$d"}, sub("'a b'", "'c$d'").Replace(envText), ""},
		{"an apostrophe", envText, Wish{Steps: steps("NAME"), Value: "it's $5"}, sub("'a b'", `"it's \$5"`).Replace(envText), ""},
		{"over two lines", envText, Wish{Steps: steps("ARGS"), Value: "-z"}, sub("\"-x \\\n  -y\"", `"-z"`).Replace(envText), ""},
		{"new", envText, Wish{Steps: steps("PORT"), Value: json.Number("80")}, envText + "PORT=80\n", ""},
		{"with a blank", envText, Wish{Steps: steps("PORT"), Value: "8 0"}, envText + "PORT=\"8 0\"\n", ""},
		{"true already", envText, Wish{Steps: steps("NAME"), Value: "a b"}, envText, ""},
		{"the last wins", "A=1\nA=2\n", Wish{Steps: steps("A"), Value: "3"}, "A=1\nA=3\n", ""},
		{"gone", "A=1\nB=2\nexport A=2", Wish{Steps: steps("A"), Absent: true}, "B=2\n", ""},
		{"exported as all are", "export A=1\n", Wish{Steps: steps("B"), Value: "x"}, "export A=1\nexport B=x\n", ""},
		{"a command", grubText, Wish{Steps: steps("GRUB_DISTRIBUTOR"), Value: "Me"}, sub("`lsb_release -i -s 2> /dev/null || echo Debian`", "Me").Replace(grubText), ""},
		{"empty", "", Wish{Steps: steps("A"), Value: ""}, "A=\n", ""},
		{"a line break", "A=1\n", Wish{Steps: steps("A"), Value: "x\ny"}, "A=\"x\ny\"\n", ""},
		{"all that needs a backslash", "A=\"1\"\n", Wish{Steps: steps("A"), Value: "\"\\$`'"}, "A=\"\\\"\\\\\\$\\`'\"\n", ""},
		{"CRLF", "A=1\r\nB='x'\r\n", Wish{Steps: steps("B"), Value: "y"}, "A=1\r\nB='y'\r\n", ""},
		{"no final newline", "A=1", Wish{Steps: steps("B"), Value: true}, "A=1\nB=true\n", ""},
		{"behind a here-document", "cat <<E\nA=0\nE\nA=1\n", Wish{Steps: steps("A"), Value: "2"}, "cat <<E\nA=0\nE\nA=2\n", ""},
		{"systemd's other comment", "; it's\nA=1\n", Wish{Steps: steps("A"), Value: "2"}, "; it's\nA=2\n", ""},
		{"in a condition", "if true; then\n  A=1\nfi\n", Wish{Steps: steps("A"), Value: "2"}, "", "line 2, column 3: it stands inside a condition"},
		{"two on a line", "A=1 B=2\n", Wish{Steps: steps("A"), Value: "2"}, "", "something stands behind"},
		{"an open quote", "A=1\nB=\"x\n", Wish{Steps: steps("A"), Value: "2"}, "", "line 2, column 3"},
		{"a control character", "", Wish{Steps: steps("A"), Value: "\a"}, "", "control character"},
		{"no name", "", Wish{Steps: steps("A-B"), Value: "x"}, "", "no variable's name"},
		{"a member", "", Wish{Steps: steps("A"), Value: "x", Member: true}, "", "no members"},
		{"a list", "", Wish{Steps: steps("A"), Value: []any{}}, "", "list"},
	})
}

var envTexts = rapid.Custom(func(t *rapid.T) []byte {
	eol := rapid.SampledFrom([]string{"\n", "\n", "\r\n"}).Draw(t, "eol")
	line := rapid.SampledFrom([]string{
		"", "# it's a note", "#A=1", "A=1", "A='x y'", "export B=2", "  B=\"q\\$r\"", "C=\"x" + eol + "y\" # why", "C=`id` ", "D=$(a \"b)\")", "D=", "set -e",
		"if x; then", "fi", "A=1; export A", "E=caf\xe9", "E=a\\ b", "echo \"A=1\"",
	})
	text := strings.Join(rapid.SliceOfN(line, 0, 12).Draw(t, "lines"), eol)
	if rapid.Bool().Draw(t, "final") && text != "" {
		text += eol
	}
	return []byte(text)
})

var envWish = rapid.Custom(func(t *rapid.T) Wish {
	w := Wish{Steps: steps(rapid.SampledFrom([]string{"A", "B", "C", "D", "E", "NEW", "F"}).Draw(t, "key"))}
	drawValue(t, &w)
	return w
})

func TestEnvLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { lineLaws(t, env, envTexts, envWish, nil) })
}

// TestEnvReadersAgree asks a shell and a reader like systemd's what a file says after an
// edit.
func TestEnvReadersAgree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "env")
	line := rapid.SampledFrom([]string{"", "# it's a note", "A=1", "A='x y'", "B=\"q\\$r\"", "B=\"x\ny\"", "D=", "E=\"a\\\nb\"", "  A=\"\\`\""})
	value := rapid.StringOf(rapid.RuneFrom([]rune(" ab\"'\\#;=$`!~*?&|<>()[]{}\t\n\u00e4%")))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(line, 0, 6).Draw(t, "lines"), "\n")
		w := Wish{Steps: steps(rapid.SampledFrom([]string{"A", "B", "NEW"}).Draw(t, "key")), Value: value.Draw(t, "value")}
		out, _, err := env.Put([]byte(text), w)
		if err != nil {
			return
		}
		before, after := systemdEnv(text), systemdEnv(string(out))
		if got := after[w.Steps[0].Name]; got != w.Value {
			t.Fatalf("systemd reads %q, want %q, in\n%s", got, w.Value, out)
		}
		if err := os.WriteFile(path, out, 0o600); err != nil {
			t.Fatal(err)
		}
		names := []string{"A", "B", "D", "E", "NEW"}
		for _, name := range names {
			if name != w.Steps[0].Name && before[name] != after[name] {
				t.Fatalf("systemd reads %s as %q, and read %q, in\n%s", name, after[name], before[name], out)
			}
		}
		said, err := exec.Command("sh", "-c", `. "$1" 2>/dev/null; printf '%s\0' "$A" "$B" "$D" "$E" "$NEW"`, "sh", path).Output()
		if err != nil {
			t.Fatalf("the shell does not read\n%s\n%v", out, err)
		}
		for i, got := range strings.Split(strings.TrimSuffix(string(said), "\x00"), "\x00") {
			if got != after[names[i]] {
				t.Fatalf("the shell reads %s as %q, systemd as %q, in\n%s", names[i], got, after[names[i]], out)
			}
		}
	})
}

// systemdEnv reads a file as systemd.exec(5) tells of EnvironmentFile: by states, a byte at
// a time.
func systemdEnv(text string) map[string]string {
	vars := map[string]string{}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			i++
			continue
		case c == '#' || c == ';':
			for i < len(text) && text[i] != '\n' {
				i++
			}
			continue
		}
		eq := strings.IndexByte(text[i:], '=')
		if eq < 0 {
			break
		}
		key := text[i : i+eq]
		var value string
		value, i = systemdValue(text, i+eq+1)
		vars[key] = value
	}
	return vars
}

func systemdValue(text string, i int) (string, int) {
	var out []byte
	solid := 0 // up to here, blanks at the end are no blanks
	inner := false
	for ; i < len(text) && text[i] != '\n' && text[i] != '\r'; i++ {
		c := text[i]
		switch {
		case !inner && (c == ' ' || c == '\t'):
			continue
		case !inner && (c == '\'' || c == '"'):
			for i++; i < len(text) && text[i] != c; i++ {
				if c == '"' && text[i] == '\\' && i+1 < len(text) {
					if i++; strings.IndexByte("\"\\`$", text[i]) < 0 {
						if text[i] == '\n' {
							continue
						}
						out = append(out, '\\')
					}
				}
				out = append(out, text[i])
			}
			solid = len(out)
			continue
		case c == '\\' && i+1 < len(text):
			inner = true
			if i++; text[i] == '\n' {
				continue
			}
			out = append(out, text[i])
			solid = len(out)
			continue
		}
		inner = true
		out = append(out, c)
		if c != ' ' && c != '\t' {
			solid = len(out)
		}
	}
	return string(out[:solid]), i
}

func TestEnvRealFiles(t *testing.T) {
	files := realFiles(t, func(path string) bool {
		base := filepath.Base(path)
		return strings.Contains(path, "/default/") || base == "environment" || base == "os-release" || strings.HasSuffix(base, ".env") || strings.HasSuffix(base, ".sh") ||
			base == "locale" || strings.Contains(path, "/init.d/") || base == "profile" || base == "adduser.conf" || base == "debconf.conf" || strings.Contains(path, "initramfs-tools")
	}, "/etc", "/usr/lib", "/usr/share")
	lawsOnReal(t, env, files, func(*sheet, *row) []Step { return steps("GOLEM_WAS_HERE") })
}

func FuzzEnv(f *testing.F) {
	f.Add([]byte(envText), "", "HOST", "x y", byte(0))
	f.Add([]byte(grubText), "", "GRUB_TIMEOUT", "$5", byte(1))
	f.Add([]byte("cat <<\n<<-'E'\nA=${x:-\"(\"}\nE"), "", "A", "'", byte(0))
	fuzzLines(f, env, false)
}
