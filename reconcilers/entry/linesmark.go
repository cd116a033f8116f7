package entry

// A mark is the receipt of an edit of lines.
type mark struct {
	// Sum is the text's hash right after the edit: where it is the same, the way back is by
	// offset.
	Sum string `json:"sum"`
	// Did is what it was to the key: set, add or cut.
	Did   string `json:"did"`
	Block string `json:"block,omitempty"`
	Key   string `json:"key"`
	// Flavor is whose text it was taken for.
	Flavor flavor `json:"flavor,omitempty"`
	Ops    []op   `json:"ops"`
}

// An op is one splice, and what finds it again in a text that has changed around it.
type op struct {
	Do   string `json:"do"`
	At   int    `json:"at"`
	Old  []byte `json:"old,omitempty"`
	New  []byte `json:"new,omitempty"`
	Raw  []byte `json:"raw,omitempty"`  // the value as golem spelled it
	Bare bool   `json:"bare,omitempty"` // the key had no value before
	Lead string `json:"lead,omitempty"` // a blank in front of the value that came with it
	Head bool   `json:"head,omitempty"` // the block's head was made with the row; or heads were cut
	Gap  bool   `json:"gap,omitempty"`  // and a blank line before it
	Sep  string `json:"sep,omitempty"`  // the ending that the line before got
	Prev string `json:"prev,omitempty"` // names the row before
	Row  int    `json:"row,omitempty"`  // which row it was
	// Above names the rows above, nearest first. Below names those below one that was cut; of
	// a new block, the comments that now stand in it.
	Above []string `json:"above,omitempty"`
	Below []string `json:"below,omitempty"`
	// AboveKeys and BelowKeys are the keys of those around what was cut, "" of what is no pair.
	AboveKeys []string `json:"above_keys,omitempty"`
	BelowKeys []string `json:"below_keys,omitempty"`
	// Tail is how many bytes stood behind the place of what was cut, and TailSum and HeadSum are
	// hashes of them and of what stood before it.
	Tail    int    `json:"tail,omitempty"`
	TailSum string `json:"tail_sum,omitempty"`
	HeadSum string `json:"head_sum,omitempty"`
	// Any says that what was cut may come back in any block: it begins with a head. Block is the
	// one that it comes back into, where that is not the receipt's.
	Any   bool   `json:"any,omitempty"`
	Block string `json:"in_block,omitempty"`
	// Key is what was added, where that is not the receipt's.
	Key string `json:"key,omitempty"`
	// In is where in the value the splice is, and Inner what it does there.
	In    int      `json:"in,omitempty"`
	Inner *innerOp `json:"inner,omitempty"`
}

// nearby is how many rows on each side tell where a row was cut.
const nearby = 3

const (
	doSet = "set"
	doAdd = "add"
	doCut = "cut"
)

// forth makes the op.
func (o op) forth(text []byte) []byte {
	return apply(text, splice{At: o.At, End: o.At + len(o.Old), With: o.New})
}

// forth makes the ops, each on what the one before left.
func (m mark) forth(text []byte) []byte {
	for _, o := range m.Ops {
		text = o.forth(text)
	}
	return text
}

// seal makes the ops, and notes with each cut what lies around its place.
func (m *mark) seal(text []byte) []byte {
	for k := range m.Ops {
		o := &m.Ops[k]
		text = o.forth(text)
		if o.Do == doCut {
			o.Tail, o.TailSum, o.HeadSum = len(text)-o.At, shortHash(text[o.At:]), shortHash(text[:o.At])
		}
	}
	m.Sum = sum(text)
	return text
}

// back takes the ops off the very text that they gave.
func (m mark) back(text []byte) []byte {
	for k := len(m.Ops) - 1; k >= 0; k-- {
		o := m.Ops[k]
		text = apply(text, splice{At: o.At, End: o.At + len(o.New), With: o.Old})
	}
	return text
}
