package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

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
	says(t, m.apply().stdout, "helper.service stopped: started with service:front.service")
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
