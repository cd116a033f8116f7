package entry

import (
	"bytes"
	"fmt"
	"slices"
)

// A yamlLevel is a container on the way to a key, and the member that the way leads
// through; nil if it is not there.
type yamlLevel struct {
	node  *yamlNode
	hit   *yamlEntry
	i     int
	merge int // where a merge key begins; -1 for none
}

// A yamlDoc is one document of a text that is edited.
type yamlDoc struct {
	*yamlReader
	from   int
	root   *yamlNode // nil for nothing but comments
	steps  []Step
	levels []yamlLevel // along the steps, as far as they lead
}

// openYAML reads one document.
func openYAML(text []byte, document int) (*yamlDoc, error) {
	if isWide(text) {
		return nil, &PlaceError{Why: "it is UTF-16 or UTF-32 text; only UTF-8 can be edited"}
	}
	spans := yamlSpans(text)
	if document >= len(spans) {
		return nil, &PlaceError{Why: fmt.Sprintf("there is no document %d: the file has %d, numbered from 0", document, len(spans))}
	}
	span := spans[document]
	d := &yamlDoc{yamlReader: &yamlReader{text: text, limit: span.to}, from: span.from}
	pos := d.next(span.from, span.to)
	if pos >= span.to {
		return d, nil
	}
	start := d.lineStart(pos)
	if start < span.from && bytes.HasSuffix(text[:span.from], []byte("---")) && text[pos] != '{' && text[pos] != '[' {
		return nil, at(text, pos, "the document begins in the line of its marker; it cannot be edited there")
	}
	if bytes.IndexByte(text[start:pos], '\t') >= 0 {
		return nil, at(text, start, "a tab indents this line; YAML takes spaces only")
	}
	var err error
	if d.root, err = d.node(pos, span.to, -1, false); err != nil {
		return nil, err
	}
	if rest := d.next(d.root.end, span.to); rest < span.to {
		return nil, at(text, rest, "this is not indented as what it belongs to")
	}
	return d, nil
}

// A yamlSpan is where a document lies, without its markers.
type yamlSpan struct{ from, to int }

// yamlSpans finds the documents of a stream.
func yamlSpans(text []byte) []yamlSpan {
	y := &yamlReader{text: text}
	first := textStart(text)
	var spans []yamlSpan
	from, marked := first, false
	flush := func(to int) {
		if marked || y.next(from, to) < to {
			spans = append(spans, yamlSpan{from, to})
		}
	}
	for line := first; line < len(text); line = y.nextLine(line) {
		switch {
		case marker(text[line:], "---"):
			flush(line)
			from, marked = line+3, true
		case marker(text[line:], "..."):
			flush(line)
			from, marked = y.nextLine(line), false
		case text[line] == '%' && !marked && y.next(from, line) >= line:
			from = y.nextLine(line)
		}
	}
	flush(len(text))
	if len(spans) == 0 {
		return []yamlSpan{{from, len(text)}}
	}
	return spans
}

// marker says whether a line begins with a document's marker.
func marker(line []byte, mark string) bool {
	return bytes.HasPrefix(line, []byte(mark)) && (len(line) == 3 || isSpace(line[3]))
}

// walk goes the way of some steps, as far as it leads.
func (d *yamlDoc) walk(steps []Step) error {
	d.steps, d.levels = steps, nil
	n := d.root
	for _, step := range steps {
		if n == nil || n.kind == yamlNone {
			return nil
		}
		level, err := d.enter(n, step)
		if err != nil {
			return err
		}
		d.levels = append(d.levels, level)
		if level.hit == nil {
			return nil
		}
		n = level.hit.value
	}
	return nil
}

// last is what the way leads to as far as it goes; nil for nothing.
func (d *yamlDoc) last() *yamlNode {
	if len(d.levels) == 0 {
		return d.root
	}
	if hit := d.levels[len(d.levels)-1].hit; hit != nil {
		return hit.value
	}
	return nil
}

// through is the error where a key leads through something that holds no members.
func (d *yamlDoc) through(offset int, why string) error {
	return &throughError{placeOf(d.text, offset, why)}
}

// enter finds a step in a container.
func (d *yamlDoc) enter(n *yamlNode, step Step) (yamlLevel, error) {
	level := yamlLevel{node: n, i: -1, merge: -1}
	switch {
	case n.kind == yamlAlias:
		return level, at(d.text, n.start, "the key leads through an alias; what it stands for is used elsewhere too")
	case !n.container():
		return level, d.through(n.start, "the key leads through it, and it is neither a mapping nor a list")
	case n.list(d.text):
		place, ok := step.index()
		if !ok {
			return level, d.through(n.start, "the key leads through it by the name "+quote(step.Name)+", but it is a list; its members have numbers, from 0")
		}
		if place < len(n.entries) {
			level.hit, level.i = n.entries[place], place
		}
		return level, nil
	case step.Place:
		return level, d.through(n.start, "the key leads through it by a number, but it is a mapping; write the name in quotes")
	}
	for i, e := range n.entries {
		if e.named && e.name == mergeKey {
			level.merge = e.key
		}
		if !e.named || e.name != step.Name {
			continue
		}
		if level.hit != nil {
			first := placeOf(d.text, level.hit.key, "")
			return level, at(d.text, e.key, "the name %s is there twice, in line %d, column %d too; golem cannot tell which of them counts",
				quote(step.Name), first.Line, first.Column)
		}
		level.hit, level.i = e, i
	}
	return level, nil
}

// mergeKey is the name whose value's members a mapping has too, unless it has its own.
const mergeKey = "<<"

// unmerged refuses a way that ends where a merge key brings the name: a value of its own
// stands before that, but to take the name out, or to add to what is brought, would take an
// edit of what others share.
func (d *yamlDoc) unmerged(v any, w Wish) error {
	n := len(d.levels)
	if n == 0 || d.levels[n-1].merge < 0 {
		return nil
	}
	last, whole := d.levels[n-1], n == len(w.Steps)
	if last.hit != nil && !(w.Absent && whole) || last.hit == nil && whole && !w.Absent && !w.Member {
		return nil
	}
	within, _ := lookup(v, w.Steps[:n-1])
	mapping, _ := within.(map[string]any)
	if !brings(mapping[mergeKey], w.Steps[n-1].Name) {
		return nil
	}
	return at(d.text, last.merge, "this merge key brings %s, and what it stands for may be used elsewhere too", quote(w.Steps[n-1].Name))
}

// brings says whether what a merge key stands for has a name.
func brings(merged any, name string) bool {
	switch v := merged.(type) {
	case map[string]any:
		_, there := v[name]
		return there || brings(v[mergeKey], name)
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return brings(one, name) })
	}
	return false
}

// known refuses a way that ends where the other parser sees it go on: by a name that is
// spelled by an alias, a tag or in brackets.
func (d *yamlDoc) known(v any) error {
	if len(d.levels) == 0 {
		return nil
	}
	l := d.levels[len(d.levels)-1]
	if _, there := lookup(v, d.steps[:len(d.levels)]); l.hit != nil || !there {
		return nil
	}
	for _, e := range l.node.entries {
		if !e.named {
			return at(d.text, e.key, "this name is spelled in a way that cannot be edited around")
		}
	}
	return at(d.text, l.node.start, "the name %s cannot be told from the others here", quote(d.steps[len(d.levels)-1].Name))
}
