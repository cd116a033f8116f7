package scrolls

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MakeKey joins a kind and the parts of an identity to a key. In a part, ":", "[",
// "]", "%" and whatever is not printable UTF-8 are written %XX, so that no two
// identities share a key.
func MakeKey(kind string, parts ...string) Key {
	var b strings.Builder
	b.WriteString(kind)
	for _, part := range parts {
		b.WriteByte(':')
		escape(&b, part, ":[]%")
	}
	return Key(b.String())
}

// Steps adds a part that is a path of steps, joined with dots; a dot within a step is
// written %2E.
func (k Key) Steps(steps ...string) Key {
	var b strings.Builder
	b.WriteString(string(k))
	for i, step := range steps {
		b.WriteByte(":."[min(i, 1)])
		escape(&b, step, ":[].%")
	}
	if len(steps) == 0 {
		b.WriteByte(':')
	}
	return Key(b.String())
}

// Member adds a part that is a member, in brackets.
func (k Key) Member(member string) Key {
	var b strings.Builder
	b.WriteString(string(k) + ":[")
	escape(&b, member, ":[]%")
	b.WriteByte(']')
	return Key(b.String())
}

// escape writes s with every byte of special, and of what cannot be printed, as %XX.
func escape(b *strings.Builder, s, special string) {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size <= 1 || !unicode.IsPrint(r) || strings.ContainsRune(special, r) {
			for _, c := range []byte(s[i : i+size]) {
				fmt.Fprintf(b, "%%%02X", c)
			}
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}
}

// Kind is the key's kind.
func (k Key) Kind() string {
	kind, _, _ := strings.Cut(string(k), ":")
	return kind
}

// Parts are the identity's parts, unescaped.
func (k Key) Parts() []string {
	parts := strings.Split(string(k), ":")[1:]
	for i, part := range parts {
		parts[i] = unescape(part)
	}
	return parts
}

func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		var c byte
		if s[i] == '%' && i+2 < len(s) {
			if n, err := fmt.Sscanf(s[i+1:i+3], "%02X", &c); n == 1 && err == nil {
				b.WriteByte(c)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
