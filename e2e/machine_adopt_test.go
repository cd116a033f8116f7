package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// handMade are changes that somebody makes of a host by hand, of all sorts. dpkg's log counts
// in seconds: what is written while it works, it is taken to have written.
const handMade = `
apt-get install -y -qq daemon quiet tool >/dev/null 2>&1
sleep 2.1
printf 'changed\n$${x} %%{y}\n' > /etc/tool.conf
rm /etc/tool.d/gone.conf
chmod 0664 /etc/tool.d/mode.conf
chmod 4755 /usr/bin/tool
printf 'Port 2222\n' >> /etc/ssh/sshd_config
apt-mark hold quiet >/dev/null
dpkg --add-architecture s390x
dpkg-divert --quiet --local --rename --divert /usr/bin/tool.shipped --add /usr/bin/tool2
printf 'vm.swappiness = 1\n' > /etc/sysctl.d/90-own.conf
printf '#!/bin/sh\nexit 0\n' > /usr/local/bin/own; chmod 0755 /usr/local/bin/own
update-alternatives --quiet --install /usr/bin/pick pick /usr/local/bin/own 10; update-alternatives --quiet --set pick /usr/local/bin/own
printf 'caf\351\n' > /etc/latin
ln -s /usr/share/zoneinfo/Europe/Berlin /etc/own-link
mkdir -m 0750 /etc/own.d
mkdir -p /usr/local/many/in; for i in $(seq 101); do echo $i > /usr/local/many/in/$i; done
head -c 70000 /dev/zero > /usr/local/big
printf 'hunter2\n' > /etc/own-secret; chmod 0600 /etc/own-secret
groupadd -g 1500 crew
useradd -m -u 1501 -s /bin/bash -c 'Ada' -G crew,adm -p '$6$hunter2$hunter2' ada
mkdir -m 0700 /home/ada/.ssh; printf '# by hand\nssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJx0vXq0n5q8bQnX3eYt5g6rVh8b0Yd2n9u3kQw1cM7p ada\n' > /home/ada/.ssh/authorized_keys
chown -R ada:ada /home/ada/.ssh; usermod -L -e 2031-12-31 ada
useradd -r -s /usr/sbin/nologin svc
usermod -aG adm www-data
mkdir -p /root/.ssh; printf 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJx0vXq0n5q8bQnX3eYt5g6rVh8b0Yd2n9u3kQw1cM7p root\n' > /root/.ssh/authorized_keys
mkdir -p /var/spool/cron/crontabs
for user in root ada; do printf '1 2 * * * true\n' > /var/spool/cron/crontabs/$user; chmod 0600 /var/spool/cron/crontabs/$user; done; chown ada /var/spool/cron/crontabs/ada
printf '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n' > /etc/systemd/system/own.service
mkdir /etc/systemd/system/ssh.service.d; printf '[Service]\nNice=5\n' > /etc/systemd/system/ssh.service.d/nice.conf
systemctl daemon-reload; systemctl enable -q --now own.service
systemctl disable -q --now daemon.service
systemctl mask -q quiet.service
systemctl enable -q nftables.service getty@tty2.service
systemctl set-default -q multi-user.target
ln -s /lib/systemd/system/fstrim.service /etc/systemd/system/multi-user.target.wants/fstrim.service
ln -sfn /usr/share/zoneinfo/Asia/Tokyo /etc/localtime
printf '#!/bin/sh\n' > /usr/bin/stray; chmod 0755 /usr/bin/stray
printf '[Service]\nExecStart=/bin/sleep 9\n' > /usr/lib/systemd/system/stray.service
printf '[Service]\nExecStart=/bin/sleep 9\n[Install]\nWantedBy=default.target\n' > /etc/systemd/user/each.service
systemctl --global -q enable each.service; systemctl --global -q mask none.service
mkdir -p /var/lib/systemd/linger; touch /var/lib/systemd/linger/ada
mkfifo /etc/own-pipe; mkdir -p /opt/own/bin; chmod 0700 /etc/ssh; chmod 2755 /usr/share
systemctl daemon-reload
`

// TestAdoptScanFindsWhatSomebodyMadeOfTheHost: of a host as it is after its installation a scan
// proposes what its installer wrote and no more; after changes by hand, of all sorts, it finds
// all of them; its scroll changes nothing, and applied and destroyed the host is as it was. What
// golem has in force is not proposed again.
func TestAdoptScanFindsWhatSomebodyMadeOfTheHost(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(unitPackage("daemon"), unitPackage("quiet"), tiny{
		Name: "tool", Files: map[string]string{
			"/usr/bin/tool": "#!/bin/sh\n", "/usr/bin/tool2": "#!/bin/sh\n",
			"/etc/tool.conf": "shipped\n", "/etc/tool.d/gone.conf": "shipped\n", "/etc/tool.d/mode.conf": "shipped\n", "/etc/tool.d/as.conf": "shipped\n",
		},
		Conffiles: []string{"/etc/tool.conf", "/etc/tool.d/gone.conf", "/etc/tool.d/mode.conf", "/etc/tool.d/as.conf"},
	})
	fresh := m.golem(0, "adopt", "--scan").stdout
	for line := range strings.Lines(fresh) {
		if block := regexp.MustCompile(`^  (\w+ "[^"]+")`).FindStringSubmatch(line); block != nil && !freshScan.MatchString(block[1]) {
			t.Errorf("of a fresh host the scan proposes %s", block[1])
		}
	}
	notes := regexp.MustCompile(`(?m)^# Not proposed: (.*)$`).FindAllStringSubmatch(fresh, -1)
	if len(notes) != 1 || !strings.HasPrefix(notes[0][1], "/srv/repo ") {
		t.Errorf("of a fresh host the scan has the notes %q", notes)
	}

	m.sh(handMade)
	found := m.print()
	scan := m.golem(0, "adopt", "--scan").stdout
	m.same("after the scan", found)
	for _, want := range []string{
		`apt "daemon" {`, `apt "quiet" {`, "# held", "hold = true", `apt "tool" {`, "# Not proposed: dpkg also takes packages of the architecture s390x",
		`file "/etc/tool.conf" {`, "# changed since tool brought it", `file "/etc/tool.d/mode.conf" {`, "# its mode or owner was changed since tool brought it",
		"# Not proposed: /usr/bin/tool of tool: its mode, owner or attributes were changed, it is 4755 root:root now",
		`file "/etc/ssh/sshd_config" {`, "# changed since a package's script made it",
		"# Not proposed: /usr/bin/tool2 is diverted to /usr/bin/tool.shipped by hand",
		`file "/etc/sysctl.d/90-own.conf" {`, `file "/usr/local/bin/own" {`, `content_base64 = "Y2Fm6Qo="`, `link "/etc/own-link" {`, `link "/etc/alternatives/pick" {`,
		`directory "/etc/own.d" {`,
		`group "crew" {`, `user "ada" {`, `groups          = ["adm", "crew"]`, `locked          = true`, `expires         = "2031-12-31"`, `cM7p ada"]`,
		`user "svc" {`, "# in the group adm, and by no package", `user "www-data" {`, "# SSH keys open it", `user "root" {`,
		`file "/var/spool/cron/crontabs/root" {`, `file "/var/spool/cron/crontabs/ada" {`,
		`file "/etc/systemd/system/own.service" {`, `file "/etc/systemd/system/ssh.service.d/nice.conf" {`,
		`service "own.service" {`, `service "daemon.service" {`, `service "quiet.service" {`, `service "nftables.service" {`, `service "getty@tty2.service" {`,
		`link "/etc/systemd/system/default.target" {`, `link "/etc/systemd/system/multi-user.target.wants/fstrim.service" {`,
		"# Not proposed: /usr/local/many/in (no package has it): there are 101 files, links and directories in it",
		"# Not proposed: /usr/local/big (no package has it): its 70 kB are too many for a scroll",
		`link "/etc/localtime" {`, `file "/usr/bin/stray" {`, `file "/usr/lib/systemd/system/stray.service" {`, `file "/etc/systemd/user/each.service" {`,
		`link "/etc/systemd/user/default.target.wants/each.service" {`, `link "/etc/systemd/user/none.service" {`, `file "/var/lib/systemd/linger/ada" {`,
		`directory "/etc/ssh" {`, "its mode, owner or attributes were changed, it is 2755 root:root now",
		"# Not proposed: /etc/own-pipe (no package has it): a pipe, a socket or a device", "# Not proposed: /opt/own (no package has it): what lies in /opt is not looked into",
		`# Not proposed: /etc/tool.d/gone.conf of tool was removed by hand`, `# Not proposed: /etc/own-secret (no package has it): not everybody may read it`,
	} {
		if !strings.Contains(scan, want) {
			t.Errorf("the scan does not say %s", want)
		}
	}
	for _, not := range []string{"hunter2", "/etc/tool.d/as.conf", `file "/etc/ssh/ssh_host`, `service "fstrim.service"`, `directory "/usr/local/many"`, `file "/usr/bin/tool.shipped"`, `directory "/etc/apt"`, `since adduser brought it`, `service "ssh.service"`} {
		if strings.Contains(scan, not) {
			t.Errorf("the scan says %s", not)
		}
	}
	if t.Failed() {
		t.Fatal(scan)
	}
	m.write("/root/site/main.hcl", scan)
	changes, _ := m.planJSON()["changes"].([]any)
	if len(changes) < 30 {
		t.Errorf("the plan has %d changes", len(changes))
	}
	for _, c := range changes {
		change, _ := c.(map[string]any)
		if change["effect"] != "record" {
			t.Errorf("%v: %v, %v", change["key"], change["effect"], change["reason"])
		}
	}
	m.golem(0, "apply", "--auto-approve", "/root/site")
	m.same("after the apply", found)
	says(t, m.golem(0, "plan", "/root/site").stdout, "No changes.")
	if again := m.golem(0, "adopt", "--scan").stdout; strings.Contains(again, "scroll ") {
		t.Errorf("what golem has in force is proposed again: %s", again)
	}
	m.golem(0, "destroy", "--auto-approve", "/root/site")
	m.same("after the destroy", found)
}

// freshScan is what a scan may propose of the machine as it boots: what its recipe wrote by
// hand, and the packages and timers it chose.
var freshScan = regexp.MustCompile(`^(file "/etc/(apt/sources\.list|fstab|hostname|hosts)"|apt "[a-z0-9-]+"|service "(apt-daily|apt-daily-upgrade|dpkg-db-backup|e2scrub_all|fstrim)\.timer")$`)

// TestAdoptRecordsWhatIsThere: a service, a package, a file, a user and a grant are adopted as they
// are, by the command and by adopt blocks; the printed scroll changes nothing, and undeclaring
// them leaves them.
func TestAdoptRecordsWhatIsThere(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(unitPackage("daemon"), unitPackage("quiet"))
	m.sh("apt-get install -y -qq daemon >/dev/null 2>&1; printf 'by hand\n' > /etc/motd; mkdir /srv/data; useradd ada")
	m.write("/root/acl/main.hcl", "name = \"acl\"\naccess \"/srv/data\" {\n  user  = \"ada\"\n  perms = \"rx\"\n}\n")
	m.golem(0, "apply", "--auto-approve", "/root/acl")
	m.golem(0, "state", "forget", "access:/srv/data:user:ada") // so that it is somebody's
	found := m.print()
	scroll := "name = \"web\"\n"
	for _, args := range [][]string{{"apt", "daemon"}, {"service", "daemon"}, {"file", "/etc/motd"}, {"directory", "/srv/data"}, {"user", "ada"}, {"access", "/srv/data:user:ada"}} {
		scroll += m.golem(0, append([]string{"adopt", "--name", "web"}, args...)...).stdout
	}
	m.same("after adopting", found)
	m.write("/root/site/main.hcl", scroll)
	says(t, m.golem(0, "plan", "--detailed-exitcode", "/root/site").stdout, "No changes. 6 glyphs are as the scroll says.")
	m.golem(0, "destroy", "--auto-approve", "--name", "web")
	m.same("after taking back what was adopted", found)

	// The same by adopt blocks, and what is not there is told at the block.
	blocks := "adopt {\n  for_each = toset([\"apt:daemon\", \"service:daemon.service\", \"user:ada\", \"group:ada\", \"access:/srv/data:user:ada\"])\n  key      = each.value\n}\n"
	glyphs := "apt \"daemon\" {}\nservice \"daemon.service\" { enabled = true }\nuser \"ada\" {}\ngroup \"ada\" {}\naccess \"/srv/data\" {\n  user  = \"ada\"\n  perms = \"rx\"\n}\n"
	m.write("/root/site/main.hcl", "name = \"web\"\n"+blocks+glyphs)
	saysAll(t, m.golem(0, "plan", "/root/site").stdout, "Adopted: 5 glyphs are there already.", "service:daemon.service", "adopted: it is so already")
	m.golem(0, "apply", "--auto-approve", "/root/site")
	m.same("after adopting by blocks", found)
	m.write("/root/site/main.hcl", "name = \"web\"\n"+glyphs)
	says(t, m.golem(0, "plan", "--detailed-exitcode", "/root/site").stdout, "No changes. 5 glyphs are as the scroll says.")
	m.golem(0, "destroy", "--auto-approve", "--name", "web")
	m.same("after taking back what blocks adopted", found)
	m.write("/root/site/main.hcl", "name = \"web\"\napt \"quiet\" {}\ngroup \"bob\" {}\nuser \"bob\" {}\naccess \"/srv/data\" {\n  group = \"ada\"\n  perms = \"rx\"\n}\n"+
		"adopt { key = \"apt:quiet\" }\nadopt { key = \"user:bob\" }\nadopt { key = \"group:bob\" }\nadopt { key = \"access:/srv/data:group:ada\" }\n")
	refused := m.golem(1, "plan", "/root/site").stderr
	saysAll(t, refused, "main.hcl line 9, in adopt", "no apt:quiet to take over", "no user:bob to take over", "no group:bob to take over", "no access:/srv/data:group:ada to")
	if strings.Contains(refused, "Unknown") {
		t.Errorf("more is refused: %s", refused)
	}
	// What waits for its socket is not stopped for good.
	m.sh("cd /etc/systemd/system; printf '[Socket]\nListenStream=/run/waits.sock\n' | tee waits.socket > idle.socket; printf '[Service]\nExecStart=/bin/sleep 9\n' | tee idle.service > waits.service; " +
		"printf '[Install]\nWantedBy=multi-user.target\n' >> waits.service; sed -i s/waits/idle/ idle.socket; systemctl daemon-reload; systemctl start waits.socket idle.socket")
	m.write("/root/site/main.hcl", "name = \"web\"\n"+m.golem(0, "adopt", "--name", "web", "service", "waits").stdout)
	says(t, m.golem(0, "plan", "--detailed-exitcode", "/root/site").stdout, "No changes. 1 glyph is as the scroll says.")
	says(t, m.golem(1, "adopt", "--name", "web", "service", "idle").stderr, "it waits for idle.socket to start it; adopt that")
	m.golem(0, "destroy", "--auto-approve", "--name", "web")
	m.sh("systemctl stop waits.socket idle.socket; cd /etc/systemd/system; rm waits.* idle.* /run/waits.sock /run/idle.sock; systemctl daemon-reload")
	says(t, m.golem(1, "adopt", "--name", "web", "service", "nosuch").stderr, "adopt service nosuch: systemd knows no such unit")
	says(t, m.golem(1, "adopt", "--name", "web", "apt", "nosuch").stderr, "dpkg knows no such package here")
	m.same("after what was refused", found)
}
