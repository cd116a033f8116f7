package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
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

func TestReport29StaticIndirectAndGenerated(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.unit("static.service", "[Service]\nExecStart=/bin/sleep infinity\n")
	m.unit("indirect.service", "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nAlso=static.service\n")
	m.unit("of@.service", sleeper)
	m.write("/etc/init.d/old", "#!/bin/sh\n### BEGIN INIT INFO\n# Provides: old\n# Default-Start: 2 3 4 5\n### END INIT INFO\nexit 0\n")
	m.sh("chmod 755 /etc/init.d/old; systemctl daemon-reload; systemd-run --unit=passing sleep infinity")
	before := m.print()
	for unit, why := range map[string]string{
		"static": "static: nothing to enable; start it, or let another unit depend on it", "indirect": "indirect",
		"old": "made by a generator", "passing": "transient", "of@": "of@NAME.service",
	} {
		m.declare(fmt.Sprintf("service %q { enabled = true }", unit))
		says(t, m.golem(1, "plan", site).stderr, why)
	}
	m.declare("service \"static\" { enabled = false }\nservice \"indirect\" { enabled = false }\nservice \"of@one\" { enabled = true }\n")
	m.apply()
	m.golem(0, "plan", "--detailed-exitcode", site)
	if !m.exists("/etc/systemd/system/multi-user.target.wants/of@one.service") {
		t.Error("an instance is not enabled")
	}
	m.declare(`service "static" { masked = true }`)
	m.apply()
	if got := m.enabled("static"); got != "masked" {
		t.Errorf("static.service is %s", got)
	}
	m.destroy()
	m.same("destroyed", before)
}

func TestReport30AMaskThatIsInTheWayOfAFile(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.write("/etc/systemd/system/local.service", sleeper)
	m.sh("systemctl daemon-reload; systemctl enable --now local")
	before := m.print()
	m.declare(`service "local" { masked = true }`)
	says(t, m.golem(1, "plan", site).stderr, "a link at /etc/systemd/system/local.service, where a file is")
	m.same("refused", before)

	m.unit("works.service", sleeper)
	m.sh("systemctl enable --now works")
	before = m.print()
	m.declare("service \"works\" {\n masked = true\n enabled = false\n state = \"stopped\"\n}\n")
	m.apply()
	m.golem(0, "plan", "--detailed-exitcode", site)
	if got := m.enabled("works"); got != "masked" {
		t.Errorf("works.service is %s", got)
	}
	m.destroy()
	m.is("works.service inactive") // stopped by golem: that is not given back
	m.must("systemctl", "start", "works")
	m.same("destroyed", before)
}

func TestReport32AStoppedServiceDoesNotComeBackThroughItsSocket(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.unit("echo.socket", "[Socket]\nListenStream=127.0.0.1:7777\n[Install]\nWantedBy=sockets.target\n")
	m.unit("echo.service", "[Service]\nExecStart=/bin/sleep infinity\n")
	m.unit("tick.timer", "[Timer]\nOnUnitInactiveSec=1h\nOnActiveSec=1h\nUnit=echo.service\n")
	m.sh("systemctl enable --now echo.socket; systemctl start tick.timer; systemctl start echo.service")
	before := m.print()
	m.declare(`service "echo" { state = "stopped" }`)
	text := m.plan()
	says(t, text, "stop echo.socket it would start echo.service again")
	says(t, text, "stop tick.timer it would start echo.service again")
	m.apply()
	m.run("bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/7777")
	time.Sleep(time.Second)
	m.is("echo.service inactive", "echo.socket inactive", "tick.timer inactive")
	m.golem(0, "plan", "--detailed-exitcode", site)
	m.declare(`service "echo" { state = "running" }`)
	m.apply()
	m.is("echo.service active", "echo.socket active", "tick.timer active")
	m.declare("")
	m.apply()
	m.same("undeclared", before)

	m.declare("service \"echo\" { state = \"stopped\" }\nservice \"echo.socket\" { state = \"running\" }\n")
	says(t, m.golem(1, "plan", site).stderr, "echo.socket is declared running, and starts it again")
}

func TestReport33AStartThatSaidOK(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.unit("false.service", "[Service]\nExecStart=/bin/false\n")
	m.unit("dies.service", "[Service]\nExecStart=/bin/sh -c 'echo I fall; sleep 1; exit 4'\n")
	m.unit("loops.service", "[Service]\nExecStart=/bin/sh -c 'sleep 0.2; exit 1'\nRestart=always\nRestartSec=100ms\n")
	m.unit("hangs.service", "[Service]\nType=notify\nExecStart=/bin/sleep infinity\nTimeoutStartSec=2s\n")
	m.unit("once.service", "[Service]\nType=oneshot\nExecStart=/bin/true\n")
	m.unit("stays.service", "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n")
	before := m.print()
	for unit, why := range map[string]string{
		"false": "exit status 1", "dies": "I fall", "loops": "ends again and again", "hangs": "timeout",
	} {
		m.declare(fmt.Sprintf("service %q { state = \"running\" }", unit))
		says(t, m.golem(3, "apply", "--auto-approve", site).stdout, why)
		if got := m.active(unit); got != "inactive" {
			t.Errorf("%s is %s after the rollback", unit, got)
		}
	}
	m.declare(`service "once" { state = "running" }`)
	says(t, m.golem(1, "plan", site).stderr, "oneshot without RemainAfterExit")
	m.declare(`service "stays" { state = "running" }`)
	m.apply()
	m.golem(0, "plan", "--detailed-exitcode", site)
	m.destroy()
	m.same("destroyed", before)
}

func TestReport34AUnitFileThatChanged(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.unit("base.service", "[Service]\nExecStart=/bin/sleep infinity\nEnvironment=WHICH=old\n")
	m.must("systemctl", "start", "base")
	before := m.print()
	scroll := func(text string) string {
		return fmt.Sprintf("file \"/etc/systemd/system/base.service.d/which.conf\" { content = \"[Service]\\nEnvironment=WHICH=%s\\n\" }\n", text) +
			"file \"/etc/systemd/system/own.service\" { content = \"[Service]\\nExecStart=/bin/sleep infinity\\nExecStopPost=/bin/sh -c 'echo " + text + " >/run/own.stopped'\\n[Install]\\nWantedBy=multi-user.target\\n\" }\n" +
			"service \"base\" { restart_on = [\"file:/etc/systemd/system/base.service.d/*\"] }\n" +
			"service \"own\" {\n state = \"running\"\n enabled = true\n}\n"
	}
	m.declare(scroll("one"))
	m.apply()
	says(t, m.must("systemctl", "show", "-p", "Environment,NeedDaemonReload", "base"), "WHICH=one")
	m.is("own.service active")
	m.declare(scroll("two"))
	m.apply()
	says(t, m.must("systemctl", "show", "-p", "Environment,NeedDaemonReload", "base"), "NeedDaemonReload=no")
	says(t, m.must("sh", "-c", "tr '\\0' '\\n' </proc/$(systemctl show -P MainPID base)/environ"), "WHICH=two")
	m.golem(0, "plan", "--detailed-exitcode", site)
	m.destroy()
	m.is("own.service inactive", "base.service active")
	says(t, m.read("/run/own.stopped"), "two")
	m.must("rm", "/run/own.stopped")
	m.must("systemctl", "restart", "base") // what it read, it keeps until it reads again
	m.same("destroyed", before)
}

func TestAServicesClientIsNotCutOffByUndeclaringIt(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.sh("mkdir -p /root/.ssh; ssh-keygen -q -N '' -f /root/.ssh/id; cp /root/.ssh/id.pub /root/.ssh/authorized_keys")
	client := m.start("ssh", "-i", "/root/.ssh/id", "-o", "StrictHostKeyChecking=no", "root@127.0.0.1", "while :; do echo alive; sleep 0.2; done")
	alive := func(when string) {
		t.Helper()
		seen := strings.Count(client.Stdout.(*syncBuffer).String(), "alive")
		for range 100 {
			if strings.Count(client.Stdout.(*syncBuffer).String(), "alive") > seen {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("%s, the client is cut off: %s", when, client.Stderr.(*syncBuffer).String())
	}
	alive("before anything")
	pid := m.pid("ssh")
	m.declare("service \"sshd.service\" {\n state = \"running\"\n enabled = true\n}\n")
	says(t, m.apply().stdout, "1 installed")
	alive("declared")
	m.declare("")
	says(t, m.apply().stdout, "ssh.service forgotten: it was running before golem; left as it is")
	alive("undeclared")
	if got := m.pid("ssh"); got != pid {
		t.Errorf("it was started anew: %s, before %s", got, pid)
	}
}

func TestThePacketFilterThatGolemLoadedIsUnloadedAgain(t *testing.T) {
	t.Parallel()
	m := boot(t)
	before := m.print()
	m.declare("file \"/etc/nftables.conf\" { content = \"#!/usr/sbin/nft -f\\nflush ruleset\\ntable inet guarded {\\n}\\n\" }\n" +
		"service \"nftables.service\" {\n state = \"running\"\n enabled = true\n reload_on = [\"file:/etc/nftables.conf\"]\n}\n")
	m.apply()
	says(t, m.must("nft", "list", "ruleset"), "table inet guarded")
	m.declare("")
	text := m.plan()
	says(t, text, "service:nftables.service remove stopped again, as golem found it")
	says(t, text, "stop nftables.service started by golem in revision 1")
	m.apply()
	if got := m.must("nft", "list", "ruleset"); got != "" {
		t.Errorf("still loaded:\n%s", got)
	}
	m.is("nftables.service inactive")
	m.same("undeclared", before)
}

func TestAContainerRuntimeDeclaredForAReloadOutlivesItsScroll(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.unit("docker.service", sleeper)
	m.unit("container.service", "[Unit]\nRequires=docker.service\nAfter=docker.service\n"+sleeper)
	m.must("systemctl", "enable", "--now", "docker", "container")
	before, pid, inner := m.print(), m.pid("docker"), m.pid("container")
	m.declare(`scroll "registry-trust" {
  file "/etc/docker/daemon.json" { content = "{}" }
  service "docker.service" {
    state     = "running"
    reload_on = ["file:/etc/docker/daemon.json"]
  }
}
scroll "rest" {
  file "/etc/rest" { content = "" }
}`)
	m.apply()
	m.declare(`scroll "rest" {
  file "/etc/rest" { content = "" }
}`)
	says(t, m.plan(), "registry-trust (no longer declared)")
	m.apply()
	if m.pid("docker") != pid || m.pid("container") != inner {
		t.Error("the runtime or its container was started anew")
	}
	m.must("rm", "/run/docker.reloads")
	m.destroy()
	m.same("destroyed", before)
}

func TestWhatStartsAndStopsWithAUnitIsNamedAndGivenBack(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.unit("helper.service", "[Unit]\nRequires=deep.service\nAfter=deep.service\n"+sleeper)
	m.unit("deep.service", sleeper)
	m.unit("front.service", "[Unit]\nWants=helper.service no-such.service\nConflicts=rival.service\n"+sleeper)
	m.unit("rival.service", sleeper)
	m.unit("other.service", "[Unit]\nRequires=helper.service\n"+sleeper)
	m.must("systemctl", "start", "rival")
	before := m.print()
	m.declare("service \"front\" {\n state = \"running\"\n enabled = true\n}\n")
	text := m.plan()
	says(t, text, "stop rival.service it cannot run beside front.service")
	says(t, text, "start helper.service front.service pulls it in")
	m.apply()
	m.is("front.service active", "helper.service active", "deep.service active", "rival.service inactive")
	m.golem(0, "plan", "--detailed-exitcode", site)

	// What another unit needs that stays declared is left running for it.
	m.declare("service \"other\" { state = \"running\" }\n")
	m.apply()
	m.is("front.service inactive", "helper.service active", "deep.service active", "other.service active")
	m.golem(0, "plan", "--detailed-exitcode", site)
	m.declare("")
	says(t, m.plan(), "stop helper.service started with service:front.service, and nothing needs it any more")
	m.apply()
	m.is("helper.service inactive", "deep.service inactive", "rival.service inactive")
	m.must("systemctl", "start", "rival") // stopped by golem: that is not given back
	m.same("undeclared", before)

	m.declare("service \"rival\" { state = \"stopped\" }\nservice \"front\" { state = \"running\" }\n")
	m.apply()
	m.declare("service \"helper\" { state = \"stopped\" }\nservice \"front\" { state = \"running\" }\n")
	says(t, m.golem(1, "plan", site).stderr, "front.service is declared running, and starts it again")
}

func TestServiceSurvivesEveryKill(t *testing.T) {
	t.Parallel()
	acts(t, func(t *testing.T, act string) {
		m := boot(t)
		// Units that have no program to be watched: the walk is long enough.
		const stays = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
		m.unit("helper.service", stays)
		m.unit("front.service", "[Unit]\nWants=helper.service\n"+stays+"Alias=face.service\n")
		m.unit("runs.service", stays)
		m.unit("shut.service", stays)
		m.sh("systemctl enable --now runs; systemctl mask shut")
		newSaboteur(m, "systemctl").walk(act, `
service "front" {
  state   = "running"
  enabled = true
}
service "runs" {
  masked  = true
  enabled = false
}
service "shut" {
  masked = false
  state  = "running"
}
`)
	})
}

func TestAServiceWithAnInitScriptToo(t *testing.T) {
	t.Parallel()
	m := boot(t)
	before := m.print()
	m.declare("service \"ssh\" { enabled = false }\n")
	m.apply()
	if got := m.enabled("ssh"); got != "disabled" {
		t.Errorf("it is %s", got)
	}
	m.golem(0, "plan", "--detailed-exitcode", site)
	m.declare("")
	m.apply()
	m.same("undeclared", before)

	m.must("systemctl", "disable", "ssh")
	before = m.print()
	m.declare("service \"ssh\" { enabled = true }\n")
	m.apply()
	m.declare("")
	m.apply()
	m.same("enabled and undeclared", before)
}
