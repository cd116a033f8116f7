package apply_test

import (
	"strings"
	"testing"

	"golem/apply"
	"golem/plan"
	"golem/scrolls"
	"golem/state"
)

// mixedRun ends in every way that a leaf can but by an interrupt: its first leaf has
// nothing to do, one settles, one is rolled back over a unit that moves others first, one
// is kept.
func mixedRun(t *testing.T) *apply.Report {
	t.Helper()
	h := newUnitHost(t)
	h.write(t, "/etc/found", "found")
	h.ctl("start", "web.service")
	idle := func() *scrolls.Leaf {
		return leafOf("idle", fileGlyph("/etc/idle", "idle"), fileGlyph("/etc/too", "too"))
	}
	h.mustApply(t, scrollOf(idle()))
	failing := leafOf("failing", fileGlyph("/etc/one", "1"), service("web", "state", "stopped"), service("plain", "state", "running"),
		service("fail", "state", "running"), fileGlyph("/etc/two", "2"))
	failing.Policy.Retry.MaxAttempts = 2
	var many []*scrolls.Glyph
	for _, name := range strings.Split("abcdefghijkl", "") {
		many = append(many, fileGlyph("/etc/kept/"+name+".conf", name))
	}
	kept := leafOf("kept", append(many, service("false", "state", "running"), fileGlyph("/etc/three", "3"))...)
	kept.Policy.OnExhaust, kept.Policy.Retry.MaxAttempts = "keep", 1
	good := leafOf("good", fileGlyph("/etc/good", "good"), fileGlyph("/etc/found", "found"), fileGlyph("/etc/idle", "idle"))
	good.Glyphs = good.Glyphs[:2]
	r, err := h.apply(scrollOf(idle(), good, failing, kept), "run")
	if err != nil || r.Outcome != "partial" {
		t.Fatalf("%v %+v", err, r)
	}
	return r
}

func TestTheReportAsAPersonReadsIt(t *testing.T) {
	r := mixedRun(t)
	for width, want := range map[int]string{80: report80, 120: report120} {
		b := &strings.Builder{}
		if err := r.Text(plan.NewPrinter(b, plan.Style{Width: width})); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != want {
			t.Errorf("at %d columns:\n%s\nwant\n%s", width, got, want)
		}
		for line := range strings.Lines(b.String()) {
			if n := len([]rune(line)) - 1; n > width {
				t.Errorf("at %d columns a line has %d:\n%s", width, n, line)
			}
		}
	}
}

func TestWhatTheReportSaysOfEachGlyph(t *testing.T) {
	r := mixedRun(t)
	want := map[string]state.Outcome{
		"file:/etc/good": apply.Applied, "file:/etc/found": apply.Applied,
		"file:/etc/one": apply.RolledBack, "service:web.service": apply.RolledBack, "service:plain.service": apply.RolledBack,
		"service:fail.service": apply.Failed, "file:/etc/two": apply.NotReached,
		"file:/etc/kept/a.conf": apply.Applied, "service:false.service": apply.Failed, "file:/etc/three": apply.NotReached,
	}
	for _, l := range r.Leaves {
		if (l.Leaf == "idle") != (l.Unchanged == 2) {
			t.Errorf("%s has %d unchanged", l.Leaf, l.Unchanged)
		}
		for _, g := range l.Glyphs {
			if outcome, ok := want[g.Key]; ok && g.Outcome != outcome {
				t.Errorf("%s is %s, want %s", g.Key, g.Outcome, outcome)
			}
			delete(want, g.Key)
			if g.Changed != (g.Outcome == apply.Applied && g.Key != "file:/etc/found") {
				t.Errorf("%s: changed is %v", g.Key, g.Changed)
			}
			if failed := g.Key == "service:fail.service"; failed != (g.Attempts == 2) {
				t.Errorf("%s has %d attempts", g.Key, g.Attempts)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("the report has nothing of %v", want)
	}
}

func TestAFailureHoldsItsDiagnosticsApart(t *testing.T) {
	r := mixedRun(t)
	f := r.Leaves[2].Failures[0]
	if f.Key != "service:fail.service" || f.Cause != "start fail.service: it failed (result exit-code, exit status 1)" {
		t.Errorf("%q: %q", f.Key, f.Cause)
	}
	kinds := map[string][]string{}
	for _, d := range f.Diagnostics {
		kinds[d.Kind+" of "+d.Of] = d.Lines
	}
	if got := kinds["status of fail.service"]; len(got) != 1 || got[0] != "result exit-code, exit status 1" {
		t.Errorf("the status is %q", got)
	}
	if got := kinds["log of fail.service"]; len(got) == 0 || got[0] != "fake: cannot bind to port 80" {
		t.Errorf("the log is %q", got)
	}
	if got := kinds["stderr of systemctl start fail.service"]; len(got) == 0 || !strings.HasPrefix(got[0], "Job for fail.service failed") {
		t.Errorf("the command's errors are %q, of %v", got, kinds)
	}
	if !strings.Contains(f.Message, "cannot bind to port 80") {
		t.Errorf("the message is %q", f.Message)
	}
}

// The glyphs of a leaf are counted once each, and a leaf that holds none is no leaf with
// nothing to do.
func TestTheReportCountsEachGlyphOnce(t *testing.T) {
	h := hostWith(t, map[string]string{"/etc/so": "x"})
	h.mustApply(t, scrollOf(leafOf("old", fileGlyph("/etc/a", "x"))))
	kept := leafOf("kept", fileGlyph("/etc/b", "x"), fileGlyph("/etc/so", "x"), fileGlyph("/etc/a", "x"))
	kept.Policy.OnExhaust, kept.Policy.Retry.MaxAttempts = "keep", 1
	kept.Checks = []*scrolls.Glyph{commandCheck("false")}
	report, err := h.apply(scrollOf(kept), "run")
	if err != nil {
		t.Fatal(err)
	}
	text := text(t, report)
	says(t, text, "kept: it failed; 1 applied before that, and kept, 1 so already, 1 unchanged")
	if strings.Contains(text, "nothing to do") {
		t.Errorf("it counts a leaf that is gone:\n%s", text)
	}
}

const report80 = `settled      good:    1 applied, 1 so already
rolled back  failing: it failed, and is as it was before this run (2 attempts)
             start fail.service: it failed (result exit-code, exit status 1)
             last in the log of fail.service:
               fake: cannot bind to port 80
               fail.service: Failed with result 'exit-code'.
               fake: cannot bind to port 80
               fail.service: Failed with result 'exit-code'.
             rolled back  file:/etc/one, service:web.service,
                          service:plain.service
             failed       service:fail.service (2 attempts)
             not reached  file:/etc/two
kept         kept:    it failed; 12 applied before that, and kept
             start false.service: it failed (result exit-code, exit status 1)
             last in the log of false.service:
               fake: the program broke down
             kept         file:/etc/kept/a.conf, file:/etc/kept/b.conf,
                          file:/etc/kept/c.conf, file:/etc/kept/d.conf,
                          file:/etc/kept/e.conf, file:/etc/kept/f.conf,
                          file:/etc/kept/g.conf, file:/etc/kept/h.conf, and 4
                          more
             failed       service:false.service
             not reached  file:/etc/three
unchanged    1 leaf with nothing to do: 2 glyphs are as the scroll says
Units
  web.service    stopped, and started again: failing was rolled back
  plain.service  started, and stopped again: failing was rolled back
  fail.service   start: its step failed; it is as it was before this run
  false.service  start: its step failed; it is as it was before this run
Partly applied as revision 2: 14 installed, 0 replaced, 0 repaired, 0 removed.
`

const report120 = `settled      good:    1 applied, 1 so already
rolled back  failing: it failed, and is as it was before this run (2 attempts)
             start fail.service: it failed (result exit-code, exit status 1)
             last in the log of fail.service:
               fake: cannot bind to port 80
               fail.service: Failed with result 'exit-code'.
               fake: cannot bind to port 80
               fail.service: Failed with result 'exit-code'.
             rolled back  file:/etc/one, service:web.service, service:plain.service
             failed       service:fail.service (2 attempts)
             not reached  file:/etc/two
kept         kept:    it failed; 12 applied before that, and kept
             start false.service: it failed (result exit-code, exit status 1)
             last in the log of false.service:
               fake: the program broke down
             kept         file:/etc/kept/a.conf, file:/etc/kept/b.conf, file:/etc/kept/c.conf, file:/etc/kept/d.conf,
                          file:/etc/kept/e.conf, file:/etc/kept/f.conf, file:/etc/kept/g.conf, file:/etc/kept/h.conf,
                          and 4 more
             failed       service:false.service
             not reached  file:/etc/three
unchanged    1 leaf with nothing to do: 2 glyphs are as the scroll says
Units
  web.service    stopped, and started again: failing was rolled back
  plain.service  started, and stopped again: failing was rolled back
  fail.service   start: its step failed; it is as it was before this run
  false.service  start: its step failed; it is as it was before this run
Partly applied as revision 2: 14 installed, 0 replaced, 0 repaired, 0 removed.
`

// TestUnitsThatATriggerToldInVain: what runs was made to read new files, and then the old
// ones again; or only those, where the leaf failed before its triggers.
func TestUnitsThatATriggerToldInVain(t *testing.T) {
	for _, c := range []struct {
		fails, want string
		reloads     int
	}{
		{"check", "docker.service  reloaded, and again after units was rolled back", 2},
		{"glyph", "docker.service  reloaded after units was rolled back, to read what was put back", 1},
	} {
		h := newUnitHost(t)
		h.ctl("start", "docker.service")
		glyphs := []*scrolls.Glyph{fileGlyph("/etc/daemon.json", "{}"), service("docker", "reload_on", []any{"file:/etc/daemon.json"})}
		if c.fails == "glyph" {
			glyphs = append(glyphs, service("fail", "state", "running"))
		}
		leaf := leafOf("units", glyphs...)
		leaf.Policy.Retry.MaxAttempts = 1
		if c.fails == "check" {
			leaf.Checks = []*scrolls.Glyph{commandCheck("false")}
		}
		r, err := h.apply(scrollOf(leaf), "run")
		if err != nil || r.Outcome != apply.RolledBack {
			t.Fatalf("%v %+v", err, r)
		}
		says(t, text(t, r), c.want)
		if n := h.Called("reload", "docker.service"); n != c.reloads {
			t.Errorf("%s: %d reloads, want %d", c.fails, n, c.reloads)
		}
		for _, u := range r.UnitsDone {
			if !u.TakenBack {
				t.Errorf("%s: %+v", c.fails, u)
			}
		}
	}
}
