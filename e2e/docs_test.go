package e2e

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var updateDocs = flag.Bool("update-docs", false, "write README's plan anew from what golem prints")

// block finds the fenced block that follows a marker, and returns where its text is.
func block(text, marker string) (from, to int, err error) {
	at := strings.Index(text, marker)
	if at < 0 {
		return 0, 0, fmt.Errorf("there is no %q", marker)
	}
	open := strings.Index(text[at:], "\n```")
	if open < 0 {
		return 0, 0, fmt.Errorf("no block follows %q", marker)
	}
	from = at + open + len("\n```")
	from += strings.Index(text[from:], "\n") + 1
	end := strings.Index(text[from:], "```")
	if end < 0 {
		return 0, 0, fmt.Errorf("the block after %q has no end", marker)
	}
	return from, from + end, nil
}

// TestREADMEsPlanIsWhatGolemPrints makes the host that the README tells of, and plans the
// README's own scroll on it.
func TestREADMEsPlanIsWhatGolemPrints(t *testing.T) {
	data, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(data)
	from, to, err := block(readme, "<!-- scroll -->")
	if err != nil {
		t.Fatal(err)
	}
	scroll := readme[from:to]
	before, err := os.ReadFile("testdata/readme/before.hcl")
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t)
	s.write(t, "etc/hosts", "127.0.0.1 localhost\n")
	s.write(t, "etc/motd", "Welcome to Debian GNU/Linux 12.\n")
	s.write(t, "etc/aliases", "postmaster: root\n")
	s.write(t, "srv/.keep", "")
	if err := os.Symlink("/usr/share/zoneinfo/Etc/UTC", filepath.Join(s.root, "etc/localtime")); err != nil {
		t.Fatal(err)
	}
	s.declare(t, string(before))
	s.run(t, 0, "apply", "--auto-approve")
	s.write(t, "etc/sysctl.d/60-web.conf", "net.core.somaxconn = 128\n")
	s.declare(t, scroll)
	plan := s.run(t, 0, "plan").stdout
	if from, to, err = block(readme, "<!-- plan"); err != nil {
		t.Fatal(err)
	}
	if *updateDocs {
		if err := os.WriteFile("../README.md", []byte(readme[:from]+plan+readme[to:]), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have := readme[from:to]; have != plan {
		t.Errorf("README.md shows another plan than golem prints; go test ./e2e -run README -update-docs writes it anew\nit prints:\n%s\nREADME.md has:\n%s", plan, have)
	}
}

// pages are all Markdown pages of the project.
func pages(t *testing.T) []string {
	t.Helper()
	list := []string{"../README.md", "../CONTRIBUTING.md"}
	for _, dir := range []string{"../docs", "../examples"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".md") {
				list = append(list, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(list) < 15 {
		t.Fatalf("only %d pages: %v", len(list), list)
	}
	return list
}

func readPage(t *testing.T, page string) string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestEveryLinkInThePagesLeadsSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(readPage(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

func TestEveryHCLBlockInThePagesIsFormatted(t *testing.T) {
	fence := regexp.MustCompile("(?ms)^```hcl\n(.*?)^```")
	n := 0
	for _, page := range pages(t) {
		for _, m := range fence.FindAllStringSubmatch(readPage(t, page), -1) {
			n++
			file := filepath.Join(t.TempDir(), "block.hcl")
			if err := os.WriteFile(file, []byte(m[1]), 0o644); err != nil {
				t.Fatal(err)
			}
			if a := (call{}).golem(t, "fmt", "--check", "--diff", file); a.code != 0 {
				t.Errorf("%s:\n%s%s", page, a.stdout, a.stderr)
			}
		}
	}
	if n < 3 {
		t.Fatalf("only %d HCL blocks in the pages", n)
	}
}

// commands are all of golem's commands, by what --help lists.
func commands(t *testing.T) []string {
	t.Helper()
	listed := regexp.MustCompile(`(?m)^   ([a-z]+)  `)
	var all []string
	var walk func(prefix []string)
	walk = func(prefix []string) {
		help := call{}.must(t, 0, append(slices.Clone(prefix), "--help")...).stdout
		_, rest, found := strings.Cut(help, "COMMANDS:\n")
		if !found {
			return
		}
		rest, _, _ = strings.Cut(rest, "\n\n")
		for _, m := range listed.FindAllStringSubmatch(rest, -1) {
			name := append(slices.Clone(prefix), m[1])
			all = append(all, strings.Join(name, " "))
			walk(name)
		}
	}
	walk(nil)
	if len(all) < 15 {
		t.Fatalf("only %d commands: %v", len(all), all)
	}
	return all
}

var flagName = regexp.MustCompile(`--[a-z][a-z-]+`)

func TestCommandsPageHasEveryCommandAndFlagAndNoOther(t *testing.T) {
	page := readPage(t, "../docs/commands.md")
	known := map[string]bool{}
	for _, name := range append(commands(t), "") {
		help := call{}.must(t, 0, append(strings.Fields(name), "--help")...).stdout
		for _, f := range flagName.FindAllString(help, -1) {
			known[f] = true
		}
		if name != "" && !strings.Contains(page, "`golem "+name) {
			t.Errorf("docs/commands.md does not have golem %s", name)
		}
	}
	for f := range known {
		if !strings.Contains(page, "`"+f) {
			t.Errorf("docs/commands.md does not have %s", f)
		}
	}
	for _, f := range flagName.FindAllString(page, -1) {
		if !known[f] {
			t.Errorf("docs/commands.md has %s, which no command takes", f)
		}
	}
	for _, m := range regexp.MustCompile("`golem ([a-z]+(?: [a-z]+)?)").FindAllStringSubmatch(page, -1) {
		name := m[1]
		if first, _, _ := strings.Cut(name, " "); first != "state" && first != "kept" {
			name = first
		}
		if !slices.Contains(commands(t), name) {
			t.Errorf("docs/commands.md has golem %s, which is no command", name)
		}
	}
}

// The page lists functions between two markers, each in backquotes.
func TestEveryFunctionOnTheLanguagePageIsThere(t *testing.T) {
	page := readPage(t, "../docs/language.md")
	_, list, ok := strings.Cut(page, "<!-- functions -->")
	list, _, ok2 := strings.Cut(list, "<!-- /functions -->")
	names := regexp.MustCompile("`([a-z0-9]+)`").FindAllStringSubmatch(list, -1)
	if !ok || !ok2 || len(names) < 50 {
		t.Fatalf("docs/language.md lists %d functions", len(names))
	}
	// A few at a time: golem shows the first hundred mistakes and counts the rest.
	for part := range slices.Chunk(names, 50) {
		said := callEach(t, append([][]string{{"", "nosuchfunction"}}, part...))
		for _, m := range part {
			if strings.Contains(said, fmt.Sprintf("no function named %q", m[1])) {
				t.Errorf("docs/language.md has the function %s, which golem does not know", m[1])
			}
		}
		if !strings.Contains(said, `no function named "nosuchfunction"`) {
			t.Errorf("an unknown function is not told in the words this test looks for:\n%s", said)
		}
	}
	for _, name := range functionsInTheSource(t) {
		if !strings.Contains(list, "`"+name+"`") {
			t.Errorf("docs/language.md does not have the function %s", name)
		}
	}
}

// callEach is what golem says of a scroll that calls each function without arguments,
// on one line.
func callEach(t *testing.T, names [][]string) string {
	t.Helper()
	var scroll strings.Builder
	for i, m := range names {
		fmt.Fprintf(&scroll, "file \"/etc/f%d\" { content = %s() }\n", i, m[1])
	}
	file := filepath.Join(t.TempDir(), "s.hcl")
	if err := os.WriteFile(file, []byte(scroll.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	said := call{}.must(t, 1, "validate", file).stderr
	return strings.Join(strings.Fields(said), " ")
}

// functionsInTheSource are the names under which functions are put into the language.
func functionsInTheSource(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../scrolls/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	named := regexp.MustCompile(`(?:all\["([a-z0-9]+)"\] = )|(?:\t| )"([a-z0-9]+)": +(?:[a-z]+\.[A-Za-z]+Func\b|[a-zA-Z0-9]+(?:Func|Text)\b|[a-zA-Z]+\()`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range named.FindAllStringSubmatch(readPage(t, file), -1) {
			names = append(names, m[1]+m[2])
		}
	}
	if len(names) < 80 {
		t.Fatalf("found only %d functions in the source: %v", len(names), names)
	}
	return names
}

// TestEveryYesOfTheTerraformPageHasItsTest: each row of docs/terraform.md says yes, other or
// no; other and no say why, and a yes names a test that there is.
func TestEveryYesOfTheTerraformPageHasItsTest(t *testing.T) {
	tests := testNames(t)
	rows := 0
	for _, line := range strings.Split(readPage(t, "../docs/terraform.md"), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| terraform |") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], "| ")
		}
		switch {
		case len(cells) < 3:
			t.Errorf("a row with too few cells: %s", line)
		case cells[1] == "yes":
			if name := cells[len(cells)-1]; !tests[name] {
				t.Errorf("%s: there is no test %q", cells[0], name)
			}
		case cells[1] != "other" && cells[1] != "no" || len(cells[2]) < 8:
			t.Errorf("neither yes, nor other or no with a reason: %s", line)
		}
	}
	if rows < 50 {
		t.Errorf("only %d rows", rows)
	}
}

// testNames are those of all tests, and of the scripts as "script NAME".
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasSuffix(path, "_test.go"):
			for _, m := range declared.FindAllStringSubmatch(readPage(t, path), -1) {
				names[m[1]] = true
			}
		case strings.HasSuffix(path, ".txtar"):
			names["script "+strings.TrimSuffix(filepath.Base(path), ".txtar")] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestModulesOfTheLanguagePageLoad writes the page's own example into a directory, with a
// module that the page leaves out, and validates it.
func TestModulesOfTheLanguagePageLoad(t *testing.T) {
	_, page, ok := strings.Cut(readPage(t, "../docs/language.md"), "\n## Modules\n")
	if !ok {
		t.Fatal("docs/language.md has no section about modules")
	}
	blocks := regexp.MustCompile("(?s)```hcl\n(.*?)```").FindAllStringSubmatch(page, 2)
	if len(blocks) != 2 {
		t.Fatalf("the section has %d blocks", len(blocks))
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.hcl": blocks[0][1], "modules/db/main.hcl": blocks[1][1],
		"modules/web/main.hcl": "variable \"port\" {}\nvariable \"database\" {}\nfile \"conf\" {\n  path = \"/etc/web-${var.port}\"\n  content = var.database\n}\n",
	} {
		path := filepath.Join(dir, "page", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := newStage(t)
	out := call{}.must(t, 0, "plan", "--root", s.root, filepath.Join(dir, "page")).stdout
	if !strings.Contains(out, "web[\"b\"]") || !strings.Contains(out, "127.0.0.1:5432") {
		t.Errorf("golem plan says\n%s", out)
	}
}

func TestExitCodesArePrintedInTheREADME(t *testing.T) {
	readme := readPage(t, "../README.md")
	for _, code := range []string{"0", "1", "2", "3", "4", "130"} {
		if !strings.Contains(readme, "\n| "+code+" |") {
			t.Errorf("README.md's table has no exit code %s", code)
		}
	}
}
