package reconcilers

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"

	"golem/scrolls"
)

// unwanted finds the lines that a glyph wants to be gone.
func unwanted(g *scrolls.Glyph, content []byte) ([]spotted, error) {
	match := str(g.Attrs, "match")
	if match == "" {
		return equalRows(content, []byte(str(g.Attrs, "line"))), nil
	}
	re, err := regexp.Compile(match)
	if err != nil {
		return nil, fmt.Errorf("match: %w", err) // checked when loaded
	}
	return matching(content, re), nil
}

// takeOut takes every unwanted line out.
func takeOut(g *scrolls.Glyph, content []byte) (putResult, error) {
	doomed, err := unwanted(g, content)
	if err != nil || len(doomed) == 0 {
		return putResult{content: content, inverse: encode(lineInverse{})}, err
	}
	var out bytes.Buffer
	inv := lineInverse{}
	last := 0
	for i, r := range doomed {
		out.Write(content[last:r.start])
		last = r.end
		if i > 0 && doomed[i-1].end == r.start {
			s := &inv.Swaps[len(inv.Swaps)-1]
			s.Old += Bytes(content[r.start:r.end])
			continue
		}
		inv.Swaps = append(inv.Swaps, swap{At: out.Len(), Old: Bytes(content[r.start:r.end]), N: r.n - i})
	}
	out.Write(content[last:])
	left := out.Bytes()
	total := countRows(left)
	for i := range inv.Swaps {
		s := &inv.Swaps[i]
		s.Rest = total - s.N
		s.Prev, s.Next, s.End = rowAbove(left, s.At), rowBelow(left, s.At), ending(left, s.At)
	}
	inv.seal(left)
	return putResult{content: left, inverse: encode(inv), changed: true}, nil
}

// putIn gives back the lines that golem took out.
func (inv lineInverse) putIn(content []byte) peelResult {
	exact := sumText(content) == inv.Sum
	var places []int
	if !exact {
		places = inv.findGaps(content)
	}
	res := peelResult{tail: -1}
	last := 0
	for i, s := range inv.Swaps {
		at, old := s.At, []byte(s.Old)
		if !exact {
			at = places[i]
			old = s.fit(content, at)
		}
		res.content = append(append(res.content, content[last:at]...), old...)
		last, res.tail = at, len(content)-at
	}
	res.content = append(res.content, content[last:]...)
	return res
}

// fit is what was taken out as it has to be put into a text that changed since: with the
// ending that its neighbours have now, if that is another one, and whole lines. What
// somebody has put back himself is not put there again.
func (s swap) fit(content []byte, at int) []byte {
	old := []byte(s.Old)
	end := ending(content, at)
	if end != s.End {
		old = withEnding(old, end)
	}
	if at < len(content) && !bytes.HasSuffix(old, []byte("\n")) {
		old = append(bytes.TrimSuffix(old, []byte("\r")), end...)
	}
	if !startsLine(content, at) {
		old = append([]byte(end), old...)
	}
	if bytes.HasPrefix(content[at:], old) || startsLine(content, at) && bytes.HasSuffix(content[:at], old) && startsLine(content, at-len(old)) {
		return nil
	}
	return old
}

// findGaps finds the places in a text that changed since where lines were taken out, in
// their order: where the lines around are those that golem saw, the nearest by number.
func (inv lineInverse) findGaps(content []byte) []int {
	places := inv.certain(content)
	if slices.Contains(places, -1) {
		inv.searchGaps(content, places)
	}
	for i := 1; i < len(places); i++ {
		places[i] = max(places[i], places[i-1])
	}
	return places
}

// searchGaps finds the places that are not certain by the lines around them.
func (inv lineInverse) searchGaps(content []byte, places []int) {
	byPrev, byNext, byN := map[string][]int{}, map[string][]int{}, map[int][]int{}
	type gap struct{ at, score, far int }
	best := make([]gap, len(inv.Swaps))
	for i, s := range inv.Swaps {
		best[i] = gap{at: len(content), score: -1}
		byPrev[s.Prev] = append(byPrev[s.Prev], i)
		byNext[s.Next] = append(byNext[s.Next], i)
		byN[s.N] = append(byN[s.N], i)
	}
	total := countRows(content)
	look := func(n, at int, above, below string) {
		for _, i := range slices.Concat(byPrev[above], byNext[below], byN[n]) {
			s := inv.Swaps[i]
			g := gap{at: at, far: min(abs(n-s.N), abs(total-n-s.Rest))}
			if above == s.Prev {
				g.score++
			}
			if below == s.Next {
				g.score++
			}
			if g.score > best[i].score || g.score == best[i].score && g.far < best[i].far {
				best[i] = g
			}
		}
	}
	n, above := 0, "-"
	for i, r := range rows(content) {
		here := rowHash(content[r.start:r.stop])
		look(i, r.start, above, here)
		above, n = here, i+1
	}
	look(n, len(content), above, "-")
	next := len(content)
	for i, at := range slices.Backward(places) {
		if at < 0 {
			places[i] = min(best[i].at, next)
		}
		next = places[i]
	}
}

func abs(n int) int { return max(n, -n) }
