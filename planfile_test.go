package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ran is what one run of golem printed, and its exit code.
func ran(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var files [2]*os.File
	for i, name := range []string{"stdout", "stderr"} {
		f, err := os.Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	code = run(append([]string{"golem"}, args...), os.Stdin, files[0], files[1])
	var texts [2]string
	for i, f := range files {
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	return code, texts[0], texts[1]
}

// A plan of another golem is stale, and that is told in one answer with all else that has
// moved: the scroll, the journal, and what only the host has.
func TestAllThatMovedSinceAPlanWasSavedIsTold(t *testing.T) {
	dir := t.TempDir()
	root, scroll, file := filepath.Join(dir, "root"), filepath.Join(dir, "web.hcl"), filepath.Join(dir, "web.plan")
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golem := func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := ran(t, append(args, "--root", root)...)
		if code != want {
			t.Fatalf("golem %s: exit %d, want %d\n%s%s", strings.Join(args, " "), code, want, stdout, stderr)
		}
		return stderr
	}
	const text = "name = \"web\"\nfile \"/etc/a\" {\n  content = \"a\"\n}\nfile \"/etc/b\" {\n  content = \"b\"\n}\n"
	write(scroll, text)
	write(filepath.Join(root, "etc/x"), "")
	golem(0, "plan", "--out", file, scroll)
	was := version
	version = "9.9"
	defer func() { version = was }()
	stale := func(lines ...string) {
		t.Helper()
		got := golem(5, "apply", file)
		for _, line := range append(lines, "it was made by golem "+was+", and this is golem 9.9") {
			if !strings.Contains(got, "\n  "+line) {
				t.Errorf("it does not say %q:\n%s", line, got)
			}
		}
		if n := strings.Count(got, "\n  "); n != len(lines)+1 {
			t.Errorf("it says %d things, not %d:\n%s", n, len(lines)+1, got)
		}
	}
	stale()
	write(filepath.Join(root, "etc/a"), "by hand")
	write(scroll, text+"# another\n")
	stale("the scroll "+scroll+" has changed", "file:/etc/a: it is not as it was")

	// Once the lineage has moved, what the journal has anew is no news; what only the host has, is.
	part := filepath.Join(dir, "part.hcl")
	write(part, "name = \"web\"\nfile \"/etc/a\" {\n  content = \"a\"\n}\n")
	golem(0, "apply", "--auto-approve", part)
	write(filepath.Join(root, "etc/b"), "by hand")
	stale("the scroll "+scroll+" has changed", "web is at revision 1, and it was made at 0", "file:/etc/b: it is not as it was")

	// A plan that cannot even be made any more is stale, too, and says why.
	if err := os.Remove(filepath.Join(root, "etc/b")); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(root, "etc/b/c"), "a directory by hand")
	stale("the scroll "+scroll+" has changed", "web is at revision 1, and it was made at 0", "it cannot be done any more: ")

	// From another root, it says that, and which golem made it.
	root = filepath.Join(dir, "other")
	write(filepath.Join(root, "etc/x"), "")
	stale("it was made for the root ", "it was made with a journal, and there is none here")
}
