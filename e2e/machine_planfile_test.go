package e2e

import (
	"strings"
	"testing"
)

// savedScroll is a scroll whose plan rests on packages, units, accounts and files, over
// what lawHost has.
const savedScroll = `
scroll "base" {
  apt "law-d" {}
  apt "law-e" {}
  file "/etc/law.conf" {
    content   = "token=s3cr3t-of-golem\n"
    sensitive = true
  }
  line "hosts" {
    path = "/etc/hosts"
    line = "10.9.9.9 law"
  }
  user "dora" {
    shell = "/bin/sh"
  }
}
scroll "run" {
  service "law-idle" {
    state   = "running"
    enabled = true
  }
  service "law-busy" {
    restart_on = ["file:/etc/law.conf"]
  }
  process "law-own" {
    command = ["/bin/sleep", "infinity"]
  }
}
`

// aMove is something that moves on a host after a plan was saved, how that is put right
// again, and what of the plan it is named by.
type aMove struct{ name, does, undoes, told string }

// savedMoves are moves of every sort of thing that the plan of savedScroll rests on.
var savedMoves = []aMove{
	{"a package comes", "apt-get install -y -qq law-e >/dev/null 2>&1", "apt-get purge -y -qq law-e >/dev/null 2>&1", "apt:law-e: it is not as it was"},
	{"a package gets another mark", "apt-mark auto law-d >/dev/null", "apt-mark manual law-d >/dev/null", "apt:law-d: it is not as it was"},
	{"a package is held", "apt-mark hold law-d >/dev/null", "apt-mark unhold law-d >/dev/null", "apt:law-d: it is not as it was"},
	{"a unit starts", "systemctl start law-idle", "systemctl stop law-idle", "service:law-idle.service: it is not as it was"},
	{"a unit is enabled", "systemctl enable -q law-idle", "systemctl disable -q law-idle", "service:law-idle.service: it is not as it was"},
	{"a unit that runs stops", "systemctl stop law-busy", "systemctl start law-busy", "service:law-busy.service: something else would be done about it"},
	{"a process's unit appears", "touch /etc/systemd/system/law-own.service", "rm /etc/systemd/system/law-own.service", "it cannot be done any more: The unit law-own.service"},
	{"a file is changed", "cp -p /etc/law.conf /run/law; echo by hand > /etc/law.conf", "cp -p /run/law /etc/law.conf; rm /run/law", "file:/etc/law.conf: it is not as it was"},
	{"its mode is changed", "chmod 0600 /etc/law.conf", "chmod 0644 /etc/law.conf", "file:/etc/law.conf: it is not as it was"},
	{"another line of an edited file", "cp -p /etc/hosts /run/hosts; echo 10.1.1.1 other >> /etc/hosts", "cp -p /run/hosts /etc/hosts; rm /run/hosts", "line:/etc/hosts:10.9.9.9 law: it is not as it was"},
	{"a file becomes a directory", "mv /etc/law.conf /run/law; mkdir /etc/law.conf", "rmdir /etc/law.conf; mv /run/law /etc/law.conf", "it cannot be done any more: "},
	{"the scroll is changed", "echo '# more' >> /root/site/main.hcl", "sed -i '$d' /root/site/main.hcl", "the scroll /root/site has changed"},
	{"the host is another", "cp -p /etc/machine-id /run/id; echo 0123456789abcdef0123456789abcdef > /etc/machine-id", "cp -p /run/id /etc/machine-id; rm /run/id", "it was made on another host: "},
}

// TestReport48PlanFilesOnARealHost: a saved plan is refused, with the thing named and
// nothing touched, whatever moved; as long as nothing did it is done, once, also by a run
// that waits to be confirmed.
func TestReport48PlanFilesOnARealHost(t *testing.T) {
	t.Parallel()
	m := lawHost(t)
	m.sh("apt-get install -y -qq law-d >/dev/null 2>&1")
	found := m.print()
	const file = "/root/web.plan"
	m.declare(savedScroll)
	saysAll(t, m.golem(0, "plan", "--out", file, site).stdout, "Plan: 8 to install", "Saved: golem apply /root/web.plan does this.")
	if got := m.sh("stat -c %a " + file + "; grep -c s3cr3t-of-golem " + file + " || true"); got != "600\n0\n" {
		t.Errorf("its mode, and how often the secret is in it: %q", got)
	}
	before := m.print()
	for _, move := range savedMoves {
		m.sh(move.does)
		a := m.golem(5, "apply", file)
		says(t, a.stderr, move.told)
		if lines := strings.Count(a.stderr, "\n  "); lines != 1 && !strings.HasPrefix(move.told, "apt:") { // one transaction has all
			t.Errorf("%s: it names %d things:\n%s", move.name, lines, a.stderr)
		}
		if strings.Contains(move.told, "another host") {
			saysAll(t, m.golem(1, "show", file).stderr, "golem: read the plan file /root/web.plan: it was made on another host: ")
		}
		m.sh(move.undoes)
	}
	m.same("after plans that were stale", before)

	// What the archive now offers, and another lineage's line, make it stale, too.
	m.repo(tiny{Name: "law-e", Version: "2.0"})
	says(t, m.golem(5, "apply", file).stderr, "apt:law-e: ")
	m.repoDrop("law-e", "2.0")
	m.write("/root/other/main.hcl", "name = \"other\"\nline \"x\" {\n  path = \"/etc/hosts\"\n  line = \"10.2.2.2 other\"\n}\n")
	m.golem(0, "apply", "--auto-approve", "/root/other")
	says(t, m.golem(5, "apply", file).stderr, "line:/etc/hosts:10.9.9.9 law: the journal has something else of it")
	m.golem(0, "destroy", "--auto-approve", "/root/other")

	// A run that waits to be confirmed does what was saved, without asking, though the host was
	// booted anew; and it was once.
	m.golem(0, "plan", "--out", file, site)
	m.reboot()
	saysAll(t, m.golem(0, "apply", "--confirm-within", "5m", file).stdout, "Applied as revision 1: 8 installed", "Not confirmed yet: ")
	saysAll(t, m.golem(5, "apply", file).stderr, "web is at revision 1, and it was made at 0")
	m.golem(0, "confirm")
	saysAll(t, m.golem(5, "apply", file).stderr, "web is at revision 1, and it was made at 0")
	m.is("law-idle active", "law-own active")
	saysAll(t, m.plan(), "No changes.")

	// One that nobody confirms is taken back, and its plan is as stale as any that was applied.
	m.declare(strings.Replace(savedScroll, `state   = "running"`, `state   = "stopped"`, 1))
	m.golem(0, "plan", "--out", file, site)
	settled := m.print()
	m.golem(0, "apply", "--confirm-within", "1s", file)
	m.returned()
	m.same("after the run that nobody confirmed", settled)
	saysAll(t, m.golem(5, "apply", file).stderr, "web is at revision ")

	// A destroy is saved as well.
	m.golem(0, "plan", "--destroy", "--out", file, site)
	saysAll(t, m.golem(0, "apply", file).stdout, "8 removed")
	m.sh("rm -rf /root/web.plan /root/other /root/site")
	m.same("after the saved destroy", found)
}
