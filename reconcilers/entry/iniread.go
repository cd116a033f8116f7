package entry

import (
	"bytes"
	"strings"
)

// parseINI implements dialect.parse.
func parseINI(text []byte, t target) (*sheet, error) {
	if first := skipBlank(text, textStart(text), len(text)); first < len(text) && text[first] == '<' {
		return nil, at(text, first, "it begins as XML does, and XML is not edited")
	}
	s := newSheet(text)
	s.flavor, s.indent = sniffINI(text, t), -1
	for from := textStart(text); from < len(text); {
		content, end := lineEnd(text, from)
		r := row{start: from, end: end, keyStart: skipBlank(text, from, content)}
		content = trimBlank(text, r.keyStart, content)
		switch {
		case r.keyStart == content:
			s.add(r)
		case text[r.keyStart] == '#' || text[r.keyStart] == ';':
			r.kind = commentRow
			s.add(r)
		case text[r.keyStart] == '[':
			line := string(text[r.keyStart:content])
			i := headEnd(line)
			if i < 0 {
				return nil, at(text, r.keyStart, "a section's name is not closed by a bracket")
			}
			if rest := strings.TrimLeft(line[i+1:], " \t"); rest != "" && rest[0] != '#' && rest[0] != ';' {
				return nil, at(text, r.keyStart+i+1, "something stands behind a section's name")
			}
			s.open(line[1:i], r.start, r.end)
			s.indent, s.unsure = -1, false
		default:
			s.pairINI(&r, content)
			s.add(r)
		}
		from = r.end
	}
	return s, nil
}

// sniffINI tells whose INI a text is: by the section that is aimed at, else by the first
// that tells.
func sniffINI(text []byte, t target) flavor {
	if t.flavor != nil {
		return *t.flavor
	}
	found := flavorOf(t.block, len(bytes.TrimSpace(text)) == 0)
	lines := bytes.Split(text[textStart(text):], []byte("\n"))
	for i, line := range lines {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] != '[' {
			continue
		}
		end := headEnd(string(line))
		if end < 0 {
			continue
		}
		indented := i+1 < len(lines) && len(lines[i+1]) > 0 && (lines[i+1][0] == '\t' || lines[i+1][0] == ' ')
		if f := flavorOf(string(line[1:end]), indented); f != plainINI {
			if found == plainINI || string(line[1:end]) == t.block {
				found = f
			}
		}
	}
	return found
}

// pairINI reads a row that is a pair, and the lines that it runs on into.
func (s *sheet) pairINI(r *row, content int) {
	text := s.text
	r.kind = pairRow
	if indent := r.keyStart - r.start; s.flavor == plainINI && (s.unsure || s.indent >= 0 && indent > s.indent) {
		r.doubt = "it is not plain whether this is a line of its own or belongs to the value above"
	} else {
		s.indent = indent
	}
	s.unsure = false
	s.stretch(r, content)
	sign := bytes.IndexByte(text[r.keyStart:content], '=')
	colon := -1
	if s.flavor == plainINI {
		colon = bytes.IndexByte(text[r.keyStart:content], ':')
	}
	if sign < 0 {
		sign = colon
	} else if colon >= 0 && colon < sign && colon+1 < sign && strings.IndexByte(" \t", text[r.keyStart+colon+1]) >= 0 {
		r.doubt = "it is not plain whether the key ends at the colon or at the equals sign"
	}
	if sign < 0 {
		r.keyEnd = s.bareEnd(r, content)
		r.bare, r.val, r.valEnd = true, r.keyEnd, r.keyEnd
	} else {
		r.keyEnd = trimBlank(text, r.keyStart, r.keyStart+sign)
		last, _ := lastContent(text, r.start, r.end)
		full, _ := lineEnd(text, r.start)
		r.val = skipBlank(text, r.keyStart+sign+1, full)
		r.valEnd = max(r.val, trimBlank(text, r.val, last))
		if last == trimBlank(text, r.val, content) {
			r.valEnd = s.valueEnd(r)
		}
	}
	r.key = string(text[r.keyStart:r.keyEnd])
}

// bareEnd is where a key without a value ends: at a comment, where there may be one.
func (s *sheet) bareEnd(r *row, content int) int {
	if s.flavor == systemdINI || s.flavor == desktopINI {
		return content
	}
	for i := r.keyStart + 1; i < content; i++ {
		if c := s.text[i]; (c == '#' || c == ';') && (s.text[i-1] == ' ' || s.text[i-1] == '\t') {
			return trimBlank(s.text, r.keyStart, i)
		}
	}
	return content
}

// lastContent is where the content of a row's last line ends.
func lastContent(text []byte, from, to int) (content, end int) {
	for from < to {
		content, end = lineEnd(text, from)
		from = end
	}
	return content, end
}

// valueEnd is where a value on one line ends: before a comment, where the flavour has
// comments behind values.
func (s *sheet) valueEnd(r *row) int {
	text := s.text
	content, _ := lineEnd(text, r.start)
	content = max(r.val, trimBlank(text, r.val, content))
	if s.flavor == systemdINI || s.flavor == desktopINI {
		return content
	}
	if r.val < content && r.val > 0 && (text[r.val] == ';' || text[r.val] == '#') {
		blank := text[r.val-1] == ' ' || text[r.val-1] == '\t'
		if s.flavor == gitINI || blank {
			// No value: its place is behind the sign, with a blank on each side if there are two.
			sign := trimBlank(text, r.keyEnd, r.val)
			r.val = min(sign+max(0, min(1, r.val-sign-1)), r.val)
			return r.val
		}
	}
	end, closed := commentAt(text[r.val:content], s.flavor)
	if !closed {
		r.doubt = "a quote is not closed on its line"
	}
	return trimBlank(text, r.val, r.val+end)
}

// commentAt finds the comment behind a value, or the value's end, and says whether quotes
// are closed there. Apostrophes are no quotes: most files have them in plain words.
func commentAt(value []byte, f flavor) (end int, closed bool) {
	quoted := false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '\\' && (f == gitINI || quoted):
			i++
		case c == '"':
			quoted = !quoted
		case quoted || c != ';' && c != '#' || f == phpINI && c == '#':
		case f == gitINI || i > 0 && (value[i-1] == ' ' || value[i-1] == '\t'):
			return i, true
		}
	}
	return len(value), !quoted
}

// stretch makes a row as long as its value runs on: behind a backslash at the end of a
// line, or into lines that are indented deeper than the key.
func (s *sheet) stretch(r *row, content int) {
	text := s.text
	switch s.flavor {
	case desktopINI, phpINI:
		return
	case systemdINI:
		for runsOn(text[r.keyStart:content]) && r.end < len(text) {
			content, r.end, r.open = s.goOn(r.end)
		}
		return
	case gitINI:
		for runsOn(text[r.keyStart:content]) && r.end < len(text) {
			if _, closed := commentAt(text[r.keyStart:content], gitINI); !closed {
				r.doubt = "a quote is not closed on its line"
			} else if i, _ := commentAt(text[r.keyStart:content], gitINI); i < content-r.keyStart {
				return
			}
			content, r.end = lineEnd(text, r.end)
		}
		return
	}
	for runsOn(text[r.keyStart:content]) && r.end < len(text) {
		next, end := lineEnd(text, r.end)
		line := bytes.TrimSpace(text[r.end:next])
		if len(line) > 0 && (bytes.IndexByte(line, '=') > 0 || strings.IndexByte("[#;", line[0]) >= 0) {
			r.doubt, s.unsure = notPlain, true
			return
		}
		content, r.end = next, end
	}
	s.deeper(r)
}

// notPlain is why a row is not edited that some readers take for a part of the one above.
const notPlain = "it is not plain where the value ends: whether the next line belongs to it"

// goOn is the end of the next line of a value of systemd's, comments stepped over; open
// where the text ends in them.
func (s *sheet) goOn(from int) (content, end int, open bool) {
	for {
		content, end = lineEnd(s.text, from)
		line := bytes.TrimLeft(s.text[from:content], " \t")
		comment := len(line) > 0 && (line[0] == '#' || line[0] == ';')
		if !comment || end == len(s.text) {
			return content, end, comment
		}
		from = end
	}
}

// runsOn says that a line ends in a backslash that is not itself escaped.
func runsOn(line []byte) bool {
	n := len(line) - len(bytes.TrimRight(line, `\`))
	return n%2 == 1
}

// deeper stretches a row over the lines below that are indented deeper than its key, and
// the blank lines and comments between them. Lines that might be pairs stay their own.
func (s *sheet) deeper(r *row) {
	indent := r.keyStart - r.start
	for from := r.end; from < len(s.text); {
		content, end := lineEnd(s.text, from)
		start := skipBlank(s.text, from, content)
		line := s.text[start:content]
		blank := len(line) == 0 || line[0] == '#' || line[0] == ';'
		if !blank && (start-from <= indent || line[0] == '[') {
			return
		}
		if bytes.IndexByte(line, '=') > 0 && !blank {
			r.doubt = notPlain
			return
		}
		from = end
		if !blank {
			r.end = end
		}
	}
}
