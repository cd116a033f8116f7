package reconcilers

import (
	"bytes"
	"fmt"
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

// hide takes from a change what a secret must not show: the diff, size and hash.
func (k *work) hide(c *Change, g *scrolls.Glyph) {
	was := k.s.base != nil && secret(k.s.base.Glyph)
	if !secret(g) && !was {
		return
	}
	c.Secret = true
	if c.Diff != "" {
		c.Diff = ""
	}
	for _, view := range []map[string]any{c.Before, c.After} {
		delete(view, "sha256")
		delete(view, "size")
	}
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

func (k *work) ownerText(n Node) string {
	return k.w.Host.userName(n.UID) + ":" + k.w.Host.groupName(n.GID)
}

// unifiedNodes is the diff of two files' bytes where both are at hand, a missing file
// counting as empty.
func unifiedNodes(a, b Node) string {
	old, ok := diffable(a)
	next, ok2 := diffable(b)
	if !ok || !ok2 || a.Type != File && b.Type != File || bytes.Equal(old, next) {
		return ""
	}
	return unified(old, next)
}

func diffable(n Node) ([]byte, bool) {
	if n.Type != File {
		return nil, true
	}
	return n.data, n.data != nil
}

// unified is a unified diff without file headers, every byte of it printable. Content
// that is not text, or too large, has none.
func unified(old, next []byte) string {
	if len(old) > maxDiff || len(next) > maxDiff {
		return ""
	}
	if bytes.IndexByte(old, 0) >= 0 || bytes.IndexByte(next, 0) >= 0 {
		return "binary content differs\n"
	}
	from, to := string(old), string(next)
	edits := udiff.Strings(from, to)
	u, err := udiff.ToUnifiedDiff("a", "b", from, edits, diffContext)
	if err != nil {
		return "" // edits made of these very strings always fit them
	}
	text := u.String()
	for range 2 { // the two file headers
		if _, rest, ok := strings.Cut(text, "\n"); ok {
			text = rest
		}
	}
	return printable(text)
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
			return fmt.Sprintf("%d bytes, other content", to)
		}
		return fmt.Sprintf("%d → %d bytes", from, to)
	}
	return bytesText(from) + " → " + bytesText(to)
}
