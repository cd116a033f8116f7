package reconcilers

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestUnifiedIsAUnifiedDiff holds the shortened diff to the one of the whole contents.
func TestUnifiedIsAUnifiedDiff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "end"}))
		old := strings.Join(lines.Draw(t, "old"), "")
		next := strings.Join(lines.Draw(t, "next"), "")
		context := rapid.IntRange(0, diffContext).Draw(t, "context")
		got := unifiedWith(context, []byte(old), []byte(next))
		if old == next {
			if got != "" {
				t.Fatalf("equal contents differ: %q", got)
			}
			return
		}
		// The diff must lead from the one to the other, whatever hunks it chose.
		if applied := patch(t, old, got); applied != next {
			t.Fatalf("the diff of %q and %q leads to %q:\n%s", old, next, applied, got)
		}
		if context == 0 && strings.Contains("\n"+got, "\n ") {
			t.Fatalf("a diff without context has some:\n%s", got)
		}
	})
}

// patch applies a unified diff without file headers.
func patch(t *rapid.T, old, diff string) string {
	var out strings.Builder
	rest := strings.SplitAfter(old, "\n")
	at := 0
	last := byte(' ')
	for _, line := range strings.SplitAfter(diff, "\n") {
		switch {
		case line == "":
		case strings.HasPrefix(line, "@@ -"):
			var from int
			for _, c := range line[4:] {
				if c < '0' || c > '9' {
					break
				}
				from = from*10 + int(c-'0')
			}
			if side, _, _ := strings.Cut(line[4:], " "); strings.HasSuffix(side, ",0") {
				from++ // nothing is taken: it is the line before
			}
			for at < from-1 {
				out.WriteString(rest[at])
				at++
			}
		case line[0] == '\\' && last == '-':
		case line[0] == '\\':
			trimmed := strings.TrimSuffix(out.String(), "\n")
			out.Reset()
			out.WriteString(trimmed)
		case line[0] == ' ':
			out.WriteString(rest[at])
			at++
		case line[0] == '-':
			if strings.TrimSuffix(rest[at], "\n") != strings.TrimSuffix(line[1:], "\n") {
				t.Fatalf("the diff takes %q where %q is", line[1:], rest[at])
			}
			at++
		case line[0] == '+':
			out.WriteString(line[1:])
		}
		if line != "" {
			last = line[0]
		}
	}
	for ; at < len(rest); at++ {
		out.WriteString(rest[at])
	}
	return out.String()
}

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1: "1 byte", 38: "38 bytes", 999: "999 bytes", 1000: "1 kB", 1234: "1.2 kB", 999_950: "1 MB", 300e6: "300 MB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d is spelled %q, not %q", n, got, want)
		}
	}
}
