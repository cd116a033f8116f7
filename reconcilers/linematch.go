package reconcilers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	"golem/scrolls"
)

// A swap is one line that golem replaced, or some lines beside each other that it took
// out: what stood there, and how to find the place again though the text has changed.
type swap struct {
	At  int   `json:"at"` // where in the text that golem left
	Old Bytes `json:"old"`
	// Prev and Next name the lines around the place, and N is its number: among the lines
	// equal to golem's, or of the line that follows what was taken out; Rest is how many of
	// them are there from it to the end.
	Prev string `json:"prev"`
	Next string `json:"next"`
	N    int    `json:"n"`
	Rest int    `json:"rest"`
	// End is the line ending around the place, for what was taken out.
	End string `json:"end,omitempty"`
	// Head and Tail name the whole text before the place and the one from it on: where
	// somebody changed only the other, the place is certain.
	Head string `json:"head"`
	Tail string `json:"tail"`
}

// seal notes with each swap what lies around its place in the text that golem left.
func (inv *lineInverse) seal(left []byte) {
	at := make([]int, len(inv.Swaps))
	for i, s := range inv.Swaps {
		at[i] = s.At
	}
	heads, tails := headHashes(left, at), tailHashes(left, at)
	for i := range inv.Swaps {
		inv.Swaps[i].Head, inv.Swaps[i].Tail = heads[i], tails[i]
	}
	inv.Sum, inv.Len = sumText(left), len(left)
}

// certain finds the swaps before whose place or after it nothing has changed, -1 for the
// others.
func (inv *lineInverse) certain(content []byte) []int {
	places, fromEnd := make([]int, len(inv.Swaps)), make([]int, len(inv.Swaps))
	for i, s := range inv.Swaps {
		places[i], fromEnd[i] = s.At, len(content)-(inv.Len-s.At)
	}
	heads, tails := headHashes(content, places), tailHashes(content, fromEnd)
	for i, s := range inv.Swaps {
		switch {
		case heads[i] == s.Head:
		case tails[i] == s.Tail:
			places[i] = fromEnd[i]
		default:
			places[i] = -1
		}
	}
	return places
}

// aim finds the lines that a glyph's line has to take the place of, and says whether the
// line is there already.
func aim(g *scrolls.Glyph, content []byte) (targets []spotted, there bool, err error) {
	text := []byte(str(g.Attrs, "line"))
	at, _ := findLine(content, text, "")
	there = at >= 0
	match := str(g.Attrs, "match")
	if match == "" {
		return nil, there, nil
	}
	re, err := regexp.Compile(match)
	if err != nil {
		return nil, false, fmt.Errorf("match: %w", err) // checked when loaded
	}
	many := str(g.Attrs, "on_many")
	if there && many != "all" && !re.Match(text) {
		return nil, true, nil // it stands where the match was
	}
	all := matching(content, re)
	switch {
	case len(all) < 2 || many == "all":
	case many == "first":
		all = all[:1]
	case many == "last":
		all = all[len(all)-1:]
	default:
		return nil, there, rowError("match", "Several lines match", all[1].n, "it matches %q, and so does line %d; write on_many to say which is meant", match, all[0].n+1)
	}
	for _, r := range all {
		if !bytes.Equal(content[r.start:r.stop], text) {
			targets = append(targets, r)
		}
	}
	return targets, there, nil
}

// replaceRows puts a text in the place of lines; their endings stay.
func replaceRows(content []byte, targets []spotted, text []byte) putResult {
	var out bytes.Buffer
	inv := lineInverse{}
	last := 0
	for _, r := range targets {
		out.Write(content[last:r.start])
		inv.Swaps = append(inv.Swaps, swap{At: out.Len(), Old: Bytes(content[r.start:r.stop])})
		out.Write(text)
		last = r.stop
	}
	out.Write(content[last:])
	left := out.Bytes()
	next := 0
	for n, r := range equalRows(left, text) {
		inv.Of++
		if next < len(inv.Swaps) && inv.Swaps[next].At == r.start {
			s := &inv.Swaps[next]
			s.Prev, s.Next, s.N = rowAbove(left, r.start), rowBelow(left, r.end), n
			next++
		}
	}
	for i := range inv.Swaps {
		inv.Swaps[i].Rest = inv.Of - inv.Swaps[i].N
	}
	inv.seal(left)
	return putResult{content: left, inverse: encode(inv), changed: true}
}

// sumText names a whole text by a hash.
func sumText(text []byte) string { return fileNode(text).Hash[:32] }

// swapBack gives the lines back that golem's took the place of. Those whose place is gone
// are lost to the text.
func (inv lineInverse) swapBack(content, text []byte) peelResult {
	var places []int // by swap; -1 for one that is gone
	if sumText(content) == inv.Sum {
		for _, s := range inv.Swaps {
			places = append(places, s.At)
		}
	} else {
		places = inv.findSwaps(content, equalRows(content, text))
	}
	res := peelResult{tail: -1}
	last := 0
	for i, s := range inv.Swaps {
		if places[i] < 0 {
			res.lose(s.Old)
			continue
		}
		res.content = append(append(res.content, content[last:places[i]]...), s.Old...)
		last = places[i] + len(text)
		res.tail = len(content) - last
	}
	res.content = append(res.content, content[last:]...)
	return res
}

// maxAlign bounds the work of telling many equal lines from each other.
const maxAlign = 1 << 22

// findSwaps finds which of the lines that are equal to golem's stand for which swap: by
// number while there are as many as golem left, else by what stands around them.
func (inv lineInverse) findSwaps(content []byte, equal []spotted) []int {
	places := make([]int, len(inv.Swaps))
	if len(equal) == inv.Of {
		for i, s := range inv.Swaps {
			places[i] = equal[s.N].start
		}
		return places
	}
	starts := map[int]bool{}
	for _, r := range equal {
		starts[r.start] = true
	}
	whole := true
	for i, at := range inv.certain(content) {
		if places[i] = at; !starts[at] || i > 0 && at <= places[i-1] {
			places[i], whole = -1, false
		}
	}
	if whole {
		return places
	}
	for i := range places {
		places[i] = -1
	}
	if len(equal)*len(inv.Swaps) > maxAlign {
		for i := range min(len(equal), len(places)) {
			places[i] = equal[i].start
		}
		return places
	}
	inv.align(content, equal, func(i, c int) { places[i] = equal[c].start })
	return places
}

// align pairs swaps with lines, both in their order, so that most of what stands around
// them is what golem saw there.
func (inv lineInverse) align(content []byte, equal []spotted, pair func(i, c int)) {
	type around struct{ above, below string }
	near := make([]around, len(equal))
	for c, r := range equal {
		near[c] = around{rowAbove(content, r.start), rowBelow(content, r.end)}
	}
	sure := inv.certain(content)
	worth := func(i, c int) int {
		s, n := inv.Swaps[i], 1
		if equal[c].start == sure[i] {
			n += 10
		}
		if near[c].above == s.Prev {
			n += 4
		}
		if near[c].below == s.Next {
			n += 4
		}
		if c == s.N || len(equal)-c == s.Rest {
			n++
		}
		return n
	}
	// best[i][c] is the most that the swaps from i on and the lines from c on are worth.
	best := make([][]int, len(inv.Swaps)+1)
	for i := range best {
		best[i] = make([]int, len(equal)+1)
	}
	for i := len(inv.Swaps) - 1; i >= 0; i-- {
		for c := len(equal) - 1; c >= 0; c-- {
			best[i][c] = max(best[i+1][c], best[i][c+1], best[i+1][c+1]+worth(i, c))
		}
	}
	for i, c := 0, 0; i < len(inv.Swaps) && c < len(equal); {
		switch best[i][c] {
		case best[i][c+1]:
			c++
		case best[i+1][c]:
			i++
		default:
			pair(i, c)
			i, c = i+1, c+1
		}
	}
}

// tellLine implements edit.tell.
func tellLine(g *scrolls.Glyph, inverse json.RawMessage) (did, back string) {
	var inv lineInverse
	if json.Unmarshal(inverse, &inv) != nil || len(inv.Swaps) == 0 {
		return editAdds, "only golem's line goes"
	}
	n := 0
	for _, s := range inv.Swaps {
		n += max(1, bytes.Count([]byte(s.Old), []byte("\n")))
	}
	lines, comes := "1 line", "comes"
	if n > 1 {
		lines, comes = fmt.Sprintf("%d lines", n), "come"
	}
	if goes(g.Attrs) {
		return "takes " + lines + " out", lines + " that golem took out " + comes + " back"
	}
	return "takes the place of " + lines, lines + " that golem replaced " + comes + " back"
}

// matchMisses says that a line's match does not match the line itself.
func matchMisses(g *scrolls.Glyph) string {
	match := str(g.Attrs, "match")
	if re, err := regexp.Compile(match); match == "" || goes(g.Attrs) || err != nil || re.MatchString(str(g.Attrs, "line")) {
		return ""
	}
	return "note: match does not match the line itself; from now on only an equal line counts"
}
