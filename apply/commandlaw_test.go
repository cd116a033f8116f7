package apply_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"golem/reconcilers/fake"
	"golem/scrolls"
)

// drawCommands draws a scroll of commands, each of which makes a file that its undo
// removes, in two leaves with a file that may trigger some. What makes /found/a is guarded,
// since it may be there before golem, and then it is not golem's to remove.
func drawCommands(t *rapid.T) *scrolls.Scroll {
	leaves := []*scrolls.Leaf{leafOf("one"), leafOf("two")}
	add := func(g *scrolls.Glyph) {
		leaf := leaves[rapid.IntRange(0, 1).Draw(t, "leaf of "+string(g.Key))]
		g.Leaf = leaf.Path
		leaf.Glyphs = append(leaf.Glyphs, g)
	}
	if text := rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "conf"); text != "" {
		add(fileGlyph("/conf", text))
	}
	for _, name := range []string{"a", "b", "c"} {
		text := rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, name)
		if text == "" {
			continue
		}
		attrs := []any{"run", "put /found/" + name + " " + text, "undo", "take /found/" + name}
		switch name {
		case "a":
			attrs = append(attrs, "creates", "/found/a")
		case "c":
			attrs = append(attrs, "unless", "has /found/c "+text)
		}
		if name != "a" && rapid.Bool().Draw(t, name+" is triggered") {
			attrs = append(attrs, "triggered_by", "file:/conf")
		}
		add(command(name, attrs...))
	}
	return scrollOf(slices.DeleteFunc(leaves, func(l *scrolls.Leaf) bool { return len(l.Glyphs) == 0 })...)
}

// commandHost is a host on which what a guarded command makes may be there already.
func commandHost(t *rapid.T, found bool) *programHost {
	h := programsAt(newLawHost(t))
	err := os.Mkdir(h.root+"/found", 0o755)
	if found {
		err = errors.Join(err, os.WriteFile(h.root+"/found/a", []byte("found"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// runs applies a scroll, and once more, which has to find nothing to do.
func (h *programHost) runs(t *rapid.T, s *scrolls.Scroll) {
	if s != nil && len(s.Leaves) == 0 {
		s = nil
	}
	h.mustApply(t, s)
	h.ran = nil
	if r := h.mustApply(t, s); !r.Plan.Empty() || len(h.ran) > 0 {
		t.Fatalf("a second run does %q:\n%s", h.ran, planText(t, r.Plan))
	}
}

func TestLawCommandsAreUndone(t *testing.T) {
	unitLaw(t, func(t *rapid.T) {
		h := commandHost(t, rapid.Bool().Draw(t, "found"))
		defer h.remove()
		found := h.fingerprint(t, true)
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			h.runs(t, drawCommands(t))
		}
		h.runs(t, nil)
		if diff := compare(found, h.fingerprint(t, true)); diff != "" {
			t.Fatalf("destroy does not give the host back:\n%s", diff)
		}
		h.check(t)
	})
}

func TestLawCommandsDependOnTheLastScrollAlone(t *testing.T) {
	unitLaw(t, func(t *rapid.T) {
		found := rapid.Bool().Draw(t, "found")
		a, b := commandHost(t, found), commandHost(t, found)
		defer a.remove()
		defer b.remove()
		for range rapid.IntRange(1, 3).Draw(t, "runs") {
			a.runs(t, drawCommands(t))
		}
		last := drawCommands(t)
		a.runs(t, last)
		b.runs(t, last)
		if diff := compare(b.fingerprint(t, false), a.fingerprint(t, false)); diff != "" {
			t.Fatalf("the way there shows:\n%s", diff)
		}
	})
}

// Somebody removes and changes between the runs what commands made: what a guard looks at is
// repaired, and the rest is undone all the same.
func TestLawCommandsWithSomebodyInBetween(t *testing.T) {
	unitLaw(t, func(t *rapid.T) {
		h := commandHost(t, false)
		defer h.remove()
		programs := fake.Programs{Root: h.root}
		for range rapid.IntRange(1, 3).Draw(t, "runs") {
			s := drawCommands(t)
			h.runs(t, s)
			for range rapid.IntRange(0, 3).Draw(t, "acts") {
				act := rapid.SampledFrom([]string{"take /found/a", "take /found/b", "take /found/c", "put /found/c his"}).Draw(t, "act")
				programs.Run(strings.Fields(act)...)
			}
			h.runs(t, s)
			for _, g := range s.Glyphs() {
				if guard := wordsOf(g, "unless"); len(guard) > 0 {
					if a, _ := programs.Run(guard...); a.Code != 0 {
						t.Fatalf("%s was not repaired", g.Key)
					}
				}
			}
		}
		h.runs(t, nil)
		h.check(t)
	})
}

func wordsOf(g *scrolls.Glyph, attr string) []string {
	var all []string
	list, _ := g.Attrs[attr].([]any)
	for _, word := range list {
		all = append(all, word.(string))
	}
	return all
}

// commandStory is what an act of the story declares: "commands one", "commands two", else
// nothing.
func commandStory(act string) *scrolls.Scroll {
	switch act {
	case "commands one":
		return scrollOf(
			leafOf("one", fileGlyph("/conf", "one"), command("made", "run", "put /found/made one", "undo", "take /found/made", "creates", "/found/made", "triggered_by", "file:/conf"),
				command("plain", "run", "put /found/plain one", "undo", "take /found/plain")),
			leafOf("two", command("rest", "run", "put /found/rest one", "undo", "take /found/rest", "creates", "/found/rest"),
				command("more", "run", "put /found/more one", "undo", "take /found/more", "unless", "has /found/more one", "triggered_by", "file:/conf")))
	case "commands two":
		return scrollOf(
			leafOf("one", fileGlyph("/conf", "two"), command("made", "run", "put /found/made two", "undo", "take /found/made", "creates", "/found/made")),
			leafOf("two", command("more", "run", "put /found/more one", "undo", "take /found/more", "unless", "has /found/more one", "triggered_by", "file:/conf"),
				command("new", "run", "put /found/new two", "undo", "take /found/new")))
	}
	return nil
}

// stageCommands makes a host that stands right before an act.
func stageCommands(t *testing.T, before []string) (h *programHost, found map[string]string) {
	h = programsAt(newLawHost(t))
	if err := errors.Join(os.Mkdir(h.root+"/found", 0o755), os.WriteFile(h.root+"/found/rest", []byte("found"), 0o600)); err != nil {
		t.Fatal(err)
	}
	found = h.fingerprint(t, true)
	for _, act := range before {
		if r, err := h.apply(commandStory(act), "crash"); err != nil || r.Partial() {
			t.Fatalf("%s: %v %+v", act, err, failures(r))
		}
	}
	return h, found
}

var commandActs = []struct {
	name   string
	before []string
	act    string
	least  int // changes that are counted
}{
	{"FreshApply", nil, "commands one", 14},
	{"ReplaceAndRemove", []string{"commands one"}, "commands two", 16},
	{"Destroy", []string{"commands one", "commands two"}, "commands none", 10},
}

// settlesCommands fails unless the act comes to its end, and destroy then gives the host
// back.
func (h *programHost) settlesCommands(t *testing.T, when, act string, want, found map[string]string) {
	t.Helper()
	r, err := h.apply(commandStory(act), "crash")
	if err != nil || r.Partial() {
		t.Fatalf("%s, the next run does not settle: %v %+v", when, err, failures(r))
	}
	if diff := compare(want, h.fingerprint(t, false)); diff != "" {
		t.Fatalf("%s, the next run leaves another host:\n%s", when, diff)
	}
	if r, err := h.apply(nil, "crash"); err != nil || r.Partial() {
		t.Fatalf("%s, destroy: %v %+v", when, err, failures(r))
	}
	if diff := compare(found, h.fingerprint(t, true)); diff != "" {
		t.Fatalf("%s, destroy does not give the host back:\n%s", when, diff)
	}
	h.check(t)
}

// TestCommandsCrashAtEveryCall kills golem before and after every single command and change.
func TestCommandsCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	for _, a := range commandActs {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			done, _ := stageCommands(t, append(slices.Clone(a.before), a.act))
			want := done.fingerprint(t, false)
			done.remove()
			n := 1
			for ; ; n++ {
				h, found := stageCommands(t, a.before)
				died := h.killed(t, a.act, n)
				if died {
					h.settlesCommands(t, fmt.Sprintf("killed at %d", n), a.act, want, found)
				}
				h.remove()
				if !died {
					break
				}
			}
			if n <= a.least {
				t.Fatalf("only %d changes were counted", n-1)
			}
			t.Logf("%d changes, a kill at each", n-1)
		})
	}
}

// TestCommandsFailAtEveryCall lets every single command and change fail in turn: a leaf that
// fails is what it was, and the next run settles.
func TestCommandsFailAtEveryCall(t *testing.T) {
	t.Parallel()
	for _, a := range commandActs {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			done, _ := stageCommands(t, append(slices.Clone(a.before), a.act))
			want := done.fingerprint(t, false)
			done.remove()
			for n := 1; ; n++ {
				h, found := stageCommands(t, a.before)
				was := h.fingerprint(t, false)
				calls := 0
				r, err := h.applyWith(commandStory(a.act), "crash", func(string, string) error {
					if calls++; calls == n {
						return unix.EIO
					}
					return nil
				})
				when := fmt.Sprintf("failed at %d", n)
				if err == nil && r.Outcome == "rolled_back" {
					if diff := compare(was, h.fingerprint(t, false)); diff != "" {
						t.Fatalf("%s, it is rolled back to another host:\n%s", when, diff)
					}
				}
				h.settlesCommands(t, when, a.act, want, found)
				h.remove()
				if calls < n {
					break
				}
			}
		})
	}
}
