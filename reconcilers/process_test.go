package reconcilers

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"golem/scrolls"
)

func sampleProcess(t *rapid.T) scrolls.Attrs {
	a := scrolls.Attrs{"name": "own", "command": []any{"/fake/run", "x"}}
	if rapid.Bool().Draw(t, "bundle") {
		a["bundle"] = map[string]any{"run.sh": "#!/bin/sh\n", "lib/words": "one\n"}
	}
	if rapid.Bool().Draw(t, "timed") {
		a["schedule"] = "daily"
	}
	if rapid.Bool().Draw(t, "off") {
		a["enabled"] = false
	}
	if rapid.Bool().Draw(t, "stopped") {
		a["state"] = "stopped"
	}
	return a
}

func processOf(a scrolls.Attrs) *scrolls.Glyph {
	a["name"] = "p"
	return &scrolls.Glyph{Kind: "process", Key: "process:p", Version: 1, Attrs: a}
}

// TestProcessWordsAreLiteral: what systemd would expand or split in a command line
// (systemd.service(5), "Command lines") reaches the program as it is written.
func TestProcessWordsAreLiteral(t *testing.T) {
	for word, want := range map[string]string{
		"plain": "plain", "": `""`, "two words": `"two words"`, "$HOME": "$$HOME", "${X}": "$${X}", "100%": "100%%",
		`a"b`: `"a\"b"`, "it's": `"it's"`, `back\slash`: `"back\\slash"`, "tab\there": `"tab\x09here"`, ";": `";"`, "line\nbreak": `"line\x0abreak"`,
		"ünï": "ünï",
	} {
		g := processOf(scrolls.Attrs{"command": []any{"/bin/echo", word}})
		if line := execLine(g); line != "/bin/echo "+want {
			t.Errorf("%q is written as %q, want %q", word, line, "/bin/echo "+want)
		}
	}
}

func TestProcessSecretsStandInNoUnit(t *testing.T) {
	g := processOf(scrolls.Attrs{"command": []any{"/bin/true"}, "env": map[string]any{"TOKEN": `s3"cr$t`}})
	if text := serviceText(g); !strings.Contains(text, `Environment="TOKEN=s3\"cr$t"`) {
		t.Errorf("a plain variable:\n%s", text)
	}
	g.Secret = []string{"env"}
	p := planProcess(g)
	if text := serviceText(g); strings.Contains(text, "cr$t") || !strings.Contains(text, "EnvironmentFile=/usr/local/lib/golem/p.env") {
		t.Errorf("a secret one:\n%s", text)
	}
	n, ok := p.paths["/usr/local/lib/golem/p.env"]
	if !ok || n.Mode != 0o600 || !strings.Contains(string(n.data), `TOKEN="s3\"cr\$t"`) {
		t.Errorf("its file: %04o %q", n.Mode, n.data)
	}
}

func TestProcessMistakesAreFoundBeforeAnyHost(t *testing.T) {
	for _, c := range []struct {
		attrs scrolls.Attrs
		want  string
	}{
		{scrolls.Attrs{"name": "a b"}, "Not a process's name"},
		{scrolls.Attrs{"name": "x.service"}, "Not a process's name"},
		{scrolls.Attrs{"command": []any{}}, "Command is empty"},
		{scrolls.Attrs{"command": []any{"echo hello"}}, "Not a program"},
		{scrolls.Attrs{"command": []any{"./run.sh"}}, "Not a program"},
		{scrolls.Attrs{"command": []any{"other.sh"}, "bundle": map[string]any{"run.sh": ""}}, "Program is not in the bundle"},
		{scrolls.Attrs{"bundle": map[string]any{"../up": ""}}, "Not a file's name"},
		{scrolls.Attrs{"bundle": map[string]any{"a": "", "a/b": ""}}, "Not a file's name"},
		{scrolls.Attrs{"bundle": map[string]any{"a": true}}, "Not a bundle"},
		{scrolls.Attrs{"env": map[string]any{"A-B": ""}}, "Not a variable's name"},
		{scrolls.Attrs{"restart": "sometimes"}, "Unknown restart"},
		{scrolls.Attrs{"state": "up"}, "Unknown state"},
		{scrolls.Attrs{"schedule": " "}, "Schedule is empty"},
		{scrolls.Attrs{"limits": map[string]any{"memory": "much"}}, "Not an amount of memory"},
		{scrolls.Attrs{"limits": map[string]any{"cpu": "half"}}, "Not a share of processors"},
		{scrolls.Attrs{"settings": map[string]any{"ExecStart": "/bin/x"}}, "Setting is golem's"},
		{scrolls.Attrs{"settings": map[string]any{"Nice": "1\n[Install]"}}, "Not a setting's value"},
		{scrolls.Attrs{"settings": "Nice=1"}, "Not settings"},
	} {
		a := scrolls.Attrs{"name": "p", "command": []any{"/bin/true"}}
		for name, value := range c.attrs {
			a[name] = value
		}
		problems := checkProcess(a)
		if len(problems) == 0 || problems[0].Summary != c.want {
			t.Errorf("%v: %+v, want %q", c.attrs, problems, c.want)
		}
	}
}
