package e2e

import (
	"strings"
	"testing"
)

// reader is a leaf of a file and programs that read it as they start: a process of golem's
// own, and a unit whose file is in the leaf, too.
func reader(word, state, check string) string {
	return `
scroll "reader" {
  policy {
    retry {
      max_attempts = 1
    }
  }
  file "/etc/reader.conf" {
    content = "` + word + `\n"
  }
  process "own" {
    command = ["/bin/sh", "-c", "cat /etc/reader.conf > /run/own.read; exec sleep 1000000", "` + word + `"]
  }
  file "/etc/systemd/system/theirs.service" {
    content = "[Service]\nExecStart=/bin/sh -c 'cat /etc/reader.conf > /run/theirs.read; exec sleep 1000000' ` + word + `\n"
  }
  service "theirs.service" {
    state = "` + state + `"
  }
` + check + `
}
`
}

// TestEveryWayBackStartsWhatRunsOnTheOldFiles: a failed leaf, a recovery, a return and a
// rollback. What they start again reads the files that were put back, and runs by the
// unit files that were put back, though the scroll has the files first.
func TestEveryWayBackStartsWhatRunsOnTheOldFiles(t *testing.T) {
	slow := "  check \"command\" {\n    run     = [\"sleep\", \"100\"]\n    timeout = \"100s\"\n  }"
	for name, back := range map[string]func(m *machine){
		"a failed leaf": func(m *machine) {
			m.declare(reader("new", "stopped", "  check \"command\" {\n    run = [\"false\"]\n  }"))
			m.golem(3, "apply", "--auto-approve", site)
		},
		"a recovery": func(m *machine) {
			m.declare(reader("new", "stopped", slow))
			run := m.start("golem", "apply", "--auto-approve", site)
			m.until("the check runs", func() bool { return m.run("pgrep", "-f", "^sleep 100$").code == 0 })
			m.signal(run, 9)
			m.sh("pkill -KILL -f '^sleep 100$' || true")
			m.golem(0, "recover")
		},
		"a return": func(m *machine) {
			m.declare(reader("new", "stopped", ""))
			m.apply("--confirm-within", "1h")
			m.golem(0, "recover", "--unconfirmed")
		},
		"a return after a kill": func(m *machine) {
			m.declare(reader("new", "stopped", slow))
			run := m.start("golem", "apply", "--auto-approve", "--confirm-within", "1h", site)
			m.until("the check runs", func() bool { return m.run("pgrep", "-f", "^sleep 100$").code == 0 })
			m.signal(run, 9)
			m.sh("pkill -KILL -f '^sleep 100$' || true")
			m.golem(0, "recover", "--unconfirmed")
		},
		"a rollback": func(m *machine) {
			m.declare(reader("new", "stopped", ""))
			m.apply()
			m.golem(0, "rollback", "--auto-approve", "--to", "1")
		},
		"a rollback to before the service": func(m *machine) {
			m.declare(strings.Replace(reader("old", "running", ""), "service \"theirs.service\" {\n    state = \"running\"\n  }", "", 1))
			m.apply() // it was found running, and is left so
			m.declare(reader("new", "stopped", ""))
			m.apply()
			m.golem(0, "rollback", "--auto-approve", "--to", "2")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := boot(t)
			if name == "a rollback to before the service" {
				m.write("/etc/systemd/system/theirs.service", "[Service]\nExecStart=/bin/sh -c 'cat /etc/reader.conf > /run/theirs.read; exec sleep 1000000' old\n")
				m.write("/etc/reader.conf", "old\n")
				m.sh("systemctl daemon-reload; systemctl start theirs.service")
			}
			m.declare(reader("old", "running", ""))
			m.apply()
			was := m.print()
			m.sh("rm -f /run/own.read /run/theirs.read")
			back(m)
			if now := m.print(); strings.Contains(name, "rollback") { // which writes the files anew
				if diff := difference(timeless(was), timeless(now)); diff != "" {
					t.Errorf("gone back, the host is not as it was:\n%s", diff)
				}
			} else if diff := difference(was, now); diff != "" {
				t.Errorf("gone back, the host is not as it was:\n%s", diff)
			}
			for _, unit := range []string{"own", "theirs"} {
				if m.active(unit+".service") != "active" {
					t.Errorf("%s does not run", unit)
				}
				if read := m.sh("cat /run/" + unit + ".read"); read != "old\n" {
					t.Errorf("%s runs with what it read of the files that went: %q", unit, read)
				}
				if line := m.sh("tr '\\0' ' ' < /proc/$(systemctl show -P MainPID " + unit + ".service)/cmdline"); strings.Contains(line, "new") {
					t.Errorf("%s runs as %q", unit, line)
				}
			}
			says(t, m.golem(0, "plan", "--destroy", site).stdout, "Plan:")
			m.golem(0, "state", "check")
		})
	}
}

// TestSSHDComesBackOnItsOwnConfiguration: sshd stopped, on a configuration that it cannot
// start with: the way back puts that right before it starts it.
func TestSSHDComesBackOnItsOwnConfiguration(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.sh("systemctl start ssh.service")
	was := m.print()
	bad := "scroll \"ssh\" {\n  policy {\n    retry {\n      max_attempts = 1\n    }\n  }\n  file \"/etc/ssh/sshd_config.d/00-x.conf\" {\n    content = \"BrokenOption yes\\n\"\n  }\n  service \"ssh.service\" {\n    state = \"stopped\"\n  }\n%s}\n"
	m.declare(strings.Replace(bad, "%s", "  check \"command\" {\n    run = [\"false\"]\n  }\n", 1))
	m.golem(3, "apply", "--auto-approve", site)
	m.same("rolled back", was)
	m.declare(strings.Replace(bad, "%s", "", 1))
	m.apply("--confirm-within", "1s")
	m.returned()
	m.same("taken back", was)
}
