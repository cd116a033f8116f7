package apply_test

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"golem/apply"
	"golem/reconcilers/fake"
	"golem/scrolls"
)

// failsAt lets changes of a path fail.
func failsAt(path string, err error) func(op, at string) error {
	return func(op, at string) error {
		if at == path && (op == "rename" || op == "chmod") {
			return err
		}
		return nil
	}
}

func lineGlyph(path, text string) *scrolls.Glyph {
	return glyph("line", scrolls.Attrs{"path": path, "line": text})
}

// The plan lets the first leaf bring what both need. It fails before it does: the second
// brings it, and has not to be approved anew for that.
func TestASiblingBringsWhatAFailedLeafWasToBring(t *testing.T) {
	for _, onExhaust := range []string{"rollback", "keep"} {
		h := newPkgHost(t)
		t.Cleanup(h.remove)
		for _, name := range []string{"a1", "b1"} {
			h.m.Archive = append(h.m.Archive, &fake.Package{Name: name, Version: "1.0", Arch: "all", Depends: "both"})
		}
		h.m.Archive = append(h.m.Archive, &fake.Package{Name: "both", Version: "1.0", Arch: "all"})
		if err := h.m.Save(); err != nil {
			t.Fatal(err)
		}
		apt := func(name string) *scrolls.Glyph { return glyph("apt", scrolls.Attrs{"name": name}) }
		s := func() *scrolls.Scroll {
			first := leafOf("first", fileGlyph("/etc/f", "x"), apt("a1"))
			first.Policy.OnExhaust = onExhaust
			return scrollOf(first, leafOf("second", apt("b1")))
		}
		report, err := h.applyWith(s(), "run", failsAt("/etc/f", unix.ENOSPC))
		if err != nil || report.Leaves[0].Outcome == apply.Settled || report.Leaves[1].Outcome != apply.Settled {
			t.Fatalf("%v %s: %+v", err, report.Outcome, failures(report))
		}
		if p := h.m.Packages["both"]; p == nil || !p.Auto || h.m.Packages["a1"] != nil {
			t.Errorf("on the host are %v", h.m.Packages)
		}
		h.mustApply(t, s())
		h.mustApply(t, nil)
		if len(h.m.Packages) != 1 {
			t.Errorf("after destroy there are %v", h.m.Packages)
		}
	}
}

// The first leaf fails before it comes to the file that both have lines in. The second
// then sees the file as it was, not as the plan had it after the first.
func TestASiblingSeesTheFileAFailedLeafDidNotComeTo(t *testing.T) {
	h := hostWith(t, map[string]string{"/etc/shared": "found\n", "/etc/d/in": "found"})
	s := func() *scrolls.Scroll {
		return scrollOf(
			leafOf("first", fileGlyph("/etc/d/in", "x"), glyph("directory", scrolls.Attrs{"path": "/etc/d", "mode": "0700"}), // a batch of its own
				lineGlyph("/etc/shared", "one")),
			leafOf("second", lineGlyph("/etc/shared", "two")))
	}
	report, err := h.applyWith(s(), "run", failsAt("/etc/d/in", unix.ENOSPC))
	if err != nil || report.Leaves[0].Outcome != apply.RolledBack || report.Leaves[1].Outcome != apply.Settled {
		t.Fatalf("%v %s: %+v", err, report.Outcome, failures(report))
	}
	if got := h.read(t, "/etc/shared"); got != "found\ntwo\n" {
		t.Errorf("the file is %q", got)
	}
	h.mustApply(t, s())
	h.mustApply(t, nil)
	if got := h.read(t, "/etc/shared"); got != "found\n" {
		t.Errorf("after destroy the file is %q", got)
	}
}

// What a leaf did to a shared file cannot be taken back: until it is, no other leaf puts
// anything into it that the way back would then take along.
func TestAFileThatWaitsToBeTakenBackIsNotTouched(t *testing.T) {
	h := hostWith(t, map[string]string{"/etc/shared": "found\n", "/etc/dir/x": ""})
	s := func() *scrolls.Scroll {
		return scrollOf(leafOf("first", lineGlyph("/etc/shared", "one"), glyph("directory", scrolls.Attrs{"path": "/etc/dir", "mode": "0711"})),
			leafOf("second", lineGlyph("/etc/shared", "two")), leafOf("third", fileGlyph("/etc/third", "x")))
	}
	failed := false
	report, err := h.applyWith(s(), "run", func(op, at string) error {
		failed = failed || op == "chmod" && at == "/etc/dir"
		if failed && (at == "/etc/dir" || at == "/etc/shared") && op != "sync" {
			return unix.EIO
		}
		return nil
	})
	if err != nil || !report.Partial() || report.Leaves[1].Outcome != apply.RolledBack || report.Leaves[2].Outcome != apply.Settled {
		t.Fatalf("%v: %+v", err, failures(report))
	}
	if why := report.Leaves[1].Failures[0].Message; !strings.Contains(why, "what first did to it could not be taken back") {
		t.Errorf("it says %q", why)
	}
	report = h.mustApply(t, s())
	if report.Recovered == nil {
		t.Error("nothing was recovered")
	}
	if got := h.read(t, "/etc/shared"); got != "found\none\ntwo\n" {
		t.Errorf("the file is %q", got)
	}
	h.mustApply(t, nil)
	if got := h.read(t, "/etc/shared"); got != "found\n" {
		t.Errorf("after destroy the file is %q", got)
	}
}

// A directory that a step made, and that could not be taken back before a sibling put a
// file into it, still goes with the last that needs it.
func TestADirectoryOfALeafThatWasTakenBackLateGoesInTheEnd(t *testing.T) {
	h := hostWith(t, map[string]string{"/etc/dir/x": ""})
	s := func() *scrolls.Scroll {
		return scrollOf(leafOf("first", fileGlyph("/new/one", "x"), glyph("directory", scrolls.Attrs{"path": "/etc/dir", "mode": "0711"})),
			leafOf("second", fileGlyph("/new/two", "x")))
	}
	failed := false
	report, err := h.applyWith(s(), "run", func(op, at string) error {
		failed = failed || op == "chmod" && at == "/etc/dir"
		if failed && (at == "/etc/dir" || at == "/new/one") && op != "sync" {
			return unix.EIO
		}
		return nil
	})
	if err != nil || !report.Partial() || report.Leaves[1].Outcome != apply.Settled {
		t.Fatalf("%v: %+v", err, failures(report))
	}
	second := scrollOf(leafOf("second", fileGlyph("/new/two", "x")))
	if report = h.mustApply(t, second); report.Recovered == nil {
		t.Error("nothing was recovered")
	}
	h.mustApply(t, nil)
	if prints := h.fingerprint(t, false); prints["/new"] != "" {
		t.Errorf("after destroy there is /new: %s", prints["/new"])
	}
}

// Under keep, the glyphs before the one that failed are enacted once more on their own. If
// one of them fails then, those before it stand all the same.
func TestKeptIsWhatComesBeforeASecondFailureToo(t *testing.T) {
	h := hostWith(t, map[string]string{"/etc/a": "old", "/etc/b": "old", "/etc/c": "old"})
	leaf := leafOf("abc", fileGlyph("/etc/a", "new"), fileGlyph("/etc/b", "new"), fileGlyph("/etc/c", "new"))
	leaf.Policy.OnExhaust = "keep"
	renames := 0
	report, err := h.applyWith(scrollOf(leaf), "run", func(op, at string) error {
		if op != "rename" {
			return nil
		}
		if at == "/etc/b" {
			renames++ // there, back, and there again
		}
		if at == "/etc/c" || at == "/etc/b" && renames == 3 {
			return unix.ENOSPC
		}
		return nil
	})
	if err != nil || report.Leaves[0].Outcome != apply.Kept || renames < 3 {
		t.Fatalf("%v %s, %d renames: %+v", err, report.Outcome, renames, failures(report))
	}
	if a, b, c := h.read(t, "/etc/a"), h.read(t, "/etc/b"), h.read(t, "/etc/c"); a != "new" || b != "old" || c != "old" {
		t.Errorf("kept are %q, %q and %q", a, b, c)
	}
	if keys := len(h.snapshot(t).Applied); keys != 1 {
		t.Errorf("%d keys are in force", keys)
	}
}
