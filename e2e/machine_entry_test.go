package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestRealProgramsReadWhatGolemEdited: sshd, systemd and nginx read of shared files what was
// declared, refuse nothing, and the files come back to the byte.
func TestRealProgramsReadWhatGolemEdited(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.sh("systemctl start ssh.service; mkdir -p /etc/docker")
	m.write("/etc/docker/daemon.json", "{\n  \"log-driver\": \"journald\",   \"hosts\": [\"unix:///run/docker.sock\"]\n}\n")
	m.write("/etc/systemd/system/theirs.service", "[Unit]\nDescription=theirs\n\n[Service]\n# as they like it\nExecStart=/bin/sleep 1000000\nEnvironment=A=1\n")
	m.sh("systemctl daemon-reload")
	found := m.print()
	m.declare(`
scroll "shared" {
  entry "root" {
    path     = "/etc/ssh/sshd_config"
    format   = "keyword"
    key      = ["PermitRootLogin"]
    value    = "no"
    validate = ["sshd", "-t", "-f", "%s"]
  }
  entry "git" {
    path     = "/etc/ssh/sshd_config"
    format   = "keyword"
    key      = ["Match User git", "PermitTTY"]
    value    = "no"
    validate = ["sshd", "-t", "-f", "%s"]
  }
  entry "nice" {
    path     = "/etc/systemd/system/theirs.service"
    format   = "ini"
    key      = ["Service", "Nice"]
    value    = 5
    validate = ["systemd-analyze", "verify", "%s"]
  }
  entry "environment" {
    path   = "/etc/systemd/system/theirs.service"
    format = "ini"
    key    = ["Service", "Environment"]
    member = "B=2"
  }
  entry "mirrors" {
    path   = "/etc/docker/daemon.json"
    key    = ["registry-mirrors"]
    member = "https://mirror.example"
  }
  entry "log" {
    path  = "/etc/docker/daemon.json"
    key   = "log-opts.max-size"
    value = "10m"
  }
  service "theirs.service" {
    state      = "running"
    restart_on = ["entry:/etc/systemd/system/theirs.service:*"]
  }
}
scroll "web" {
  apt "nginx-light" {
    purge = true
  }
  region "site" {
    path     = "/etc/nginx/nginx.conf"
    content  = "server { listen 8081; return 204; }"
    after    = "^http \\{"
    validate = ["nginx", "-t", "-c", "%s"]
  }
  service "nginx.service" {
    reload_on = ["region:/etc/nginx/nginx.conf:*"]
  }
}
`)
	a := m.run("golem", "apply", "--auto-approve", site)
	if a.code != 0 {
		t.Fatalf("exit %d\n%s%s", a.code, a.stdout, a.stderr)
	}
	saysAll(t, m.must("sshd", "-T"), "permitrootlogin no", "permittty yes")
	says(t, m.must("sshd", "-T", "-C", "user=git,host=h,addr=1.2.3.4"), "permittty no")
	for name, want := range map[string]string{"Nice": "5", "Environment": "A=1 B=2"} {
		if got := strings.TrimSpace(m.must("systemctl", "show", "-P", name, "theirs.service")); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	var docker map[string]any
	m.check(json.Unmarshal([]byte(m.read("/etc/docker/daemon.json")), &docker))
	if got, err := json.Marshal(docker); err != nil || string(got) != `{"hosts":["unix:///run/docker.sock"],"log-driver":"journald","log-opts":{"max-size":"10m"},"registry-mirrors":["https://mirror.example"]}` {
		t.Errorf("the daemon would read %s, %v", got, err)
	}
	m.must("nginx", "-t")
	says(t, m.golem(0, "plan", site).stdout, "No changes.")

	// What the program refuses does not come near the file.
	was := m.read("/etc/ssh/sshd_config")
	m.declare("scroll \"shared\" {\n  policy {\n    on_exhaust = \"keep\"\n  }\n  entry \"root\" {\n    path     = \"/etc/ssh/sshd_config\"\n    format   = \"keyword\"\n    key      = [\"PermitRootLogin\"]\n    value    = \"perhaps\"\n    validate = [\"sshd\", \"-t\", \"-f\", \"%s\"]\n  }\n}\n")
	says(t, m.golem(3, "apply", "--auto-approve", site).stdout, "perhaps")
	if now := m.read("/etc/ssh/sshd_config"); now != was && !strings.Contains(now, "PermitRootLogin") {
		t.Errorf("sshd_config is now\n%s", now)
	}
	m.destroy()
	m.sh("rm -r /var/www") // nginx's own script makes it
	m.same("after destroy", found)
}
