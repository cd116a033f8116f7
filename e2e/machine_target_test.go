package e2e

import (
	"testing"
)

const partsServices = `
scroll "svc" {
  service "law-u" {
    state = "running"
  }
  service "law-busy" {
    state      = "running"
    restart_on = ["file:/etc/law.conf"]
  }
  check "unit" {
    unit = "law-busy.service"
    for  = "1s"
  }
}
`

const partsFirst = `
scroll "pkg" {
  apt "law-u" {}
}
scroll "conf" {
  file "/etc/law.conf" {
    content = "one\n"
  }
}
` + partsServices + `scroll "acct" {
  user "dora" {}
  process "law-own" {
    command = ["/bin/sleep", "infinity"]
  }
}
`

const partsNext = `
scroll "pkg" {
  apt "law-u" {}
  apt "law-a" {}
}
scroll "conf" {
  file "/etc/law.conf" {
    content = "two\n"
  }
}
` + partsServices

// TestPartsOnARealHost: what --target and --exclude leave out stays as it is, running,
// installed and declared, and so do the triggers and checks that are its own, until a run
// takes them in; also of a plan file, and of a destroy.
func TestPartsOnARealHost(t *testing.T) {
	t.Parallel()
	m := lawHost(t)
	found := m.print()
	m.declare(partsFirst)
	m.apply()
	pid := m.pid("law-busy")
	stays := func(when string, wants ...string) {
		t.Helper()
		m.is("law-u active", "law-own active")
		for _, want := range wants {
			if m.run("sh", "-c", want).code != 0 {
				t.Errorf("%s: not so: %s", when, want)
			}
		}
	}
	restarted := func() bool { return m.pid("law-busy") != pid }

	// A plan file of a part: nothing else moves, and the restart stays due.
	m.declare(partsNext)
	m.golem(0, "plan", "--out", "/root/conf.plan", "--target", "conf", site)
	a := m.golem(0, "apply", "/root/conf.plan")
	saysAll(t, a.stdout, "Left out: ", "Due, and left to a run that takes it in: service:law-busy.service restart")
	stays("only conf", "grep -qx two /etc/law.conf", "! dpkg -s law-a", "id dora")
	if restarted() {
		t.Error("law-busy was restarted by a run that left it out")
	}
	saysAll(t, m.golem(5, "apply", "/root/conf.plan").stderr, "web is at revision 2, and it was made at 1")

	// The leaf that it is due in takes it in, with its check.
	saysAll(t, m.apply("--target", "svc").stdout, "Applied as revision 3")
	if !restarted() {
		t.Error("law-busy was not restarted by the run that took it in")
	}
	stays("svc", "! dpkg -s law-a", "id dora")

	// What is excluded is not removed, though the scroll does not declare it any more.
	m.apply("--exclude", "acct")
	stays("all but acct", "dpkg -s law-a", "id dora")
	m.apply("--target", "user:*")
	stays("only users", "! id dora")

	// A part is destroyed; what is left of it is in force, and goes with the rest.
	m.destroy("--exclude", "service:*", "--exclude", "acct", "--exclude", "apt:law-u")
	stays("destroyed but for the services", "grep -qx found=1 /etc/law.conf", "! dpkg -s law-a")
	saysAll(t, m.golem(0, "state", "list").stdout, "service:law-u.service", "service:law-busy.service", "process:law-own", "apt:law-u")
	m.golem(0, "state", "check")
	m.destroy()
	m.sh("rm -rf /root/conf.plan /root/site")
	m.same("after the rest is destroyed", found)
}
