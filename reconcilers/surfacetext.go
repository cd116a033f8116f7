package reconcilers

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"golem/scrolls"
)

// maxDiff is the largest content that a diff is made of. Past it, sizes must do.
const maxDiff = 256 << 10

// diffContext is how many unchanged lines stand around a change.
const diffContext = 2

// secret says whether a glyph's content must not be shown.
func secret(g *scrolls.Glyph) bool {
	if marked, _ := g.Attrs["sensitive"].(bool); marked {
		return true
	}
	return len(g.Secret) > 0
}

// argText is what is said of an argument: not of a sensitive one.
func argText(g *scrolls.Glyph, attr, text string) string {
	if slices.Contains(g.Secret, attr) {
		return scrolls.Hidden
	}
	return text
}

// targetText is a link's text, if it may be told.
func (k *work) targetText(n Node, g *scrolls.Glyph) string {
	if k.secretNear(g) {
		return scrolls.Hidden
	}
	return quote(string(n.Target))
}

// hide takes from a change what a secret must not show: the diff, size and hash, a link's text.
func (k *work) hide(c *Change, g *scrolls.Glyph) {
	if !k.secretNear(g) {
		return
	}
	c.Secret = true
	if c.Diff != "" {
		c.Diff = ""
	}
	for _, view := range []map[string]any{c.Before, c.After} {
		delete(view, "sha256")
		delete(view, "size")
		delete(view, "target")
		delete(view, "target_b64")
		for _, attr := range []string{"mode", "owner", "group"} {
			if slices.Contains(g.Secret, attr) {
				delete(view, attr)
			}
		}
	}
}

// secretNear says that a glyph is secret, or anything else in the same file, before the
// turn or after it: a diff shows the lines around a change, too.
func (k *work) secretNear(g *scrolls.Glyph) bool {
	if k.s.base != nil && secret(k.s.base.Glyph) || k.base != nil && secret(k.base.Glyph) {
		return true
	}
	return secret(g) || k.holdsSecret()
}

// view is a node as JSON shows it.
func (k *work) view(n Node) map[string]any {
	v := map[string]any{"type": string(n.Type)}
	if n.Type == Absent {
		return v
	}
	if n.UID != Any {
		v["owner"] = k.w.Host.userName(n.UID)
	}
	if n.GID != Any {
		v["group"] = k.w.Host.groupName(n.GID)
	}
	switch n.Type {
	case Link:
		v["target"] = strings.ToValidUTF8(string(n.Target), "\uFFFD")
		if !utf8.ValidString(string(n.Target)) {
			v["target_b64"] = []byte(n.Target)
		}
	case File:
		v["size"], v["sha256"] = n.Size, n.Hash
	}
	if n.Type != Link && n.Mode != Any {
		v["mode"] = fmt.Sprintf("%04o", n.Mode)
	}
	return v
}

// pathView is what JSON shows of an edit: the file it is in, and its bytes where they
// are no text.
func (k *work) pathView() map[string]any {
	v := map[string]any{"path": strings.ToValidUTF8(k.r.Resource, "\uFFFD")}
	if !utf8.ValidString(k.r.Resource) {
		v["path_b64"] = []byte(k.r.Resource)
	}
	return v
}

func (k *work) ownerText(n Node) string {
	return k.userText(n.UID) + ":" + k.groupText(n.GID)
}

func (k *work) userText(uid int) string  { return madeLater(k.w.Host.userName(uid), uid) }
func (k *work) groupText(gid int) string { return madeLater(k.w.Host.groupName(gid), gid) }

// diff is the diff of two files' bytes where both are at hand or small enough to be
// fetched, a missing file counting as empty.
func (k *work) diff(a, b Node) string {
	if k.r.Untold {
		return ""
	}
	a, b = k.atHand(a), k.atHand(b)
	old, ok := diffable(a)
	next, ok2 := diffable(b)
	if !ok || !ok2 || a.Type != File && b.Type != File || bytes.Equal(old, next) {
		return ""
	}
	return unified(old, next)
}

// atHand fetches a small file's bytes, if they can be had.
func (k *work) atHand(n Node) Node {
	if n.Type == File && n.data == nil && n.Size <= keepBytes && (n.local != "" || n.Blob != "") {
		if data, err := k.read(n); err == nil {
			n.data = data
		}
	}
	return n
}

func diffable(n Node) ([]byte, bool) {
	if n.Type != File {
		return nil, true
	}
	return n.data, n.data != nil
}

// editDiff is the diff that an edit makes. Of a file that not everybody may read and that no glyph
// declares as a whole it has no lines around what is edited: they are nothing of golem's, and a
// plan is read by more people than the file.
func (k *work) editDiff(old, next []byte) string {
	if k.base == nil && k.now.Type == File && k.now.Mode&0o004 == 0 {
		return unifiedWith(0, old, next)
	}
	return unified(old, next)
}

// unified is a unified diff without file headers, every byte of it printable. Content
// that is not text, or too large, has none.
func unified(old, next []byte) string { return unifiedWith(diffContext, old, next) }

// unifiedWith is one with so many lines around what differs, at most diffContext.
func unifiedWith(context int, old, next []byte) string {
	if len(old) > maxDiff || len(next) > maxDiff {
		return ""
	}
	if bytes.IndexByte(old, 0) >= 0 || bytes.IndexByte(next, 0) >= 0 {
		return "binary content differs\n"
	}
	if len(old) == 0 || len(next) == 0 {
		return printable(oneSided(old, next))
	}
	from, to, skipped := changedLines(old, next)
	u, err := udiff.ToUnifiedDiff("a", "b", from, udiff.Lines(from, to), context)
	if err != nil {
		return "" // edits made of these very strings always fit them
	}
	var out strings.Builder
	for _, hunk := range u.Hunks {
		var lines strings.Builder
		from, to := 0, 0
		for _, line := range hunk.Lines {
			mark := "+"
			switch line.Kind {
			case udiff.Delete:
				mark = "-"
				from++
			case udiff.Insert:
				to++
			default:
				mark = " "
				from, to = from+1, to+1
			}
			lines.WriteString(mark + line.Content)
			if !strings.HasSuffix(line.Content, "\n") {
				lines.WriteString(noNewline)
			}
		}
		fmt.Fprintf(&out, "@@ -%s +%s @@\n%s", side(skipped+hunk.FromLine, from), side(skipped+hunk.ToLine, to), lines.String())
	}
	return printable(out.String())
}

// noNewline says of a diff's last line that nothing ends it.
const noNewline = "\n\\ No newline at end of file\n"

// side is where the lines of one side of a hunk are. Of one that has none it is the line before.
func side(line, count int) string {
	switch count {
	case 0:
		return fmt.Sprintf("%d,0", line-1)
	case 1:
		return strconv.Itoa(line)
	}
	return fmt.Sprintf("%d,%d", line, count)
}

// changedLines cuts two contents down to the lines that differ, with the context a
// diff shows; skipped is how many lines were cut off before. One line put into a large
// file is found without comparing all of it line by line.
func changedLines(old, next []byte) (from, to string, skipped int) {
	head := linesBack(old, commonHead(old, next))
	tail := commonTail(old[head:], next[head:])
	tail = len(old) - linesOn(old, len(old)-tail)
	return string(old[head : len(old)-tail]), string(next[head : len(next)-tail]), bytes.Count(old[:head], []byte("\n"))
}

// linesBack goes from an offset to its line's beginning, and as many lines further as
// a diff's context has.
func linesBack(content []byte, at int) int {
	for range diffContext + 1 {
		if at = bytes.LastIndexByte(content[:at], '\n'); at < 0 {
			return 0
		}
	}
	return at + 1
}

// linesOn goes from an offset to its line's end, and as many lines further as a diff's
// context has.
func linesOn(content []byte, at int) int {
	for range diffContext + 1 {
		i := bytes.IndexByte(content[at:], '\n')
		if i < 0 {
			return len(content)
		}
		at += i + 1
	}
	return at
}

// oneSided is the diff of something against nothing.
func oneSided(old, next []byte) string {
	var out strings.Builder
	mark, content, header := "+", next, "@@ -0,0 +1,%d @@\n"
	if len(next) == 0 {
		mark, content, header = "-", old, "@@ -1,%d +0,0 @@\n"
	}
	lines := strings.SplitAfter(string(content), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) == 0 {
		return ""
	}
	fmt.Fprintf(&out, header, len(lines))
	for _, line := range lines {
		out.WriteString(mark)
		out.WriteString(line)
	}
	if content[len(content)-1] != '\n' {
		out.WriteString(noNewline)
	}
	return out.String()
}

// printable escapes every byte that is not printable text, but for line ends and tabs.
func printable(s string) string {
	clean := true
	for _, r := range s {
		if r == utf8.RuneError || r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size <= 1:
			fmt.Fprintf(&out, `\x%02x`, s[i])
		case r == '\n' || r == '\t' || unicode.IsPrint(r):
			out.WriteRune(r)
		default:
			q := strconv.QuoteRune(r)
			out.WriteString(q[1 : len(q)-1])
		}
		i += size
	}
	return out.String()
}

// bytesText spells a size for people: 38 bytes, 1.2 kB, 300 MB.
func bytesText(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	if n < 1000 {
		return fmt.Sprintf("%d bytes", n)
	}
	value, unit := float64(n), -1
	for value >= 999.95 && unit < 5 {
		value /= 1000
		unit++
	}
	text := strings.TrimSuffix(strconv.FormatFloat(value, 'f', 1, 64), ".0")
	return text + " " + []string{"kB", "MB", "GB", "TB", "PB", "EB"}[unit]
}

// sizes spells a change of size: 38 → 41 bytes.
func sizes(from, to int64) string {
	if from < 1000 && to < 1000 {
		if from == to {
			return bytesText(to) + ", other content"
		}
		return fmt.Sprintf("%d → %s", from, bytesText(to))
	}
	return bytesText(from) + " → " + bytesText(to)
}
