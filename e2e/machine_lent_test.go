package e2e

import "testing"

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
