package entry

import (
	"bytes"
	"strings"
)

// parseEnv implements dialect.parse. A file of variables may be any shell script; what is
// no assignment of its own is stepped over, and an assignment inside a condition, a loop or
// a function is not edited.
func parseEnv(text []byte, _ target) (*sheet, error) {
	s := newSheet(text)
	depth := 0
	for from := textStart(text); from < len(text); {
		content, end := lineEnd(text, from)
		r := row{start: from, end: end, keyStart: skipBlank(text, from, content)}
		switch {
		case r.keyStart == content:
		case text[r.keyStart] == '#', text[r.keyStart] == ';': // the second is systemd's alone
			r.kind = commentRow
		default:
			if err := s.command(&r, depth); err != nil {
				return nil, err
			}
			depth = max(0, depth+nesting(text[r.start:r.end]))
		}
		s.add(r)
		from = r.end
	}
	return s, nil
}

// command reads a row that is a command of a shell: an assignment or anything else.
func (s *sheet) command(r *row, depth int) error {
	text := s.text
	r.kind = otherRow
	start := r.keyStart
	if rest, ok := bytes.CutPrefix(text[start:], []byte("export")); ok && len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\t') {
		start = skipBlank(text, start+len("export"), len(text))
	}
	name := nameEnd(text, start)
	assigns := name > start && name < len(text) && text[name] == '='
	from := r.keyStart
	if assigns {
		r.kind, r.keyStart, r.keyEnd, r.val = pairRow, start, name, name+1
		r.key = string(text[start:name])
		from = r.val
	}
	end, err := wordEnd(text, from)
	if err != nil {
		return err
	}
	r.valEnd = end
	if !assigns {
		r.val = end
	}
	return s.rest(r, end, assigns, depth)
}

// rest steps over what stands behind the first word of a command, to the end of its last
// line.
func (s *sheet) rest(r *row, end int, assigns bool, depth int) error {
	text := s.text
	here := ""
	more := false
	for {
		end = skipBlank(text, end, len(text))
		content, next := lineEnd(text, end)
		switch {
		case end == content:
			r.end = next
		case text[end] == '#':
			r.end = next
		default:
			more = true
			if bytes.HasPrefix(text[end:], []byte("<<")) {
				here = hereWord(text[end:content])
			}
			word, err := wordEnd(text, end)
			if err != nil {
				return err
			}
			end = max(word, end+1)
			continue
		}
		break
	}
	if here != "" {
		r.end = hereEnd(text, r.end, here)
	}
	switch {
	case !assigns:
	case depth > 0:
		r.doubt = "it stands inside a condition, a loop or a function"
	case more:
		r.doubt = "something stands behind its value on the line"
	}
	return nil
}

// wordEnd is where a word of a shell that begins at an offset ends: quotes, expansions and
// escaped line endings are within it.
func wordEnd(text []byte, from int) (int, error) {
	for i := from; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\n', ';', '&', '|', '<', '>':
			return max(i, from), nil
		case '\r':
			if i+1 == len(text) || text[i+1] == '\n' {
				return i, nil
			}
		case '\\':
			i++
			if bytes.HasPrefix(text[min(i, len(text)):], []byte("\r\n")) {
				i++
			}
		case '\'', '"', '`', '(':
			end := spanEnd(text, i, 0)
			if end < 0 {
				return 0, at(text, i, "a quote or bracket is not closed")
			}
			i = end
		case '$':
			if i+1 < len(text) && (text[i+1] == '{' || text[i+1] == '(') {
				end := spanEnd(text, i+1, 0)
				if end < 0 {
					return 0, at(text, i, "a bracket is not closed")
				}
				i = end
			}
		}
	}
	return len(text), nil
}

// maxNest is how deep quotes and brackets may stand in each other.
const maxNest = 200

// spanEnd is where what opens at an offset closes, -1 if it does not.
func spanEnd(text []byte, open, depth int) int {
	if depth > maxNest {
		return -1
	}
	closer := map[byte]byte{'\'': '\'', '"': '"', '`': '`', '(': ')', '{': '}'}[text[open]]
	for i := open + 1; i < len(text); i++ {
		c := text[i]
		switch {
		case c == closer:
			return i
		case text[open] == '\'':
		case c == '\\':
			i++
		case text[open] == '`', text[open] == '"' && c != '$' && c != '`':
		case c == '$' && (i+1 == len(text) || text[i+1] != '{' && text[i+1] != '('):
		default:
			inner := i
			if c == '$' {
				inner++
			}
			if strings.IndexByte("'\"`({", text[inner]) < 0 || c == '{' && text[open] != '{' {
				continue
			}
			end := spanEnd(text, inner, depth+1)
			if end < 0 {
				return -1
			}
			i = end
		}
	}
	return -1
}

// hereWord is the word that ends a here-document which a line opens.
func hereWord(line []byte) string {
	word := strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(string(line), "<<"), "-"), " \t")
	if i := strings.IndexAny(word, " \t;|&<>"); i >= 0 {
		word = word[:i]
	}
	return strings.Trim(word, `'"\`)
}

// hereEnd is where a here-document that begins at an offset ends.
func hereEnd(text []byte, from int, word string) int {
	for from < len(text) {
		content, end := lineEnd(text, from)
		line := strings.TrimLeft(string(text[from:content]), "\t")
		from = end
		if line == word {
			break
		}
	}
	return from
}

// nesting is by how much a command of a shell opens or closes conditions, loops and
// functions.
func nesting(command []byte) int {
	n := 0
	for line := range strings.Lines(string(command)) {
		for _, word := range strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(" \t\r\n;", c) }) {
			if word[0] == '#' {
				break
			}
			if strings.HasSuffix(word, "(){") {
				n++
			}
			switch word {
			case "if", "case", "do", "{", "(":
				n++
			case "fi", "esac", "done", "}", ")":
				n--
			}
		}
	}
	return n
}
