package reconcilers

import (
	"regexp"

	"golem/scrolls"
)

// atOdds finds edits of one file of which one undoes what another does, so that neither
// run would leave both true.
func atOdds(glyphs []*scrolls.Glyph, spots map[*scrolls.Glyph]Spot) []Mistake {
	on := map[string][]*scrolls.Glyph{}
	var mistakes []Mistake
	for _, g := range glyphs {
		spot, ok := spots[g]
		if kind, _ := KindOf(g.Kind); !ok || kind.edit == nil {
			continue
		}
		for _, other := range on[spot.Resource] {
			if p := odds(other, g); p.Summary != "" {
				mistakes = append(mistakes, Mistake{Glyph: g, Other: other, Problem: p})
				break
			}
		}
		on[spot.Resource] = append(on[spot.Resource], g)
	}
	return mistakes
}

// odds says what is wrong with two edits of one file; no summary for nothing.
func odds(a, b *scrolls.Glyph) scrolls.Problem {
	switch {
	case takesOutOf(a, b), takesOutOf(b, a):
		return scrolls.Problem{
			Summary: "Two glyphs at odds",
			Detail:  "Both are about one file on this host: one puts a line there that the other takes out. Remove one of the two.",
		}
	case a.Kind == regionKind.Name && b.Kind == regionKind.Name && a.Key != b.Key && sameMarkers(a.Attrs, b.Attrs):
		return scrolls.Problem{
			Summary: "Two blocks with the same markers",
			Detail:  "Both are in one file on this host, and neither could be told from the other. Give one other markers.",
		}
	}
	return scrolls.Problem{}
}

// takesOutOf says whether one glyph takes a line out that the other puts in.
func takesOutOf(taker, giver *scrolls.Glyph) bool {
	if taker.Kind != lineKind.Name || !goes(taker.Attrs) {
		return false
	}
	doomed := func(line []byte) bool { return string(line) == str(taker.Attrs, "line") }
	if match := str(taker.Attrs, "match"); match != "" {
		re, err := regexp.Compile(match)
		if err != nil {
			return false // checked when loaded
		}
		doomed = re.Match
	}
	switch {
	case giver.Kind == lineKind.Name && !goes(giver.Attrs):
		return doomed([]byte(str(giver.Attrs, "line")))
	case giver.Kind == regionKind.Name:
		for _, line := range regionLines(giver.Attrs) {
			if doomed(line) {
				return true
			}
		}
	}
	return false
}

func sameMarkers(a, b scrolls.Attrs) bool {
	begin, end := regionMarkers(a)
	otherBegin, otherEnd := regionMarkers(b)
	return begin == otherBegin || end == otherEnd || begin == otherEnd || end == otherBegin
}
