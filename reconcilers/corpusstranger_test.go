package reconcilers

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"golem/scrolls"
)

// strangersLine has a stranger write a line of his own into what a stack left.
func (c *corpusCase) strangersLine(pile []layered, top string) {
	nested := func(l layered) bool { return slices.Contains([]any{"json", "yaml", "toml"}, l.g.Attrs["format"]) }
	if isUTF16(c.f.text) || len(pile) == 0 || slices.ContainsFunc(pile, nested) || disputed(pile) {
		return // a comment may make it unreadable; or edits are about each other's lines
	}
	starts := []int{0}
	for _, r := range rows([]byte(top)) {
		starts = append(starts, r.start)
	}
	at := starts[c.r.Intn(len(starts))]
	if strings.LastIndex(top[:at], "\n[") < strings.LastIndex(top[:at], "[Golem]") || insideBlock(pile, top, at) {
		return // a section or a block that golem made: it stays for what he wrote in it
	}
	his := "# a stranger's own" + ending([]byte(top), at)
	rest := strings.Replace(c.offAlien(pile, top[:at]+his+top[at:], strings.TrimSpace(his)), his, "", 1)
	if strings.TrimRight(rest, "\r\n") != strings.TrimRight(string(c.f.text), "\r\n") {
		c.Fatalf("with a stranger's line not all came back: %v\n%s", keysOf(pile), firstChange(c.f.text, []byte(rest)))
	}
	c.strangersChange(pile, top)
}

// strangersChange has a stranger change a line that was there before any edit.
func (c *corpusCase) strangersChange(pile []layered, top string) {
	lines := strings.Split(string(c.f.text), "\n")
	line := strings.TrimSuffix(lines[c.r.Intn(len(lines))], "\r")
	if slices.ContainsFunc(pile, func(l layered) bool { return isAbout(l.g, []byte(line)) }) {
		return // golem's and his: either may win
	}
	once := func(text string) bool {
		return strings.Count(text, "\n"+line+"\n") == 1 && strings.Count(text, line) == 1
	}
	if len(strings.TrimSpace(line)) < 3 || strings.ContainsAny(line, `\"'`+"`[") || !once(top) || !once(string(c.f.text)) {
		return
	}
	his := line + " and his"
	now := c.offAlien(pile, strings.Replace(top, line, his, 1), his)
	if want := strings.Replace(string(c.f.text), line, his, 1); now != want {
		c.Fatalf("with a stranger's change not all came back: %v\n%s", keysOf(pile), firstChange([]byte(want), []byte(now)))
	}
}

// offAlien takes a stack off a text that a stranger has changed since: what he wrote is not
// lost, and nothing else has to be kept.
func (c *corpusCase) offAlien(pile []layered, now, his string) string {
	var lost []byte
	for _, l := range slices.Backward(pile) {
		off := mustKind(l.g).edit.peel(l.g, l.inverse, []byte(now))
		now, lost = string(off.content), append(lost, off.lost...)
	}
	c.sum.of("a stranger").edits++
	if !strings.Contains(now, his) {
		c.Fatalf("a stranger's line is gone: %v", keysOf(pile))
	}
	if len(lost) > 0 {
		c.Fatalf("%q is lost: %v", lost, keysOf(pile))
	}
	return now
}

// disputed says whether an edit of a stack is about the lines of another.
func disputed(pile []layered) bool {
	for i, l := range pile {
		if l.g.Kind == "entry" && slices.ContainsFunc(pile, func(o layered) bool { return o.g.Attrs["match"] != nil || goes(o.g.Attrs) }) {
			return true
		}
		own := [][]byte{[]byte(str(l.g.Attrs, "line"))}
		if l.g.Kind == "region" {
			own = regionLines(l.g.Attrs)
		}
		for k, o := range pile {
			if k != i && slices.ContainsFunc(own, func(line []byte) bool { return isAbout(o.g, line) }) {
				return true
			}
		}
	}
	return false
}

// isAbout says whether a line's edit is about some line of a text.
func isAbout(g *scrolls.Glyph, line []byte) bool {
	if g.Kind != "line" {
		return false
	}
	if match := str(g.Attrs, "match"); match != "" && regexp.MustCompile(match).Match(line) {
		return true
	}
	return string(line) == str(g.Attrs, "line")
}

// insideBlock says whether an offset lies in a block of golem's.
func insideBlock(pile []layered, text string, at int) bool {
	return slices.ContainsFunc(pile, func(l layered) bool {
		if l.g.Kind != "region" {
			return false
		}
		in, err := findBlock(l.g.Attrs, []byte(text))
		return err != nil || in != nil && at > in.start && at < in.end
	})
}

// entryStack puts some entries of one format on each other, and has a stranger set a key of
// his own, or write a comment: taken off, the entries leave what he wrote, and another reader
// sees everything else as it was.
func (c *corpusCase) entryStack(format string) {
	read := foreignReaders[format]
	before, err := read(c.f.text)
	if err != nil {
		return
	}
	var pile []layered
	now := string(c.f.text)
	for range 1 + c.r.Intn(4) {
		says, err := read([]byte(now))
		g := c.drawEntry(format, says)
		if g == nil || err != nil || slices.ContainsFunc(pile, func(l layered) bool { return l.g.Key == g.Key }) {
			continue
		}
		if got, err := mustKind(g).edit.put(g, []byte(now), -1); err == nil && got.changed {
			pile = append(pile, layered{g, got.inverse, now})
			now = string(got.content)
		}
	}
	key := map[string][]any{"ini": {"Stranger", "was"}, "env": {"STRANGER_WAS"}, "keyword": {"StrangerWas"}}[format]
	if key == nil {
		key = []any{"stranger"}
	}
	his := editGlyph(c, "entry", scrolls.Attrs{"path": "/" + c.f.path, "format": format, "key": key, "value": "here"})
	if got, err := mustKind(his).edit.put(his, []byte(now), -1); err == nil { // a document may be a list
		c.offAgain(format, pile, string(got.content), before, his)
	}
	if format == "json" {
		return
	}
	top, err := read([]byte(now))
	if err != nil {
		c.Fatalf("%v: another reader does not read what they left: %v", keysOf(pile), err)
	}
	at := 0
	for _, r := range rows([]byte(now)) {
		if at = r.start; c.r.Intn(1+strings.Count(now, "\n")) == 0 {
			break
		}
	}
	alien := now[:at] + strangersComment + ending([]byte(now), at) + now[at:]
	if says, err := read([]byte(alien)); err == nil && sameSayings(format, says, top) { // else it is within a value
		c.offAgain(format, pile, alien, before, nil)
	}
}

const strangersComment = "# a stranger's own"

// offAgain takes entries off a text that a stranger has changed since.
func (c *corpusCase) offAgain(format string, pile []layered, alien string, before []saying, his *scrolls.Glyph) {
	now, lost := alien, []byte(nil)
	for _, l := range slices.Backward(pile) {
		off := mustKind(l.g).edit.peel(l.g, l.inverse, []byte(now))
		now, lost = string(off.content), append(lost, off.lost...)
	}
	after, err := foreignReaders[format]([]byte(now))
	if err != nil {
		c.Fatalf("%v: another reader does not read what came off a stranger's text: %v\n%s", keysOf(pile), err, firstChange(c.f.text, []byte(now)))
	}
	c.sum.of("a stranger").edits++
	switch {
	case his != nil:
		if why := otherThan(format, before, after, his); why != "" {
			c.Fatalf("%v: after a stranger's edit %s\n%s", keysOf(pile), why, firstChange(c.f.text, []byte(now)))
		}
	case !strings.Contains(now, strangersComment) && !bytes.Contains(lost, []byte(strangersComment)):
		c.Fatalf("%v: a stranger's comment is gone\n%s", keysOf(pile), firstChange([]byte(alien), []byte(now)))
	case !sameSayings(format, before, after):
		c.Fatalf("%v: after a stranger's comment another reader sees other values\n%s", keysOf(pile), firstChange(c.f.text, []byte(now)))
	}
}

// sameSayings says whether two readings are the same; what is empty may be missing.
func sameSayings(format string, a, b []saying) bool {
	texts := func(list []saying) (all []string) {
		for _, s := range list {
			if s.value != "{}" && s.value != "[]" && s.value != "null" {
				all = append(all, wayText(format, s.way)+s.value)
			}
		}
		return all
	}
	return slices.Equal(texts(a), texts(b))
}
