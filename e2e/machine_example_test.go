package e2e

import (
	"fmt"
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

// page is what a web server in the machine answers.
func (m *machine) page(port int) string {
	m.t.Helper()
	return m.must("bash", "-c", fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/%d && printf 'GET / HTTP/1.0\r\n\r\n' >&3 && cat <&3`, port))
}

func TestExampleNginxSiteServesReloadsAndComesBack(t *testing.T) {
	t.Parallel()
	m := boot(t)
	scroll := m.example("nginx-site")
	found := m.print()
	plan := m.golem(0, "plan", scroll).stdout
	says(t, plan, "+ apt:nginx-light install version")
	says(t, plan, "nginx-common") // pulled in, and named
	says(t, plan, "service:nginx.service install comes with apt:nginx-light")
	says(t, plan, "Units start nginx.service")
	m.same("after plan", found)
	m.golem(0, "apply", "--auto-approve", scroll)
	says(t, m.page(8080), "<h1>It works</h1>")
	says(t, m.golem(0, "plan", scroll).stdout, "No changes.")

	// A change is read by a reload: the server is the same process, and answers throughout.
	pid := m.must("systemctl", "show", "-P", "MainPID", "nginx.service")
	client := m.start("bash", "-c", `while sleep 0.02; do
		exec 3<>/dev/tcp/127.0.0.1/80 && printf 'GET / HTTP/1.0\r\n\r\n' >&3 && grep -q 'HTTP/1.1 200' <&3 || { echo "no answer"; exit 1; }
		exec 3<&-
	done`)
	args := []string{scroll, "--var", "port=8081"}
	says(t, m.golem(0, append([]string{"plan"}, args...)...).stdout, "reload nginx.service file:/etc/nginx/conf.d/hello.conf changes")
	m.golem(0, append([]string{"apply", "--auto-approve"}, args...)...)
	says(t, m.page(8081), "<h1>It works</h1>")
	if now := m.must("systemctl", "show", "-P", "MainPID", "nginx.service"); now != pid {
		t.Errorf("nginx was started anew: %s, then %s", pid, now)
	}
	if client.ProcessState != nil || strings.Contains(client.Stdout.(*syncBuffer).String(), "no answer") {
		t.Error("a client got no answer while the site changed")
	}
	m.signal(client, 9)

	says(t, m.golem(0, "plan", "--destroy", scroll).stdout, "stop nginx.service")
	m.golem(0, "destroy", "--auto-approve", scroll)
	m.sh("rm -r /var/www") // a first page that nginx's scripts make, outside dpkg's knowledge
	m.same("after destroy", found)
}

func TestExampleSshdIsReloadedAndNeverStopped(t *testing.T) {
	t.Parallel()
	m := boot(t)
	scroll := m.example("sshd")
	found := m.print()
	pid := m.must("systemctl", "show", "-P", "MainPID", "ssh.service")
	says(t, m.golem(0, "plan", scroll).stdout, "Units reload ssh.service")
	m.golem(0, "apply", "--auto-approve", scroll)
	says(t, m.must("sshd", "-T"), "passwordauthentication no")
	if log := m.must("journalctl", "-u", "ssh.service", "-o", "cat", "--no-pager"); strings.Count(log, "Received SIGHUP") != 1 {
		t.Errorf("sshd was not reloaded once:\n%s", log)
	}
	says(t, m.golem(0, "plan", "--destroy", scroll).stdout, "forget ssh.service")
	m.golem(0, "destroy", "--auto-approve", scroll)
	if now := m.must("systemctl", "show", "-P", "MainPID", "ssh.service"); now != pid {
		t.Errorf("sshd was started anew: %s, then %s", pid, now)
	}
	m.same("after destroy", found)
}
