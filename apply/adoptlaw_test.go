package apply_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"golem/plan"
	"golem/reconcilers"
	"golem/scrolls"
	"golem/state"
)

// adoptable are the kinds and ids of what may be adopted on a host: every path, and of each
// file its lines, blocks and some keys.
func (h *lawHost) adoptable(t tester) map[string][]string {
	ids := map[string][]string{}
	err := filepath.WalkDir(h.root, func(p string, d fs.DirEntry, err error) error {
		at := strings.TrimPrefix(p, h.root)
		if err != nil || at == "" || strings.HasSuffix(at, ".twin") { // the other name of one file
			return err
		}
		for _, kind := range []string{"file", "directory", "link", "entry"} {
			id := at
			if kind == "entry" {
				for _, key := range []string{"a", "a.b", "a.b.0", "l.0", "l:[x]", "n", "new", "a.c"} {
					ids[kind] = append(ids[kind], at+":"+key)
				}
				continue
			}
			ids[kind] = append(ids[kind], id)
		}
		if d.Type().IsRegular() {
			ids["region"] = append(ids["region"], at+":web", at+":db")
			for _, line := range slices.Concat(lawLines, []string{"10.0.0.9 old", "tea"}) {
				ids["line"] = append(ids["line"], at+":"+line)
			}
		}
		for _, who := range []string{"user:1000", "group:0", "user:4711"} {
			ids["access"] = append(ids["access"], at+":"+who)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// adopted adopts all that can be, and gives the scroll as it is printed. What cannot be is
// refused in words.
func (h *lawHost) adopted(t tester, ids map[string][]string) (text string, kinds map[string]int) {
	var b strings.Builder
	kinds = map[string]int{}
	h.look(t, func(w *reconcilers.World) {
		for _, kind := range slices.Sorted(maps.Keys(ids)) {
			for _, id := range ids[kind] {
				adopted, err := reconcilers.Adopt(context.Background(), w, kind, id)
				var refused *reconcilers.AdoptError
				switch {
				case errors.As(err, &refused):
				case err == nil:
					kinds[kind]++
					b.Write(adopted.Text())
				case !strings.Contains(err.Error(), "link"): // a dangling one, or one in a circle
					t.Fatalf("adopt %s %s: %v", kind, id, err)
				}
			}
		}
	})
	return b.String(), kinds
}

// look opens the host for something that only looks.
func (h *lawHost) look(t tester, do func(w *reconcilers.World)) {
	host, err := reconcilers.OpenHost(h.root)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	if h.arrange != nil {
		h.arrange(host)
	}
	w := reconcilers.NewWorld(host, nil)
	defer w.Close()
	do(w)
}

// plansNothing fails unless a plan of a printed scroll does no more than record what is there.
func (h *lawHost) plansNothing(t tester, text string) *scrolls.Scroll {
	s, err := scrolls.LoadText(text, scrolls.Options{Kinds: reconcilers.Kinds(), Name: "law"})
	if err != nil {
		t.Fatalf("load what was printed: %v\n%.3000s", err, text)
	}
	h.look(t, func(w *reconcilers.World) {
		p, err := plan.Make(plan.Input{Scroll: s, Lineage: "law", Snapshot: &state.Snapshot{}, World: w})
		if err != nil {
			t.Fatalf("plan what was printed: %v\n%.3000s", err, text)
		}
		for _, c := range p.Changes() {
			if c.Effect != "record" {
				t.Fatalf("%s: %s, %s\n%.3000s", c.Key, c.Effect, c.Reason, text)
			}
		}
	})
	return s
}

// adoptLaw holds for a host: what is adopted plans no change, and applied and taken back the
// host is as it was.
func (h *lawHost) adoptLaw(t *rapid.T, ids map[string][]string) map[string]int {
	text, kinds := h.adopted(t, ids)
	s := h.plansNothing(t, text)
	if len(s.Glyphs()) == 0 {
		return kinds
	}
	before := h.fingerprint(t, true)
	for _, next := range []*scrolls.Scroll{s, nil} {
		if _, err := h.apply(next, "law"); err != nil {
			t.Fatalf("apply what was printed: %v\n%.3000s", err, text)
		}
		if diff := compare(before, h.fingerprint(t, true)); diff != "" {
			t.Fatalf("the host changed: %s\n%.3000s", diff, text)
		}
	}
	return kinds
}

// TestLawWhatIsAdoptedPlansNoChange: of every kind of path and edit, on random hosts.
func TestLawWhatIsAdoptedPlansNoChange(t *testing.T) {
	all := map[string]int{}
	t.Cleanup(func() {
		for _, kind := range []string{"file", "directory", "link", "line", "region", "entry"} {
			if all[kind] == 0 && !t.Failed() {
				t.Errorf("nothing of the kind %s was adopted", kind)
			}
		}
	})
	fewLaw(t, 60, func(t *rapid.T) {
		h := drawHost(t)
		defer h.remove()
		for kind, n := range h.adoptLaw(t, h.adoptable(t)) {
			all[kind] += n
		}
	})
}

// TestLawAdoptedAccountsPlanNoChange: of users and groups, made by hand or by the base.
func TestLawAdoptedAccountsPlanNoChange(t *testing.T) {
	users := 0
	t.Cleanup(func() {
		if users == 0 && !t.Failed() && !t.Skipped() {
			t.Error("no user was adopted")
		}
	})
	userLaw(t, func(t *rapid.T) {
		h := newUserHost(t)
		defer h.remove()
		if err := drawUsers(t)(h); err != nil {
			t.Fatal(err)
		}
		ids := map[string][]string{}
		names := []string{"ada", "bob", "root", "sudo", "users", "crew"}
		ids["user"], ids["group"] = names, names
		kinds := h.adoptLaw(t, ids)
		users += kinds["user"]
	})
}

// TestAdoptedContainersAndNetworksPlanNoChange: of what is on a host with podman.
func TestAdoptedContainersAndNetworksPlanNoChange(t *testing.T) {
	h := newPodHost(t)
	h.Host("podman", "network", "create", "--subnet=10.6.0.0/24", "--internal", "--opt=mtu=1400", "--label=of=him", "inner")
	h.Host("podman", "create", "--name=stopped", "--network=inner", "--volume=found:/data:ro", "app:2", "serve", "a b")
	h.Host("podman", "create", "--name=wide", "--network=host", "app:1")
	found := h.less()
	text, kinds := h.adopted(t, map[string][]string{"container": {"beside", "mine", "stopped", "wide", "none"}, "network": {"found", "network:inner", "none"}})
	if kinds["container"] != 4 || kinds["network"] != 2 {
		t.Fatalf("adopted %v:\n%s", kinds, text)
	}
	says(t, text, "internal = true", "subnet   = \"10.6.0.0/24\"", "networks = [\"inner\"]", "networks = [\"host\"]")
	s := h.plansNothing(t, text)
	h.mustApply(t, s)
	h.same("applied", found)
	h.mustApply(t, nil)
	h.same("taken back", found)
}
