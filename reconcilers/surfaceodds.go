package reconcilers

import (
	"regexp"

	"golem/scrolls"
)

// atOdds finds edits of one file of which one undoes what another does, so that neither
// run would leave both true.
func atOdds(glyphs []*scrolls.Glyph, spots map[*scrolls.Glyph]Spot) []Mistake {
	on := map[string]*oddity{}
	var mistakes []Mistake
	for _, g := range glyphs {
		spot, ok := spots[g]
		if kind, _ := KindOf(g.Kind); !ok || kind.edit == nil {
			continue
		}
		o := on[spot.Resource]
		if o == nil {
			o = &oddity{puts: map[string]int{}, takes: map[string]int{}, marks: map[string]int{}}
			on[spot.Resource] = o
		}
		if other, p := o.with(g); other != nil {
			mistakes = append(mistakes, Mistake{Glyph: g, Other: other, Problem: p})
		}
		o.add(g)
	}
	return mistakes
}

// An oddity is what edits of one file put there and take out, and which of them did so
// first, by place in the list. With it an edit is compared with all before it at once: a
// file may have thousands.
type oddity struct {
	glyphs  []*scrolls.Glyph
	puts    map[string]int // lines
	takes   map[string]int
	matches []doom
	marks   map[string]int // lines that mark a region
}

// A doom takes out every line that matches.
type doom struct {
	at int
	re *regexp.Regexp
}

var (
	atOddsOverLine = scrolls.Problem{
		Summary: "Two glyphs at odds",
		Detail:  "Both are about one file on this host: one puts a line there that the other takes out. Remove one of the two.",
	}
	atOddsOverMarkers = scrolls.Problem{
		Summary: "Two blocks with the same markers",
		Detail:  "Both are in one file on this host, and neither could be told from the other. Give one other markers.",
	}
)

// with finds the first glyph that another is at odds with; nil for none.
func (o *oddity) with(g *scrolls.Glyph) (*scrolls.Glyph, scrolls.Problem) {
	line, block := len(o.glyphs), len(o.glyphs)
	first := func(in map[string]int, text string, at *int) {
		if i, ok := in[text]; ok {
			*at = min(*at, i)
		}
	}
	for _, text := range putsIn(g) {
		first(o.takes, text, &line)
		for _, d := range o.matches {
			if d.at < line && d.re.MatchString(text) {
				line = d.at
			}
		}
	}
	text, re := takesOut(g)
	if re != nil {
		for put, at := range o.puts {
			if at < line && re.MatchString(put) {
				line = at
			}
		}
	} else if text != "" {
		first(o.puts, text, &line)
	}
	for _, mark := range marks(g) {
		first(o.marks, mark, &block)
	}
	switch {
	case line == len(o.glyphs) && block == line:
		return nil, scrolls.Problem{}
	case line <= block:
		return o.glyphs[line], atOddsOverLine
	}
	return o.glyphs[block], atOddsOverMarkers
}

// add notes what a glyph does.
func (o *oddity) add(g *scrolls.Glyph) {
	at := len(o.glyphs)
	o.glyphs = append(o.glyphs, g)
	note := func(in map[string]int, text string) {
		if _, ok := in[text]; !ok {
			in[text] = at
		}
	}
	for _, text := range putsIn(g) {
		note(o.puts, text)
	}
	if text, re := takesOut(g); re != nil {
		o.matches = append(o.matches, doom{at, re})
	} else if text != "" {
		note(o.takes, text)
	}
	for _, mark := range marks(g) {
		note(o.marks, mark)
	}
}

// putsIn are the lines that a glyph puts into its file.
func putsIn(g *scrolls.Glyph) []string {
	var lines []string
	switch {
	case g.Kind == lineKind.Name && !goes(g.Attrs):
		lines = append(lines, str(g.Attrs, "line"))
	case g.Kind == regionKind.Name:
		for _, line := range regionLines(g.Attrs) {
			lines = append(lines, string(line))
		}
	}
	return lines
}

// takesOut is what lines a glyph takes out of its file: those that say a text, or those that
// match; neither, if it takes none.
func takesOut(g *scrolls.Glyph) (text string, re *regexp.Regexp) {
	if g.Kind != lineKind.Name || !goes(g.Attrs) {
		return "", nil
	}
	match := str(g.Attrs, "match")
	if match == "" {
		return str(g.Attrs, "line"), nil
	}
	if re, err := regexp.Compile(match); err == nil { // checked when loaded
		return "", re
	}
	return "", nil
}

// marks are the lines by which a region is found.
func marks(g *scrolls.Glyph) []string {
	if g.Kind != regionKind.Name {
		return nil
	}
	begin, end := regionMarkers(g.Attrs)
	return []string{begin, end}
}
