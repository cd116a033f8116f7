package entry

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func steps(names ...string) []Step {
	var s []Step
	for _, n := range names {
		s = append(s, Step{Name: n})
	}
	return s
}

type lineCase struct {
	name, text string
	w          Wish
	want       string // "" with refusal: refused
	refusal    string
}

func runLineCases(t *testing.T, d *dialect, cases []lineCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			out, receipt, err := d.Put([]byte(c.text), c.w)
			if c.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), c.refusal) {
					t.Fatalf("got %v and %q, want a refusal with %q", err, out, c.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(out) != c.want {
				t.Fatalf("got\n%s\nwant\n%s", out, c.want)
			}
			if (receipt == nil) != (c.text == c.want) {
				t.Fatalf("receipt %s", receipt)
			}
			if got, receipt := putLaws(t, d, []byte(c.text), c.w); receipt != nil {
				changedLaws(t, d, []byte(c.text), got, c.w, receipt, len(c.text))
			}
		})
	}
}

const sshdText = "# sshd\n\n# drop-ins\nInclude /etc/ssh/sshd_config.d/*.conf\n\n#Port 22\n#PermitRootLogin no\nUsePAM yes\nX11Forwarding yes\n" +
	"AcceptEnv LANG LC_*\nSubsystem\tsftp\t/usr/lib/openssh/sftp-server\n\n# Example\nMatch User anoncvs\n\tX11Forwarding no\n\tPermitTTY no\n"

func TestKeywordCases(t *testing.T) {
	sub := strings.NewReplacer
	runLineCases(t, keyword, []lineCase{
		{"replaced, case aside", sshdText, Wish{Steps: steps("x11forwarding"), Value: "no"}, sub("\nX11Forwarding yes", "\nX11Forwarding no").Replace(sshdText), ""},
		{
			"new before what is included", sshdText,
			Wish{Steps: steps("PermitRootLogin"), Value: "no"},
			sub("Include /", "PermitRootLogin no\nInclude /").Replace(sshdText), "",
		},
		{"a boolean", sshdText, Wish{Steps: steps("UsePAM"), Value: false}, sub("UsePAM yes", "UsePAM no").Replace(sshdText), ""},
		{"true already", sshdText, Wish{Steps: steps("usepam"), Value: true}, sshdText, ""},
		{"true in other quotes", "Banner \"none\"\n", Wish{Steps: steps("Banner"), Value: "none"}, "Banner \"none\"\n", ""},
		{"in a block", sshdText, Wish{Steps: steps("match user anoncvs", "PermitTTY"), Value: "yes"}, sub("PermitTTY no", "PermitTTY yes").Replace(sshdText), ""},
		{
			"new in a block", sshdText,
			Wish{Steps: steps("Match User anoncvs", "ForceCommand"), Value: "cvs server"},
			sshdText + "\tForceCommand cvs server\n", "",
		},
		{"a new block", sshdText, Wish{Steps: steps("Match User git", "PermitTTY"), Value: false}, sshdText + "\nMatch User git\n\tPermitTTY no\n", ""},
		{
			"one more line", sshdText,
			Wish{Steps: steps("AcceptEnv"), Value: "FOO", Member: true},
			sub("AcceptEnv LANG LC_*\n", "AcceptEnv LANG LC_*\nAcceptEnv FOO\n").Replace(sshdText), "",
		},
		{"the first wins", "Port 1\nPort 2\n", Wish{Steps: steps("Port"), Value: json.Number("3")}, "Port 3\nPort 2\n", ""},
		{"gone", "A 1\nPort 1\n#x\nport 2\nB 2\n", Wish{Steps: steps("Port"), Absent: true}, "A 1\n#x\nB 2\n", ""},
		{"before the block", "A 1\n\n# of the block\nMatch all\n B 1\n", Wish{Steps: steps("C"), Value: "2"}, "A 1\nC 2\n\n# of the block\nMatch all\n B 1\n", ""},
		{
			"before a block that stands first", "# head\n\n# of the block\nMatch all\n B 1\n",
			Wish{Steps: steps("C"), Value: "2"},
			"# head\n\nC 2\n# of the block\nMatch all\n B 1\n", "",
		},
		{"no final newline", "A 1\nMatch all", Wish{Steps: steps("Match all", "B"), Value: "2"}, "A 1\nMatch all\n\tB 2\n", ""},
		{"CRLF", "A 1\r\nB 2\r\n", Wish{Steps: steps("C"), Value: "2"}, "A 1\r\nB 2\r\nC 2\r\n", ""},
		{"BOM", bom + "A 1", Wish{Steps: steps("a"), Value: "2"}, bom + "A 2", ""},
		{"empty", "", Wish{Steps: steps("A"), Value: "2"}, "A 2\n", ""},
		{"a comment behind stays", "A 1   # one\n", Wish{Steps: steps("A"), Value: "2"}, "A 2   # one\n", ""},
		{"with a sign", "A = 1\n", Wish{Steps: steps("B"), Value: "2"}, "A = 1\nB = 2\n", ""},
		{"in columns", "LONGKEY    1\nK          2\n", Wish{Steps: steps("MORE"), Value: "2"}, "LONGKEY    1\nK          2\nMORE       2\n", ""},
		{"words", "", Wish{Steps: steps("AllowUsers"), Value: []any{"a", "b c"}}, "AllowUsers a \"b c\"\n", ""},
		{"a hash", "", Wish{Steps: steps("Banner"), Value: "a #b"}, "Banner \"a #b\"\n", ""},
		{"a command is the rest of the line", "ForceCommand sh -c 'a' # b\n", Wish{Steps: steps("forcecommand"), Value: "it's # c"}, "ForceCommand it's # c\n", ""},
		{"as most are spelled", "A 1\nB 2\nSubsystem\tsftp\tx\n", Wish{Steps: steps("C"), Value: "3"}, "A 1\nB 2\nSubsystem\tsftp\tx\nC 3\n", ""},
		{"Latin-1", "# caf\xe9\nA 1\n", Wish{Steps: steps("A"), Value: "2"}, "# caf\xe9\nA 2\n", ""},
		{"a block is no key", "", Wish{Steps: steps("Match"), Value: "all"}, "", "opens a block"},
		{"an open quote", "A 1\nB \"x\n", Wish{Steps: steps("B"), Value: "2"}, "", "line 2, column 1"},
		{"UTF-16", "A\x00 \x001\x00", Wish{Steps: steps("A"), Value: "2"}, "", "NUL"},
		{"a line break", "", Wish{Steps: steps("A"), Value: "2\nB 3"}, "", "line break"},
		{"null", "", Wish{Steps: steps("A"), Value: nil}, "", "null"},
		{"one more of a bare key", "A\nB\n", Wish{Steps: steps("A"), Value: "2", Member: true}, "A\nA 2\nB\n", ""},
		{"no such member", "A 1\n", Wish{Steps: steps("A"), Value: "2", Member: true, Before: "9"}, "", "no member"},
		{"beside", "A 1\nA 3\n", Wish{Steps: steps("A"), Value: "2", Member: true, Before: "3"}, "A 1\nA 2\nA 3\n", ""},
	})
}

// TestRowsComeBackBetweenBlankLines: where only what others wrote above or below has changed,
// rows that were cut come back exactly, though the lines around them are all alike.
func TestRowsComeBackBetweenBlankLines(t *testing.T) {
	const text = "\nA 1\nA 2\n\nA 3\n\n\nB 1\n"
	w := Wish{Steps: steps("A"), Absent: true}
	out, receipt := putLaws(t, keyword, []byte(text), w)
	for _, c := range []struct{ name, alien, want string }{
		{"above", "# his\n" + string(out), "# his\n" + text},
		{"below", string(out) + "# his\n", text + "# his\n"},
		{"above, twice", "# his\n\n" + string(out), "# his\n\n" + text},
	} {
		if got := keyword.Peel([]byte(c.alien), w, receipt); string(got) != c.want {
			t.Errorf("%s: got\n%q\nwant\n%q", c.name, got, c.want)
		}
	}
}

var keywordText = rapid.Custom(func(t *rapid.T) []byte {
	eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "eol")
	line := rapid.SampledFrom([]string{
		"", "# note", "#Port 22", "Port 22", "port 2200", "  Port 1", "X11Forwarding yes # why", "AcceptEnv LANG", "AcceptEnv\tLC_*",
		"Banner \"a b\"", "Key=value", "Key = other", "Match User git", "Match user Git", "Match all", "\tPermitTTY no", "Bare", "Include x", "caf\xe9 1", "A   1 2  3 ",
	})
	text := strings.Join(rapid.SliceOfN(line, 0, 14).Draw(t, "lines"), eol)
	if rapid.Bool().Draw(t, "final") && text != "" {
		text += eol
	}
	if rapid.IntRange(0, 9).Draw(t, "bom") == 0 {
		text = bom + text
	}
	return []byte(text)
})

var keywordWish = rapid.Custom(func(t *rapid.T) Wish {
	w := Wish{Steps: steps(rapid.SampledFrom([]string{"Port", "PORT", "AcceptEnv", "Banner", "Key", "PermitTTY", "Bare", "New", "A"}).Draw(t, "key"))}
	if b := rapid.SampledFrom([]string{"", "", "Match User git", "Match all", "Match Group x"}).Draw(t, "block"); b != "" {
		w.Steps = append(steps(b), w.Steps...)
	}
	drawValue(t, &w)
	return w
})

// drawValue draws what a wish wants of its key.
func drawValue(t *rapid.T, w *Wish) {
	switch rapid.IntRange(0, 5).Draw(t, "do") {
	case 0:
		w.Absent = true
		return
	case 1:
		w.Member = true
	}
	w.Value = rapid.OneOf(
		rapid.SampledFrom([]any{"22", "yes", "", "a b", "a # b", "a ; b", "'q", `"q"`, `"`, `\`, `a\`, "ä", " x ", "$HOME", "`id`", "it's", true, false, json.Number("7"), "x=y", "#", ";"}),
		rapid.Map(rapid.StringOf(rapid.RuneFrom([]rune(" abc\"'\\$`#;=[]\t\n!~"))), func(s string) any { return s }),
	).Draw(t, "value")
}

func TestKeywordLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { lineLaws(t, keyword, keywordText, keywordWish, readKeywordText) })
}

// lineLaws are the laws on one drawn text, with an independent reader.
func lineLaws(t *rapid.T, d *dialect, texts *rapid.Generator[[]byte], wishes *rapid.Generator[Wish], read func(text string) [][3]string) {
	text, w := texts.Draw(t, "text"), wishes.Draw(t, "wish")
	if out, receipt := putLaws(t, d, text, w); receipt != nil {
		if unambiguous(d, text, w) {
			changedLaws(t, d, text, out, w, receipt, rapid.IntRange(0, 30).Draw(t, "where"))
		}
		if read != nil {
			readLaws(t, d, text, read(string(text)), read(string(out)), w)
		}
	}
	more := append(rapid.SliceOfN(wishes, 0, 5).Draw(t, "more"), w)
	pileLaws(t, d, text, more)
	anyOrderLaws(t, d, text, more)
}

// unambiguous says that a text has the key of a wish once at most, and its block too: of
// equal rows nobody could tell which was whose.
func unambiguous(d *dialect, text []byte, w Wish) bool {
	t, _ := d.aim(w)
	s, err := d.read(text, t)
	if err != nil {
		return false
	}
	n := 0
	for _, b := range s.blocks {
		if d.sameBlock(s, b.name, t.block) {
			n++
		}
	}
	seen := map[string]bool{}
	for i, r := range s.rows {
		if seen[s.context(i)] && r.kind != blankRow {
			return false
		}
		seen[s.context(i)] = true
	}
	return n <= 1 && len(d.matches(s, t)) <= 1
}

var plainWord = regexp.MustCompile(`^[a-z0-9ä]+$`)

// readLaws compares two readings: all that is not of the wish's key is as it was.
func readLaws(t *rapid.T, d *dialect, text []byte, before, after [][3]string, w Wish) {
	aim, _ := d.aim(w)
	s, _ := d.read(text, aim)
	rest := func(list [][3]string) (rest, own []string) {
		for _, e := range list {
			if d.sameBlock(s, e[0], aim.block) && d.sameKey(s, e[1], aim.key) {
				own = append(own, e[2])
				continue
			}
			rest = append(rest, strings.Join(e[:], "|"))
		}
		return rest, own
	}
	a, was := rest(before)
	b, own := rest(after)
	if !slices.Equal(a, b) {
		t.Fatalf("%s: beside the key, a reader sees\n%q\nwhere it saw\n%q", wishText(w), b, a)
	}
	switch {
	case w.Absent && len(own) > 0:
		t.Fatalf("%s: a reader still sees %q", wishText(w), own)
	case w.Member && len(own) != len(was)+1:
		t.Fatalf("%s: a reader sees %q, where it saw %q", wishText(w), own, was)
	}
	want, err := scalar(w.Value, "yes", "no")
	if d != keyword {
		want, err = scalar(w.Value, "true", "false")
	}
	if err != nil || w.Absent || !plainWord.MatchString(want) {
		return
	}
	if w.Member {
		for _, v := range own {
			if strings.Trim(v, `"'`) == want {
				return
			}
		}
		t.Fatalf("%s: a reader sees only %q", wishText(w), own)
	}
	if got := own[d.winner(indices(len(own)))]; strings.Trim(got, `"'`) != want {
		t.Fatalf("%s: a reader sees %q", wishText(w), got)
	}
}

// readKeywordText is an independent reader of the texts that the test makes.
func readKeywordText(text string) [][3]string {
	var said [][3]string
	block := ""
	for _, line := range strings.Split(strings.TrimPrefix(text, bom), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Fields(strings.Replace(line, "=", " ", 1))
		if strings.EqualFold(fields[0], "match") {
			block = strings.Join(fields, " ")
			continue
		}
		value := strings.Join(fields[1:], " ")
		if i := strings.Index(value, " # why"); i >= 0 {
			value = value[:i]
		}
		said = append(said, [3]string{block, fields[0], value})
	}
	return said
}

// TestKeywordSSHAgrees asks ssh itself what it reads.
func TestKeywordSSHAgrees(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("ssh is not here")
	}
	path := filepath.Join(t.TempDir(), "config")
	reads := func(t *rapid.T, text []byte) map[string]string {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("ssh", "-G", "-F", path, "web").Output()
		if err != nil {
			return nil
		}
		said := map[string]string{}
		for _, line := range strings.Split(string(out), "\n") {
			key, value, _ := strings.Cut(line, " ")
			if _, again := said[key]; !again {
				said[key] = value
			}
		}
		return said
	}
	line := rapid.SampledFrom([]string{
		"", "# it's a note", "#User x", "User a", "user=b # why", "IdentityAgent \"/a b\"", "LogLevel = DEBUG", "Host db", "Host web", "  User c", "\tIdentityAgent /x", "Match all",
		"ProxyCommand sh -c 'x # y' # z",
	})
	asked := 0
	value := rapid.StringMatching(`[a-z/"'\\# ä]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOfN(line, 0, 8).Draw(t, "lines"), "\n"))
		key := rapid.SampledFrom([]string{"User", "IdentityAgent", "ProxyCommand"}).Draw(t, "key")
		w := Wish{Steps: steps(key), Value: value.Draw(t, "value")}
		if asked++; asked > 60 && os.Getenv("GOLEM_SOAK") == "" {
			return // it takes a while to answer
		}
		before := reads(t, text)
		out, receipt := putLaws(t, keyword, text, w)
		if receipt == nil || before == nil || len(strings.Fields(w.Value.(string))) == 0 {
			return
		}
		words, _, _ := splitWords([]byte(w.Value.(string)))
		after := reads(t, out)
		if after == nil {
			if key != "ProxyCommand" && len(words) == 1 && words[0] == w.Value {
				t.Fatalf("ssh does not read\n%s", out)
			}
			return // a value that ssh does not take
		}
		for name, was := range before {
			if name != strings.ToLower(key) && after[name] != was {
				t.Fatalf("ssh reads %s as %q, and read %q, in\n%s", name, after[name], was, out)
			}
		}
		got, want := after[strings.ToLower(key)], w.Value.(string)
		if key == "ProxyCommand" && got != want || key != "ProxyCommand" && len(words) == 1 && words[0] == want && got != want {
			t.Fatalf("ssh reads %s as %q, want %q, in\n%s", key, got, want, out)
		}
	})
}

func TestKeywordRealFiles(t *testing.T) {
	names := map[string]bool{
		"login.defs": true, "adduser.conf": false, "dhclient.conf": false, "sysctl.conf": true, "ssh_config": true, "sshd_config": true,
		"resolv.conf": true, "nsswitch.conf": true, "mke2fs.conf": false, "host.conf": true, "ld.so.conf": true, "journald.conf": false, "protocols": true, "services": true,
		"mime.types": true, "inputrc": false, "chrony.conf": true, "ucf.conf": true, "deluser.conf": true,
	}
	files := realFiles(t, func(path string) bool {
		return names[filepath.Base(path)] || strings.Contains(path, "/ssh") && !strings.Contains(path, "host_") || strings.Contains(path, "sysctl.d/") ||
			strings.Contains(path, "modprobe.d/") || strings.Contains(path, "tmpfiles.d/") || strings.Contains(path, "/apache2/") && strings.HasSuffix(path, ".load")
	}, "/etc", "/usr/share", "/usr/lib")
	lawsOnReal(t, keyword, files, func(s *sheet, r *row) []Step {
		if r != nil && s.blocks[r.block].name != "" {
			return steps(s.blocks[r.block].name, "GolemWasHere")
		}
		return steps("GolemWasHere")
	})
}

func FuzzKeyword(f *testing.F) {
	f.Add([]byte(sshdText), "Match User git", "PermitTTY", "no", byte(0))
	f.Add([]byte("A 1\r\nA 2"), "", "a", "x", byte(1))
	f.Add([]byte(bom), "", "a", "x # y", byte(2))
	fuzzLines(f, keyword, false)
}

// fuzzLines is the body of the fuzz targets of formats of lines.
func fuzzLines(f *testing.F, d *dialect, section bool) {
	f.Fuzz(func(t *testing.T, text []byte, block, key, value string, do byte) {
		w := Wish{Steps: steps(block, key), Value: value, Absent: do%3 == 1, Member: do%3 == 2}
		if block == "" && !section {
			w.Steps = steps(key)
		}
		out, receipt := putLaws(t, d, text, w)
		if receipt == nil {
			return
		}
		d.Peel(append([]byte("# a stranger\n"), out...), w, receipt)
		d.Peel(text, w, receipt)
	})
}
