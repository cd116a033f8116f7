package apply_test

import (
	"context"
	"errors"
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

// planned makes a plan of a scroll on the host as it is, and writes nothing.
func (h *lawHost) planned(s *scrolls.Scroll, lineage string) (*plan.Plan, *state.Snapshot, error) {
	host, err := reconcilers.OpenHost(h.root)
	if err != nil {
		return nil, nil, err
	}
	defer host.Close()
	if h.arrange != nil {
		h.arrange(host)
	}
	r, err := state.Read(filepath.Join(h.dir, "journal", "planroom.db"), state.Options{Root: h.root})
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	snap, err := r.Snapshot()
	if err != nil {
		return nil, nil, err
	}
	w := reconcilers.NewWorld(host, r)
	defer w.Close()
	p, err := plan.Make(plan.Input{Scroll: s, Lineage: lineage, Host: "law", Snapshot: snap, World: w, Destroy: s == nil})
	return p, snap, err
}

// save saves a plan to a file and opens it again, as golem plan --out and apply do.
func (h *lawHost) save(t tester, s *scrolls.Scroll, lineage string) (*plan.Saved, error) {
	p, snap, err := h.planned(s, lineage)
	if err != nil {
		return nil, err
	}
	key, err := plan.NewSealKey()
	if err != nil {
		t.Fatal(err)
	}
	body := plan.SavedBody{Scroll: s, Destroy: s == nil}
	if body.Prints, err = p.Prints(); err != nil {
		t.Fatal(err)
	}
	file, dir := filepath.Join(h.dir, "saved.plan"), filepath.Join(h.dir, "unpacked")
	head := plan.SavedHead{Lineage: lineage, Journal: snap.Journal, Revision: p.Revision, View: p.View(), Document: []byte("{}")}
	err = errors.Join(body.Collect(), plan.Save(file, head, body, key), os.MkdirAll(dir, 0o700))
	if err != nil {
		t.Fatal(err)
	}
	saved, err := plan.OpenSaved(file)
	if err == nil {
		err = saved.Unseal(key)
	}
	if err == nil {
		err = saved.Unpack(dir, key)
	}
	if err != nil {
		t.Fatal(err)
	}
	return saved, nil
}

// applySaved enacts a saved plan.
func (h *lawHost) applySaved(saved *plan.Saved) (*apply.Report, error) {
	return h.applyAs(context.Background(), apply.Options{
		Scroll: saved.Body.Scroll, Lineage: saved.Head.Lineage,
		Saved: &apply.Saved{Journal: saved.Head.Journal, Revision: saved.Head.Revision, Prints: saved.Body.Prints},
	}, nil)
}

// stale fails unless a saved plan is refused, with nothing touched.
func (h *lawHost) stale(t tester, saved *plan.Saved, why string) {
	before := h.fingerprint(t, true)
	_, err := h.applySaved(saved)
	stale, ok := errors.AsType[*plan.StaleError](err)
	if !ok || !strings.Contains(err.Error(), why) {
		t.Fatalf("it is not refused as stale for %q: %v", why, err)
	}
	if len(stale.Why) == 0 {
		t.Fatal("it does not say why")
	}
	if diff := compare(before, h.fingerprint(t, true)); diff != "" {
		t.Fatalf("a stale plan changed the host:\n%s", diff)
	}
}

// TestLawSavedPlan: a plan that is saved, read back and applied does what applying the
// scroll does; it is applied once; and once anything that it saw has moved it is refused.
func TestLawSavedPlan(t *testing.T) {
	lawChecks(t)
	rapid.Check(t, func(t *rapid.T) {
		at, file := twinsOf(t, drawTree(t))
		defer at.remove()
		defer file.remove()
		first, next := drawScroll(t, "law", everything), drawScroll(t, "law", everything)
		if at.run(t, first, "law") || file.run(t, first, "law") {
			return
		}
		saved, err := file.save(t, next, "law")
		if err != nil {
			if !at.run(t, next, "law") {
				t.Fatalf("a scroll that can be applied cannot be saved: %v", err)
			}
			return
		}
		if report, err := file.applySaved(saved); err != nil || report.Partial() {
			t.Fatalf("apply the saved plan: %v %+v", err, failures(report))
		}
		at.run(t, next, "law")
		if diff := compare(at.fingerprint(t, false), file.fingerprint(t, false)); diff != "" {
			t.Fatalf("a saved plan ends elsewhere:\n%s", diff)
		}
		keys, records := at.applied(t)
		fileKeys, fileRecords := file.applied(t)
		if len(keys) != len(fileKeys) || len(records) != len(fileRecords) {
			t.Fatalf("the journals differ: %v %v", keys, fileKeys)
		}
		if !saved.Head.View.Empty {
			file.stale(t, saved, "law is at revision")
		}
		file.check(t)
	})
}

// What a plan saw and that moves makes it stale: on the host, in the journal, of another
// lineage.
func TestASavedPlanIsStaleOnceAnythingMoved(t *testing.T) {
	line := func(text string) *scrolls.Glyph {
		return glyph("line", scrolls.Attrs{"path": "/etc/hosts", "line": text})
	}
	for _, way := range []struct {
		name, why string
		move      func(t *testing.T, h *lawHost)
	}{
		{"the file that is replaced", "file:/etc/a: it is not as it was", func(t *testing.T, h *lawHost) { h.write(t, "/etc/a", "by hand") }},
		{"the mode of it", "file:/etc/a: it is not as it was", func(t *testing.T, h *lawHost) {
			if err := os.Chmod(h.root+"/etc/a", 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"one that would be left as it is", "file:/etc/same: ", func(t *testing.T, h *lawHost) { h.write(t, "/etc/same", "by hand") }},
		{"other lines of a file that is edited", "line:/etc/hosts:mine: it is not as it was", func(t *testing.T, h *lawHost) {
			h.write(t, "/etc/hosts", "found\nmine\nby hand\n")
		}},
		{"a line of another lineage", "line:/etc/hosts:mine: the journal has something else of it", func(t *testing.T, h *lawHost) {
			if _, err := h.apply(scrollOf(leafOf("b", line("theirs"))), "other"); err != nil {
				t.Fatal(err)
			}
		}},
		{"the lineage's revision", "run is at revision 2, and it was made at 1", func(t *testing.T, h *lawHost) {
			h.mustApply(t, scrollOf(leafOf("a", fileGlyph("/etc/a", "one"), fileGlyph("/etc/same", "same"), line("mine"), fileGlyph("/etc/b", "b"))))
		}},
		{"what is to be made", "file:/etc/new: it is not as it was", func(t *testing.T, h *lawHost) { h.write(t, "/etc/new", "by hand") }},
		{"a run that died", "a run has died since", func(t *testing.T, h *lawHost) {
			h.dies(t, scrollOf(leafOf("x", fileGlyph("/etc/x", "x"))))
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			h := hostWith(t, map[string]string{"/etc/a": "found", "/etc/hosts": "found\n"})
			h.mustApply(t, scrollOf(leafOf("a", fileGlyph("/etc/a", "one"), fileGlyph("/etc/same", "same"), line("mine"))))
			next := scrollOf(leafOf("a", fileGlyph("/etc/a", "two"), fileGlyph("/etc/same", "same"), line("mine"), fileGlyph("/etc/new", "new")))
			saved, err := h.save(t, next, "run")
			if err != nil {
				t.Fatal(err)
			}
			way.move(t, h)
			h.stale(t, saved, way.why)
		})
	}
}

// dies begins a run in another lineage whose process is gone in the middle of it.
func (h *lawHost) dies(t *testing.T, s *scrolls.Scroll) {
	t.Helper()
	died := errors.New("died")
	defer func() {
		if p := recover(); p != nil && p != any(died) {
			panic(p)
		}
	}()
	dead := false
	_, _ = h.applyAs(context.Background(), apply.Options{Scroll: s, Lineage: "dead"}, func(op, _ string) error {
		if dead = dead || op == "rename" || op == "noreplace"; dead || !strings.HasPrefix(op, "journal") && h.revision(t, "dead") == 0 && op != "create" && op != "sync" {
			dead = true
			return died
		}
		return nil
	})
	if h.snapshot(t).Dead == nil {
		t.Fatal("the run did not die")
	}
}

// A saved plan has no time and no boot in what it rests on: it is the same after a reboot.
func TestAPlansPrintsOutliveAReboot(t *testing.T) {
	h := newUnitHost(t)
	h.write(t, "/etc/web.conf", "x")
	scroll := func() *scrolls.Scroll {
		return scrollOf(leafOf("a", fileGlyph("/etc/web.conf", "y"), service("web.service", "state", "running", "enabled", true, "reload_on", []any{"file:/etc/web.conf"})))
	}
	h.mustApply(t, scrollOf(leafOf("a", service("web.service", "state", "running", "enabled", true))))
	prints := func() []plan.Print {
		p, _, err := h.planned(scroll(), "run")
		if err != nil {
			t.Fatal(err)
		}
		prints, err := p.Prints()
		if err != nil {
			t.Fatal(err)
		}
		return prints
	}
	was := prints()
	if err := h.Boot(); err != nil {
		t.Fatal(err)
	}
	h.is("web.service", "active")
	if is := prints(); !slices.Equal(was, is) {
		t.Errorf("they differ after a reboot: %q", plan.Moved(was, is))
	}
}

// TestLawSavedPlansOfUnitsAndPackages: nothing about a unit or a package looks otherwise to
// the run than it did to the plan.
func TestLawSavedPlansOfUnitsAndPackages(t *testing.T) {
	unitLaw(t, func(t *rapid.T) {
		units := lawUnitHost(t, drawFound(t))
		units.twice(t, drawUnitScroll(t), drawUnitScroll(t))
		pkgs := newPkgHost(t)
		defer pkgs.remove()
		pkgs.drawPackages(t, false)
		pkgs.twice(t, pkgs.drawPackageScroll(t, "run", everything), pkgs.drawPackageScroll(t, "run", everything))
	})
}

// twice applies a scroll, and then another from a saved plan, which is used up by that.
func (h *lawHost) twice(t *rapid.T, first, next *scrolls.Scroll) {
	if report, err := h.apply(first, "run"); err != nil || report.Partial() {
		return
	}
	t.Logf("then %s", describe(next))
	saved, err := h.save(t, next, "run")
	if err != nil {
		return // what cannot be planned cannot be saved
	}
	if _, err := h.applySaved(saved); errors.As(err, new(*plan.StaleError)) {
		t.Fatalf("it is stale at once: %v", err)
	}
	if !saved.Head.View.Empty && h.revision(t, "run") > saved.Head.Revision {
		h.stale(t, saved, "run is at revision")
	}
}
