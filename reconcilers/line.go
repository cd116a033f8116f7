package reconcilers

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"golem/scrolls"
)

var lineKind = Kind{
	Sort: PathSort,
	Kind: scrolls.Kind{
		Name: "line", Version: 1,
		Doc: "A line in a file that others own too. It is added at the end if no line is equal to it, with the line " +
			"ending that the file has. Undeclared, only the line that golem added goes; a line that was there before " +
			"stays. A link at the path is followed to the real file. A file that is not there is made, and goes again " +
			"if nothing else was added.",
		Attrs: []scrolls.Attr{
			{Name: "path", Type: cty.String, Required: true, Doc: "The file: an absolute, clean path."},
			{Name: "line", Type: cty.String, Required: true, Doc: "The line's text, without its ending. It is literal."},
		},
		Identity: func(a scrolls.Attrs) []string { return []string{str(a, "path"), str(a, "line")} },
		Check:    checkLine,
		Surface:  func(a scrolls.Attrs) (string, bool) { return str(a, "path"), false },
	},
	edit: &edit{put: putLine, peel: peelLine, holds: lineHolds},
}

func checkLine(a scrolls.Attrs) []scrolls.Problem {
	problems := checkPath("path", str(a, "path"))
	text := str(a, "line")
	switch {
	case text == "":
		problems = append(problems, scrolls.Problem{
			Attr: "line", Summary: "Line is empty", Detail: "An empty line cannot be told from any other empty line.",
		})
	case strings.ContainsAny(text, "\n\r\x00"):
		problems = append(problems, scrolls.Problem{
			Attr: "line", Summary: "Line holds a line break",
			Detail: "A line is one line, without its ending. Declare several lines as several glyphs.",
		})
	}
	return problems
}

// lineInverse is the receipt of a line that golem added; with Added false, the line
// was there before and golem has nothing to take away.
type lineInverse struct {
	Added bool `json:"added"`
	// Sep is the line ending that golem had to add to the line before.
	Sep string `json:"sep,omitempty"`
	// Prev is a hash of the line before, to know golem's line from an equal one that
	// a stranger added.
	Prev string `json:"prev,omitempty"`
	// CR says that the line before ended in a bare carriage return of its own.
	CR bool `json:"cr,omitempty"`
}

var errUTF16 = errors.New("it is UTF-16 text, which has no lines of bytes; declare the whole file instead")

// putLine implements edit.put: the line goes to the end, or back to where it was.
func putLine(g *scrolls.Glyph, content []byte, hint int) (putResult, error) {
	text := []byte(str(g.Attrs, "line"))
	if isUTF16(content) {
		return putResult{}, errUTF16
	}
	if at, _ := findLine(content, text, ""); at >= 0 {
		return putResult{content: content, inverse: encode(lineInverse{})}, nil
	}
	at := len(content)
	if hint > 0 && hint <= len(content) && startsLine(content, len(content)-hint) {
		at = len(content) - hint
	}
	end := ending(content, at)
	inv := lineInverse{Added: true, Prev: lineBefore(content, at)}
	var out bytes.Buffer
	out.Grow(len(content) + len(text) + 2*len(end))
	out.Write(content[:at])
	if !startsLine(content, at) {
		inv.Sep, inv.CR = end, bytes.HasSuffix(content[:at], []byte("\r"))
		out.WriteString(end)
	}
	out.Write(text)
	out.WriteString(end)
	out.Write(content[at:])
	return putResult{content: out.Bytes(), inverse: encode(inv), changed: true}, nil
}

// peelLine implements edit.peel.
func peelLine(g *scrolls.Glyph, inverse json.RawMessage, content []byte) peelResult {
	var inv lineInverse
	if json.Unmarshal(inverse, &inv) != nil || !inv.Added {
		return peelResult{content: content, tail: -1}
	}
	start, end := findLine(content, []byte(str(g.Attrs, "line")), inv.Prev)
	if start < 0 {
		return peelResult{content: content, tail: -1}
	}
	before := content[:start]
	if end == len(content) && inv.Sep != "" && lineBefore(content, start) == inv.Prev {
		before = trimSep(before, inv)
	}
	out := make([]byte, 0, len(before)+len(content)-end)
	out = append(append(out, before...), content[end:]...)
	return peelResult{content: out, tail: len(content) - end}
}

// trimSep takes off the ending that golem gave the line before only to be able to add
// its own; in a file converted to CRLF since, the carriage return with it.
func trimSep(before []byte, inv lineInverse) []byte {
	before, found := bytes.CutSuffix(before, []byte(inv.Sep))
	if found && inv.Sep == "\n" && !inv.CR {
		before = bytes.TrimSuffix(before, []byte("\r"))
	}
	return before
}

// lineHolds implements edit.holds.
func lineHolds(g *scrolls.Glyph, content []byte) bool {
	at, _ := findLine(content, []byte(str(g.Attrs, "line")), "")
	return at >= 0
}

// findLine finds a line equal to text, endings and a byte order mark aside, and
// returns its bounds with its ending. Of several equal ones it prefers the last that
// follows the line prev names, else the last.
func findLine(content, text []byte, prev string) (start, end int) {
	start, end = -1, -1
	exact := false
	for from := 0; from < len(content); {
		i := bytes.Index(content[from:], text)
		if i < 0 {
			break
		}
		i += from
		from = i + 1
		stop := i + len(text)
		if !startsLine(content, i) {
			continue
		}
		rest := content[stop:]
		switch {
		case len(rest) == 0:
		case rest[0] == '\n':
			stop++
		case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n':
			stop += 2
		case len(rest) == 1 && rest[0] == '\r':
			stop++
		default:
			continue
		}
		from = max(stop, i+1)
		fits := prev != "" && lineBefore(content, i) == prev
		if fits || !exact {
			start, end, exact = i, stop, fits
		}
	}
	return start, end
}

// bom is UTF-8's byte order mark.
var bom = []byte("\xef\xbb\xbf")

// startsLine says whether a line may begin at an offset.
func startsLine(content []byte, at int) bool {
	return at == 0 || content[at-1] == '\n' || at == len(bom) && bytes.HasPrefix(content, bom)
}

// lineBefore names the line that ends before an offset, by hash; "-" for none.
func lineBefore(content []byte, at int) string {
	line := bytes.TrimSuffix(content[:at], []byte("\n"))
	if len(line) == 0 && at == 0 {
		return "-"
	}
	if i := bytes.LastIndexByte(line, '\n'); i >= 0 {
		line = line[i+1:]
	}
	return hashText(string(bytes.TrimSuffix(line, []byte("\r"))))[:16]
}

// ending is the line ending of the neighbours of an offset: the line before, else the
// one after, else a bare newline.
func ending(content []byte, at int) string {
	if i := bytes.LastIndexByte(content[:at], '\n'); i >= 0 {
		if i > 0 && content[i-1] == '\r' {
			return "\r\n"
		}
		return "\n"
	}
	if i := bytes.IndexByte(content[at:], '\n'); i > 0 && content[at+i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// isUTF16 says whether content looks like UTF-16: by its mark, or by a NUL in every
// other byte of its beginning.
func isUTF16(content []byte) bool {
	if bytes.HasPrefix(content, []byte("\xff\xfe")) || bytes.HasPrefix(content, []byte("\xfe\xff")) {
		return true
	}
	head := content[:min(len(content), 512)&^1]
	if len(head) < 8 {
		return false
	}
	even, odd := 0, 0
	for i := 0; i < len(head); i += 2 {
		if head[i] == 0 && head[i+1] != 0 {
			even++
		}
		if head[i+1] == 0 && head[i] != 0 {
			odd++
		}
	}
	return even == len(head)/2 || odd == len(head)/2
}
