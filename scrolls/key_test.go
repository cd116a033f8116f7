package scrolls

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestKeyIsSpelledAsTheDesignSays(t *testing.T) {
	cases := []struct {
		parts []string
		want  Key
	}{
		{[]string{"/etc/motd"}, "file:/etc/motd"},
		{[]string{"/etc/a:b"}, "file:/etc/a%3Ab"},
		{[]string{"/p", "10% [x]"}, "file:/p:10%25 %5Bx%5D"},
		{[]string{"/p", ""}, "file:/p:"},
		{[]string{"/a\nb\x7f"}, "file:/a%0Ab%7F"},
		{[]string{"/latin\xe9"}, "file:/latin%E9"},
		{[]string{"/café"}, "file:/café"},
		{[]string{"/zero\u200bwidth"}, "file:/zero%E2%80%8Bwidth"},
		{[]string{"/\ufffd"}, "file:/\ufffd"},
	}
	for _, c := range cases {
		if got := MakeKey("file", c.parts...); got != c.want {
			t.Errorf("MakeKey(%q) = %q, want %q", c.parts, got, c.want)
		}
	}
}

// parts draws identities of any bytes, those that the grammar uses often among them.
var parts = rapid.SliceOfN(rapid.OneOf(
	rapid.String(),
	rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
	rapid.StringOf(rapid.RuneFrom([]rune(":[]%.ab/A0\n"))),
), 1, 4)

func TestKeyGivesItsPartsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := parts.Draw(t, "parts")
		key := MakeKey("line", want...)
		if key.Kind() != "line" || !slices.Equal(key.Parts(), want) {
			t.Fatalf("%q became %q, and that %s %q", want, key, key.Kind(), key.Parts())
		}
		if !utf8.ValidString(string(key)) || strings.ContainsFunc(string(key), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%q cannot be printed", key)
		}
	})
}

func TestNoTwoIdentitiesShareAKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := parts.Draw(t, "a"), parts.Draw(t, "b")
		if !slices.Equal(a, b) && MakeKey("k", a...) == MakeKey("k", b...) {
			t.Fatalf("%q and %q share %q", a, b, MakeKey("k", a...))
		}
	})
}
