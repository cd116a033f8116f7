package entry

import (
	"bytes"
	"sync"
)

// A memo remembers what the last few texts say. Many edits of one file go from text to text,
// and each asks several times what the one before it and the one after it say. Texts are
// known by their bytes, of which it has its own; what they say is never changed by who reads
// it. Errors are not remembered, nor what large texts say.
type memo[T any] struct {
	mu   sync.Mutex
	last [8]said[T]
	next int
}

type said[T any] struct {
	text []byte
	says T
}

// maxMemo is the largest text that a memo remembers.
const maxMemo = 256 << 10

// of reads a text, unless it is remembered.
func (m *memo[T]) of(text []byte, read func([]byte) (T, error)) (T, error) {
	if len(text) > maxMemo {
		return read(text)
	}
	m.mu.Lock()
	for i := range m.last {
		if s := &m.last[i]; s.text != nil && bytes.Equal(s.text, text) {
			defer m.mu.Unlock()
			return s.says, nil
		}
	}
	m.mu.Unlock()
	says, err := read(text)
	if err != nil {
		return says, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last[m.next] = said[T]{append([]byte{}, text...), says}
	m.next = (m.next + 1) % len(m.last)
	return says, nil
}
