package apply_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"golem/apply"
	"golem/reconcilers"
	"golem/reconcilers/fake"
	"golem/scrolls"
)

// Sensitive variables stand on no command line: in a file that only golem's user reads, and
// that is gone when the container is made.
func TestSensitiveEnvironmentStandsOnNoCommandLine(t *testing.T) {
	h := newPodHost(t)
	const hidden = "hush hush"
	g := container("web", "app:2", "env", map[string]any{"WORD": hidden, "OTHER": "plain"})
	g.Secret = []string{"env"}
	var file string
	arrange := h.arrange
	h.arrange = func(host *reconcilers.Host) {
		arrange(host)
		run := host.Exec
		host.Exec = func(ctx context.Context, c reconcilers.Command) (reconcilers.Output, error) {
			for _, arg := range c.Argv {
				if strings.Contains(arg, hidden) || strings.Contains(c.Brief(), hidden) {
					t.Errorf("it is on the command line: %q", c.Argv)
				}
				if name, ok := strings.CutPrefix(arg, "--env-file="); ok {
					if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
						t.Errorf("the file is %v, %v", st, err)
					}
					file = name
				}
			}
			return run(ctx, c)
		}
	}
	r := h.mustApply(t, scrollOf(leafOf("one", g)))
	if says(t, h.Print(), "OTHER=plain", "WORD="+hidden); strings.Contains(text(t, r)+planText(t, r.Plan), hidden) {
		t.Error("it is in the report, or in the plan")
	}
	if _, err := os.Stat(file); file == "" || !os.IsNotExist(err) {
		t.Errorf("the file %q is still there: %v", file, err)
	}
}

// A container that does not stay up is its leaf's failure, with what it said last.
func TestContainerThatEndsAtOnceFailsWithItsLastWords(t *testing.T) {
	h := newPodHost(t)
	h.mustApply(t, scrollOf(leafOf("one", container("web", "app:1"))))
	was := h.Print()
	for _, c := range []struct{ on, restart, why string }{
		{"rollback", "no", "with exit code 3"},
		{"rollback", "always", "and is started again and again"},
		{"keep", "no", "with exit code 3"},
	} {
		leaf := leafOf("one", network("lan", "10.6.0.0/24"), container("web", "app:3", "command", []any{"end", "3"}, "restart", c.restart))
		leaf.Policy.OnExhaust, leaf.Policy.Retry.MaxAttempts = c.on, 2
		r, err := h.apply(scrollOf(leaf), "run")
		if err != nil {
			t.Fatal(err)
		}
		said := text(t, r)
		says(t, said, "start the container web: it ended at once, "+c.why, "its last words")
		if c.on == "rollback" && h.Print() != was {
			t.Fatalf("rolled back:\nwas\n%s\nis\n%s", was, h.Print())
		}
	}
	// What was kept half done is settled by the next run.
	h.mustApply(t, scrollOf(leafOf("one", network("lan", "10.6.0.0/24"), container("web", "app:2", "networks", []any{"lan"}))))
	says(t, h.Print(), "container web - app:2")
	h.mustApply(t, nil)
	h.same("after destroy", newPodHost(t).less())
}

// What the journal has forgotten is somebody else's, whatever its labels say.
func TestContainerThatWasForgottenIsNotTouched(t *testing.T) {
	h := newPodHost(t)
	g := container("web", "app:2")
	h.mustApply(t, scrollOf(leafOf("one", g)))
	was := h.Print()
	h.mustApply(t, scrollOf(leafOf("two", leftAlone(container("web", "app:2")))))
	h.mustApply(t, nil)
	if h.Print() != was {
		t.Fatalf("left:\nwas\n%s\nis\n%s", was, h.Print())
	}
	if r, err := h.apply(scrollOf(leafOf("one", container("web", "app:1"))), "run"); err == nil || !strings.Contains(err.Error(), "golem did not make") {
		t.Fatalf("a container without a record is taken over: %v %+v", err, r)
	}
	byBlock := container("web", "app:1")
	byBlock.Adopt = true // as an adopt block says
	for _, g := range []*scrolls.Glyph{container("web", "app:1", "adopt", true), byBlock} {
		h.mustApply(t, scrollOf(leafOf("one", g)))
		says(t, h.Print(), "container web.found - app:2")
		h.mustApply(t, nil)
		if h.Print() != was {
			t.Fatalf("given back:\nwas\n%s\nis\n%s", was, h.Print())
		}
	}
}

// leftAlone is a glyph that is left when it is undeclared.
func leftAlone(g *scrolls.Glyph) *scrolls.Glyph {
	g.OnUndeclare = "leave"
	return g
}

// An image that golem pulled stays while anything of it is made, golem's or somebody's.
func TestImageStaysWhileSomebodyNeedsIt(t *testing.T) {
	h := newPodHost(t)
	found := h.less()
	h.mustApply(t, scrollOf(leafOf("one", container("web", "app:3")), leafOf("two", container("job", "app:3"))))
	h.mustApply(t, scrollOf(leafOf("two", container("job", "app:3"))))
	says(t, h.Print(), "podman image "+strings.Repeat("3", 64))
	h.Host("podman", "create", "--name=his", "app:3")
	r := h.mustApply(t, nil)
	says(t, h.Print(), "podman image "+strings.Repeat("3", 64))
	says(t, planText(t, r.Plan), "podman:app:3  left as it is: the container his is made from it")
	h.Host("podman", "rm", "his")
	h.Change("podman", func(e *fake.Engine) { delete(e.Images, strings.Repeat("3", 64)) })
	h.same("after all", found)
	if r.Outcome != apply.Settled {
		t.Error(r.Outcome)
	}
}

// A network goes once the containers are off it that golem put there, found ones included,
// and in whatever order the leaves go.
func TestNetworkGoesAfterAContainerThatWasFoundIsOffIt(t *testing.T) {
	h := newPodHost(t)
	found := h.less()
	lan := func(subnet string) *scrolls.Glyph { return network("lan", subnet) }
	mine := func(networks ...any) *scrolls.Glyph {
		g := glyph("container", scrolls.Attrs{"name": "mine", "adopt": true})
		if len(networks) > 0 {
			g.Attrs["networks"] = networks
		}
		return g
	}
	h.mustApply(t, scrollOf(leafOf("nets", lan("10.6.0.0/24")), leafOf("pods", mine("lan"))))
	h.Host("podman", "network", "connect", "found", "mine") // by hand, and so it stays
	r := h.mustApply(t, scrollOf(leafOf("nets", lan("10.7.0.0/24")), leafOf("pods", mine("lan"))))
	says(t, planText(t, r.Plan), "the container mine is cut off from it and put on the new one")
	r = h.mustApply(t, scrollOf(leafOf("pods", mine())))
	says(t, planText(t, r.Plan), "network:lan", "removed: golem made it", "it is taken off the network lan")
	h.Host("podman", "network", "disconnect", "found", "mine")
	h.same("off it", found)

	// The network's leaf goes first, and the container after it.
	h.mustApply(t, scrollOf(leafOf("nets", lan("10.6.0.0/24")), leafOf("pods", mine("lan"))))
	h.mustApply(t, scrollOf(leafOf("else", container("web", "app:1"))))
	h.mustApply(t, nil)
	h.same("after all", found)
}

// What is changed in place leaves no trace of how it came about: the label says what a
// container was made as.
func TestStateIsNoPartOfWhatAContainerWasMadeAs(t *testing.T) {
	a, b := newPodHost(t), newPodHost(t)
	a.mustApply(t, scrollOf(leafOf("one", container("web", "app:1"))))
	a.mustApply(t, scrollOf(leafOf("one", container("web", "app:1", "state", "stopped"))))
	b.mustApply(t, scrollOf(leafOf("one", container("web", "app:1", "state", "stopped"))))
	a.same("stopped after it ran", b.less())
}

// A container that somebody paused goes on, and one that was found paused waits again.
func TestPausedContainers(t *testing.T) {
	h := newPodHost(t)
	h.Host("podman", "pause", "mine")
	found := h.less()
	web := container("web", "app:1", "command", []any{"serve"})
	h.mustApply(t, scrollOf(leafOf("one", web, glyph("container", scrolls.Attrs{"name": "mine", "adopt": true}))))
	h.Host("podman", "pause", "web")
	r := h.mustApply(t, scrollOf(leafOf("one", web, container("mine", "app:1", "adopt", true, "env", map[string]any{"A": "9"}))))
	says(t, planText(t, r.Plan), "drifted: it is paused; it goes on", "it is stopped and kept as mine.found")
	h.mustApply(t, nil)
	h.same("after destroy", found)
}

// A name that a change needs for a moment is somebody's: told before anything is stopped.
func TestContainerWhoseFormerNameIsTakenIsNotTouched(t *testing.T) {
	h := newPodHost(t)
	h.mustApply(t, scrollOf(leafOf("one", container("web", "app:1"))))
	h.Host("podman", "create", "--name=web.former", "app:1")
	was := h.Print()
	var wrong *scrolls.Diagnostics
	if _, err := h.apply(scrollOf(leafOf("one", container("web", "app:2"))), "run"); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "web.former") {
		t.Errorf("it is said: %v", err)
	}
	if h.Print() != was {
		t.Errorf("was\n%s\nis\n%s", was, h.Print())
	}
}
