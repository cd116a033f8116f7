package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golem/apply"
	"golem/plan"
	"golem/reconcilers"
	"golem/reconcilers/fake"
	"golem/scrolls"
)

// A programHost is a lawHost that has a fake's small programs.
type programHost struct {
	*lawHost
	ran []string // what changed the host, since it was last asked
}

// programsAt gives a host the programs.
func programsAt(l *lawHost) *programHost {
	h := &programHost{lawHost: l}
	programs := fake.Programs{Root: l.root}
	l.arrange = func(host *reconcilers.Host) {
		host.Booted = true
		host.Sleep = func(context.Context, time.Duration) error { return nil }
		host.Exec = func(_ context.Context, c reconcilers.Command) (reconcilers.Output, error) {
			if c.Changes {
				h.ran = append(h.ran, strings.Join(c.Argv, " "))
			}
			a, ok := programs.Run(c.Argv...)
			if !ok {
				return reconcilers.Output{}, fmt.Errorf("run %s: no such program", c.Argv[0])
			}
			if a.Code != 0 {
				return reconcilers.Output{}, &reconcilers.CommandError{Argv: c.Argv, Secret: c.Secret, Code: a.Code, Said: a.Err, Err: fmt.Errorf("exit status %d", a.Code)}
			}
			return reconcilers.Output{}, nil
		}
	}
	return h
}

func newProgramHost(t *testing.T) *programHost {
	return programsAt(hostWith(t, map[string]string{"/etc/found": "found\n"}))
}

// did fails unless the programs that changed the host since it was last asked are these.
func (h *programHost) did(t *testing.T, when string, want ...string) {
	t.Helper()
	if !slices.Equal(h.ran, want) {
		t.Errorf("%s: it ran %q, want %q", when, h.ran, want)
	}
	h.ran = nil
}

// command is a command glyph; the attributes come in pairs, and commands as one string.
func command(name string, attrs ...any) *scrolls.Glyph {
	a := scrolls.Attrs{"name": name}
	for i := 0; i+1 < len(attrs); i += 2 {
		attr := attrs[i].(string)
		a[attr] = attrs[i+1]
		if text, ok := attrs[i+1].(string); ok && slices.Contains([]string{"run", "undo", "unless", "onlyif", "triggered_by"}, attr) {
			var list []any
			for _, word := range strings.Fields(text) {
				list = append(list, word)
			}
			a[attr] = list
		}
	}
	return glyph("command", a)
}

// once is a scroll of one leaf that tries everything once.
func once(glyphs ...*scrolls.Glyph) *scrolls.Scroll {
	s := scrollOf(leafOf("a", glyphs...))
	s.Leaves[0].Policy.Retry.MaxAttempts = 1
	return s
}

func TestACommandRunsOnceForEachVersion(t *testing.T) {
	h := newProgramHost(t)
	found := h.fingerprint(t, true)
	apply := func(attrs ...any) string {
		return planText(t, h.mustApply(t, scrollOf(leafOf("a", command("x", attrs...)))).Plan)
	}
	says(t, apply("run", "put /x one", "undo", "take /x"), "+ command:x  install  runs put /x one")
	h.did(t, "installed", "put /x one")
	says(t, apply("run", "put /x one", "undo", "take /x"), "No changes.")
	h.did(t, "again")
	says(t, apply("run", "put /x two", "undo", "take /x"), "~ command:x  replace  runs the undo of the version that ran (take /x), then runs put /x two", "-run: put /x one", "+run: put /x two")
	h.did(t, "another version", "take /x", "put /x two")
	says(t, apply("run", "put /x two", "undo", "take  /x twice"), "~ command:x  replace  its undo changes; it is not run again")
	h.did(t, "another undo")
	says(t, apply("run", "put /x two", "undo", "take /x twice", "timeout", "1m"), "1 record is brought up to date in the journal")
	h.did(t, "another timeout")
	r := h.mustApply(t, nil)
	says(t, planText(t, r.Plan), "- command:x  remove   runs its undo: take /x twice")
	h.did(t, "undeclared", "take /x twice")
	if diff := compare(found, h.fingerprint(t, true)); diff != "" {
		t.Errorf("undeclaring left another host:\n%s", diff)
	}
	h.check(t)
}

func TestAGuardDecidesWhetherACommandRuns(t *testing.T) {
	for _, c := range []struct {
		attr, value, run string
		done, asks, says string // what makes the guard hold, and ask; how the plan says so
	}{
		{"creates", "/x", "put /x one", "put /x one", "take /x", "/x is not there"},
		{"unless", "has /x one", "put /x one", "put /x one", "put /x other", "its `unless` does not hold"},
		{"onlyif", "has /asks yes", "take /asks", "take /asks", "put /asks yes", "its `onlyif` holds"},
	} {
		t.Run(c.attr, func(t *testing.T) {
			h := newProgramHost(t)
			programs := fake.Programs{Root: h.root}
			g := func() *scrolls.Scroll {
				return scrollOf(leafOf("a", command("x", "run", c.run, "undo", "take /x", c.attr, c.value)))
			}
			programs.Run(strings.Fields(c.done)...)
			r := h.mustApply(t, g())
			says(t, planText(t, r.Plan), "+ command:x  install  not run: ")
			h.did(t, "found done")
			says(t, planText(t, h.mustApply(t, g()).Plan), "No changes.")
			for range 2 {
				programs.Run(strings.Fields(c.asks)...)
				r = h.mustApply(t, g())
				says(t, planText(t, r.Plan), "! command:x  repair   drifted: "+c.says+"; runs "+c.run)
				h.did(t, "asks", c.run)
				says(t, planText(t, h.mustApply(t, g()).Plan), "No changes.")
			}
			h.mustApply(t, nil)
			h.did(t, "undeclared", "take /x")
		})
	}
}

func TestAGuardThatAsksStillFailsTheLeaf(t *testing.T) {
	h := newProgramHost(t)
	s := scrollOf(leafOf("a", command("x", "run", "put /x one", "undo", "take /x", "onlyif", "has /asks yes")))
	h.write(t, "/asks", "yes")
	r, err := h.apply(s, "run")
	if err != nil || r.Outcome != "rolled_back" {
		t.Fatalf("%v %s", err, text(t, r))
	}
	says(t, text(t, r), "command:x: it ran, and has still to be run: its `onlyif` holds")
	h.did(t, "asks still", "put /x one", "take /x") // another try would do no good
}

func TestACommandThatNeverRanIsForgotten(t *testing.T) {
	h := newProgramHost(t)
	h.mustApply(t, scrollOf(leafOf("a", command("x", "run", "put /etc/found x", "undo", "take /etc/found", "creates", "/etc/found"))))
	r := h.mustApply(t, scrollOf(leafOf("a", command("x", "run", "put /etc/found y", "undo", "take /etc/found", "creates", "/etc/found"))))
	says(t, planText(t, r.Plan), "not run: /etc/found is there")
	r = h.mustApply(t, nil)
	says(t, planText(t, r.Plan), "- command:x  forget   golem did not run it")
	h.did(t, "in all")
}

func TestWhatHasNoUndoIsSaidBeforeAndAfter(t *testing.T) {
	h := newProgramHost(t)
	x := func(text string) *scrolls.Glyph { return command("x", "run", "put /x "+text) }
	r := h.mustApply(t, scrollOf(leafOf("a", x("one"))))
	says(t, planText(t, r.Plan), "cannot be undone: it has no undo", "Cannot be undone\n  command:x  it has no undo")
	r = h.mustApply(t, scrollOf(leafOf("a", x("two"))))
	says(t, planText(t, r.Plan), "cannot be undone: what the version that ran did stays: it has no undo")
	r = h.mustApply(t, nil)
	says(t, planText(t, r.Plan), "- command:x  forget", "cannot be undone: it has no undo: what it did stays")
	h.did(t, "in all", "put /x one", "put /x two")

	// A leaf that fails says what of it could not be taken back.
	r, err := h.apply(once(fileGlyph("/etc/f", "f"), x("one"), command("y", "run", "half /y boom")), "run")
	if err != nil {
		t.Fatal(err)
	}
	says(t, text(t, r), "it failed, and is as it was before this run but for what has no undo",
		"command:y: run half: boom",
		"command:x: it ran and has no undo: what it did stays",
		"command:y: it is not known whether it took effect: it was run, or was about to be, and has no undo")
	h.content(t, "/x", "one")
	h.content(t, "/y", "boom")
}

func TestAFailingCommandIsUndoneBetweenItsTries(t *testing.T) {
	h := newProgramHost(t)
	s := scrollOf(leafOf("a", command("x", "run", "half /x boom", "undo", "take /x")))
	s.Leaves[0].Policy.Retry.MaxAttempts = 2
	r, err := h.apply(s, "run")
	if err != nil || r.Outcome != "rolled_back" {
		t.Fatalf("%v %s", err, text(t, r))
	}
	says(t, text(t, r), "run half: boom")
	h.did(t, "two tries", "half /x boom", "take /x", "half /x boom", "take /x")
}

func TestATriggerRunsACommandAgain(t *testing.T) {
	h := newProgramHost(t)
	s := func(content, version string, more ...*scrolls.Glyph) *scrolls.Scroll {
		x := command("x", "run", "put /x "+version, "undo", "take /x", "unless", "has /etc/found found\n", "triggered_by", "file:/etc/conf")
		x.Attrs["unless"] = []any{"has", "/etc/found", "found\n"} // always: it runs only when it is triggered
		return once(append([]*scrolls.Glyph{fileGlyph("/etc/conf", content), x}, more...)...)
	}
	r := h.mustApply(t, s("one", "one"))
	says(t, planText(t, r.Plan), "not run: its `unless` holds", "Triggered\n  run command:x  file:/etc/conf changes")
	h.did(t, "its file came", "put /x one")
	h.mustApply(t, s("one", "one"))
	h.did(t, "nothing changed")
	h.mustApply(t, s("two", "one"))
	h.did(t, "its file changed", "put /x one")

	// A leaf that is rolled back runs what stood before, for it to read the old file.
	r, err := h.apply(s("three", "three", command("y", "run", "fail no")), "run")
	if err != nil || r.Outcome != "rolled_back" {
		t.Fatalf("%v %s", err, text(t, r))
	}
	h.content(t, "/etc/conf", "two")
	h.did(t, "rolled back", "fail no", "put /x one")

	// It may have run by a trigger only: it is undone.
	r = h.mustApply(t, nil)
	says(t, planText(t, r.Plan), "runs its undo: take /x; what it is triggered by may have run it")
	h.did(t, "undeclared", "take /x")
}

func TestACommandThatRunsInItsTurnMeetsItsTrigger(t *testing.T) {
	h := newProgramHost(t)
	before, after := fileGlyph("/etc/before", "x"), fileGlyph("/etc/after", "x")
	x := command("x", "run", "put /x one", "undo", "take /x", "triggered_by", "file:/etc/**")
	h.mustApply(t, scrollOf(leafOf("a", before, x)))
	h.did(t, "behind what changes", "put /x one")
	h.mustApply(t, scrollOf(leafOf("a", before, x, after)))
	h.did(t, "before what changes", "put /x one")
	// A new command that is taken back is not run by the trigger that its leaf fires again.
	h.mustApply(t, nil)
	h.did(t, "undeclared", "take /x")
	if r, err := h.apply(once(before, x, command("y", "run", "fail no")), "run"); err != nil || r.Outcome != "rolled_back" {
		t.Fatalf("%v %s", err, text(t, r))
	}
	h.did(t, "rolled back", "put /x one", "fail no", "take /x")
}

func TestAGuardThatAnEarlierStepMovesIsAskedAgain(t *testing.T) {
	h := newProgramHost(t)
	conf := fileGlyph("/etc/conf", "done")
	x := command("x", "run", "put /x one", "undo", "take /x", "unless", "has /etc/conf done")
	r := h.mustApply(t, scrollOf(leafOf("a", conf, x)))
	says(t, planText(t, r.Plan), "runs put /x one: its `unless` does not hold")
	h.did(t, "at apply the guard holds")
	// Where nothing came before it, a guard that moved since the plan is the host that moved.
	_, err := h.applyAs(context.Background(), apply.Options{
		Scroll: scrollOf(leafOf("b", command("z", "run", "put /z z", "undo", "take /z", "creates", "/etc/z"))), Lineage: "other",
		Approve: func(*plan.Plan) (bool, error) {
			h.write(t, "/etc/z", "by hand")
			return true, nil
		},
	}, nil)
	if !errors.Is(err, reconcilers.ErrMoved) {
		t.Errorf("the guard moved since the plan: %v", err)
	}
}

func TestACommandOnAFileTreeIsAMistake(t *testing.T) {
	h := hostWith(t, nil)
	_, err := h.apply(scrollOf(leafOf("a", command("x", "run", "true"))), "run")
	if err == nil || !strings.Contains(err.Error(), "Needs a live host") {
		t.Errorf("it says %v", err)
	}
}

func TestACommandKeepsItsRecordUnderAnotherName(t *testing.T) {
	h := newProgramHost(t)
	x := func(name, from string) *scrolls.Glyph {
		g := command(name, "run", "put /x one", "undo", "take /x")
		g.MovedFrom = scrolls.Key(from)
		return g
	}
	h.mustApply(t, once(x("old", "")))
	h.did(t, "installed", "put /x one")
	r := h.mustApply(t, once(x("new", "command:old")))
	says(t, planText(t, r.Plan), "~ command:new  replace  was command:old; it is not run again")
	for _, s := range []*scrolls.Scroll{once(x("new", "command:old")), once(x("new", ""))} {
		if r := h.mustApply(t, s); !r.Plan.Empty() {
			t.Errorf("it finds something to do:\n%s", planText(t, r.Plan))
		}
	}
	// The old name is free for another.
	h.mustApply(t, once(x("new", ""), command("old", "run", "put /y one", "undo", "take /y")))
	h.did(t, "another by the old name", "put /y one")
	h.mustApply(t, nil)
	h.did(t, "undeclared", "take /y", "take /x")
	h.check(t)
}

func TestACommandThatIsLeftIsNotUndone(t *testing.T) {
	h := newProgramHost(t)
	g := command("x", "run", "put /x one", "undo", "take /x")
	g.OnUndeclare = "leave"
	h.mustApply(t, once(g))
	h.mustApply(t, nil)
	h.did(t, "in all", "put /x one")
	h.content(t, "/x", "one")
}
