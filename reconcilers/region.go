package reconcilers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"golem/scrolls"
)

var regionKind = Kind{
	Sort: PathSort,
	Kind: scrolls.Kind{
		Name: "region", Renames: true, Version: 1, LabelAttr: "name",
		Doc: "A block of lines in a file that others own too, between two lines that mark it: `# BEGIN golem NAME` and `# END " +
			"golem NAME`. It is put at the end, or where `before` or `after` says, with the line ending that its neighbours " +
			"have. A block that is there already, by its markers, is taken over, and what was in it is captured. Undeclared, " +
			"only the block goes, or what was in it comes back. A file in which the markers are broken is refused, with the " +
			"line. A link at the path is followed to the real file. A file that is not there is made, and goes again if nothing " +
			"else was added.",
		Attrs: []scrolls.Attr{
			{Name: "path", Type: cty.String, Required: true, Doc: "The file: an absolute, clean path."},
			{Name: "name", Type: cty.String, Doc: "What the block is called in its markers."},
			{Name: "content", Type: cty.String, Required: true, Doc: "The lines between the markers. It may be a heredoc, or empty."},
			{Name: "comment", Type: cty.String, Default: "by the file's name, else `#`", Doc: "How a line becomes a comment: what it begins with, and after a space what it ends with, like `//` or `<!-- -->`."},
			{Name: "marker_begin", Type: cty.String, Doc: "The whole line before the block, in place of the usual one."},
			{Name: "marker_end", Type: cty.String, Doc: "The whole line after the block, in place of the usual one."},
			beforeAttr, afterAttr,
			{Name: "indent", Type: cty.String, Default: "none", Doc: "What every line of the block begins with, markers too: spaces and tabs, or a number of spaces."},
			validateAttr,
		},
		Identity: func(a scrolls.Attrs) []string { return []string{str(a, "path"), str(a, "name")} },
		Check:    checkRegion, Canonical: canonicalRegion,
		Surface: func(a scrolls.Attrs) (string, bool) { return str(a, "path"), false },
	},
	edit: &edit{put: putRegion, peel: peelRegion, holds: regionHolds, tell: tellRegion},
}

// canonicalRegion takes content with and without a last line's ending for the same.
func canonicalRegion(a scrolls.Attrs) scrolls.Attrs {
	c := lessAttrs(a, "validate")
	c["content"] = strings.Join(regionBody(a), "\n")
	c["indent"] = regionIndent(a)
	return c
}

func checkRegion(a scrolls.Attrs) []scrolls.Problem {
	problems := append(checkPath("path", str(a, "path")), checkRegexps(a, "before", "after")...)
	problems = append(append(problems, checkPlace(a)...), checkValidate(a)...)
	problems = append(problems, checkMarkers(a)...)
	if len(problems) > 0 {
		return problems
	}
	begin, end := regionMarkers(a)
	for i, line := range regionBody(a) {
		if is := strings.Trim(line, " \t"); is == begin || is == end {
			problems = append(problems, scrolls.Problem{
				Attr: "content", Summary: "Content holds a marker",
				Detail: fmt.Sprintf("Line %d of it is %q, which marks where the block begins or ends.", i+1, is),
			})
		}
	}
	if strings.ContainsRune(str(a, "content"), 0) {
		problems = append(problems, scrolls.Problem{Attr: "content", Summary: "Content holds a NUL byte", Detail: "A block is lines of text."})
	}
	return problems
}

// checkMarkers says what is wrong with what marks a block.
func checkMarkers(a scrolls.Attrs) []scrolls.Problem {
	var problems []scrolls.Problem
	wrong := func(attr, summary, detail string) {
		problems = append(problems, scrolls.Problem{Attr: attr, Summary: summary, Detail: detail})
	}
	for _, attr := range []string{"name", "comment", "marker_begin", "marker_end"} {
		text, ok := a[attr].(string)
		switch {
		case !ok:
		case strings.Trim(text, " \t") == "":
			wrong(attr, "Marker is empty", "An empty line marks nothing: any other empty line would be taken for it.")
		case strings.ContainsAny(text, "\n\r\x00"):
			wrong(attr, "Marker holds a line break", "A marker is one line.")
		}
	}
	_, begins := a["marker_begin"]
	_, ends := a["marker_end"]
	_, comment := a["comment"]
	switch {
	case begins && !ends:
		wrong("marker_begin", "Only one marker", "Write marker_end too.")
	case ends && !begins:
		wrong("marker_end", "Only one marker", "Write marker_begin too.")
	case begins && comment:
		wrong("comment", "Argument means nothing here", "marker_begin and marker_end are the whole lines.")
	case begins && strings.Trim(str(a, "marker_begin"), " \t") == strings.Trim(str(a, "marker_end"), " \t"):
		wrong("marker_end", "Markers are the same", "Where the block begins cannot be told from where it ends.")
	case !begins && !comment && commentStyle(str(a, "path")) == "":
		wrong("path", "File type has no comments", "A file of this type holds none that could mark a block. Use an entry, declare the whole file, or write comment or the markers.")
	case !begins:
		if _, last := commentParts(a); last != "" && strings.Contains(str(a, "name"), last) {
			wrong("name", "Marker ends too soon", fmt.Sprintf("It holds %q, which ends the comment.", last))
		}
	}
	if text := str(a, "indent"); strings.Trim(text, " \t") != "" {
		if n, err := strconv.Atoi(text); err != nil || n < 0 || n > 200 {
			wrong("indent", "Not an indentation", "Write spaces and tabs, or a number of spaces up to 200.")
		}
	}
	return problems
}

// regionMarkers are the lines that mark a block, without what they are indented with.
func regionMarkers(a scrolls.Attrs) (begin, end string) {
	if begin = str(a, "marker_begin"); begin != "" {
		return strings.Trim(begin, " \t"), strings.Trim(str(a, "marker_end"), " \t")
	}
	first, last := commentParts(a)
	mark := func(word string) string {
		return strings.Trim(strings.Join([]string{first, word, "golem", str(a, "name"), last}, " "), " \t")
	}
	return mark("BEGIN"), mark("END")
}

func regionIndent(a scrolls.Attrs) string {
	text := str(a, "indent")
	if n, err := strconv.Atoi(text); err == nil {
		return strings.Repeat(" ", n)
	}
	return text
}

// regionBody are the lines of a block, without their endings.
func regionBody(a scrolls.Attrs) []string {
	text := str(a, "content")
	if text == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], "\r") // it would be part of the ending
	}
	return lines
}

// regionLines are all lines of a block as they are to be, without their endings.
func regionLines(a scrolls.Attrs) [][]byte {
	begin, end := regionMarkers(a)
	indent := regionIndent(a)
	lines := [][]byte{[]byte(indent + begin)}
	for _, line := range regionBody(a) {
		if line != "" {
			line = indent + line
		}
		lines = append(lines, []byte(line))
	}
	return append(lines, []byte(indent+end))
}

// A block is where a region lies in a text: from start to stop its lines, without the last
// one's ending, which goes to end.
type block struct {
	start, stop, end int
	lines            [][]byte
}

// says tells whether the block's lines are these.
func (b *block) says(lines [][]byte) bool {
	return bytes.Equal(bytes.Join(b.lines, []byte("\n")), bytes.Join(lines, []byte("\n")))
}

// findBlock finds a region by its markers; nil where there is none of them. Markers that do
// not make one block are an error with the line.
func findBlock(a scrolls.Attrs, content []byte) (*block, error) {
	begin, end := regionMarkers(a)
	var found, open *block
	broken := func(r row, format string, args ...any) error {
		return rowError("path", "Markers are broken", rowNumber(content, r.start), format, args...)
	}
	for r := range rowsWith(content, []byte(begin), []byte(end)) {
		is := string(bytes.Trim(content[r.start:r.stop], " \t"))
		if is == begin {
			if open != nil {
				return nil, broken(r, "the block %q that begins in line %d begins again before it ends", str(a, "name"), rowNumber(content, open.start)+1)
			}
			if found != nil {
				return nil, broken(r, "a second block %q begins; the first is in line %d", str(a, "name"), rowNumber(content, found.start)+1)
			}
			open = &block{start: r.start}
		}
		if is != end {
			continue
		}
		if open == nil {
			return nil, broken(r, "the block %q ends, and no line before marks where it begins: %s", str(a, "name"), begin)
		}
		open.stop, open.end = r.stop, r.end
		found, open = open, nil
	}
	if open != nil {
		return nil, broken(row{start: open.start}, "the block %q begins, and no line after marks where it ends: %s", str(a, "name"), end)
	}
	if found != nil {
		for _, r := range rows(content[found.start:found.end]) {
			found.lines = append(found.lines, content[found.start+r.start:found.start+r.stop])
		}
	}
	return found, nil
}

// regionInverse is the receipt of a region: with neither part, it was so before.
type regionInverse struct {
	// Added says how to take off what golem added.
	Added *lineInverse `json:"added,omitempty"`
	// Old is the block that was there, without its last line's ending, and End the ending
	// of its lines.
	Old Bytes  `json:"old,omitempty"`
	End string `json:"end,omitempty"`
}

// putRegion implements edit.put.
func putRegion(g *scrolls.Glyph, content []byte, hint int) (putResult, error) {
	if isUTF16(content) {
		return putResult{}, errUTF16
	}
	lines := regionLines(g.Attrs)
	there, err := findBlock(g.Attrs, content)
	switch {
	case err != nil:
		return putResult{}, err
	case there == nil:
		at, err := where(g.Attrs, content, hint)
		if err != nil {
			return putResult{}, err
		}
		out, inv := insert(content, at, lines...)
		return putResult{content: out, inverse: encode(regionInverse{Added: &inv}), changed: true}, nil
	case there.says(lines):
		return putResult{content: content, inverse: encode(regionInverse{})}, nil
	}
	old := content[there.start:there.stop]
	inv := regionInverse{Old: Bytes(old), End: ending(content, there.start+bytes.IndexByte(old, '\n')+1)}
	out := splice(content, there.start, there.stop, bytes.Join(lines, []byte(inv.End)))
	return putResult{content: out, inverse: encode(inv), changed: true}, nil
}

// splice puts bytes in the place of others.
func splice(content []byte, from, to int, with []byte) []byte {
	out := make([]byte, 0, len(content)-(to-from)+len(with))
	return append(append(append(out, content[:from]...), with...), content[to:]...)
}

// peelRegion implements edit.peel. What somebody changed in the block is lost to the text.
func peelRegion(g *scrolls.Glyph, inverse json.RawMessage, content []byte) peelResult {
	kept := peelResult{content: content, tail: -1}
	var inv regionInverse
	if json.Unmarshal(inverse, &inv) != nil || inv.Added == nil && inv.Old == "" {
		return kept
	}
	there, err := findBlock(g.Attrs, content)
	if err != nil || there == nil {
		if err != nil {
			kept.why = err.Error()
		}
		if inv.Old != "" {
			kept.lose(inv.Old)
		}
		return kept
	}
	res := peelResult{tail: len(content) - there.end}
	if !there.says(regionLines(g.Attrs)) {
		res.lose(Bytes(content[there.start:there.stop]))
	}
	if inv.Added != nil {
		res.content = inv.Added.cut(content, there.start, there.end)
		return res
	}
	old := []byte(inv.Old)
	first := there.start + bytes.IndexByte(content[there.start:], '\n') + 1
	if end := ending(content, first); end != inv.End {
		old = withEnding(old, end)
	}
	res.content = splice(content, there.start, there.stop, old)
	return res
}

// regionHolds implements edit.holds.
func regionHolds(g *scrolls.Glyph, content []byte) bool {
	there, err := findBlock(g.Attrs, content)
	return err == nil && there != nil && there.says(regionLines(g.Attrs))
}

// tellRegion implements edit.tell.
func tellRegion(_ *scrolls.Glyph, inverse json.RawMessage) (did, back string) {
	var inv regionInverse
	if json.Unmarshal(inverse, &inv) == nil && inv.Old != "" {
		return "takes over the block that is there; what is in it is kept for undoing", "what was in the block before golem is put back"
	}
	return editAdds, "only golem's block goes"
}
