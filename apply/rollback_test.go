package apply_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"golem/apply"
	"golem/scrolls"
	"golem/state"
)

// back rolls a lineage back; 0 is the settled revision before the current one.
func (h *lawHost) back(lineage string, to int) (*apply.Report, error) {
	return h.applyAs(context.Background(), apply.Options{Lineage: lineage, Back: &apply.Back{To: to}}, nil)
}

// mustGoBack rolls back, which must settle, and returns the revision it went to.
func (h *lawHost) mustGoBack(t tester, to int) *apply.Report {
	r, err := h.back("run", to)
	if err != nil || r.Partial() {
		t.Fatalf("roll back to %d: %v %+v", to, err, failures(r))
	}
	return r
}

// content fails unless a file holds a text; with "" there must be no file.
func (h *lawHost) content(t *testing.T, name, want string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(h.root, name))
	if string(data) != want || errors.Is(err, fs.ErrNotExist) != (want == "") {
		t.Fatalf("%s holds %q, want %q (%v)", name, data, want, err)
	}
}

// A fakeHistory is revisions without anything in them.
type fakeHistory []*state.Revision

func (h fakeHistory) Revisions(string) ([]*state.Revision, error) { return h, nil }
func (h fakeHistory) StepsOf(int64) ([]*state.Step, error)        { return nil, nil }
func (h fakeHistory) Revision(_ string, n int) (*state.Revision, error) {
	return h[n-1], nil
}

// What a rollback without a revision goes to: history is written as a (apply), p
// (partial), r (rolled back whole), c (recovered), d (destroy), and a digit for a rollback
// to that revision; B and the like for one that came to no good end; v and w for a part that
// went back to 2 and to 3.
func TestRollbackGoesToTheSettledRevisionBeforeTheCurrentOne(t *testing.T) {
	for _, c := range []struct {
		history     string
		interrupted bool
		want        int
	}{
		{"", false, 0},
		{"a", false, 0},
		{"aa", false, 1},
		{"aaa", false, 2},
		{"apa", false, 1}, // a revision that did not settle is no place to go back to
		{"aap", false, 2},
		{"aar", false, 2},
		{"aac", false, 2},
		{"paa", false, 2},
		{"pp", false, 0},
		{"aaa2", false, 1}, // again: one further back, and not to what was taken back
		{"aaa21", false, 0},
		{"aaa2a", false, 2},
		{"aaa1a", false, 1},
		{"aaa1aa", false, 5},
		{"aaa1a5", false, 1},
		{"aad", false, 2},
		{"aad2", false, 1},
		{"aaaB", false, 2}, // it did not arrive: the same place again
		{"aaav", false, 2}, // the rest of what began to go back
		{"aaavv", false, 2},
		{"aaav2", false, 1},
		{"aaaav2w", false, 1}, // from 2, where all went, a part went to 3
		{"aaava", false, 4},   // there is nothing else like it to go back to
		{"aaava4", false, 2},
		{"aa", true, 2}, // the interrupted run is a revision before the rollback begins
		{"a", true, 1},
		{"aaa2", true, 2},
	} {
		var h fakeHistory
		for i, r := range c.history {
			rev := &state.Revision{Lineage: "web", Number: i + 1, Outcome: apply.Settled, Run: state.Run{ID: int64(i + 1), Command: "apply"}}
			switch {
			case r == 'p':
				rev.Outcome = "partial"
			case r == 'r':
				rev.Outcome = apply.RolledBack
			case r == 'c':
				rev.Outcome = "recovered"
			case r == 'd':
				rev.Run.Command = "destroy"
			case r == 'v', r == 'w':
				rev.Run.Command, rev.Run.Target = state.CommandRollback, int(r-'v')+2
				rev.Declared = []state.Declared{{Leaf: "web", Glyphs: []*scrolls.Glyph{fileGlyph(fmt.Sprintf("/of/%d", i+1), "")}}}
			case r >= '1' && r <= '9':
				rev.Run.Command, rev.Run.Target = state.CommandRollback, int(r-'0')
				rev.Declared = h[rev.Run.Target-1].Declared
			case r >= 'A' && r <= 'Z':
				rev.Run.Command, rev.Run.Target, rev.Outcome = state.CommandRollback, int(r-'A')+1, "partial"
			}
			h = append(h, rev)
		}
		target, err := apply.FindTarget(h, "web", apply.Back{}, c.interrupted)
		var none *apply.NoTargetError
		switch {
		case c.want == 0 && !errors.As(err, &none):
			t.Errorf("%q: %v %v, want no target", c.history, target, err)
		case c.want != 0 && (err != nil || target.Revision != c.want):
			t.Errorf("%q: %+v %v, want %d", c.history, target, err, c.want)
		}
	}
}

func TestRollbackLeavesTheFoundStateUntouched(t *testing.T) {
	h := newLawHost(t)
	defer h.remove()
	h.write(t, "/a", "found")
	for _, text := range []string{"v1", "v2", "v3"} {
		h.mustApply(t, scrollOf(leafOf("one", fileGlyph("/a", text)), leafOf("two", fileGlyph("/b", text))))
	}
	h.mustApply(t, scrollOf(leafOf("one", fileGlyph("/a", "v4"))))
	r := h.mustGoBack(t, 2)
	says(t, planText(t, r.Plan), "revision 4 → 5 · back to revision 2", "file:/a", "file:/b")
	h.content(t, "a", "v2")
	h.content(t, "b", "v2")
	if r := h.mustGoBack(t, 2); !r.Plan.Empty() {
		t.Errorf("a second rollback to the same revision finds something to do: %s", changes(r))
	}
	if r := h.mustGoBack(t, 0); r.Plan.Back != 1 { // 5 went back to 2, and 3 and 4 were taken back
		t.Errorf("then it goes back to %d", r.Plan.Back)
	}
	h.content(t, "a", "v1")
	if _, err := h.apply(nil, "run"); err != nil {
		t.Fatal(err)
	}
	h.content(t, "a", "found")
	h.content(t, "b", "")
	h.mustGoBack(t, 0) // and a destroy is a run like any other
	h.content(t, "a", "v1")
}

// A rollback is a run like any other: it needs no scroll, only the journal, and its leaves
// have the policy and the checks that they had.
func TestRollbackBringsPolicyAndChecksBack(t *testing.T) {
	h := newLawHost(t)
	defer h.remove()
	first := scrollOf(leafOf("one", fileGlyph("/a", "v1")))
	first.Leaves[0].Policy = scrolls.BuiltinPolicy
	first.Leaves[0].Policy.OnExhaust = "keep"
	first.Leaves[0].Policy.Retry.MaxAttempts = 7
	h.mustApply(t, first)
	second := scrollOf(leafOf("one", fileGlyph("/a", "v2")))
	second.Leaves[0].Policy = scrolls.BuiltinPolicy
	h.mustApply(t, second)
	r := h.mustGoBack(t, 0)
	if p := r.Plan.Leaves[0].Policy; p.OnExhaust != "keep" || p.Retry.MaxAttempts != 7 || p.Timeout != scrolls.BuiltinPolicy.Timeout {
		t.Errorf("the leaf's policy is %+v", p)
	}
}

// A leaf that was rolled back is still under the rules that it had: the revision has its
// glyphs with the checks and the policy that go with them.
func TestARevisionHasTheRulesOfTheGlyphsInForce(t *testing.T) {
	h := newLawHost(t)
	defer h.remove()
	first := scrollOf(leafOf("one", fileGlyph("/a", "v1")))
	first.Leaves[0].Checks = []*scrolls.Glyph{commandCheck("true")}
	h.mustApply(t, first)
	second := scrollOf(leafOf("one", fileGlyph("/a", "v2")), leafOf("two", fileGlyph("/b", "v2")))
	second.Leaves[0].Policy = scrolls.BuiltinPolicy
	second.Leaves[0].Policy.Retry.MaxAttempts = 1
	second.Leaves[0].Policy.OnExhaust = "rollback"
	second.Leaves[0].Policy.MaxRemoves = 7
	second.Leaves[0].Checks = []*scrolls.Glyph{commandCheck("false")}
	if r, err := h.apply(second, "run"); err != nil || r.Outcome != "partial" {
		t.Fatalf("%v %+v", err, r)
	}
	h.mustApply(t, scrollOf(leafOf("one", fileGlyph("/a", "v3"))))
	r := h.mustGoBack(t, 2)
	if len(r.Plan.Checks) != 1 || r.Plan.Checks[0].Glyph.Attrs["run"].([]any)[0] != "true" {
		t.Errorf("its checks are %+v", r.Plan.Checks)
	}
	if got := r.Plan.Leaves[0].Policy.MaxRemoves; got == 7 {
		t.Error("it is under the policy of the scroll that failed")
	}
	h.content(t, "a", "v1")
	h.content(t, "b", "v2")
}

// A stop that a rollback undoes is started: the unit, and what was stopped with it; also
// where its glyph is long gone. What somebody else stopped is left.
func TestRollbackStartsWhatGolemStopped(t *testing.T) {
	h := newUnitHost(t)
	h.ctl("start", "web.socket")
	h.ctl("start", "web.service")
	h.ctl("start", "plain.service")
	h.declare(service("filter.service", "enabled", true))
	was := h.Print()
	h.declare(service("filter.service", "enabled", true), service("web", "state", "stopped"), service("plain.service", "state", "stopped"))
	r := h.mustGoBack(t, 1)
	h.same("rolled back", was)
	says(t, planText(t, r.Plan), "start    web.service", "golem stopped it since the revision that this goes back to", "started again")
	says(t, text(t, r), "web.service    started")

	h.declare(service("filter.service", "enabled", true), service("web", "state", "stopped"))
	h.declare(service("filter.service", "enabled", true)) // left stopped, and on the ledger
	h.is("web.service", "inactive")
	h.mustGoBack(t, 1)
	h.same("rolled back from where the glyph is gone", was)

	h.declare(service("filter.service", "enabled", true), service("plain.service", "state", "running"))
	h.ctl("stop", "plain.service")
	h.mustGoBack(t, 1)
	h.is("plain.service", "inactive") // golem did not stop that
}

// A unit that was left stopped before the revision stays so: the rollback does not undo
// that stop.
func TestRollbackStartsNothingThatWasStoppedBefore(t *testing.T) {
	h := newUnitHost(t)
	h.ctl("start", "web.service")
	h.declare(service("web", "state", "stopped"))
	h.declare(service("filter.service", "enabled", true)) // revision 2
	h.declare(service("filter.service", "enabled", true), service("web", "state", "stopped"))
	h.mustGoBack(t, 2)
	h.is("web.service", "inactive")
}

// TestLawRollbackIsTheRevision: after S1 … Sn and a rollback to k the host is as Sk left
// it, the keys in force are those of Sk, and destroy still gives the first host back.
func TestLawRollbackIsTheRevision(t *testing.T) {
	lawChecks(t)
	rapid.Check(t, func(t *rapid.T) {
		h := drawHost(t)
		defer h.remove()
		found := h.fingerprint(t, true)
		var after []map[string]string
		var declared []*scrolls.Scroll
		for range rapid.IntRange(2, 4).Draw(t, "scrolls") {
			s := drawScroll(t, "law", everything)
			if before := len(h.revisions(t, "law")); !h.run(t, s, "law") && len(h.revisions(t, "law")) > before {
				after, declared = append(after, h.fingerprint(t, false)), append(declared, s)
			}
		}
		for range rapid.IntRange(1, 2).Draw(t, "rollbacks") {
			if len(after) == 0 {
				return
			}
			to := rapid.IntRange(1, len(after)).Draw(t, "to")
			was := h.fingerprint(t, true)
			r, err := h.back("law", to)
			var refused *scrolls.Diagnostics
			if errors.As(err, &refused) { // what the order of leaves does not allow
				if diff := compare(was, h.fingerprint(t, true)); diff != "" {
					t.Fatalf("a refused rollback changed the host:\n%s", diff)
				}
				continue
			}
			if err != nil || r.Partial() {
				t.Fatalf("roll back to %d: %v %+v", to, err, failures(r))
			}
			if diff := compare(after[to-1], h.fingerprint(t, false)); diff != "" {
				t.Fatalf("rolled back to %d, the host is not as that left it:\n%s", to, diff)
			}
			h.inForce(t, declared[to-1], "law")
		}
		h.run(t, nil, "law")
		if diff := compare(found, h.fingerprint(t, true)); diff != "" {
			t.Fatalf("destroy did not give the host back:\n%s", diff)
		}
		h.check(t)
	})
}

// TestLawRollbackOfUnits: units run, are enabled and masked as the revision left them,
// what golem stopped since included.
func TestLawRollbackOfUnits(t *testing.T) {
	unitLaw(t, func(t *rapid.T) {
		h := lawUnitHost(t, drawFound(t))
		stopped := map[string]bool{}
		var after []string
		for range rapid.IntRange(2, 3).Draw(t, "runs") {
			n := len(h.revisions(t, "run"))
			h.run(t, drawUnitScroll(t), stopped)
			if m := len(h.revisions(t, "run")); m > n {
				for len(after) < m {
					after = append(after, h.Print())
				}
			}
		}
		if len(after) == 0 {
			return
		}
		to := rapid.IntRange(1, len(after)).Draw(t, "to")
		t.Logf("roll back to %d", to)
		r, err := h.back("run", to)
		var wrong *scrolls.Diagnostics
		if errors.As(err, &wrong) || err == nil && r.Partial() {
			t.Skip("refused")
		}
		if err != nil {
			t.Fatal(err)
		}
		// A unit may run that golem had left stopped by then, and that has been started
		// since: nothing is declared of it. What ran then runs.
		sameBut(t, h.Print(), after[to-1], stopped)
		h.check(t)
	})
}

func (h *lawHost) revisions(t tester, lineage string) []*state.Revision {
	r, err := state.Read(filepath.Join(h.dir, "journal", "planroom.db"), state.Options{Root: h.root})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := r.Revisions(lineage)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
