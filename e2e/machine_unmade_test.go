package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// unmadeLeaf is a leaf of packages that are not there, and a check at its end.
func unmadeLeaf(check string, packages ...string) string {
	return fmt.Sprintf("scroll \"a\" {\n  policy {\n    retry {\n      max_attempts = 1\n    }\n  }\n  %s\n  check \"command\" {\n    run = [%q]\n  }\n}\n",
		strings.Join(packages, "\n  "), check)
}

// The ways in which an applied run is taken back whole.
var unmadeBy = map[string]func(m *machine, packages []string){
	"a check that fails": func(m *machine, packages []string) {
		m.declare(unmadeLeaf("false", packages...))
		says(m.t, m.golem(3, "apply", "--auto-approve", site).stdout, "it failed, and is as it was before this run")
	},
	"recovery": func(m *machine, packages []string) {
		m.declare(unmadeLeaf("/root/waits", packages...))
		m.write("/root/waits", "#!/bin/sh\ntouch /dev/shm/checks\nexec sleep 60\n")
		m.must("chmod", "755", "/root/waits")
		run := m.start("golem", "apply", "--auto-approve", site)
		m.until("the check runs", func() bool { return m.exists("/dev/shm/checks") })
		m.signal(run, 9)
		_ = run.Wait()
		m.sh("pkill -KILL -f 'sleep 6[0]' || true; rm /root/waits /dev/shm/checks")
		m.golem(0, "recover")
	},
	"nobody who confirms": func(m *machine, packages []string) {
		m.declare(unmadeLeaf("true", packages...))
		m.apply("--confirm-within", "1h")
		m.golem(0, "recover", "--unconfirmed")
	},
}

// unmade takes a run back in every way, wants the host as it was, and the same scroll to
// settle after it.
func (m *machine) unmade(beside string, packages ...string) {
	m.t.Helper()
	found := m.print()
	for how, unmake := range unmadeBy {
		unmake(m, packages)
		m.sh(beside)
		m.same(how, found)
		m.declare(unmadeLeaf("true", packages...))
		m.golem(0, "apply", "--auto-approve", "--confirm-within", "1h", site)
		m.golem(0, "confirm")
		m.settled()
		m.destroy()
		m.sh("DEBIAN_FRONTEND=noninteractive dpkg --purge $(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\\n' | sed -n 's/^rc //p') 2>&1; " + beside)
		m.same(how+", applied and destroyed", found)
		if m.t.Failed() {
			return
		}
	}
}

// A package that was not there, and whose removal script does more than debhelper's lines,
// is gone without a trace when the run that brought it is taken back.
func TestAPackageOfARunThatIsTakenBackIsAsIfItNeverWas(t *testing.T) {
	t.Parallel()
	t.Run("tiny", func(t *testing.T) {
		t.Parallel()
		m := boot(t)
		m.repo(tiny{Name: "lib", Files: map[string]string{"/etc/lib.d/conf": "shipped\n"}, Conffiles: []string{"/etc/lib.d/conf"}, Postrm: "if [ \"$1\" = purge ]; then rm -rf /var/lib/lib-data; fi\n"},
			tiny{
				Name: "app", Depends: "lib", Files: map[string]string{"/etc/app.conf": "shipped\n"}, Conffiles: []string{"/etc/app.conf"},
				Postinst: "mkdir -p /var/lib/app-data\ndate >/var/lib/app-data/now\n", Postrm: "dir=/var/lib/app-data\nif [ \"$1\" = purge ]; then\n\trm -rf \"$dir\"\nfi\n",
			})
		m.unmade("true", `apt "app" {}`)
	})
	t.Run("nginx", func(t *testing.T) {
		t.Parallel()
		// Its scripts make a first page, outside dpkg's knowledge.
		boot(t).unmade("rm -rf /var/www", `apt "nginx-light" {}`)
	})
	t.Run("two in one transaction", func(t *testing.T) {
		t.Parallel()
		// A group, which the plan names when it goes, and what it keeps in /run.
		boot(t).unmade("rm -rf /var/www; groupdel crontab; rm -f /run/adduser /run/crond.*", `apt "nginx-light" {}`, `apt "cron" {}`)
	})
}

// What a purge could take was there before, or it is not wanted: then the package is
// removed, and its configuration is left whole, so that it can come again.
func TestAPackageThatIsNotPurgedKeepsItsConfiguration(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{
		Name: "app", Files: map[string]string{"/etc/app.d/conf": "shipped\n"}, Conffiles: []string{"/etc/app.d/conf"},
		Postrm: "if [ \"$1\" = purge ]; then rm -rf /var/lib/app-data; fi\n",
	})
	for _, glyph := range []string{`apt "app" {}`, "apt \"app\" {\n  purge = false\n}"} {
		m.write("/var/lib/app-data/old", "of somebody's\n")
		m.declare(unmadeLeaf("false", glyph))
		m.golem(3, "apply", "--auto-approve", site)
		if got := m.installed("app"); got != "deinstall ok config-files 1.0" {
			t.Errorf("%s: app is %q", glyph, got)
		}
		if m.read("/var/lib/app-data/old") != "of somebody's\n" || m.read("/etc/app.d/conf") != "shipped\n" {
			t.Errorf("%s: its data or its configuration is gone", glyph)
		}
		m.declare(unmadeLeaf("true", glyph))
		m.apply()
		m.settled()
		m.destroy()
		m.must("dpkg", "--purge", "app")
	}
}

// What somebody put beside a package's configuration, while a run waited to be confirmed,
// goes with that when the run is taken back, and is kept.
func TestAStrangersFileThatGoesWithAPackageIsKept(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{
		Name: "app", Files: map[string]string{"/etc/app.d/conf": "shipped\n"}, Conffiles: []string{"/etc/app.d/conf"},
		Postrm: "if [ \"$1\" = purge ]; then rm -rf /etc/app.d; fi\n",
	})
	found := m.print()
	m.declare(`apt "app" {}`)
	m.apply("--confirm-within", "1h")
	m.write("/etc/app.d/sub/mine", "of somebody's\n")
	m.golem(0, "recover", "--unconfirmed")
	m.same("taken back", found)
	if list := m.golem(0, "kept", "list").stdout; !strings.Contains(list, "/etc/app.d/sub/mine") || strings.Contains(list, "/etc/app.d/conf") {
		t.Errorf("kept is\n%s", list)
	}
}

// A version that brings more configuration, and is taken back, can come again with it.
func TestConfigurationThatOnlyTheNewVersionHasComesAgain(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "app", Version: "1.0", Files: map[string]string{"/etc/app.conf": "1\n"}, Conffiles: []string{"/etc/app.conf"}},
		tiny{
			Name: "app", Version: "2.0", Files: map[string]string{"/etc/app.conf": "2\n", "/etc/app.more": "more\n"},
			Conffiles: []string{"/etc/app.conf", "/etc/app.more"},
		})
	m.must("apt-get", "install", "-qy", "app=1.0")
	before := timeless(m.print())
	glyph := "apt \"app\" {\n  version = \"2.0\"\n}"
	m.declare(unmadeLeaf("false", glyph))
	m.golem(3, "apply", "--auto-approve", site)
	if diff := difference(before, timeless(m.print())); diff != "" {
		t.Errorf("the host is not as it was:\n%s", diff)
	}
	m.declare(unmadeLeaf("true", glyph))
	m.apply()
	if !m.exists("/etc/app.more") || m.read("/etc/app.conf") != "2\n" {
		t.Error("the new version has not all of its configuration")
	}
}
