package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// signalScroll is a scroll of every kind, in leaves that take about as long as each other.
const signalScroll = `
scroll "packages" {
  apt "law-a" {}
  apt "law-d" {}
  file "/etc/sig/of-packages" { content = "x\n" }
}
scroll "files" {
  directory "/etc/sig/dir" {}
  file "/etc/law.conf" { content = "golem's\n" }
  link "/etc/sig/link" { target = "dir" }
  line "l" {
    path = "/etc/hosts"
    line = "10.9.9.9 law"
  }
}
scroll "units" {
  service "law-once" {
    state     = "running"
    enabled   = true
    reload_on = ["file:/etc/law.conf"]
  }
  process "law-timed" {
    command  = ["/bin/true"]
    schedule = "daily"
  }
  apt "law-u" {}
  check "command" { run = ["true"] }
}
`

// The ways in which somebody ends golem.
var endings = map[string]func(m *machine, cmd *exec.Cmd){
	"SIGINT":  func(m *machine, cmd *exec.Cmd) { m.signal(cmd, unix.SIGINT) },
	"SIGTERM": func(m *machine, cmd *exec.Cmd) { m.signal(cmd, unix.SIGTERM) },
	"SIGHUP":  func(m *machine, cmd *exec.Cmd) { m.signal(cmd, unix.SIGHUP) },
	"two SIGHUPs": func(m *machine, cmd *exec.Cmd) { // as when a session ends with its terminal
		m.signal(cmd, unix.SIGHUP)
		time.Sleep(20 * time.Millisecond)
		m.signal(cmd, unix.SIGHUP)
	},
	"two SIGINTs": func(m *machine, cmd *exec.Cmd) {
		m.signal(cmd, unix.SIGINT)
		time.Sleep(20 * time.Millisecond)
		m.signal(cmd, unix.SIGINT)
	},
}

// randomly is a source of chance that can be had again.
func randomly(t *testing.T, n uint64) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("GOLEM_SIGNAL_SEED"); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("GOLEM_SIGNAL_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, n))
}

// TestSignalsAtRandomInstants ends applies and destroys at random: after one signal what
// was in flight is taken back and committed, and the host is what the journal says; after
// a second the next run settles it. In the end destroy gives the host back.
func TestSignalsAtRandomInstants(t *testing.T) {
	t.Parallel()
	times := 10
	if os.Getenv("GOLEM_SOAK") != "" {
		times = 50
	}
	for n, ways := range [][]string{{"SIGINT", "two SIGINTs"}, {"SIGTERM", "SIGHUP"}, {"two SIGHUPs", "terminal"}, {"SIGINT", "SIGTERM"}} {
		t.Run(strings.Join(ways, " and "), func(t *testing.T) {
			t.Parallel()
			r := randomly(t, uint64(n))
			m := lawHost(t)
			m.unit("law-once.service", "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\nExecReload=/bin/true\n[Install]\nWantedBy=multi-user.target\n")
			m.declare(signalScroll)
			found := m.print()
			whole := map[string]time.Duration{}
			for _, act := range []string{"apply", "destroy"} {
				began := time.Now()
				m.golem(0, act, "--auto-approve", site)
				whole[act] = time.Since(began)
			}
			m.same("before any signal", found)
			codes := map[string]int{}
			for i := range times {
				act := []string{"apply", "apply", "destroy"}[r.IntN(3)]
				way := ways[i%len(ways)]
				code := m.endedBy(act, way, time.Duration(r.Float64()*0.8*float64(whole[act])))
				codes[way+" "+code]++
				m.afterSignal(fmt.Sprintf("%s, %s after %d", act, way, i), way, code)
				if i%10 == 9 {
					m.apply()
					says(t, m.plan(), "No changes.")
					m.destroyed()
					m.same(fmt.Sprintf("after %d signals", i+1), found)
				}
				if t.Failed() {
					return
				}
			}
			t.Log(codes)
		})
	}
}

// endedBy runs golem and ends it some time later. It returns how golem ended.
func (m *machine) endedBy(act, way string, after time.Duration) string {
	m.t.Helper()
	if act == "destroy" && !strings.Contains(m.golem(0, "state", "list", "--json").stdout, `"key"`) {
		act = "apply"
	}
	if way == "terminal" {
		m.sh("rm -f /run/ended")
		cmd := m.start("script", "-qefc", "golem "+act+" --auto-approve "+site+" || true", "/dev/null")
		time.Sleep(after)
		m.signal(cmd, unix.SIGKILL)
		_ = cmd.Wait()
		m.sh("for i in $(seq 300); do pgrep -x golem >/dev/null || exit 0; sleep 0.1; done; exit 1")
		return "unknown"
	}
	cmd := m.start("golem", act, "--auto-approve", site)
	time.Sleep(after)
	endings[way](m, cmd)
	_ = cmd.Wait()
	code := cmd.ProcessState.ExitCode()
	said := cmd.Stdout.(*syncBuffer).String() + cmd.Stderr.(*syncBuffer).String()
	if code == 130 && !strings.Contains(said, "interrupted") || strings.Contains(said, "Error:") || strings.Contains(said, "context canceled") {
		m.t.Errorf("%s, %s: exit %d, told as\n%s", act, way, code, said)
	}
	return strconv.Itoa(code)
}

// afterSignal looks at what a signal left.
func (m *machine) afterSignal(at, way, code string) {
	m.t.Helper()
	twice := way == "two SIGINTs"
	// A signal that comes before golem's first instruction ends it: then nothing was begun,
	// which what follows looks at.
	early := code == "-1"
	if code != "0" && code != "130" && code != "unknown" && !twice && !early {
		m.t.Errorf("%s: exit %s", at, code)
	}
	m.golem(0, "state", "check")
	if twice { // the next run settles it
		m.golem(0, "recover")
	}
	p := m.planJSON()
	if p["recovers"] != nil {
		m.t.Errorf("%s: exit %s, and the next run has to recover %v", at, code, p["recovers"])
	}
	for _, c := range p["changes"].([]any) {
		if c := c.(map[string]any); c["drift"] != false {
			m.t.Errorf("%s: exit %s, and the host is not what the journal says: %v %v", at, code, c["key"], c["reason"])
		}
	}
}
