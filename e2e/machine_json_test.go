package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
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

// failing is a scroll whose first leaf stops and starts units before its package fails, and
// whose second keeps what came before a unit that fails.
const failing = `
scroll "one" {
  policy {
    retry {
      max_attempts = 2
      base_delay   = "10ms"
    }
  }
  service "law-busy" {
    state = "stopped"
  }
  service "law-idle" {
    state = "running"
  }
  apt "law-a" {}
  apt "bad" {}
  file "/etc/never" {
    content = "never\n"
  }
}
scroll "two" {
  policy {
    on_exhaust = "keep"
    retry {
      max_attempts = 1
    }
  }
  file "/etc/law.conf" {
    content = "golem's\n"
  }
  process "law-own" {
    command = ["/bin/sh", "-c", "echo no good; exit 3"]
    restart = "no"
  }
}
`

// TestJSONOfAFailingRunFitsItsSchema: what failed, what was taken back, kept and never
// reached, why, and that units moved there and back.
func TestJSONOfAFailingRunFitsItsSchema(t *testing.T) {
	t.Parallel()
	m := lawHost(t)
	m.repo(tiny{Name: "law-a"}, tiny{Name: "bad", Postinst: "echo it is no good >&2\nexit 7\n"})
	busy, idle := m.active("law-busy"), m.active("law-idle")
	m.declare(failing)
	a := m.golem(3, "apply", "--auto-approve", "--json", site)
	reportOf(t, newValidator(), a.stdout)
	var report struct {
		Leaves []struct {
			Leaf, Outcome string
			Glyphs        []struct {
				Key, Outcome string
				Attempts     int
			}
			Failures []struct {
				Key, Cause  string
				Diagnostics []struct {
					Kind, Of string
					Lines    []string
				}
			}
		}
		UnitsDone []struct {
			Unit, Text string
			TakenBack  bool `json:"taken_back"`
		} `json:"units_done"`
	}
	lines := strings.Split(strings.TrimSpace(a.stdout), "\n")
	m.check(json.Unmarshal([]byte(lines[len(lines)-1]), &report))
	var glyphs []string
	for _, l := range report.Leaves {
		for _, g := range l.Glyphs {
			glyphs = append(glyphs, fmt.Sprintf("%s %s %s %d", l.Leaf, g.Key, g.Outcome, g.Attempts))
		}
	}
	want := []string{
		"one service:law-busy.service rolled_back 0", "one service:law-idle.service rolled_back 0",
		"one apt:law-a rolled_back 0", "one apt:bad failed 2", "one file:/etc/never not_reached 0",
		"two file:/etc/law.conf applied 0", "two process:law-own failed 0",
	}
	if !slices.Equal(glyphs, want) {
		t.Errorf("the glyphs are\n%s\nwant\n%s", strings.Join(glyphs, "\n"), strings.Join(want, "\n"))
	}
	text := fmt.Sprint(report.Leaves[0].Failures, report.Leaves[1].Failures)
	for _, part := range []string{"it is no good", "{status law-own.service [result exit-code, exit status 3]}", "{log law-own.service [", "no good"} {
		if !strings.Contains(text, part) {
			t.Errorf("the failures do not tell %q: %s", part, text)
		}
	}
	moved := fmt.Sprint(report.UnitsDone)
	for _, part := range []string{"{law-busy.service stopped, and started again: one was rolled back true}", "{law-idle.service started, and stopped again: one was rolled back true}"} {
		if !strings.Contains(moved, part) {
			t.Errorf("of units it does not tell %q: %s", part, moved)
		}
	}
	if m.active("law-busy") != busy || m.active("law-idle") != idle {
		t.Errorf("law-busy was %s and is %s; law-idle was %s and is %s", busy, m.active("law-busy"), idle, m.active("law-idle"))
	}
}
