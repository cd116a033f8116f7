package apply_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"golem/apply"
	"golem/plan"
	"golem/scrolls"
)

// drawParts cuts a scroll's keys, and those in force, into parts in any order.
func (h *lawHost) drawParts(t *rapid.T, s *scrolls.Scroll, lineage string) [][]string {
	var names []string
	if s != nil {
		for _, g := range s.Glyphs() {
			names = append(names, string(g.Key))
		}
	}
	for _, a := range h.snapshot(t).Applied {
		if a.Lineage == lineage && !slices.Contains(names, string(a.Key)) {
			names = append(names, string(a.Key))
		}
	}
	if len(names) == 0 {
		return nil
	}
	names = rapid.Permutation(names).Draw(t, "order")
	var parts [][]string
	for len(names) > 0 {
		n := rapid.IntRange(1, len(names)).Draw(t, "part")
		parts, names = append(parts, names[:n]), names[n:]
	}
	return parts
}

// applyPart applies a part of a scroll. It is nil for one that is refused.
func (h *lawHost) applyPart(t *rapid.T, s *scrolls.Scroll, lineage string, part []string) *apply.Report {
	was := h.snapshot(t)
	report, err := h.applyAs(context.Background(), apply.Options{Scroll: s, Lineage: lineage, Choice: &plan.Choice{Targets: escaped(part)}}, nil)
	t.Logf("only %q: %v", part, err)
	if errors.As(err, new(*scrolls.Diagnostics)) || err != nil && strings.Contains(err.Error(), "which is left out of this run") {
		return nil
	}
	if err != nil {
		t.Fatalf("apply %q: %v %v", part, err, failures(report))
	}
	h.leftAlone(t, was, part)
	return report
}

// TestLawUnitsInParts: units are given back whatever was chosen on the way.
func TestLawUnitsInParts(t *testing.T) {
	unitLaw(t, func(t *rapid.T) {
		h := lawUnitHost(t, drawFound(t))
		found, stopped := h.Print(), map[string]bool{}
		h.run(t, drawUnitScroll(t), stopped)
		for _, s := range []*scrolls.Scroll{drawUnitScroll(t), nil} {
			for _, part := range h.drawParts(t, s, "run") {
				r := h.applyPart(t, s, "run", part)
				if r == nil {
					continue
				}
				if r.Partial() {
					t.Skip("granted in part")
				}
				for _, e := range r.Plan.Effects() {
					if e.Do == "stop" && !strings.HasPrefix(e.Reason, "started by golem") && !strings.HasPrefix(e.Reason, "started with") {
						stopped[e.Unit] = true
					}
				}
			}
		}
		h.run(t, nil, stopped)
		sameBut(t, found, h.Print(), stopped)
		h.check(t)
	})
}

// TestLawPackagesInParts: packages are given back whatever was chosen on the way.
func TestLawPackagesInParts(t *testing.T) {
	unitLaw(t, func(t *rapid.T) {
		h := newPkgHost(t)
		defer h.remove()
		h.drawPackages(t, false)
		found := h.print(t)
		t.Logf("found: %v", found)
		for _, p := range h.m.Archive {
			t.Logf("archive: %+v", *p)
		}
		h.run(t, h.drawPackageScroll(t, "law", everything), "law")
		for _, s := range []*scrolls.Scroll{h.drawPackageScroll(t, "law", everything), nil} {
			for _, part := range h.drawParts(t, s, "law") {
				if r := h.applyPart(t, s, "law", part); r != nil {
					if r.Partial() {
						t.Fatalf("%q: %v\n%s", part, failures(r), h.told(r))
					}
					h.note(r)
				}
			}
		}
		h.run(t, nil, "law")
		if diff := compare(h.less(found), h.print(t)); diff != "" {
			t.Fatalf("destroy did not give the host back:\n%s", diff)
		}
		h.check(t)
	})
}
