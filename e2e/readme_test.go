package e2e

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestREADMEsTour runs the README's first commands line by line on its first scroll, and holds
// each to what stands behind it: looks, changes nothing; does it; nothing to do; gives back.
func TestREADMEsTour(t *testing.T) {
	t.Parallel()
	readme := readPage(t, "../README.md")
	from, to, err := block(readme, "<!-- scroll -->")
	if err != nil {
		t.Fatal(err)
	}
	r := exampleRunner(t)
	r.sh(t, "rm -r tree; mkdir -p tree/etc tree/srv; printf '127.0.0.1 localhost\\n' >tree/etc/hosts; printf 'Welcome\\r\\nno newline' >tree/etc/motd")
	r.write(t, "web.hcl", readme[from:to], 0o644)
	tree := func() []string {
		t.Helper()
		all, err := fingerprint(filepath.Join(r.dir, "tree"))
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(all, func(line string) bool { // the journal's own place
			return strings.Contains(line, "var") || strings.HasPrefix(line, ". ")
		})
	}
	found := tree()
	start, end, err := block(readme[to+3:], "\n")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(readme[to+3:][start:end]), "\n")
	if len(lines) != 4 {
		t.Fatalf("the tour has other lines than this test knows: %q", lines)
	}
	says(t, r.sh(t, lines[0]), "Plan: 5 to install")
	if diff := difference(found, tree()); diff != "" {
		t.Errorf("%s changed the tree:\n%s", lines[0], diff)
	}
	says(t, r.sh(t, lines[1]), "Applied as revision 1: 5 installed")
	says(t, readPage(t, filepath.Join(r.dir, "tree/etc/hosts")), "10.0.0.5 db.internal")
	says(t, r.sh(t, lines[2]), "No changes.")
	if history := r.sh(t, "golem history"); strings.Contains(history, "web-host@2") {
		t.Errorf("the second apply is in the history:\n%s", history)
	}
	r.sh(t, lines[3])
	if diff := difference(found, tree()); diff != "" {
		t.Errorf("%s did not give back the tree:\n%s", lines[3], diff)
	}
}

// TestMakeTryShowsThatTheTreeComesBack runs what the README has people begin with.
func TestMakeTryShowsThatTheTreeComesBack(t *testing.T) {
	t.Parallel()
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("../examples/try.sh", bin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	says(t, string(out), "Applied as revision 1")
}

// TestEveryScrollInTheREADMEIsValid: those that are a part of one are whole leaves.
func TestEveryScrollInTheREADMEIsValid(t *testing.T) {
	t.Parallel()
	readme := readPage(t, "../README.md")
	blocks := regexp.MustCompile("(?ms)^```hcl\n(.*?)^```").FindAllStringSubmatch(readme, -1)
	if len(blocks) < 3 {
		t.Fatalf("only %d scrolls", len(blocks))
	}
	s := newStage(t)
	for _, m := range blocks {
		text := m[1]
		if !strings.HasPrefix(text, "name = ") {
			text = "name = \"readme\"\n" + text
		}
		s.declare(t, text)
		says(t, s.run(t, 0, "validate").stdout, " is valid: ")
	}
}

// TestEveryCommandInTheREADMEIsThere compares its table with what --help lists.
func TestEveryCommandInTheREADMEIsThere(t *testing.T) {
	t.Parallel()
	_, section, ok := strings.Cut(readPage(t, "../README.md"), "\n## Commands\n")
	if section, _, _ = strings.Cut(section, "\n## "); !ok {
		t.Fatal("README.md has no section about commands")
	}
	all := commands(t)
	for _, name := range all {
		if name != "state" && name != "kept" && !strings.Contains(section, "golem "+name) {
			t.Errorf("README.md's table does not have golem %s", name)
		}
	}
	table, _, _ := strings.Cut(section, "\n| exit |")
	for _, m := range regexp.MustCompile("golem ((?:state |kept )?[a-z]+)").FindAllStringSubmatch(table, -1) {
		if !slices.Contains(all, m[1]) {
			t.Errorf("README.md has golem %s, which is no command", m[1])
		}
	}
}
