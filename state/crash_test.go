package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The tests below run this very test program again as a child that dies, by SIGKILL,
// at one of the points where the journal writes.
const (
	dieEnv  = "GOLEM_TEST_DIE_AT"
	pathEnv = "GOLEM_TEST_JOURNAL"
	// arrangeEnv lets the child arrange a journal that is there, and not write a new one.
	arrangeEnv = "GOLEM_TEST_ARRANGE"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(pathEnv); path != "" {
		child(path, os.Getenv(dieEnv))
	}
	os.Exit(m.Run())
}

func child(path, at string) {
	n, err := strconv.Atoi(at)
	if err != nil {
		os.Exit(9)
	}
	die := func(op string) error {
		if n--; n == 0 {
			fmt.Println("dies at", op)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}
	tell := story
	if os.Getenv(arrangeEnv) != "" {
		tell = arrange
	}
	if err := tell(path, die, func(line string) { fmt.Println(line) }); err != nil {
		fmt.Println(err)
		os.Exit(8)
	}
	os.Exit(0)
}

// large are bytes that lie beside the database, another for each n.
func large(n int) []byte { return bytes.Repeat([]byte{byte(n), 'x'}, inlineMax) }

// story is three runs on one journal, told line by line: a line is said once what it
// says is promised to be on disk.
func story(path string, fault func(string) error, say func(string)) error {
	j, err := Open(path, Options{Fault: fault})
	if err != nil {
		return err
	}
	say("opened")
	var before *Record
	for n := 1; n <= 3; n++ {
		run := &Run{Lineage: "web", Command: "apply"}
		s := install(run, "base", "file:/a", fmt.Sprint("v", n), before)
		err := j.Do(func(tx *Tx) error {
			hash, err := tx.PutBytes(large(n))
			if err != nil {
				return err
			}
			s.Inverse = json.RawMessage(`{"blob":"` + hash + `"}`)
			if err := tx.Begin(run); err != nil {
				return err
			}
			s.Run = run.ID
			return tx.Intend([]*Step{s})
		})
		if err != nil {
			return err
		}
		say(fmt.Sprint("intended ", n))
		err = j.Do(func(tx *Tx) error {
			return errors.Join(tx.Done(s), tx.LeafEnd(run.ID, LeafOutcome{Leaf: "base", Outcome: "settled"}))
		})
		if err != nil {
			return err
		}
		say(fmt.Sprint("done ", n))
		if err := j.Do(func(tx *Tx) error { return tx.Commit(&Revision{Lineage: "web", Run: *run, Outcome: "settled"}) }); err != nil {
			return err
		}
		say(fmt.Sprint("committed ", n))
		before = s.After
	}
	if err := j.Close(); err != nil {
		return err
	}
	say("closed")
	return nil
}

// told counts how often the story got to each word.
func told(out string) map[string]int {
	n := map[string]int{}
	for _, line := range strings.Split(out, "\n") {
		word, _, _ := strings.Cut(line, " ")
		n[word]++
	}
	return n
}

func TestDieAnywhere(t *testing.T) {
	t.Parallel()
	for at := 1; ; at++ {
		if at > 100 {
			t.Fatal("the story does not end")
		}
		path := filepath.Join(t.TempDir(), "golem", "planroom.db")
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), pathEnv+"="+path, fmt.Sprintf("%s=%d", dieEnv, at))
		out, err := cmd.Output()
		var exit *exec.ExitError
		switch {
		case err == nil:
			if at < 15 {
				t.Fatalf("the story has %d points to die at only", at-1)
			}
			return
		case !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL:
			t.Fatalf("point %d: %v\n%s", at, err, out)
		}
		t.Run(fmt.Sprint(at, lastLine(string(out))), func(t *testing.T) { survived(t, path, told(string(out))) })
	}
}

func lastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "dies at")
}

// survived checks that the journal holds all that was promised.
func survived(t *testing.T, path string, told map[string]int) {
	r, err := Read(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if !r.Exists() && told["opened"] > 0 {
		t.Fatal("the journal is gone")
	}
	held(t, r, told)
	j := open(t, path, Options{})
	held(t, j, told)
	snap := snapshot(t, j)
	if snap.Dead != nil {
		for _, s := range snap.Dead.Steps {
			if hash := blobsIn(s.Inverse)[0]; hash == "" {
				t.Error("a step lost its inverse")
			} else if _, err := j.ReadBlob(hash); err != nil {
				t.Error(err)
			}
			do(t, j, func(tx *Tx) error { return tx.Reverse(s, "recovered") })
		}
		commit(t, j, &snap.Dead.Run, "recovered")
	}
	run := &Run{Lineage: "web", Command: "apply"}
	s := install(run, "base", "file:/b", "next", nil)
	begin(t, j, run, s)
	done(t, j, s)
	commit(t, j, run, "settled")
	findings, err := j.Check()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Level == Damage || !strings.Contains(f.What, ".blobs/") {
			t.Errorf("check: %+v", f)
		}
	}
}

func held(t *testing.T, s interface {
	Snapshot() (*Snapshot, error)
	Revisions(string) ([]*Revision, error)
	StepsOf(int64) ([]*Step, error)
	ReadBlob(string) ([]byte, error)
}, told map[string]int,
) {
	t.Helper()
	revs, err := s.Revisions("web")
	if err != nil || len(revs) < told["committed"] {
		t.Errorf("%d revisions, want %d: %v", len(revs), told["committed"], err)
	}
	for n := 1; n <= told["intended"]; n++ {
		steps, err := s.StepsOf(int64(n))
		if err != nil || len(steps) != 1 {
			t.Fatalf("run %d has %d steps: %v", n, len(steps), err)
		}
		if n <= told["done"] && steps[0].Status != Done {
			t.Errorf("step %d is %s", n, steps[0].Status)
		}
		if data, err := s.ReadBlob(hashOf(large(n))); err != nil || !bytes.Equal(data, large(n)) {
			t.Errorf("the bytes of run %d: %v", n, err)
		}
	}
	snap := snapshot(t, s)
	if n := told["done"]; n > 0 && len(snap.Applied) != 1 {
		t.Errorf("applied: %v", keys(snap))
	}
	if told["intended"] > told["committed"] && len(revs) == told["committed"] && snap.Dead == nil {
		t.Error("what was in flight is not known")
	}
}

func TestFailAnywhere(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{syscall.ENOSPC, syscall.EIO, syscall.EROFS} {
		for at := 1; ; at++ {
			path := filepath.Join(t.TempDir(), "golem", "planroom.db")
			n := at
			var lines []string
			err := story(path, func(string) error {
				if n--; n == 0 {
					return cause
				}
				return nil
			}, func(line string) { lines = append(lines, line) })
			if err == nil {
				if at < 15 {
					t.Fatalf("the story has %d points to fail at only", at-1)
				}
				break
			}
			if !errors.Is(err, cause) {
				t.Fatalf("point %d: %v", at, err)
			}
			told := told(strings.Join(lines, "\n"))
			r, err := Read(path, Options{}) // the failed one still holds the lock
			if err != nil {
				t.Fatalf("point %d: %v", at, err)
			}
			held(t, r, told)
			r.Close()
		}
	}
}
