package reconcilers

import (
	"bytes"
	"maps"
	"slices"

	"golem/scrolls"
)

// Spots are the offsets of a text where edits were before they were taken off, and which of
// them stood first.
type spots struct {
	at   map[scrolls.Key]int
	rank []scrolls.Key // as they stood in the text, from its beginning
}

// take notes where an edit was that was taken off a text.
func (s *spots) take(key scrolls.Key, from, to []byte, tail int) {
	behind := s.move(key, from, to)
	if tail < 0 {
		return
	}
	if s.at == nil {
		s.at = map[scrolls.Key]int{}
	}
	s.at[key] = len(to) - tail
	i := slices.IndexFunc(s.rank, func(k scrolls.Key) bool { return behind[k] })
	if i < 0 {
		i = len(s.rank)
	}
	s.rank = slices.Insert(s.rank, i, key)
}

// spots are where the edits stood in what they are put on again. Where nobody but golem has
// changed the file, there are none: then the place is the one that the edit would have had
// the first time, whatever was declared before.
func (k *work) spots(content []byte) *spots {
	if k.base != nil || !k.strangersText() || len(content) != int(k.bare.Size) || k.want.Hash != k.bare.Hash {
		return &spots{}
	}
	stood := k.stood()
	return &spots{at: maps.Clone(stood.at), rank: slices.Clone(stood.rank)}
}

// rename gives an edit that is known by another key now the spot that it had.
func (s *spots) rename(was, now scrolls.Key) {
	at, ok := s.at[was]
	if _, there := s.at[now]; !ok || there {
		return
	}
	s.at[now] = at
	s.rank[slices.Index(s.rank, was)] = now
	delete(s.at, was)
}

// strangersText says whether, without golem's edits, the file is another than the one that
// was found.
func (k *work) strangersText() bool {
	if k.bare.Type != File {
		return false
	}
	if k.s.found.Type == File {
		return k.bare.Hash != k.s.found.Hash
	}
	return k.bare.Size > 0
}

// tail is how many bytes of a text lie behind an edit's spot; -1 for none.
func (s *spots) tail(key scrolls.Key, content []byte) int {
	if at, ok := s.at[key]; ok {
		return len(content) - at
	}
	return -1
}

// move takes the spots from a text to the one that putting an edit on, or taking it off,
// made of it. It gives those that lie behind the edit.
func (s *spots) move(key scrolls.Key, from, to []byte) (behind map[scrolls.Key]bool) {
	behind = map[scrolls.Key]bool{}
	if len(s.at) == 0 || bytes.Equal(from, to) {
		return behind
	}
	head, tail, first := changedPart(from, to)
	more := len(to) - len(from)
	mine := slices.Index(s.rank, key)
	for i, other := range s.rank {
		at := s.at[other]
		here := first <= at && at <= head // where what was put may lie before it or behind it
		switch {
		case first < 0 && at >= len(from)-tail:
			s.at[other], behind[other] = at+more, true
		case first < 0 && at > head:
			s.at[other] = len(to) - tail
		case first < 0, at < first, here && more > 0 && i < mine, here && more < 0 && at < first-more:
		case more > 0, at >= first-more:
			s.at[other], behind[other] = at+more, true
		default: // it was in what went
			s.at[other], behind[other] = first, true
		}
	}
	return behind
}

// changedPart is how many bytes two texts have in common at their beginning, and behind that
// at their end. Where one is the other with something put in between, first is the first
// offset at which that may have been put, head the last; else first is -1.
func changedPart(from, to []byte) (head, tail, first int) {
	head, tail = commonEnds(from, to)
	long, n := to, len(to)-len(from)
	if n < 0 {
		long, n = from, -n
	}
	if n == 0 || head+tail < len(long)-n {
		return head, tail, -1
	}
	first = head
	for first > 0 && long[first-1] == long[first+n-1] {
		first--
	}
	return head, tail, first
}

// commonEnds is how many bytes two texts have in common at their beginning, and behind that
// at their end.
func commonEnds(a, b []byte) (head, tail int) {
	head = commonHead(a, b)
	return head, commonTail(a[head:], b[head:])
}

// stride is how many bytes of two texts are compared at once.
const stride = 256

// commonHead is how many bytes two texts have in common at their beginning.
func commonHead(a, b []byte) int {
	n, least := 0, min(len(a), len(b))
	for n+stride <= least && bytes.Equal(a[n:n+stride], b[n:n+stride]) {
		n += stride
	}
	for n < least && a[n] == b[n] {
		n++
	}
	return n
}

// commonTail is how many bytes two texts have in common at their end.
func commonTail(a, b []byte) int {
	n, least := 0, min(len(a), len(b))
	for n+stride <= least && bytes.Equal(a[len(a)-n-stride:len(a)-n], b[len(b)-n-stride:len(b)-n]) {
		n += stride
	}
	for n < least && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
