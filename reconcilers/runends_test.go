package reconcilers

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestEndsKeepsBothEnds(t *testing.T) {
	for _, c := range []struct {
		parts []string
		want  string
	}{
		{nil, ""},
		{[]string{"ab", "c"}, "abc"},
		{[]string{"abcdefgh"}, "abcdefgh"},
		{[]string{"abc", "def", "g\nhi"}, "abcd\n…\nhi"},
		{[]string{"abcdefghij\nkl"}, "abcd\n…\nkl"},
		{[]string{"a\nbcdefg\nhi"}, "a\n…\nhi"}, // whole lines
		{[]string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "\n", "n", "o"}, "abcd\n…\nno"},
	} {
		e := &ends{limit: 4}
		for _, p := range c.parts {
			if n, err := e.Write([]byte(p)); n != len(p) || err != nil {
				t.Fatalf("write gave %d, %v", n, err)
			}
		}
		if got := string(e.Bytes()); got != c.want {
			t.Errorf("%q: kept %q, want %q", c.parts, got, c.want)
		}
	}
}

// TestACommandThatNeverStopsTalkingFillsNoMemory: neither its error output, nor, where only
// a person reads it, its output.
func TestACommandThatNeverStopsTalkingFillsNoMemory(t *testing.T) {
	h, err := OpenHost(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out, err := h.Do(context.Background(), Command{
		Argv: []string{"sh", "-c", "echo first; yes | head -c 100000000; yes | head -c 100000000 >&2; echo last >&2; exit 1"}, Talk: true, Timeout: 5 * time.Second,
	})
	runtime.ReadMemStats(&after)
	if err == nil || !strings.HasPrefix(string(out.Stdout), "first\n") {
		t.Errorf("%v, and it printed %.20q", err, out.Stdout)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Errorf("it took %d bytes", took)
	}
}
