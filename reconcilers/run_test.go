package reconcilers

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// commandHost is a host that runs real commands, and marks those that change it.
func commandHost(t *testing.T) *Host {
	t.Helper()
	h, err := OpenHost(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	h.Running = filepath.Join(t.TempDir(), "planroom.db.running")
	return h
}

// A command's time is up for all that it started: its children, theirs, and what is in a
// session of its own, as dpkg is under apt. What has cut itself loose lives on.
func TestACommandsTimeKillsAllThatItStarted(t *testing.T) {
	for _, changes := range []bool{true, false} {
		h := commandHost(t)
		pids, loose := filepath.Join(t.TempDir(), "pids"), filepath.Join(t.TempDir(), "loose")
		_, err := h.Do(context.Background(), Command{
			Argv: []string{"sh", "-c", `
(setsid sh -c 'sleep 60 >/dev/null 2>&1 & echo $! >'` + loose + `)
echo $$ >>` + pids + `; sleep 60 & echo $! >>` + pids + `
sh -c 'sleep 60 & echo $! >>` + pids + `; wait' &
setsid -f true; setsid sh -c 'sleep 60 & echo $! >>` + pids + `; wait'`}, Changes: changes, Timeout: time.Second,
		})
		var failed *CommandError
		if !errors.As(err, &failed) || err.Error() != "run sh: still running after 1s" {
			t.Fatalf("error: %v", err)
		}
		text, err := os.ReadFile(pids)
		if err != nil || len(strings.Fields(string(text))) != 4 {
			t.Fatalf("it started %q: %v", text, err)
		}
		for pid := range strings.FieldsSeq(string(text)) {
			gone(t, pid)
		}
		text, err = os.ReadFile(loose)
		if err != nil {
			t.Fatal(err)
		}
		if err := exec.Command("kill", strings.TrimSpace(string(text))).Run(); err != nil {
			t.Errorf("a daemon that had cut itself loose: %v", err)
		}
	}
}

// gone waits until a process has ended.
func gone(t *testing.T, pid string) {
	t.Helper()
	for range 100 {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("process %s still runs", pid)
}

func TestACommandHasNoInputAndNoShell(t *testing.T) {
	h := commandHost(t)
	out, err := h.Run(context.Background(), time.Minute, "sh", "-c", "cat; echo \"$0 $1\"", "$HOME", "a;b")
	if err != nil || string(out.Stdout) != "$HOME a;b\n" {
		t.Errorf("it printed %q (%v)", out.Stdout, err)
	}
	_, err = h.Run(context.Background(), time.Minute, "sh", "-c", "echo why >&2; exit 3")
	var failed *CommandError
	if !errors.As(err, &failed) || failed.Code != 3 || err.Error() != "run sh: why" {
		t.Errorf("error: %v", err)
	}
}

// outliving is the environment variable that makes this test's binary a golem that is
// killed while its command runs.
const outliving = "GOLEM_TEST_OUTLIVING"

func TestACommandThatOutlivesAKilledGolemIsWaitedFor(t *testing.T) {
	for name, c := range map[string]Command{"changes": {Changes: true}, "looks": {Awaited: true}} {
		t.Run(name, func(t *testing.T) { awaited(t, c) })
	}
}

// awaited kills a golem that runs a command, and waits for the command.
func awaited(t *testing.T, c Command) {
	if mark := os.Getenv(outliving); mark != "" {
		h := &Host{Running: mark}
		c.Argv = []string{"sh", "-c", "echo started >" + mark + ".begun; sleep 1; echo ended >" + mark + ".ended"}
		c.Timeout = time.Minute
		_, err := h.Do(context.Background(), c)
		t.Fatal("not killed: ", err)
	}
	h := commandHost(t)
	golem := exec.Command("/proc/self/exe", "-test.run", "^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
	golem.Env = append(os.Environ(), outliving+"="+h.Running)
	if err := golem.Start(); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		_, err := os.Stat(h.Running + ".begun")
		if group, _ := os.ReadFile(h.Running); err == nil && len(group) > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := golem.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = golem.Wait() // it was killed
	short := h.AwaitCommands(context.Background(), 10*time.Millisecond)
	var outlived *OutlivedError
	if !errors.As(short, &outlived) || outlived.Group == 0 {
		t.Fatalf("a command that still runs: %v", short)
	}
	if err := h.AwaitCommands(context.Background(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(h.Running + ".ended"); err != nil {
		t.Errorf("it was not waited for: %v", err)
	}
	if _, err := os.Stat(h.Running); !os.IsNotExist(err) {
		t.Errorf("its mark is still there: %v", err)
	}
}

func TestADaemonThatInheritedTheMarkHoldsNothingUp(t *testing.T) {
	h := commandHost(t)
	pid := filepath.Join(t.TempDir(), "pid")
	_, err := h.Do(context.Background(), Command{
		Argv: []string{"sh", "-c", "setsid sleep 60 >/dev/null 2>&1 & echo $! >" + pid}, Changes: true, Timeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	daemon, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exec.Command("kill", strings.TrimSpace(string(daemon))).Run() }()
	if err := h.AwaitCommands(context.Background(), time.Second); err != nil {
		t.Error(err)
	}
	if _, err := h.Do(context.Background(), Command{Argv: []string{"true"}, Changes: true, Timeout: time.Minute}); err != nil {
		t.Error(err)
	}
}

func TestAnInterruptLetsAChangingCommandEnd(t *testing.T) {
	h := commandHost(t)
	ended := filepath.Join(t.TempDir(), "ended")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	slow := []string{"sh", "-c", "sleep 0.3; touch " + ended}
	if _, err := h.Do(ctx, Command{Argv: slow, Changes: true, Timeout: time.Minute}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(ended); err != nil {
		t.Error("it did not come to its end")
	}
	if _, err := h.Do(ctx, Command{Argv: []string{"sleep", "60"}, Timeout: time.Minute}); err == nil {
		t.Error("a command that only reads was not stopped")
	}
}
