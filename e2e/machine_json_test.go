package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// everyKind is a scroll of all kinds, over what lawHost has.
const everyKind = `
scroll "one" {
  apt "law-a" {}
  apt "law-u" {
    hold = true
  }
  file "/etc/law.conf" {
    content = "golem's\n"
  }
  service "law-idle" {
    state   = "running"
    enabled = true
    masked  = false
  }
}
scroll "two" {
  service "law-busy" {
    restart_on = ["file:/etc/law.conf"]
  }
  process "law-own" {
    command = ["/bin/sleep", "infinity"]
  }
  process "law-timed" {
    command  = ["/bin/true"]
    schedule = "daily"
  }
  check "tcp" {
    address = "127.0.0.1:22"
  }
}
`

// TestJSONOfEveryKindFitsItsSchema: plan and report of an install, a repair and a destroy
// of all kinds, strictly; and the report's changes and units are the plan's.
func TestJSONOfEveryKindFitsItsSchema(t *testing.T) {
	t.Parallel()
	m := lawHost(t)
	v := newValidator()
	m.declare(everyKind)
	for _, act := range []struct{ name, before string }{
		{"apply", "true"},
		{"apply", "systemctl stop law-idle; systemctl disable -q law-own; apt-mark auto law-a >/dev/null"},
		{"destroy", "true"},
	} {
		m.sh(act.before)
		args := []string{"plan", "--json", site}
		if act.name == "destroy" {
			args = append(args, "--destroy")
		}
		plan := v.fits(t, "plan.schema.json", m.golem(0, args...).stdout)
		a := m.golem(0, act.name, "--auto-approve", "--json", site)
		report := reportOf(t, v, a.stdout)
		for _, part := range []string{"changes", "units", "due", "by_products", "summary"} {
			planned, _ := json.Marshal(plan[part])
			done, _ := json.Marshal(report[part])
			if string(planned) != string(done) {
				t.Errorf("%s after %q: the plan's %s are\n%s\nand the report's\n%s", act.name, act.before, part, planned, done)
			}
		}
		if len(plan["changes"].([]any)) == 0 || !strings.Contains(a.stdout, `"outcome":"settled"`) {
			t.Errorf("%s after %q:\n%s", act.name, act.before, a.stdout)
		}
	}
}
