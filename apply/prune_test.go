package apply_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"golem/apply"
	"golem/scrolls"
	"golem/state"
)

// withJournal gives the host's journal to do.
func (h *lawHost) withJournal(t tester, do func(*state.Journal) error) error {
	j, err := state.Open(filepath.Join(h.dir, "journal", "planroom.db"), state.Options{Root: h.root, LockTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	err = do(j)
	if closed := j.Close(); closed != nil {
		t.Fatal(closed)
	}
	return err
}

func (h *lawHost) mustPrune(t tester, before time.Time) *apply.Pruned {
	var did *apply.Pruned
	err := h.withJournal(t, func(j *state.Journal) (err error) {
		did, err = apply.Prune(j, before)
		return err
	})
	if err != nil {
		t.Fatalf("prune: %v", err)
	}
	return did
}

// numbers are those of a lineage's revisions that there are.
func (h *lawHost) numbers(t tester, lineage string) []int {
	r, err := state.Read(filepath.Join(h.dir, "journal", "planroom.db"), state.Options{Root: h.root})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := r.Revisions(lineage)
	if err != nil {
		t.Fatal(err)
	}
	var numbers []int
	for _, rev := range all {
		numbers = append(numbers, rev.Number)
	}
	return numbers
}

// TestLawPrune: pruning changes nothing that is in force; a revision that is left can be
// gone back to as without it; and destroy gives the host back.
func TestLawPrune(t *testing.T) {
	lawChecks(t)
	rapid.Check(t, func(t *rapid.T) {
		h, twin := twinsOf(t, drawTree(t))
		defer h.remove()
		defer twin.remove()
		found := h.fingerprint(t, true)
		moments := []time.Time{time.Now()}
		for range rapid.IntRange(1, 4).Draw(t, "scrolls") {
			s := drawScroll(t, "law", everything)
			h.run(t, s, "law")
			twin.run(t, s, "law")
			time.Sleep(time.Millisecond)
			moments = append(moments, time.Now())
		}
		was, before := h.snapshot(t), h.fingerprint(t, true)
		h.mustPrune(t, rapid.SampledFrom(moments).Draw(t, "moment"))
		is := h.snapshot(t)
		if !reflect.DeepEqual(was.Applied, is.Applied) || !reflect.DeepEqual(was.Records, is.Records) || !reflect.DeepEqual(was.Ledger, is.Ledger) {
			t.Fatalf("in force was\n%+v\nand is\n%+v", was.Applied, is.Applied)
		}
		if diff := compare(before, h.fingerprint(t, true)); diff != "" {
			t.Fatalf("pruning changed the host:\n%s", diff)
		}
		h.check(t)
		if numbers := h.numbers(t, "law"); len(numbers) > 0 {
			to := rapid.SampledFrom(numbers).Draw(t, "back to")
			h.backTo(t, to)
			twin.backTo(t, to)
			if diff := compare(twin.fingerprint(t, false), h.fingerprint(t, false)); diff != "" {
				t.Fatalf("back to %d of %v it ends elsewhere:\n%s", to, numbers, diff)
			}
		}
		h.run(t, nil, "law")
		if diff := compare(found, h.fingerprint(t, true)); diff != "" {
			t.Fatalf("destroy did not give the host back:\n%s", diff)
		}
		h.mustPrune(t, time.Now())
		h.check(t)
	})
}

// TestLawPruneBetweenRuns: on a host that is pruned between the runs of two lineages, with a
// stranger's edits in between, each run ends where it ends without pruning; what golem kept
// stays kept; and undeclaring gives back the very same, in whatever order.
func TestLawPruneBetweenRuns(t *testing.T) {
	lawChecks(t)
	rapid.Check(t, func(t *rapid.T) {
		h, twin := twinsOf(t, drawTree(t))
		defer h.remove()
		defer twin.remove()
		names := []string{"even", "odd"}
		moments := []time.Time{time.Now()}
		both := func(s *scrolls.Scroll, who int) {
			if h.run(t, s, names[who]) != twin.run(t, s, names[who]) {
				t.Fatalf("it is refused on one of the two alone")
			}
			if diff := compare(twin.fingerprint(t, false), h.fingerprint(t, false)); diff != "" {
				t.Fatalf("with pruning it ends elsewhere:\n%s", diff)
			}
		}
		for i := range rapid.IntRange(2, 5).Draw(t, "runs") {
			who := rapid.IntRange(0, 1).Draw(t, "lineage")
			both(drawScroll(t, names[who], func(i int) bool { return i%2 == who }), who)
			if rapid.Bool().Draw(t, "stranger") {
				text := []byte(fmt.Sprintf("by hand %d\n", i))
				name := rapid.SampledFrom(filesIn(t, h)).Draw(t, "file")
				if err := errors.Join(appendTo(h.root+name, text), appendTo(twin.root+name, text)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Millisecond)
			moments = append(moments, time.Now())
			if rapid.Bool().Draw(t, "prune") {
				h.mustPrune(t, rapid.SampledFrom(moments).Draw(t, "moment"))
				h.check(t)
			}
		}
		for _, who := range rapid.Permutation([]int{0, 1}).Draw(t, "last") {
			both(nil, who)
			h.mustPrune(t, time.Now())
		}
		h.check(t)
		kept, without := h.kept(t), twin.kept(t)
		slices.Sort(kept)
		slices.Sort(without)
		if !slices.Equal(kept, without) {
			t.Fatalf("kept is %q, and without pruning %q", kept, without)
		}
	})
}

// filesIn are the regular files beneath a host's root; of none, one that is made.
func filesIn(t *rapid.T, h *lawHost) []string {
	var names []string
	err := filepath.WalkDir(h.root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, strings.TrimPrefix(path, h.root))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(names, "/by-hand")
}

func appendTo(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// backTo rolls back. What is in the way of that is in the way of any.
func (h *lawHost) backTo(t *rapid.T, to int) {
	_, err := h.applyAs(context.Background(), apply.Options{Lineage: "law", Back: &apply.Back{To: to}}, nil)
	if err != nil && !errors.As(err, new(*scrolls.Diagnostics)) {
		t.Fatalf("back to %d: %v", to, err)
	}
}

// After pruning, what cannot be gone back to is told so, and the rest can.
func TestRollbackKnowsWhatWasPruned(t *testing.T) {
	h := hostWith(t, nil)
	var moments []time.Time
	for _, text := range []string{"one", "two", "three", "four"} {
		time.Sleep(2 * time.Millisecond)
		moments = append(moments, time.Now())
		time.Sleep(2 * time.Millisecond)
		h.mustApply(t, scrollOf(leafOf("a", fileGlyph("/etc/a", text))))
	}
	if did := h.mustPrune(t, moments[3]); did.Revisions != 2 {
		t.Errorf("it dropped %+v", *did.Pruned)
	}
	_, err := h.applyAs(context.Background(), apply.Options{Lineage: "run", Back: &apply.Back{To: 1}}, nil)
	if none := new(apply.NoTargetError); !errors.As(err, &none) || none.Why != "revision 1 was pruned" {
		t.Errorf("back to 1: %v", err)
	}
	for range 2 {
		_, err = h.applyAs(context.Background(), apply.Options{Lineage: "run", Back: &apply.Back{}}, nil)
		if err == nil && h.read(t, "/etc/a") != "three" {
			t.Errorf("a rollback leads to %q", h.read(t, "/etc/a"))
		}
	}
	if none := new(apply.NoTargetError); !errors.As(err, &none) {
		t.Errorf("a second rollback: %v", err)
	}
	h.mustApply(t, nil)
}

// Nothing is arranged while a run is to be settled.
func TestArrangingWaitsForWhatIsUnsettled(t *testing.T) {
	h := hostWith(t, nil)
	h.mustApply(t, scrollOf(leafOf("a", fileGlyph("/etc/a", "a"))))
	h.dies(t, scrollOf(leafOf("x", fileGlyph("/etc/x", "x"))))
	for name, do := range map[string]func(*state.Journal) error{
		"prune":  func(j *state.Journal) error { _, err := apply.Prune(j, time.Now()); return err },
		"rename": func(j *state.Journal) error { return apply.Rename(j, "run", "other") },
		"move": func(j *state.Journal) error {
			_, err := apply.Move(apply.Options{Journal: j}, "file:/etc/a", "other")
			return err
		},
	} {
		err := h.withJournal(t, do)
		if unsettled := new(apply.UnsettledError); !errors.As(err, &unsettled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A key that moves to another lineage is that one's from then on, with its layer and what
// it made due; both say so, and each undoes its own.
func TestAKeyMovesToAnotherLineage(t *testing.T) {
	line := func(text string) *scrolls.Glyph {
		return glyph("line", scrolls.Attrs{"path": "/etc/hosts", "line": text})
	}
	h := hostWith(t, map[string]string{"/etc/hosts": "found\n", "/etc/a": "found a"})
	found := h.fingerprint(t, true)
	h.mustApply(t, scrollOf(leafOf("base", fileGlyph("/etc/a", "a"), line("one"), line("two"))))
	for _, key := range []scrolls.Key{"file:/etc/a", "line:/etc/hosts:one"} {
		err := h.withJournal(t, func(j *state.Journal) error {
			moved, err := apply.Move(apply.Options{Journal: j, Run: state.Run{Command: "state move"}}, key, "other")
			if err == nil && (moved.From.Lineage != "run" || moved.To.Lineage != "other") {
				t.Errorf("it moved from %s to %s", moved.From.Lineage, moved.To.Lineage)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	h.check(t)
	if got := strings.Join(h.declared(t, "other"), "; "); !strings.Contains(got, "file:/etc/a") || !strings.Contains(got, "line:/etc/hosts:one") {
		t.Errorf("other declares %s", got)
	}
	if report := h.mustApply(t, scrollOf(leafOf("base", line("two")))); !report.Plan.Empty() {
		t.Errorf("run has something to do: %s", changes(report))
	}
	other := scrollOf(leafOf("base", fileGlyph("/etc/a", "a"), line("one")))
	if report, err := h.apply(other, "other"); err != nil || !report.Plan.Empty() {
		t.Errorf("other has something to do: %v %s", err, changes(report))
	}
	if _, err := h.apply(nil, "run"); err != nil || h.read(t, "/etc/hosts") != "found\none\n" || h.read(t, "/etc/a") != "a" {
		t.Errorf("without run: %v, hosts %q", err, h.read(t, "/etc/hosts"))
	}
	if _, err := h.apply(nil, "other"); err != nil {
		t.Fatal(err)
	}
	if diff := compare(found, h.fingerprint(t, true)); diff != "" {
		t.Errorf("it was not given back:\n%s", diff)
	}
}

// A file and the edits on it are one lineage's: neither moves alone.
func TestAFileAndItsEditsMoveTogetherOrNotAtAll(t *testing.T) {
	h := hostWith(t, nil)
	h.mustApply(t, scrollOf(leafOf("base", fileGlyph("/etc/a", "a\n"), glyph("line", scrolls.Attrs{"path": "/etc/a", "line": "one"}))))
	for _, key := range []scrolls.Key{"file:/etc/a", "line:/etc/a:one"} {
		err := h.withJournal(t, func(j *state.Journal) error {
			_, err := apply.Move(apply.Options{Journal: j}, key, "other")
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "is of the file's own lineage") {
			t.Errorf("%s: %v", key, err)
		}
	}
}
