package scrolls

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/text/unicode/norm"
)

// identity refuses a key that cannot be shown, or that HCL made of other bytes than
// those written: it holds all strings in Unicode's normal form C, and a path in another
// form is another path.
func (l *loader) identity(g *Glyph, kind *kindInfo, parts []string) {
	for name, at := range g.Where {
		secret, changed := slices.Contains(g.Secret, name), l.changedForm(at)
		if !secret && !changed || !identifies(kind, g.Attrs, name, parts) {
			continue
		}
		if secret {
			l.fail("Identity is sensitive", fmt.Sprintf("%q is part of the glyph's key, which is shown everywhere. It cannot come from a sensitive value.%s", name, spaced(kind.attrs[name].Sensitive)), at)
		} else {
			l.fail("Text is not in normal form C", "HCL would change the bytes of it. No glyph can name what is not in Unicode's normal form C.", at)
		}
	}
}

// identifies says whether an attribute is part of the key: whether another value of it
// makes another key.
func identifies(kind *kindInfo, attrs Attrs, name string, parts []string) bool {
	text, _ := attrs[name].(string)
	other := maps.Clone(attrs)
	other[name] = text + "x"
	return !slices.Equal(parts, kind.Identity(other))
}

// changedForm says whether HCL changed the bytes that are written at a place.
func (l *loader) changedForm(at hcl.Range) bool {
	file := l.s.Files[at.Filename]
	return file != nil && at.CanSliceBytes(file.Bytes) && !norm.NFC.IsNormal(unescaped(at.SliceBytes(file.Bytes)))
}

// escapedRune is a character in a string of HCL that is written as its number.
var escapedRune = regexp.MustCompile(`\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}`)

// unescaped is source text with such characters as themselves.
func unescaped(src []byte) []byte {
	return escapedRune.ReplaceAllFunc(src, func(escape []byte) []byte {
		r, err := strconv.ParseUint(string(escape[2:]), 16, 32)
		if err != nil || r > unicode.MaxRune {
			return escape
		}
		return utf8.AppendRune(nil, rune(r))
	})
}
