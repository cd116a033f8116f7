package e2e

import (
	"strings"
	"testing"
)

// refused wants a plan, and an apply, that say why not and touch nothing.
func (m *machine) refused(scroll string, parts ...string) {
	m.t.Helper()
	m.declare(scroll)
	before := m.print()
	for _, command := range [][]string{{"plan", site}, {"apply", "--auto-approve", site}} {
		a := m.golem(1, command...)
		for _, part := range parts {
			says(m.t, a.stderr, part)
		}
	}
	m.same("after what was refused", before)
}

// settled wants a plan that finds nothing to do.
func (m *machine) settled() {
	m.t.Helper()
	says(m.t, m.plan(), "No changes.")
}

// sameButTimes wants the machine as it was, but for the times of files: a package that
// is unpacked again has new ones.
func (m *machine) sameButTimes(when string, want []string) {
	m.t.Helper()
	if diff := difference(timeless(want), timeless(m.print())); diff != "" {
		m.t.Errorf("%s, the host is not as it was:\n%s", when, diff)
	}
}

// has wants packages installed in these versions, "name=version", or not at all, "name-".
func (m *machine) has(packages ...string) {
	m.t.Helper()
	for _, p := range packages {
		name, version, there := strings.Cut(p, "=")
		want := ""
		if there {
			want = "install ok installed " + version
		}
		got := strings.Replace(m.installed(strings.TrimSuffix(name, "-")), "hold ok", "install ok", 1)
		if got != want && (there || got != "unknown ok not-installed") { // a name that another mentions
			m.t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestAptInstallsAndTakesBack(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "app", Depends: "app-lib", Recommends: "app-doc"}, tiny{Name: "app-lib"}, tiny{Name: "app-doc"}, tiny{Name: "other", Depends: "app-lib"},
		tiny{Name: "conf", Files: map[string]string{"/etc/conf.d/it": "shipped\n"}, Conffiles: []string{"/etc/conf.d/it"}})
	found := m.print()
	m.declare(`apt "app" {}`)
	text := m.plan()
	says(t, text, "+ apt:app install version 1.0; installs app-doc 1.0, app-lib 1.0 with it")
	m.same("after a plan", found)
	m.apply()
	m.has("app=1.0", "app-lib=1.0", "app-doc=1.0")
	m.settled()
	m.destroy()
	m.same("after destroy", found)

	// What two need stays until neither does; what is declared by then is by hand.
	m.declare(`apt "app" {}
apt "other" {}
apt "conf" {}`)
	m.apply()
	m.declare(`apt "other" {}`)
	says(t, m.plan(), "- apt:app remove it was not there before golem")
	m.apply()
	m.has("app-", "app-doc-", "app-lib=1.0", "other=1.0", "conf-")
	m.declare(`apt "app-lib" {}`)
	m.apply()
	m.has("other-", "app-lib=1.0")
	says(t, m.must("apt-mark", "showmanual"), "app-lib")
	m.declare(`apt "app-lib" {}
apt "other" {}`)
	m.apply()
	m.declare(`apt "other" {}`)
	says(t, m.plan(), "apt:other needs it: marked automatic again")
	m.apply()
	m.settled()
	says(t, m.must("apt-mark", "showauto"), "app-lib")
	m.destroy()
	m.same("after destroying both", found)
}

func TestUsersThatScriptsMakeAreListedAsLeft(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "daemon", Depends: "daemon-user"}, tiny{Name: "daemon-user", Postinst: "useradd --system madeup\ngroupadd --system madeup-too"})
	m.declare("apt \"daemon\" {}\n")
	m.apply()
	text := m.plan("--destroy")
	says(t, text, "cannot be undone: the user madeup, which scripts made")
	says(t, text, "the group madeup-too, which scripts made")
	m.destroy()
	m.has("daemon-", "daemon-user-")
	m.must("id", "madeup")
}

func TestReport35VirtualPackage(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "mta-one", Provides: "mta", Conflicts: "mta", Replaces: "mta"}, tiny{Name: "mta-two", Provides: "mta", Conflicts: "mta", Replaces: "mta"},
		tiny{Name: "libfoo2-dev", Provides: "libfoo-dev", Depends: "libfoo2"}, tiny{Name: "libfoo2"})
	clean := m.print()
	m.refused(`apt "mta" {}`, "mta-one, mta-two")
	m.refused(`apt "libfo-dev" {}`, "Unknown package", "libfo-dev")

	m.declare(`apt "libfoo-dev" {}`)
	says(t, m.plan(), "+ apt:libfoo-dev install libfoo2-dev provides it: version 1.0; installs libfoo2 1.0 with it")
	m.apply()
	m.settled()
	m.has("libfoo2-dev=1.0")
	m.destroy()
	m.same("after destroy", clean)

	m.must("apt-get", "-y", "-q", "install", "mta-two")
	found := m.print()
	m.declare(`apt "mta" {}`)
	says(t, m.plan(), "mta-two provides it: it is so already (version 1.0); nothing to change")
	m.apply()
	m.settled()
	m.destroy()
	m.same("after destroy of what was there", found)

	// Another takes its place by consent, and the one that made way comes back.
	m.declare(`apt "mta-one" {}`)
	m.refused(`apt "mta-one" {}`, "remove mta-two 1.0, which golem did not bring", "allow_removal = true")
	m.must("apt-get", "-y", "-q", "install", "-o", "Dpkg::Use-Pty=0", "libfoo2")
	m.declare(`apt "mta-one" {
  allow_removal = true
}`)
	found = m.print()
	says(t, m.plan(), "removes mta-two 1.0 with it")
	m.apply()
	m.has("mta-one=1.0", "mta-two-")
	m.settled()
	says(t, m.golem(0, "plan", "--destroy", site).stdout, "restores mta-two 1.0 with it")
	m.destroy()
	m.sameButTimes("after destroy, with what made way", found)
}

func TestReport36Cascade(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "core-lib", Version: "1.0"}, tiny{Name: "user", Depends: "core-lib (= 1.0)"}, tiny{Name: "rival", Conflicts: "core-lib", Replaces: "core-lib"},
		tiny{Name: "lib"}, tiny{Name: "xx", Depends: "lib"}, tiny{Name: "yy", Depends: "xx"})
	m.must("apt-get", "-y", "-q", "install", "user")
	m.repo(tiny{Name: "core-lib", Version: "2.0"}, tiny{Name: "wants-new", Depends: "core-lib (>= 2)"})
	// An install that would remove others.
	m.refused(`apt "rival" {}`, "remove core-lib 1.0, user 1.0, which golem did not bring")
	m.refused(`apt "wants-new" {}`, "remove user 1.0")
	m.refused(`apt "user" {}
apt "rival" {
  allow_removal = true
}`, "user")
	found := m.print()
	m.declare(`apt "rival" {
  allow_removal = true
}`)
	says(t, m.plan(), "removes core-lib 1.0, user 1.0 with it")
	m.apply()
	m.has("rival=1.0", "core-lib-", "user-")
	m.destroy()
	m.sameButTimes("after destroy: they are back", found)

	// Undoing x after a human installed y that needs it.
	m.declare(`apt "xx" {}`)
	m.apply()
	m.must("apt-get", "-y", "-q", "install", "yy")
	says(t, m.golem(0, "plan", "--destroy", site).stdout, "- apt:xx forget yy needs it now; left as it is")
	m.destroy()
	m.has("xx=1.0", "yy=1.0", "lib=1.0")
}

func TestReport38Hold(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "held", Version: "1.0"})
	m.must("apt-get", "-y", "-q", "install", "held")
	m.must("apt-mark", "hold", "held")
	m.repo(tiny{Name: "held", Version: "2.0"}, tiny{Name: "free"})
	found := m.print()
	m.declare(`apt "held" {}`)
	says(t, m.plan(), "it is so already")
	m.apply()
	m.settled()
	m.destroy()
	m.same("after destroy", found)

	m.refused(`apt "held" {
  version = "2.0"
}`, "held is on hold at 1.0, and this needs 2.0", "hold = false")
	m.declare(`apt "held" {
  version = "2.0"
  hold    = false
}`)
	says(t, m.plan(), "version 1.0 → 2.0, its hold is lifted")
	m.apply()
	if got := m.installed("held"); got != "install ok installed 2.0" {
		t.Errorf("held is %s", got)
	}
	m.settled()
	m.destroy()
	m.sameButTimes("after destroy: the hold and the version are back", found)
	found = m.print()

	m.declare(`apt "free" {
  hold = true
}`)
	m.apply()
	if got := m.installed("free"); got != "hold ok installed 1.0" {
		t.Errorf("free is %s", got)
	}
	m.settled()
	m.destroy()
	m.same("after destroy: golem's own hold is gone", found)

	// One on hold that another's change would take along.
	m.repo(tiny{Name: "needs", Depends: "held (>= 2)"})
	m.refused(`apt "needs" {}`, "held is on hold at 1.0")
}

func TestReport39VersionAndArchitecture(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "foo", Version: "1.2-1", Arch: "amd64"}, tiny{Name: "foo", Version: "1.2-2", Arch: "amd64"}, tiny{Name: "foo", Version: "1.3-1", Arch: "amd64"},
		tiny{Name: "foo", Version: "1.2-2", Arch: "i386"}, tiny{Name: "ep", Version: "1:0.9-1"}, tiny{Name: "ep", Version: "2.0-1"})
	found := m.print()
	m.declare(`apt "foo" {
  version = "1.2-*"
}
apt "ep" {}`)
	text := m.plan()
	says(t, text, "apt:foo install version 1.2-2")
	says(t, text, "apt:ep install version 1:0.9-1")
	m.apply()
	m.settled()
	m.has("foo=1.2-2", "ep=1:0.9-1")

	// Up, by a pin, and back; and with a pin that was overtaken.
	m.declare(`apt "foo" {
  version = "1.3-1"
}`)
	says(t, m.plan(), "version 1.2-2 → 1.3-1")
	m.apply()
	m.refused(`apt "foo" {
  version = "1.2-2"
}`, "foo is at 1.3-1, and this wants 1.2-2", "allow_downgrade = true")
	m.declare(`apt "foo" {
  version         = "1.2-2"
  allow_downgrade = true
}`)
	says(t, m.plan(), "version 1.3-1 → 1.2-2, a downgrade")
	m.apply()
	m.must("apt-get", "-y", "-q", "install", "foo")
	says(t, m.plan(), "! apt:foo repair drifted: another version is there; version 1.3-1 → 1.2-2, a downgrade")
	m.apply()
	m.has("foo=1.2-2")
	m.destroy()
	m.same("after destroy", found)

	m.refused(`apt "foo" {
  version = "9"
}`, "archive on this host has foo 9; there is 1.3-1, 1.2-2, 1.2-1")
	m.refused(`apt "foo=1.2-1" {}`, "Version in the name")
	m.refused(`apt "foo" {}
apt "foo:amd64" {}`, "Two glyphs for one package", "main.hcl:2", "main.hcl:3")
	m.refused(`apt "foo:i386" {}`, "Architecture is not taken", "dpkg --add-architecture i386")
	m.must("dpkg", "--add-architecture", "i386")
	m.must("apt-get", "update", "-q")
	before := m.print()
	m.declare(`apt "foo:i386" {}`)
	m.apply()
	m.settled()
	if got := m.installed("foo:i386"); got != "install ok installed 1.2-2" {
		t.Errorf("foo:i386 is %q", got)
	}
	m.destroy()
	m.same("after destroy of the foreign one", before)

	// The way back stays open when the archive has lost the version.
	m.must("apt-get", "-y", "-q", "install", "foo=1.2-1")
	m.must("apt-get", "clean")
	found = m.print()
	m.declare(`apt "foo" {
  version = "1.3-1"
}`)
	m.apply()
	m.repoDrop("foo", "1.2-1")
	m.must("apt-get", "clean")
	m.destroy()
	m.sameButTimes("after destroy, from the journal", found)

	// Where it cannot be had, the plan says so before.
	m.must("apt-get", "clean")
	m.declare(`apt "foo" {
  version = "1.3-1"
}`)
	says(t, m.plan(), "cannot be undone: foo 1.2-1 could not be brought back: no archive on this host has it")
}

func TestReport40LockHeld(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "xx"}, tiny{Name: "slow", Postinst: "touch /run/slow; while [ ! -e /run/go ]; do sleep 0.1; done\n"})
	hold := func() {
		m.start("apt-get", "-y", "-q", "--reinstall", "install", "slow")
		m.sh("timeout 20 sh -c 'until [ -e /run/slow ]; do sleep 0.05; done'")
	}
	let := func() {
		m.sh("touch /run/go; timeout 20 sh -c 'while pgrep -x apt-get; do sleep 0.05; done'; rm /run/go /run/slow")
	}
	hold()
	m.declare(`policy {
  timeout = "6s"
}
apt "xx" {}`)
	a := m.golem(1, "apply", "--auto-approve", site)
	says(t, a.stderr+a.stdout, "the packages are locked (/var/lib/dpkg/lock-frontend) by process")
	says(t, a.stderr+a.stdout, "apt-get -y -q --reinstall install slow")
	if !m.exists("/var/lib/dpkg/lock-frontend") {
		t.Error("the lock file is gone")
	}
	m.has("xx-")
	let()

	// One that is given up in time is waited for; on the way back, too.
	found := m.print()
	m.declare(`apt "xx" {}`)
	for _, act := range []func(){func() { m.apply() }, func() { m.destroy() }} {
		hold()
		waits := m.start("sh", "-c", "sleep 2; touch /run/go")
		act()
		_ = waits.Wait()
		let()
	}
	m.sameButTimes("after both", found)
}

func TestReport41Prompts(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(
		tiny{
			Name: "asks", Depends: "debconf", Templates: "Template: asks/what\nType: string\nDescription: What?\n What is it?\n",
			Config:   ". /usr/share/debconf/confmodule\ndb_input critical asks/what || true\ndb_go || true\n",
			Postinst: ". /usr/share/debconf/confmodule\ndb_get asks/what\n",
			Prerm:    "if read answer; then exit 1; fi\n",
			Postrm:   generated("dh_installdebconf", "if [ \"$1\" = purge ] && [ -e /usr/share/debconf/confmodule ]; then\n\t. /usr/share/debconf/confmodule\n\tdb_purge\nfi\n"),
		},
		tiny{Name: "ships", Files: map[string]string{"/etc/x/ships.conf": "shipped\n"}, Conffiles: []string{"/etc/x/ships.conf"}},
	)
	found := m.print()
	m.declare(`apt "asks" {}`)
	m.apply()
	m.settled()
	m.destroy()
	m.same("after destroy of one that asks", found)

	// The file first, then the package that ships it: dpkg keeps golem's.
	file := `file "/etc/x/ships.conf" {
  content = "golem's\n"
}
`
	for name, scroll := range map[string]string{"file first": file + `apt "ships" {}`, "package first": "apt \"ships\" {}\n" + file} {
		m.declare(scroll)
		m.apply()
		if got := m.read("/etc/x/ships.conf"); got != "golem's\n" {
			t.Errorf("%s: the file holds %q", name, got)
		}
		m.settled()
		m.destroy()
		m.same("after destroy, "+name, found)
	}

	// A file that somebody had before.
	m.sh("mkdir -p /etc/x; echo mine >/etc/x/ships.conf; chmod 0600 /etc/x/ships.conf")
	mine := m.print()
	m.declare(file + `apt "ships" {}`)
	m.apply()
	m.declare(file)
	m.apply()
	if got := m.read("/etc/x/ships.conf"); got != "golem's\n" {
		t.Errorf("the package went, and the declared file holds %q", got)
	}
	m.settled()
	m.destroy()
	m.same("after destroy over somebody's file", mine)
	m.declare(`apt "ships" {}`)
	m.apply()
	if got := m.read("/etc/x/ships.conf"); got != "mine\n" {
		t.Errorf("the package was installed over somebody's file, which holds %q", got)
	}
	m.destroy()
	m.same("after destroy of the package alone", mine)

	// A conffile that somebody changed is in the journal before it is purged.
	m.sh("rm -r /etc/x")
	m.declare(`apt "ships" {}`)
	m.apply()
	m.write("/etc/x/ships.conf", "changed by hand\n")
	m.destroy()
	m.same("after destroy of a changed conffile", found)
	says(t, m.golem(0, "kept", "list").stdout, "/etc/x/ships.conf")
}

// A line in a conffile whose package goes before it: what the line lay on was the
// package's, and goes with the line at the latest; what somebody added to it stays.
func TestLineInAConffileOutlivesItsPackage(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "ships", Files: map[string]string{"/etc/ships.conf": "shipped\n"}, Conffiles: []string{"/etc/ships.conf"}})
	found := m.print()
	line := "line \"ours\" {\n  path = \"/etc/ships.conf\"\n  line = \"golem's\"\n}\n"
	for _, order := range []string{"undeclared", "destroyed"} {
		m.declare("apt \"ships\" {}\n" + line)
		m.apply()
		m.declare(line)
		m.apply()
		m.settled()
		if got := m.read("/etc/ships.conf"); !strings.Contains(got, "golem's\n") {
			t.Errorf("the package went, and the file with the declared line holds %q", got)
		}
		if order == "undeclared" {
			m.declare("")
			m.apply()
		} else {
			m.destroy()
		}
		m.same(order, found)
	}

	m.declare("apt \"ships\" {}\n" + line)
	m.apply()
	m.declare(line)
	m.apply()
	m.write("/etc/ships.conf", "mine\n"+m.read("/etc/ships.conf"))
	m.destroy()
	if got := m.read("/etc/ships.conf"); got != "mine\nshipped\n" {
		t.Errorf("somebody's line was beside golem's, and the file holds %q", got)
	}
}

func TestReport43HookRefuses(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "xx"}, tiny{Name: "yy", Depends: "xx"})
	m.write("/usr/local/bin/refuse", "#!/bin/sh\ncat >/dev/null\necho '** etckeeper: there are uncommitted changes in /etc' >&2\nexit 1\n")
	m.must("chmod", "755", "/usr/local/bin/refuse")
	m.write("/etc/apt/apt.conf.d/05refuse", `DPkg::Pre-Install-Pkgs { "/usr/local/bin/refuse"; };`+"\n")
	found := m.print()
	m.declare(`file "/etc/fresh.list" {
  content = "x\n"
}
apt "yy" {}`)
	a := m.golem(3, "apply", "--auto-approve", site)
	says(t, a.stderr+a.stdout, "etckeeper: there are uncommitted changes in /etc")
	m.same("after a hook that refused", found)
	m.sh("rm /etc/apt/apt.conf.d/05refuse")
	m.apply()
	m.has("yy=1.0")
}

// A package's removal script that does more than the generated lines is not purged
// unless the glyph says so.
func TestAptPurgeRule(t *testing.T) {
	t.Parallel()
	m := boot(t)
	data := tiny{
		Name: "db", Files: map[string]string{"/etc/db.conf": "shipped\n"}, Conffiles: []string{"/etc/db.conf"},
		Postinst: "mkdir -p /var/lib/db; echo data >/var/lib/db/data\n", Postrm: "if [ \"$1\" = purge ]; then rm -rf /var/lib/db; fi\n",
	}
	m.repo(data, unitPackage("daemon"))
	found := m.print()
	m.declare(`apt "db" {}
apt "daemon" {}`)
	m.apply()
	says(t, m.golem(0, "plan", "--destroy", site).stdout, "its configuration stays: its removal script does more than what debhelper generates")
	m.destroy()
	if got := m.installed("db"); got != "deinstall ok config-files 1.0" || !m.exists("/var/lib/db/data") {
		t.Errorf("db is %q", got)
	}
	m.has("daemon-")
	m.must("dpkg", "--purge", "db")
	m.same("but for what stayed", found)
	m.declare(`apt "db" {
  purge = true
}`)
	m.apply()
	m.destroy()
	m.same("after destroy with purge = true", found)

	// Found as configuration only, it is given back as that.
	m.must("apt-get", "-y", "-q", "install", "db")
	m.must("apt-get", "-y", "-q", "remove", "db")
	m.write("/etc/db.conf", "by hand\n")
	left := m.print()
	m.declare(`apt "db" {
  purge = true
}`)
	m.apply()
	m.destroy()
	m.sameButTimes("after destroy of what was found as config-files", left)
}

// A package that cannot be configured is the leaf's failure, and leaves nothing.
func TestAptFailingScript(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "lib"}, tiny{Name: "bad", Depends: "lib", Postinst: "echo it is no good >&2; exit 3\n", Files: map[string]string{"/etc/bad.conf": "x\n"}, Conffiles: []string{"/etc/bad.conf"}},
		tiny{Name: "good"})
	found := m.print()
	m.declare(`scroll "one" {
  apt "good" {}
}
scroll "two" {
  file "/etc/two" {
    content = "two\n"
  }
  apt "bad" {}
}`)
	a := m.golem(3, "apply", "--auto-approve", site)
	says(t, a.stdout+a.stderr, "it is no good")
	m.has("good=1.0", "bad-", "lib-")
	if m.exists("/etc/two") {
		t.Error("the leaf was not taken back")
	}
	m.destroy()
	m.same("after destroy", found)

	// What somebody left half done is found before anything starts.
	m.run("apt-get", "-y", "-q", "install", "bad")
	m.refused(`apt "good" {}`, "has left packages half done: bad (install ok half-configured)", "dpkg --configure -a")
}
