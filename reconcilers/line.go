package reconcilers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"golem/scrolls"
)

var lineKind = Kind{
	Sort: PathSort,
	Kind: scrolls.Kind{
		Name: "line", Version: 1,
		Doc: "A line in a file that others own too. It is added if no line is equal to it, at the end or where `before` or " +
			"`after` says, with the line ending that its neighbours have. With a `match` it takes the place of the line that " +
			"matches, and is added only where none does. With `ensure = \"absent\"` every line equal to it, or every one that " +
			"matches, is taken out. Undeclared, only the line that golem added goes, the line that it replaced comes back, and so " +
			"do the lines that it took out; a line that was there before stays. A link at the path is followed to the real file. A " +
			"file that is not there is made, and goes again if nothing else was added. In the key, `absent:` stands before the " +
			"text of a line that is to be gone, and a `match` stands for the text.",
		Attrs: []scrolls.Attr{
			{Name: "path", Type: cty.String, Required: true, Doc: "The file: an absolute, clean path."},
			{
				Name: "line", Type: cty.String, Default: "needed, but with `ensure = \"absent\"` and a `match`", Doc: "The line's text, without its ending. It is literal. A sensitive one needs a `match`.",
				Sensitive: "Write a match: that stands in the key then.",
			},
			{Name: "match", Type: cty.String, Doc: "A regular expression, looked for in each line on its own, without its ending. The line that matches is replaced."},
			{Name: "on_many", Type: cty.String, Default: "`error`", Doc: "Which one is replaced where several match: `first`, `last` or `all`; with `error`, that is an error."},
			beforeAttr, afterAttr,
			{Name: "ensure", Type: cty.String, Default: "`present`", Doc: "Whether the line is to be there: `present` or `absent`."},
			validateAttr,
		},
		Identity: lineIdentity, Check: checkLine,
		Canonical: func(a scrolls.Attrs) scrolls.Attrs { return lessAttrs(a, "validate") },
		Surface:   func(a scrolls.Attrs) (string, bool) { return str(a, "path"), false },
	},
	edit:  &edit{put: putLine, peel: peelLine, holds: lineHolds, tell: tellLine, note: matchMisses},
	shape: "line:PATH:LINE",
}

// goes says whether a line is one that is to be gone.
func goes(a scrolls.Attrs) bool { return str(a, "ensure") == "absent" }

func lineIdentity(a scrolls.Attrs) []string {
	parts := []string{str(a, "path")}
	if goes(a) {
		parts = append(parts, "absent")
	}
	if match := str(a, "match"); match != "" {
		return append(parts, match)
	}
	return append(parts, str(a, "line"))
}

func checkLine(a scrolls.Attrs) []scrolls.Problem {
	problems := append(checkPath("path", str(a, "path")), checkRegexps(a, "match", "before", "after")...)
	problems = append(append(problems, checkPlace(a)...), checkValidate(a)...)
	text, written := a["line"].(string)
	switch {
	case !written && goes(a) && str(a, "match") != "":
	case !written:
		problems = append(problems, scrolls.Problem{Summary: "Missing argument", Detail: `A line needs the argument "line".`})
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
	return append(problems, checkLineWords(a)...)
}

// checkLineWords checks the arguments that hold one of a few words, and what they do not
// go together with.
func checkLineWords(a scrolls.Attrs) []scrolls.Problem {
	var problems []scrolls.Problem
	wrong := func(attr, summary, detail string) {
		problems = append(problems, scrolls.Problem{Attr: attr, Summary: summary, Detail: detail})
	}
	many, several := a["on_many"].(string)
	if ensure, ok := a["ensure"].(string); ok && ensure != "present" && ensure != "absent" {
		wrong("ensure", "Unknown word", fmt.Sprintf("%q is not known here. Write \"present\" or \"absent\".", ensure))
	}
	if several && !slices.Contains([]string{"error", "first", "last", "all"}, many) {
		wrong("on_many", "Unknown word", fmt.Sprintf("%q is not known here. Write \"error\", \"first\", \"last\" or \"all\".", many))
	}
	switch _, match := a["match"]; {
	case several && goes(a):
		wrong("on_many", "Argument means nothing here", "Where a line is to be absent, every one goes.")
	case several && !match:
		wrong("on_many", "Argument means nothing here", "It says which of several matches is meant; write a match too.")
	}
	for _, attr := range []string{"before", "after"} {
		if _, ok := a[attr]; ok && goes(a) {
			wrong(attr, "Argument means nothing here", "A line that is to be absent has no place.")
		}
	}
	return problems
}

// lineInverse is the receipt of a line that golem added or replaced, or of lines that it
// took out; with nothing in it, all was so before and golem has nothing to take back.
type lineInverse struct {
	Added bool `json:"added"`
	// Sep is the line ending that golem had to add to the line before.
	Sep string `json:"sep,omitempty"`
	// Prev is a hash of the line before, to know golem's line from an equal one that
	// a stranger added.
	Prev string `json:"prev,omitempty"`
	// Up is that of the line above that one, to know that one though it was changed.
	Up string `json:"up,omitempty"`
	// CR says that the line before ended in a bare carriage return of its own.
	CR bool `json:"cr,omitempty"`
	// Swaps are the lines that golem replaced or took out, in order.
	Swaps []swap `json:"swaps,omitempty"`
	// Sum is a hash of the text as golem left it, where there are swaps, Len its length, and
	// Of the number of lines in it that are equal to golem's.
	Sum string `json:"sum,omitempty"`
	Len int    `json:"len,omitempty"`
	Of  int    `json:"of,omitempty"`
}

var errUTF16 = errors.New("it is UTF-16 text, which has no lines of bytes; declare the whole file instead")

// putLine implements edit.put: the line takes its place, goes to the end, or back to
// where it was.
func putLine(g *scrolls.Glyph, content []byte, hint int) (putResult, error) {
	if isUTF16(content) {
		return putResult{}, errUTF16
	}
	if goes(g.Attrs) {
		return takeOut(g, content)
	}
	targets, there, err := aim(g, content)
	switch {
	case err != nil:
		return putResult{}, err
	case len(targets) > 0:
		return replaceRows(content, targets, []byte(str(g.Attrs, "line"))), nil
	case there:
		return putResult{content: content, inverse: encode(lineInverse{})}, nil
	}
	at, err := where(g.Attrs, content, hint)
	if err != nil {
		return putResult{}, err
	}
	out, inv := insert(content, at, []byte(str(g.Attrs, "line")))
	return putResult{content: out, inverse: encode(inv), changed: true}, nil
}

// peelLine implements edit.peel.
func peelLine(g *scrolls.Glyph, inverse json.RawMessage, content []byte) peelResult {
	var inv lineInverse
	if json.Unmarshal(inverse, &inv) != nil {
		return peelResult{content: content, tail: -1}
	}
	switch {
	case len(inv.Swaps) > 0 && goes(g.Attrs):
		return inv.putIn(content)
	case len(inv.Swaps) > 0:
		return inv.swapBack(content, []byte(str(g.Attrs, "line")))
	case !inv.Added:
		return peelResult{content: content, tail: -1}
	}
	start, end := findLine(content, []byte(str(g.Attrs, "line")), inv.Prev)
	if start < 0 {
		return peelResult{content: content, tail: -1}
	}
	return peelResult{content: inv.cut(content, start, end), tail: len(content) - end}
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
	if goes(g.Attrs) {
		doomed, err := unwanted(g, content)
		return err == nil && len(doomed) == 0
	}
	targets, there, err := aim(g, content)
	return err == nil && len(targets) == 0 && there
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
