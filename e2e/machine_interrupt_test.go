package e2e

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An interrupt is told as one, whatever golem was asking the host just then: never as a
// mistake of the scroll, and never as a failure of what was asked.
func TestInterruptIsToldAsOneAtAnyMoment(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.repo(tiny{Name: "lib"}, tiny{Name: "uses", Depends: "lib"})
	m.unit("runs.service", sleeper)
	m.unit("rests.service", sleeper)
	m.must("systemctl", "start", "runs")
	found := m.print()
	m.declare(`apt "uses" {}
service "runs" {
  state   = "stopped"
  enabled = true
}
service "rests" { state = "running" }
process "own" { command = ["sleep", "infinity"] }
`)
	began := time.Now()
	m.apply()
	whole := time.Since(began)
	m.destroy()
	m.must("systemctl", "start", "runs")
	codes := map[int]int{}
	const moments = 10
	for n := range moments {
		cmd := m.start("golem", "apply", "--auto-approve", site)
		time.Sleep(whole * time.Duration(n+1) / moments)
		m.signal(cmd, unix.SIGINT)
		_ = cmd.Wait()
		code, said := cmd.ProcessState.ExitCode(), cmd.Stdout.(*syncBuffer).String()+cmd.Stderr.(*syncBuffer).String()
		codes[code]++
		if code != 0 && code != 130 {
			t.Errorf("interrupted: exit %d\n%s", code, said)
		}
		if strings.Contains(said, "context canceled") || strings.Contains(said, "Error:") || code == 130 && !strings.Contains(said, "interrupted") {
			t.Errorf("an interrupt is told as\n%s", said)
		}
		if code == 0 {
			m.destroy()
			m.must("systemctl", "start", "runs")
		}
	}
	if codes[130] == 0 {
		t.Errorf("no interrupt came in time: %v", codes)
	}
	m.same("after interrupts", found)
}
