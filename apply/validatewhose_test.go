package apply_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"golem/apply"
	"golem/scrolls"
	"golem/state"
)

// TestTheGlyphWhoseTestRefusesIsNamed: of several on one path, with tests of their own, the
// one whose test it is.
func TestTheGlyphWhoseTestRefusesIsNamed(t *testing.T) {
	v := newValidateTest(t)
	v.program(t, "no", `echo "$1: no good" >&2; exit 1`)
	for _, policy := range []string{"rollback", "keep"} {
		p := scrolls.BuiltinPolicy
		p.OnExhaust = policy
		report := v.run(t, p, v.line("one", v.by("fine")), v.line("two", v.by("no")))
		if len(failures(report)) != 1 || failures(report)[0].Key != "line:/etc/it.conf:two" || failures(report)[0].Hint == "" {
			t.Errorf("%s: it is told as %+v", policy, failures(report))
		}
		for _, g := range report.Leaves[0].Glyphs {
			if want := map[string]state.Outcome{"line:/etc/it.conf:one": apply.RolledBack, "line:/etc/it.conf:two": apply.Failed}[g.Key]; g.Outcome != want {
				t.Errorf("%s: %s ended %s, not %s", policy, g.Key, g.Outcome, want)
			}
		}
		if diff := compare(v.found, v.fingerprint(t, true)); diff != "" {
			t.Errorf("%s: the host is not as it was:\n%s", policy, diff)
		}
	}
}

// TestTwoLeavesWriteAFileOnceEach: and each time all its tests look, once.
func TestTwoLeavesWriteAFileOnceEach(t *testing.T) {
	v := newValidateTest(t)
	v.program(t, "a", `{ echo "a:"; cat "$1"; } >> "`+v.dir+`/ran"`)
	v.program(t, "b", `{ echo "b:"; cat "$1"; } >> "`+v.dir+`/ran"`)
	leaves := func(last string) *scrolls.Scroll {
		return &scrolls.Scroll{Name: "v", Dir: "/v", Policies: map[string]scrolls.Policy{}, Leaves: []*scrolls.Leaf{
			leafOf("first", v.line("one", v.by("a")), v.line("two", v.by("a"))),
			leafOf("second", v.line(last, v.by("b")), glyph("region", scrolls.Attrs{"path": "/etc/it.conf", "name": "r", "content": "four"})),
		}}
	}
	var swaps []string
	report, err := v.applyAs(context.Background(), apply.Options{Scroll: leaves("three"), Lineage: "v"}, func(op, path string) error {
		if op == "rename" {
			swaps = append(swaps, path)
		}
		return nil
	})
	if err != nil || report.Outcome != apply.Settled {
		t.Fatalf("%v: %s", err, failureText(report))
	}
	first := validateFound + "one\ntwo\n"
	second := first + "three\n# BEGIN golem r\nfour\n# END golem r\n"
	if ran, _ := os.ReadFile(v.dir + "/ran"); string(ran) != "a:\n"+first+"a:\n"+second+"b:\n"+second {
		t.Errorf("the tests saw\n%s", ran)
	}
	if strings.Join(swaps, " ") != "/etc/it.conf /etc/it.conf" {
		t.Errorf("it was put in place %v", swaps)
	}

	// What the second leaf's test refuses leaves the first one's lines.
	v.program(t, "b", `grep -q bad "$1" && exit 1; exit 0`)
	report, err = v.applyAs(context.Background(), apply.Options{Scroll: leaves("bad"), Lineage: "v"}, nil)
	if err != nil || report.Outcome != "partial" || outcomes(report)["first"] != apply.Settled || outcomes(report)["second"] != apply.RolledBack {
		t.Fatalf("%v, %v: %s", err, outcomes(report), failureText(report))
	}
	if data, _ := os.ReadFile(v.root + "/etc/it.conf"); string(data) != second {
		t.Errorf("the file holds\n%s", data)
	}
	v.noTemps(t)
}

// TestATestMayNameTheFileTwiceAndSayMuch: what it says at length is cut to its last lines, and its
// temp's name is nowhere in them.
func TestATestMayNameTheFileTwiceAndSayMuch(t *testing.T) {
	v := newValidateTest(t)
	v.program(t, "much", `test "$1" = "$3" && test "$2" = "--in=$1" || exit 9
yes "$1: noise" | head -n 100000; yes "$1: noise" | head -n 100000 >&2; echo "$1: the last word" >&2; exit 3`)
	report := v.run(t, scrolls.BuiltinPolicy, v.line("x", []any{v.bin + "/much", "%s", "--in=%s", "%s"}))
	v.refused(t, report, "/etc/it.conf: the last word")
	if text := failureText(report); len(text) > 4000 || strings.Contains(text, ".golem-") {
		t.Errorf("it says %d bytes: %.600s", len(text), text)
	}
	v.program(t, "gone", `rm "$1"`)
	v.refused(t, v.run(t, scrolls.BuiltinPolicy, v.line("x", v.by("gone"))), "changed it")
}

// TestEveryKindOfEditIsTested: an entry, a line and a region, a file, and what is declared on
// a file.
func TestEveryKindOfEditIsTested(t *testing.T) {
	v := newValidateTest(t)
	v.program(t, "no", `exit 1`)
	entry := func(name string, extra scrolls.Attrs) *scrolls.Glyph {
		a := scrolls.Attrs{"path": "/etc/" + name, "format": "json", "key": "a", "value": true, "validate": v.by("no")}
		for k, value := range extra {
			if a[k] = value; value == nil {
				delete(a, k)
			}
		}
		return glyph("entry", a)
	}
	if err := os.WriteFile(v.root+"/etc/it.json", []byte(`{"gone": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	v.found = v.fingerprint(t, true)
	for name, glyphs := range map[string][]*scrolls.Glyph{
		"value":          {entry("it.json", nil)},
		"member":         {entry("it.json", scrolls.Attrs{"value": nil, "member": "m", "key": "l"})},
		"absent":         {entry("it.json", scrolls.Attrs{"value": nil, "absent": true, "key": "gone"})},
		"a new file":     {entry("new.json", nil)},
		"gone line":      {glyph("line", scrolls.Attrs{"path": "/etc/it.conf", "line": "found", "ensure": "absent", "validate": v.by("no")})},
		"a file's edit":  {glyph("file", scrolls.Attrs{"path": "/etc/it.conf", "content": "base\n"}), v.line("x", v.by("no"))},
		"an edit's file": {glyph("file", scrolls.Attrs{"path": "/etc/it.conf", "content": "base\n", "validate": v.by("no")}), glyph("line", scrolls.Attrs{"path": "/etc/it.conf", "line": "x"})},
	} {
		t.Run(name, func(t *testing.T) { v.refused(t, v.run(t, scrolls.BuiltinPolicy, glyphs...), "exit status 1") })
	}
}
