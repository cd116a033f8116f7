package e2e

import (
	"strings"
	"testing"
)

// TestRollbackBringsARealHostBack: packages, units, files and a process as an earlier
// revision left them; what golem stopped since runs again; and the found state is what
// destroy still gives back.
func TestRollbackBringsARealHostBack(t *testing.T) {
	t.Parallel()
	m := lawHost(t)
	found := m.print()
	m.declare(`
scroll "one" {
  apt "law-a" {}
  file "/etc/law.conf" {
    content = "first\n"
  }
  service "law-idle" {
    state   = "running"
    enabled = true
  }
  process "law-own" {
    command = ["/bin/sleep", "infinity"]
  }
}
`)
	m.apply()
	first := timeless(m.print())
	m.declare(`
scroll "one" {
  file "/etc/law.conf" {
    content = "second\n"
  }
  apt "law-d" {}
  process "law-own" {
    command = ["/bin/sleep", "1000000"]
  }
}
scroll "two" {
  service "law-busy" {
    state = "stopped"
  }
}
`)
	m.apply()
	m.declare("scroll \"two\" {\n  line \"l\" {\n    path = \"/etc/hosts\"\n    line = \"10.9.9.9 law\"\n  }\n}\n")
	m.apply()
	if m.active("law-busy.service") == "active" {
		t.Fatal("the unit was not stopped")
	}
	a := m.golem(0, "rollback", "--to", "1", "--auto-approve")
	saysAll(t, a.stdout, "golem plan · web on host1 · revision 3 → 4 · back to revision 1",
		"start law-busy.service golem stopped it since the revision that this goes back to",
		"The scroll's files are as they were: the next apply of them goes forward again.")
	if diff := difference(first, timeless(m.print())); diff != "" {
		t.Errorf("rolled back, the host is not as revision 1 left it:\n%s", diff)
	}
	says(t, m.golem(0, "rollback", "--to", "1").stdout, "No changes.")
	if row := m.golem(0, "history").stdout; !strings.Contains(row, "rollback to 1") {
		t.Errorf("history says\n%s", row)
	}
	m.destroy()
	m.same("after destroy", found)
}
