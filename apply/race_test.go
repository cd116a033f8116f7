package apply_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	for _, race := range races {
		for _, stranger := range strangers {
			for _, after := range []string{"", "journal commit", "unlink", "sync"} {
				name := race.name + "/" + stranger.name
				if after != "" {
					name += "/then failing " + after
				}
				t.Run(name, func(t *testing.T) {
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
