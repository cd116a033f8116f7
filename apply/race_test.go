package apply_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golem/apply"
	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
)

// racedPath is where golem and a stranger meet; token is in all that he does there.
const (
	racedPath = "/etc/raced"
	token     = "stranger's token"
)

// strangers are what somebody may do to a path at the very moment golem writes it.
var strangers = []struct {
	name string
	does func(at string) error
}{
	{"RewritesInPlace", func(at string) error { return os.WriteFile(at, []byte(token), 0o644) }},
	{"RenamesOver", func(at string) error {
		return errors.Join(os.WriteFile(at+".his", []byte(token), 0o600), os.Rename(at+".his", at))
	}},
	{"MakesALink", func(at string) error {
		_ = os.Remove(at)
		return os.Symlink(token, at)
	}},
	{"MakesADirectory", func(at string) error {
		_ = os.Remove(at)
		return errors.Join(os.Mkdir(at, 0o755), os.WriteFile(at+"/in", []byte(token), 0o644))
	}},
	{"Removes", func(at string) error { _ = os.Remove(at); return nil }},
}

// races are the ways in which golem writes a path, each up to the call before which
// the stranger acts.
var races = []struct {
	name   string
	found  string // "" for nothing
	twin   bool   // the file has another name
	before *scrolls.Scroll
	then   *scrolls.Scroll
	op     string
}{
	{"Install", "", false, nil, racedScroll("golem's"), "rename"},
	{"Replace", "found", false, nil, racedScroll("golem's"), "rename"},
	{"Remove", "", false, racedScroll("golem's"), nil, "rename"},
	{"GiveBack", "found", false, racedScroll("golem's"), nil, "rename"},
	{"WriteOver", "found", true, nil, racedScroll("golem's"), "open"},
}

func racedScroll(content string) *scrolls.Scroll {
	return scrollOf(leafOf("a", fileGlyph(racedPath, content)))
}

// TestRaceLosesNothing lets a stranger act on a path right before golem's system call,
// after golem has looked for the last time: what he made stays or is kept, byte for
// byte, also where golem fails or dies before it can keep it.
func TestRaceLosesNothing(t *testing.T) {
	t.Parallel()
	for _, race := range races {
		for _, stranger := range strangers {
			for _, after := range []string{"", "journal commit", "unlink", "sync"} {
				name := race.name + "/" + stranger.name
				if after != "" {
					name += "/then failing " + after
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					files := map[string]string{"/etc/hosts": "x"}
					if race.found != "" {
						files[racedPath] = race.found
					}
					h := hostWith(t, files)
					if race.twin {
						if err := os.Link(h.root+racedPath, h.root+racedPath+".twin"); err != nil {
							t.Fatal(err)
						}
					}
					if race.before != nil {
						h.mustApply(t, race.before)
					}
					h.raced(t, race.then, race.op, stranger.does, after)
					if stranger.name != "Removes" {
						h.holds(t, token)
					}
					h.aftermath(t, stranger.name)
				})
			}
		}
	}
}

// raced runs a scroll with a stranger who acts right before a call; the next call
// named after, if any, then fails.
func (h *lawHost) raced(t *testing.T, s *scrolls.Scroll, op string, does func(string) error, after string) {
	acted, failed := false, false
	report, err := h.applyWith(s, "run", func(now, path string) error {
		switch {
		case !acted && now == op && path == racedPath:
			acted = true
			if err := does(h.root + racedPath); err != nil {
				t.Fatal(err)
			}
		case acted && !failed && after != "" && now == after:
			failed = true
			return faults[1]
		}
		return nil
	})
	if !acted {
		t.Fatalf("golem never came to %s: %v %+v", op, err, failures(report))
	}
}

// holds fails unless a text is on the host, under a name that is not golem's, or kept.
func (h *lawHost) holds(t *testing.T, text string) {
	err := filepath.WalkDir(h.root, func(p string, d os.DirEntry, err error) error {
		if err != nil || strings.HasPrefix(d.Name(), ".golem-") {
			return err
		}
		data, _ := os.ReadFile(p)
		target, _ := os.Readlink(p)
		if strings.Contains(string(data)+target, text) {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(fmt.Sprint(h.kept(t)), text) {
		t.Fatalf("%q is neither on the host nor kept", text)
	}
}

var errFound = errors.New("found")

// aftermath fails unless golem can go on after a race: the next destroy settles, and
// with nothing left behind.
func (h *lawHost) aftermath(t *testing.T, stranger string) {
	report, err := h.apply(nil, "run")
	if err != nil || report.Partial() {
		t.Fatalf("the next run does not settle: %v %+v", err, failures(report))
	}
	if stranger != "Removes" {
		h.holds(t, token)
	}
	h.noTemps(t)
	h.check(t)
}

// TestHostMovedSinceThePlan: what a stranger did between the plan and the yes is fatal
// for its leaf, stays as he left it, and is no sibling's concern.
func TestHostMovedSinceThePlan(t *testing.T) {
	at := func(h *lawHost, name string) string { return h.root + name }
	replace := func(h *lawHost, name string) error {
		return errors.Join(os.Remove(at(h, name)), os.Symlink("his", at(h, name)))
	}
	for _, c := range []struct {
		name  string
		path  string
		moves func(h *lawHost) error
	}{
		{"bytes", "/etc/motd", func(h *lawHost) error { return os.WriteFile(at(h, "/etc/motd"), []byte("his"), 0o644) }},
		{"mode", "/etc/motd", func(h *lawHost) error { return os.Chmod(at(h, "/etc/motd"), 0o600) }},
		{"removed", "/etc/motd", func(h *lawHost) error { return os.Remove(at(h, "/etc/motd")) }},
		{"a link", "/etc/motd", func(h *lawHost) error { return replace(h, "/etc/motd") }},
		{"made", "/etc/new", func(h *lawHost) error { return os.WriteFile(at(h, "/etc/new"), []byte("his"), 0o644) }},
		{"a file with lines", "/etc/hosts", func(h *lawHost) error { return os.WriteFile(at(h, "/etc/hosts"), []byte("his\n"), 0o644) }},
		{"a file to be removed", "/etc/gone", func(h *lawHost) error { return os.WriteFile(at(h, "/etc/gone"), []byte("his"), 0o644) }},
		{"a file to be given back", "/etc/back", func(h *lawHost) error { return os.WriteFile(at(h, "/etc/back"), []byte("his"), 0o644) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := hostWith(t, map[string]string{"/etc/motd": "found", "/etc/hosts": "127.0.0.1 localhost\n", "/etc/back": "found"})
			mine := leafOf("mine", fileGlyph("/etc/gone", "golem's"), fileGlyph("/etc/back", "golem's"))
			h.mustApply(t, scrollOf(mine))
			next := func() *scrolls.Scroll {
				return scrollOf(leafOf("mine", fileGlyph("/etc/motd", "one"), fileGlyph("/etc/new", "one"),
					glyph("line", scrolls.Attrs{"path": "/etc/hosts", "line": "one"})), leafOf("other", fileGlyph("/etc/other", "one")))
			}
			var moved map[string]string
			report, err := h.applyAs(context.Background(), apply.Options{
				Scroll: next(), Lineage: "run",
				Approve: func(*plan.Plan) (bool, error) {
					err := c.moves(h)
					moved = h.fingerprint(t, true)
					return true, err
				},
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			ended := outcomes(report)
			if ended["mine"] != apply.RolledBack || ended["other"] != apply.Settled || !report.Partial() {
				t.Fatalf("leaves %v, outcome %s", ended, report.Outcome)
			}
			said := fmt.Sprint(failures(report))
			if !strings.Contains(said, reconcilers.ErrMoved.Error()) || !strings.Contains(said, c.path) {
				t.Errorf("it is told as %s", said)
			}
			now := h.fingerprint(t, true)
			delete(now, "/etc/other")
			if diff := compare(moved, now); diff != "" {
				t.Errorf("what he did is not as he left it:\n%s", diff)
			}
			h.mustApply(t, next())
			h.noTemps(t)
			h.check(t)
		})
	}
}

// TestHostMovedBeforeTheOnlyLeaf: where nothing was begun, the error says that nothing
// was touched.
func TestHostMovedBeforeTheOnlyLeaf(t *testing.T) {
	h := hostWith(t, map[string]string{"/etc/motd": "found"})
	report, err := h.applyAs(context.Background(), apply.Options{
		Scroll: scrollOf(leafOf("a", fileGlyph("/etc/motd", "one"))), Lineage: "run",
		Approve: func(*plan.Plan) (bool, error) { return true, os.WriteFile(h.root+"/etc/motd", []byte("his"), 0o644) },
	}, nil)
	if err == nil || !strings.Contains(err.Error(), reconcilers.ErrMoved.Error()) || errors.As(err, new(*apply.TouchedError)) {
		t.Fatalf("%v", err)
	}
	if report.Ran() || h.revision(t, "run") != 0 {
		t.Errorf("ran %v, revision %d", report.Ran(), h.revision(t, "run"))
	}
	if data, _ := os.ReadFile(h.root + "/etc/motd"); string(data) != "his" {
		t.Errorf("his bytes are %q now", data)
	}
}
