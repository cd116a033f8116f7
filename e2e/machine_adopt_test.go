package e2e

import (
	"strings"
	"testing"
)

// TestAdoptScanFindsWhatSomebodyMadeOfTheHost: after a dozen changes by hand a scan proposes
// all of them; its scroll changes nothing, and applied and destroyed the host is as it was.
func TestAdoptScanFindsWhatSomebodyMadeOfTheHost(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(unitPackage("daemon"), unitPackage("quiet"), tiny{
		Name: "tool", Files: map[string]string{"/usr/bin/tool": "#!/bin/sh\n", "/etc/tool.conf": "shipped\n", "/etc/tool.d/gone.conf": "shipped\n"},
		Conffiles: []string{"/etc/tool.conf", "/etc/tool.d/gone.conf"},
	})
	m.sh(`
apt-get install -y -qq daemon quiet tool >/dev/null 2>&1
printf 'changed\n$${x} %%{y}\n' > /etc/tool.conf
rm /etc/tool.d/gone.conf
printf 'vm.swappiness = 1\n' > /etc/sysctl.d/90-own.conf
printf '#!/bin/sh\nexit 0\n' > /usr/local/bin/own; chmod 0755 /usr/local/bin/own
printf 'caf\351\n' > /etc/latin
ln -s /usr/share/zoneinfo/Europe/Berlin /etc/own-link
printf 'hunter2\n' > /etc/own-secret; chmod 0600 /etc/own-secret
mkdir -p /var/spool/cron/crontabs; printf '1 2 * * * true\n' > /var/spool/cron/crontabs/root; chmod 0600 /var/spool/cron/crontabs/root
printf '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n' > /etc/systemd/system/own.service
systemctl daemon-reload; systemctl enable -q --now own.service
systemctl disable -q --now daemon.service
systemctl mask -q quiet.service
`)
	found := m.print()
	scan := m.golem(0, "adopt", "--scan").stdout
	m.same("after the scan", found)
	for _, want := range []string{
		`apt "daemon" {`, `apt "quiet" {`, `apt "tool" {`, `file "/etc/tool.conf" {`, "# changed since tool brought it", `file "/etc/sysctl.d/90-own.conf" {`,
		`file "/usr/local/bin/own" {`, `content_base64 = "Y2Fm6Qo="`, `link "/etc/own-link" {`, `file "/var/spool/cron/crontabs/root" {`,
		`file "/etc/systemd/system/own.service" {`, `service "own.service" {`, `service "daemon.service" {`, `service "quiet.service" {`,
		`# Not proposed: /etc/tool.d/gone.conf of tool was removed by hand`, `# Not proposed: /etc/own-secret (no package has it): not everybody may read it`,
	} {
		if !strings.Contains(scan, want) {
			t.Errorf("the scan does not say %s", want)
		}
	}
	if strings.Contains(scan, "hunter2") {
		t.Error("the scan shows what not everybody may read")
	}
	if t.Failed() {
		t.Fatal(scan)
	}
	m.write("/root/site/main.hcl", scan)
	changes, _ := m.planJSON()["changes"].([]any)
	if len(changes) < 12 {
		t.Errorf("the plan has %d changes", len(changes))
	}
	for _, c := range changes {
		change, _ := c.(map[string]any)
		if change["effect"] != "record" && change["key"] != "apt:tool" {
			t.Errorf("%v: %v, %v", change["key"], change["effect"], change["reason"])
		}
	}
	m.golem(0, "apply", "--auto-approve", "/root/site")
	m.same("after the apply", found)
	says(t, m.golem(0, "plan", "/root/site").stdout, "No changes.")
	m.golem(0, "destroy", "--auto-approve", "/root/site")
	m.same("after the destroy", found)
}

// TestAdoptRecordsWhatIsThere: a service, a package and a file are adopted as they are; the
// printed scroll changes nothing, and undeclaring them leaves them.
func TestAdoptRecordsWhatIsThere(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(unitPackage("daemon"))
	m.sh("apt-get install -y -qq daemon >/dev/null 2>&1; printf 'by hand\n' > /etc/motd; mkdir /srv/data")
	found := m.print()
	scroll := "name = \"web\"\n"
	for _, args := range [][]string{{"apt", "daemon"}, {"service", "daemon"}, {"file", "/etc/motd"}, {"directory", "/srv/data"}} {
		scroll += m.golem(0, append([]string{"adopt", "--name", "web"}, args...)...).stdout
	}
	m.same("after adopting", found)
	m.write("/root/site/main.hcl", scroll)
	says(t, m.golem(0, "plan", "--detailed-exitcode", "/root/site").stdout, "No changes. 4 glyphs are as the scroll says.")
	says(t, m.golem(1, "adopt", "--name", "web", "service", "nosuch").stderr, "adopt service nosuch: systemd knows no such unit")
	says(t, m.golem(1, "adopt", "--name", "web", "apt", "nosuch").stderr, "dpkg knows no such package here")
	m.golem(0, "destroy", "--auto-approve", "--name", "web")
	m.same("after the destroy", found)
}
