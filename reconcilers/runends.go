package reconcilers

import "bytes"

// mostSaid is how much is kept of each end of what a command prints where only a person
// reads it.
const mostSaid = 64 << 10

// ends keeps the beginning and the end of what is written to it, each up to a limit: a
// program that never stops talking must not fill the memory.
type ends struct {
	limit      int
	head, tail []byte
	lost       bool
}

// Write implements io.Writer.
func (e *ends) Write(p []byte) (int, error) {
	n := len(p)
	if room := e.limit - len(e.head); room > 0 {
		fits := min(room, n)
		e.head, p = append(e.head, p[:fits]...), p[fits:]
	}
	e.tail = append(e.tail, p[max(0, len(p)-e.limit):]...)
	e.lost = e.lost || len(p) > e.limit
	if len(e.tail) > 2*e.limit {
		e.tail, e.lost = append(e.tail[:0], e.tail[len(e.tail)-e.limit:]...), true
	}
	return n, nil
}

// Bytes are what is kept, with a line of its own where something is left out.
func (e *ends) Bytes() []byte {
	tail := e.tail
	if len(tail) > e.limit {
		tail, e.lost = tail[len(tail)-e.limit:], true
	}
	if !e.lost {
		return append(bytes.Clone(e.head), tail...)
	}
	// Lines are kept whole: in a half one nobody would know the half of a secret, or of a name.
	head := e.head
	if i := bytes.LastIndexByte(head, '\n'); i >= 0 {
		head = head[:i]
	}
	if i := bytes.IndexByte(tail, '\n'); i >= 0 {
		tail = tail[i+1:]
	}
	return append(append(bytes.Clone(head), "\n…\n"...), tail...)
}
