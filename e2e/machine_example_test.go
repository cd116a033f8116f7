package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// example copies an example into the machine, and says where it lies there.
func (m *machine) example(name string) string {
	m.t.Helper()
	root := filepath.Join("..", "examples", name)
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		m.write("/root/"+name+"/"+rel, string(text))
		return err
	})
	m.check(err)
	return "/root/" + name
}

func TestExampleNginxSiteServesReloadsAndComesBack(t *testing.T) {
	t.Parallel()
	m := boot(t)
	found := m.print()
	scroll := m.example("nginx-site")
	t.Log(m.golem(0, "plan", scroll).stdout)
	t.Log(m.golem(0, "apply", "--auto-approve", scroll).stdout)
	t.Log(m.golem(0, "plan", scroll).stdout)
	t.Log(m.golem(0, "plan", scroll, "--var", "port=8081").stdout)
	t.Log(m.golem(0, "apply", "--auto-approve", scroll, "--var", "port=8081").stdout)
	t.Log(m.golem(0, "destroy", "--auto-approve", scroll).stdout)
	m.sh("rm -r " + scroll)
	m.same("after destroy", found)
	_ = strings.TrimSpace
}
