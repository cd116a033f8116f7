package state

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

// later is a moment after everything that a test has done.
func later() time.Time { return time.Now().Add(time.Hour) }

// told3 is a journal of three runs, each over a large file's bytes.
func told3(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "golem", "planroom.db")
	if err := story(path, nil, func(string) {}); err != nil {
		t.Fatal(err)
	}
	return path
}

// inForceOf is all of a snapshot that pruning must leave as it is.
func inForceOf(s *Snapshot) []any {
	lines := map[string]Lineage{}
	for name, l := range s.Lineages {
		lines[name] = *l
	}
	return []any{s.Journal, lines, s.Applied, s.Records, s.Ledger, s.Due, s.Unknown}
}

func blobFiles(t *testing.T, path string) []string {
	t.Helper()
	files, err := filepath.Glob(globbed(path+".blobs") + "/??/*")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestPruneDropsWhatNothingNeeds(t *testing.T) {
	path := told3(t)
	j := open(t, path, Options{})
	was := inForceOf(snapshot(t, j))
	did, err := j.Prune(later())
	if err != nil {
		t.Fatal(err)
	}
	if did.Revisions != 2 || did.Steps != 2 || did.Blobs != 2 || did.After >= did.Before {
		t.Errorf("it dropped %+v", *did)
	}
	if is := inForceOf(snapshot(t, j)); !reflect.DeepEqual(was, is) {
		t.Errorf("what is in force was %+v, and is %+v", was, is)
	}
	if n := len(blobFiles(t, path)); n != 1 {
		t.Errorf("%d large files are left", n)
	}
	all, err := j.Revisions("")
	if err != nil || len(all) != 1 || all[0].Number != 3 {
		t.Errorf("revisions left: %v, %v", all, err)
	}
	sound(t, j)
	// The next run goes on from there.
	run := &Run{Lineage: "web", Command: "apply"}
	s := install(run, "base", "file:/b", "b", nil)
	begin(t, j, run, s)
	done(t, j, s)
	if rev := commit(t, j, run, "settled"); rev.Number != 4 || rev.Kind != "reconcile" {
		t.Errorf("the next revision is %d, %s", rev.Number, rev.Kind)
	}
	if again, err := j.Prune(time.Unix(0, 0)); err != nil || again.Revisions+again.Steps+again.Blobs != 0 {
		t.Errorf("nothing is that old, and it dropped %+v, %v", again, err)
	}
	sound(t, j)
	if _, err := os.Stat(path + ".new"); err == nil {
		t.Error("the copy is left")
	}
}

// What is in force since a revision that goes still says since when, is reversed to what
// was before, and its step is still what the log adds up to.
func TestPruneKeepsTheStepsOfWhatIsInForce(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "planroom.db"), Options{})
	old := &Run{Lineage: "web", Command: "apply"}
	a, b := install(old, "base", "file:/a", "a", nil), install(old, "base", "file:/gone", "x", nil)
	begin(t, j, old, a, b)
	done(t, j, a, b)
	commit(t, j, old, "settled")
	for n := range 2 {
		run := &Run{Lineage: "web", Command: "apply"}
		s := install(run, "base", "file:/b", fmt.Sprint(n), nil)
		steps := []*Step{s}
		if n == 0 { // takes away what was brought beside the one that stays
			gone := &Step{Lineage: "web", Leaf: "base", Sort: "path", Resource: b.Resource, Before: b.After, Glyphs: []StepGlyph{{
				Op: Remove, Key: "file:/gone", Old: b.Glyphs[0].New, Leaf: "base", Changed: true,
			}}}
			steps = append(steps, gone)
		}
		begin(t, j, run, steps...)
		done(t, j, steps...)
		commit(t, j, run, "settled")
	}
	was := snapshot(t, j)
	for range 2 {
		if _, err := j.Prune(later()); err != nil {
			t.Fatal(err)
		}
		if is := snapshot(t, j); !reflect.DeepEqual(inForceOf(was), inForceOf(is)) {
			t.Fatalf("what is in force was %+v, and is %+v", was.Applied, is.Applied)
		}
		sound(t, j)
	}
	for _, a := range was.Applied {
		if a.Key == "file:/a" && a.Revision != 1 {
			t.Errorf("%s is in force since revision %d", a.Key, a.Revision)
		}
	}
	run := &Run{Lineage: "web", Command: "apply"}
	next := install(run, "base", "file:/a", "other", a.After)
	begin(t, j, run, next)
	done(t, j, next)
	do(t, j, func(tx *Tx) error { return tx.Reverse(next, "no") })
	for _, is := range snapshot(t, j).Applied {
		if is.Key == "file:/a" && (is.Step != a.ID || is.Revision != 1) {
			t.Errorf("after a reverse it is of step %d and revision %d", is.Step, is.Revision)
		}
	}
	sound(t, j)
}

// A revision that was the newest at the moment stays, and all after it.
func TestPruneKeepsWhatWasInForceAtTheMoment(t *testing.T) {
	now := time.Unix(1000, 0)
	j := open(t, filepath.Join(t.TempDir(), "planroom.db"), Options{Now: func() time.Time { return now }})
	for n := 1; n <= 5; n++ {
		now = time.Unix(int64(n)*1000, 0)
		run := &Run{Lineage: "web", Command: "apply"}
		s := install(run, "base", fmt.Sprint("file:/", n), "x", nil)
		begin(t, j, run, s)
		done(t, j, s)
		commit(t, j, run, "settled")
	}
	if _, err := j.Prune(time.Unix(3500, 0)); err != nil {
		t.Fatal(err)
	}
	all, err := j.Revisions("web")
	if err != nil {
		t.Fatal(err)
	}
	var numbers []int
	for _, rev := range all {
		numbers = append(numbers, rev.Number)
	}
	if !reflect.DeepEqual(numbers, []int{3, 4, 5}) {
		t.Errorf("left are %v", numbers)
	}
	sound(t, j)
}

// arrange arranges a journal that is there: each of the ways once.
func arrange(path string, fault func(string) error, say func(string)) error {
	// A test beside this one that forks holds every lock for an instant.
	const patience = 10 * time.Second
	j, err := Open(path, Options{Fault: fault, LockTimeout: patience})
	if err != nil {
		return err
	}
	say("opened")
	for _, way := range []struct {
		name string
		do   func() error
	}{
		{"pruned", func() error { _, err := j.Prune(later()); return err }},
		{"renamed", func() error { return j.Do(func(tx *Tx) error { return tx.RenameLineage("web", "net") }) }},
		{"moved", func() error { return j.Do(func(tx *Tx) error { return tx.MoveKey("file:/a", "net", "other", "base") }) }},
	} {
		if err := way.do(); err != nil {
			return err
		}
		say(way.name)
	}
	if err := j.Close(); err != nil {
		return err
	}
	o := Options{Fault: fault, Machine: "m2", Root: "/", Rebind: true, LockTimeout: patience}
	if j, err = Open(path, o); err != nil {
		return err
	}
	say("rebound")
	return j.Close()
}

// arrangedOr fails unless each of the ways was done whole or not at all, and those that
// were said to be done are.
func arrangedOr(t *testing.T, path, at string, said map[string]int) {
	t.Helper()
	j := open(t, path, Options{LockTimeout: 10 * time.Second})
	defer j.Close()
	snap := snapshot(t, j)
	if snap.Dead != nil || len(snap.Applied) != 1 || snap.Applied[0].Key != "file:/a" || len(snap.Records) != 1 {
		t.Fatalf("%s: in force is %+v", at, snap.Applied)
	}
	lineage := snap.Applied[0].Lineage
	order := map[string]int{"web": 0, "net": 1, "other": 2}
	if order[lineage] < said["renamed"]+said["moved"] {
		t.Fatalf("%s: it is of %s", at, lineage)
	}
	for _, r := range snap.Records {
		if len(r.Layers) != 1 || r.Layers[0].Lineage != lineage {
			t.Fatalf("%s: its layer is %+v, it is of %s", at, r.Layers, lineage)
		}
	}
	all, err := j.Revisions("")
	if err != nil || len(all) != 3 && len(all) != 1 || said["pruned"] > 0 && len(all) != 1 {
		t.Fatalf("%s: %d revisions, %v", at, len(all), err)
	}
	if machine, err := j.Meta("machine"); err != nil || said["rebound"] > 0 && machine != "m2" {
		t.Fatalf("%s: bound to %q, %v", at, machine, err)
	}
	undamaged(t, j, at)
	for _, suffix := range []string{".new", ".new-wal", ".new-shm", ".new-journal"} {
		if _, err := os.Stat(path + suffix); err == nil {
			t.Fatalf("%s: %s is left", at, suffix)
		}
	}
	if _, err := j.Prune(later()); err != nil {
		t.Fatalf("%s: prune again: %v", at, err)
	}
	if n := len(blobFiles(t, path)); n != 1 {
		t.Fatalf("%s: after another prune %d large files are left", at, n)
	}
	sound(t, j)
}

// undamaged fails on a journal that has more wrong with it than bytes too many.
func undamaged(t *testing.T, j *Journal, at string) {
	t.Helper()
	findings, err := j.Check()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Level == Damage {
			t.Fatalf("%s: %s: %s", at, f.What, f.Detail)
		}
	}
}

func TestDieWhileArranging(t *testing.T) {
	t.Parallel()
	for at := 1; ; at++ {
		path := told3(t)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), pathEnv+"="+path, arrangeEnv+"=yes", fmt.Sprintf("%s=%d", dieEnv, at))
		out, err := cmd.Output()
		exit := new(exec.ExitError)
		if err == nil {
			if at < 12 {
				t.Fatalf("there are %d points to die at only", at-1)
			}
			return
		}
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL || at > 100 {
			t.Fatalf("point %d: %v\n%s", at, err, out)
		}
		arrangedOr(t, path, fmt.Sprintf("dead at point %d, after %q", at, out), told(string(out)))
	}
}

// A write that fails leaves the one journal or the other, and it goes on to be used.
func TestArrangingFailsAnywhere(t *testing.T) {
	t.Parallel()
	no := errors.New("no")
	for at := 1; ; at++ {
		path := told3(t)
		n, where := 0, ""
		said := map[string]int{}
		err := arrange(path, func(op string) error {
			if n++; n == at {
				where = op
				return no
			}
			return nil
		}, func(line string) { said[strings.Fields(line)[0]]++ })
		if where == "" {
			if err != nil || at < 12 {
				t.Fatalf("%v after %d points", err, at)
			}
			return
		}
		if !errors.Is(err, no) {
			t.Fatalf("the error at %s is told as %v", where, err)
		}
		// Whoever failed there holds the lock no more once it is gone.
		arrangedAfterFailure(t, path, where, said)
	}
}

// arrangedAfterFailure is arrangedOr where the journal may still be open in this process.
func arrangedAfterFailure(t *testing.T, path, where string, said map[string]int) {
	t.Helper()
	whole, err := os.MkdirTemp(t.TempDir(), "copy")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", filepath.Dir(path)+"/.", whole).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	arrangedOr(t, filepath.Join(whole, filepath.Base(path)), "failed at "+where, said)
}
