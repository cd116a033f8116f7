package reconcilers

import (
	"cmp"
	"strings"
)

// compareVersions orders two Debian versions as dpkg does (deb-version(7)): below zero
// where a is older than b.
func compareVersions(a, b string) int {
	epochA, upA, revA := splitVersion(a)
	epochB, upB, revB := splitVersion(b)
	return cmp.Or(compareDigits(epochA, epochB), comparePart(upA, upB), comparePart(revA, revB))
}

// splitVersion takes a version apart: [epoch:]upstream[-revision].
func splitVersion(v string) (epoch, upstream, revision string) {
	if before, after, ok := strings.Cut(v, ":"); ok {
		epoch, v = before, after
	}
	upstream = v
	if at := strings.LastIndexByte(v, '-'); at >= 0 {
		upstream, revision = v[:at], v[at+1:]
	}
	return epoch, upstream, revision
}

// comparePart compares two parts, stretches of digits as numbers and what lies between
// by character, "~" before everything, the end included.
func comparePart(a, b string) int {
	for a != "" || b != "" {
		for a != "" && !isDigit(a[0]) || b != "" && !isDigit(b[0]) {
			if c := cmp.Compare(weight(a), weight(b)); c != 0 {
				return c
			}
			a, b = a[1:], b[1:]
		}
		numA, numB := digits(a), digits(b)
		if c := compareDigits(numA, numB); c != 0 {
			return c
		}
		a, b = a[len(numA):], b[len(numB):]
	}
	return 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// digits are the digits that a string begins with.
func digits(s string) string {
	end := 0
	for end < len(s) && isDigit(s[end]) {
		end++
	}
	return s[:end]
}

// compareDigits compares two numbers of any length; none is zero.
func compareDigits(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// weight is where a string's first character stands outside of numbers.
func weight(s string) int {
	const marks = 256 // behind every letter
	switch {
	case s == "" || isDigit(s[0]):
		return 0
	case s[0] == '~':
		return -1
	case s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z':
		return int(s[0])
	}
	return int(s[0]) + marks
}

// versionFits says whether a version is the one asked for: that one, or with a "*" at
// the end any that begins so. No wish fits all.
func versionFits(wish, version string) bool {
	if prefix, glob := strings.CutSuffix(wish, "*"); glob {
		return strings.HasPrefix(version, prefix)
	}
	return wish == "" || wish == version
}

// relationHolds says whether a version stands in a relation that a dependency asks for.
func relationHolds(version, op, wanted string) bool {
	c := compareVersions(version, wanted)
	switch op {
	case "<<", "<":
		return c < 0 || op == "<" && c == 0
	case "<=":
		return c <= 0
	case "=":
		return c == 0
	case ">=":
		return c >= 0
	case ">>":
		return c > 0
	case ">":
		return c >= 0
	}
	return op == ""
}
