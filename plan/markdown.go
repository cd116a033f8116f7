package plan

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxMarkdown bounds the Markdown of a plan, in bytes: forges take no longer a comment than
// 65,536 characters.
const maxMarkdown = 60_000

// Markdown writes the plan for a comment on a pull request: a heading, what it comes to,
// and the whole of it in a block that a forge colours as a diff.
func (p *Plan) Markdown(w io.Writer) error {
	v, out := p.View(), NewPrinter(w, Style{})
	body := strings.Trim(v.body(out), "\n")
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n**%s**\n", markdownText(v.heading(out)), markdownText(v.verdict(out)))
	if body != "" {
		lines := strings.Split(body, "\n")
		left := 0
		var block strings.Builder
		for i, line := range lines {
			if block.Len()+len(line) > maxMarkdown {
				left = len(lines) - i
				break
			}
			block.WriteString(diffLine(line) + "\n")
		}
		fence := strings.Repeat("`", max(3, longestRun(block.String(), '`')+1))
		fmt.Fprintf(&b, "\n%sdiff\n%s%s\n", fence, block.String(), fence)
		if left > 0 {
			fmt.Fprintf(&b, "\n… and %d lines more, too many for a comment.\n", left)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// diffLine puts the mark of a line first, where a forge looks for what to colour.
func diffLine(line string) string {
	text := strings.TrimLeft(line, " ")
	if text == "" || len(text) == len(line) || !strings.ContainsRune("+-!", rune(text[0])) {
		return line
	}
	return text[:1] + line[:len(line)-len(text)] + text[1:]
}

// longestRun is how often a byte stands behind itself at most.
func longestRun(s string, c byte) int {
	most, run := 0, 0
	for i := range len(s) {
		if run++; s[i] != c {
			run = 0
		}
		most = max(most, run)
	}
	return most
}

// markdownText escapes what Markdown would take for markup.
func markdownText(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < utf8.RuneSelf && strings.ContainsRune("\\`*_{}[]<>#|@", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
