package apply_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"golem/apply"
	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// A failCase is one host, what was applied to it, and what is to be next.
type failCase struct {
	t             *rapid.T
	h             *failHost
	first, second *wish
	was, next     *scrolls.Scroll
	before        *plan.Plan // of the second run
	troubles      []*trouble
}

// leaves lists the leaves of both scrolls.
func (c *failCase) leaves() []string {
	all := maps.Clone(c.first.leaves)
	maps.Copy(all, c.second.leaves)
	return slices.Sorted(maps.Keys(all))
}

// text is what a wish says of a thing of a leaf; "" for nothing.
func (w *wish) text(leaf, thing string) string {
	l := w.leaves[leaf]
	if l == nil || l.variant[thing] == "" {
		return ""
	}
	return l.glyphText(filepath.Base(leaf), thing)
}

// changing lists what of a leaf changes between the scrolls, in the order in which the
// leaf does it: what goes, last applied first; then what is declared, in its order.
func (c *failCase) changing(leaf string) []string {
	var things []string
	add := func(l *leafWish, last bool) {
		if l == nil {
			return
		}
		order := slices.Clone(l.order)
		if last {
			slices.Reverse(order)
		}
		for _, thing := range order {
			if goes := c.second.text(leaf, thing) == ""; goes == last && c.first.text(leaf, thing) != c.second.text(leaf, thing) {
				things = append(things, thing)
			}
		}
	}
	add(c.first.leaves[leaf], true)
	add(c.second.leaves[leaf], false)
	return things
}

// drawTroubles draws what is to go wrong in the second run.
func (c *failCase) drawTroubles() {
	var all []*trouble
	for _, leaf := range c.leaves() {
		things := c.changing(leaf)
		for _, thing := range things {
			if !c.inLastWave(lawKey(leaf, thing)) {
				all = append(all, &trouble{leaf: leaf, thing: thing})
			}
		}
		if l := c.second.leaves[leaf]; l != nil && len(things) > 0 {
			all = append(all, &trouble{leaf: leaf, thing: "trigger"})
			if l.check {
				all = append(all, &trouble{leaf: leaf, thing: "check"})
			}
		}
	}
	if len(all) == 0 {
		c.t.Skip("nothing changes")
	}
	all = rapid.Permutation(all).Draw(c.t, "what fails")
	c.troubles = all[:min(len(all), rapid.IntRange(1, 4).Draw(c.t, "troubles"))]
	for _, tr := range c.troubles {
		tr.times = rapid.SampledFrom([]int{1, 1, 2, 3, -1, -1}).Draw(c.t, "times")
		switch rapid.SampledFrom([]string{"", "", "", "fatal", "hangs", "hangs"}).Draw(c.t, "how") {
		case "fatal":
			tr.fatal = true
		case "hangs":
			tr.hangs = true
		}
		tr.late = rapid.Bool().Draw(c.t, "after the deed")
		tr.back = rapid.SampledFrom([]int{0, 0, 0, 1, 2, 5}).Draw(c.t, "the way back")
		c.t.Logf("trouble: %s", tr)
	}
}

// of lists the troubles of a leaf.
func (c *failCase) of(leaf string) []*trouble {
	return slices.DeleteFunc(slices.Clone(c.troubles), func(tr *trouble) bool { return tr.leaf != leaf })
}

// stuck says that a step of a leaf could not be taken back.
func (c *failCase) stuck(leaf string) bool {
	return slices.ContainsFunc(c.of(leaf), func(tr *trouble) bool {
		return tr.backHits > 0 && tr.thing != "trigger" && tr.thing != "check"
	})
}

// wantOutcome is how a leaf has to end: what failed for the last time that its policy
// lets it, or could not be brought back for another try, ends it.
func (c *failCase) wantOutcome(leaf string) state.Outcome {
	for _, tr := range c.of(leaf) {
		if tr.over || tr.takeBacks > 0 {
			return c.givenUp(leaf)
		}
	}
	if c.barred(leaf) {
		return c.givenUp(leaf)
	}
	return apply.Settled
}

func (c *failCase) givenUp(leaf string) state.Outcome {
	return map[string]state.Outcome{"rollback": apply.RolledBack, "keep": apply.Kept}[c.second.policy(leaf).OnExhaust]
}

// barred says that a leaf is to change the file that leaves share, on which an earlier
// one's step waits to be taken back.
func (c *failCase) barred(leaf string) bool {
	for _, l := range c.before.Leaves {
		if l.Path == leaf {
			return false
		}
		if slices.ContainsFunc(c.of(l.Path), func(tr *trouble) bool { return tr.thing == "h" && tr.backHits > 0 }) {
			return slices.Contains(c.changing(leaf), "h")
		}
	}
	return false
}

// wantAttempts is how often the most stubborn thing of a leaf has to be tried.
func (c *failCase) wantAttempts(leaf string) int {
	most := 1
	ended := slices.ContainsFunc(c.of(leaf), func(tr *trouble) bool { return tr.takeBacks > 0 })
	for _, tr := range c.of(leaf) {
		tries := tr.hits
		if !tr.over && tr.hits > 0 && !(ended && tr == c.h.last[leaf]) {
			tries++
		}
		most = max(most, tries)
	}
	return most
}

// ended is what ended a leaf: the last thing that failed for the last time, or that could
// not be brought back to be tried again.
func (c *failCase) ended(leaf string) *trouble {
	switch tr := c.h.fatal[leaf]; {
	case tr != nil:
		return tr
	case c.barred(leaf):
		return &trouble{thing: "h"}
	}
	return c.h.last[leaf]
}

// stands are the glyphs of a leaf that have to be in force after the second run.
func (c *failCase) stands(leaf string, r *apply.LeafReport) []*scrolls.Glyph {
	was, next := glyphsOf(c.was, leaf), glyphsOf(c.next, leaf)
	switch r.Outcome {
	case apply.Settled:
		return next
	case apply.RolledBack, apply.Skipped:
		return was
	}
	// Kept: what comes before the thing that failed is done, and nothing from it on.
	things := c.changing(leaf)
	done := map[scrolls.Key]bool{}
	failed := lawKey(leaf, c.ended(leaf).thing)
	for _, thing := range things {
		key := lawKey(leaf, thing)
		if key == failed {
			break
		}
		done[key] = !c.inLastWave(key)
	}
	var stand []*scrolls.Glyph
	for _, g := range was {
		if !done[g.Key] && !slices.ContainsFunc(next, func(n *scrolls.Glyph) bool { return n.Key == g.Key && reconcilers.CID(n) == reconcilers.CID(g) }) {
			stand = append(stand, g)
		}
	}
	for _, g := range next {
		if done[g.Key] || slices.ContainsFunc(was, func(o *scrolls.Glyph) bool { return o.Key == g.Key && reconcilers.CID(o) == reconcilers.CID(g) }) {
			stand = append(stand, g)
		}
	}
	return stand
}

// inLastWave says that a thing goes in the run's last wave: a directory that golem made.
func (c *failCase) inLastWave(key scrolls.Key) bool {
	return slices.ContainsFunc(c.before.Wave, func(t *reconcilers.Turn) bool { return t.Drop[key] != nil })
}

func glyphsOf(s *scrolls.Scroll, leaf string) []*scrolls.Glyph {
	for _, l := range s.Leaves {
		if l.Path == leaf {
			return l.Glyphs
		}
	}
	return nil
}

// standing is the scroll that says of every leaf what has to stand after the second run.
func (c *failCase) standing(report *apply.Report) *scrolls.Scroll {
	s := &scrolls.Scroll{Name: "law", Policies: map[string]scrolls.Policy{}, Dir: "/law"}
	for _, r := range report.Leaves {
		if r.Leaf == plan.WaveLeaf {
			continue
		}
		if glyphs := c.stands(r.Leaf, r); len(glyphs) > 0 {
			s.Leaves = append(s.Leaves, &scrolls.Leaf{Path: r.Leaf, Policy: scrolls.BuiltinPolicy, Glyphs: glyphs})
		}
	}
	slices.SortFunc(s.Leaves, func(a, b *scrolls.Leaf) int { return strings.Compare(a.Path, b.Path) })
	return s
}

// TestLawFailures: whatever fails, each leaf ends as its policy says and no leaf touches
// another; host and journal agree after every run; a run without failures then settles,
// to the host that the last scroll alone makes; and destroy gives the host back.
func TestLawFailures(t *testing.T) {
	t.Parallel()
	most, tried, failed := 100, 0, false
	if os.Getenv("GOLEM_SOAK") != "" {
		most = 10000
	}
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		if tried++; tried > most && !failed { // one that failed is tried until it is small
			return
		}
		defer func() { failed = failed || t.Failed() }()
		failLaw(t, seen)
	})
	for _, what := range []string{"settled", "rolled_back", "kept", "stuck", "retried", "hung", "trigger", "check", "goes"} {
		if seen[what] == 0 && !t.Failed() && tried >= most {
			t.Errorf("no draw ever saw %q: %v", what, seen)
		}
	}
	t.Log(seen)
}

func failLaw(t *rapid.T, seen map[string]int) {
	paths, found := drawPaths(t), rapid.IntRange(0, 1<<20).Draw(t, "found")
	h := newFailHost(t, paths, found)
	defer h.remove()
	was := h.print(t)
	c := &failCase{t: t, h: h, first: drawWish(t, paths), second: drawWish(t, paths)}
	c.was = c.first.load(t, h.dir)
	t.Logf("first: %s", describe(c.was))
	h.settle(t, c.first, c.was)
	c.next = c.second.load(t, h.dir)
	t.Logf("second: %s\n%v", describe(c.next), c.second.knobs)
	c.before = h.look(t, c.next)
	c.drawTroubles()

	report, err := h.run(t, c.second, c.next, c.troubles...)
	t.Logf("%v %s %+v", err, report.Outcome, failures(report))
	for _, tr := range c.troubles {
		t.Logf("trouble: %s", tr)
	}
	c.reported(report, err)
	c.note(report, seen)
	c.stood(paths, found, report)
	c.agrees(report)
	dead := c.anyStuck()
	if dead && rapid.Bool().Draw(t, "it does not come back the next time either") {
		dead = c.stays()
	}

	last, lastWish := c.next, c.second
	if rapid.Bool().Draw(t, "another scroll") {
		lastWish = drawWish(t, paths)
		last = lastWish.load(t, h.dir)
		t.Logf("last: %s", describe(last))
	}
	r := h.settle(t, lastWish, last)
	if (r.Recovered != nil) != dead {
		t.Fatalf("after %v, the next run recovered %+v", err, r.Recovered)
	}
	if p := h.look(t, last); !p.Empty() {
		t.Fatalf("another run finds something to do:\n%s", planText(t, p))
	}
	c.alone(paths, found, last, lastWish)
	h.settle(t, nil, nil)
	h.gives(t, "destroy does not give the host back", was, h.print(t))
}

// reported fails unless the report says of each leaf what is so.
func (c *failCase) reported(report *apply.Report, err error) {
	t, stuck, settled, kept := c.t, false, 0, 0
	for _, r := range report.Leaves {
		if r.Leaf == plan.WaveLeaf {
			continue
		}
		want := c.wantOutcome(r.Leaf)
		if r.Outcome != want || (len(r.Failures) > 0) != (want != apply.Settled) {
			t.Fatalf("%s is %s, want %s: %+v", r.Leaf, r.Outcome, want, r.Failures)
		}
		late := !slices.ContainsFunc(c.changing(r.Leaf), func(thing string) bool { return !c.inLastWave(lawKey(r.Leaf, thing)) })
		if n := c.wantAttempts(r.Leaf); !late && !c.barred(r.Leaf) && len(r.Glyphs) > 0 && r.Attempts != n {
			t.Fatalf("%s after %d attempts, want %d", r.Leaf, r.Attempts, n)
		}
		stuck = stuck || c.stuck(r.Leaf)
		if c.stuck(r.Leaf) && !slices.ContainsFunc(r.Failures, func(f apply.Failure) bool { return strings.HasPrefix(f.Message, "take back ") }) {
			t.Fatalf("%s could not be taken back, and the report does not say so: %+v", r.Leaf, r.Failures)
		}
		switch want {
		case apply.Settled:
			settled++
		case apply.Kept:
			kept++
		}
		for _, g := range r.Glyphs {
			if r.Outcome == apply.Settled && g.Outcome != "applied" || r.Outcome == apply.RolledBack && g.Outcome == "applied" {
				t.Fatalf("%s is %s, and its %s is %s", r.Leaf, r.Outcome, g.Key, g.Outcome)
			}
		}
	}
	if err != nil || stuck && report.Outcome == apply.Settled {
		t.Fatalf("a step could not be taken back: %v; the run is %s: %v", stuck, report.Outcome, err)
	}
	for _, tr := range c.troubles {
		if always := strings.Contains("fgkthap", tr.thing); always && tr.hits == 0 && c.wantOutcome(tr.leaf) == apply.Settled {
			t.Fatalf("it never came to this: %s", tr)
		}
	}
	rev := c.h.lastRevision(t)
	for _, leaf := range rev.Leaves {
		if r := leafOfReport(report, leaf.Leaf); r == nil || r.Outcome != leaf.Outcome {
			t.Fatalf("revision %d says that %s is %s; the report %+v", rev.Number, leaf.Leaf, leaf.Outcome, r)
		}
	}
	want := state.Outcome("partial")
	switch {
	case settled == len(report.Leaves)-waves(report):
		want = apply.Settled
	case settled+kept == 0:
		want = apply.RolledBack
	}
	if report.Outcome != want || rev.Outcome != want {
		t.Fatalf("the run is %s, and its revision %s; want %s", report.Outcome, rev.Outcome, want)
	}
}

func waves(report *apply.Report) int {
	if leafOfReport(report, plan.WaveLeaf) != nil {
		return 1
	}
	return 0
}

func leafOfReport(report *apply.Report, path string) *apply.LeafReport {
	for _, r := range report.Leaves {
		if r.Leaf == path {
			return r
		}
	}
	return nil
}

// note counts what was met.
func (c *failCase) note(report *apply.Report, seen map[string]int) {
	for _, r := range report.Leaves {
		seen[string(r.Outcome)]++
		if c.second.leaves[r.Leaf] == nil && r.Outcome == apply.RolledBack {
			seen["goes"]++
		}
	}
	for _, tr := range c.troubles {
		for what, yes := range map[string]bool{
			"stuck": tr.backHits > 0, "retried": tr.hits > 1 || tr.hits == 1 && !tr.over, "hung": tr.hangs && tr.hits > 0,
			tr.thing: tr.hits > 0,
		} {
			if yes {
				seen[what]++
			}
		}
	}
}

// less takes out of a fingerprint what belongs to leaves whose step could not be taken
// back, and what such a leaf may share with others.
func (c *failCase) less(prints map[string]string) map[string]string {
	prints = maps.Clone(prints)
	for _, leaf := range c.leaves() {
		if c.stuck(leaf) {
			maps.DeleteFunc(prints, func(name, _ string) bool {
				return strings.Contains(name, filepath.Base(leaf)) || name == "/etc/hosts" || name == "package all-c" || strings.Contains(name, "/.golem-") ||
					strings.HasPrefix(name, "/usr/local") || strings.HasSuffix(name, ".wants")
			})
		}
	}
	return prints
}

// stood fails unless the host is what the leaves' outcomes say: what a host is to which
// the first scroll was applied, and then one of just what has to stand.
func (c *failCase) stood(paths []string, found int, report *apply.Report) {
	t := c.t
	ref := newFailHost(t, paths, found)
	defer ref.remove()
	ref.settle(t, c.first, c.was)
	standing := c.standing(report)
	ref.settle(t, nil, standing)
	if diff := compare(c.less(ref.print(t)), c.less(c.h.print(t))); diff != "" {
		t.Fatalf("the host is not what has to stand, which is%s\n%s", describe(standing), diff)
	}
	if want, have := ref.inForceNow(t), c.h.inForceNow(t); !c.anyStuck() && !maps.Equal(want, have) {
		t.Fatalf("in force are\n%v, want\n%v", have, want)
	}
	for _, r := range report.Leaves {
		c.heard(r, ref)
	}
}

func (c *failCase) anyStuck() bool { return slices.ContainsFunc(c.leaves(), c.stuck) }

// heard fails unless a unit that runs and is told of changes has read its file as it is.
func (c *failCase) heard(r *apply.LeafReport, ref *failHost) {
	unit := filepath.Base(r.Leaf) + "-u.service"
	l := c.second.leaves[r.Leaf]
	refire := slices.ContainsFunc(c.of(r.Leaf), func(tr *trouble) bool { return tr.thing == "trigger" && tr.backHits > 0 })
	if r.Outcome == apply.Kept || l == nil || l.variant["u"] == "" || l.trigger == "" || c.h.sd.Active(unit) != "active" || c.stuck(r.Leaf) || refire {
		return
	}
	was := c.h.read[unit]
	c.h.reads(unit)
	if now := c.h.read[unit]; was != now && was != ref.read[unit] {
		c.t.Fatalf("%s is %s: %s has read %s, and its file is %s", r.Leaf, r.Outcome, unit, was, now)
	}
	c.h.read[unit] = was
}

// agrees fails unless the journal says of the host what is so: what settled is at rest,
// what was taken back is to be done as before, and nothing has drifted.
func (c *failCase) agrees(report *apply.Report) {
	t := c.t
	if c.anyStuck() {
		if len(c.h.snapshot(t).Owed) == 0 || c.h.snapshot(t).Dead != nil {
			t.Fatal("the receipt of a step that could not be taken back is lost")
		}
		return
	}
	if snap := c.h.snapshot(t); snap.Dead != nil || len(snap.Owed) > 0 {
		t.Fatal("the next run has something to recover")
	}
	ops := func(p *plan.Plan, leaf string) (all []string) {
		for _, ch := range p.Changes() {
			if ch.Drift {
				t.Fatalf("%s has drifted: %s", ch.Key, ch.Reason)
			}
			if ch.Leaf == leaf {
				all = append(all, fmt.Sprintf("%s %s", ch.Op, ch.Key))
			}
		}
		return all
	}
	after := c.h.look(t, c.next)
	for _, r := range report.Leaves {
		want, have := ops(c.before, r.Leaf), ops(after, r.Leaf)
		if r.Outcome == apply.Settled {
			want = nil
		}
		if r.Outcome == apply.Kept {
			want = slices.DeleteFunc(want, func(op string) bool { return !slices.Contains(have, op) })
		}
		if !slices.Equal(want, have) {
			t.Fatalf("%s is %s; to do are %v, want %v", r.Leaf, r.Outcome, have, want)
		}
	}
}

// stays runs once more while the way back still fails: no receipt is lost, and the run says
// that it is not whole. It says whether there is still something to recover.
func (c *failCase) stays() bool {
	t := c.t
	for _, tr := range c.troubles {
		tr.times, tr.back = 0, 1000
	}
	c.h.recovering = true
	report, err := c.h.run(t, c.second, c.next, c.troubles...)
	c.h.recovering = false
	back := slices.ContainsFunc(c.troubles, func(tr *trouble) bool { return tr.back < 1000 })
	owed := len(c.h.snapshot(t).Owed) > 0
	if err != nil || back != owed || back && !report.Partial() {
		t.Fatalf("the way back fails again, %v, and is owed, %v: %v %s %+v", back, owed, err, report.Outcome, failures(report))
	}
	return owed
}

// alone fails unless the host is what the last scroll alone would make of it, and every
// unit has heard of what changed.
func (c *failCase) alone(paths []string, found int, last *scrolls.Scroll, w *wish) {
	t := c.t
	ref := newFailHost(t, paths, found)
	defer ref.remove()
	ref.settle(t, w, last)
	c.h.gives(t, "the way there shows", ref.print(t), c.h.print(t))
	if want, have := ref.inForceNow(t), c.h.inForceNow(t); !maps.Equal(want, have) {
		t.Fatalf("in force are\n%v, want\n%v", have, want)
	}
	if w != c.second {
		return
	}
	for path, l := range w.leaves {
		unit := filepath.Base(path) + "-u.service"
		if l.variant["u"] == "" || l.trigger == "" || c.h.sd.Active(unit) != "active" || c.first.text(path, "f") == c.second.text(path, "f") {
			continue
		}
		was := c.h.read[unit]
		c.h.reads(unit)
		if now := c.h.read[unit]; was != now {
			t.Fatalf("in the end %s has read %s, and its file is %s", unit, was, now)
		}
	}
}

// gives compares two fingerprints; a unit that golem stopped it does not start again.
func (h *failHost) gives(t *rapid.T, what string, want, got map[string]string) {
	for name := range want {
		if strings.HasPrefix(name, "unit ") && got[name] == "" {
			want[name], got[name] = "", ""
		}
	}
	if diff := compare(want, got); diff != "" {
		t.Fatalf("%s:\n%s", what, diff)
	}
}
