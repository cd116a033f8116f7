package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// everyKindLeaves are leaves that hold, between them, a glyph of every kind there is. Each
// stands on its own, but that some need an earlier one: after says which.
var everyKindLeaves = []struct {
	name, text string
	after      []string
}{
	{"people", `
  group "web" {}
  user "deploy" {
    comment         = "Deploys"
    groups          = ["web"]
    authorized_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJx0vXq0n5q8bQnX3eYt5g6rVh8b0Yd2n9u3kQw1cM7p deploy@desk"]
  }
`, nil},
	{"files", `
  directory "/srv/app" {
    owner = "deploy"
    group = "web"
    mode  = "0750"
  }
  file "/srv/app/conf" {
    owner   = "deploy"
    content = "one\n"
  }
  link "/etc/app" { target = "/srv/app/conf" }
  file "/etc/motd" { content = "hello\n" }
`, []string{"people"}},
	{"edits", `
  line "host" {
    path = "/etc/hosts"
    line = "10.0.0.5 db.internal"
  }
  region "more" {
    path    = "/etc/hosts"
    content = "10.0.0.6 web.internal\n10.0.0.7 log.internal"
  }
  entry "log" {
    path  = "/etc/app.json"
    key   = "log.level"
    value = "debug"
  }
  entry "list" {
    path   = "/etc/app.json"
    key    = "hosts"
    member = "b"
  }
`, nil},
	{"package", `
  apt "daemon" {}
  service "daemon.service" {
    state      = "stopped"
    enabled    = false
    restart_on = ["file:/etc/motd"]
  }
`, nil},
	{"process", `
  process "nap" {
    user    = "deploy"
    command = ["/bin/sleep", "infinity"]
    bundle  = { "note.txt" = "a note\n" }
  }
`, []string{"people"}},
	{"release", `
  archive "/opt/tool" {
    source = "tool.tar.gz"
    strip  = 1
    group  = "web"
  }
`, []string{"people"}},
	{"grants", `
  access "/srv/found" {
    user      = "deploy"
    perms     = "rX"
    recursive = true
  }
  access "web" {
    path    = "/srv/found"
    group   = "web"
    perms   = "rwx"
    default = true
  }
`, []string{"people"}},
	{"command", `
  command "mark" {
    run     = ["touch", "/etc/mark"]
    undo    = ["rm", "-f", "/etc/mark"]
    creates = "/etc/mark"
  }
`, nil},
	{"containers", `
  network "lan" { subnet = "10.77.0.0/24" }
  container "web" {
    image    = "` + podImage + `"
    command  = ["serve", "80", "hello"]
    networks = ["lan"]
    mounts   = [{ source = "/srv/found", target = "/data", read_only = true }]
  }
`, nil},
}

// someLeaves is the scroll of the leaves that are picked, with what they need, in the order
// of the list. A round gives some of them other contents.
func someLeaves(pick func(name string) bool, round int) string {
	wanted := map[string]bool{}
	for _, leaf := range everyKindLeaves {
		if pick(leaf.name) {
			wanted[leaf.name] = true
			for _, need := range leaf.after {
				wanted[need] = true
			}
		}
	}
	var text string
	for _, leaf := range everyKindLeaves {
		if wanted[leaf.name] {
			text += fmt.Sprintf("scroll %q {%s}\n", leaf.name, leaf.text)
		}
	}
	return strings.NewReplacer(`"one\n"`, fmt.Sprintf(`"%d\n"`, round), `"serve", "80", "hello"`, fmt.Sprintf(`"serve", "80", "hello-%d"`, round%2),
		`"Deploys"`, fmt.Sprintf(`"Deploys %d"`, round), `"a note\n"`, fmt.Sprintf(`"note %d\n"`, round), `value = "debug"`, fmt.Sprintf(`value = "%d"`, round),
	).Replace(text)
}

// TestEveryKindAtOnceComesBack applies a scroll of all kinds, then random parts of it with
// other contents, one of those runs killed half way, and at the end takes all back: the
// whole host is as it was, and its second plan was empty each time.
func TestEveryKindAtOnceComesBack(t *testing.T) {
	t.Parallel()
	m := bootPodman(t)
	m.repo(unitPackage("daemon"))
	m.sh(`set -e
mkdir -p /srv/found/deep /root/site /tmp/1/tool-1/bin /etc/containers/networks
echo data >/srv/found/deep/file && chmod 640 /srv/found/deep/file
printf '{\n    "hosts": ["a"], // c\n    "port": 1\n}\n' >/etc/app.json
printf '#!/bin/sh\n' >/tmp/1/tool-1/bin/tool && echo lib >/tmp/1/tool-1/lib
tar czf /root/site/tool.tar.gz -C /tmp/1 tool-1 && rm -r /tmp/1`)
	found := m.print()
	m.declare(someLeaves(func(string) bool { return true }, 0))
	kinds := map[string]bool{}
	changes, _ := m.planJSON()["changes"].([]any)
	for _, c := range changes {
		change, _ := c.(map[string]any)
		kind, _ := change["kind"].(string)
		kinds[kind] = true
	}
	for _, kind := range kindNames(t) {
		if !kinds[kind] {
			t.Errorf("the scroll has no %s", kind)
		}
	}
	m.apply()
	m.settled()
	rounds, seed := 2, uint64(7)
	if os.Getenv("GOLEM_SOAK") != "" {
		rounds, seed = 20, rand.Uint64()
		t.Logf("seed %d", seed)
	}
	draw := rand.New(rand.NewPCG(seed, 0))
	for round := 1; round <= rounds; round++ {
		m.declare(someLeaves(func(string) bool { return draw.IntN(3) > 0 }, round))
		if round%2 == 0 { // killed half way
			golem := m.start("golem", "apply", "--auto-approve", site)
			m.sh("sleep 0." + strconv.Itoa(2+draw.IntN(7)))
			m.signal(golem, unix.SIGKILL)
			_ = golem.Wait()
		}
		m.apply()
		m.settled()
	}
	m.declare(someLeaves(func(string) bool { return true }, 0))
	m.apply()
	m.settled()
	m.destroy()
	m.same("after destroy", found)
}

// kindNames are the kinds that golem explains.
func kindNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, line := range strings.Split(call{}.must(t, 0, "explain").stdout, "\n\n")[:1] {
		for _, row := range strings.Split(line, "\n") {
			name, _, _ := strings.Cut(row, " ")
			names = append(names, name)
		}
	}
	return names
}
