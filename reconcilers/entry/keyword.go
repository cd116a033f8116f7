package entry

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// keyword is `Key value`, one a line, as sshd_config has it: keys match without case, the
// first of several counts, and a Match or Host line opens a block that ends at the next.
var keyword = &dialect{
	aim:       aimKeyword,
	parse:     parseKeyword,
	sameBlock: func(_ *sheet, a, b string) bool { return sameMatch(a, b) },
	sameKey:   func(_ *sheet, a, b string) bool { return strings.EqualFold(a, b) },
	first:     true,
	spell:     func(s *sheet, value any, _ *row) (string, error) { return spellKeyword(s.aim.key, value) },
	fits:      func(value any) error { _, err := spellKeyword("", value); return err },
	reads:     readsKeyword,
	pair:      pairKeyword,
	ahead:     aheadKeyword,
	head:      func(name string) string { return name },
	gap:       func(s *sheet) bool { return true },
}

// aimKeyword implements dialect.aim.
func aimKeyword(w Wish) (target, error) {
	var t target
	switch len(w.Steps) {
	case 1:
		t.key = w.Steps[0].text()
	case 2:
		t.block, t.key = w.Steps[0].text(), w.Steps[1].text()
		if !opensBlock(t.block) || len(strings.Fields(t.block)) < 2 || strings.ContainsAny(t.block, "\r\n#") ||
			strings.TrimSpace(t.block) != t.block {
			return t, refuse("%s is no block: write its line, such as \"Match User git\"", quote(t.block))
		}
	default:
		return t, refuse("a key of this format is its name, or a Match line and a name, not %d steps", len(w.Steps))
	}
	if t.key == "" || strings.ContainsAny(t.key, " \t\r\n=\"'#\\<>") {
		return t, refuse("%s is no keyword: it is one word", quote(t.key))
	}
	if opensBlock(t.key) {
		return t, refuse("%s opens a block and has no value of its own; name the block and a key in it", quote(t.key))
	}
	return t, nil
}

// text is a step as a name: a number counts nothing in a format that has no lists.
func (s Step) text() string {
	if s.Place {
		return strconv.Itoa(s.Index)
	}
	return s.Name
}

func opensBlock(line string) bool {
	word, _, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	return strings.EqualFold(word, "Match") || strings.EqualFold(word, "Host")
}

// sameMatch says whether two block lines say the same. The names of criteria match without
// case, what they ask for does not.
func sameMatch(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	x, y := strings.Fields(a), strings.Fields(b)
	if len(x) != len(y) || !strings.EqualFold(x[0], y[0]) {
		return false
	}
	criteria := strings.EqualFold(x[0], "Match")
	for i := 1; i < len(x); i++ {
		if x[i] != y[i] && (!criteria || i%2 == 0 || !strings.EqualFold(x[i], y[i])) {
			return false
		}
	}
	return true
}

// parseKeyword implements dialect.parse.
func parseKeyword(text []byte, t target) (*sheet, error) {
	s := newSheet(text)
	s.aim = t
	for from := textStart(text); from < len(text); {
		content, end := lineEnd(text, from)
		r := row{start: from, end: end}
		r.keyStart = skipBlank(text, from, content)
		content = trimBlank(text, r.keyStart, content)
		line := text[r.keyStart:content]
		from = end
		switch {
		case len(line) == 0:
			s.add(r)
			continue
		case line[0] == '#':
			r.kind = commentRow
			s.add(r)
			continue
		case line[0] == '<':
			return nil, at(text, r.keyStart, "a block in angle brackets is none of this format")
		}
		if line[len(line)-1] == '\\' {
			return nil, at(text, content-1, "the line ends in a backslash and may run on into the next, which this format has not")
		}
		readKeywordLine(text, &r, content)
		if word := string(text[r.keyStart:r.keyEnd]); opensBlock(word) {
			s.open(strings.Join(append([]string{word}, strings.Fields(s.raw(r))...), " "), r.start, r.end)
			continue
		}
		s.add(r)
	}
	return s, nil
}

// commands are the keys of ssh and sshd whose value is the rest of the line as it is, for a
// shell: quotes and hashes are the shell's.
var commands = words("forcecommand proxycommand localcommand remotecommand knownhostscommand")

// readKeywordLine finds key and value of a line whose content ends at an offset.
func readKeywordLine(text []byte, r *row, content int) {
	r.kind = pairRow
	r.keyEnd = r.keyStart
	for r.keyEnd < content && !bytes.ContainsRune([]byte(" \t="), rune(text[r.keyEnd])) {
		r.keyEnd++
	}
	r.key = string(text[r.keyStart:r.keyEnd])
	r.val = skipBlank(text, r.keyEnd, content)
	if r.val < content && text[r.val] == '=' {
		r.val = skipBlank(text, r.val+1, content)
	}
	_, n, whole := splitWords(text[r.val:content])
	if commands[strings.ToLower(r.key)] {
		n, whole = content-r.val, true
	}
	r.valEnd = trimBlank(text, r.val, r.val+n)
	r.bare = r.valEnd == r.val
	if !whole {
		r.doubt = "a quote is not closed"
	}
	if r.bare {
		r.val, r.valEnd = r.keyEnd, r.keyEnd
	}
}

// splitWords splits a value into its words as sshd does: quotes of both kinds, a backslash
// before a quote, a backslash or (outside quotes) a blank, and a comment that begins a
// word. It gives where the words end, and whether every quote is closed.
func splitWords(raw []byte) (words []string, end int, whole bool) {
	i := 0
	for {
		i = skipBlank(raw, i, len(raw))
		if i == len(raw) || raw[i] == '#' {
			return words, i, true
		}
		var word []byte
		var in byte
		for ; i < len(raw) && (in != 0 || raw[i] != ' ' && raw[i] != '\t'); i++ {
			c := raw[i]
			switch {
			case c == '\\' && i+1 < len(raw) && (strings.IndexByte(`'"\`, raw[i+1]) >= 0 || in == 0 && raw[i+1] == ' '):
				i++
				word = append(word, raw[i])
			case in == 0 && (c == '"' || c == '\''):
				in = c
			case in != 0 && c == in:
				in = 0
			default:
				word = append(word, c)
			}
		}
		words = append(words, string(word))
		if in != 0 {
			return words, i, false
		}
	}
}

// spellKeyword implements dialect.spell. A text stands as it is, words, quotes and all; a
// list is its words.
func spellKeyword(key string, value any) (string, error) {
	if text, ok := value.(string); ok && commands[strings.ToLower(key)] {
		if strings.TrimSpace(text) != text || text == "" || text[0] == '=' {
			return "", refuse("a command cannot be empty, or begin or end with a blank")
		}
		return onOneLine(text)
	}
	if list, ok := value.([]any); ok && len(list) > 0 {
		var words []string
		for _, v := range list {
			word, err := scalar(v, "yes", "no")
			if err != nil {
				return "", err
			}
			words = append(words, quoteWord(word))
		}
		return onOneLine(strings.Join(words, " "))
	}
	raw, err := scalar(value, "yes", "no")
	if err != nil {
		return "", err
	}
	words, end, whole := splitWords([]byte(raw))
	if !whole || len(words) == 0 || end < len(raw) || strings.TrimSpace(raw) != raw || raw[0] == '=' || strings.HasSuffix(raw, `\`) {
		raw = inQuotes(raw)
	}
	return onOneLine(raw)
}

// quoteWord quotes a word that would not stand as one.
func quoteWord(word string) string {
	words, end, whole := splitWords([]byte(word))
	if whole && end == len(word) && len(words) == 1 && words[0] == word && word[0] != '=' && !strings.HasSuffix(word, `\`) {
		return word
	}
	return inQuotes(word)
}

func inQuotes(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `'`, `\'`).Replace(word) + `"`
}

// readsKeyword implements dialect.reads: the words count, not how they are quoted.
func readsKeyword(s *sheet, raw string, value any) bool {
	want, err := spellKeyword(s.aim.key, value)
	if err != nil {
		return false
	}
	if commands[strings.ToLower(s.aim.key)] {
		return raw == want
	}
	a, _, _ := splitWords([]byte(raw))
	b, _, _ := splitWords([]byte(want))
	return slices.Equal(a, b)
}

// pairKeyword implements dialect.pair.
func pairKeyword(s *sheet, near *row, t target, raw string) string {
	indent, between := "", " "
	if t.block != "" {
		indent = "\t"
	}
	if near != nil {
		if (s.blocks[near.block].name == "") == (t.block == "") {
			indent = string(s.text[near.start:near.keyStart])
		}
		between = string(s.text[near.keyEnd:near.val])
		if column := near.val - near.keyStart; len(between) > 1 && strings.Trim(between, " ") == "" {
			between = strings.Repeat(" ", max(1, column-len(t.key)))
		}
		if !strings.EqualFold(near.key, t.key) && s.mostlyOneBlank() {
			between = " "
		}
	}
	return indent + t.key + between + raw
}

// aheadKeyword implements dialect.ahead: what an included file says first would win, and so
// a new key comes before it.
func aheadKeyword(s *sheet, block int) int {
	for i, r := range s.rows {
		if r.block == block && r.kind == pairRow && strings.EqualFold(r.key, "Include") {
			return i
		}
	}
	return -1
}

// mostlyOneBlank says that in most rows one blank stands between key and value.
func (s *sheet) mostlyOneBlank() bool {
	one, all := 0, 0
	for _, r := range s.rows {
		if r.kind == pairRow && !r.bare {
			all++
			if string(s.text[r.keyEnd:r.val]) == " " {
				one++
			}
		}
	}
	return 2*one > all
}
