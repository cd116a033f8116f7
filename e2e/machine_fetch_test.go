package e2e

import (
	"strings"
	"testing"
)

// The archive has lost a package's file for a moment: that is tried again, though nothing is
// changed yet; and if it stays lost, the package is what failed.
func TestAPackageThatCannotBeFetchedYetIsTriedAgain(t *testing.T) {
	t.Parallel()
	m := boot(t)
	lost := tiny{Name: "lost"}
	m.repo(lost)
	m.sh("apt-get clean; mkdir /srv/repo/away; mv /srv/repo/" + lost.file() + " /srv/repo/away/")
	before := m.print()
	m.declare("scroll \"a\" {\n  policy {\n    retry {\n      max_attempts = 2\n      base_delay = \"10ms\"\n    }\n  }\n  apt \"lost\" {}\n}\n")
	a := m.run("golem", "apply", "--auto-approve", site)
	said := strings.Join(strings.Fields(a.stdout+a.stderr), " ")
	if a.code == 0 || !strings.Contains(said, "trying again") {
		t.Errorf("exit %d, and it tells\n%s%s", a.code, a.stdout, a.stderr)
	}
	if strings.Contains(said, "not reached") {
		t.Errorf("what failed is told as not reached:\n%s", a.stdout)
	}
	m.same("after what could not be fetched", before)

	m.declare("apt \"lost\" {}\n")
	run := m.start("golem", "apply", "--auto-approve", site)
	m.until("it waits to try again", func() bool {
		return strings.Contains(run.Stdout.(*syncBuffer).String()+run.Stderr.(*syncBuffer).String(), "trying again")
	})
	m.sh("mv /srv/repo/away/* /srv/repo/")
	if err := run.Wait(); err != nil {
		t.Errorf("%v\n%s", err, run.Stdout.(*syncBuffer).String())
	}
	m.has("lost=1.0")
	m.settled()
	m.destroy()
}
