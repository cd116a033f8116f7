package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// until waits for something that comes by itself.
func (m *machine) until(what string, holds func() bool) {
	m.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			m.t.Fatalf("it did not come about: %s\n%s", what, m.run("journalctl", "-b", "--no-pager", "-n", "40").stdout)
		}
	}
}

// returned waits until an unconfirmed run is taken back and nothing stands ready any more.
func (m *machine) returned() {
	m.t.Helper()
	m.until("the run is taken back", func() bool { return strings.Contains(m.golem(0, "history").stdout, " return ") })
	m.until("the units are gone", func() bool { return m.returnUnits() == "" })
}

// returnUnits are the units and files that stand ready to take a run back.
func (m *machine) returnUnits() string {
	m.t.Helper()
	return strings.TrimSpace(m.sh(`find /etc/systemd/system /var/lib/golem -name '*golem-return-*' -o -name '*.golem*'
		systemctl list-units --all --plain --no-legend 'golem-return-*'`))
}

// motd is a scroll of one leaf that anybody can see.
func motd(text string) string {
	return "scroll \"base\" {\n  file \"/etc/motd\" {\n    content = \"" + text + "\\n\"\n  }\n}\n"
}

func TestConfirmedRunStays(t *testing.T) {
	t.Parallel()
	m := boot(t)
	found := m.print()
	m.declare(motd("new"))
	a := m.apply("--confirm-within", "1h")
	saysAll(t, a.stdout, "It is taken back unless golem confirm is called within 1h of its end.")
	saysAll(t, a.stdout, "Not confirmed yet: golem confirm keeps it; else it is taken back at ")
	if units := m.returnUnits(); strings.Count(units, "golem-return-") < 4 || !strings.Contains(units, "planroom.db.golem") {
		t.Errorf("what stands ready is\n%s", units)
	}
	saysAll(t, m.golem(0, "history").stdout, "web@1", "settled, unconfirmed")

	// Until then any other changing run is refused; one that changes nothing is not.
	m.apply()
	saysAll(t, m.golem(1, "destroy", "--auto-approve", "--name", "web").stderr,
		"golem: nothing is changed now: the apply of web (revision 1) waits to be confirmed until ",
		"hint: golem confirm keeps it; golem recover --unconfirmed takes it back now")
	saysAll(t, m.golem(1, "rollback", "--auto-approve").stderr, "there is no settled revision before the current one")
	saysAll(t, m.golem(1, "state", "forget", "file:/etc/motd").stderr, "waits to be confirmed")
	m.declare(motd("newer"))
	saysAll(t, m.golem(0, "plan", site).stdout, "Not now: the apply of web (revision 1) waits to be confirmed until ")
	if p := m.planJSON()["pending"].(map[string]any); p["revision"] != 1.0 || p["lineage"] != "web" {
		t.Errorf("pending in the plan is %v", p)
	}
	m.golem(1, "apply", "--auto-approve", "--confirm-within", "1h", site)

	saysAll(t, m.golem(0, "confirm").stdout, "Confirmed: revision 1 of web stays.")
	if units := m.returnUnits(); units != "" {
		t.Errorf("after the confirmation there is still\n%s", units)
	}
	saysAll(t, m.golem(1, "confirm").stderr, "golem: no run waits to be confirmed")
	saysAll(t, m.golem(1, "recover", "--unconfirmed").stderr, "golem: no run waits to be confirmed")
	if text := m.read("/etc/motd"); text != "new\n" {
		t.Errorf("the confirmed file says %q", text)
	}
	m.apply()
	m.destroy()
	m.same("after all", found)
	pagesOnALiveHost(t, m)
}

func TestUnconfirmedRunIsTakenBack(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(unitPackage("tiny"))
	m.declare(motd("first"))
	m.apply()
	m.sh("systemctl start nftables.service")
	was := m.print()
	m.declare(motd("second") + `
scroll "more" {
  apt "tiny" {}
  service "tiny.service" {
    state = "running"
  }
  file "/etc/sysctl.d/x.conf" {
    content = "# x\n"
  }
  line "hosts" {
    path = "/etc/hosts"
    line = "10.0.0.5 db"
  }
  process "little" {
    command = ["/bin/sleep", "1000"]
  }
  service "nftables.service" {
    state = "stopped"
  }
}
`)
	a := m.apply("--confirm-within", "2s", "--json")
	v := newValidator()
	var last map[string]any
	for line := range strings.Lines(a.stdout) {
		last = v.fits(t, "report.schema.json", line)
	}
	if p, ok := last["pending"].(map[string]any); !ok || p["within"] != "2s" {
		t.Errorf("the report says that it waits: %v", last["pending"])
	}
	m.returned()
	m.same("taken back", was)
	if m.active("nftables.service") != "active" {
		t.Error("what the run stopped was not started again")
	}
	saysAll(t, m.golem(0, "history").stdout, "web@3", "return to 1", "rolled_back")
	saysAll(t, m.golem(1, "confirm").stderr, "golem: no run waits to be confirmed; the last that did was taken back at ", ", as web@3")
	m.golem(0, "state", "check")

	// The same scroll does not come back by itself: cron is refused, and told.
	saysAll(t, m.golem(1, "apply", "--auto-approve", "--quiet", site).stderr,
		"golem: not applied: this very scroll was taken back at ", "because nobody confirmed it (web@3)",
		"hint: change it; or say \"yes\" at a terminal, or apply it with --confirm-within again")
	m.same("after cron", was)
	m.golem(0, "apply", "--auto-approve", "--confirm-within", "1h", site)
	m.golem(0, "confirm")
	m.apply() // and from then on cron is let, too
	m.declare(motd("third"))
	m.apply()
}

// A golem that is killed in the middle, and a host that reboots: the run is taken back all
// the same.
func TestUnconfirmedRunOfAKilledGolemIsTakenBack(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "slow", Postinst: "sleep 30"})
	was := m.print()
	m.declare(motd("new") + "scroll \"slow\" {\n  apt \"slow\" {}\n}\n")
	run := m.start("golem", "apply", "--auto-approve", "--confirm-within", "3s", site)
	m.until("the second leaf is on its way", func() bool { return m.installed("slow") != "" })
	m.signal(run, 9)
	m.sh("pkill -KILL -f 'slow[.]postinst' || true")
	m.returned()
	m.same("taken back", was)
	m.golem(0, "state", "check")
}

// The power goes in the middle of an unconfirmed run: the boot after that recovers the leaf
// in flight, and takes back those that had settled.
func TestUnconfirmedRunIsTakenBackAfterAPowerCut(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "slow", Postinst: "sleep 30"})
	m.sh("systemctl start nftables.service; systemctl enable nftables.service")
	was := m.print()
	m.declare(motd("new") + "scroll \"filter\" {\n  service \"nftables.service\" {\n    state = \"stopped\"\n    enabled = false\n  }\n}\nscroll \"slow\" {\n  apt \"slow\" {}\n}\n")
	m.start("golem", "apply", "--auto-approve", "--confirm-within", "1h", site)
	m.until("the last leaf is on its way", func() bool { return m.installed("slow") != "" })
	m.cut()
	m.powerOn()
	m.returned()
	m.same("taken back", was)
	m.golem(0, "state", "check")
}

func TestUnconfirmedRunIsTakenBackAtTheNextBoot(t *testing.T) {
	t.Parallel()
	m := boot(t)
	was := m.print()
	m.declare(motd("new"))
	m.apply("--confirm-within", "1h")
	m.reboot()
	m.returned()
	m.same("taken back at boot", was)
	if m.golem(0, "plan", site, "--json"); m.read("/etc/motd") == "new\n" {
		t.Error("the file is still there")
	}
}

// The time to confirm counts from the run's end, however long that took.
func TestTimeToConfirmCountsFromTheEnd(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "slow", Postinst: "sleep 8"})
	m.declare("scroll \"slow\" {\n  apt \"slow\" {}\n}\n" + motd("new"))
	m.apply("--confirm-within", "7s")
	saysAll(t, m.golem(0, "confirm").stdout, "Confirmed: revision 1 of web stays.")
	time.Sleep(8 * time.Second)
	if m.read("/etc/motd") != "new\n" || m.returnUnits() != "" {
		t.Errorf("it was taken back after it was confirmed: %s", m.returnUnits())
	}
}

func TestConfirmWithinRefusesWhatItCannotKeep(t *testing.T) {
	t.Parallel()
	m := boot(t)
	found := m.print()
	m.declare(motd("new"))
	for _, c := range []struct{ flag, says string }{
		{"--confirm-within=20", "--confirm-within 20: it is no time, like 30s or 5m"},
		{"--confirm-within=-5s", "it is a duration of a second or more, like 5m"},
		{"--confirm-within=0s", "it is a duration of a second or more, like 5m"},
		{"--confirm-within=soon", "--confirm-within soon: it is no time, like 30s or 5m"},
	} {
		saysAll(t, m.golem(1, "apply", "--auto-approve", c.flag, site).stderr, c.says)
	}
	m.sh("mkdir -p /tmp/tree/etc")
	saysAll(t, m.golem(1, "apply", "--root", "/tmp/tree", "--auto-approve", "--confirm-within", "5m", site).stderr,
		"golem: apply --confirm-within: this is a file tree, not a running host: no systemd here would take the run back",
		"hint: without --confirm-within the run stands at once")
	m.sh("rm -r /tmp/tree")
	m.same("refused", found)
	if m.exists("/var/lib/golem") {
		t.Error("a refused run made a journal")
	}

	// With nothing to change there is nothing to confirm.
	m.apply()
	saysAll(t, m.apply("--confirm-within", "5m").stdout, "No changes.", "So there is nothing to confirm, either.")
	if units := m.returnUnits(); units != "" {
		t.Errorf("nothing is armed, but\n%s", units)
	}

	// And with nothing that stands: the leaf is rolled back.
	m.declare("scroll \"bad\" {\n  policy {\n    retry {\n      max_attempts = 1\n    }\n  }\n  file \"/etc/a\" {\n    content = \"a\"\n  }\n  check \"command\" {\n    run = [\"false\"]\n  }\n}\n" + motd("new"))
	m.golem(3, "apply", "--auto-approve", "--confirm-within", "5m", site)
	if units := m.returnUnits(); units != "" {
		t.Errorf("nothing stands of the run, but\n%s", units)
	}
	saysAll(t, m.golem(1, "confirm").stderr, "no run waits to be confirmed")
}

// TestSSHDBrokenOrStoppedComesBackByItself: whoever cuts himself off waits, and is let in
// again; also through a reboot, and cron does not break it once more.
func TestSSHDBrokenOrStoppedComesBackByItself(t *testing.T) {
	for _, c := range []struct {
		name, scroll  string
		reboot, early bool
	}{
		{"a bad configuration", brokenSSHD, false, false},
		{"a bad configuration and a reboot", brokenSSHD, true, false},
		{"stopped", stoppedSSHD, false, false},
		{"stopped, and a reboot", stoppedSSHD, true, false},
		{"stopped, and cut at that moment", stoppedSSHD, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := boot(t)
			m.letIn()
			was := m.print()
			m.declare(c.scroll)
			within := "4s"
			if c.reboot {
				within = "1h"
			}
			session := m.start("ssh", "-tt", "-o", "ServerAliveInterval=1", "root@127.0.0.1", "golem apply --auto-approve --confirm-within "+within+" "+site)
			m.until("nobody is let in", func() bool { return !m.lets() })
			if !c.early {
				m.until("the run has ended", func() bool { return strings.Contains(m.golem(0, "history").stdout, "unconfirmed") })
			}
			m.sh("pkill -KILL -f 'sshd[:]' || true") // the session that did it is cut
			m.signal(session, 9)
			if c.reboot {
				m.reboot()
			}
			m.until("root is let in again", m.lets)
			if c.early { // golem took the loss of its terminal for an interrupt, or came to its end before
				m.until("nothing stands ready any more", func() bool { return m.returnUnits() == "" })
				m.same("taken back", was)
				return
			}
			m.returned()
			m.same("taken back", was)
			saysAll(t, m.golem(1, "apply", "--auto-approve", "--quiet", site).stderr, "because nobody confirmed it")
			if !m.lets() {
				t.Error("cron brought the bad scroll back")
			}
		})
	}
}

const brokenSSHD = `
scroll "ssh" {
  file "/etc/ssh/sshd_config.d/10-access.conf" {
    content = "AllowUsers nobody\n"
  }
  service "ssh.service" {
    restart_on = ["file:/etc/ssh/sshd_config.d/*"]
  }
}
scroll "after" {
  file "/etc/after" {
    content = "after\n"
  }
}
`

const stoppedSSHD = `
scroll "ssh" {
  service "ssh.service" {
    state   = "stopped"
    enabled = false
  }
}
scroll "after" {
  file "/etc/after" {
    content = "after\n"
  }
}
`

// letIn lets root of the machine log in to it by a key.
func (m *machine) letIn() {
	m.t.Helper()
	m.sh(`mkdir -p -m 700 /root/.ssh /run/sshd
		ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519
		cp /root/.ssh/id_ed25519.pub /root/.ssh/authorized_keys
		printf 'StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\nConnectTimeout 2\nBatchMode yes\n' > /root/.ssh/config
		systemctl start ssh.service`)
	m.until("root is let in", m.lets)
}

// lets says whether root is let in.
func (m *machine) lets() bool { return m.run("ssh", "root@127.0.0.1", "true").code == 0 }

// TestConfirmSurvivesEveryKill kills golem and systemctl at every call of a run that waits
// to be confirmed, of its confirmation and of its return: the host is never changed without
// something that stands ready to take that back, and what stands ready goes in the end.
func TestConfirmSurvivesEveryKill(t *testing.T) {
	t.Parallel()
	for _, act := range []string{"apply", "confirm", "recover"} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			m := lawHost(t)
			s := newSaboteur(m, "systemctl")
			stop := "  service \"law-busy\" {\n    state = \"stopped\"\n  }\n"
			if act == "confirm" {
				stop = "" // what a confirmed run stopped, destroy does not start
			}
			m.declare(motd("new") + "scroll \"unit\" {\n  service \"law-idle\" {\n    state = \"running\"\n  }\n" + stop + "}\n")
			apply := []string{"golem", "apply", "--auto-approve", "--confirm-within", "1h", site}
			args := map[string][]string{"apply": apply, "confirm": {"golem", "confirm"}, "recover": {"golem", "recover", "--unconfirmed"}}[act]
			found := m.print()
			ways := []string{killedAtStart, killedAtEnd, killedUnder, killedMidway}
			for n := 1; !t.Failed(); n++ {
				if act != "apply" {
					m.must(apply...)
				}
				at := s.at(n, ways[n%len(ways)], func() { m.run(args...) })
				if at != "" && act == "apply" && m.read("/etc/motd") == "new\n" && strings.Count(m.returnUnits(), "\n") < 4 {
					t.Errorf("%s: the host is changed, and what stands ready is\n%s", at, m.returnUnits())
				}
				m.settleReturn(act == "confirm")
				if at == "" {
					if n < 4 {
						t.Errorf("%s called systemctl %d times", act, n-1)
					}
					return
				}
				m.same(at, found)
			}
		})
	}
}

// settleReturn brings what is left of an unconfirmed run to its end, as the timer or the
// next boot would. stays says that the run may have been confirmed: it is destroyed then.
func (m *machine) settleReturn(stays bool) {
	m.t.Helper()
	if a := m.run("golem", "recover", "--unconfirmed"); a.code != 0 && !strings.Contains(a.stderr, "no run waits") {
		m.t.Errorf("recover --unconfirmed: exit %d\n%s%s", a.code, a.stdout, a.stderr)
	}
	for unit := range strings.FieldsSeq(m.sh("cd /etc/systemd/system; ls | grep 'golem-return-.*service$' || true")) {
		m.must("systemctl", "daemon-reload") // a boot reads the files anew
		m.must("systemctl", "start", unit)
	}
	if stays {
		m.destroyed()
	}
	m.golem(0, "recover") // of a return that died at its very end the next run clears the rest
	if units := m.returnUnits(); units != "" {
		m.t.Errorf("there still is\n%s", units)
	}
}

func TestJSONOfAConfirmation(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.declare(motd("new"))
	m.apply("--confirm-within", "1h")
	var said struct {
		Confirmed struct {
			Lineage  string
			Revision int
		}
	}
	m.check(json.Unmarshal([]byte(m.golem(0, "confirm", "--json").stdout), &said))
	if said.Confirmed.Lineage != "web" || said.Confirmed.Revision != 1 {
		t.Errorf("confirmed: %+v", said)
	}
}

// saysAll is says of several parts.
func saysAll(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		says(t, text, part)
	}
}
