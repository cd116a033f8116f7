package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// pagesOnALiveHost runs what help and docs/running.md say of a live host: the examples that
// need systemd, the timer, and the line of cron as cron runs it.
func pagesOnALiveHost(t *testing.T, m *machine) {
	t.Helper()
	page := readPage(t, "../docs/running.md")
	m.repo(tiny{Name: "app"})
	m.write("/etc/golem/web/web.hcl", "name = \"web\"\n\nscroll \"app\" {\n  apt \"app\" {}\n  process \"daemon\" {\n    command = [\"sleep\", \"1000\"]\n  }\n}\n\nscroll \"base\" {\n  user \"ann\" {\n    shell = \"/bin/sh\"\n  }\n  file \"/etc/motd\" {\n    content = \"hello\\n\"\n  }\n}\n")

	// Cron: no terminal, nothing to read, another PATH, and a mail for each output.
	m.sh("cd /etc; mkdir -p cron.d\n" + snippet(t, page, "cron"))
	line := regexp.MustCompile(`(?m)^17 \* \* \* \* root (.*)$`).FindStringSubmatch(m.read("/etc/cron.d/golem"))
	if line == nil {
		t.Fatal("there is no line for cron")
	}
	cron := func() string {
		t.Helper()
		return m.must("setsid", "--wait", "env", "-i", "HOME=/root", "LOGNAME=root", "SHELL=/bin/sh", "PATH=/usr/bin:/bin",
			"sh", "-c", "cd; { "+line[1]+"; } </dev/null 2>&1")
	}
	says(t, cron(), "+ apt:app")
	if said := cron(); said != "" {
		t.Errorf("a run with nothing to do writes a mail:\n%s", said)
	}

	// The timer.
	m.sh("cd /etc/systemd\n" + snippet(t, page, "timer"))
	if said := m.sh("systemd-analyze verify --man=no /etc/systemd/system/golem.timer /etc/systemd/system/golem.service 2>&1 | grep -a golem || true"); said != "" {
		t.Errorf("systemd-analyze verify says\n%s", said)
	}
	driftOfALiveHost(t, m)
	m.sh("systemctl daemon-reload; systemctl enable --quiet --now golem.timer; systemctl start golem.service")
	if text := m.read("/etc/motd"); text != "hello\n" {
		t.Errorf("after the timer's run the file holds %q", text)
	}
	says(t, m.golem(0, "plan", "--drift", "--detailed-exitcode", "/etc/golem/web").stdout, "No drift. 4 glyphs are as revision")
	says(t, m.must("systemctl", "list-timers", "--all", "--no-legend", "golem.timer"), "golem.service")
	m.sh("systemctl disable --quiet --now golem.timer; rm /etc/systemd/system/golem.* /etc/cron.d/golem")
	m.golem(0, "destroy", "--auto-approve", "/etc/golem/web")

	// What help shows for a live host.
	m.write("/root/web.hcl", exampleScroll)
	ran := 0
	for _, name := range []string{"apply", "confirm", "recover", "adopt"} {
		for _, line := range helpExamples(t, name) {
			if !needsSystemd(line) {
				continue
			}
			ran++
			if name == "recover" {
				m.golem(0, "apply", "--auto-approve", "--confirm-within", "5m", "/root/web.hcl")
			}
			m.sh("cd /root; golem() { case $1 in apply) set -- \"$@\" --auto-approve;; esac; command golem \"$@\"; }; " + line)
			if name != "recover" && strings.Contains(line, "--confirm-within") {
				m.run("golem", "confirm")
				m.golem(0, "destroy", "--auto-approve", "/root/web.hcl")
			}
		}
	}
	if ran != 4 {
		t.Errorf("%d examples for a live host", ran)
	}
}

// driftOfALiveHost moves a package, a unit, an account and a file by hand, and two of them in
// the scroll as well.
func driftOfALiveHost(t *testing.T, m *machine) {
	t.Helper()
	const scroll = "/etc/golem/web/web.hcl"
	as := m.read(scroll)
	says(t, m.golem(0, "plan", "--drift", "--detailed-exitcode", "/etc/golem/web").stdout, "No drift. 4 glyphs are as revision")
	m.sh("dpkg --remove app >/dev/null; usermod --shell /bin/bash ann; systemctl stop daemon.service; echo by hand >/etc/motd")
	said := m.golem(2, "plan", "--drift", "--detailed-exitcode", "/etc/golem/web").stdout
	for _, key := range []string{"apt:app", "process:daemon", "user:ann", "file:/etc/motd"} {
		if !regexp.MustCompile(`(?m)^          !   ` + regexp.QuoteMeta(key) + ` +\S`).MatchString(said) {
			t.Errorf("the host moved %s, and it says\n%s", key, said)
		}
	}
	says(t, said, "Moved: 0 by the scroll, 4 by the host, 0 by both; 0 unmoved.")

	m.write(scroll, strings.NewReplacer("hello", "hi", `"1000"`, `"2000"`, "user \"ann\" {\n    shell = \"/bin/sh\"\n  }", "file \"/etc/new\" {\n    content = \"\"\n  }").Replace(as))
	said = m.golem(2, "plan", "--drift", "--detailed-exitcode", "/etc/golem/web").stdout
	for _, row := range []string{`          !   apt:app`, `   ~      !   process:daemon`, `   ~      !   file:/etc/motd`, `   -      !   user:ann`, `   \+          file:/etc/new`} {
		if !regexp.MustCompile(`(?m)^` + row + ` +\S`).MatchString(said) {
			t.Errorf("%s is not a row of\n%s", row, said)
		}
	}
	says(t, said, "Moved: 1 by the scroll, 1 by the host, 3 by both; 0 unmoved.")
	m.write(scroll, as)
}
