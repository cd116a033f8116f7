package apply_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"golem/reconcilers/entry"
)

// A humanEdit is what a human does with an editor to a text, by a line that he sees. It
// means the same in a text that golem has been at and in one that it has not.
type humanEdit struct {
	do     string
	anchor string // a line without its ending, and without a comma at its end
	line   string
}

func (e humanEdit) String() string { return fmt.Sprintf("%s %q: %q", e.do, e.anchor, e.line) }

// textLines are the lines of a text with their endings.
func textLines(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// says is a line's text: without its ending, and without the comma that golem may have to
// put behind what was the last.
func (c *craft) says(line string) string {
	line = strings.TrimRight(line, "\r\n")
	if c.format == "json" {
		line = strings.TrimSuffix(line, ",")
	}
	return line
}

// find is the number of the one line that says something; -1 for none or several.
func (c *craft) find(lines []string, anchor string) int {
	found := -1
	for i, line := range lines {
		if c.says(line) != anchor {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// edit makes an edit of a text.
func (c *craft) edit(text string, e humanEdit) (string, bool) {
	eol := "\n"
	if strings.Contains(text, "\r\n") {
		eol = "\r\n"
	}
	lines := textLines(text)
	if e.do == "append" {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += eol
		}
		return text + e.line + eol, true
	}
	i := c.find(lines, e.anchor)
	if i < 0 {
		return "", false
	}
	ending := strings.TrimPrefix(lines[i], strings.TrimRight(lines[i], "\r\n"))
	switch e.do {
	case "before":
		lines = slices.Insert(lines, i, e.line+eol)
	case "after":
		if ending == "" {
			return "", false
		}
		lines = slices.Insert(lines, i+1, e.line+eol)
	case "replace":
		comma := ""
		if c.format == "json" && strings.HasSuffix(strings.TrimRight(lines[i], "\r\n"), ",") {
			comma = ","
		}
		lines[i] = e.line + comma + ending
	case "delete":
		if ending == "" || c.format == "json" && !strings.HasSuffix(lines[i], ","+ending) && strings.Contains(lines[i], ":") {
			return "", false // the line before would have to lose its comma or its ending
		}
		lines = slices.Delete(lines, i, i+1)
	}
	return strings.Join(lines, ""), true
}

// readable says whether a text can be edited as the format that it is.
func (c *craft) readable(text string) bool {
	_, _, err := entry.Formats[c.format].Put([]byte(text), entry.Wish{Steps: c.probe(), Value: "probe"})
	return err == nil
}

func (c *craft) probe() []entry.Step {
	if c.format == "ini" {
		return []entry.Step{{Name: "probe"}, {Name: "probe"}}
	}
	return []entry.Step{{Name: "probe"}}
}

var (
	indentOf = regexp.MustCompile(`^[ \t]*`)
	numberIn = regexp.MustCompile(`^(\s*"?[\w.-]+"?\s*[=: ]\s*)(\d+|true|false|yes|no|info|localhost)\s*$`)
)

// drawEdit draws what a human does to both texts: the one that golem has been at, and his
// own.
func (c *craft) drawEdit(t *rapid.T, n int, host, alone string) (humanEdit, bool) {
	var anchors []string
	hostLines := textLines(host)
	for _, line := range textLines(alone) {
		if said := c.says(line); strings.TrimSpace(said) != "" && c.find(hostLines, said) >= 0 && c.find(textLines(alone), said) >= 0 {
			anchors = append(anchors, said)
		}
	}
	e := humanEdit{do: rapid.SampledFrom([]string{"before", "after", "replace", "delete", "append"}).Draw(t, "he does")}
	comment := fmt.Sprintf("%s human %d", c.comment, n)
	e.line = comment
	if e.do == "append" {
		if rapid.Bool().Draw(t, "pair") && c.format != "json" && c.format != "yaml" {
			e.line = c.pair(n)
		}
		return e, true
	}
	if len(anchors) == 0 {
		return e, false
	}
	e.anchor = rapid.SampledFrom(anchors).Draw(t, "at")
	indent := indentOf.FindString(e.anchor)
	if said := strings.TrimSpace(e.anchor); (e.do == "before" || e.do == "after") && rapid.Bool().Draw(t, "pair") &&
		(c.format != "json" || e.do == "before" && strings.HasPrefix(said, `"`)) {
		e.line = c.pair(n)
	}
	if e.do == "replace" && !strings.HasPrefix(strings.TrimSpace(e.anchor), c.comment) {
		m := numberIn.FindStringSubmatch(e.anchor)
		if m == nil {
			return e, false
		}
		e.line = m[1] + fmt.Sprint(700+n)
		return e, true
	}
	e.line = indent + e.line
	return e, true
}

// heads are the lines that begin a part of a file, which what is appended belongs to.
var heads = regexp.MustCompile(`(?m)^(\[.*|Match .*|[\w.-]+:.*)$`)

// holders are lines that others lie in.
var holders = regexp.MustCompile(`^\s*(\[.*\]|Match .*|[^#]*:)$`)

// inList are lines of a list of TOML's.
var inList = regexp.MustCompile(`^(\s+"|\])`)

// elsewhere says that an edit is about a place that golem's edits have made another one: a
// part of the file that golem made, or the gap that a line left which golem took out.
func (c *craft) elsewhere(e humanEdit, host, alone string) bool {
	if e.do == "append" {
		if alone != "" && !strings.HasSuffix(alone, "\n") {
			return true // his editor would end the last line, which golem may have done already
		}
		a, b := heads.FindAllString(host, -1), heads.FindAllString(alone, -1)
		return c.format != "env" && c.format != "json" && len(a)+len(b) > 0 && (len(a) == 0 || len(b) == 0 || a[len(a)-1] != b[len(b)-1])
	}
	if c.format == "toml" && inList.MatchString(e.anchor) || e.do == "delete" && holders.MatchString(e.anchor) || e.do == "before" && e.anchor == "---" {
		return true
	}
	if e.do != "before" && e.do != "after" {
		return false
	}
	lines := textLines(alone)
	i := c.find(lines, e.anchor)
	beside := i - 1
	if e.do == "after" {
		beside = i + 1
	}
	if beside < 0 || beside >= len(lines) {
		return false
	}
	said := c.says(lines[beside])
	return strings.TrimSpace(said) != "" && !strings.Contains(host, said)
}

// human makes one edit of both texts. What he does has to leave either readable.
func (c *craft) human(t *rapid.T, n int, host, alone string) (string, string) {
	e, ok := c.drawEdit(t, n, host, alone)
	if !ok || c.elsewhere(e, host, alone) {
		return host, alone
	}
	h, ok1 := c.edit(host, e)
	a, ok2 := c.edit(alone, e)
	if !ok1 || !ok2 || !c.readable(h) || !c.readable(a) {
		return host, alone
	}
	t.Logf("he: %s\n%s\n-- alone --\n%s", e, h, a)
	return h, a
}

// meddle changes golem's own text: a value of its, or what is in its region. It gives the
// words that he wrote.
func (c *craft) meddle(t *rapid.T, n int, host string, list []declared) (text, wrote string) {
	if len(list) == 0 {
		return host, ""
	}
	d := rapid.SampledFrom(list).Draw(t, "whose")
	if c.glyph(d).Attrs["member"] != nil {
		return host, "" // what he makes of it is a member of his own
	}
	tok := stamp(d.i, d.version)
	if strings.Count(host, tok) != 1 {
		return host, ""
	}
	wrote = fmt.Sprintf("meddled-%d", n)
	text = strings.Replace(host, tok, wrote, 1)
	if !c.readable(text) {
		return host, ""
	}
	t.Logf("he writes %s in the place of %s", wrote, tok)
	return text, wrote
}
