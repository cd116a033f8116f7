package apply_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"golem/apply"
	"golem/plan"
	"golem/scrolls"
	"golem/state"
)

// applyOnly applies what of a scroll some patterns name.
func (h *lawHost) applyOnly(s *scrolls.Scroll, lineage string, targets ...string) (*apply.Report, error) {
	return h.applyAs(context.Background(), apply.Options{Scroll: s, Lineage: lineage, Choice: plan.MakeChoice(targets, nil)}, nil)
}

// mustApplyOnly is applyOnly where nothing is in the way.
func (h *lawHost) mustApplyOnly(t tester, s *scrolls.Scroll, targets ...string) *apply.Report {
	report, err := h.applyOnly(s, "run", targets...)
	if err != nil || report.Partial() {
		t.Fatalf("apply --target %q: %v %+v", targets, err, failures(report))
	}
	return report
}

// declared lists what the newest revision of a lineage declares: leaves and keys in order.
func (h *lawHost) declared(t tester, lineage string) []string {
	r, err := state.Read(filepath.Join(h.dir, "journal", "planroom.db"), state.Options{Root: h.root})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := r.Revisions(lineage)
	if err != nil {
		t.Fatal(err)
	}
	rev, err := r.Revision(lineage, len(all))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, leaf := range rev.Declared {
		for _, g := range leaf.Glyphs {
			lines = append(lines, fmt.Sprintf("%s %s %v", leaf.Leaf, g.Key, g.Attrs))
		}
		lines = append(lines, fmt.Sprintf("%s has %d checks", leaf.Leaf, len(leaf.Checks)))
	}
	return lines
}

func TestATargetLeavesAllElseAsItIs(t *testing.T) {
	h := hostWith(t, map[string]string{"/etc/a": "found a", "/etc/b": "found b", "/etc/gone": "found"})
	found := h.fingerprint(t, true)
	h.mustApply(t, scrollOf(leafOf("one", fileGlyph("/etc/a", "a1")), leafOf("two", fileGlyph("/etc/b", "b1"), fileGlyph("/etc/gone", "g1"))))
	h.write(t, "/etc/b", "edited by hand")
	next := func() *scrolls.Scroll {
		return scrollOf(leafOf("one", fileGlyph("/etc/a", "a2")), leafOf("two", fileGlyph("/etc/b", "b2"), fileGlyph("/etc/new", "n2")))
	}
	report := h.mustApplyOnly(t, next(), "one")
	if h.read(t, "/etc/a") != "a2" || h.read(t, "/etc/b") != "edited by hand" || h.read(t, "/etc/gone") != "g1" {
		t.Errorf("a %q, b %q, gone %q", h.read(t, "/etc/a"), h.read(t, "/etc/b"), h.read(t, "/etc/gone"))
	}
	if len(report.Leaves) != 1 || report.Leaves[0].Leaf != "one" {
		t.Errorf("it reports %s", outcomesOf(report))
	}
	want := []plan.LeftKey{
		{Leaf: "two", Key: "file:/etc/b", InForce: true}, {Leaf: "two", Key: "file:/etc/new"}, {Leaf: "two", Key: "file:/etc/gone", InForce: true},
	}
	if !slices.Equal(report.LeftOut.Glyphs, want) {
		t.Errorf("left out: %+v", report.LeftOut.Glyphs)
	}
	says(t, text(t, report), "Left out: 3 glyphs stay, as they are: two.\n")
	says(t, planText(t, report.Plan), "Left out: 3 glyphs stay, as they are: two.\n")
	wantDeclared := []string{
		"one file:/etc/a map[content:a2 path:/etc/a]", "one has 0 checks",
		"two file:/etc/b map[content:b1 path:/etc/b]", "two file:/etc/gone map[content:g1 path:/etc/gone]", "two has 0 checks",
	}
	if got := h.declared(t, "run"); !slices.Equal(got, wantDeclared) {
		t.Errorf("the revision declares %q", got)
	}
	h.mustApplyOnly(t, next(), "file:/etc/gone", "file:/etc/n*")
	if h.read(t, "/etc/gone") != "found" || h.read(t, "/etc/new") != "n2" || h.read(t, "/etc/b") != "edited by hand" {
		t.Errorf("gone %q, new %q, b %q", h.read(t, "/etc/gone"), h.read(t, "/etc/new"), h.read(t, "/etc/b"))
	}
	h.mustApply(t, nil)
	h.write(t, "/etc/b", "found b")
	if diff := compare(timeless(found), timeless(h.fingerprint(t, true))); diff != "" {
		t.Errorf("it was not given back:\n%s", diff)
	}
	h.check(t)
}

// timeless leaves the one file out whose time the test itself changed.
func timeless(prints map[string]string) map[string]string {
	delete(prints, "/etc/b")
	return prints
}

func TestAnExcludeIsAllButThat(t *testing.T) {
	h := hostWith(t, nil)
	s := func() *scrolls.Scroll {
		return scrollOf(leafOf("net/dns", fileGlyph("/etc/a", "a")), leafOf("net/ntp", fileGlyph("/etc/b", "b")), leafOf("web", fileGlyph("/etc/c", "c")))
	}
	report, err := h.applyAs(context.Background(), apply.Options{Scroll: s(), Lineage: "run", Choice: plan.MakeChoice([]string{"net", "web"}, []string{"net/n*"})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := outcomesOf(report); got != "net/dns settled, web settled" {
		t.Errorf("it reports %s", got)
	}
	_, err = h.applyAs(context.Background(), apply.Options{Lineage: "run", Choice: plan.MakeChoice(nil, []string{"net/dns"})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if h.read(t, "/etc/a") != "a" || len(h.snapshot(t).Applied) != 1 {
		t.Errorf("a destroy that excludes net/dns left %+v", h.snapshot(t).Applied)
	}
}

// What a choice names in vain is a mistake, and touches nothing.
func TestAChoiceOfNothingIsRefused(t *testing.T) {
	h := hostWith(t, nil)
	s := func() *scrolls.Scroll { return scrollOf(leafOf("one", fileGlyph("/etc/a", "a"))) }
	for _, way := range []struct {
		targets, excludes []string
	}{
		{[]string{"two"}, nil},
		{[]string{"one", "file:/etc/b"}, nil},
		{nil, []string{"file:/etc/*.conf"}},
		{[]string{"on"}, nil},
		{[]string{"one/a"}, nil},
		{[]string{"[a"}, nil},
		{[]string{""}, nil},
		{[]string{"one"}, []string{"one"}},
	} {
		_, err := h.applyAs(context.Background(), apply.Options{Scroll: s(), Lineage: "run", Choice: plan.MakeChoice(way.targets, way.excludes)}, nil)
		if err == nil || errors.As(err, new(*apply.TouchedError)) {
			t.Errorf("%+v: %v", way, err)
		}
	}
	if _, err := os.Stat(h.root + "/etc/a"); err == nil || h.revision(t, "run") != 0 {
		t.Error("something was done")
	}
}

// Two layers on one path of which one is chosen: the other stays at what was applied, and
// keeps its place.
func TestALayerThatIsLeftOutStandsAtItsOwnVersion(t *testing.T) {
	line := func(match, text string) *scrolls.Glyph {
		return glyph("line", scrolls.Attrs{"path": "/etc/hosts", "match": match, "line": text})
	}
	h := hostWith(t, map[string]string{"/etc/hosts": "localhost\n"})
	found := h.fingerprint(t, true)
	h.mustApply(t, scrollOf(leafOf("a", line("^A", "A1")), leafOf("b", line("^B", "B1"))))
	next := func() *scrolls.Scroll { return scrollOf(leafOf("a", line("^A", "A2")), leafOf("b", line("^B", "B2"))) }
	h.mustApplyOnly(t, next(), "a")
	if got := h.read(t, "/etc/hosts"); got != "localhost\nA2\nB1\n" {
		t.Errorf("after a: %q", got)
	}
	h.mustApplyOnly(t, next(), "b")
	if got := h.read(t, "/etc/hosts"); got != "localhost\nA2\nB2\n" {
		t.Errorf("after b: %q", got)
	}
	if report := h.mustApply(t, next()); !report.Plan.Empty() {
		t.Errorf("after both there is still something to do: %s", changes(report))
	}
	// A new first layer goes beneath the one that is left out, as the scroll has it.
	more := func() *scrolls.Scroll {
		s := next()
		s.Leaves = slices.Insert(s.Leaves, 0, leafOf("first", line("^F", "F")))
		return s
	}
	h.mustApplyOnly(t, more(), "first")
	if report := h.mustApply(t, more()); !report.Plan.Empty() {
		t.Errorf("after the first there is still something to do: %s", changes(report))
	}
	h.mustApplyOnly(t, nil, "a", "first")
	if got := h.read(t, "/etc/hosts"); got != "localhost\nB2\n" {
		t.Errorf("without a: %q", got)
	}
	h.mustApply(t, nil)
	if diff := compare(found, h.fingerprint(t, true)); diff != "" {
		t.Errorf("it was not given back:\n%s", diff)
	}
}

// A base that would push out one that is left out is refused: that one was not to go.
func TestABaseThatWouldPushOutWhatIsLeftOutIsRefused(t *testing.T) {
	h := hostWith(t, map[string]string{"/etc/target": "t"})
	h.mustApply(t, scrollOf(leafOf("a", glyph("link", scrolls.Attrs{"path": "/etc/x", "target": "/etc/target"}))))
	next := func() *scrolls.Scroll { return scrollOf(leafOf("a", fileGlyph("/etc/x", "x"))) }
	_, err := h.applyOnly(next(), "run", "file:/etc/x")
	if d := new(scrolls.Diagnostics); !errors.As(err, &d) {
		t.Fatalf("it is not refused: %v", err)
	}
	if got, err := os.Readlink(h.root + "/etc/x"); err != nil || got != "/etc/target" {
		t.Errorf("the link is %q, %v", got, err)
	}
	h.mustApplyOnly(t, next(), "a")
	if h.read(t, "/etc/x") != "x" {
		t.Error("both together are not applied")
	}
}

// A trigger and a check of what is left out become due, and stay so for the run that takes
// them in.
func TestWhatIsDueOfWhatIsLeftOutStaysDue(t *testing.T) {
	h := newUnitHost(t)
	h.write(t, "/etc/web.conf", "found")
	ok := commandCheck("test", "-e", "/")
	scroll := func(text string) *scrolls.Scroll {
		conf, units := leafOf("conf", fileGlyph("/etc/web.conf", text)), leafOf("units", service("web.service", "state", "running", "reload_on", []any{"file:/etc/web.conf"}))
		units.Checks = []*scrolls.Glyph{ok}
		conf.Checks = []*scrolls.Glyph{ok}
		return scrollOf(conf, units)
	}
	h.mustApply(t, scroll("one"))
	report := h.mustApplyOnly(t, scroll("two"), "conf")
	if n := len(h.snapshot(t).Due); n != 1 || len(report.Plan.Due) != 0 || len(report.Plan.Checks) != 1 {
		t.Fatalf("%d due in the journal, planned %v, checks %v", n, report.Plan.Due, report.Plan.Checks)
	}
	if want := []string{"service:web.service reload"}; !slices.Equal(report.LeftOut.Due, want) {
		t.Errorf("told as due: %q", report.LeftOut.Due)
	}
	says(t, text(t, report), "Due, and left to a run that takes it in: service:web.service reload.\n")
	// Another run that leaves it out leaves it due.
	h.mustApplyOnly(t, scroll("three"), "file:/etc/web.conf")
	if n := len(h.snapshot(t).Due); n != 1 {
		t.Fatalf("%d due in the journal", n)
	}
	report = h.mustApplyOnly(t, scroll("three"), "units")
	if len(report.Plan.Due) != 1 || len(report.Plan.Checks) != 1 || len(h.snapshot(t).Due) != 0 {
		t.Errorf("fires %v, makes %v, due afterwards %+v", report.Plan.Due, report.Plan.Checks, h.snapshot(t).Due)
	}
}

// A leaf of which something is left out is not checked yet, and keeps the checks that it
// had; with the last of it applied it is.
func TestALeafIsCheckedOnceItIsWhole(t *testing.T) {
	h := hostWith(t, nil)
	scroll := func() *scrolls.Scroll {
		leaf := leafOf("a", fileGlyph("/etc/a", "a"), fileGlyph("/etc/b", "b"))
		leaf.Checks = []*scrolls.Glyph{commandCheck("test", "-e", h.root+"/etc/b")}
		return scrollOf(leaf)
	}
	report := h.mustApplyOnly(t, scroll(), "file:/etc/a")
	if len(report.Plan.Checks) != 0 || len(report.LeftOut.Due) != 1 || len(h.snapshot(t).Due) != 1 {
		t.Fatalf("checks %v, left due %q, in the journal %+v", report.Plan.Checks, report.LeftOut.Due, h.snapshot(t).Due)
	}
	report = h.mustApplyOnly(t, scroll(), "file:/etc/b")
	if len(report.Plan.Checks) != 1 || len(h.snapshot(t).Due) != 0 {
		t.Errorf("checks %v, due %+v", report.Plan.Checks, h.snapshot(t).Due)
	}
	if got := h.declared(t, "run"); got[len(got)-1] != "a has 1 checks" {
		t.Errorf("the revision declares %q", got)
	}
}

// A glyph and the key whose record it takes over go together: who names one names both.
func TestAChoiceKeepsWhatMovedTogether(t *testing.T) {
	for _, way := range []struct {
		targets, excludes []string
		moves             bool
	}{
		{[]string{"command:new"}, nil, true},
		{[]string{"command:old"}, nil, true},
		{[]string{"a"}, nil, true},
		{[]string{"b"}, nil, false},
		{nil, []string{"command:old"}, false},
		{nil, []string{"command:new"}, false},
		{nil, []string{"b"}, true},
	} {
		h := newProgramHost(t)
		run := func(label string) *scrolls.Glyph { return command(label, "run", "put /x one", "undo", "take /x") }
		h.mustApply(t, scrollOf(leafOf("a", run("old")), leafOf("b", fileGlyph("/etc/b", "b"))))
		next := run("new")
		next.MovedFrom = run("old").Key
		s := scrollOf(leafOf("a", next), leafOf("b", fileGlyph("/etc/b", "b2")))
		report, err := h.applyAs(context.Background(), apply.Options{Scroll: s, Lineage: "run", Choice: plan.MakeChoice(way.targets, way.excludes)}, nil)
		if err != nil || report.Partial() {
			t.Fatalf("%+v: %v %v", way, err, failures(report))
		}
		var keys []string
		for _, a := range h.snapshot(t).Applied {
			keys = append(keys, string(a.Key))
		}
		if slices.Contains(keys, "command:new") != way.moves || slices.Contains(keys, "command:old") == way.moves {
			t.Errorf("%+v: in force are %q", way, keys)
		}
	}
}

// applied is what is in force and what is on record, without the steps that did it.
func (h *lawHost) applied(t tester) (map[scrolls.Key]string, map[string]string) {
	snap := h.snapshot(t)
	keys, records := map[scrolls.Key]string{}, map[string]string{}
	for _, a := range snap.Applied {
		keys[a.Key] = fmt.Sprintf("%s %s %v %s", a.Lineage, a.Leaf, a.Glyph.Attrs, a.Resource)
	}
	for name, r := range snap.Records {
		var layers []scrolls.Key
		for _, l := range r.Layers {
			layers = append(layers, l.Key)
		}
		records[name] = fmt.Sprint(layers)
	}
	return keys, records
}

// TestLawTargetedRuns: choosing everything is choosing nothing; runs that between them
// choose everything end where one run ends, but for what is in each other's way; nothing
// that is not chosen changes in the journal; and destroy gives the host back.
func TestLawTargetedRuns(t *testing.T) {
	lawChecks(t)
	rapid.Check(t, func(t *rapid.T) {
		one, many := twinsOf(t, drawTree(t))
		defer one.remove()
		defer many.remove()
		found := many.fingerprint(t, true)
		first := drawScroll(t, "law", everything)
		if one.run(t, first, "law") || many.run(t, first, "law") {
			return
		}
		next := drawScroll(t, "law", everything)
		many.runInParts(t, next)
		if one.run(t, next, "law") || many.run(t, next, "law") {
			// What is in the way of the one may be out of the other's.
			one.run(t, nil, "law")
			many.run(t, nil, "law")
		}
		if diff := compare(one.fingerprint(t, false), many.fingerprint(t, false)); diff != "" {
			t.Fatalf("in parts it ends elsewhere:\n%s", diff)
		}
		keys, records := one.applied(t)
		manyKeys, manyRecords := many.applied(t)
		if !reflect.DeepEqual(keys, manyKeys) || !reflect.DeepEqual(records, manyRecords) {
			t.Fatalf("the journals differ:\n%v\n%v\n%v\n%v", keys, manyKeys, records, manyRecords)
		}
		many.run(t, nil, "law")
		if diff := compare(found, many.fingerprint(t, true)); diff != "" {
			t.Fatalf("destroy did not give the host back:\n%s", diff)
		}
		many.check(t)
	})
}

// runInParts applies a scroll in random parts. What is refused must change nothing.
func (h *lawHost) runInParts(t *rapid.T, s *scrolls.Scroll) {
	for _, part := range h.drawParts(t, s, "law") {
		before := h.fingerprint(t, true)
		report := h.applyPart(t, s, "law", part)
		if report != nil && report.Partial() {
			t.Fatalf("apply %q: %+v", part, failures(report))
		}
		if report == nil {
			if diff := compare(before, h.fingerprint(t, true)); diff != "" {
				t.Fatalf("a refused part changed the host:\n%s", diff)
			}
		}
	}
}

// escaped are keys as patterns: what has a meaning in one stands for itself.
func escaped(keys []string) []string {
	var all []string
	for _, key := range keys {
		text := ""
		for _, c := range []byte(key) {
			if c == '*' || c == '?' || c == '\\' || c == '[' {
				text += `\`
			}
			text += string([]byte{c})
		}
		all = append(all, text)
	}
	return all
}

// leftAlone fails if the journal has something else of a key than before, or it goes or
// comes, though it was not chosen.
func (h *lawHost) leftAlone(t *rapid.T, was *state.Snapshot, part []string) {
	is := map[scrolls.Key]state.Applied{}
	for _, a := range h.snapshot(t).Applied {
		is[a.Key] = a
	}
	for _, a := range was.Applied {
		if slices.Contains(part, string(a.Key)) {
			continue
		}
		now, ok := is[a.Key]
		if !ok || now.Leaf != a.Leaf || !reflect.DeepEqual(now.Glyph, a.Glyph) {
			t.Fatalf("%s was left out, and is %+v, not %+v", a.Key, now, a)
		}
		delete(is, a.Key)
	}
	for key := range is {
		if !slices.Contains(part, string(key)) {
			t.Fatalf("%s was left out, and came", key)
		}
	}
}
