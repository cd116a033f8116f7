package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// A saboteur stands before programs in the machine's PATH. It counts golem's calls of
// them, and at one of them kills golem or the program.
type saboteur struct {
	m           *machine
	part, parts int // which of the calls it strikes at: of so many parts, this one, from 0
}

// The ways in which the n-th call goes wrong.
const (
	killedAtStart = "start" // golem dies as the program starts; the program goes on without it
	killedAtEnd   = "end"   // the program has ended, and golem dies before it knows
	killedUnder   = "under" // the program dies under golem, before it does anything
	killedMidway  = "mid"   // the program dies under golem while it works; what it started goes on
)

func newSaboteur(m *machine, programs ...string) saboteur {
	m.t.Helper()
	for _, name := range programs {
		real := strings.TrimSpace(m.must("sh", "-c", "command -v "+name))
		// What only reads is left out of the count, but for a soak: a golem that dies then
		// dies between two changes all the same.
		reads := "*' show '*|*' is-enabled '*|*' -s '*|*' --print-'*|*' --assert-'*|*' --compare-'*|*' ps '*|*' inspect '*|*' logs '*"
		if os.Getenv("GOLEM_SOAK") != "" {
			reads = "nothing"
		}
		m.write("/usr/local/bin/"+name, `#!/bin/sh
case " $* " in `+reads+`) exec `+real+` "$@" ;; esac
n=$(($(cat /dev/shm/calls 2>/dev/null || echo 0) + 1))
echo $n >/dev/shm/calls
if [ "$n" = "$(cat /dev/shm/kill-at 2>/dev/null)" ]; then
	echo "$0 $*" >/dev/shm/killed
	case $(cat /dev/shm/kill-how) in
	start) kill -9 $PPID; sleep 0.2 ;;
	end) `+real+` "$@"; kill -9 $PPID; exit 0 ;;
	under) kill -9 $$ ;;
	mid) `+real+` "$@" & sleep 0.25; kill -9 $! 2>/dev/null; wait $!; exit $? ;;
	esac
fi
exec `+real+` "$@"
`)
		m.must("chmod", "755", "/usr/local/bin/"+name)
	}
	return saboteur{m, 0, 1}
}

// timeless is a fingerprint without the times of files, which are new with every apply.
func timeless(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		before, after, found := strings.Cut(line, " mtime ")
		if _, rest, ok := strings.Cut(after, " "); found && ok {
			line = before + " " + rest
		}
		out[i] = line
	}
	return out
}

// at arms the saboteur for one run of golem. It says which call it struck at, "" if the
// run had fewer.
func (s saboteur) at(n int, how string, run func()) string {
	s.m.t.Helper()
	s.m.sh(fmt.Sprintf("rm -f /dev/shm/killed; echo 0 >/dev/shm/calls; echo %d >/dev/shm/kill-at; echo %s >/dev/shm/kill-how", n, how))
	run()
	struck := s.m.sh("cat /dev/shm/killed 2>/dev/null || true; rm -f /dev/shm/kill-at")
	return strings.TrimSpace(struck)
}

// walk kills golem and its programs at every call of an apply or of a destroy. After
// each, recovery leaves the host as it was before or as it is after (the scroll must be
// one leaf), the next apply settles, and destroy gives the host back.
func (s saboteur) walk(act, scroll string) {
	m := s.m
	m.t.Helper()
	m.declare(scroll)
	found := m.print()
	m.apply()
	applied := timeless(m.print())
	m.destroy()
	m.same("before the walk, after destroy", found)
	ways := []string{killedAtStart, killedAtEnd, killedUnder, killedMidway}
	rounds := 1 // every call once, the ways in turn
	if os.Getenv("GOLEM_SOAK") != "" {
		rounds = len(ways)
	}
	for first := range rounds {
		for n := 1 + s.part; s.strike(act, ways[(n+first)%len(ways)], n, found, applied); n += s.parts {
			if m.t.Failed() {
				return
			}
		}
	}
}

// acts runs a test of each act beside the other, on a machine of its own.
func acts(t *testing.T, test func(t *testing.T, act string)) {
	for _, act := range []string{"apply", "destroy"} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			test(t, act)
		})
	}
}

// strike is one step of the walk. It says whether there was an n-th call.
func (s saboteur) strike(act, how string, n int, found, applied []string) bool {
	m := s.m
	m.t.Helper()
	if act == "destroy" {
		m.apply()
	}
	struck := s.at(n, how, func() { m.run("golem", act, "--auto-approve", site) })
	if struck == "" {
		if n == 1 {
			m.t.Fatalf("%s called nothing", act)
		}
		m.destroyed()
		return false
	}
	at := fmt.Sprintf("%s, %s at call %d (%s)", act, how, n, strings.Fields(struck))
	if a := m.run("golem", "recover"); a.code != 0 {
		m.t.Fatalf("%s: recover: exit %d\n%s%s", at, a.code, a.stdout, a.stderr)
	}
	// A destroy may have settled its leaf and died in the last wave: then it is between.
	if now := m.print(); act == "apply" && !slices.Equal(now, found) && !slices.Equal(timeless(now), applied) {
		m.t.Errorf("%s: the host is neither as before nor as after. To before:\n%sTo after:\n%s", at, difference(found, now), difference(applied, timeless(now)))
	}
	m.apply()
	if diff := difference(applied, timeless(m.print())); diff != "" {
		m.t.Errorf("%s, and after the next apply:\n%s", at, diff)
	}
	m.destroy()
	m.same(at+", and after destroy", found)
	return true
}

// destroyed takes back what is applied, if anything is.
func (m *machine) destroyed() {
	m.t.Helper()
	if strings.Contains(m.golem(0, "state", "list", "--json").stdout, `"key"`) {
		m.destroy()
	}
}

func TestProcessSurvivesEveryKill(t *testing.T) {
	t.Parallel()
	acts(t, func(t *testing.T, act string) {
		newSaboteur(boot(t), "systemctl").walk(act, processes("one", "daily"))
	})
}

// TestEveryKindSurvivesEveryKill kills golem, apt, systemctl, useradd and userdel at every
// call that changes the host, of a scroll of all kinds.
func TestEveryKindSurvivesEveryKill(t *testing.T) {
	t.Parallel()
	const parts = 3 // side by side, each on a machine of its own: it is the longest walk
	acts(t, func(t *testing.T, act string) {
		for part := range parts {
			t.Run(fmt.Sprintf("part %d", part+1), func(t *testing.T) {
				t.Parallel()
				s := newSaboteur(lawHost(t), "systemctl", "apt-get", "useradd", "userdel")
				s.part, s.parts = part, parts
				s.walk(act, everyKindInOneLeaf)
			})
		}
	})
}

// TestDpkgKilledUnderAptIsSettled kills dpkg where apt calls it: before it works, while it
// does, and apt with it.
func TestDpkgKilledUnderAptIsSettled(t *testing.T) {
	t.Parallel()
	acts(t, func(t *testing.T, act string) {
		m := lawHost(t)
		m.write("/etc/apt/apt.conf.d/99saboteur", "Dir::Bin::dpkg \"/usr/local/bin/dpkg\";\n")
		newSaboteur(m, "dpkg").walk(act, "apt \"law-a\" {}\napt \"law-d\" {}\n")
	})
}

// everyKindInOneLeaf is a scroll over what lawHost has.
const everyKindInOneLeaf = `
group "law-g" {}
user "law-m" {
  groups = ["law-g", "adm"]
}
file "/home/law-m/.config/law" {
  content = "golem's\n"
  owner   = "law-m"
  group   = "law-g"
}
apt "law-a" {}
apt "law-u" {}
file "/etc/law-d.conf" {
  content = "golem's\n"
}
apt "law-d" {}
directory "/etc/law" {}
link "/etc/law/link" {
  target = "../law.conf"
}
line "l" {
  path = "/etc/hosts"
  line = "10.9.9.9 law"
}
file "/etc/law.conf" {
  content = "golem's\n"
}
service "law-idle" {
  state   = "running"
  enabled = true
}
service "law-busy" {
  restart_on = ["file:/etc/law.conf"]
}
process "law-own" {
  command = ["/bin/sleep", "infinity"]
  user    = "law-m"
}
command "law" {
  run     = ["touch", "/etc/law.ran"]
  undo    = ["rm", "-f", "/etc/law.ran"]
  creates = "/etc/law.ran"
}
access "/etc/law.conf" {
  user  = "law-m"
  perms = "rx"
}
`
