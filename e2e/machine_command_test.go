package e2e

import (
	"strings"
	"testing"
)

func TestExampleDeployKeyIsMadeOnceAndTakenAway(t *testing.T) {
	t.Parallel()
	m := boot(t)
	scroll := m.example("deploy-key")
	found := m.print()
	plan := m.golem(0, "plan", scroll).stdout
	says(t, plan, "+ command:deploy-key install runs ssh-keygen -q -t ed25519 -N \"\" -C deploy@host -f /etc/deploy/key: /etc/deploy/key is not there")
	m.same("after plan", found)
	m.golem(0, "apply", "--auto-approve", scroll)
	key := m.must("cat", "/etc/deploy/key")
	mark := m.must("cat", "/etc/deploy/fingerprint")
	says(t, mark, "deploy@host")
	says(t, m.golem(0, "plan", scroll).stdout, "No changes.")

	// What its guard looks for is gone: it is drift, and what is triggered by it follows.
	m.sh("rm /etc/deploy/key")
	plan = m.golem(0, "plan", scroll).stdout
	says(t, plan, "! command:deploy-key repair drifted: /etc/deploy/key is not there; runs ssh-keygen")
	says(t, plan, "Triggered run command:fingerprint command:deploy-key changes")
	m.golem(0, "apply", "--auto-approve", scroll)
	if m.must("cat", "/etc/deploy/key") == key || m.must("cat", "/etc/deploy/fingerprint") == mark {
		t.Error("the key was not made anew, or its fingerprint is the old one")
	}

	// Another version: the undo of the one that ran goes first.
	m.golem(0, "apply", "--auto-approve", scroll, "--var", "comment=web@host")
	says(t, m.must("cat", "/etc/deploy/key.pub"), "web@host")
	says(t, m.must("cat", "/etc/deploy/fingerprint"), "web@host")
	m.golem(0, "rollback", "--auto-approve", scroll)
	says(t, m.must("cat", "/etc/deploy/fingerprint"), "deploy@host")

	says(t, m.golem(0, "plan", "--destroy", scroll).stdout, "- command:deploy-key remove runs its undo: rm -f /etc/deploy/key /etc/deploy/key.pub")
	m.golem(0, "destroy", "--auto-approve", scroll)
	m.same("after destroy", found)
}

func TestCommandRunsAsItsUserInItsDirectory(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.sh("useradd --create-home --groups adm app && install -d -o app /srv/app")
	found := m.print()
	m.declare(`
command "build" {
  run     = ["sh", "-c", "id -un >out; id -Gn >>out; pwd >>out; echo \"$HOME $USER $STAGE\" >>out; umask >>out; cat >>out"]
  undo    = ["rm", "-f", "out"]
  user    = "app"
  dir     = "/srv/app"
  env     = { STAGE = "a b" }
  creates = "/srv/app/out"
}
`)
	m.apply()
	if got, want := m.must("cat", "/srv/app/out"), "app\napp adm\n/srv/app\n/home/app app a b\n0022\n"; got != want {
		t.Errorf("it wrote\n%s, want\n%s", got, want)
	}
	says(t, m.must("stat", "-c", "%U", "/srv/app/out"), "app")
	m.destroy()
	m.same("after destroy", found)
}

// What stands in the way is told by plan, before anything is touched; but what an earlier
// glyph of the same run brings is waited for.
func TestCommandsThatCannotRunAreToldByPlan(t *testing.T) {
	t.Parallel()
	m := boot(t)
	found := m.print()
	for text, why := range map[string]string{
		`run = ["no-such-program"]`:                                            "Nothing on this host is the program no-such-program",
		"run = [\"true\"]\n unless = [\"/opt/none\"]":                          "Nothing on this host is the program /opt/none",
		"run = [\"true\"]\n user = \"nobody-here\"":                            `No user is called "nobody-here" here`,
		"run = [\"true\"]\n dir = \"/srv/none\"":                               "There is no directory /srv/none",
		"run = [\"true\"]\n user = \"late\"\n}\nuser \"late\" {":               "move user:late up",
		"run = [\"true\"]\n dir = \"/srv/late\"\n}\ndirectory \"/srv/late\" {": "move directory:/srv/late up",
		"run = [\"/opt/late\"]\n}\nfile \"/opt/late\" {\n  content = \"x\"":    "move file:/opt/late up",
		"run = [\"true\"]\n onlyif = [\"sh\", \"-c\", \"kill $$\"]":            "Guard cannot be asked",
	} {
		m.declare("command \"x\" {\n" + text + "\n}\n")
		said := m.golem(1, "plan", "/root/site").stderr
		says(t, said, why)
		says(t, said, "main.hcl line")
	}
	m.same("after refusals", found)
	m.declare(`
file "/opt/tool" {
  content = "#!/bin/sh\nexec test -e /opt/done\n"
  mode    = "0755"
}
command "x" {
  run    = ["touch", "/opt/done"]
  undo   = ["rm", "-f", "/opt/done"]
  unless = ["/opt/tool"]
}
`)
	says(t, m.plan(), "whether it is needed is known at apply, when `unless` can be asked")
	m.apply()
	says(t, m.plan(), "No changes.")
	m.destroy()
	m.same("after destroy", found)
}

func TestCommandThatFailsSaysItsLastLinesAndIsUndone(t *testing.T) {
	t.Parallel()
	m := boot(t)
	found := m.print()
	m.declare(`
policy {
  retry { max_attempts = 2 }
}
command "half" {
  run  = ["sh", "-c", "touch /opt/half; seq 100; echo the last word; exit 3"]
  undo = ["sh", "-c", "rm -f /opt/half; echo undone >>/run/undone"]
}
`)
	a := m.golem(3, "apply", "--auto-approve", "/root/site")
	says(t, a.stdout, "exit status 3")
	says(t, a.stdout, "the last word")
	if n := strings.Count(m.must("cat", "/run/undone"), "undone"); n != 2 {
		t.Errorf("it was undone %d times, want 2", n)
	}
	m.sh("rm /run/undone")
	m.same("after a failure", found)
	// What a sensitive one prints is nowhere: not on the terminal, not in the journal.
	m.declare("command \"s\" {\n  run = [\"sh\", \"-c\", \"echo the pass''word >&2; exit 4\"]\n  sensitive = true\n}\n")
	a = m.golem(3, "apply", "--auto-approve", "/root/site")
	says(t, a.stdout, "it is not known whether it took effect")
	if said := a.stdout + a.stderr; strings.Contains(said, "the password") || !strings.Contains(said, "exit status 4") {
		t.Errorf("it says\n%s", said)
	}
	if n := m.sh("cat /var/lib/golem/planroom.db* | grep -ac 'the password' || true"); strings.TrimSpace(n) != "0" {
		t.Error("what it printed is in the journal")
	}
	// An undo that fails is mended by declaring another.
	undo := func(with string) string {
		return "policy {\n  retry { max_attempts = 1 }\n}\ncommand \"u\" {\n  run = [\"true\"]\n  undo = [\"" + with + "\"]\n}\n"
	}
	m.declare(undo("false"))
	m.apply()
	says(t, m.golem(3, "destroy", "--auto-approve", site).stdout, "command:u: undo: run false: exit status 1 hint: apply it once with an undo that works, and run as it was: that runs nothing; or let go of what it did: golem state forget command:u")
	m.declare(undo("true"))
	says(t, m.plan(), "its undo changes; it is not run again")
	m.apply()
	m.destroy()
	secretsOfALiveHost(t, m)
}

func TestCommandsTimeoutTakesAllThatItStarted(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.declare(`
policy {
  retry { max_attempts = 1 }
}
command "hangs" {
  run     = ["sh", "-c", "sleep 1000 & setsid sleep 1001; true"]
  undo    = ["true"]
  timeout = "1s"
}
`)
	a := m.golem(3, "apply", "--auto-approve", "/root/site")
	says(t, a.stdout, "still running after 1s")
	if left := m.sh("pgrep -fx 'sleep 100[01]' || true"); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// A golem that is killed while a command runs waits for it at the next run, and undoes it;
// without an undo it says that nothing is known.
func TestCommandWhoseGolemIsKilledIsUndone(t *testing.T) {
	t.Parallel()
	m := boot(t)
	found := m.print()
	m.declare(`
command "long" {
  run  = ["sh", "-c", "touch /run/began; sleep 2; touch /opt/long"]
  undo = ["rm", "-f", "/opt/long"]
}
`)
	kill := func() {
		golem := m.start("/usr/local/bin/golem", "apply", "--auto-approve", "/root/site")
		m.sh("until [ -e /run/began ]; do sleep 0.05; done; rm /run/began")
		m.signal(golem, 9)
	}
	kill()
	a := m.golem(0, "recover")
	says(t, a.stdout, "1 of its glyphs in web taken back")
	m.same("recovered", found)
	m.declare("command \"blind\" {\n  run = [\"sh\", \"-c\", \"touch /run/began; sleep 2; touch /opt/blind\"]\n}\n")
	kill()
	a = m.golem(0, "recover")
	says(t, a.stdout, "Not taken back: command:blind: it is not known whether it took effect")
	m.sh("test -e /opt/blind") // it was waited for
	says(t, m.golem(0, "show").stdout, "it is not known whether it took effect")
}
