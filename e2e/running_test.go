package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A runner runs the snippets of docs/running.md: golem acts on a tree, and /etc/golem/web is
// a scroll in it.
type runner struct{ dir string }

func newRunner(t *testing.T) *runner {
	t.Helper()
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{t.TempDir()}
	r.write(t, "bin/golem", "#!/bin/sh\nexec "+bin+" --root "+r.dir+"/tree \"$@\"\n", 0o755)
	r.write(t, "bin/gh", "#!/bin/sh\necho \"$@\"; cat \"$5\"\n", 0o755)
	r.write(t, "web/web.hcl", "name = \"web\"\n\nfile \"/etc/motd\" {\n  content = \"hello\\n\"\n}\n", 0o644)
	for _, dir := range []string{"tree/etc", "cron.d", "system"} {
		if err := os.MkdirAll(filepath.Join(r.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *runner) write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// sh runs a snippet, and returns what it prints.
func (r *runner) sh(t *testing.T, text string, env ...string) string {
	t.Helper()
	cmd := exec.Command("bash", "-euc", strings.ReplaceAll(text, "/etc/golem/web", "web"))
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), append(env, "PATH="+r.dir+"/bin:"+os.Getenv("PATH"))...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%s\n%v", text, out, err)
	}
	return string(out)
}

// snippet is the block of a page behind a marker.
func snippet(t *testing.T, page, name string) string {
	t.Helper()
	from, to, err := block(page, "<!-- run: "+name+" -->")
	if err != nil {
		t.Fatal(err)
	}
	return page[from:to]
}

// TestRunningPagesSnippetsDoWhatThePageSays runs every snippet of docs/running.md.
func TestRunningPagesSnippetsDoWhatThePageSays(t *testing.T) {
	page := readPage(t, "../docs/running.md")
	command := func(t *testing.T, r *runner, file string, pattern string) string {
		t.Helper()
		text := readPage(t, filepath.Join(r.dir, file))
		m := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("%s holds no command:\n%s", file, text)
		}
		return m[1]
	}
	t.Run("cron", func(t *testing.T) {
		r := newRunner(t)
		r.sh(t, snippet(t, page, "cron"))
		line := command(t, r, "cron.d/golem", `(?m)^17 \* \* \* \* root /usr/local/bin/(golem .*)$`)
		if out := r.sh(t, line); !strings.Contains(out, "file:/etc/motd") {
			t.Errorf("the first run says\n%s", out)
		}
		if out := r.sh(t, line); out != "" {
			t.Errorf("a run with nothing to do says\n%s", out)
		}
		drift := snippet(t, page, "drift")
		if out := r.sh(t, drift); out != "" {
			t.Errorf("without drift it says\n%s", out)
		}
		r.write(t, "tree/etc/motd", "by hand\n", 0o644)
		if out := r.sh(t, drift); !strings.Contains(out, "changed by hand") {
			t.Errorf("with drift it says\n%s", out)
		}
	})
	t.Run("timer", func(t *testing.T) {
		r := newRunner(t)
		r.sh(t, snippet(t, page, "timer"))
		line := command(t, r, "system/golem.service", `(?m)^ExecStart=/usr/local/bin/(golem .*)$`)
		if out := r.sh(t, line); !strings.Contains(out, "file:/etc/motd") {
			t.Errorf("the first run says\n%s", out)
		}
	})
	t.Run("pull request", func(t *testing.T) {
		r := newRunner(t)
		var job struct {
			Jobs map[string]struct {
				Steps []struct {
					Run string
					Env map[string]string
				}
			}
		}
		if err := yaml.Unmarshal([]byte(snippet(t, page, "pull request")), &job); err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, step := range job.Jobs["plan"].Steps {
			if step.Run != "" {
				said = r.sh(t, step.Run, "PR=7")
			}
		}
		if !strings.HasPrefix(said, "pr comment 7 --body-file plan.md\n### golem plan · web on ") || !strings.Contains(said, "+   file:/etc/motd") {
			t.Errorf("the comment is\n%s", said)
		}
	})
	t.Run("approval", func(t *testing.T) {
		r := newRunner(t)
		r.sh(t, snippet(t, page, "approval"))
		if got := readPage(t, filepath.Join(r.dir, "tree/etc/motd")); got != "hello\n" {
			t.Errorf("the file holds %q", got)
		}
	})
}
