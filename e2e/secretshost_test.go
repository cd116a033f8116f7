package e2e

import (
	"strings"
	"testing"
)

// liveSecrets has a secret in all that needs a live host: commands' words, variables and
// output, guards, a process, a password, an archive's source, and tests of new files.
const liveSecrets = `
variable "pw" {
  type      = string
  sensitive = true
}
variable "hash" {
  type      = string
  sensitive = true
}
policy {
  retry { max_attempts = 1 }
}
scroll "good" {
  user "ann" {
    password = var.hash
    comment  = var.pw
  }
  process "daemon" {
    command = ["sleep", "1000"]
    env     = { WORD = var.pw }
  }
  command "env" {
    run  = ["sh", "-c", "sleep 0.3; ps -eo args >/run/args; echo $WORD"]
    env  = { WORD = var.pw }
    undo = ["sh", "-c", "echo $WORD"]
  }
  link "/etc/linked" {
    target = "/srv/${var.pw}"
  }
  file "/etc/tested" {
    content  = "word ${var.pw}\n"
    validate = ["grep", "-q", "word", "%s"]
  }
}
scroll "words" {
  command "words" {
    run    = ["sh", "-c", "echo said $0 >&2; exit 4", var.pw]
    unless = ["test", "-e", "/nosuch/${var.pw}"]
    undo   = ["true", var.pw]
  }
}
scroll "env" {
  command "fails" {
    run = ["sh", "-c", "echo said $WORD >&2; exit 5"]
    env = { WORD = var.pw }
  }
}
scroll "test" {
  file "/etc/refused" {
    content  = "word ${var.pw}\n"
    validate = ["sh", "-c", "cat $0; exit 6", "%s"]
  }
}
scroll "process" {
  process "ends" {
    command = ["/bin/sh", "-c", "echo said $WORD; cat conf; exit 8"]
    env     = { WORD = var.pw }
    bundle  = { conf = "word = ${var.pw}\n" }
  }
}
scroll "container" {
  command "nowhere" {
    run  = ["true"]
    dir  = "/nosuch/${var.pw}"
    undo = ["true"]
  }
  archive "/opt/none" {
    source = "/nosuch/${var.pw}"
  }
}
`

// secretsOfALiveHost looks for them in all that golem says, in what other users see of the
// programs that it starts, and in all that it wrote but the journal and what it was told to.
func secretsOfALiveHost(t *testing.T, m *machine) {
	t.Helper()
	const hash = "$6$abcdefgh$s3cretHash1s3cretHash2s3cretHash3"
	given := []string{"--var-file", "/root/vars"} // --var would be in the list of processes
	m.sh("umask 077; printf 'pw = \"%s\"\\nhash = \"%s\"\\n' '" + theSecret + "' '" + hash + "' >/root/vars")
	var said strings.Builder
	golem := func(code int, args ...string) {
		t.Helper()
		a := m.golem(code, append(args, given...)...)
		said.WriteString(a.stdout + a.stderr)
	}
	m.declare(liveSecrets)
	golem(1, "plan", "/root/site")
	m.declare(strings.Split(liveSecrets, `scroll "container"`)[0])
	golem(0, "plan", "/root/site")
	golem(0, "plan", "--json", "/root/site")
	golem(3, "apply", "--auto-approve", "/root/site")
	golem(3, "apply", "--auto-approve", "--json", "/root/site")
	m.sh("echo by hand >>/etc/tested; usermod -p '$6$other$hand' ann; systemctl stop daemon.service")
	golem(0, "plan", "--drift", "/root/site")
	golem(0, "plan", "/root/site")
	golem(0, "plan", "--markdown", "/root/site")
	golem(0, "plan", "--out", "/root/site.plan", "/root/site")
	for _, args := range [][]string{
		{"history"},
		{"show"},
		{"show", "--json"},
		{"state", "export"},
		{"show", "/root/site.plan"},
		{"show", "--json", "/root/site.plan"},
		{"state", "show", "user:ann"},
		{"state", "show", "link:/etc/linked"},
		{"state", "show", "--json", "link:/etc/linked"},
		{"state", "show", "--json", "process:daemon"},
		{"state", "show", "command:env"},
		{"kept", "list", "--json"},
	} {
		golem(0, args...)
	}
	said.WriteString(m.sh("cat /run/args /root/site.plan; systemctl show daemon.service; cat /etc/systemd/system/daemon.service; journalctl --no-pager -t golem"))
	golem(0, "destroy", "--auto-approve", "/root/site")
	for _, leaf := range []string{"words", "env", "test", "process"} {
		says(t, said.String(), leaf)
	}
	says(t, said.String(), "its log is not shown")
	for _, code := range []string{"4", "5", "6"} {
		says(t, said.String(), "exit status "+code)
	}
	hides(t, theSecret, said.String())
	hides(t, hash, said.String())
	hides(t, "$6$other$hand", said.String())
}
