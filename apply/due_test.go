package apply_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"golem/apply"
	"golem/scrolls"
)

// A dutied is a host of leaves with checks, each under its own policy.
type dutied struct {
	h      *lawHost
	leaves []*scrolls.Leaf
}

// leaf adds a leaf to the next runs' scroll; the file that it is of may be nil.
func (d *dutied) leaf(path, onExhaust string, file *scrolls.Glyph, checks ...*scrolls.Glyph) {
	leaf := leafOf(path)
	if file != nil {
		leaf = leafOf(path, file)
	}
	leaf.Policy, leaf.Checks = scrolls.BuiltinPolicy, checks
	leaf.Policy.OnExhaust, leaf.Policy.Retry.MaxAttempts = onExhaust, 1
	d.leaves = append(d.leaves, leaf)
}

// run applies the scroll, and interrupts it at the n-th check; 0 is never.
func (d *dutied) run(t *testing.T, interruptAt int) *apply.Report {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	report, err := d.h.applyAs(ctx, apply.Options{
		Scroll: scrollOf(d.leaves...), Lineage: "run",
		Tell: func(ev apply.Event) {
			if ev.Type == "checking" {
				if interruptAt--; interruptAt == 0 {
					cancel()
				}
			}
		},
	}, nil)
	if err != nil && !(errors.Is(err, context.Canceled) && ctx.Err() != nil) {
		t.Fatal(err)
	}
	d.leaves = nil
	return report
}

// due lists what the journal has due, each as its leaf and the last part of its name.
func (d *dutied) due(t *testing.T, want ...string) {
	t.Helper()
	got := []string{}
	for _, due := range d.h.snapshot(t).Due {
		got = append(got, due.Leaf+" "+due.Name[strings.LastIndexAny(due.Name, ":/")+1:])
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("due is %q, want %q", got, want)
	}
}

// plans says which checks the last plan listed.
func plans(t *testing.T, report *apply.Report, want ...string) {
	t.Helper()
	got := []string{}
	for _, c := range report.Plan.Checks {
		got = append(got, c.Leaf)
	}
	if !slices.Equal(got, want) {
		t.Errorf("it plans the checks of %q, want %q", got, want)
	}
}

func outcomesOf(report *apply.Report) string {
	var all []string
	for _, leaf := range report.Leaves {
		all = append(all, leaf.Leaf+" "+string(leaf.Outcome))
	}
	return strings.Join(all, ", ")
}

// A check that an earlier run left due is due until it has run, whatever becomes of a run
// that comes between.
func TestACheckLeftDueOutlastsARunThatIsTakenBack(t *testing.T) {
	fails := commandCheck("false")
	d := &dutied{h: hostWith(t, nil)}
	d.leaf("a", "keep", fileGlyph("/etc/a", "x"), fails)
	d.run(t, 0)
	d.due(t, "a false")
	for _, way := range []struct {
		name, onExhaust string
		interruptAt     int
		content         string
	}{
		{"interrupted", "keep", 1, "x"},
		{"under another policy", "rollback", 0, "x"},
		{"with a change of its own", "rollback", 0, "y"},
		{"with a change of its own, interrupted", "keep", 1, "y"},
	} {
		d.leaf("a", way.onExhaust, fileGlyph("/etc/a", way.content), fails)
		report := d.run(t, way.interruptAt)
		plans(t, report, "a")
		if d.h.read(t, "/etc/a") != "x" || report.Outcome != apply.RolledBack {
			t.Errorf("%s: %s, /etc/a is %q", way.name, outcomesOf(report), d.h.read(t, "/etc/a"))
		}
		d.due(t, "a false")
	}
}

// A check that held of what was then taken back has not run of what stands.
func TestACheckThatHeldOfWhatIsTakenBackIsDueAgain(t *testing.T) {
	d := &dutied{h: hostWith(t, nil)}
	first, second := commandCheck("test", "-e", d.h.dir+"/ok"), commandCheck("false")
	d.leaf("a", "keep", fileGlyph("/etc/a", "x"), first, second)
	d.run(t, 0)
	d.due(t, "a false", "a ok")
	if err := writeFile(d.h.dir + "/ok"); err != nil {
		t.Fatal(err)
	}
	d.leaf("a", "rollback", fileGlyph("/etc/a", "y"), first, second)
	d.run(t, 0)
	d.due(t, "a false", "a ok")
	// Where nothing was changed, it holds of what stands.
	d.leaf("a", "rollback", fileGlyph("/etc/a", "x"), first, second)
	d.run(t, 0)
	d.due(t, "a false")
}

func TestTheSameCheckOfTwoLeavesIsTwo(t *testing.T) {
	d := &dutied{h: hostWith(t, nil)}
	flag := commandCheck("test", "-e", d.h.dir+"/flag")
	declare := func() {
		d.leaf("o/a", "rollback", fileGlyph("/etc/a", "x"), flag)
		d.leaf("o/b", "keep", fileGlyph("/etc/b", "x"), flag)
		d.leaf("z", "keep", fileGlyph("/etc/z", "x"), flag)
	}
	declare()
	if report := d.run(t, 0); outcomesOf(report) != "o/a rolled_back, o/b kept, z kept" {
		t.Error(outcomesOf(report))
	}
	d.due(t, "o/b flag", "z flag")
	declare()
	report := d.run(t, 0)
	plans(t, report, "o/a", "o/b", "z")
	if outcomesOf(report) != "o/a rolled_back, o/b kept, z kept" {
		t.Error(outcomesOf(report))
	}
	d.due(t, "o/b flag", "z flag")
	if err := writeFile(d.h.dir + "/flag"); err != nil {
		t.Fatal(err)
	}
	declare()
	report = d.run(t, 0)
	plans(t, report, "o/a", "o/b", "z")
	if outcomesOf(report) != "o/a settled, o/b settled, z settled" {
		t.Error(outcomesOf(report))
	}
	d.due(t)
}

// A failure that was kept does not go away with its leaf's name or its check's words.
func TestACheckLeftDueFollowsItsLeaf(t *testing.T) {
	for _, way := range []struct {
		name  string
		later func(d *dutied)
		plans []string
		due   []string
	}{
		{"renamed", func(d *dutied) { d.leaf("b", "keep", fileGlyph("/etc/a", "x"), commandCheck("false")) }, []string{"b"}, []string{"b false"}},
		{"renamed and no longer holding anything", func(d *dutied) { d.leaf("b", "keep", nil, commandCheck("false")) }, []string{"b"}, []string{"b false"}},
		{"another check", func(d *dutied) { d.leaf("a", "keep", fileGlyph("/etc/a", "x"), commandCheck("false", "x")) }, []string{"a"}, []string{"a x"}},
		{"its glyph and check moved", func(d *dutied) {
			d.leaf("a", "keep", fileGlyph("/etc/b", "x"), commandCheck("true"))
			d.leaf("b", "keep", fileGlyph("/etc/a", "x"), commandCheck("false"))
		}, []string{"a", "b"}, []string{"b false"}},
		{"no check any more", func(d *dutied) { d.leaf("a", "keep", fileGlyph("/etc/a", "x")) }, nil, []string{"a false"}},
	} {
		t.Run(way.name, func(t *testing.T) {
			d := &dutied{h: hostWith(t, nil)}
			d.leaf("a", "keep", fileGlyph("/etc/a", "x"), commandCheck("false"))
			d.run(t, 0)
			for range 2 { // the journal's own account of it moves, too
				way.later(d)
				report := d.run(t, 0)
				if way.plans == nil {
					if !report.Plan.Empty() {
						t.Errorf("it plans %v", report.Plan.Checks)
					}
				} else if plans(t, report, way.plans[len(way.plans)-len(report.Plan.Checks):]...); len(report.Plan.Checks) == 0 {
					t.Error("no check is made")
				}
				d.due(t, way.due...)
			}
		})
	}
}

// Checks that a trigger makes due, which another leaf's step called for, are due until
// they hold: the trigger has been fired, and is no reason any more.
func TestChecksAfterATriggerStayDue(t *testing.T) {
	for _, late := range []bool{false, true} {
		h := newTimedHost(t)
		h.ctl("start", "web.service")
		web := func(onExhaust string) *scrolls.Leaf {
			leaf := leafUnder(steadyPolicy(func(p *scrolls.Policy) { p.OnExhaust, p.Retry.MaxAttempts = onExhaust, 1 }),
				leafOf("web", service("web.service", "reload_on", []any{"file:/etc/f"})))
			leaf.Checks = []*scrolls.Glyph{commandCheck("probe")}
			return leaf
		}
		order := func(onExhaust string) []*scrolls.Leaf {
			conf := leafUnder(steadyPolicy(nil), leafOf("conf", fileGlyph("/etc/f", "x")))
			if late {
				return []*scrolls.Leaf{web(onExhaust), conf}
			}
			return []*scrolls.Leaf{conf, web(onExhaust)}
		}
		d := &dutied{h: h.lawHost}
		h.run(t, web("keep"))
		h.failing("probe", -1, toldToFail("probe"))
		h.run(t, order("keep")...)
		d.due(t, "web probe")
		report := h.run(t, order("rollback")...)
		plans(t, report, "web")
		if report.Outcome == apply.Settled {
			t.Error("a check that does not hold settles the run")
		}
		d.due(t, "web probe")
	}
}

// A trigger that cannot be fired again over what was put back is the next run's.
func TestATriggerThatCannotBeFiredAgainStaysDue(t *testing.T) {
	h := newTimedHost(t)
	h.ctl("start", "web.service")
	policy := steadyPolicy(func(p *scrolls.Policy) { p.Retry.MaxAttempts = 1 })
	h.run(t, watchedLeaf(policy, "good"))
	reloads := 0
	h.meets = func(what string) error {
		if strings.HasSuffix(what, "reload -- web.service") {
			if reloads++; reloads == 2 {
				return toldToFail("systemctl")
			}
		}
		if what == "probe" && reloads == 1 {
			return toldToFail("probe")
		}
		return nil
	}
	if report := h.run(t, watchedLeaf(policy, "bad")); report.Outcome != apply.RolledBack || reloads != 2 {
		t.Fatalf("%s, %d reloads: %v", outcomesOf(report), reloads, failures(report))
	}
	if report := h.run(t, watchedLeaf(policy, "good")); report.Outcome != apply.Settled || reloads != 3 {
		t.Errorf("the next run is %s, and there are %d reloads", outcomesOf(report), reloads)
	}
}
