package e2e

import (
	"strings"
	"testing"
)

// A line in a file that a package of the same run brings: the plan does not promise that
// golem makes it.
func TestALineInTheFileOfAPackageThatComesIsToldTruly(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(shipsTiny, tiny{Name: "other"})
	found := m.print()
	line := func(path string) string {
		return "line \"l\" {\n  path = \"" + path + "\"\n  line = \"golem's\"\n}\n"
	}
	m.declare("apt \"ships\" {}\n" + line("/etc/x/ships.conf"))
	plan := strings.Join(strings.Fields(m.plan()), " ")
	says(t, plan, "added; the file is made for it, mode 0644, unless apt:ships brings it")
	m.apply()
	if got := m.read("/etc/x/ships.conf"); got != "# of the package\ngolem's\n" {
		t.Errorf("the file is %q", got)
	}
	m.settled()
	m.destroy()
	m.same("after destroy", found)

	// The one that is named like the path, of several; none, where none ships anything, and
	// where the package comes after the line.
	for _, c := range [][2]string{
		{"apt \"other\" {}\nfile \"/etc/one\" {\n  content = \"\"\n}\napt \"ships\" {}\n" + line("/etc/x/ships.conf"), "unless apt:ships brings it"},
		{"apt \"other\" {}\nfile \"/etc/one\" {\n  content = \"\"\n}\napt \"ships\" {}\n" + line("/etc/y/conf"), "unless apt:other or apt:ships brings it"},
		{"apt \"ships\" {}\n" + line("/srv/x.conf"), ""},
		{line("/etc/x/y.conf") + "apt \"ships\" {}\n", ""},
	} {
		m.declare(c[0])
		plan := strings.Join(strings.Fields(m.plan()), " ")
		says(t, plan, "added; the file is made for it, mode 0644")
		if c[1] != "" {
			says(t, plan, c[1])
		} else if strings.Contains(plan, "unless") {
			t.Errorf("it tells of a package:\n%s", plan)
		}
	}
}
