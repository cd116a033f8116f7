package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// processes is a scroll with a service that has a bundle, and a timer.
func processes(word, schedule string) string {
	return fmt.Sprintf(`
process "nap" {
  command = ["./run.sh", "infinity"]
  bundle = {
    "run.sh"       = "#!/bin/sh\n. ./lib/words.sh\nexec sleep \"$@\"\n"
    "lib/words.sh" = "WORD=%s\n"
  }
  env    = { PLAIN = "a b%%c", WORD = "%s" }
  limits = { memory = "64M", cpu = "50%%", tasks = 10 }
}
process "tick" {
  command  = ["/bin/echo", "$HOME %%n \"q\" \\ ;", ";", "", "end"]
  schedule = "%s"
}
`, word, word, schedule)
}

func TestProcessIsMadeAndRemovedAsOne(t *testing.T) {
	t.Parallel()
	m := boot(t)
	found := m.print()
	m.declare(processes("one", "daily"))
	says(t, m.plan(), "+ process:nap install a service that runs ./run.sh infinity with a bundle of 2 files; started")
	says(t, m.plan(), "Units start nap.service")
	m.apply()
	if m.active("nap.service") != "active" || m.enabled("nap.service") != "enabled" || m.active("tick.timer") != "active" || m.enabled("tick.timer") != "enabled" {
		t.Errorf("nap is %s, %s; tick.timer is %s, %s", m.active("nap.service"), m.enabled("nap.service"), m.active("tick.timer"), m.enabled("tick.timer"))
	}
	m.must("systemctl", "start", "tick.service")
	if said := m.must("journalctl", "-u", "tick.service", "-o", "cat", "--no-pager"); !strings.Contains(said, "$HOME %n \"q\" \\ ; ;  end\n") {
		t.Errorf("its arguments are not literal:\n%s", said)
	}
	environ := strings.Split(m.sh("tr '\\0' '\\n' </proc/$(systemctl show -P MainPID nap.service)/environ"), "\n")
	if !contains(environ, "PLAIN=a b%c") {
		t.Errorf("its environment is %q", environ)
	}
	says(t, m.plan(), "No changes.")

	// A change restarts the service; a timer's change does not run what it times.
	pid := m.must("systemctl", "show", "-P", "MainPID", "nap.service")
	m.declare(processes("two", "weekly"))
	says(t, m.plan(), "restart nap.service golem's own; it changes")
	m.apply()
	if now := m.must("systemctl", "show", "-P", "MainPID", "nap.service"); now == pid {
		t.Error("the changed service was not started anew")
	}
	if next := m.must("systemctl", "cat", "tick.timer"); !strings.Contains(next, "OnCalendar=weekly") {
		t.Errorf("the timer is\n%s", next)
	}

	// What somebody did to it by hand is drift.
	m.must("systemctl", "disable", "--now", "nap.service")
	m.write("/usr/local/lib/golem/nap/lib/words.sh", "by hand\n")
	says(t, m.plan(), "! process:nap repair drifted:")
	m.apply()
	if m.active("nap.service") != "active" || m.enabled("nap.service") != "enabled" {
		t.Error("nap was not repaired")
	}
	says(t, m.golem(0, "kept", "list").stdout, "/usr/local/lib/golem/nap/lib/words.sh")

	plan := m.plan("--destroy")
	says(t, plan, "stop tick.timer golem's own; it goes")
	says(t, plan, "stop nap.service golem's own; it goes")
	m.destroy()
	m.same("after destroy", found)
	if left := m.must("systemctl", "list-units", "--all", "--plain", "--no-legend", "nap*", "tick*"); left != "" {
		t.Errorf("systemd still knows:\n%s", left)
	}
}

func contains(list []string, word string) bool {
	for _, one := range list {
		if one == word {
			return true
		}
	}
	return false
}

// An undeclared process failed every apply on its node once
// (seeds/give-back-the-found-state.txt): it must come and go as often as one likes.
func TestProcessUndeclaredRedeclaredAndChangedTenTimes(t *testing.T) {
	t.Parallel()
	m := boot(t)
	found := m.print()
	for i := range 10 {
		m.declare(processes(fmt.Sprint("word", i), "daily"))
		m.apply()
		if i%3 == 2 {
			m.declare("")
			m.apply()
			m.same(fmt.Sprintf("undeclared after change %d", i), found)
		}
	}
	m.destroy()
	m.same("after destroy", found)
}

func TestProcessSchedulesComeAndGo(t *testing.T) {
	t.Parallel()
	m := boot(t)
	found := m.print()
	service := "process \"job\" {\n  command = [\"/bin/sleep\", \"infinity\"]\n}\n"
	timer := "process \"job\" {\n  command = [\"/bin/true\"]\n  schedule = \"daily\"\n}\n"
	stopped := "process \"job\" {\n  command = [\"/bin/sleep\", \"infinity\"]\n  enabled = false\n  state = \"stopped\"\n}\n"
	for _, step := range []struct{ text, service, timer string }{
		{service, "active", "inactive"},
		{timer, "inactive", "active"},
		{service, "active", "inactive"},
		{stopped, "inactive", "inactive"},
		{timer, "inactive", "active"},
	} {
		m.declare(step.text)
		m.apply()
		if s, c := m.active("job.service"), m.active("job.timer"); s != step.service || c != step.timer {
			t.Errorf("service %s, timer %s after\n%s", s, c, step.text)
		}
		says(t, m.plan(), "No changes.")
	}
	m.destroy()
	m.same("after destroy", found)
}

func TestProcessRefusesWhatIsThereAlready(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.write("/etc/systemd/system/mine.service", "[Service]\nExecStart=/bin/sleep infinity\n")
	m.must("systemctl", "daemon-reload")
	found := m.print()
	for name, why := range map[string]string{
		"mine": "unit mine.service (/etc/systemd/system/mine.service) is there already",
		"ssh":  "unit ssh.service (/lib/systemd/system/ssh.service) is there already",
	} {
		m.declare(fmt.Sprintf("process %q {\n  command = [\"/bin/true\"]\n}\n", name))
		a := m.golem(1, "apply", "--auto-approve", "/root/site")
		says(t, a.stderr, why)
		says(t, a.stderr, "main.hcl line 2, in process")
	}
	m.declare("process \"odd\" {\n  command = [\"/bin/true\"]\n  schedule = \"every now and then\"\n}\n")
	says(t, m.golem(1, "plan", "/root/site").stderr, "every now and then")
	m.same("after refusals", found)
}
