package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestHelpFitsATerminal: the help of every command is at most 80 columns wide.
func TestHelpFitsATerminal(t *testing.T) {
	for _, name := range append(commands(t), "") {
		help := call{}.must(t, 0, append(strings.Fields(name), "--help")...).stdout
		for line := range strings.Lines(help) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("golem %s --help has a line of %d columns: %s", name, n, line)
			}
		}
	}
}

// helpExamples are the lines that a command's help shows.
func helpExamples(t *testing.T, name string) []string {
	t.Helper()
	help := call{}.must(t, 0, append(strings.Fields(name), "--help")...).stdout
	_, section, _ := strings.Cut(help, "EXAMPLES:\n")
	section, _, _ = strings.Cut(section, "\n\n")
	var lines []string
	for _, line := range strings.Split(section, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		t.Errorf("golem %s --help has no example", name)
	}
	return lines
}

// needsSystemd are examples of what only a live host can do: TestHelpExamplesOfALiveHost runs
// them.
func needsSystemd(line string) bool {
	return slices.ContainsFunc([]string{"--confirm-within", "--unconfirmed", "--scan"}, func(flag string) bool { return strings.Contains(line, flag) })
}

const exampleScroll = `name = "web"

variable "port" {
  type    = number
  default = 8080
}

scroll "base" {
  file "/etc/motd" {
    content = "hello, port ${var.port}\n"
  }
  line "db" {
    path = "/etc/hosts"
    line = "10.0.0.5 db"
  }
}

scroll "nginx" {
  file "/etc/nginx/nginx.conf" {
    content = "listen ${var.port};\n"
  }
  link "/etc/nginx/on" {
    target = "/etc/nginx/nginx.conf"
  }
}
`

// TestEveryExampleOfEveryHelpRuns runs each line as it stands, where web@2 is in force and an
// edit by hand was displaced. "yes" is said beforehand, and what goes to a path of the host goes
// to one of the test's.
func TestEveryExampleOfEveryHelpRuns(t *testing.T) {
	t.Parallel()
	ran := 0
	for _, name := range append(commands(t), "") {
		lines := helpExamples(t, name)
		ran += len(lines)
		t.Run("golem "+name, func(t *testing.T) {
			t.Parallel()
			r := exampleRunner(t)
			for i, line := range lines {
				if i > 0 && slices.Contains([]string{"apply", "destroy"}, name) {
					r = exampleRunner(t) // what the line before it did is not undone
				}
				if !needsSystemd(line) {
					r.sh(t, strings.NewReplacer("> /", "> "+r.dir+"/host/", "~/", r.dir+"/host/root/").Replace(line))
				}
			}
		})
	}
	if ran < 40 {
		t.Errorf("only %d examples", ran)
	}
}

// exampleRunner is a place where the examples make sense.
func exampleRunner(t *testing.T) *runner {
	t.Helper()
	r := newRunner(t)
	bin := readPage(t, filepath.Join(r.dir, "bin/golem"))
	approved := strings.Replace(bin, "exec", "case \"$1\" in apply|destroy|rollback) set -- \"$@\" --auto-approve;; esac\nexec", 1)
	r.write(t, "bin/golem", approved, 0o755)
	for _, dir := range []string{"etc/bash_completion.d", "usr/local/share/zsh/site-functions", "root/.config/fish/completions"} {
		if err := os.MkdirAll(filepath.Join(r.dir, "host", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{
		"web.hcl": exampleScroll, "expressions": "var.port + 1\n", "tree/etc/hosts": "127.0.0.1 localhost\n",
		"tree/etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "tree/etc/group": "root:x:0:\n", "tree/etc/issue": "Debian\n", "tree/root/.keep": "",
	} {
		r.write(t, path, text, 0o644)
	}
	r.sh(t, "golem apply web.hcl >apply.txt")
	r.write(t, "tree/etc/motd", "by hand\n", 0o644)
	r.sh(t, "golem apply --var port=80 web.hcl >apply.txt; golem plan --out web.plan web.hcl >plan.txt")
	return r
}

// TestExplainIsWrappedAtATerminal reads every kind's page at 80 columns: no word is cut but in
// code and addresses, and every argument is there.
func TestExplainIsWrappedAtATerminal(t *testing.T) {
	t.Parallel()
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../docs/kinds/*.md")
	if err != nil || len(pages) < 16 {
		t.Fatal(err, pages)
	}
	argument := regexp.MustCompile("(?m)^\\| (`[a-z_0-9]+`) \\|")
	for _, page := range append(pages, "") {
		kind := strings.TrimSuffix(filepath.Base(page), ".md")
		term := newTerminal(t, 80)
		cmd := exec.Command(bin, "explain", kind)
		if page == "" {
			cmd.Args = cmd.Args[:2]
		}
		cmd.Stdout, cmd.Stderr = term.tty, term.tty
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		shown, fenced := term.ended(), false
		for _, line := range strings.Split(shown, "\n") {
			if fenced = fenced != strings.HasPrefix(line, "```"); !fenced && utf8.RuneCountInString(line) > 80 {
				t.Errorf("golem explain %s has a line of %d columns: %s", kind, utf8.RuneCountInString(line), line)
			}
		}
		if page == "" {
			continue
		}
		for _, m := range argument.FindAllStringSubmatch(readPage(t, page), -1) {
			if !strings.Contains(shown, "\n"+m[1]+": ") {
				t.Errorf("golem explain %s does not show %s", kind, m[1])
			}
		}
	}
}
