package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// A stage is a host tree with a journal and a scroll on it.
type stage struct {
	root, scroll string
	args         []string
}

func newStage(t *testing.T) *stage {
	dir := t.TempDir()
	s := &stage{root: filepath.Join(dir, "root"), scroll: filepath.Join(dir, "s.hcl")}
	s.args = []string{"--root", s.root, "--state", filepath.Join(dir, "planroom.db"), s.scroll}
	s.write(t, "etc/passwd", fmt.Sprintf("root:x:%d:%d::/root:/bin/sh\n", os.Getuid(), os.Getgid()))
	s.write(t, "etc/group", fmt.Sprintf("root:x:%d:\n", os.Getgid()))
	s.write(t, "etc/hostname", "web1\n")
	return s
}

// write writes a file of the tree.
func (s *stage) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(s.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
}

// declare writes the scroll.
func (s *stage) declare(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(s.scroll, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs golem on the stage and wants an exit code.
func (s *stage) run(t *testing.T, code int, command ...string) answer {
	t.Helper()
	return call{}.must(t, code, append(command, s.args...)...)
}

// everyOp has, on a stage where everyOpBefore was applied and the motd changed by hand,
// an op of each sort, links and secrets in it.
const everyOpBefore = `
name = "web"
scroll "a" {
  file "/etc/motd" { content = "hello\n" }
  file "/etc/conf" { content = "one\n" }
  file "/srv/made/gone" { content = "x" }
  link "/etc/zone" { target = "/usr/share/zoneinfo/UTC" }
}
`

const everyOp = `
name = "web"
scroll "a" {
  file "/etc/motd" { content = "hello\n" }
  file "/etc/conf" { content = "two\n" }
  link "/etc/zone" { target = "/usr/share/zoneinfo/Europe/Berlin" }
}
scroll "b" {
  directory "/srv/data" { mode = "0750" }
  file "/etc/key" {
    content   = sensitive("hush")
    sensitive = true
  }
  line "db" {
    path = "/etc/hosts"
    line = "10.0.0.5 db"
  }
}
`

// stageEveryOp prepares a stage for everyOp.
func stageEveryOp(t *testing.T) *stage {
	s := newStage(t)
	s.write(t, "etc/hosts", "127.0.0.1 localhost\n")
	s.write(t, "etc/conf", "found\n")
	s.declare(t, everyOpBefore)
	s.run(t, 0, "apply", "--auto-approve")
	s.write(t, "etc/motd", "by hand\n")
	s.declare(t, everyOp)
	return s
}

func TestPlanJSONFitsItsSchema(t *testing.T) {
	v := newValidator()
	s := stageEveryOp(t)
	doc := v.fits(t, "plan.schema.json", s.run(t, 0, "plan", "--json").stdout)
	ops := map[any]bool{}
	for _, c := range doc["changes"].([]any) {
		ops[c.(map[string]any)["op"]] = true
	}
	for _, op := range []string{"install", "replace", "repair", "remove"} {
		if !ops[op] {
			t.Errorf("the plan has no %s, so the schema was not tried on one", op)
		}
	}
	if text := fmt.Sprint(doc); strings.Contains(text, "hush") {
		t.Error("the secret is in the JSON")
	}
	s.run(t, 0, "apply", "--auto-approve")
	for _, flag := range []string{"--json", "--destroy", "--no-observe"} {
		doc := v.fits(t, "plan.schema.json", s.run(t, 0, "plan", "--json", flag).stdout)
		if changes := len(doc["changes"].([]any)); (changes == 0) != (flag != "--destroy") {
			t.Errorf("plan %s has %d changes", flag, changes)
		}
	}
}

func TestValidateAndDriftJSONFitTheirSchemas(t *testing.T) {
	v := newValidator()
	s := stageEveryOp(t)
	d := v.fits(t, "drift.schema.json", s.run(t, 0, "plan", "--drift", "--json").stdout)
	moved := map[any]bool{}
	for _, m := range d["moved"].([]any) {
		moved[m.(map[string]any)["by"]] = true
	}
	if !moved["scroll"] || !moved["host"] && !moved["both"] {
		t.Errorf("the drift is %v, so the schema was not tried on all", d)
	}
	ok := v.fits(t, "validate.schema.json", s.run(t, 0, "validate", "--json").stdout)
	if ok["valid"] != true || ok["glyphs"] == 0.0 {
		t.Errorf("of a valid scroll it says %v", ok)
	}
	s.declare(t, "file \"/etc/a\" {\n  contnet = 1\n}\nfile \"/etc/b\" { content = [] }\n")
	bad := v.fits(t, "validate.schema.json", s.run(t, 1, "validate", "--json").stdout)
	if n := len(bad["diagnostics"].([]any)); n < 2 || bad["valid"] != false {
		t.Errorf("of a wrong scroll it says %v", bad)
	}
}

// reportOf checks every line of an apply, and returns the last.
func reportOf(t *testing.T, v *validator, stdout string) map[string]any {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	var last map[string]any
	for i, line := range lines {
		last = v.fits(t, "report.schema.json", line)
		if seq := last["seq"]; seq != float64(i+1) {
			t.Errorf("line %d has seq %v", i+1, seq)
		}
		if (last["type"] == "report") != (i == len(lines)-1) {
			t.Errorf("line %d of %d is a %v", i+1, len(lines), last["type"])
		}
	}
	return last
}

func TestApplyJSONFitsItsSchema(t *testing.T) {
	v := newValidator()
	s := stageEveryOp(t)
	report := reportOf(t, v, s.run(t, 0, "apply", "--auto-approve", "--json").stdout)
	if report["outcome"] != "settled" || report["revision"] != 2.0 {
		t.Errorf("the report says %v, revision %v", report["outcome"], report["revision"])
	}
	report = reportOf(t, v, s.run(t, 0, "apply", "--auto-approve", "--json").stdout)
	if report["revision"] != 2.0 || len(report["changes"].([]any)) != 0 {
		t.Errorf("a second apply reports %v", report)
	}
	report = reportOf(t, v, s.run(t, 0, "destroy", "--auto-approve", "--json").stdout)
	if report["outcome"] != "settled" || report["revision"] != 3.0 {
		t.Errorf("the report of destroy says %v, revision %v", report["outcome"], report["revision"])
	}
}

// injected runs apply on the stage with a fault in the system call that moves files in.
func (s *stage) injected(t *testing.T, fault string) answer {
	t.Helper()
	needStrace(t)
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat2", "-e", "inject=renameat2:" + fault, bin, "apply", "--auto-approve", "--json"}, s.args...)
	cmd := exec.Command("strace", args...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return answer{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func TestAFailedLeafsReportFitsItsSchema(t *testing.T) {
	v := newValidator()
	s := newStage(t)
	s.declare(t, everyOpBefore)
	before := treeLines(t, s.root)
	a := s.injected(t, "error=EIO")
	if a.code != 3 {
		t.Fatalf("exit %d, want 3\n%s%s", a.code, a.stdout, a.stderr)
	}
	report := reportOf(t, v, a.stdout)
	if report["outcome"] != "rolled_back" || !strings.Contains(a.stdout, `"type":"failed"`) {
		t.Errorf("the report of a failed run:\n%s", a.stdout)
	}
	sameLines(t, "after the rollback", before, treeLines(t, s.root))
}

func TestARecoverysReportFitsItsSchema(t *testing.T) {
	v := newValidator()
	s := newStage(t)
	s.declare(t, everyOpBefore)
	s.injected(t, "signal=SIGKILL")
	doc := v.fits(t, "plan.schema.json", s.run(t, 0, "plan", "--json").stdout)
	if doc["recovers"] == nil {
		t.Error("the plan after a kill has nothing to recover")
	}
	report := reportOf(t, v, s.run(t, 0, "apply", "--auto-approve", "--json").stdout)
	if report["recovered"] == nil || report["outcome"] != "settled" {
		t.Errorf("the report after a kill: %v", report)
	}
}

// fits SCHEMA checks every line of the last command's output against a schema.
func fitsSchema(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, 1, "fits SCHEMA")
	v := newValidator()
	schema, err := v.schema(args[0])
	ts.Check(err)
	all := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	for {
		var value any
		err := all.Decode(&value)
		if errors.Is(err, io.EOF) {
			return
		}
		ts.Check(err)
		for _, wrong := range v.check(args[0], schema, "$", value) {
			ts.Fatalf("%s: %s in %v", args[0], wrong, value)
		}
	}
}

// everyEnd has a leaf for each way in which one can end by itself, and fails twice.
const everyEnd = `
name = "web"
scroll "a" {
  file "/etc/motd" { content = "hello\n" }
}
scroll "bad" {
  policy {
    retry {
      max_attempts = 2
      base_delay   = "1ms"
    }
  }
  file "/etc/bad" { content = "bad\n" }
  check "command" {
    run = ["sh", "-c", "echo the reason >&2; echo and more >&2; exit 4"]
  }
}
scroll "kept" {
  policy {
    on_exhaust = "keep"
    retry { max_attempts = 1 }
  }
  file "/etc/kept" { content = "kept\n" }
  check "command" { run = ["false"] }
}
`

func TestTheReportOfEveryEndFitsItsSchema(t *testing.T) {
	v := newValidator()
	s := newStage(t)
	s.declare(t, "name = \"web\"\nscroll \"a\" {\n  file \"/etc/motd\" { content = \"hello\\n\" }\n}\n")
	s.run(t, 0, "apply", "--auto-approve")
	s.declare(t, everyEnd)
	a := s.run(t, 3, "apply", "--auto-approve", "--json")
	report := reportOf(t, v, a.stdout)
	type leaf struct {
		Leaf, Outcome       string
		Attempts, Unchanged int
		Glyphs              []struct{ Key, Outcome string }
		Failures            []struct {
			Key, Cause  string
			Diagnostics []struct {
				Kind, Of string
				Lines    []string
			}
		}
	}
	var got struct {
		Outcome string
		Leaves  []leaf
	}
	text, err := json.Marshal(report)
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil || got.Outcome != "partial" || len(got.Leaves) != 3 {
		t.Fatalf("%v: %s", err, text)
	}
	for i, want := range []string{"a settled 0 attempts 1 unchanged []", "bad rolled_back 2 attempts 0 unchanged [{file:/etc/bad rolled_back}]", "kept kept 1 attempts 0 unchanged [{file:/etc/kept applied}]"} {
		l := got.Leaves[i]
		if is := fmt.Sprintf("%s %s %d attempts %d unchanged %v", l.Leaf, l.Outcome, l.Attempts, l.Unchanged, l.Glyphs); is != want {
			t.Errorf("%s, want %s", is, want)
		}
	}
	f := got.Leaves[1].Failures[0]
	if f.Cause != "check command: run sh: exit status 4" || len(f.Diagnostics) != 1 || f.Diagnostics[0].Kind != "stderr" ||
		!slices.Equal(f.Diagnostics[0].Lines, []string{"the reason", "and more"}) {
		t.Errorf("the failure is %+v", f)
	}
	for _, event := range []string{"leaf_started", "enacting", "enacted", "checking", "retrying", "failed", "leaf_ended"} {
		if !strings.Contains(a.stdout, fmt.Sprintf("{\"type\":%q,", event)) {
			t.Errorf("no event is %s:\n%s", event, a.stdout)
		}
	}
}

func TestASignOfLifeFitsItsSchema(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.declare(t, "name = \"web\"\nfile \"/etc/a\" { content = \"a\" }\ncheck \"command\" {\n  run     = [\"sleep\", \"10.5\"]\n  timeout = \"1m\"\n}\n")
	a := s.run(t, 0, "apply", "--auto-approve", "--json")
	reportOf(t, newValidator(), a.stdout)
	if n := strings.Count(a.stdout, `"type":"alive"`); n != 1 || !strings.Contains(a.stdout, `"leaf":"web","key":"","elapsed":10,"message":"sleep 10.5"`) {
		t.Errorf("%d signs of life:\n%s", n, a.stdout)
	}
}
