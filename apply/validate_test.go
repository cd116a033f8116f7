package apply_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golem/apply"
	"golem/plan"
	"golem/scrolls"
)

// A validateTest is a host with one file, and programs that look at candidates.
type validateTest struct {
	*lawHost
	bin   string
	found map[string]string
}

const validateFound = "found\nX yes\n"

func newValidateTest(t *testing.T) *validateTest {
	h := newLawHost(t)
	t.Cleanup(h.remove)
	v := &validateTest{lawHost: h, bin: filepath.Join(h.dir, "bin")}
	for _, dir := range []string{h.root + "/etc", v.bin} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(h.root+"/etc/it.conf", []byte(validateFound), 0o640); err != nil {
		t.Fatal(err)
	}
	v.program(t, "fine", `test -s "$1"`)
	v.found = h.fingerprint(t, true)
	return v
}

// program writes a program that stands beside the host.
func (v *validateTest) program(t *testing.T, name, script string) {
	if err := os.WriteFile(v.bin+"/"+name, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// by is a validate command of a program of the test's.
func (v *validateTest) by(name string) []any { return []any{v.bin + "/" + name, "%s"} }

func (v *validateTest) line(text string, by []any) *scrolls.Glyph {
	return glyph("line", scrolls.Attrs{"path": "/etc/it.conf", "line": text, "validate": by})
}

func (v *validateTest) run(t *testing.T, policy scrolls.Policy, glyphs ...*scrolls.Glyph) *apply.Report {
	for _, g := range glyphs {
		g.Leaf = "leaf"
	}
	s := &scrolls.Scroll{Name: "v", Dir: "/v", Policies: map[string]scrolls.Policy{}, Leaves: []*scrolls.Leaf{{Path: "leaf", Policy: policy, Glyphs: glyphs}}}
	report, err := v.applyAs(context.Background(), apply.Options{Scroll: s, Lineage: "v"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// refused fails unless the leaf failed with these words, after one try, and all is as it
// was found.
func (v *validateTest) refused(t *testing.T, report *apply.Report, words ...string) {
	t.Helper()
	if len(report.Leaves) != 1 || report.Leaves[0].Outcome != apply.RolledBack || report.Leaves[0].Attempts != 1 {
		t.Fatalf("the leaf ended as %+v", report.Leaves[0])
	}
	for _, word := range words {
		if text := failureText(report); !strings.Contains(text, word) {
			t.Errorf("the failure does not say %q: %s", word, text)
		}
	}
	if diff := compare(v.found, v.fingerprint(t, true)); diff != "" {
		t.Errorf("the host is not as it was:\n%s", diff)
	}
	v.noTemps(t)
}

func failureText(report *apply.Report) string {
	var out strings.Builder
	for _, f := range failures(report) {
		out.WriteString(f.Message + "\n")
		for _, d := range f.Diagnostics {
			out.WriteString(strings.Join(d.Lines, "\n") + "\n")
		}
	}
	return out.String()
}

func TestARefusedFileNeverTakesItsPlace(t *testing.T) {
	for name, make := range map[string]func(v *validateTest, by []any) *scrolls.Glyph{
		"line": func(v *validateTest, by []any) *scrolls.Glyph { return v.line("bad", by) },
		"match": func(v *validateTest, by []any) *scrolls.Glyph {
			return glyph("line", scrolls.Attrs{"path": "/etc/it.conf", "line": "bad", "match": "^X", "validate": by})
		},
		"region": func(v *validateTest, by []any) *scrolls.Glyph {
			return glyph("region", scrolls.Attrs{"path": "/etc/it.conf", "name": "r", "content": "bad\n", "validate": by})
		},
		"file": func(v *validateTest, by []any) *scrolls.Glyph {
			return glyph("file", scrolls.Attrs{"path": "/etc/it.conf", "content": "bad\n", "validate": by})
		},
		"new file": func(v *validateTest, by []any) *scrolls.Glyph {
			return glyph("file", scrolls.Attrs{"path": "/etc/new/deep.service", "content": "bad\n", "validate": by})
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := newValidateTest(t)
			v.program(t, "strict", `case "$1" in "`+v.root+`"/etc/*) ;; *) exit 0;; esac
grep -q bad "$1" && { echo "$1: bad word" >&2; exit 7; }; exit 0`)
			g := make(v, v.by("strict"))
			path := g.Attrs["path"].(string)
			v.refused(t, v.run(t, scrolls.BuiltinPolicy, g), "validate "+path, path+": bad word")
		})
	}
}

func TestTheCandidateIsBesideItsTarget(t *testing.T) {
	v := newValidateTest(t)
	v.program(t, "look", `ls -la "$(dirname "$1")" > "`+v.dir+`/seen"; echo "$1" >> "`+v.dir+`/seen"; cat "$1" >> "`+v.dir+`/seen"`)
	report := v.run(t, scrolls.BuiltinPolicy, v.line("good", v.by("look")))
	if report.Outcome != apply.Settled {
		t.Fatalf("it ended %s: %s", report.Outcome, failureText(report))
	}
	seen, err := os.ReadFile(v.dir + "/seen")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{v.root + "/etc/.golem-", ".conf\n", validateFound + "good\n", "it.conf\n"} {
		if !strings.Contains(string(seen), want) {
			t.Errorf("it did not see %q but\n%s", want, seen)
		}
	}
	v.noTemps(t)
}

// TestAllTestsOfAFileSeeItsLastForm: several glyphs on one path, each with a test of its
// own, whosever turn it is.
func TestAllTestsOfAFileSeeItsLastForm(t *testing.T) {
	v := newValidateTest(t)
	v.program(t, "a", `echo a >> "`+v.dir+`/ran"; grep -q one "$1" && grep -q two "$1" && grep -q three "$1"`)
	v.program(t, "b", `echo b >> "`+v.dir+`/ran"; grep -q one "$1" && grep -q two "$1" && grep -q three "$1"`)
	report := v.run(t, scrolls.BuiltinPolicy, v.line("one", v.by("a")), v.line("two", v.by("b")), v.line("three", v.by("a")))
	if ran, _ := os.ReadFile(v.dir + "/ran"); report.Outcome != apply.Settled || string(ran) != "a\nb\n" {
		t.Fatalf("%s; ran %q: %s", report.Outcome, ran, failureText(report))
	}
	v.found = v.fingerprint(t, true)
	v.program(t, "a", `grep -q bad "$1" && exit 1; exit 0`)
	v.refused(t, v.run(t, scrolls.BuiltinPolicy, v.line("one", v.by("a")), v.line("two", v.by("b")), v.line("three", v.by("a")), v.line("bad", v.by("fine"))), "run ")
}

// TestAMendedTestIsUsedAtOnce: a validate command is outside the content id, and a new one
// counts before its glyph's own turn comes.
func TestAMendedTestIsUsedAtOnce(t *testing.T) {
	v := newValidateTest(t)
	if report := v.run(t, scrolls.BuiltinPolicy, v.line("one", v.by("fine"))); report.Outcome != apply.Settled {
		t.Fatal(failureText(report))
	}
	if err := os.Remove(v.bin + "/fine"); err != nil {
		t.Fatal(err)
	}
	v.program(t, "mended", `exit 0`)
	report := v.run(t, scrolls.BuiltinPolicy, v.line("one", v.by("mended")))
	if !report.Plan.Empty() {
		t.Errorf("another validate command is a change: %s", changes(report))
	}
	report = v.run(t, scrolls.BuiltinPolicy, v.line("zero", v.by("mended")), v.line("one", v.by("mended")))
	if report.Outcome != apply.Settled {
		t.Errorf("it ended %s: %s", report.Outcome, failureText(report))
	}
}

func TestAMissingOrHangingTestIsAClearFailure(t *testing.T) {
	v := newValidateTest(t)
	v.refused(t, v.run(t, scrolls.BuiltinPolicy, v.line("x", []any{"golem-no-such-program", "%s"})), "golem-no-such-program", "not found")
	v.refused(t, v.run(t, scrolls.BuiltinPolicy, v.line("x", []any{v.bin + "/nowhere", "%s"})), v.bin+"/nowhere", "no such file")

	v.program(t, "hang", `sleep 300`)
	policy := scrolls.BuiltinPolicy
	policy.Timeout = 300 * time.Millisecond
	v.refused(t, v.run(t, policy, v.line("x", v.by("hang"))), "still running after 300ms")
}

func TestATestThatChangesTheFileIsRefused(t *testing.T) {
	v := newValidateTest(t)
	v.program(t, "meddle", `echo more >> "$1"`)
	v.refused(t, v.run(t, scrolls.BuiltinPolicy, v.line("x", v.by("meddle"))), "changed it")
}

func TestAFileWrittenInPlaceIsTestedFirst(t *testing.T) {
	v := newValidateTest(t)
	if err := os.Link(v.root+"/etc/it.conf", v.root+"/etc/other name"); err != nil {
		t.Fatal(err)
	}
	v.found = v.fingerprint(t, true)
	v.program(t, "no", `echo "no" ; exit 1`)
	v.refused(t, v.run(t, scrolls.BuiltinPolicy, v.line("x", v.by("no"))), "no")
	report := v.run(t, scrolls.BuiltinPolicy, v.line("x", v.by("fine")))
	if data, _ := os.ReadFile(v.root + "/etc/other name"); report.Outcome != apply.Settled || string(data) != validateFound+"x\n" {
		t.Errorf("%s: %q: %s", report.Outcome, data, failureText(report))
	}
	v.noTemps(t)
}

func TestUndeclaringIsNeverRefused(t *testing.T) {
	v := newValidateTest(t)
	if report := v.run(t, scrolls.BuiltinPolicy, v.line("x", v.by("fine"))); report.Outcome != apply.Settled {
		t.Fatal(failureText(report))
	}
	v.program(t, "fine", `exit 1`)
	report, err := v.apply(nil, "v")
	if err != nil || report.Partial() {
		t.Fatalf("%v: %s", err, failureText(report))
	}
	if diff := compare(v.found, v.fingerprint(t, true)); diff != "" {
		t.Errorf("the host is not as it was:\n%s", diff)
	}
}

func TestAnInterruptEndsATest(t *testing.T) {
	v := newValidateTest(t)
	ended := filepath.Join(t.TempDir(), "ended")
	v.program(t, "hang", `sleep 300; touch `+ended)
	ctx, cancel := context.WithCancel(context.Background())
	g := v.line("x", v.by("hang"))
	g.Leaf = "leaf"
	s := &scrolls.Scroll{Name: "v", Dir: "/v", Policies: map[string]scrolls.Policy{}, Leaves: []*scrolls.Leaf{{Path: "leaf", Policy: scrolls.BuiltinPolicy, Glyphs: []*scrolls.Glyph{g}}}}
	_, err := v.applyAs(ctx, apply.Options{Scroll: s, Lineage: "v"}, func(op, _ string) error {
		if op == "validate" {
			time.AfterFunc(100*time.Millisecond, cancel)
		}
		return nil
	})
	if _, stat := os.Stat(ended); stat == nil {
		t.Errorf("it was waited for: %v", err)
	}
	if diff := compare(v.found, v.fingerprint(t, true)); diff != "" {
		t.Errorf("the host is not as it was:\n%s", diff)
	}
	v.noTemps(t)
}

func TestThePlanSaysWhatANewFileHasToPass(t *testing.T) {
	v := newValidateTest(t)
	g := v.line("x", []any{"sshd", "-t", "-f", "%s"})
	var told string
	s := &scrolls.Scroll{Name: "v", Dir: "/v", Policies: map[string]scrolls.Policy{}, Leaves: []*scrolls.Leaf{{Path: "leaf", Policy: scrolls.BuiltinPolicy, Glyphs: []*scrolls.Glyph{g}}}}
	g.Leaf = "leaf"
	refuse := errors.New("no")
	_, err := v.applyAs(context.Background(), apply.Options{Scroll: s, Lineage: "v", Approve: func(p *plan.Plan) (bool, error) {
		for _, c := range p.Changes() {
			told += c.Reason
		}
		return false, refuse
	}}, nil)
	if !errors.Is(err, refuse) {
		t.Fatal(err)
	}
	if want := "added; the new file has to pass: sshd -t -f %s"; told != want {
		t.Errorf("the plan says %q, want %q", told, want)
	}
}

// TestASecretFilesTestSaysNothing: what a program says of a secret file may show it.
func TestASecretFilesTestSaysNothing(t *testing.T) {
	v := newValidateTest(t)
	v.program(t, "show", `cat "$1" >&2; exit 1`)
	g := glyph("line", scrolls.Attrs{"path": "/etc/it.conf", "line": "password hunter2", "match": "^password", "validate": v.by("show")})
	g.Secret = []string{"line"}
	report := v.run(t, scrolls.BuiltinPolicy, g)
	v.refused(t, report, "exit status 1")
	if text := failureText(report); strings.Contains(text, "hunter2") {
		t.Errorf("it shows the secret: %s", text)
	}
	for _, c := range report.Plan.Changes() {
		if strings.Contains(c.Diff+c.Reason+string(c.Key), "hunter2") {
			t.Errorf("the plan shows the secret: %+v", c)
		}
	}
}
