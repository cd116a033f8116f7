package e2e

import (
	"strings"
	"testing"
)

// TestAReverseThatFailsIsOwed: a step that cannot be taken back keeps its receipt; the run
// is a revision all the same, other leaves and lineages go on, and the next run tries
// again, until it can.
func TestAReverseThatFailsIsOwed(t *testing.T) {
	t.Parallel()
	m := boot(t)
	found := m.print()
	scroll := func(check string) string {
		return "scroll \"stuck\" {\n  policy {\n    retry {\n      max_attempts = 1\n    }\n  }\n  file \"/etc/one\" {\n    content = \"one\\n\"\n  }\n" +
			"  check \"command\" {\n    run = [\"sh\", \"-c\", \"" + check + "\"]\n  }\n}\n" + motd("sibling")
	}
	m.declare(scroll("chattr +i /etc/one; false"))
	v := newValidator()
	for line := range strings.Lines(m.golem(3, "apply", "--auto-approve", "--json", site).stdout) {
		v.fits(t, "report.schema.json", line)
	}
	says(t, m.golem(0, "history").stdout, "web@1")
	says(t, m.golem(0, "history").stdout, "partial")
	if m.read("/etc/motd") != "sibling\n" {
		t.Error("the sibling did not settle")
	}
	says(t, m.plan(), "An earlier run could not take back 1 glyph in stuck. First, that is tried again.")
	if r := m.planJSON()["recovers"].(map[string]any); r["owed"] != true {
		t.Errorf("the plan recovers %v", r)
	}

	// Another lineage is not held up by it; that it is still owed is told, and is no success.
	m.write("/root/other/main.hcl", "name = \"other\"\nfile \"/etc/other\" {\n  content = \"other\\n\"\n}\n")
	a := m.golem(3, "apply", "--auto-approve", "/root/other")
	says(t, a.stdout, "take back /etc/one:")
	if m.read("/etc/other") != "other\n" {
		t.Error("the other lineage was held up")
	}
	says(t, m.golem(3, "recover").stderr, "take back /etc/one:")
	m.golem(0, "state", "check")

	// What is in its way goes: the next run has it back, and goes on.
	m.sh("chattr -i /etc/one")
	m.declare(scroll("true"))
	says(t, m.apply().stdout, "Taken back now, what an earlier run could not: file:/etc/one.")
	m.apply()
	m.destroy()
	m.golem(0, "destroy", "--auto-approve", "--name", "other")
	m.sh("rm -r /root/other")
	m.same("after all", found)

	// What no run will ever be able to take back is given up.
	command := func(run, undo string) {
		m.declare("policy {\n  retry {\n    max_attempts = 1\n  }\n}\ncommand \"bad\" {\n  run  = [\"" + run + "\"]\n  undo = [\"" + undo + "\"]\n}\n")
	}
	command("false", "false")
	says(t, m.golem(3, "apply", "--auto-approve", site).stdout, "take back command:bad:")
	command("true", "true")
	says(t, m.golem(3, "apply", "--auto-approve", site).stdout, "golem state forget command:bad gives it up")
	says(t, m.golem(0, "state", "forget", "command:bad").stdout, "Forgotten: command:bad.")
	m.golem(1, "state", "forget", "command:bad")
	m.apply()
	m.destroy()
	m.same("after giving it up", found)
	m.golem(0, "state", "check")
}

// TestAPlanAfterACrashKnowsItsOwnProcess: what a dead run made of a process is golem's, and
// the plan says what will become of it.
func TestAPlanAfterACrashKnowsItsOwnProcess(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.declare("scroll \"p\" {\n  process \"slow\" {\n    command = [\"run.sh\"]\n    bundle  = { \"run.sh\" = \"#!/bin/sh\\nexec sleep 1000000\\n\" }\n  }\n  check \"command\" {\n    run     = [\"sleep\", \"100\"]\n    timeout = \"100s\"\n  }\n}\n")
	run := m.start("golem", "apply", "--auto-approve", site)
	m.until("the check runs", func() bool { return m.run("pgrep", "-f", "^sleep 100$").code == 0 })
	m.signal(run, 9)
	m.sh("pkill -KILL -f '^sleep 100$' || true")
	says(t, m.plan(), "+ process:slow install")
	m.golem(0, "recover")
	says(t, m.plan(), "+ process:slow install")
}

// TestAnOverdueRunIsTakenBackByTheNextOne: somebody stopped what was to take it back.
func TestAnOverdueRunIsTakenBackByTheNextOne(t *testing.T) {
	t.Parallel()
	m := boot(t)
	was := m.print()
	m.declare(motd("new"))
	m.apply("--confirm-within", "2s")
	m.sh("systemctl stop 'golem-return-*.timer'; sleep 2")
	a := m.golem(3, "apply", "--auto-approve", site)
	saysAll(t, a.stdout+a.stderr, "Taken back: nobody confirmed revision 1 of web", "because nobody confirmed it (web@2)")
	m.same("taken back", was)
	if units := m.returnUnits(); units != "" {
		t.Errorf("there still is\n%s", units)
	}
}
