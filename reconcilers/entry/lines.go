package entry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// A row is one logical line of a text: a pair of key and value, the head of a block, or
// what is neither.
type row struct {
	start, end  int // with its line ending
	kind        rowKind
	block       int // which of the sheet's blocks it lies in
	key         string
	keyStart    int
	keyEnd      int // behind the key
	val, valEnd int
	bare        bool   // a key that has no value
	parts       []part // of a key of TOML
	open        bool   // its value would go on in a line behind it
	doubt       string // why the row cannot be edited: it may mean something else
}

type rowKind int

const (
	blankRow rowKind = iota
	commentRow
	headRow
	pairRow
	otherRow
)

// A block is a run of rows under a head. The first has none.
type block struct {
	name string
	head int    // the row, -1 for none
	path []part // TOML's
	list bool   // one table of a list of them
}

// A sheet is a text read as rows.
type sheet struct {
	text   []byte
	rows   []row
	blocks []block
	flavor flavor
	aim    target // what it is read for
	// indent is that of the last key that is one for sure, -1 for none yet; unsure says that
	// the last row might go on.
	indent int
	unsure bool
	// contexts are the names of the rows that have been asked for.
	contexts []string
}

// newSheet is a text of which no row is read yet, with room for one of each line, if they are
// not very many.
func newSheet(text []byte) *sheet {
	room := min(bytes.Count(text, []byte("\n"))+1, 1<<14)
	return &sheet{text: text, blocks: []block{{head: -1}}, rows: make([]row, 0, room)}
}

// raw is a pair's value as it is spelled.
func (s *sheet) raw(r row) string { return string(s.text[r.val:r.valEnd]) }

// add appends a row, in the last block.
func (s *sheet) add(r row) {
	r.block = len(s.blocks) - 1
	s.rows = append(s.rows, r)
}

// open begins a block with its head.
func (s *sheet) open(name string, start, end int) {
	s.blocks = append(s.blocks, block{name: name, head: len(s.rows)})
	s.add(row{start: start, end: end, kind: headRow})
}

// A target is what a wish's key means in a text of lines.
type target struct {
	block, key string
	// flavor is whose text it is, where a receipt says so.
	flavor *flavor
}

// A dialect is how one format of lines reads and spells. It implements Format with rows:
// an edit replaces a value, adds a row, or cuts rows.
type dialect struct {
	// aim checks the grammar of a wish's key.
	aim func(w Wish) (target, error)
	// parse reads a text. The wish helps to tell the flavour of one that says little.
	parse func(text []byte, t target) (*sheet, error)
	// sameBlock and sameKey say whether two spellings name one thing.
	sameBlock, sameKey func(s *sheet, a, b string) bool
	// first says that the first of several values counts, not the last.
	first bool
	// spell gives a value as it stands in a text; old is the row that it replaces, or nil.
	spell func(s *sheet, value any, old *row) (string, error)
	// fits refuses a value that no text of the format can hold.
	fits func(value any) error
	// reads says whether a spelling means a value.
	reads func(s *sheet, raw string, value any) bool
	// pair spells a new row without its line ending; near is a row to take the style of.
	pair func(s *sheet, near *row, t target, raw string) string
	// ahead is the row that a new key of the block has to come before, -1 for none.
	ahead func(s *sheet, block int) int
	// loose spells a block's name without what a stranger's edit elsewhere may change; nil
	// where there is no such thing.
	loose func(name string) string
	// voids says that a row makes those of its key before it void.
	voids func(s *sheet, raw string) bool
	// head spells the head of a new block.
	head func(name string) string
	// gap says whether a blank line comes before a new block at the end.
	gap func(s *sheet) bool
	// lone refuses members, and says why.
	lone string
}

// Put implements Format.
func (d *dialect) Put(text []byte, w Wish) ([]byte, json.RawMessage, error) {
	t, err := d.aim(w)
	if err != nil {
		return nil, nil, err
	}
	if w.Member && d.lone != "" && !w.Absent {
		return nil, nil, &PlaceError{Why: d.lone}
	}
	s, err := d.read(text, t)
	if err != nil {
		return nil, nil, err
	}
	if d.holds(s, t, w) {
		return text, nil, nil
	}
	if err := d.clear(s, t); err != nil {
		return nil, nil, err
	}
	m, out, err := d.change(s, t, w)
	if err != nil {
		return nil, nil, err
	}
	if err := d.audit(s, out, t, w, m); err != nil {
		return nil, nil, err
	}
	return out, encode(m), nil
}

// Holds implements Format.
func (d *dialect) Holds(text []byte, w Wish) bool {
	t, err := d.aim(w)
	if err != nil || w.Member && d.lone != "" && !w.Absent {
		return false
	}
	s, err := d.read(text, t)
	return err == nil && d.holds(s, t, w)
}

// read parses a text that is one of bytes and lines.
func (d *dialect) read(text []byte, t target) (*sheet, error) {
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return nil, at(text, i, "it holds a NUL byte: UTF-16 text or no text at all")
	}
	if i := bytes.IndexByte(text, '\r'); i >= 0 && bytes.IndexByte(text, '\n') < 0 && i < len(text)-1 {
		return nil, at(text, i, "its lines end in carriage returns alone")
	}
	return d.parse(text, t)
}

// matches are the rows of a target, in order.
func (d *dialect) matches(s *sheet, t target) []int {
	var found []int
	for i, r := range s.rows {
		if r.kind == pairRow && d.sameBlock(s, s.blocks[r.block].name, t.block) && d.sameKey(s, r.key, t.key) {
			found = append(found, i)
		}
	}
	return found
}

// clear refuses a target whose rows may mean something else.
func (d *dialect) clear(s *sheet, t target) error {
	for _, i := range d.matches(s, t) {
		if r := s.rows[i]; r.doubt != "" {
			return at(s.text, r.keyStart, "%s", r.doubt)
		}
	}
	return nil
}

// holds says whether a wish is true of a sheet.
func (d *dialect) holds(s *sheet, t target, w Wish) bool {
	found := d.matches(s, t)
	switch {
	case w.Absent:
		return len(found) == 0
	case d.clear(s, t) != nil, len(found) == 0:
		return false
	case w.Member:
		return d.member(s, found, w.Value) >= 0
	}
	win := s.rows[found[d.winner(found)]]
	return !win.bare && d.reads(s, s.raw(win), w.Value)
}

// winner is which of several rows of one key counts.
func (d *dialect) winner(found []int) int {
	if d.first {
		return 0
	}
	return len(found) - 1
}

// member finds the row among those of a key that has a value, -1 for none. Rows that a
// later one makes void do not count.
func (d *dialect) member(s *sheet, found []int, value any) int {
	for k := len(found) - 1; k >= 0; k-- {
		r := s.rows[found[k]]
		if !r.bare && d.reads(s, s.raw(r), value) {
			return found[k]
		}
		if !r.bare && d.voids != nil && d.voids(s, s.raw(r)) {
			return -1
		}
	}
	return -1
}

// maxCuts is how many rows one edit takes away: each is looked for on its own when it
// comes back.
const maxCuts = 200

// change makes a wish true. Every op is an edit of the text as the ops before it left it.
func (d *dialect) change(s *sheet, t target, w Wish) (mark, []byte, error) {
	found := d.matches(s, t)
	m := mark{Block: t.block, Key: t.key, Flavor: s.flavor}
	switch {
	case w.Absent && len(found) > maxCuts:
		return m, nil, at(s.text, s.rows[found[0]].keyStart, "%s stands on %d lines, more than can be taken away one by one", quote(t.key), len(found))
	case w.Absent:
		for k := len(found) - 1; k >= 0; k-- {
			m.Ops = append(m.Ops, cutOp(s, found, found[k], found[k]))
		}
	case w.Member, len(found) == 0:
		o, err := d.addOp(s, t, w, found)
		if err != nil {
			return m, nil, err
		}
		m.Ops = append(m.Ops, o)
	default:
		o, err := d.setOp(s, t, w, found[d.winner(found)])
		if err != nil {
			return m, nil, err
		}
		m.Ops = append(m.Ops, o)
	}
	m.Did = m.Ops[0].Do
	out := m.seal(s.text)
	return m, out, nil
}

// setOp replaces the value of a row.
func (d *dialect) setOp(s *sheet, t target, w Wish, i int) (op, error) {
	r := s.rows[i]
	raw, err := d.spell(s, w.Value, &r)
	if err != nil {
		return op{}, ofValue(placed(s.text, r.val, err))
	}
	o := op{Do: doSet, At: r.val, Row: i, Old: s.text[r.val:r.valEnd], New: []byte(raw), Raw: []byte(raw), Prev: s.context(i - 1), Above: s.above(i)}
	if r.val > 1 && s.text[r.val-1] == '=' && s.text[r.val-2] == ' ' && raw != "" {
		o.Lead, o.New = " ", append([]byte(" "), o.New...)
	}
	if r.bare {
		// The separator is the one that a new row would have.
		line := d.pair(s, s.near(r.block, i), t, raw)
		line = strings.TrimLeft(line, " \t")
		o.At, o.Old, o.New, o.Bare = r.keyEnd, nil, []byte(strings.TrimPrefix(line, t.key)), true
	}
	return o, nil
}

// audit checks that an edit does what it should and nothing more, on the text as a reader
// sees it. What a text means depends on more than its rows can tell; what does not come out
// is refused.
func (d *dialect) audit(s *sheet, out []byte, t target, w Wish, m mark) error {
	where := m.Ops[len(m.Ops)-1].At
	after, err := d.read(out, t)
	if err != nil {
		return at(s.text, where, "it cannot be edited here: the result would not be readable")
	}
	if !d.holds(after, t, w) {
		return at(s.text, where, "it cannot be edited here: %s would not be read back as it was written", quote(t.key))
	}
	if !slices.Equal(d.others(s, t), d.others(after, t)) {
		return at(s.text, where, "it cannot be edited here without changing what lies beside it")
	}
	if !bytes.Equal(m.back(out), s.text) {
		return at(s.text, where, "it cannot be edited here: the way back would not be exact")
	}
	return nil
}

// others is what a sheet says apart from a target.
func (d *dialect) others(s *sheet, t target) []string {
	var said []string
	for _, r := range s.rows {
		name := s.blocks[r.block].name
		if r.kind != pairRow && r.kind != otherRow || d.sameBlock(s, name, t.block) && d.sameKey(s, r.key, t.key) {
			continue
		}
		said = append(said, name+"\x00"+strings.TrimRight(string(s.text[r.start:r.end]), "\r\n"))
	}
	return said
}

// near is a row whose style a new one in a block takes: the last pair of the block before
// row i, else any of the block, else the last of the text.
func (s *sheet) near(block, i int) *row {
	var in, any *row
	for k := range s.rows {
		r := &s.rows[k]
		if k == i || r.kind != pairRow || r.bare || r.doubt != "" {
			continue
		}
		any = r
		if r.block == block && (in == nil || i < 0 || k < i) {
			in = r
		}
	}
	if in != nil {
		return in
	}
	return any
}

// context names a row by its text, to know its neighbours by.
func (s *sheet) context(i int) string {
	if i < 0 || i >= len(s.rows) {
		return "-"
	}
	if s.contexts == nil {
		s.contexts = make([]string, len(s.rows))
	}
	if s.contexts[i] == "" {
		r := s.rows[i]
		s.contexts[i] = shortHash(bytes.TrimSpace(s.text[r.start:r.end]))
	}
	return s.contexts[i]
}

// sum names a text for good, and shortHash a part of one, to know it again by.
func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func shortHash(b []byte) string { return sum(b)[:16] }
