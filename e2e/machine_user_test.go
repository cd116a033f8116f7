package e2e

import (
	"regexp"
	"strings"
	"testing"
)

const deployKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKv1Yb0XHfMbUgdhb0Wd8mBpZ3Q0Zk1rQ3Vw deploy@desk"

// accounts is a scroll with every argument of users and groups, and files that belong to
// what it makes.
const accountScroll = `
group "web" { gid = 4711 }
user "deploy" {
  comment  = "Deploys things"
  shell    = "/bin/bash"
  groups   = ["web", "adm"]
  password = "$6$salt$0123456789abcdefghijklmnopqrstuvwxyz"
  expires  = "2031-12-31"
  authorized_keys = ["` + deployKey + `"]
}
user "daemon-x" {
  system = true
  group  = "web"
}
directory "/srv/app" {
  owner = "deploy"
  group = "web"
  mode  = "0750"
}
file "/srv/app/conf" {
  content = "x\n"
  owner   = "deploy"
  group   = "deploy"
}
file "/home/deploy/.vimrc" {
  content = "set nu\n"
  owner   = "deploy"
}
process "nap" {
  command = ["/bin/sleep", "infinity"]
  user    = "deploy"
}
`

func TestUserIsMadeAndRemovedWithWhatItOwns(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.sh("echo CREATE_MAIL_SPOOL=yes >>/etc/default/useradd") // as other systems have it
	found := m.print()
	m.declare(accountScroll)
	plan := m.plan()
	says(t, plan, "+ user:deploy install a new user, group deploy (made in this run), shell /bin/bash, home /home/deploy (made), expires 2031-12-31, with a password, joins adm, joins web (made in this run), 1 key in /home/deploy/.ssh/authorized_keys")
	says(t, plan, "+ directory:/srv/app install mode 0750, owner deploy (made in this run), group web (made in this run)")
	m.same("after plan", found)
	m.apply()
	says(t, m.plan(), "No changes.")
	id := m.must("id", "deploy")
	for _, part := range []string{"uid=1000(deploy)", "gid=1000(deploy)", "(web)", "(adm)"} {
		if !strings.Contains(id, part) {
			t.Errorf("%q is not in %q", part, id)
		}
	}
	if got := strings.TrimSpace(m.must("stat", "-c", "%U:%G %a", "/srv/app", "/srv/app/conf", "/home/deploy", "/home/deploy/.profile", "/home/deploy/.ssh", "/home/deploy/.ssh/authorized_keys")); got !=
		"deploy:web 750\ndeploy:deploy 644\ndeploy:deploy 755\ndeploy:deploy 644\ndeploy:deploy 700\ndeploy:deploy 600" {
		t.Errorf("owners and modes are\n%s", got)
	}
	if got := m.must("getent", "shadow", "deploy"); !strings.HasPrefix(got, "deploy:$6$salt$0123456789abcdefghijklmnopqrstuvwxyz:") || !strings.Contains(got, ":22644:") {
		t.Errorf("its shadow line is %q", got)
	}
	if got := m.must("systemctl", "show", "-P", "MainPID", "nap.service"); strings.TrimSpace(m.must("ps", "-o", "user=", strings.TrimSpace(got))) != "deploy" {
		t.Errorf("nap does not run as deploy")
	}
	for _, text := range []string{plan, m.golem(0, "plan", "--destroy", "--json", site).stdout, m.golem(0, "state", "show", "user:deploy").stdout, m.golem(0, "state", "show", "--json", "user:deploy").stdout} {
		if strings.Contains(text, "0123456789abcdef") {
			t.Errorf("the hash is shown:\n%s", text)
		}
	}
	says(t, m.plan("--destroy"), "- user:deploy remove golem made it, and its home /home/deploy")
	m.destroy()
	m.same("after destroy", found)
}

// A user that is there keeps every group but those that golem changed
// (folio-org/folio-ansible#400: groups = ["docker"] took sudo away).
func TestReport44UserFoundKeepsItsGroups(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.must("groupadd", "docker")
	m.must("useradd", "--create-home", "--groups", "sudo,adm", "--shell", "/bin/sh", "--comment", "By hand", "ann")
	m.must("useradd", "zed")
	m.must("usermod", "--append", "--groups", "docker,adm", "zed")
	found := m.print()
	m.declare("user \"ann\" {\n  groups = [\"docker\"]\n  shell = \"/bin/bash\"\n}\n")
	says(t, m.plan(), "+ user:ann install shell /bin/sh → /bin/bash, joins docker")
	m.apply()
	says(t, m.must("id", "-Gn", "ann"), "ann adm sudo docker")
	m.must("usermod", "--append", "--groups", "audio", "ann") // by hand; it stays
	says(t, m.plan(), "No changes.")
	m.must("gpasswd", "--delete", "ann", "docker")
	says(t, m.plan(), "! user:ann repair drifted: joins docker")
	m.apply()

	// Exclusive names what is lost, and that comes back, in its place among the members.
	m.declare("user \"ann\" {\n  groups = [\"docker\"]\n  exclusive = true\n  group = \"users\"\n}\n")
	says(t, m.plan(), "~ user:ann replace shell /bin/bash → /bin/sh, group ann → users (files keep theirs), leaves adm, leaves audio, leaves sudo")
	m.apply()
	says(t, m.must("id", "-Gn", "ann"), "users docker")
	m.must("gpasswd", "--add", "ann", "audio")
	says(t, m.plan("--destroy"), "- user:ann remove the user stays, it was there before golem:")
	m.destroy()
	m.must("gpasswd", "--delete", "ann", "audio")
	m.same("after destroy", found)

	// A shell that somebody else changed since is theirs.
	m.declare("user \"ann\" {\n  shell = \"/bin/bash\"\n}\n")
	m.apply()
	m.must("usermod", "--shell", "/bin/dash", "ann")
	m.destroy()
	says(t, m.must("getent", "passwd", "ann"), ":/bin/dash")
}

func TestUserInUseIsLeftAndNamed(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.declare("group \"crew\" {}\nuser \"ann\" { groups = [\"crew\"] }\nuser \"bob\" {}\nuser \"cat\" {}\nuser \"dan\" {}\n")
	m.apply()
	m.sh("touch /srv/hers && chown ann /srv/hers && chgrp crew /srv/hers && runuser -u bob -- touch /home/bob/new")
	m.must("systemd-run", "--unit=held", "--property=Type=exec", "--uid=cat", "/bin/sleep", "infinity")
	m.must("systemd-run", "--unit=login", "--property=Type=exec", "/usr/sbin/runuser", "--login", "dan", "--command", "sleep infinity")
	m.sh("for i in $(seq 100); do pgrep -u dan && break; sleep 0.1; done")
	plan := m.plan("--destroy")
	if !regexp.MustCompile(`- user:dan +forget +golem made it, and it is in use; left:\s+process \d+ \(`).MatchString(plan) {
		t.Errorf("who is logged in is not told:\n%s", plan)
	}
	says(t, plan, "- user:ann forget golem made it, and it is in use; left: /srv/hers")
	says(t, plan, "- group:crew forget golem made it, and it is in use; left: its member ann, /srv/hers")
	says(t, plan, "- user:bob remove golem made it; its home /home/bob is left, it holds /home/bob/new")
	says(t, plan, "(sleep)")
	done := m.destroy().stdout
	says(t, done, "forgot user:ann")
	says(t, done, "removed user:bob")
	says(t, m.must("id", "-Gn", "ann"), "ann crew")
	m.must("id", "cat")
	m.must("id", "dan")
	if m.run("id", "bob").code == 0 || !m.exists("/home/bob/new") || m.exists("/home/ann/.bashrc") == false {
		t.Error("bob is there, or what was left in homes is not")
	}
	m.declare("")
	says(t, m.plan(), "No changes.")
}

// A unit, files of an earlier leaf and a directory hold users up until they are gone.
func TestUserWaitsForWhatGoesInTheSameRun(t *testing.T) {
	t.Parallel()
	m := boot(t)
	found := m.print()
	m.declare(`
scroll "accounts" {
  group "crew" {}
  user "ann" { group = "crew" }
}
scroll "files" {
  directory "/srv/ann" { owner = "ann" }
  file "/srv/ann/x" {
    owner = "ann"
    group = "crew"
    content = "x"
  }
  file "/etc/stays" { content = "x" }
}
`)
	m.apply()
	m.declare("scroll \"accounts\" {\n  file \"/etc/other\" { content = \"x\" }\n}\nscroll \"files\" {\n  file \"/etc/stays\" { content = \"x\" }\n}\n")
	plan := m.plan()
	says(t, plan, "- user:ann remove golem made it, and its home /home/ann")
	says(t, plan, "- group:crew remove golem made it")
	m.apply()
	if m.run("id", "ann").code == 0 || m.run("getent", "group", "crew").code == 0 {
		t.Error("ann or crew is still there")
	}
	m.destroy()
	m.same("after destroy", found)

	// A found user that goes back to its group lets go of one that goes.
	m.must("useradd", "eve")
	found = m.print()
	m.declare("group \"crew\" {}\nuser \"eve\" { group = \"crew\" }\n")
	m.apply()
	says(t, m.plan("--destroy"), "- group:crew remove golem made it")
	m.declare("user \"eve\" { group = \"crew\" }\n")
	says(t, m.golem(1, "plan", site).stderr, "Golem made the group crew, and no glyph declares it any more")
	m.destroy()
	m.same("after destroy of eve's group", found)
}

// A home is a directory on the way to a file in it before its user comes, and after it went.
func TestUserComesToAHomeThatGolemMade(t *testing.T) {
	t.Parallel()
	m := boot(t)
	found := m.print()
	conf := "file \"/srv/homes/ann/.config/app/conf\" { content = \"x\\n\" }\n"
	users := "user \"ann\" { home = \"/srv/homes/ann\" }\nuser \"bob\" { home = \"/srv/homes/bob\" }\n"
	m.declare(conf + users)
	says(t, m.golem(1, "plan", site).stderr, "move user:ann up")
	owners := func() string {
		return m.must("stat", "-c", "%U %a", "/srv/homes", "/srv/homes/ann", "/srv/homes/ann/.config", "/srv/homes/ann/.config/app", "/srv/homes/ann/.config/app/conf")
	}
	m.declare(conf)
	m.apply()
	alone := m.print()
	m.declare(users + conf)
	says(t, m.plan(), "home /srv/homes/ann (golem made it on the way to something else; it becomes the user's)")
	m.apply()
	if is := owners(); is != "root 755\nann 755\nann 755\nann 755\nroot 644\n" || !m.exists("/srv/homes/ann/.profile") {
		t.Errorf("owners and modes are\n%s", is)
	}
	says(t, m.plan(), "No changes.")
	m.declare(users + "file \"/srv/homes/ann/.profile\" {\n  content = \"mine\\n\"\n  owner   = \"ann\"\n  group   = \"ann\"\n}\n" + conf)
	m.apply()
	m.declare(conf)
	says(t, m.plan(), "- user:ann remove golem made it; its home /srv/homes/ann stays for /srv/homes/ann/.config/app/conf, as a directory made on the way")
	m.apply()
	if diff := difference(timeless(alone), timeless(m.print())); diff != "" {
		t.Errorf("the host with the file alone is not as it was:\n%s", diff)
	}
	m.declare(users)
	m.apply()
	m.destroy()
	m.same("after destroy", found)
}

func TestUserMistakesAreToldBeforeAnythingIsTouched(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.must("useradd", "--uid", "1700", "ann")
	found := m.print()
	for scroll, parts := range map[string][]string{
		"user \"eve\" { uid = 1700 }\n":                                                          {"The uid 1700 is that of the user ann", "main.hcl line 2"},
		"user \"ann\" { uid = 1800 }\n":                                                          {"is there with the uid 1700"},
		"group \"crew\" { gid = 27 }\n":                                                          {"The gid 27 is that of the group sudo"},
		"group \"sudo\" { gid = 28 }\n":                                                          {"is there with the gid 27"},
		"user \"eve\" { groups = [\"nosuch\"] }\n":                                               {"No group is called \"nosuch\" here"},
		"user \"eve\" { group = \"nosuch\" }\n":                                                  {"No group is called \"nosuch\" here"},
		"user \"Eve Smith\" {}\n":                                                                {"Not a name for an account"},
		"user \"eve\" { password = \"sesame\" }\n":                                               {"only as a hash"},
		"user \"eve\" { expires = \"1969-12-31\" }\n":                                            {"too early"},
		"user \"eve\" { locked = false }\n":                                                      {"The user eve has no password that could be unlocked"},
		"user \"eve\" { uid = 1900 }\nuser \"mal\" { uid = 1900 }\n":                             {"asks for the uid 1900, too"},
		"file \"/srv/x\" {\n  content = \"x\"\n  owner = \"eve\"\n}\nuser \"eve\" {}\n":          {"move user:eve up", "main.hcl line 4", "main.hcl line 6"},
		"user \"eve\" { groups = [\"crew\"] }\ngroup \"crew\" {}\n":                              {"move group:crew up"},
		"process \"nap\" {\n  command = [\"/bin/true\"]\n  user = \"eve\"\n}\nuser \"eve\" {}\n": {"move user:eve up"},
		"process \"nap\" {\n  command = [\"/bin/true\"]\n  user = \"eve\"\n}\n":                  {"No user is called \"eve\" here"},
	} {
		m.declare(scroll)
		a := m.golem(1, "apply", "--auto-approve", site)
		for _, part := range parts {
			says(t, a.stderr, part)
		}
	}
	m.same("after refusals", found)
}

func TestUsersKeysAreEditsAndFollowNoLink(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.must("useradd", "--create-home", "ann")
	m.must("useradd", "--create-home", "mal")
	m.sh("mkdir -m 700 /home/ann/.ssh && printf '# by hand' >/home/ann/.ssh/authorized_keys && chmod 640 /home/ann/.ssh/authorized_keys && chown -R ann: /home/ann/.ssh")
	m.sh("ln -s /root /home/mal/.ssh && chown -h mal: /home/mal/.ssh")
	found := m.print()
	m.declare("user \"mal\" { authorized_keys = [\"" + deployKey + "\"] }\n")
	says(t, m.golem(1, "apply", "--auto-approve", site).stderr, "is a link")
	m.same("after a planted link", found)
	m.declare("user \"ann\" { authorized_keys = [\"" + deployKey + "\"] }\n")
	m.apply()
	if got := m.read("/home/ann/.ssh/authorized_keys"); got != "# by hand\n"+deployKey+"\n" {
		t.Errorf("the keys are %q", got)
	}
	says(t, m.must("stat", "-c", "%U:%G %a", "/home/ann/.ssh/authorized_keys"), "ann:ann 640")
	m.sh("echo ssh-rsa hand >>/home/ann/.ssh/authorized_keys")
	says(t, m.plan(), "No changes.")
	m.sh("sed -i /hand$/d /home/ann/.ssh/authorized_keys")
	m.write("/home/ann/.ssh/authorized_keys", "# by hand\n")
	says(t, m.plan(), "! user:ann repair drifted: 1 key in /home/ann/.ssh/authorized_keys")
	m.apply()
	m.destroy()
	m.sh("printf '# by hand' >/tmp/k && cp /tmp/k /home/ann/.ssh/authorized_keys && rm /tmp/k")
	m.declare("user \"ann\" { authorized_keys = [\"" + deployKey + "\"] }\n")
	found = m.print()
	m.apply()
	m.destroy()
	m.same("after destroy", found)

	// Another home: the key goes from the old one into the new one, by whomever it is set.
	m.sh("mkdir -p /srv/ann/.ssh && printf '# there' >/srv/ann/.ssh/authorized_keys && chown -R ann: /srv/ann")
	found = m.print()
	m.apply()
	m.declare("user \"ann\" {\n  home = \"/srv/ann\"\n  authorized_keys = [\"" + deployKey + "\"]\n}\n")
	says(t, m.plan(), "~ user:ann replace home /home/ann → /srv/ann (nothing is moved there), 1 key taken away, 1 key in /srv/ann/.ssh/authorized_keys")
	m.apply()
	keys := func() string {
		return m.read("/home/ann/.ssh/authorized_keys") + "|" + m.read("/srv/ann/.ssh/authorized_keys")
	}
	if is := keys(); is != "# by hand|# there\n"+deployKey+"\n" {
		t.Errorf("the keys are %q", is)
	}
	says(t, m.plan(), "No changes.")
	m.must("usermod", "--home", "/home/ann", "ann") // by hand
	m.apply()
	says(t, m.plan(), "No changes.")
	m.golem(0, "rollback", "--auto-approve", "--to", "2", "--name", "web")
	if is := keys(); is != "# by hand\n"+deployKey+"\n|# there" {
		t.Errorf("after a rollback the keys are %q", is)
	}
	m.apply()
	m.must("usermod", "--home", "/srv", "ann")
	m.destroy()
	m.must("usermod", "--home", "/home/ann", "ann")
	m.same("after destroy from another home", found)
	m.declare("user \"ann\" { home = \"/srv/none\" }\n")
	says(t, m.plan(), "home /home/ann → /srv/none (not there and not made; nothing is moved)")
}

func TestUserDriftIsRepairedWithItsNumber(t *testing.T) {
	t.Parallel()
	m := boot(t)
	found := m.print()
	m.declare("group \"crew\" {}\nuser \"ann\" {\n  groups = [\"crew\"]\n  comment = \"Ann\"\n}\nfile \"/srv/hers\" {\n  content = \"x\"\n  owner = \"ann\"\n  group = \"crew\"\n}\n")
	m.apply()
	before := m.must("id", "ann")
	m.must("userdel", "--remove", "ann")
	m.must("groupdel", "crew")
	m.must("useradd", "other") // which takes no number of theirs away
	m.must("userdel", "other")
	says(t, m.plan(), "! user:ann repair drifted: a new user")
	says(t, m.plan(), "! group:crew repair drifted: a new group")
	m.apply()
	if now := m.must("id", "ann"); now != before {
		t.Errorf("ann is %s, and was %s", now, before)
	}
	says(t, m.plan(), "No changes.")
	m.sh("usermod --comment Eve ann && rm -r /home/ann")
	says(t, m.plan(), "! user:ann repair drifted: comment Eve → Ann, its home /home/ann is made anew")
	m.apply()
	m.declare("group \"crew\" {}\nuser \"bob\" {\n  group = \"crew\"\n  home = \"/srv/bob\"\n}\n")
	m.apply()
	m.declare("group \"crew\" {}\nuser \"bob\" {}\n")
	says(t, m.plan(), "~ user:bob replace home stays /srv/bob, group stays crew")
	m.apply()
	says(t, m.plan(), "No changes.")
	m.declare("variable \"note\" {\n  default = \"hush hush\"\n  sensitive = true\n}\ngroup \"crew\" {}\nuser \"bob\" { comment = var.note }\n")
	said := m.plan() + m.golem(0, "plan", "--json", site).stdout
	says(t, said, "~ user:bob replace another comment")
	said += m.apply().stdout + m.plan("--destroy") + m.golem(0, "plan", "--destroy", "--json", site).stdout + m.golem(0, "state", "show", "user:bob").stdout
	if strings.Contains(said, "hush hush") {
		t.Errorf("what is sensitive is shown:\n%s", said)
	}
	m.destroy()
	m.same("after destroy", found)
}

// A user that a package's script makes is the package's: golem finds it, and leaves it.
func TestUserOfAPackageIsFound(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "daemon", Postinst: "getent passwd madeup >/dev/null || useradd --system --home-dir /nonexistent madeup"})
	m.declare("apt \"daemon\" {}\nuser \"madeup\" { groups = [\"adm\"] }\n")
	m.apply()
	says(t, m.must("id", "-Gn", "madeup"), "madeup adm")
	says(t, m.plan("--destroy"), "- user:madeup remove the user stays, it was there before golem: leaves adm")
	m.destroy()
	if groups := strings.TrimSpace(m.must("id", "-Gn", "madeup")); groups != "madeup" {
		t.Errorf("madeup is in %s", groups)
	}
}

// accountTools are the programs that change accounts.
var accountTools = []string{"useradd", "usermod", "userdel", "groupadd", "groupdel", "gpasswd"}

func TestUsersSurviveEveryKill(t *testing.T) {
	t.Parallel()
	acts(t, func(t *testing.T, act string) {
		m := boot(t)
		m.must("useradd", "--create-home", "--groups", "sudo,adm", "ann")
		m.sh("mkdir -p /srv/ann/.ssh && echo '# there' >/srv/ann/.ssh/authorized_keys && chown -R ann: /srv/ann")
		newSaboteur(m, accountTools...).walk(act, `
group "crew" {}
user "deploy" {
  groups          = ["crew", "adm"]
  password        = "$6$salt$hash"
  authorized_keys = ["`+deployKey+`"]
}
user "ann" {
  groups    = ["crew"]
  exclusive = true
  shell     = "/bin/bash"
  locked    = true
  home      = "/srv/ann"
  authorized_keys = ["`+deployKey+`"]
}
file "/srv/hers" {
  content = "x"
  owner   = "deploy"
  group   = "crew"
}
`)
	})
}

func TestExampleAccountsSettlesAndComesBack(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.must("useradd", "--create-home", "--groups", "adm", "ada")
	scroll := m.example("accounts")
	found := m.print()
	says(t, m.golem(0, "plan", scroll).stdout, "+ user:backup-job install a new system user, group backup-job (made in this run)")
	m.golem(0, "apply", "--auto-approve", scroll)
	says(t, m.must("id", "-Gn", "ada"), "ada adm sudo operators")
	says(t, m.must("stat", "-c", "%U:%G %a", "/var/lib/backup-job", "/home/bob/.ssh/authorized_keys"), "backup-job:operators 750 bob:bob 600")
	says(t, m.golem(0, "plan", scroll).stdout, "No changes.")
	m.golem(0, "destroy", "--auto-approve", scroll)
	m.same("after destroy", found)
}

func TestUserIsAdoptedAsItIs(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.must("useradd", "--create-home", "--groups", "sudo,adm", "--shell", "/bin/bash", "--comment", "By hand", "ann")
	found := m.print()
	m.declare(m.golem(0, "adopt", "--print-only", "user", "ann").stdout + m.golem(0, "adopt", "--print-only", "group", "ann").stdout)
	plan := m.plan()
	says(t, plan, "+ user:ann install it is so already; nothing to change")
	says(t, plan, "+ group:ann install it is so already; nothing to change")
	m.apply()
	m.destroy()
	m.same("after destroy", found)
}
