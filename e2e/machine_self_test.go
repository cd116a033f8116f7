package e2e

import (
	"strings"
	"testing"
	"time"
)

func TestMachineBootsAndRuns(t *testing.T) {
	t.Parallel()
	m := boot(t)
	if got := strings.TrimSpace(m.must("hostname")); got != "host1" {
		t.Errorf("it is called %q", got)
	}
	if got := strings.TrimSpace(m.must("cat", "/proc/1/comm")); got != "systemd" {
		t.Errorf("its process 1 is %q", got)
	}
	if m.active("ssh") != "active" || m.enabled("ssh") != "enabled" {
		t.Errorf("ssh is %s and %s", m.active("ssh"), m.enabled("ssh"))
	}
	if got := m.installed("nftables"); !strings.HasPrefix(got, "install ok installed ") || m.enabled("nftables") != "disabled" {
		t.Errorf("nftables is %q and %s", got, m.enabled("nftables"))
	}
	if got := m.installed("no-such-package"); got != "" {
		t.Errorf("no-such-package is %q", got)
	}
	says(t, m.must("ip", "-brief", "address"), "127.0.0.1/8")
	if n := strings.Count(m.must("ip", "-brief", "link"), "\n"); n != 1 {
		t.Errorf("it has %d network links:\n%s", n, m.must("ip", "-brief", "link"))
	}
	m.golem(0, "version")
}

func TestMachineTwoAtOnceAreApart(t *testing.T) {
	t.Parallel()
	a, b := boot(t), boot(t)
	before := b.print()
	a.write("/etc/only-a", "a\n")
	a.must("systemctl", "stop", "ssh")
	b.same("after a change to another machine", before)
	if b.exists("/etc/only-a") || b.active("ssh") != "active" {
		t.Error("two machines are one")
	}
}

func TestMachinePrintHoldsStillAndShowsEveryChange(t *testing.T) {
	t.Parallel()
	m := boot(t)
	before := m.print()
	m.same("an idle moment later", before)
	for _, change := range []struct{ name, do, shows, undo string }{
		{"a new file", "touch /etc/x", `"/etc/x"`, "rm /etc/x"},
		{"a file's time", "cp -p /etc/hosts /root/h && touch /etc/hosts", `"/etc/hosts"`, "cp -p /root/h /etc/hosts && rm /root/h"},
		{"a mode", "chmod 0600 /etc/fstab", `"/etc/fstab"`, "chmod 0644 /etc/fstab"},
		{"a hold", "apt-mark hold nftables", "package nftables:amd64 hold ok installed", "apt-mark unhold nftables"},
		{"a mark", "apt-mark auto nftables", "automatic nftables:amd64", "apt-mark manual nftables"},
		{"an enabled unit", "systemctl enable nftables", "unit file nftables.service enabled", "systemctl disable nftables"},
		{"a masked unit", "systemctl mask nftables", "unit file nftables.service masked", "systemctl unmask nftables"},
		{"a started unit", "systemctl start systemd-networkd", "unit systemd-networkd.service loaded active running", "systemctl stop systemd-networkd systemd-networkd.socket"},
		{"a stopped unit", "systemctl stop ssh", "unit ssh.service loaded active running", "systemctl start ssh"},
		{"a unit that systemd has not read", "cp -p /lib/systemd/system/ssh.service /root/u && touch /lib/systemd/system/ssh.service", "stale unit Id=ssh.service", "cp -p /root/u /lib/systemd/system/ssh.service && rm /root/u"},
		{"a packet filter rule", "nft add table inet x", "nft table inet x", "nft delete table inet x"},
		{"a user", "useradd --system somebody", `"/etc/passwd"`, "userdel somebody"},
		{"a debconf answer", "echo 'man-db man-db/auto-update boolean true' | debconf-set-selections", "debconf config man-db/auto-update", "echo PURGE | DEBIAN_FRONTEND=noninteractive debconf-communicate man-db"},
	} {
		m.sh(change.do)
		if diff := difference(before, m.print()); !strings.Contains(diff, change.shows) {
			t.Errorf("%s does not show:\n%s", change.name, diff)
		}
		m.sh(change.undo)
	}
	m.same("with all of it undone", before)
}

func TestMachineInstallsAndPurgesBackToTheSame(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(
		tiny{Name: "liblow", Version: "2.0"},
		tiny{
			Name: "kept", Depends: "liblow (>= 1.5)",
			Files:     map[string]string{"/etc/kept.conf": "a = 1\n", "/usr/bin/kept": "#!/bin/sh\necho kept\n"},
			Conffiles: []string{"/etc/kept.conf"},
			Postinst:  "mkdir -p /var/lib/kept; [ -e /var/lib/kept/data ] || echo mine >/var/lib/kept/data\n",
			Postrm:    "if [ \"$1\" = purge ]; then rm -rf /var/lib/kept; fi\n",
		},
		tiny{
			Name: "asks", PreDepends: "debconf",
			Templates: "Template: asks/colour\nType: string\nDefault: red\nDescription: Which colour?\n",
			Config:    ". /usr/share/debconf/confmodule\ndb_input high asks/colour || true\ndb_go || true\n",
			Postinst:  ". /usr/share/debconf/confmodule\ndb_get asks/colour\necho \"$RET\" >/etc/asks.conf\n",
			Postrm:    "if [ \"$1\" = purge ]; then rm -f /etc/asks.conf; . /usr/share/debconf/confmodule; db_purge; fi\n",
		},
		unitPackage("sleeper"),
	)
	before := m.print()
	install := func(names string) {
		t.Helper()
		m.sh("DEBIAN_FRONTEND=noninteractive apt-get install -y " + names)
	}
	purge := func(names string) {
		t.Helper()
		m.sh("DEBIAN_FRONTEND=noninteractive apt-get purge -y --autoremove " + names)
		m.same("after the purge of "+names, before)
	}

	install("kept")
	if m.read("/var/lib/kept/data") != "mine\n" || m.must("kept") != "kept\n" || m.installed("liblow") != "install ok installed 2.0" {
		t.Error("kept is not installed")
	}
	says(t, difference(before, m.print()), "automatic liblow:amd64")
	purge("kept")

	install("asks")
	if m.read("/etc/asks.conf") != "red\n" {
		t.Errorf("the answer is %q", m.read("/etc/asks.conf"))
	}
	purge("asks")

	install("sleeper")
	if m.active("sleeper") != "active" || m.enabled("sleeper") != "enabled" {
		t.Errorf("sleeper is %s and %s", m.active("sleeper"), m.enabled("sleeper"))
	}
	purge("sleeper")

	install("nginx-light")
	if m.active("nginx") != "active" {
		t.Errorf("nginx is %s", m.active("nginx"))
	}
	m.sh("DEBIAN_FRONTEND=noninteractive apt-get purge -y --autoremove nginx-light && rm -r /var/www") // a page stays
	m.same("after the purge of nginx-light", before)

	m.repoDrop("kept", "1.0")
	if a := m.run("apt-get", "install", "-y", "kept"); a.code == 0 {
		t.Error("kept can be installed without an archive that has it")
	}
	// What the host itself has is in its archive, too.
	m.sh("apt-get remove -y nftables && apt-get install -y nftables")
}

func TestMachineRebootsOnTheSameDisk(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.write("/etc/stays", "x\n")
	m.write("/run/goes", "x\n")
	boot1 := m.read("/proc/sys/kernel/random/boot_id")
	before := m.print()
	m.reboot()
	if m.read("/etc/stays") != "x\n" || m.exists("/run/goes") || m.read("/proc/sys/kernel/random/boot_id") == boot1 {
		t.Error("that was no reboot")
	}
	m.write("/run/goes", "x\n")
	m.same("after a reboot", before)
}

func TestMachineCommandsInTheBackground(t *testing.T) {
	t.Parallel()
	m := boot(t)
	cmd := m.start("sh", "-c", "echo here; exec sleep 1000")
	for range 500 {
		if cmd.Stdout.(*syncBuffer).String() == "here\n" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	m.must("pgrep", "-x", "sleep")
	m.signal(cmd, 15)
	if err := cmd.Wait(); err == nil {
		t.Error("a command that was ended ended well")
	}
	m.write("/etc/a/b", "through\n")
	m.sh("ln -s /etc/a /root/link")
	if got := m.read("/root/link/b"); got != "through\n" {
		t.Errorf("a link leads to %q", got)
	}
	m.declare("file \"/etc/motd.d/hello\" {\n  content = \"hello\\n\"\n}\n")
	before := m.print()
	says(t, m.plan(), "/etc/motd.d/hello")
	if m.planJSON() == nil {
		t.Error("there is no plan")
	}
	m.apply()
	if m.read("/etc/motd.d/hello") != "hello\n" {
		t.Error("not applied")
	}
	m.destroy()
	m.same("after destroy", before)
}
