package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"golem/reconcilers/fake"
	"golem/scrolls"
)

// sampleCommand draws a command that makes a file, whose undo removes it, and that a guard
// keeps from doing either where the file was there before.
func sampleCommand(t *rapid.T) scrolls.Attrs {
	a := scrolls.Attrs{"name": "it", "run": []any{"put", "/made", "x"}, "undo": []any{"take", "/made"}}
	switch rapid.SampledFrom([]string{"creates", "unless", "both"}).Draw(t, "guard") {
	case "creates":
		a["creates"] = "/made"
	case "unless":
		a["unless"] = []any{"has", "/made", "x"}
	default:
		a["creates"], a["onlyif"] = "/made", []any{"has", "/asks", "yes"}
	}
	if rapid.Bool().Draw(t, "env") {
		a["env"] = map[string]any{"A": "b"}
	}
	return a
}

// drawMade draws whether what the command makes is there before, and what a guard looks at.
func (b *bench) drawMade() {
	for name, text := range map[string]string{"made": "x", "asks": "yes"} {
		if rapid.Bool().Draw(b.t, name) {
			if err := os.WriteFile(filepath.Join(b.root, name), []byte(text), 0o640); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

func (b *bench) bootPrograms(h *Host) { programHost(h, fake.Programs{Root: b.root}) }

// programHost lets a fake's programs answer for a host.
func programHost(h *Host, p fake.Programs) {
	h.Booted = true
	h.Exec = func(_ context.Context, c Command) (Output, error) {
		a, ok := p.Run(c.Argv...)
		if !ok {
			return Output{}, fmt.Errorf("run %s: no such program", c.Argv[0])
		}
		if a.Code != 0 {
			return Output{}, &CommandError{Argv: c.Argv, Code: a.Code, Said: a.Err, Err: fmt.Errorf("exit status %d", a.Code)}
		}
		return Output{}, nil
	}
}

// realCommand is a world in which real commands run, and the root of its tree.
func realCommand(t *testing.T) (*World, string) {
	t.Helper()
	h := commandHost(t)
	h.Booted = true
	w := NewWorld(h, nil)
	t.Cleanup(w.Close)
	return w, h.Root
}

func commandGlyph(attrs scrolls.Attrs) *scrolls.Glyph {
	attrs["name"] = "it"
	return &scrolls.Glyph{Kind: "command", Version: 1, Attrs: attrs, Key: commandKind.KeyOf(attrs)}
}

func argv(list ...string) []any {
	all := make([]any, len(list))
	for i, word := range list {
		all[i] = word
	}
	return all
}

func TestACommandsWordsEnvironmentAndDirectoryAreLiteral(t *testing.T) {
	w, root := realCommand(t)
	out := filepath.Join(root, "out")
	g := commandGlyph(scrolls.Attrs{
		"run": argv("sh", "-c", `printf '%s|' "$0" "$@" "$A" "$PWD" "$HOME" >`+out+`; cat >>`+out, "a b", "$HOME", "%d"),
		"env": map[string]any{"A": "$PATH", "HOME": "/nowhere"}, "dir": "/usr",
	})
	if err := runOf(context.Background(), w, g, "run"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if want := "a b|$HOME|%d|$PATH|/usr|/nowhere|"; err != nil || string(got) != want {
		t.Errorf("it got %q, want %q (%v)", got, want, err)
	}
}

// A variable of the scroll may be a secret: no program that golem starts gets it unasked.
func TestACommandHasNoVariablesOfTheScroll(t *testing.T) {
	t.Setenv("GOLEM_VAR_password", "hunter2")
	t.Setenv("GOLEM_OTHER", "kept")
	w, root := realCommand(t)
	out := filepath.Join(root, "out")
	g := commandGlyph(scrolls.Attrs{"run": argv("sh", "-c", `env >`+out)})
	if err := runOf(context.Background(), w, g, "run"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if err != nil || strings.Contains(string(got), "hunter2") || !strings.Contains(string(got), "GOLEM_OTHER=kept") {
		t.Errorf("its environment is %s (%v)", got, err)
	}
}

func TestACommandRunsAsItsUserWithItsGroups(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root runs commands as another user")
	}
	w, root := realCommand(t)
	for _, dir := range []string{filepath.Dir(root), root} {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(root, "out")
	g := commandGlyph(scrolls.Attrs{"run": argv("sh", "-c", `echo $(id -u) $(id -G) $USER $HOME $(grep -c . /proc/self/status >/dev/null; ls /proc/self/fd | wc -l) >`+out), "user": "nobody"})
	if err := runOf(context.Background(), w, g, "run"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if err != nil || !strings.HasPrefix(string(got), "65534 65534 nobody /nonexistent") {
		t.Errorf("it ran as %q (%v)", got, err)
	}
	g.Attrs["user"] = "no-such-user"
	if err := missing(context.Background(), w, g, "run"); err == nil || err.Error() != `no user is called "no-such-user" here` {
		t.Errorf("an unknown user: %v", err)
	}
}

func TestWhatACommandSaysIsItsEndAndNothingOfASecretOne(t *testing.T) {
	w, _ := realCommand(t)
	fails := commandGlyph(scrolls.Attrs{"run": argv("sh", "-c", "seq 200000; echo the last word; exit 7")})
	err := runOf(context.Background(), w, fails, "run")
	var failed *CommandError
	if !errors.As(err, &failed) || failed.Code != 7 || len(failed.Said) > 3*mostSaid {
		t.Fatalf("it failed with %.200v", err)
	}
	if text := err.Error(); !strings.HasSuffix(text, "the last word") || strings.Contains(text, "\n199979\n") {
		t.Errorf("it does not say its last lines: %s", text)
	}
	fails.Attrs["sensitive"] = true
	if err := runOf(context.Background(), w, fails, "run"); err == nil || err.Error() != "run sh: exit status 7" {
		t.Errorf("a sensitive one says %v", err)
	}
	if cause, found := Diagnose(runOf(context.Background(), w, fails, "run")); len(found) != 0 || strings.Contains(cause, "word") {
		t.Errorf("what is found out about a sensitive one: %s %v", cause, found)
	}
	fails.Attrs["sensitive"], fails.Secret = false, []string{"run"}
	err = runOf(context.Background(), w, fails, "run")
	if cause, found := Diagnose(err); len(found) != 0 || strings.Contains(cause, "seq") || strings.Contains(err.Error(), "word") {
		t.Errorf("one with a secret word: %s %v", cause, found)
	}
}

func TestACommandsTimeoutIsItsOwnOrThePolicys(t *testing.T) {
	w, _ := realCommand(t)
	w.Timeout = 50 * time.Millisecond
	g := commandGlyph(scrolls.Attrs{"run": argv("sleep", "60"), "unless": argv("sleep", "60")})
	if err := runOf(context.Background(), w, g, "run"); err == nil || !strings.HasSuffix(err.Error(), "still running after 50ms") {
		t.Errorf("under the policy's: %v", err)
	}
	g.Attrs["timeout"] = "20ms"
	if err := runOf(context.Background(), w, g, "run"); err == nil || !strings.HasSuffix(err.Error(), "still running after 20ms") {
		t.Errorf("under its own: %v", err)
	}
	if _, err := askGuards(context.Background(), w, g); err == nil || !strings.HasSuffix(err.Error(), "still running after 20ms") {
		t.Errorf("a guard that does not end: %v", err)
	}
}

func TestACommandsMistakesAreTold(t *testing.T) {
	for _, c := range []struct {
		attr  string
		value any
		want  string
	}{
		{"run", argv(), "Command is empty"},
		{"run", argv("make all"), "Not a program"},
		{"run", argv("./make"), "Not a program"},
		{"run", argv("/usr/../make"), "Path is not clean"},
		{"undo", argv(""), "Command is empty"},
		{"unless", argv("test", "a\x00b"), "Command holds a NUL byte"},
		{"creates", "made", "Not an absolute path"},
		{"dir", "/srv/", "Not an absolute path"},
		{"env", map[string]any{"A B": "x"}, "Not a variable's name"},
		{"user", "", "User is empty"},
		{"timeout", "soon", "Not a length of time"},
		{"triggered_by", argv("motd"), "Not a key"},
		{"name", "", "Not a command's name"},
	} {
		a := scrolls.Attrs{"name": "it", "run": argv("true")}
		a[c.attr] = c.value
		problems := commandKind.Check(a)
		if len(problems) != 1 || problems[0].Summary != c.want || problems[0].Attr != c.attr {
			t.Errorf("%s = %v: %+v, want %q", c.attr, c.value, problems, c.want)
		}
	}
}

func TestOnlyWhatIsRunMakesAnotherDeed(t *testing.T) {
	base := scrolls.Attrs{"run": argv("true"), "undo": argv("false")}
	was, cid := deed(commandGlyph(base)), CID(commandGlyph(base))
	for attr, value := range map[string]any{
		"undo": argv("true"), "creates": "/x", "unless": argv("true"), "onlyif": argv("true"),
		"timeout": "1m", "sensitive": true, "triggered_by": argv("file:/x"),
	} {
		a := scrolls.Attrs{"run": argv("true"), "undo": argv("false"), attr: value}
		g := commandGlyph(a)
		if deed(g) != was {
			t.Errorf("%s makes another deed", attr)
		}
		if outside := attr == "timeout" || attr == "sensitive" || attr == "triggered_by"; (CID(g) == cid) != outside {
			t.Errorf("%s is part of the content id: %v", attr, !outside)
		}
	}
	for attr, value := range map[string]any{"run": argv("true", "x"), "env": map[string]any{"A": "b"}, "user": "u", "dir": "/x"} {
		a := scrolls.Attrs{"run": argv("true"), "undo": argv("false")}
		a[attr] = value
		if deed(commandGlyph(a)) == was {
			t.Errorf("%s makes no other deed", attr)
		}
	}
}
