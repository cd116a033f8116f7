package apply_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"golem/scrolls"
)

// lawUnits are the units that random scrolls are about, and what may be wished of each.
var lawUnits = map[string][]string{
	"web.service": {"state", "enabled", "masked"}, "docker.service": {"state", "enabled", "masked"}, "needs.service": {"state", "masked"},
	"web.socket": {"state", "enabled"}, "plain.service": {"state", "masked"}, "filter.service": {"state", "enabled"},
}

// drawUnitScroll draws a scroll of one leaf or two.
func drawUnitScroll(t *rapid.T) *scrolls.Scroll {
	leaves := []*scrolls.Leaf{leafOf("one"), leafOf("two")}
	for _, unit := range slices.Sorted(maps.Keys(lawUnits)) {
		a := scrolls.Attrs{"unit": unit}
		for _, attr := range lawUnits[unit] {
			switch draw := rapid.SampledFrom([]string{"", "", "yes", "no"}).Draw(t, unit+" "+attr); {
			case draw == "":
			case attr == "state":
				a["state"] = map[string]string{"yes": "running", "no": "stopped"}[draw]
			default:
				a[attr] = draw == "yes"
			}
		}
		if a["masked"] == true && (a["state"] == "running" || a["enabled"] == true) {
			a["masked"] = false
		}
		if len(a) == 1 {
			continue
		}
		leaf := leaves[rapid.IntRange(0, 1).Draw(t, "leaf of "+unit)]
		g := glyph("service", a)
		g.Leaf = leaf.Path
		leaf.Glyphs = append(leaf.Glyphs, g)
	}
	leaves = slices.DeleteFunc(leaves, func(l *scrolls.Leaf) bool { return len(l.Glyphs) == 0 })
	return scrollOf(leaves...)
}

// drawFound draws in what state units are before golem.
func drawFound(t *rapid.T) [][]string {
	var found [][]string
	for _, does := range []string{
		"start web.socket", "start web.service", "start docker.service", "start needs.service", "start filter.service", "start plain.service",
		"enable web.service", "enable docker.service", "enable web.socket", "mask plain.service", "mask docker.service", "mask --runtime needs.service",
	} {
		if rapid.Bool().Draw(t, does) {
			found = append(found, strings.Fields(does))
		}
	}
	return found
}

// lawUnitHost makes a host in a drawn state.
func lawUnitHost(t *rapid.T, found [][]string) *unitHost {
	h := newUnitHost(t)
	for _, does := range found {
		h.ctl(does...)
	}
	return h
}

// run applies a scroll. It says false for one that is refused, and fails if a second run
// finds something to do. stopped gathers the units that the scroll stops.
func (h *unitHost) run(t *rapid.T, s *scrolls.Scroll, stopped map[string]bool) bool {
	t.Logf("apply %s", describe(s))
	was := h.Print()
	r, err := h.apply(s, "run")
	var wrong *scrolls.Diagnostics
	switch {
	case errors.As(err, &wrong):
		h.same("refused", was)
		return false
	case err == nil && r.Outcome == "rolled_back":
		h.same("rolled back", was)
		return false
	case err == nil && r.Partial():
		t.Skip("granted in part")
	case err != nil:
		t.Fatalf("%v %+v", err, failures(r))
	}
	for _, e := range r.Plan.Effects() {
		if e.Do == "stop" && !strings.HasPrefix(e.Reason, "started by golem") && !strings.HasPrefix(e.Reason, "started with") {
			stopped[e.Unit] = true
		}
	}
	t.Logf("leaves\n%s", h.Print())
	if again, err := h.apply(s, "run"); err != nil || !again.Plan.Empty() {
		t.Fatalf("a second run finds something to do: %v\n%s", err, planText(t, again.Plan))
	}
	return true
}

// sameBut fails unless two fingerprints are the same, but for units that golem stopped
// and that it does not start again by itself.
func sameBut(t tester, want, got string, stopped map[string]bool) {
	has := func(text string) map[string]bool {
		lines := map[string]bool{}
		for _, line := range strings.Split(text, "\n") {
			lines[line] = true
		}
		return lines
	}
	was, is := has(want), has(got)
	var wrong []string
	for line := range was {
		if f := strings.Fields(line); !is[line] && !(f[0] == "unit" && stopped[f[1]]) {
			wrong = append(wrong, "is gone: "+line)
		}
	}
	for line := range is {
		if !was[line] {
			wrong = append(wrong, "is new: "+line)
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		t.Fatalf("%s\nwas\n%s\nis\n%s", strings.Join(wrong, "\n"), want, got)
	}
}

func TestLawUnitsAreGivenBack(t *testing.T) {
	unitLaw(t, func(t *rapid.T) {
		h := lawUnitHost(t, drawFound(t))
		found, stopped := h.Print(), map[string]bool{}
		for range rapid.IntRange(1, 3).Draw(t, "runs") {
			h.run(t, drawUnitScroll(t), stopped)
		}
		h.run(t, nil, stopped)
		sameBut(t, found, h.Print(), stopped)
		h.check(t)
	})
}

func TestLawUnitsDependOnTheLastScrollAlone(t *testing.T) {
	unitLaw(t, func(t *rapid.T) {
		found := drawFound(t)
		a, b := lawUnitHost(t, found), lawUnitHost(t, found)
		stopped := map[string]bool{}
		for range rapid.IntRange(1, 3).Draw(t, "runs") {
			a.run(t, drawUnitScroll(t), stopped)
		}
		last := drawUnitScroll(t)
		if !b.run(t, last, map[string]bool{}) || !a.run(t, last, stopped) {
			t.Skip("refused here or there")
		}
		sameBut(t, b.Print(), a.Print(), stopped)
	})
}

// Somebody else does things between the runs: golem still does what is declared, finds
// nothing to do a second time, and comes to its end.
func TestLawUnitsWithSomebodyInBetween(t *testing.T) {
	unitLaw(t, func(t *rapid.T) {
		h := lawUnitHost(t, drawFound(t))
		for range rapid.IntRange(1, 3).Draw(t, "runs") {
			h.run(t, drawUnitScroll(t), map[string]bool{})
			for range rapid.IntRange(0, 3).Draw(t, "acts") {
				verb := rapid.SampledFrom([]string{"start", "stop", "enable", "disable", "mask", "unmask"}).Draw(t, "verb")
				unit := rapid.SampledFrom(slices.Sorted(maps.Keys(lawUnits))).Draw(t, "unit")
				a, _ := h.Run("systemctl", verb, unit) // what systemd refuses, it refuses
				t.Logf("systemctl %s %s: %s", verb, unit, a.Err)
			}
		}
		was := h.Print()
		if !h.run(t, nil, map[string]bool{}) {
			t.Fatalf("destroy does not settle from\n%s", was)
		}
		for _, line := range strings.Split(h.Print(), "\n") {
			if f := strings.Fields(line); f[0] == "unit" && !strings.Contains(was, "unit "+f[1]) {
				t.Fatalf("undeclaring started %s", f[1])
			}
		}
		h.check(t)
	})
}

// unitLaw tries a law of units on random hosts: on fewer than a law of files, since each
// is many runs of golem.
func unitLaw(t *testing.T, law func(t *rapid.T)) {
	t.Helper()
	fewLaw(t, 60, law)
}

// fewLaw tries a law on some random hosts, and in a soak on many.
func fewLaw(t *testing.T, most int, law func(t *rapid.T)) {
	t.Helper()
	t.Parallel()
	tried, failed := 0, false
	if os.Getenv("GOLEM_SOAK") != "" {
		most = 5000
	}
	rapid.Check(t, func(t *rapid.T) {
		if tried++; tried > most && !failed { // one that failed is tried until it is small
			return
		}
		defer func() { failed = failed || t.Failed() }()
		law(t)
	})
}

// unitStory is what an act of the story declares: "units one", "units two", else nothing.
func unitStory(act string) *scrolls.Scroll {
	switch act {
	case "units one":
		return scrollOf(
			leafOf("own", fileGlyph("/etc/systemd/system/own.service", "[Service]\nExecStart=/fake/run\n[Install]\nWantedBy=own.target\n"),
				service("own", "state", "running", "enabled", true)),
			leafOf("processes", processGlyph("job", "one", ""), processGlyph("timed", "one", "daily")),
			leafOf("found", service("web", "state", "stopped", "enabled", true), service("plain", "masked", true), service("docker", "state", "running", "enabled", false)),
		)
	case "units two":
		return scrollOf(leafOf("processes", processGlyph("job", "two", ""), processGlyph("timed", "two", "")), leafOf("found", service("web", "state", "running", "enabled", true), service("filter", "state", "running", "enabled", true),
			service("docker", "state", "stopped", "masked", true)))
	}
	return nil
}

// processGlyph is a process with a bundle of one file; a timer with a schedule.
func processGlyph(name, word, schedule string) *scrolls.Glyph {
	a := scrolls.Attrs{"name": name, "command": []any{"/fake/run"}, "bundle": map[string]any{"word": word}}
	if schedule != "" {
		a["schedule"] = schedule
	}
	return glyph("process", a)
}

// stageUnits makes a host that stands right before an act.
func stageUnits(t *testing.T, before []string) (h *unitHost, found string) {
	h = newUnitHost(t)
	for _, does := range []string{"start web.socket", "start web.service", "start docker.service", "enable docker.service", "start needs.service"} {
		h.ctl(strings.Fields(does)...)
	}
	found = h.Print()
	for _, act := range before {
		if r, err := h.apply(unitStory(act), "crash"); err != nil || r.Partial() {
			t.Fatalf("%s: %v %+v", act, err, failures(r))
		}
	}
	return h, found
}

// TestUnitsCrashAtEveryCall kills golem before and after every single command and change:
// the next run settles, and destroy gives the units back but those that golem stopped.
func TestUnitsCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	stops := map[string]bool{"web.service": true, "web.socket": true, "docker.service": true, "needs.service": true}
	for _, a := range []struct {
		name   string
		before []string
		act    string
	}{
		{"FreshApply", nil, "units one"}, {"ReplaceAndRemove", []string{"units one"}, "units two"}, {"Destroy", []string{"units one", "units two"}, "units none"},
	} {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			h, _ := stageUnits(t, append(slices.Clone(a.before), a.act))
			want := h.Print()
			n := 1
			for ; ; n++ {
				h, found := stageUnits(t, a.before)
				if !h.killed(t, a.act, n) {
					break
				}
				r, err := h.apply(unitStory(a.act), "crash")
				if err != nil || r.Partial() {
					t.Fatalf("killed at %d, the next run does not settle: %v %+v", n, err, failures(r))
				}
				h.same(fmt.Sprintf("killed at %d, the next run leaves another host", n), want)
				if r, err := h.apply(nil, "crash"); err != nil || r.Partial() {
					t.Fatalf("killed at %d, destroy: %v %+v", n, err, failures(r))
				}
				sameBut(t, found, h.Print(), stops)
				h.check(t)
				h.remove()
			}
			if n < 14 {
				t.Fatalf("only %d changes were counted", n)
			}
			t.Logf("%d changes, a kill at each", n-1)
		})
	}
}
