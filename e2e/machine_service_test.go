package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// unit writes a unit file as a package does, and has systemd read it.
func (m *machine) unit(name, text string) {
	m.t.Helper()
	m.write("/usr/lib/systemd/system/"+name, text)
	m.must("systemctl", "daemon-reload")
}

// is wants units in states: "web.service active".
func (m *machine) is(wants ...string) {
	m.t.Helper()
	for _, want := range wants {
		unit, state, _ := strings.Cut(want, " ")
		if got := m.active(unit); got != state {
			m.t.Errorf("%s is %s, want %s", unit, got, state)
		}
	}
}

// pid is a unit's main process, to see that it was not started anew.
func (m *machine) pid(unit string) string {
	m.t.Helper()
	return strings.TrimSpace(m.must("systemctl", "show", "-p", "MainPID,ActiveEnterTimestampMonotonic", unit))
}

const sleeper = `[Service]
ExecStart=/bin/sleep infinity
ExecReload=/bin/sh -c 'echo reloaded >>/run/%N.reloads'
[Install]
WantedBy=multi-user.target
`

func TestFoundRunningIsLeftRunning(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.unit("runs.service", sleeper)
	m.must("systemctl", "start", "runs")
	before, pid := m.print(), m.pid("runs")
	m.declare(`service "runs" {
  state     = "running"
  reload_on = ["file:/etc/runs.conf"]
}`)
	m.apply()
	m.declare("")
	says(t, m.plan(), "forget runs.service it was running before golem; left as it is")
	says(t, m.apply().stdout, "runs.service forgotten: it was running before golem; left as it is")
	if got := m.pid("runs"); got != pid {
		t.Errorf("it was started anew: %s, before %s", got, pid)
	}
	m.same("undeclared", before)
}

func TestStartedByGolemIsStoppedAgain(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.unit("rests.service", sleeper)
	m.unit("broken.service", "[Service]\nExecStart=/bin/sh -c 'test -e /run/broken-runs && exec sleep infinity'\n")
	m.run("systemctl", "start", "broken")
	m.sh("while systemctl -q is-active broken; do sleep 0.1; done")
	before := m.print()
	m.must("touch", "/run/broken-runs")
	m.declare("service \"rests\" { state = \"running\" }\nservice \"broken.service\" { state = \"running\" }\n")
	m.apply()
	m.is("rests.service active", "broken.service active")
	m.declare("")
	text := m.plan()
	says(t, text, "service:rests.service remove stopped again, as golem found it")
	says(t, text, "stop rests.service started by golem in revision 1")
	text = m.apply().stdout
	says(t, text, "rests.service restored: stopped again, as golem found it")
	says(t, text, "broken.service restored: stopped again, as golem found it")
	m.is("rests.service inactive", "broken.service inactive")
	m.must("rm", "/run/broken-runs")
	m.run("systemctl", "start", "broken") // a failure cannot be given back
	m.sh("while systemctl -q is-active broken; do sleep 0.1; done")
	m.same("undeclared", before)
}

func TestEnabledByGolemLosesExactlyItsLinks(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.unit("own.service", sleeper+"Alias=named.service\nWantedBy=own.target\nAlso=own.timer\n")
	m.unit("own.timer", "[Timer]\nOnCalendar=2099-01-01\n[Install]\nWantedBy=timers.target\n")
	m.unit("other.service", sleeper)
	const foreign = "/etc/systemd/system/foreign.target.wants"
	m.sh("mkdir " + foreign + "; ln -s /usr/lib/systemd/system/other.service " + foreign + "; systemctl start own")
	before := m.print()
	m.declare(`service "own" { enabled = true }`)
	m.apply()
	for _, link := range []string{"named.service", "own.target.wants/own.service", "multi-user.target.wants/own.service", "timers.target.wants/own.timer"} {
		if !m.exists("/etc/systemd/system/" + link) {
			t.Errorf("%s was not made", link)
		}
	}
	m.golem(0, "plan", "--detailed-exitcode", site)
	// A link of somebody's, which came later, stays; and one is enough to be enabled.
	m.sh("ln -s /usr/lib/systemd/system/own.service " + foreign)
	m.declare("service \"own\" { enabled = true }\nservice \"other\" { enabled = true }\n")
	says(t, m.plan(), "service:other.service install it is so already; nothing to change")
	m.apply()
	m.declare("")
	says(t, m.plan(), "restore own.service disabled again, as golem found it")
	m.apply()
	m.is("own.service active")
	m.must("rm", foreign+"/own.service")
	m.same("undeclared", before)

	// The other way round: what was enabled gets its very links back.
	m.sh("systemctl enable own; chown -h 0:4 /etc/systemd/system/named.service; ln -sf ../own.service /etc/systemd/system/own.target.wants/own.service")
	before = m.print()
	m.declare(`service "own" { enabled = false }`)
	m.apply()
	if got := m.enabled("own"); got != "disabled" {
		t.Errorf("it is %s", got)
	}
	m.golem(0, "plan", "--detailed-exitcode", site)
	m.declare("")
	m.apply()
	m.same("undeclared", before)
}

func TestMasksAreGivenBackInBothDirections(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.unit("calm.service", sleeper)
	m.unit("shut.service", sleeper)
	m.unit("late.service", sleeper)
	m.sh("systemctl start calm; systemctl enable shut; systemctl mask shut; systemctl mask --runtime late")
	before := m.print()
	m.declare("service \"calm\" { masked = true }\nservice \"shut\" {\n masked = false\n state = \"running\"\n}\nservice \"late\" { masked = true }\n")
	m.apply()
	m.is("calm.service active", "shut.service active")
	for unit, want := range map[string]string{"calm": "masked", "shut": "enabled", "late": "masked"} {
		if got := m.enabled(unit); got != want {
			t.Errorf("%s is %s, want %s", unit, got, want)
		}
	}
	m.golem(0, "plan", "--detailed-exitcode", site)
	m.declare("")
	m.apply()
	m.is("calm.service active", "shut.service inactive")
	m.same("undeclared", before)
}

func TestStoppedByGolemIsNotStartedOnTheWayOut(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.unit("runs.service", sleeper)
	m.must("systemctl", "start", "runs")
	before := m.print()
	m.declare(`service "runs" { state = "stopped" }`)
	m.apply()
	m.is("runs.service inactive")
	m.declare("")
	says(t, m.plan(), "forget runs.service golem stopped it; nothing is started on the way out")
	m.apply()
	m.is("runs.service inactive")
	// What was found is known until it is declared again: it was running.
	m.declare(`service "runs" { state = "running" }`)
	m.apply()
	m.declare("")
	says(t, m.apply().stdout, "runs.service forgotten: it was running before golem; left as it is")
	m.same("declared running and undeclared", before)
}

func TestUnknownRecordIsLeftAlone(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.unit("rests.service", sleeper)
	m.declare("service \"rests\" {\n state = \"running\"\n enabled = true\n}\n")
	m.apply()
	m.golem(0, "state", "forget", "--found", "service:rests.service")
	before := m.print()
	m.declare("")
	says(t, m.plan(), "forget rests.service nothing is known of it before golem; left as it is")
	m.apply()
	m.is("rests.service active")
	m.same("undeclared", before)
}

func TestNoStateOnlyReloadsARunningUnit(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.unit("runs.service", sleeper)
	m.unit("rests.service", sleeper)
	m.must("systemctl", "start", "runs")
	before, pid := m.print(), m.pid("runs")
	scroll := func(text string) string {
		return fmt.Sprintf("file \"/etc/both.conf\" { content = %q }\n", text) +
			"service \"runs\" { reload_on = [\"file:/etc/both.conf\"] }\nservice \"rests\" { restart_on = [\"file:/etc/*\"] }\n"
	}
	m.declare(scroll("1"))
	says(t, m.plan(), "reload runs.service file:/etc/both.conf changes")
	says(t, m.apply().stdout, "runs.service reloaded: file:/etc/both.conf changes")
	m.declare(scroll("2"))
	m.apply()
	if got := m.read("/run/runs.reloads"); got != "reloaded\nreloaded\n" {
		t.Errorf("it was reloaded: %q", got)
	}
	m.is("rests.service inactive")
	m.must("rm", "/run/runs.reloads")
	m.declare("")
	says(t, m.plan(), "forget runs.service golem only reloads it; left as it is")
	m.apply()
	if got := m.pid("runs"); got != pid {
		t.Errorf("it was started anew: %s, before %s", got, pid)
	}
	m.same("undeclared", before)
}

func TestFoundStateIsRecordedOnce(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.unit("rests.service", sleeper)
	m.unit("runs.service", sleeper)
	m.must("systemctl", "start", "runs")
	before := m.print()
	for i := range 10 {
		more := []string{"", "enabled = true", "enabled = false", "masked = false"}[i%4]
		m.declare(fmt.Sprintf("service \"rests\" {\n state = \"running\"\n %s\n}\nservice \"runs\" {\n state = \"running\"\n %s\n}\n", more, more))
		m.apply()
		m.is("rests.service active", "runs.service active")
	}
	m.declare("")
	m.apply()
	m.is("rests.service inactive", "runs.service active")
	m.same("undeclared", before)
}

func TestRenamedRegroupedMovedIsNotStopped(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.unit("rests.service", sleeper+"Alias=also.service\n")
	m.declare("service \"rests\" {\n state = \"running\"\n enabled = true\n}\n")
	m.apply()
	pid := m.pid("rests")
	m.declare("scroll \"a\" {\n scroll \"b\" {\n service \"the one\" {\n unit = \"rests.service\"\n state = \"running\"\n enabled = true\n}\n}\n}\n")
	m.golem(0, "plan", "--detailed-exitcode", site)
	m.apply()
	// By its other name it is another key, and the same unit.
	m.declare("scroll \"c\" {\n service \"also.service\" {\n state = \"running\"\n enabled = true\n}\n}\n")
	m.apply()
	if got := m.pid("rests"); got != pid {
		t.Errorf("it was started anew: %s, before %s", got, pid)
	}
	m.declare("")
	m.apply()
	m.is("rests.service inactive")
}

func TestRollbackStartsAgainWhatTheRunStopped(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.unit("runs.service", sleeper)
	m.unit("needs.service", "[Unit]\nRequires=runs.service\nAfter=runs.service\n"+sleeper)
	m.unit("rests.service", sleeper)
	m.unit("fails.service", "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'echo no such port; exit 7'\n")
	m.sh("systemctl start needs; systemctl enable runs")
	before := m.print()
	m.declare("service \"runs\" {\n state = \"stopped\"\n enabled = false\n}\nservice \"rests\" {\n state = \"running\"\n enabled = true\n}\nservice \"fails\" { state = \"running\" }\n")
	says(t, m.plan(), "stop needs.service it needs runs.service, and stops with it")
	text := m.golem(3, "apply", "--auto-approve", site).stdout
	says(t, text, "start fails.service")
	says(t, text, "exit status 7")
	says(t, text, "no such port")
	m.is("runs.service active", "needs.service active", "rests.service inactive", "fails.service inactive")
	m.same("rolled back", before)
}
