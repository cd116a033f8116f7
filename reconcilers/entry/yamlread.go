package entry

import (
	"bytes"
)

// The kinds of a yamlNode.
const (
	yamlNone   = byte(0)   // nothing: a null without a spelling
	yamlScalar = byte('x') // on one line or on several
	yamlAlias  = byte('*')
	yamlMap    = byte('m') // in block style
	yamlList   = byte('s')
	yamlFlow   = byte('f') // a list or a mapping in brackets
)

// A yamlNode is a value and where it lies.
type yamlNode struct {
	kind       byte
	start, end int // with its anchor and tag; an empty one lies where it would begin
	col        int // of the entries of a block
	entries    []*yamlEntry
	open       int // of a flow: its bracket
	odd        int // of a flow: where it has what cannot be edited; 0 for nothing
}

func (n *yamlNode) list(text []byte) bool {
	return n.kind == yamlList || n.kind == yamlFlow && text[n.open] == '['
}

func (n *yamlNode) container() bool {
	return n.kind == yamlMap || n.kind == yamlList || n.kind == yamlFlow
}

// A yamlEntry is a member of a mapping or a list.
type yamlEntry struct {
	key, keyEnd int    // of a list: of the dash, or of the value
	name        string // as it reads
	named       bool
	from        int // past the colon or the dash; the value's text begins there
	value       *yamlNode
	comma       int // of a flow; -1 for none
}

// A yamlReader finds where the values of one document lie. It knows blocks by their
// indentation and flows by their brackets; what it does not know it refuses.
type yamlReader struct {
	text  []byte
	limit int // where the document ends
	depth int
}

// next is the offset of the next thing that is no space and no comment, on the same line
// or a later one.
func (y *yamlReader) next(pos, limit int) int {
	for pos < limit {
		switch c := y.text[pos]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			pos++
		case c == '#' && (pos == 0 || isSpace(y.text[pos-1]) || y.lineStart(pos) == pos):
			pos = y.lineEnd(pos)
		default:
			return pos
		}
	}
	return limit
}

// sameLine skips spaces and tabs.
func (y *yamlReader) sameLine(pos, limit int) int {
	for pos < limit && (y.text[pos] == ' ' || y.text[pos] == '\t') {
		pos++
	}
	return pos
}

// ends says whether nothing but a comment follows on a line.
func (y *yamlReader) ends(pos, limit int) bool {
	p := y.sameLine(pos, limit)
	return p >= limit || y.text[p] == '\n' || y.text[p] == '\r' || y.text[p] == '#' && p > pos
}

func (y *yamlReader) lineStart(pos int) int {
	return max(bytes.LastIndexByte(y.text[:pos], '\n')+1, textStart(y.text))
}

// lineEnd is the offset of the line break of a line, of the text's end in the last one.
func (y *yamlReader) lineEnd(pos int) int {
	i := bytes.IndexByte(y.text[pos:], '\n')
	if i < 0 {
		return len(y.text)
	}
	if i > 0 && y.text[pos+i-1] == '\r' {
		i--
	}
	return pos + i
}

// nextLine is the beginning of the line after.
func (y *yamlReader) nextLine(pos int) int {
	if i := bytes.IndexByte(y.text[pos:], '\n'); i >= 0 {
		return pos + i + 1
	}
	return len(y.text)
}

// indicator says whether a sign with a space or a line's end behind it stands at pos.
func (y *yamlReader) indicator(pos, limit int, sign byte) bool {
	return pos < limit && y.text[pos] == sign && (pos+1 >= limit || isSpace(y.text[pos+1]))
}

// node reads the value that begins at pos, up to limit. parent is the column of the block
// that it lies in, inline says that no block can begin on its line.
func (y *yamlReader) node(pos, limit, parent int, inline bool) (*yamlNode, error) {
	if y.depth++; y.depth > 1000 {
		return nil, at(y.text, pos, "values lie deeper in each other than golem reads")
	}
	defer func() { y.depth-- }()
	n := &yamlNode{start: pos, end: pos}
	for pos < limit && (y.text[pos] == '&' || y.text[pos] == '!') {
		for pos < limit && !isSpace(y.text[pos]) {
			pos++
		}
		n.end = pos
		line := y.lineEnd(pos)
		if pos = y.next(pos, limit); pos > line {
			inline = false
		}
	}
	if pos >= limit {
		return n, nil
	}
	if !inline {
		if y.lineStart(pos) > n.start && n.end > n.start && pos-y.lineStart(pos) <= parent && !y.indicator(pos, limit, '-') {
			return n, nil // an anchor or a tag on nothing
		}
		if kind := y.blockKind(pos, limit); kind != 0 {
			if n.end > n.start && y.lineStart(pos) <= n.start {
				return nil, at(y.text, n.start, "an anchor or a tag of a name cannot be told from one of the whole mapping")
			}
			return n, y.block(n, kind, pos, limit)
		}
	}
	return n, y.leaf(n, pos, limit, parent)
}

// leaf reads what is no block.
func (y *yamlReader) leaf(n *yamlNode, pos, limit, parent int) (err error) {
	switch c := y.text[pos]; c {
	case '*':
		n.kind, n.end = yamlAlias, pos
		for n.end < limit && !isSpace(y.text[n.end]) {
			n.end++
		}
	case '|', '>':
		n.kind = yamlScalar
		n.end = y.blockScalar(pos, limit, parent)
	case '"', '\'':
		n.kind = yamlScalar
		n.end, err = y.quoted(pos, limit)
	case '[', '{':
		n.kind, n.open = yamlFlow, pos
		n.end, err = y.flow(n, pos, limit)
	case '%', '@', '`':
		return at(y.text, pos, "a value cannot begin with %q", c)
	default:
		n.kind = yamlScalar
		n.end = y.plain(pos, limit)
	}
	if err == nil && n.kind != yamlScalar && !y.ends(n.end, limit) || err == nil && (y.text[pos] == '"' || y.text[pos] == '\'') && !y.ends(n.end, limit) {
		return at(y.text, n.end, "something follows the value")
	}
	return err
}

// blockScalar is the end of a block scalar: of its last line that is not blank, or with
// a plus, of the last blank one.
func (y *yamlReader) blockScalar(pos, limit, parent int) int {
	end := y.lineEnd(pos)
	keep := bytes.IndexByte(y.text[pos:end], '+') >= 0
	for line := y.nextLine(pos); line < limit; line = y.nextLine(line) {
		p := line
		for p < limit && y.text[p] == ' ' {
			p++
		}
		if p >= limit || y.text[p] == '\n' || y.text[p] == '\r' {
			if keep && p < limit {
				end = y.lineEnd(line)
			}
			continue
		}
		if p-line <= parent {
			break
		}
		end = min(y.lineEnd(line), limit)
	}
	return end
}

// quoted is the end of a quoted scalar.
func (y *yamlReader) quoted(pos, limit int) (int, error) {
	quote := y.text[pos]
	for i := pos + 1; i < limit; i++ {
		switch {
		case quote == '"' && y.text[i] == '\\':
			i++
		case y.text[i] == quote && quote == '\'' && i+1 < limit && y.text[i+1] == quote:
			i++
		case y.text[i] == quote:
			return i + 1, nil
		}
	}
	return 0, at(y.text, pos, "this quote is not closed")
}

// plain is the end of a scalar without quotes, which goes on over all lines of the limit
// up to a comment.
func (y *yamlReader) plain(pos, limit int) int {
	end := pos
	for i := pos; i < limit; i++ {
		switch c := y.text[i]; {
		case c == '#' && i > pos && isSpace(y.text[i-1]):
			return end
		case !isSpace(c):
			end = i + 1
		}
	}
	return end
}

// blockKind says what block begins at pos; 0 for none.
func (y *yamlReader) blockKind(pos, limit int) byte {
	if y.indicator(pos, limit, '-') {
		return yamlList
	}
	if _, _, ok := y.mapKey(pos, limit); ok || y.indicator(pos, limit, '?') {
		return yamlMap
	}
	return 0
}

// mapKey finds the end of a name and its colon, if one begins at pos.
func (y *yamlReader) mapKey(pos, limit int) (end, colon int, ok bool) {
	stop := min(y.lineEnd(pos), limit)
	start := pos
	for start < stop && (y.text[start] == '&' || y.text[start] == '!') { // of the name
		for start < stop && !isSpace(y.text[start]) {
			start++
		}
		start = y.sameLine(start, stop)
	}
	if start >= stop {
		return 0, 0, false
	}
	switch y.text[start] {
	case '"', '\'':
		end, err := y.quoted(start, stop)
		if err != nil {
			return 0, 0, false
		}
		colon := y.sameLine(end, stop)
		return end, colon, y.indicator(colon, limit, ':')
	case '[', '{', '|', '>', '#', '%', '@', '`':
		return 0, 0, false
	}
	end = start
	for i := start; i < stop; i++ {
		switch c := y.text[i]; {
		case y.indicator(i, limit, ':'):
			return end, i, true
		case c == '#' && i > start && isSpace(y.text[i-1]):
			return 0, 0, false
		case c != ' ' && c != '\t':
			end = i + 1
		}
	}
	return 0, 0, false
}

// block reads a mapping or a list in block style.
func (y *yamlReader) block(n *yamlNode, kind byte, pos, limit int) error {
	n.kind, n.col = kind, pos-y.lineStart(pos)
	for {
		e := &yamlEntry{key: pos, keyEnd: pos + 1, from: pos + 1, comma: -1}
		if kind == yamlMap {
			if err := y.key(e, pos, limit); err != nil {
				return err
			}
		}
		end, next, err := y.extent(n, pos, limit)
		if err != nil {
			return err
		}
		if err := y.entryValue(n, e, end); err != nil {
			return err
		}
		n.entries = append(n.entries, e)
		n.end = e.value.end
		if next < 0 {
			return nil
		}
		pos = next
	}
}

// key reads the name of an entry of a block.
func (y *yamlReader) key(e *yamlEntry, pos, limit int) error {
	if y.indicator(pos, limit, '?') {
		return at(y.text, pos, "a name that is marked with ? cannot be edited around")
	}
	end, colon, ok := y.mapKey(pos, limit)
	if !ok {
		return at(y.text, pos, "a name and a colon are to come here")
	}
	e.keyEnd, e.from = end, colon+1
	e.name, e.named = yamlName(y.text[pos:end])
	return nil
}

// entryValue reads the value of an entry of a block, which goes up to end.
func (y *yamlReader) entryValue(n *yamlNode, e *yamlEntry, end int) (err error) {
	first := y.next(e.from, end)
	if first >= end {
		e.value = &yamlNode{start: e.from, end: e.from}
		return nil
	}
	inline := n.kind == yamlMap && first < y.lineEnd(e.from)
	if !inline && first >= y.lineEnd(e.from) {
		if lead := y.text[y.lineStart(first):first]; bytes.IndexByte(lead, '\t') >= 0 {
			return at(y.text, y.lineStart(first), "a tab indents this line; YAML takes spaces only")
		}
	}
	e.value, err = y.node(first, end, n.col, inline)
	return err
}

// extent is where an entry of a block ends, and where the next one begins; -1 for none.
func (y *yamlReader) extent(n *yamlNode, pos, limit int) (end, next int, err error) {
	for line := y.nextLine(pos); line < limit; line = y.nextLine(line) {
		p := line
		for p < limit && y.text[p] == ' ' {
			p++
		}
		if p >= limit || y.text[p] == '\n' || y.text[p] == '\r' || y.text[p] == '#' || p-line > n.col {
			continue
		}
		if y.text[p] == ']' || y.text[p] == '}' {
			continue // begins nothing: it closes a flow, and parsers do not mind where
		}
		if y.text[p] == '\t' {
			if y.ends(p, limit) {
				continue
			}
			return 0, 0, at(y.text, p, "a tab indents this line; YAML takes spaces only")
		}
		dash := y.indicator(p, limit, '-')
		switch {
		case p-line < n.col:
			return line, -1, nil
		case n.kind == yamlMap && dash:
			continue // a list may stand under its name
		case n.kind == yamlList && !dash:
			return line, -1, nil
		}
		return line, p, nil
	}
	return limit, -1, nil
}
