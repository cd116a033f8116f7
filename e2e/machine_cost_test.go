package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// counted puts a counter before programs in the machine's PATH; what it returns gives
// each call since, without its path.
func (m *machine) counted(programs ...string) (calls func() []string) {
	m.t.Helper()
	for _, name := range programs {
		real := strings.TrimSpace(m.must("sh", "-c", "command -v "+name))
		m.write("/usr/local/bin/"+name, "#!/bin/sh\necho \""+name+" $*\" >>/dev/shm/calls\nexec "+real+" \"$@\"\n")
		m.must("chmod", "755", "/usr/local/bin/"+name)
	}
	return func() []string {
		m.t.Helper()
		text := m.sh("cat /dev/shm/calls 2>/dev/null; rm -f /dev/shm/calls")
		return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	}
}

// tenPackages are packages that every test machine has.
var tenPackages = []string{"apt", "bash", "coreutils", "dpkg", "grep", "gzip", "openssh-server", "sed", "tar", "util-linux"}

func tenPackagesScroll() string {
	var s strings.Builder
	for _, name := range tenPackages {
		fmt.Fprintf(&s, "apt %q {}\n", name)
	}
	return s.String()
}

func TestTenPackagesThatAreThereCostOneQueryAndNoApt(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.must(append([]string{"apt-mark", "manual"}, tenPackages...)...)
	calls := m.counted("dpkg-query", "dpkg", "apt-get", "apt-cache", "apt-mark", "systemctl")
	m.declare(tenPackagesScroll())
	for _, when := range []string{"the first apply", "a second apply"} {
		m.apply()
		all := calls()
		if when == "the first apply" { // plans once, and looks again before it writes records
			for _, call := range all {
				if strings.HasPrefix(call, "apt-get") && !strings.Contains(call, " -s ") {
					t.Errorf("%s ran %s", when, call)
				}
			}
			continue
		}
		if len(all) != 1 || !strings.HasPrefix(all[0], "dpkg-query ") {
			t.Errorf("%s ran %q", when, all)
		}
	}
}

// fiftyUnits lists units that every test machine has, and makes the rest.
func (m *machine) fiftyUnits() []string {
	m.t.Helper()
	var names []string
	for i := range 50 {
		name := fmt.Sprintf("unit%02d.service", i)
		m.write("/etc/systemd/system/"+name, "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n")
		names = append(names, name)
	}
	m.must("systemctl", "daemon-reload")
	m.must(append([]string{"systemctl", "enable", "--now", "--quiet"}, names...)...)
	return names
}

func unitsScroll(names []string) string {
	var s strings.Builder
	for _, name := range names {
		fmt.Fprintf(&s, "service %q {\n  state   = \"running\"\n  enabled = true\n}\n", name)
	}
	return s.String()
}

func TestFiftyUnitsCostOneQuery(t *testing.T) {
	t.Parallel()
	m := boot(t)
	names := m.fiftyUnits()
	calls := m.counted("dpkg-query", "apt-get", "systemctl", "journalctl")
	m.declare(unitsScroll(names))
	m.apply()
	calls()
	m.apply()
	if all := calls(); len(all) != 1 || !strings.HasPrefix(all[0], "systemctl show ") {
		t.Errorf("a second apply of fifty units ran %d commands, the last about %q", len(all), all[len(all)-1][strings.Index(all[len(all)-1], " -- "):])
	}
}

// often times a command inside the machine, many times over, so that entering the
// machine does not count.
func (m *machine) often(b *testing.B, command string) time.Duration {
	const times = 20
	start := time.Now()
	m.sh(fmt.Sprintf("i=0; while [ $i -lt %d ]; do %s >/dev/null || exit 1; i=$((i+1)); done", times, command))
	return time.Since(start) / times
}

// BenchmarkPackages times ten packages ensured that are there already, as a ratio to the
// query of their state that it rests on.
func BenchmarkPackages(b *testing.B) {
	m := boot(b)
	m.must(append([]string{"apt-mark", "manual"}, tenPackages...)...)
	m.declare(tenPackagesScroll())
	m.apply()
	var again, query time.Duration
	for b.Loop() {
		query += m.often(b, "dpkg-query -W "+strings.Join(tenPackages, " "))
		again += m.often(b, "golem apply --auto-approve "+site)
	}
	b.ReportMetric(float64(again)/float64(query), "again/dpkg-query")
}

// BenchmarkUnits times fifty units that are as declared, as a ratio to one systemctl
// show of them all.
func BenchmarkUnits(b *testing.B) {
	m := boot(b)
	names := m.fiftyUnits()
	m.declare(unitsScroll(names))
	m.apply()
	var again, query time.Duration
	for b.Loop() {
		query += m.often(b, "systemctl show "+strings.Join(names, " "))
		again += m.often(b, "golem apply --auto-approve "+site)
	}
	b.ReportMetric(float64(again)/float64(query), "again/systemctl-show")
}
