package entry

import (
	"bytes"
	"encoding/json"
)

// space skips space and comments.
func (s *jsonScan) space() error {
	for ; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
		case '/':
			if err := s.comment(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// comment skips a comment, up to its last byte.
func (s *jsonScan) comment() error {
	rest := s.text[s.at:]
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		s.inLine = true
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			s.at += i
		} else {
			s.at = len(s.text) - 1
		}
		return nil
	case bytes.HasPrefix(rest, []byte("/*")):
		i := bytes.Index(rest[2:], []byte("*/"))
		if i < 0 {
			return at(s.text, s.at, "this comment has no end")
		}
		s.at += 2 + i + 1
		s.inLine = false
		return nil
	}
	return at(s.text, s.at, "this is no JSON")
}

// str reads a string.
func (s *jsonScan) str() error {
	open := s.at
	for i := open + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.at = i + 1
			return nil
		case c == '\\':
			n := escapeLen(s.text[i:])
			if n == 0 {
				return at(s.text, i, "this escape is none that JSON has")
			}
			i += n - 1
		case c < ' ':
			return at(s.text, i, "a string holds no such byte as it is; it is written as \\u%04x", c)
		}
	}
	return at(s.text, open, "this string has no end")
}

// escapeLen is the length of the escape that a text begins with; 0 if it is none.
func escapeLen(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(text) < 6 {
			return 0
		}
		for _, c := range text[2:6] {
			if !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// number reads a number.
func (s *jsonScan) number() error {
	start := s.at
	if s.text[s.at] == '-' {
		s.at++
	}
	zero := s.at < len(s.text) && s.text[s.at] == '0'
	digits := s.digits()
	ok := digits > 0 && !(zero && digits > 1)
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		ok = s.digits() > 0 && ok
	}
	if s.at < len(s.text) && s.text[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
			s.at++
		}
		ok = s.digits() > 0 && ok
	}
	if !ok {
		return at(s.text, start, "this is no number as JSON writes it")
	}
	return nil
}

func (s *jsonScan) digits() int {
	start := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at - start
}

// unquoteJSON reads a string that is known to be one. Bytes that are not UTF-8 stay.
func unquoteJSON(raw []byte) (string, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err
}

// readJSON reads a value that is known to be one, as plain values. ok is false where a
// name is there twice: such a value is equal to none.
func readJSON(raw []byte) (v any, ok bool) {
	r := &jsonReader{scan: jsonScan{text: raw}}
	v = r.value()
	return v, !r.twice
}

// A jsonReader makes plain values of a text without mistakes.
type jsonReader struct {
	scan  jsonScan
	twice bool
}

func (r *jsonReader) value() any {
	s := &r.scan
	start := s.at
	switch s.text[s.at] {
	case '{':
		object := map[string]any{}
		r.members('}', func() {
			var m jsonMember
			m.name = s.at
			_ = s.memberName(&m)
			name, _ := unquoteJSON(s.text[m.name:m.nameEnd])
			if _, there := object[name]; there {
				r.twice = true
			}
			object[name] = r.value()
		})
		return object
	case '[':
		list := []any{}
		r.members(']', func() { list = append(list, r.value()) })
		return list
	}
	_ = s.scan(-1) // it was read before
	switch raw := s.text[start:s.at]; raw[0] {
	case '"':
		text, _ := unquoteJSON(raw)
		return text
	case 't', 'f':
		return raw[0] == 't'
	case 'n':
		return nil
	default:
		return json.Number(raw)
	}
}

func (r *jsonReader) members(end byte, member func()) {
	s := &r.scan
	for s.at++; ; {
		_ = s.space()
		if s.text[s.at] == end {
			s.at++
			return
		}
		if s.text[s.at] == ',' {
			s.at++
			continue
		}
		member()
	}
}
