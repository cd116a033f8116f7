package scrolls

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"
)

// A digester adds up everything that a scroll was made from.
type digester struct {
	mu    sync.Mutex
	parts []string
}

func (d *digester) add(what, name string, data []byte) {
	sum := sha256.Sum256(data)
	d.addSum(what, name, hex.EncodeToString(sum[:]))
}

func (d *digester) addSum(what, name, sum string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parts = append(d.parts, what+"\x00"+name+"\x00"+sum)
}

func (d *digester) sum() string {
	slices.Sort(d.parts)
	var buf bytes.Buffer
	for _, part := range slices.Compact(d.parts) {
		buf.WriteString(part)
		buf.WriteByte('\n')
	}
	sum := sha256.Sum256(buf.Bytes())
	return hex.EncodeToString(sum[:])
}
