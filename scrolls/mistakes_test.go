package scrolls

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the messages that are found into testdata/mistakes")

// TestMistakeIsShownWithFileLineSnippetAndCure loads every scroll in testdata/mistakes
// and compares all that is said about it. The first line of a scroll may hold options.
func TestMistakeIsShownWithFileLineSnippetAndCure(t *testing.T) {
	t.Chdir("testdata/mistakes")
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() && !strings.HasSuffix(name, ".hcl") {
			continue
		}
		cases++
		t.Run(strings.TrimSuffix(name, ".hcl"), func(t *testing.T) { checkMistake(t, name) })
	}
	if cases < 50 {
		t.Errorf("only %d mistakes were found", cases)
	}
}

func checkMistake(t *testing.T, name string) {
	s, err := loadDir(name, optionsIn(t, name))
	if err == nil {
		t.Fatalf("no mistake was found, but %d glyphs", len(s.Glyphs()))
	}
	got := "golem: " + err.Error() + "\n"
	var mistakes *Diagnostics
	if errors.As(err, &mistakes) {
		var b strings.Builder
		if err := mistakes.Write(&b, 80, false); err != nil {
			t.Fatal(err)
		}
		got = b.String()
	}
	if strings.Contains(got, "hunter2") {
		t.Errorf("the message shows a sensitive value:\n%s", got)
	}
	golden := strings.TrimSuffix(name, ".hcl") + ".want"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the message has changed (-want +got):\n%s", diff)
	}
}

// optionsIn reads the options that a scroll's first line asks for.
func optionsIn(t *testing.T, name string) func(*Options) {
	t.Helper()
	if st, err := os.Stat(name); err == nil && st.IsDir() {
		name = filepath.Join(name, "a.hcl")
	}
	src, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(src), "\n")
	first, found := strings.CutPrefix(first, "# with ")
	return func(o *Options) {
		if !found {
			return
		}
		for _, field := range strings.Fields(first) {
			option, value, _ := strings.Cut(field, ":")
			switch option {
			case "var":
				o.Vars = append(o.Vars, value)
			case "var-file":
				o.VarFiles = append(o.VarFiles, value)
			case "env":
				o.Environ = append(o.Environ, value)
			case "name":
				o.Name = value
			case "policy":
				o.HostPolicy = value
			default:
				t.Fatalf("%s asks for %q", name, field)
			}
		}
	}
}

// TestManyMistakesAreToldInLittleTime has one that a variable spreads to every glyph.
func TestManyMistakesAreToldInLittleTime(t *testing.T) {
	const n = 10_000
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "file \"etc/%d\" {\n  content = \"\"\n}\n", i)
	}
	start := worked()
	_, err := loadText(t, text.String())
	loading := worked() - start
	var mistakes *Diagnostics
	if !errors.As(err, &mistakes) || len(mistakes.All) != n {
		t.Fatalf("%.200v", err)
	}
	var b strings.Builder
	start = worked()
	if err := mistakes.Write(&b, 80, false); err != nil {
		t.Fatal(err)
	}
	if telling := worked() - start; telling > 5*loading {
		t.Errorf("finding them takes %s, telling them %s", loading, telling)
	}
	for _, want := range []string{
		"scroll.hcl line 298, in file \"etc/99\":\n 298: file \"etc/99\" {\n", "9900 more mistakes are not shown.",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in %.2000s", want, b.String())
		}
	}
}
