package apply_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"golem/apply"
	"golem/scrolls"
)

// archiveAct is what an act of the archives' story declares: two versions, one that puts
// files, directories and links in each other's places, and nothing.
func archiveAct(act string) *scrolls.Scroll {
	s := &scrolls.Scroll{Name: "crash", Dir: "/crash", Policies: map[string]scrolls.Policy{}}
	leaf := func(name string, glyphs ...*scrolls.Glyph) {
		for _, g := range glyphs {
			g.Leaf = name
		}
		s.Leaves = append(s.Leaves, &scrolls.Leaf{Path: name, Policy: scrolls.BuiltinPolicy, Glyphs: glyphs})
	}
	beside := glyph("file", scrolls.Attrs{"path": "/srv/app/lib/beside", "content": "beside\n"})
	switch act {
	case "archive one":
		leaf("app", archive("/srv/app", "app-1.tar", nil), beside)
	case "archive two":
		leaf("app", archive("/srv/app", "app-2.tar.gz", scrolls.Attrs{"owner": "0"}), archive("/new/plug", "plug.tar.xz", nil))
	case "archive three":
		leaf("app", archive("/srv/app", "app-3.zip", nil), beside)
	default:
		return nil
	}
	return s
}

// archiveTree is a host on which the story's archives meet what was there.
func archiveTree(root string) error {
	old := time.Unix(1_000_000_000, 123456789)
	err := errors.Join(os.MkdirAll(root+"/srv/app/lib", 0o755), os.Chmod(root+"/srv/app/lib", 0o711), os.Symlink("nowhere", root+"/srv/app/hard"))
	for name, text := range map[string]string{"/srv/app/conf": "found conf\r\n", "/srv/app/run": "found", "/srv/app/lib/other": "not golem's"} {
		err = errors.Join(err, os.WriteFile(root+name, []byte(text), 0o600), os.Chtimes(root+name, old, old))
	}
	return errors.Join(err, unix.Setxattr(root+"/srv/app/conf", "user.law", []byte("kept"), 0), os.Link(root+"/srv/app/run", root+"/srv/twin"))
}

// archiveActs are the story: what is applied before, and what is interrupted.
var archiveActs = []struct {
	name   string
	before []string
	act    string
}{
	{"Fresh", nil, "archive one"},
	{"NextVersion", []string{"archive one"}, "archive two"},
	{"ThirdVersion", []string{"archive two"}, "archive three"},
	{"Destroy", []string{"archive one", "archive two"}, "none"},
}

// archiveStage makes a host that stands right before an act, with a file changed by hand.
func archiveStage(t tester, before []string) (h *lawHost, found map[string]string) {
	h = newLawHost(t)
	if err := archiveTree(h.root); err != nil {
		t.Fatal(err)
	}
	found = h.fingerprint(t, true)
	for _, act := range before {
		if report, err := h.apply(archiveAct(act), "crash"); err != nil || report.Partial() {
			t.Fatalf("stage %s: %v %+v", act, err, failures(report))
		}
	}
	if len(before) > 0 {
		if err := os.WriteFile(h.root+"/srv/app/lib/a", []byte(strangersEdit), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return h, found
}

// archiveSettles fails unless the act comes to its end now, and destroy gives the host back.
func (h *lawHost) archiveSettles(t tester, at, act string, want, found map[string]string, edited bool) {
	report, err := h.apply(archiveAct(act), "crash")
	if err != nil || report.Partial() {
		t.Fatalf("%s: the next run does not settle: %v %+v", at, err, failures(report))
	}
	if diff := compare(want, h.fingerprint(t, false)); diff != "" {
		t.Fatalf("%s: the next run leaves another host:\n%s", at, diff)
	}
	if report, err = h.apply(archiveAct(act), "crash"); err != nil || !report.Plan.Empty() {
		t.Fatalf("%s: the run after that finds something to do: %v %s", at, err, changes(report))
	}
	if report, err = h.apply(nil, "crash"); err != nil || report.Partial() {
		t.Fatalf("%s: destroy: %v %+v", at, err, failures(report))
	}
	if diff := compare(found, h.fingerprint(t, true)); diff != "" {
		t.Fatalf("%s: destroy does not give the host back:\n%s", at, diff)
	}
	h.noTemps(t)
	h.check(t)
	if edited && !slices.Contains(h.kept(t), strangersEdit) {
		t.Fatalf("%s: %q is neither on the host nor kept", at, strangersEdit)
	}
}

func archiveWant(t tester, before []string, act string) map[string]string {
	h, _ := archiveStage(t, before)
	defer h.remove()
	report, err := h.apply(archiveAct(act), "crash")
	if err != nil || report.Partial() {
		t.Fatalf("%s: %v %+v", act, err, failures(report))
	}
	return h.fingerprint(t, false)
}

// TestArchiveIsCutOffAtEveryCall ends a run at every single change to the host or the
// journal, as a power cut does: from there on, nothing changes any more. The next run
// settles, and destroy gives the host back.
func TestArchiveIsCutOffAtEveryCall(t *testing.T) {
	t.Parallel()
	step := 3
	if os.Getenv("GOLEM_SOAK") != "" {
		step = 1
	}
	for i, a := range archiveActs {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			want := archiveWant(t, a.before, a.act)
			n := 1 + i%step
			for ; ; n += step {
				h, found := archiveStage(t, a.before)
				calls, at := 0, ""
				_, err := h.applyWith(archiveAct(a.act), "crash", func(op, path string) error {
					if calls++; calls < n {
						return nil
					}
					if at == "" {
						at = op + " " + path
					}
					return unix.EIO
				})
				if at != "" {
					if err == nil {
						t.Fatalf("%s: a run that was cut off says nothing of it", at)
					}
					h.archiveSettles(t, at, a.act, want, found, len(a.before) > 0)
				}
				h.remove()
				if at == "" {
					break
				}
			}
			if n < 30 {
				t.Fatalf("only %d changes were counted", n)
			}
		})
	}
}

// TestArchiveIsTakenBackWholeAtEveryFailure lets single changes fail: the leaf is what it
// was, to the last time stamp, and the next run settles.
func TestArchiveIsTakenBackWholeAtEveryFailure(t *testing.T) {
	t.Parallel()
	step := 4
	if os.Getenv("GOLEM_SOAK") != "" {
		step = 1
	}
	for i, a := range archiveActs {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			want := archiveWant(t, a.before, a.act)
			for n := 1 + i%step; ; n += step {
				h, found := archiveStage(t, a.before)
				was := h.fingerprint(t, true)
				calls, at := 0, ""
				report, err := h.applyWith(archiveAct(a.act), "crash", func(op, path string) error {
					if calls++; calls == n {
						at = op + " " + path
						return unix.ENOSPC
					}
					return nil
				})
				var touched *apply.TouchedError
				back := !errors.As(err, &touched) && (err != nil || report.Partial() && report.Outcome == apply.RolledBack)
				if diff := compare(was, h.fingerprint(t, true)); at != "" && back && diff != "" && !strings.Contains(at, "journal") {
					t.Fatalf("%s: the leaf was taken back, and is not what it was (%v):\n%s", at, err, diff)
				}
				if at != "" {
					h.archiveSettles(t, at, a.act, want, found, len(a.before) > 0)
				}
				h.remove()
				if at == "" {
					return
				}
			}
		})
	}
}

// TestArchiveIsKilled kills golem in the midst of it: the next run settles.
func TestArchiveIsKilled(t *testing.T) {
	t.Parallel()
	for i, a := range archiveActs {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			want := archiveWant(t, a.before, a.act)
			for _, n := range []int{5 + i, 13 + i, 22 + i} {
				h, found := archiveStage(t, a.before)
				if !h.killed(t, a.act, n) {
					t.Fatalf("there is no change %d", n)
				}
				h.archiveSettles(t, fmt.Sprint("killed at ", n), a.act, want, found, len(a.before) > 0)
				h.remove()
			}
		})
	}
}
