package e2e

import (
	"strings"
	"testing"
)

// A package that golem brought and that ships a directory of its own, with a conffile.
var shipsTiny = tiny{
	Name: "ships", Files: map[string]string{"/etc/x/ships.conf": "# of the package\n"}, Conffiles: []string{"/etc/x/ships.conf"},
}

func TestAFileInItsPackagesOwnDirectoryOutlivesThePackage(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(shipsTiny)
	found := m.print()
	for _, name := range []string{"ships.conf", "other.conf"} {
		file := "file \"/etc/x/" + name + "\" {\n  content = \"golem's\\n\"\n}\n"
		m.declare("apt \"ships\" {}\n" + file)
		m.apply()
		m.declare(file)
		m.apply()
		if m.read("/etc/x/"+name) != "golem's\n" || m.installed("ships") != "" {
			t.Errorf("%s: the package is %q", name, m.installed("ships"))
		}
		says(t, m.plan(), "No changes.")
		m.destroy()
		m.same(name+": after destroy", found)
	}
}

func TestAnUpgradeWhoseOldVersionIsNowhereHoldsNothingUp(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "vv", Version: "1.0"})
	m.must("apt-get", "install", "-qy", "vv")
	m.sh("apt-get clean")
	m.repoDrop("vv", "1.0")
	m.repo(tiny{Name: "vv", Version: "2.0"})
	m.declare("apt \"vv\" {\n  version = \"2.0\"\n}\nfile \"/etc/other\" {\n  content = \"\"\n}\n")
	says(t, m.plan(), "cannot be undone")
	m.apply()
	plan := m.plan("--destroy")
	says(t, plan, "it stays at 2.0")
	m.destroy()
	if m.exists("/etc/other") || m.installed("vv") != "install ok installed 2.0" {
		t.Errorf("/etc/other is there: %v, vv is %q", m.exists("/etc/other"), m.installed("vv"))
	}
}

func TestTheUnitsOfAPackageAreToldTruly(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(unitPackage("aa"))
	found := m.print()
	// Its scripts start it, and the plan does not say that nothing changes.
	m.declare("apt \"aa\" {}\nservice \"aa\" {\n  state   = \"stopped\"\n  enabled = false\n}\n")
	plan := m.plan()
	says(t, plan, "service:aa.service install comes with apt:aa; made as declared when it is there")
	says(t, plan, "stop aa.service declared stopped, if what brings it starts it")
	m.apply()
	if m.active("aa.service") != "inactive" || m.enabled("aa.service") != "disabled" {
		t.Errorf("aa is %s and %s", m.active("aa.service"), m.enabled("aa.service"))
	}
	// A service does not stay declared when the package that brings its unit goes.
	m.declare("service \"aa\" {\n  state   = \"stopped\"\n  enabled = false\n}\n")
	says(t, m.golem(1, "plan", site).stderr, "takes apt:aa away, which brings aa.service")
	m.destroy()
	m.same("after destroy", found)
}

func TestARestartTellsWhatIsBoundToIt(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.unit("x.service", sleeper)
	m.unit("part.service", "[Unit]\nPartOf=x.service\n"+sleeper)
	m.unit("needs.service", "[Unit]\nRequires=x.service\n"+sleeper)
	m.sh("systemctl start x part needs")
	m.declare("file \"/etc/x.conf\" {\n  content = \"\"\n}\nservice \"x\" {\n  restart_on = [\"file:/etc/x.conf\"]\n}\n")
	plan := m.plan()
	for _, unit := range []string{"x", "part", "needs"} {
		says(t, plan, "restart "+unit+".service")
	}
	report := m.apply().stdout
	for _, unit := range []string{"x", "part", "needs"} {
		says(t, report, unit+".service restarted:")
	}
}

// What a kept leaf's transaction could do without the package that fails is done, and is
// not told as somebody else's doing.
func TestAKeptLeafKeepsThePackagesBeforeTheOneThatFails(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "aa"}, tiny{Name: "bad", Postinst: "exit 1"})
	m.declare(`scroll "s" {
  policy {
    on_exhaust = "keep"
    retry {
      max_attempts = 1
    }
  }
  apt "aa" {}
  apt "bad" {}
}
`)
	a := m.golem(3, "apply", "--auto-approve", site)
	if strings.Contains(a.stdout, "host moved") {
		t.Errorf("golem takes its own doing for another's:\n%s", a.stdout)
	}
	if m.installed("bad") != "" {
		t.Errorf("bad is %q", m.installed("bad"))
	}
}
