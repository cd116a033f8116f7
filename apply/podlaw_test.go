package apply_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"golem/scrolls"
)

// drawPodScroll draws a scroll of one leaf or two, of networks, files and containers that
// need each other.
func drawPodScroll(t *rapid.T) *scrolls.Scroll {
	leaves := []*scrolls.Leaf{leafOf("one"), leafOf("two")}
	some := func(what string, most int) bool { return rapid.IntRange(0, most).Draw(t, what) > 0 }
	last := 0
	add := func(g *scrolls.Glyph) {
		last = rapid.IntRange(last, 1).Draw(t, "leaf of "+string(g.Key))
		g.Leaf = leaves[last].Path
		leaves[last].Glyphs = append(leaves[last].Glyphs, g)
	}
	pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(t, what) }
	engine := pick("engine", "podman", "docker")
	var nets []any
	if some("lan", 2) {
		add(network("lan", pick("subnet", "10.6.0.0/24", "10.7.0.0/24"), "engine", engine))
		nets = append(nets, "lan")
	}
	if some("found", 1) {
		add(network("found", "10.5.0.0/24", "engine", engine))
		nets = append(nets, "found")
	}
	conf := some("conf", 1)
	if conf {
		add(fileGlyph("/srv/conf/app.conf", pick("conf text", "one", "two")))
	}
	for _, name := range []string{"web", "job", "mine"} {
		if !some(name, 2) {
			continue
		}
		g := container(name, pick(name+" image", "app:1", "app:2", "app:3", "app:4"), "engine", engine, "command", []any{pick(name+" command", "serve", "other")},
			"env", map[string]any{"A": pick(name+" env", "1", "2")}, "state", pick(name+" state", "running", "running", "stopped"))
		if name == "mine" {
			g.Attrs["adopt"] = true
		}
		if some(name+" on networks", 1) && len(nets) > 0 {
			g.Attrs["networks"] = nets[:rapid.IntRange(1, len(nets)).Draw(t, name+" networks")]
		}
		var mounts []any
		if conf && some(name+" reads", 1) {
			mounts = append(mounts, map[string]any{"source": "/srv/conf", "target": "/conf", "read_only": true})
		}
		if some(name+" volume", 1) {
			mounts = append(mounts, map[string]any{"volume": "data", "target": "/var/data"})
		}
		if g.Attrs["mounts"] = mounts; len(mounts) == 0 {
			delete(g.Attrs, "mounts")
		}
		if name == "mine" && some("mine as it is", 1) {
			g = glyph("container", scrolls.Attrs{"name": "mine", "adopt": true, "engine": engine, "state": g.Attrs["state"]})
		}
		add(g)
	}
	leaves = slices.DeleteFunc(leaves, func(l *scrolls.Leaf) bool { return len(l.Glyphs) == 0 })
	return scrollOf(leaves...)
}

// run applies a scroll that settles, and fails if a second run finds something to do. It
// says false for one that is refused.
func (h *podHost) run(t *rapid.T, s *scrolls.Scroll) bool {
	t.Logf("apply %s", describe(s))
	was := h.Print()
	r, err := h.apply(s, "run")
	var wrong *scrolls.Diagnostics
	if errors.As(err, &wrong) {
		if h.Print() != was {
			t.Fatalf("refused, and the host is another:\nwas\n%s\nis\n%s", was, h.Print())
		}
		t.Logf("refused: %v", err)
		return false
	}
	if err != nil || r.Partial() {
		t.Fatalf("%v %+v", err, failures(r))
	}
	if again, err := h.apply(s, "run"); err != nil || !again.Plan.Empty() {
		t.Fatalf("a second run finds something to do: %v\n%s", err, planText(t, again.Plan))
	}
	return true
}

// podDraws is how many hosts a law of containers is tried on.
const podDraws = 30

func TestLawContainersAreGivenBack(t *testing.T) {
	fewLaw(t, podDraws, func(t *rapid.T) {
		h := newPodHost(t)
		found, tree := h.less(), h.fingerprint(t, false)
		for range rapid.IntRange(1, 3).Draw(t, "runs") {
			if !h.run(t, drawPodScroll(t)) {
				t.Fatal("refused")
			}
		}
		h.run(t, nil)
		h.same("after destroy", found)
		if diff := compare(tree, h.fingerprint(t, false)); diff != "" {
			t.Fatal(diff)
		}
		h.check(t)
	})
}

func TestLawContainersDependOnTheLastScrollAlone(t *testing.T) {
	fewLaw(t, podDraws, func(t *rapid.T) {
		a, b := newPodHost(t), newPodHost(t)
		for range rapid.IntRange(1, 3).Draw(t, "runs") {
			a.run(t, drawPodScroll(t))
		}
		last := drawPodScroll(t)
		if !b.run(t, last) || !a.run(t, last) {
			t.Fatal("refused")
		}
		a.same("after several scrolls", b.less())
	})
}

// Somebody else does things between the runs: golem does what is declared, or refuses it
// before it touches anything; what is somebody's stays his; and destroy comes to its end.
func TestLawContainersWithSomebodyInBetween(t *testing.T) {
	acts := []string{
		"start web", "stop web", "pause web", "unpause web", "pause mine", "pause mine.found", "pause job", "rm --force web", "rename web other", "rename other web", "stop mine", "rm --force mine", "start mine.found", "rm --force mine.found",
		"network disconnect lan web", "network disconnect lan job", "network connect lan beside", "network disconnect lan beside", "network rm lan",
		"create --name=web app:2 his", "create --name=mine app:2 his", "create --name=job --network=lan app:2 his", "create --name=user app:2", "rmi app:3", "pull app:3",
		"create --name=user3 app:3", "network create --subnet=10.9.0.0/24 lan",
	}
	fewLaw(t, podDraws, func(t *rapid.T) {
		h := newPodHost(t)
		for range rapid.IntRange(1, 3).Draw(t, "runs") {
			h.run(t, drawPodScroll(t))
			for range rapid.IntRange(0, 3).Draw(t, "acts") {
				engine := rapid.SampledFrom([]string{"podman", "docker"}).Draw(t, "whose")
				act := rapid.SampledFrom(acts).Draw(t, "act")
				a, _ := h.Run(append([]string{engine}, strings.Fields(act)...)...) // what is refused, is refused
				t.Logf("%s %s: %s", engine, act, a.Err)
			}
		}
		his := hisOwn(h.Print())
		if !h.run(t, nil) {
			t.Fatal("destroy is refused")
		}
		for _, line := range his {
			if !strings.Contains(h.Print(), line) {
				t.Fatalf("somebody's own is gone or changed: %s\nis\n%s", line, h.Print())
			}
		}
		h.check(t)
	})
}

// hisOwn are the lines about containers that somebody made beside golem's.
func hisOwn(print string) []string {
	var lines []string
	for line := range strings.Lines(print) {
		if f := strings.Fields(line); f[1] == "container" && !strings.Contains(line, "golem.") && !strings.HasPrefix(f[2], "mine") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// podStory is what an act of the story declares: "pods one", "pods two", else nothing.
func podStory(act string) *scrolls.Scroll {
	data := map[string]any{"volume": "data", "target": "/var/data"}
	switch act {
	case "pods one":
		return scrollOf(
			leafOf("nets", network("lan", "10.6.0.0/24"), network("found", "10.5.0.0/24")),
			leafOf("apps", container("web", "app:3", "networks", []any{"lan", "found"}, "mounts", []any{data}), container("mine", "app:1", "env", map[string]any{"A": "2"}, "adopt", true)),
			leafOf("own", container("job", "app:1", "state", "stopped", "engine", "docker"), container("beside", "app:1", "adopt", true, "engine", "docker", "state", "stopped")),
		)
	case "pods two":
		return scrollOf(
			leafOf("nets", network("lan", "10.7.0.0/24")),
			leafOf("apps", container("web", "app:4", "networks", []any{"lan"}), container("mine", "app:1", "env", map[string]any{"A": "1"}, "adopt", true, "state", "stopped")),
			leafOf("own", container("job", "app:1", "state", "running", "engine", "docker")),
		)
	}
	return nil
}

// stagePods makes a host that stands right before an act.
func stagePods(t *testing.T, before []string) (h *podHost, found string) {
	h = newPodHost(t)
	found = h.less()
	for _, act := range before {
		if r, err := h.apply(podStory(act), "crash"); err != nil || r.Partial() {
			t.Fatalf("%s: %v %+v", act, err, failures(r))
		}
	}
	return h, found
}

// podActs are the acts of the story, each with what comes before it.
var podActs = []struct {
	name   string
	before []string
	act    string
}{
	{"FreshApply", nil, "pods one"}, {"ReplaceAndRemove", []string{"pods one"}, "pods two"}, {"Destroy", []string{"pods one", "pods two"}, "pods none"},
}

// TestContainersCrashAtEveryCall kills golem before and after every single command and
// change: the next run settles, and destroy gives the host back.
func TestContainersCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	for _, a := range podActs {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			h, _ := stagePods(t, append(slices.Clone(a.before), a.act))
			want := h.less()
			n := 1
			for ; ; n++ {
				h, found := stagePods(t, a.before)
				if !h.killed(t, a.act, n) {
					break
				}
				r, err := h.apply(podStory(a.act), "crash")
				if err != nil || r.Partial() {
					t.Fatalf("killed at %d, the next run does not settle: %v %+v", n, err, failures(r))
				}
				h.same(fmt.Sprintf("killed at %d, the next run leaves another host", n), want)
				if r, err := h.apply(nil, "crash"); err != nil || r.Partial() {
					t.Fatalf("killed at %d, destroy: %v %+v", n, err, failures(r))
				}
				h.same(fmt.Sprintf("killed at %d, after destroy", n), found)
				h.check(t)
				h.remove()
			}
			if n < 14 {
				t.Fatalf("only %d changes were counted", n)
			}
			t.Logf("%d changes, a kill at each", n-1)
		})
	}
}

var errNoMore = errors.New("no more")

// TestContainersFailAtEveryCall lets every single change fail in turn: the leaf that it
// is in is as it was, the others settle, and the next run comes to its end.
func TestContainersFailAtEveryCall(t *testing.T) {
	t.Parallel()
	for _, a := range podActs {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			h, _ := stagePods(t, append(slices.Clone(a.before), a.act))
			want := h.less()
			n := 1
			for ; ; n++ {
				h, found := stagePods(t, a.before)
				calls, struck := 0, ""
				_, err := h.applyWith(podStory(a.act), "crash", func(op, what string) error {
					if !strings.HasPrefix(op, "exec") && op != "ran" {
						return nil
					}
					if calls++; calls == n {
						struck = op + " " + what
						return errNoMore
					}
					return nil
				})
				if struck == "" {
					break
				}
				if r, again := h.apply(podStory(a.act), "crash"); again != nil || r.Partial() {
					t.Fatalf("failed at %d (%s: %v), the next run does not settle: %v %+v", n, struck, err, again, failures(r))
				}
				h.same(fmt.Sprintf("failed at %d (%s), the next run leaves another host", n, struck), want)
				if r, err := h.apply(nil, "crash"); err != nil || r.Partial() {
					t.Fatalf("failed at %d, destroy: %v %+v", n, err, failures(r))
				}
				h.same(fmt.Sprintf("failed at %d (%s), after destroy", n, struck), found)
				h.check(t)
				h.remove()
			}
			t.Logf("%d calls, a failure at each", n-1)
		})
	}
}
