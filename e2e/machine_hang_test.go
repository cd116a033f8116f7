package e2e

import (
	"fmt"
	"testing"
)

// hanging is a script that never ends, nor do its child and its grandchild. The number
// finds them.
func hanging(n int) string {
	return fmt.Sprintf("sh -c 'sleep %d1 & sleep %d2' & sleep %d3\n", n, n, n)
}

// none fails if a process with such a command line lives on.
func (m *machine) none(what string) {
	m.t.Helper()
	m.sh("for i in 1 2 3 4 5 6 7 8 9 10; do pgrep -f '^" + what + "' >/dev/null || exit 0; sleep 0.2; done; ps axf >&2; exit 1")
}

func TestAPackageScriptThatHangsIsKilledWithAllItStarted(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "hangs-in", Postinst: hanging(4711)}, tiny{Name: "hangs-out", Prerm: "if test -e /run/well; then exit 0; fi\n" + hanging(4712)}, tiny{Name: "well"})
	found := m.print()
	policy := "policy {\n  timeout = \"4s\"\n  retry {\n    max_attempts = 1\n  }\n}\n"
	m.declare("scroll \"bad\" {\n" + policy + "apt \"hangs-in\" {}\n}\nscroll \"good\" {\n  apt \"well\" {}\n}\n")
	a := m.golem(3, "apply", "--auto-approve", site)
	m.none("sleep 4711")
	says(t, a.stdout, "still running after 4s")
	says(t, a.stdout, "apt-get")
	says(t, a.stdout, "settled good")
	if is := m.installed("hangs-in"); is != "" {
		t.Errorf("hangs-in is %s", is)
	}
	if m.installed("well") == "" {
		t.Error("the sibling did not settle")
	}

	m.declare("scroll \"out\" {\n" + policy + "apt \"hangs-out\" {}\n}\n")
	m.apply()
	before := m.print()
	m.declare(policy + "scroll \"other\" {\n  file \"/etc/other\" {\n    content = \"\"\n  }\n}\n")
	a = m.golem(3, "apply", "--auto-approve", site)
	m.none("sleep 4712")
	says(t, a.stdout, "still running after 4s")
	m.sh("rm /etc/other")
	m.same("after a removal that hung", before)
	m.write("/run/well", "")
	m.destroy()
	m.sh("rm /run/well")
	m.same("after destroy", found)
}

func TestAUnitThatNeverGetsReadyIsGivenUp(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.unit("hangs.service", "[Service]\nType=notify\nTimeoutStartSec=infinity\nExecStart=/bin/sh -c 'sleep 47131 & sleep 47132'\n")
	found := m.print()
	m.declare(`scroll "bad" {
  policy {
    timeout = "2s"
    retry {
      max_attempts = 2
      base_delay   = "10ms"
    }
  }
  file "/etc/before" {
    content = ""
  }
  service "hangs" {
    state = "running"
  }
}
scroll "good" {
  file "/etc/good" {
    content = ""
  }
}
`)
	a := m.golem(3, "apply", "--auto-approve", site)
	says(t, a.stdout, "still running after 2s")
	says(t, a.stdout, "systemctl")
	says(t, a.stdout, "hangs.service")
	m.none("sleep 4713")
	if state := m.active("hangs.service"); state != "inactive" {
		t.Errorf("the unit is %s", state)
	}
	if m.exists("/etc/before") || !m.exists("/etc/good") {
		t.Error("the leaf is not what it was, or its sibling did not settle")
	}
	m.destroy()
	m.same("after destroy", found)
}
