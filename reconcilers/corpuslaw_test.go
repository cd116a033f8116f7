package reconcilers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golem/reconcilers/entry"
	"golem/scrolls"
)

// TestEditsOnFilesOfManyPackages holds lines, regions and entries to their laws on every
// configuration file of some hundred packages: an edit comes off to the byte, put again is
// the same, a stack comes off newest first, what a stranger writes in between stays, and
// another reader sees the wanted value and every other value as it was.
func TestEditsOnFilesOfManyPackages(t *testing.T) {
	files := corpus(t)
	draws, step := 3, 3
	if os.Getenv("GOLEM_SOAK") != "" {
		draws, step = 6, 1
	}
	sum := corpusSum{}
	for i, f := range files {
		h := fnv.New64a()
		fmt.Fprint(h, f.pkg, f.path)
		c := &corpusCase{T: t, f: f, r: rand.New(rand.NewSource(int64(h.Sum64()))), sum: sum}
		c.formats = c.formatsOf()
		rare := len(c.formats) > 0 && c.formats[0] != "ini"
		if i%step > 0 && !rare {
			continue
		}
		t.Run(f.pkg+"/"+f.path, func(t *testing.T) {
			c.T = t
			c.all(draws)
		})
	}
	t.Logf("edits on the files of packages:\n%s", sum)
	for _, format := range []string{"ini", "env", "json", "yaml", "toml", "keyword", "line and region"} {
		if n := sum.of(format); n.edits == 0 {
			t.Errorf("not one edit was made of the format %s", format)
		}
	}
}

// all is every law on one file.
func (c *corpusCase) all(draws int) {
	for _, format := range c.formats {
		c.sum.of(format).files++
		for range draws {
			c.entries(format)
			c.entryStack(format)
		}
	}
	c.sum.of("line and region").files++
	for range draws {
		c.stack()
	}
}

// A corpusCase is one file under test.
type corpusCase struct {
	*testing.T
	f       corpusFile
	r       *rand.Rand
	sum     corpusSum
	formats []string
}

var sectionLine = regexp.MustCompile(`(?m)^\[[A-Za-z0-9_ .:"-]+\][ \t]*\r?$`)

// formatsOf are the format that golem takes the file for by its name, or all that another
// reader takes it for by what is in it.
func (c *corpusCase) formatsOf() []string {
	if format := formatOf(scrolls.Attrs{"path": "/" + c.f.path}); format != "" {
		return []string{format}
	}
	var list []string
	for _, format := range []string{"json", "yaml", "ini", "env", "keyword"} {
		says, err := foreignReaders[format](c.f.text)
		if err != nil || len(says) < 2 || bytes.IndexByte(c.f.text, 0) >= 0 {
			continue
		}
		fits := true
		switch way := says[0].way; format {
		case "json", "yaml":
			fits = len(way) > 0
		case "ini":
			fits = sectionLine.Match(c.f.text)
		case "env":
			n := 0
			for _, s := range says {
				if word, ok := s.way[0].(string); ok && word != "" && word == strings.ToUpper(word) {
					n++
				}
			}
			fits = 2*n > len(says)
		case "keyword":
			fits = !bytes.ContainsAny(c.f.text, "=[{<:")
		}
		if fits {
			list = append(list, format)
		}
	}
	return list
}

// entries puts one entry on the file as it was shipped, and holds it to all laws.
func (c *corpusCase) entries(format string) {
	read := foreignReaders[format]
	before, err := read(c.f.text)
	if err != nil && (len(bytes.TrimSpace(c.f.text)) > 0 || errors.Is(err, errNoPython)) {
		before = nil
	}
	g := c.drawEntry(format, before)
	if g == nil {
		return
	}
	e := mustKind(g).edit
	got, putErr := e.put(g, c.f.text, -1)
	n := c.sum.of(format)
	if putErr != nil {
		n.refuse(putErr, c.f)
		c.refusalLaws(g, putErr)
		return
	}
	n.edits++
	left, inverse := put(c, g, string(c.f.text))
	if back := peel(g, inverse, left); back != string(c.f.text) {
		c.Fatalf("%s %v does not come off:\n%s", g.Key, g.Attrs, firstChange(c.f.text, []byte(back)))
	}
	if again, _ := put(c, g, string(c.f.text)); again != left {
		c.Fatalf("%s %v leaves another text when it is put again", g.Key, g.Attrs)
	}
	if err != nil || !got.changed {
		return
	}
	after, err := read([]byte(left))
	if err != nil {
		c.Fatalf("%s %v: another reader does not read what it left: %v\n%s", g.Key, g.Attrs, err, firstChange(c.f.text, []byte(left)))
	}
	n.read++
	if why := otherThan(format, before, after, g); why != "" {
		c.Fatalf("%s %v: %s\n%s", g.Key, g.Attrs, why, firstChange(c.f.text, []byte(left)))
	}
}

// refusalLaws holds what is refused to saying why, and where.
func (c *corpusCase) refusalLaws(g *scrolls.Glyph, err error) {
	var place *entry.PlaceError
	if !errors.As(err, &place) || place.Why == "" {
		c.Fatalf("%s: the refusal has no place: %v", g.Key, err)
	}
	if place.Line < 0 || place.Line > bytes.Count(c.f.text, []byte("\n"))+1 {
		c.Fatalf("%s: the refusal is about line %d of %d: %v", g.Key, place.Line, bytes.Count(c.f.text, []byte("\n"))+1, err)
	}
	if mustKind(g).edit.holds(g, c.f.text) {
		c.Fatalf("%s: it is refused, and holds: %v", g.Key, err)
	}
}

// A layered edit is one of a stack.
type layered struct {
	g       *scrolls.Glyph
	inverse json.RawMessage
	beneath string
}

// stack puts some edits on each other, takes them off, and takes them off once more after a
// stranger has written a line.
func (c *corpusCase) stack() {
	var pile []layered
	now := string(c.f.text)
	for range 1 + c.r.Intn(5) {
		g := c.drawEdit(now)
		if g == nil {
			continue
		}
		got, err := mustKind(g).edit.put(g, []byte(now), -1)
		if err != nil {
			if g.Kind != "entry" {
				c.sum.of("line and region").refuse(err, c.f)
			}
			continue
		}
		if g.Kind != "entry" {
			c.sum.of("line and region").edits++
		}
		left, inverse := put(c, g, now)
		if left != string(got.content) {
			c.Fatalf("%s %v leaves another text when it is put again", g.Key, g.Attrs)
		}
		pile = append(pile, layered{g, inverse, now})
		now = left
	}
	top := now
	for _, l := range slices.Backward(pile) {
		if now = peel(l.g, l.inverse, now); now != l.beneath {
			c.Fatalf("%s %v does not come off:\n%s", l.g.Key, l.g.Attrs, firstChange([]byte(l.beneath), []byte(now)))
		}
	}
	c.strangersLine(pile, top)
}

func keysOf(pile []layered) []string {
	var keys []string
	for _, l := range pile {
		keys = append(keys, fmt.Sprintf("%s %v", l.g.Key, l.g.Attrs))
	}
	return keys
}

// firstChange shows where two texts part.
func firstChange(was, is []byte) string {
	i := 0
	for i < min(len(was), len(is)) && was[i] == is[i] {
		i++
	}
	show := func(text []byte) []byte { return text[max(0, min(i, len(text))-120):min(len(text), i+200)] }
	return fmt.Sprintf("at byte %d of %d and %d: was %q\nis  %q", i, len(was), len(is), show(was), show(is))
}

// A corpusSum counts what was tried, by format.
type corpusSum map[string]*corpusCount

type corpusCount struct {
	files, edits, read int
	refused            map[string][]string // by reason, the files
}

func (s corpusSum) of(format string) *corpusCount {
	if s[format] == nil {
		s[format] = &corpusCount{refused: map[string][]string{}}
	}
	return s[format]
}

var inQuotesOrNumber = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[0-9]+`)

func (n *corpusCount) refuse(err error, f corpusFile) {
	why := err.Error()
	var place *entry.PlaceError
	if errors.As(err, &place) {
		why = place.Why
	}
	why = inQuotesOrNumber.ReplaceAllString(why, "N")
	n.refused[why] = append(n.refused[why], f.pkg+"/"+f.path)
}

func (s corpusSum) String() string {
	var b strings.Builder
	for _, format := range slices.Sorted(maps.Keys(s)) {
		n := s[format]
		fmt.Fprintf(&b, "%-16s %5d files, %6d edits, %6d read by another\n", format, n.files, n.edits, n.read)
		for _, why := range slices.Sorted(maps.Keys(n.refused)) {
			files := n.refused[why]
			fmt.Fprintf(&b, "  %5d refused: %.110s (%s)\n", len(files), why, files[len(files)/2])
		}
	}
	return b.String()
}
