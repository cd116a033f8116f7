package apply_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"golem/apply"
	"golem/scrolls"
	"golem/state"
)

// lawChecks is how many random hosts each law is tried on: a few thousand in all, and
// many more where there is time.
func lawChecks(t *testing.T) {
	t.Helper()
	t.Parallel()
	checks := "120"
	if os.Getenv("GOLEM_SOAK") != "" {
		checks = "20000"
	}
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		if err := f.Value.Set(checks); err != nil {
			t.Fatal(err)
		}
	}
}

// run applies a scroll. A scroll that this host refuses must be refused before
// anything is touched.
func (h *lawHost) run(t *rapid.T, s *scrolls.Scroll, lineage string) (refused bool) {
	t.Logf("%s: %s", lineage, describe(s))
	before := h.fingerprint(t, true)
	report, err := h.apply(s, lineage)
	var diags *scrolls.Diagnostics
	switch {
	case err != nil && errors.As(err, &diags):
		if diff := compare(before, h.fingerprint(t, true)); diff != "" {
			t.Fatalf("a refused scroll changed the host: %v\n%s", err, diff)
		}
		return true
	case err != nil:
		t.Fatalf("apply %s: %v", describe(s), err)
	case report.Partial():
		t.Fatalf("apply %s: %s: %+v", describe(s), report.Outcome, failures(report))
	}
	h.inForce(t, s, lineage)
	return false
}

// inForce fails unless the keys in force are those that the scroll declares.
func (h *lawHost) inForce(t *rapid.T, s *scrolls.Scroll, lineage string) {
	r, err := state.Read(filepath.Join(h.dir, "journal", "planroom.db"), state.Options{Root: h.root})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	snap, err := r.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	declared := map[scrolls.Key]bool{}
	if s != nil {
		for _, g := range s.Glyphs() {
			declared[g.Key] = true
		}
	}
	for _, a := range snap.Applied {
		if a.Lineage == lineage && !declared[a.Key] {
			t.Fatalf("%s is in force after %s", a.Key, describe(s))
		}
		if a.Lineage == lineage {
			delete(declared, a.Key)
		}
	}
	for key := range declared {
		t.Fatalf("%s is not in force after %s", key, describe(s))
	}
}

// settled fails unless a second apply of the same scroll finds nothing to do.
func (h *lawHost) settled(t *rapid.T, s *scrolls.Scroll, lineage string) {
	before := h.fingerprint(t, true)
	report, err := h.apply(s, lineage)
	if err != nil {
		t.Fatalf("apply again %s: %v", describe(s), err)
	}
	if !report.Plan.Empty() {
		t.Fatalf("a second apply of %s finds something to do: %s", describe(s), changes(report))
	}
	if diff := compare(before, h.fingerprint(t, true)); diff != "" {
		t.Fatalf("a second apply changed the host:\n%s", diff)
	}
}

func describe(s *scrolls.Scroll) string {
	if s == nil {
		return "destroy"
	}
	var b strings.Builder
	for _, leaf := range s.Leaves {
		fmt.Fprintf(&b, "\n [%s]", leaf.Path)
		for _, g := range leaf.Glyphs {
			fmt.Fprintf(&b, "\n    %s %v", g.Key, g.Attrs)
		}
	}
	return b.String()
}

// TestLawExactReturn: whatever scrolls were applied, destroy gives the host back as it
// was found, to the last byte, mode, owner, attribute, name and time.
func TestLawExactReturn(t *testing.T) {
	lawChecks(t)
	rapid.Check(t, func(t *rapid.T) {
		h := drawHost(t)
		defer h.remove()
		found := h.fingerprint(t, true)
		for range rapid.IntRange(1, 4).Draw(t, "scrolls") {
			s := drawScroll(t, "law", everything)
			if !h.run(t, s, "law") {
				h.settled(t, s, "law")
			}
		}
		h.run(t, nil, "law")
		if diff := compare(found, h.fingerprint(t, true)); diff != "" {
			t.Fatalf("destroy did not give the host back:\n%s", diff)
		}
		h.check(t)
	})
}

// TestLawPathIndependence: the host after S1 … Sn is the host after Sn alone.
func TestLawPathIndependence(t *testing.T) {
	lawChecks(t)
	rapid.Check(t, func(t *rapid.T) {
		long, short := twinsOf(t, drawTree(t))
		defer long.remove()
		defer short.remove()
		for range rapid.IntRange(1, 3).Draw(t, "scrolls before") {
			long.run(t, drawScroll(t, "law", everything), "law")
		}
		last := drawScroll(t, "law", everything)
		if long.run(t, last, "law") || short.run(t, last, "law") {
			return // refused on one of the two: what the order of leaves does not allow
		}
		if diff := compare(short.fingerprint(t, false), long.fingerprint(t, false)); diff != "" {
			t.Fatalf("the way there shows:\n%s", diff)
		}
	})
}

// TestLawTwoLineages: two scrolls on one host, on the same files, applied and
// destroyed in any order: each settles, and in the end the host is as it was.
func TestLawTwoLineages(t *testing.T) {
	lawChecks(t)
	rapid.Check(t, func(t *rapid.T) {
		h := drawHost(t)
		defer h.remove()
		found := h.fingerprint(t, true)
		names := []string{"even", "odd"}
		for range rapid.IntRange(2, 6).Draw(t, "runs") {
			who := rapid.IntRange(0, 1).Draw(t, "lineage")
			s := drawScroll(t, names[who], func(i int) bool { return i%2 == who })
			if rapid.IntRange(0, 3).Draw(t, "destroy") == 0 {
				s = nil
			}
			if !h.run(t, s, names[who]) && s != nil {
				h.settled(t, s, names[who])
			}
		}
		for _, who := range rapid.Permutation([]int{0, 1}).Draw(t, "last") {
			h.run(t, nil, names[who])
		}
		if diff := compare(found, h.fingerprint(t, true)); diff != "" {
			t.Fatalf("destroying both did not give the host back:\n%s", diff)
		}
		h.check(t)
	})
}

// TestLawHumansInBetween: a stranger edits between runs. Nothing of his is ever lost:
// what he wrote is on the host, or golem kept it.
func TestLawHumansInBetween(t *testing.T) {
	lawChecks(t)
	rapid.Check(t, func(t *rapid.T) {
		h := drawHost(t)
		defer h.remove()
		var tokens []string
		for i := range rapid.IntRange(1, 4).Draw(t, "rounds") {
			h.run(t, drawScroll(t, "law", everything), "law")
			for j := range rapid.IntRange(0, 3).Draw(t, "edits") {
				token := fmt.Sprintf("stranger-%d-%d", i, j)
				if h.stranger(t, token, &tokens) {
					tokens = append(tokens, token)
				}
			}
		}
		h.run(t, drawScroll(t, "law", everything), "law")
		h.run(t, nil, "law")
		have := strings.Join(append(h.contents(t), h.kept(t)...), "\x00")
		for _, token := range tokens {
			if !strings.Contains(have, token) {
				t.Fatalf("%s is neither on the host nor kept", token)
			}
		}
		h.check(t)
	})
}

// stranger makes one edit with a token in it. It says whether the token is now on the
// host; tokens that the stranger himself destroys are taken off the list.
func (h *lawHost) stranger(t *rapid.T, token string, tokens *[]string) bool {
	at := h.root + rapid.SampledFrom(lawFiles).Draw(t, "his path")
	st, err := os.Lstat(at)
	there := err == nil
	switch what := rapid.SampledFrom([]string{"append", "prepend", "write", "remove", "chmod", "new"}).Draw(t, "his edit"); {
	case what == "new":
		beside := filepath.Dir(at) + "/his-" + token
		return os.WriteFile(beside, []byte(token), 0o644) == nil
	case !there || !st.Mode().IsRegular():
		return false
	case what == "chmod":
		_ = os.Chmod(at, 0o640)
		return false
	case what == "remove":
		h.lose(at, tokens)
		_ = os.Remove(at)
		return false
	default:
		old, err := os.ReadFile(at)
		if err != nil {
			return false
		}
		text := map[string]string{
			"append": string(old) + token + "\n", "prepend": token + "\n" + string(old), "write": token,
		}[what]
		if what == "write" {
			h.lose(at, tokens)
		}
		return os.WriteFile(at, []byte(text), 0o644) == nil
	}
}

// lose takes the tokens in a file off the list: their own author destroys them.
func (h *lawHost) lose(at string, tokens *[]string) {
	data, _ := os.ReadFile(at)
	var left []string
	for _, token := range *tokens {
		if !strings.Contains(string(data), token) {
			left = append(left, token)
		}
	}
	*tokens = left
}

// contents returns every regular file's bytes.
func (h *lawHost) contents(t *rapid.T) []string {
	var all []string
	for name := range h.fingerprint(t, false) {
		if st, err := os.Lstat(h.root + name); err == nil && st.Mode().IsRegular() {
			data, err := os.ReadFile(h.root + name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(data))
		}
	}
	return all
}

func failures(r *apply.Report) (all []apply.Failure) {
	for _, leaf := range r.Leaves {
		all = append(all, leaf.Failures...)
	}
	return all
}

func changes(r *apply.Report) string {
	var b strings.Builder
	for _, c := range r.Plan.Changes() {
		fmt.Fprintf(&b, "\n %s %s: %s", c.Op, c.Key, c.Reason)
	}
	for _, s := range r.Plan.Wave {
		fmt.Fprintf(&b, "\n last wave: %s", s.Resource)
	}
	return b.String()
}
