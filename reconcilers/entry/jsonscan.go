package entry

import (
	"bytes"
	"errors"
	"strconv"
)

// maxDepth is how deep values may lie in each other.
const maxDepth = 10000

// A jsonMember is one member of an object or a list, by its offsets.
type jsonMember struct {
	name    int // of the name; in a list, of the value
	nameEnd int
	value   int
	end     int // past the value
	comma   int // of the comma behind it; -1 if there is none
}

// A jsonLevel is one container on the way to a key.
type jsonLevel struct {
	open, close int // offsets of its brackets
	list        bool
	count       int
	first       *jsonMember
	last        jsonMember // if there is one
	// hit is the member that the way leads through, between prev and next.
	prev, hit, next *jsonMember
	// onward is the first member at the scan's spot or behind it, and upon the one before.
	upon, onward *jsonMember
	spot         *int
	// lists and objects say how the last list and object in it are written.
	lists, objects layout
}

// A layout is how a container is written.
type layout int

const (
	unseen layout = iota
	oneLine
	manyLines
)

// A jsonPath is the way to a key, as far as it goes.
type jsonPath struct {
	blank  bool // there is nothing but space and comments
	levels []*jsonLevel
}

// member is what the whole way leads to; nil if it is not there.
func (p *jsonPath) member(steps int) *jsonMember {
	if len(p.levels) < steps {
		return nil
	}
	return p.levels[steps-1].hit
}

// errThrough says that a way leads through what holds no members.
var errThrough = errors.New("the key leads through it")

// A throughError is a key that leads through a scalar, or by a name through a list.
type throughError struct{ *PlaceError }

func (e *throughError) Is(target error) bool { return target == errThrough }
func (e *throughError) Unwrap() error        { return e.PlaceError }

// A jsonPick chooses among the members of a list; of several that it takes, the last counts.
// It is told the member before, nil for the first one.
type jsonPick func(value []byte, before *jsonMember) bool

// A jsonScan reads a text once, from end to end, and notes the containers on the way to
// one key. It takes JSON, and the comments and trailing commas of JSONC.
type jsonScan struct {
	text  []byte
	at    int
	depth int
	steps []Step
	// pick, where set, chooses among the members of the list that the steps lead to.
	pick jsonPick
	// raw, where set, is the last step: a name as it is spelled.
	raw  *jsonName
	seen int // members of that name
	path jsonPath
	// spot, where set, is an offset; what lies there is noted.
	spot *int
	// inLine says that the last comment was one up to its line's end.
	inLine bool
}

// scanJSON finds the way to a key.
func scanJSON(text []byte, steps []Step, pick jsonPick) (*jsonPath, error) {
	return (&jsonScan{text: text, steps: steps, pick: pick}).run()
}

// run reads the whole text.
func (s *jsonScan) run() (*jsonPath, error) {
	text := s.text
	if isWide(text) {
		return nil, &PlaceError{Why: "it is UTF-16 or UTF-32 text; only UTF-8 can be edited"}
	}
	s.at = textStart(text)
	if err := s.space(); err != nil {
		return nil, err
	}
	if s.at == len(text) {
		s.path.blank = true
		return &s.path, nil
	}
	if err := s.scan(0); err != nil {
		return nil, err
	}
	if err := s.space(); err != nil {
		return nil, err
	}
	if s.at < len(text) {
		return nil, at(text, s.at, "something follows the end of the document")
	}
	return &s.path, nil
}

// scan reads one value. way is how many steps lead to it; -1 if it is beside the way.
func (s *jsonScan) scan(way int) error {
	if s.at >= len(s.text) {
		return at(s.text, s.at, "the text ends where a value is to come")
	}
	switch c := s.text[s.at]; {
	case c == '{' || c == '[':
		return s.container(way)
	case way >= 0 && (way < len(s.steps) || s.pick != nil):
		why := "the key leads through it, and it is neither an object nor a list"
		if way == len(s.steps) {
			why = "it is not a list, and so has no members"
		}
		return s.through(s.at, why)
	case c == '"':
		return s.str()
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(s.text[s.at:], []byte(word)) {
			s.at += len(word)
			return nil
		}
	}
	return at(s.text, s.at, "a value is to come here")
}

func (s *jsonScan) through(offset int, why string) error {
	return &throughError{placeOf(s.text, offset, why)}
}

// container reads an object or a list.
func (s *jsonScan) container(way int) error {
	if s.depth++; s.depth > maxDepth {
		return at(s.text, s.at, "values lie deeper in each other than golem reads")
	}
	open := s.at
	end, list := byte('}'), s.text[open] == '['
	if list {
		end = ']'
	}
	level, err := s.enter(way, list)
	if err != nil {
		return err
	}
	s.at++
	comma := open
	for i := 0; ; i++ {
		if err := s.space(); err != nil {
			return err
		}
		switch {
		case s.at >= len(s.text):
			return at(s.text, open, "this bracket is not closed")
		case s.text[s.at] == end:
			if level != nil {
				level.close = s.at
			}
			s.at++
			s.depth--
			return nil
		case comma < 0:
			return at(s.text, s.at, "a comma or a closing bracket is to come here")
		}
		m := jsonMember{comma: -1}
		if err := s.member(level, list, way, i, &m); err != nil {
			return err
		}
		comma = m.comma
	}
}

// enter begins a level, if the container is on the way.
func (s *jsonScan) enter(way int, list bool) (*jsonLevel, error) {
	if way < 0 || way > len(s.steps) || way == len(s.steps) && s.pick == nil {
		return nil, nil
	}
	level := &jsonLevel{open: s.at, list: list, spot: s.spot}
	if way == len(s.steps) {
		if !list {
			return nil, s.through(s.at, "it is an object, not a list, and so has no members of its own")
		}
	} else if step := s.steps[way]; list {
		if _, ok := step.index(); !ok {
			return nil, s.through(s.at, "the key leads through it by the name "+strconv.Quote(step.Name)+", but it is a list; its members have numbers, from 0")
		}
	} else if step.Place {
		return nil, s.through(s.at, "the key leads through it by a number, but it is an object; write the name in quotes")
	}
	s.path.levels = append(s.path.levels, level)
	return level, nil
}

// index is the place in a list that a step means.
func (s Step) index() (int, bool) {
	if s.Place {
		return s.Index, true
	}
	if s.Name == "" || len(s.Name) > 9 || len(s.Name) > 1 && s.Name[0] == '0' {
		return 0, false
	}
	for _, c := range []byte(s.Name) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	i, err := strconv.Atoi(s.Name)
	return i, err == nil
}

// member reads one member and the comma behind it.
func (s *jsonScan) member(level *jsonLevel, list bool, way, i int, m *jsonMember) error {
	m.name, m.nameEnd = s.at, s.at
	if !list {
		if err := s.memberName(m); err != nil {
			return err
		}
	}
	m.value = s.at
	next, hit := -1, false
	if level != nil && way < len(s.steps) && s.meant(level, way, i, m) {
		if level.hit != nil {
			return s.twice(level.hit, m)
		}
		next, hit = way+1, true
	}
	if err := s.scan(next); err != nil {
		return err
	}
	m.end = s.at
	if err := s.space(); err != nil {
		return err
	}
	if s.at < len(s.text) && s.text[s.at] == ',' {
		m.comma = s.at
		s.at++
	}
	if level != nil {
		if way == len(s.steps) {
			hit = s.pick(s.text[m.value:m.end], level.before())
		}
		level.add(s.text, *m, hit)
	}
	return nil
}

// memberName reads a name and its colon.
func (s *jsonScan) memberName(m *jsonMember) error {
	if s.text[s.at] != '"' {
		return at(s.text, s.at, "a name in double quotes is to come here")
	}
	if err := s.str(); err != nil {
		return err
	}
	m.nameEnd = s.at
	if err := s.space(); err != nil {
		return err
	}
	if s.at >= len(s.text) || s.text[s.at] != ':' {
		return at(s.text, s.at, "a colon is to come here")
	}
	s.at++
	return s.space()
}

// meant says whether the next step means a member.
func (s *jsonScan) meant(level *jsonLevel, way, i int, m *jsonMember) bool {
	step := s.steps[way]
	if level.list {
		place, _ := step.index()
		return place == i
	}
	if s.raw != nil && way == len(s.steps)-1 {
		if !bytes.Equal(s.text[m.name:m.nameEnd], s.raw.Raw) {
			return false
		}
		s.seen++
		return s.seen-1 == s.raw.Nth
	}
	raw := s.text[m.name+1 : m.nameEnd-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw) == step.Name
	}
	name, err := unquoteJSON(s.text[m.name:m.nameEnd])
	return err == nil && name == step.Name
}

func (s *jsonScan) twice(first, second *jsonMember) error {
	a := placeOf(s.text, first.name, "")
	return at(s.text, second.name, "the name %s is there twice, in line %d, column %d too; golem cannot tell which of them counts",
		s.text[second.name:second.nameEnd], a.Line, a.Column)
}

// before is the last member that was read so far; nil for none.
func (l *jsonLevel) before() *jsonMember {
	if l.count == 0 {
		return nil
	}
	last := l.last
	return &last
}

// add notes a member.
func (l *jsonLevel) add(text []byte, m jsonMember, hit bool) {
	switch {
	case hit:
		here := m
		l.prev, l.hit, l.next = l.before(), &here, nil
	case l.hit != nil && l.next == nil:
		here := m
		l.next = &here
	}
	if l.spot != nil && l.onward == nil && m.name >= *l.spot {
		here := m
		l.upon, l.onward = l.before(), &here
	}
	if l.first == nil {
		here := m
		l.first = &here
	}
	l.count++
	l.last = m
	if c := text[m.value]; c == '{' || c == '[' {
		look := oneLine
		if bytes.IndexByte(text[m.value:m.end], '\n') >= 0 {
			look = manyLines
		} else if m.end-m.value == 2 {
			return // an empty one shows nothing
		}
		if c == '[' {
			l.lists = look
		} else {
			l.objects = look
		}
	}
}
