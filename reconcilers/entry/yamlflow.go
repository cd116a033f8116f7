package entry

import (
	"bytes"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// flow reads a list or a mapping in brackets.
func (y *yamlReader) flow(n *yamlNode, pos, limit int) (int, error) {
	if y.depth++; y.depth > 1000 {
		return 0, at(y.text, pos, "values lie deeper in each other than golem reads")
	}
	defer func() { y.depth-- }()
	list := y.text[pos] == '['
	closing := byte('}')
	if list {
		closing = ']'
	}
	open := pos
	for pos++; ; {
		gap := pos
		if pos = y.next(pos, limit); pos >= limit {
			return 0, at(y.text, open, "this bracket is not closed")
		}
		if bytes.IndexByte(y.text[gap:pos], '#') >= 0 {
			n.odd = gap
		}
		if y.text[pos] == closing {
			return pos + 1, nil
		}
		e := &yamlEntry{key: pos, keyEnd: pos, from: pos, comma: -1}
		end, err := y.flowMember(n, e, list, limit)
		if err != nil {
			return 0, err
		}
		n.entries = append(n.entries, e)
		after := y.next(end, limit)
		if bytes.IndexByte(y.text[end:after], '#') >= 0 {
			n.odd = end
		}
		if pos = after; pos < limit && y.text[pos] == ',' {
			e.comma = pos
			pos++
		} else if pos < limit && y.text[pos] != closing {
			return 0, at(y.text, pos, "a comma or a closing bracket is to come here")
		}
	}
}

// flowMember reads one member up to its comma, and returns its end.
func (y *yamlReader) flowMember(n *yamlNode, e *yamlEntry, list bool, limit int) (int, error) {
	if y.indicator(e.key, limit, '?') {
		return 0, at(y.text, e.key, "a name that is marked with ? cannot be edited around")
	}
	first, err := y.flowNode(e.key, limit)
	if err != nil {
		return 0, err
	}
	e.value = first
	colon := y.next(first.end, limit)
	quoted := y.text[first.start] == '"' || y.text[first.start] == '\'' || y.text[first.start] == '{' || y.text[first.start] == '['
	if colon >= limit || y.text[colon] != ':' || !quoted && !y.colonAt(colon, limit) {
		if !list {
			n.odd = e.key // a name without a value
			e.value = &yamlNode{start: first.end, end: first.end}
			e.keyEnd, e.from = first.end, first.end
		}
		return first.end, nil
	}
	value := &yamlNode{start: colon + 1, end: colon + 1}
	if p := y.next(colon+1, limit); p < limit && y.text[p] != ',' && y.text[p] != ']' && y.text[p] != '}' {
		if value, err = y.flowNode(p, limit); err != nil {
			return 0, err
		}
	}
	if list { // a mapping of one pair, without brackets of its own
		e.value = &yamlNode{kind: yamlScalar, start: e.key, end: max(value.end, colon+1)}
		return e.value.end, nil
	}
	e.keyEnd, e.from, e.value = first.end, colon+1, value
	e.name, e.named = yamlName(y.text[e.key:first.end])
	return max(value.end, colon+1), nil
}

// colonAt says whether a colon ends a name in a flow.
func (y *yamlReader) colonAt(pos, limit int) bool {
	if pos+1 >= limit {
		return true
	}
	switch c := y.text[pos+1]; c {
	case ',', '[', ']', '{', '}':
		return true
	default:
		return isSpace(c)
	}
}

// flowNode reads a value in a flow.
func (y *yamlReader) flowNode(pos, limit int) (n *yamlNode, err error) {
	n = &yamlNode{start: pos, end: pos, kind: yamlScalar}
	for pos < limit && (y.text[pos] == '&' || y.text[pos] == '!') {
		for pos < limit && !isSpace(y.text[pos]) && bytes.IndexByte([]byte(",[]{}"), y.text[pos]) < 0 {
			pos++
		}
		n.end = pos
		pos = y.next(pos, limit)
	}
	if pos >= limit {
		return n, at(y.text, n.start, "the text ends in a bracket")
	}
	switch c := y.text[pos]; c {
	case '"', '\'':
		n.end, err = y.quoted(pos, limit)
	case '[', '{':
		n.kind, n.open = yamlFlow, pos
		n.end, err = y.flow(n, pos, limit)
	case ',', ']', '}':
		if n.start == pos {
			return nil, at(y.text, pos, "a value is to come here")
		}
	default:
		if c == '*' {
			n.kind = yamlAlias
		}
		n.end = y.flowPlain(pos, limit)
	}
	return n, err
}

// flowPlain is the end of a scalar without quotes in a flow.
func (y *yamlReader) flowPlain(pos, limit int) int {
	end := pos
	for i := pos; i < limit; i++ {
		switch c := y.text[i]; {
		case c == ',' || c == '[' || c == ']' || c == '{' || c == '}':
			return end
		case c == ':' && y.colonAt(i, limit):
			return end
		case c == '#' && i > pos && isSpace(y.text[i-1]):
			return end
		case !isSpace(c):
			end = i + 1
		}
	}
	return end
}

// yamlName reads a name; no, where it is not a scalar that is known without looking
// elsewhere.
func yamlName(raw []byte) (string, bool) {
	if len(raw) == 0 || bytes.IndexByte([]byte("*?[{|>"), raw[0]) >= 0 || !utf8.Valid(raw) {
		return "", false
	}
	if bytes.IndexByte([]byte("\"'&!"), raw[0]) < 0 && bytes.IndexByte(raw, '\n') < 0 {
		return string(raw), true
	}
	var n yaml.Node
	if yaml.Unmarshal(raw, &n) != nil || len(n.Content) != 1 || n.Content[0].Kind != yaml.ScalarNode {
		return "", false
	}
	return n.Content[0].Value, true
}
