package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"golem/scrolls"
)

// A model is the journal as a simple program in memory would keep it: the steps that
// hold, in order, and by replaying them all that follows from them.
type model struct {
	j    *Journal
	path string
	run  *Run
	step []*modelStep // of all runs, oldest first
	n    int          // checks made
	last map[string]int
	at   map[string]string // lineage/key → leaf it was moved to since its last step
}

type modelStep struct {
	*Step
	revision int
}

func (m *model) holds(s *modelStep) bool { return s.Status == Done }

// world replays the steps that hold.
func (m *model) world() (records map[string]string, applied []string) {
	records = map[string]string{}
	type row struct {
		key  scrolls.Key
		text string
	}
	var rows []row
	for _, s := range m.step {
		if !m.holds(s) {
			continue
		}
		delete(records, s.Resource)
		if s.After != nil {
			records[s.Resource] = string(s.After.After)
		}
		for _, g := range s.Glyphs {
			rows = slices.DeleteFunc(rows, func(r row) bool { return r.key == g.Key })
			if g.New != nil {
				leaf := g.Leaf
				if at := m.at[fmt.Sprint(s.ID, g.Key)]; at != "" {
					leaf = at
				}
				rows = append(rows, row{g.Key, fmt.Sprintf("%s/%s %s r%d %v %v", s.Lineage, leaf, g.Key, s.revision, g.New.Attrs["content"], g.Changed)})
			}
		}
	}
	for _, r := range rows {
		applied = append(applied, r.text)
	}
	return records, applied
}

// record is the journal's record of a resource now, as the model has it.
func (m *model) record(resource string) *Record {
	var rec *Record
	for _, s := range m.step {
		if s.Resource == resource && m.holds(s) {
			rec = s.After
		}
	}
	return rec
}

func (m *model) busy(resource string) bool {
	return slices.ContainsFunc(m.step, func(s *modelStep) bool { return s.Resource == resource && s.Status == Intended })
}

func (m *model) of(run int64, status ...Status) []*modelStep {
	var steps []*modelStep
	for _, s := range m.step {
		if s.Run == run && slices.Contains(status, s.Status) {
			steps = append(steps, s)
		}
	}
	return steps
}

func (m *model) do(t *rapid.T, fn func(*Tx) error) {
	t.Helper()
	if err := m.j.Do(fn); err != nil {
		t.Fatal(err)
	}
}

// Intend journals one to three steps on files that no other step is at.
func (m *model) Intend(t *rapid.T) {
	var steps []*modelStep
	lineage := rapid.SampledFrom([]string{"web", "db"}).Draw(t, "lineage")
	if m.run != nil {
		lineage = m.run.Lineage
	}
	for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 4), 1, 3, rapid.ID).Draw(t, "files") {
		resource := fmt.Sprintf("/%s/%d", lineage, n)
		if !m.busy(resource) {
			steps = append(steps, m.draw(t, lineage, resource))
		}
	}
	if len(steps) == 0 {
		t.Skip("all are busy")
	}
	m.do(t, func(tx *Tx) error {
		if m.run == nil {
			m.run = &Run{Lineage: lineage, Command: "apply"}
			if err := tx.Begin(m.run); err != nil {
				return err
			}
		}
		for _, s := range steps {
			s.Run = m.run.ID
			if err := tx.Intend([]*Step{s.Step}); err != nil {
				return err
			}
		}
		return nil
	})
	m.step = append(m.step, steps...)
}

func (m *model) draw(t *rapid.T, lineage, resource string) *modelStep {
	before := m.record(resource)
	leaf := rapid.SampledFrom([]string{"one", "two"}).Draw(t, "leaf")
	run := &Run{Lineage: lineage}
	s := install(run, leaf, "file:"+resource, rapid.StringMatching("[a-c]").Draw(t, "content"), before)
	s.Glyphs[0].Changed = rapid.Bool().Draw(t, "changed")
	if before != nil && rapid.Bool().Draw(t, "remove") {
		s.After = nil
		s.Glyphs[0].Op, s.Glyphs[0].New = Remove, nil
	}
	return &modelStep{Step: s}
}

// Done ends the oldest intended step well, perhaps otherwise than intended.
func (m *model) Done(t *rapid.T) {
	s := m.first(t, Intended)
	if s.After != nil && rapid.Bool().Draw(t, "otherwise") {
		after := *s.After
		after.After = json.RawMessage(`{"otherwise":true}`)
		s.After = &after
		s.Glyphs[0].Changed = !s.Glyphs[0].Changed
	}
	m.do(t, func(tx *Tx) error { return tx.Done(s.Step) })
}

// Fail ends the oldest intended step badly.
func (m *model) Fail(t *rapid.T) {
	s := m.first(t, Intended)
	m.do(t, func(tx *Tx) error { return tx.Fail(s.Step, "no") })
}

// Reverse takes back the newest step of the run that is not settled.
func (m *model) Reverse(t *rapid.T) {
	if m.run == nil {
		t.Skip("no run")
	}
	steps := m.of(m.run.ID, Done, Intended)
	if len(steps) == 0 {
		t.Skip("nothing to reverse")
	}
	m.do(t, func(tx *Tx) error { return tx.Reverse(steps[len(steps)-1].Step, "back") })
}

func (m *model) first(t *rapid.T, status Status) *modelStep {
	if m.run == nil {
		t.Skip("no run")
	}
	steps := m.of(m.run.ID, status)
	if len(steps) == 0 {
		t.Skip("no such step")
	}
	return steps[0]
}

// Move says that an applied key stands in another leaf.
func (m *model) Move(t *rapid.T) {
	for i := len(m.step) - 1; i >= 0; i-- {
		s := m.step[i]
		if !m.holds(s) {
			continue
		}
		key := s.Glyphs[0].Key
		if s.Glyphs[0].New == nil {
			t.Skip("the newest is a remove")
		}
		m.do(t, func(tx *Tx) error { return tx.UpdateApplied(s.Lineage, key, "three") })
		m.at[fmt.Sprint(s.ID, key)] = "three"
		return
	}
	t.Skip("nothing is applied")
}

// Commit ends the run with a revision, its intended steps taken back first.
func (m *model) Commit(t *rapid.T) {
	if m.run == nil {
		t.Skip("no run")
	}
	rev := &Revision{Lineage: m.run.Lineage, Run: *m.run, Outcome: "settled"}
	m.do(t, func(tx *Tx) error {
		for _, s := range m.of(m.run.ID, Intended) {
			if err := tx.Fail(s.Step, "never begun"); err != nil {
				return err
			}
		}
		return tx.Commit(rev)
	})
	m.last[rev.Lineage]++
	if rev.Number != m.last[rev.Lineage] {
		t.Fatalf("revision %d of %s, want %d", rev.Number, rev.Lineage, m.last[rev.Lineage])
	}
	for _, s := range m.of(m.run.ID, Done) {
		s.revision = rev.Number
	}
	m.run = nil
}

// Abort makes a transaction that fails at its end.
func (m *model) Abort(t *rapid.T) {
	lineage := "web"
	if m.run != nil {
		lineage = m.run.Lineage
	}
	s := m.draw(t, lineage, "/web/9")
	err := m.j.Do(func(tx *Tx) error {
		run := m.run
		if run == nil {
			run = &Run{Lineage: lineage, Command: "apply"}
			if err := tx.Begin(run); err != nil {
				return err
			}
		}
		s.Run = run.ID
		if err := tx.Intend([]*Step{s.Step}); err != nil {
			return err
		}
		if err := tx.Done(s.Step); err != nil {
			return err
		}
		return os.ErrClosed
	})
	if !errors.Is(err, os.ErrClosed) {
		t.Fatal(err)
	}
}

// Crash opens the journal again as it lies on disk, which is how a killed process
// leaves it, and perhaps closes it well first.
func (m *model) Crash(t *rapid.T) {
	path := m.path
	if rapid.Bool().Draw(t, "killed") {
		path = copyJournal(t, m.path)
	}
	if err := m.j.Close(); err != nil {
		t.Fatal(err)
	}
	j, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	m.j, m.path = j, path
}

type fataler interface {
	Helper()
	Fatal(...any)
}

// copyJournal copies the database and its log into a new directory beside.
func copyJournal(t fataler, path string) string {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(filepath.Dir(path)), "crash")
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, filepath.Base(path))
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if os.IsNotExist(err) {
			continue
		}
		if err == nil {
			err = os.WriteFile(to+suffix, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// looker is what a Journal and a Reader both can.
type looker interface {
	Snapshot() (*Snapshot, error)
	Check() ([]Finding, error)
}

// check compares the journal, and now and then a reader of it, with the model.
func (m *model) check(t *rapid.T) {
	lookers := []looker{m.j}
	if m.n++; m.n%40 == 0 {
		r, err := Read(m.path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		lookers = append(lookers, r)
	}
	records, applied := m.world()
	for _, s := range lookers {
		snap, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		got, gotRecords := []string(nil), map[string]string{}
		for _, a := range snap.Applied {
			got = append(got, fmt.Sprintf("%s/%s %s r%d %v %v", a.Lineage, a.Leaf, a.Key, a.Revision, a.Glyph.Attrs["content"], a.Changed))
		}
		for _, rec := range snap.Records {
			gotRecords[rec.Resource] = string(rec.After)
		}
		if diff := cmp.Diff(applied, got); diff != "" {
			t.Fatalf("applied (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(records, gotRecords); diff != "" {
			t.Fatalf("records (-want +got):\n%s", diff)
		}
		m.checkDead(t, snap.Dead)
		if m.n%5 != 0 {
			continue
		}
		findings, err := s.Check()
		if err != nil || len(findings) > 0 {
			t.Fatal(findings, err)
		}
	}
}

func (m *model) checkDead(t *rapid.T, dead *Dead) {
	if m.run == nil {
		if dead != nil {
			t.Fatalf("dead: %+v", dead)
		}
		return
	}
	var want, got []*Step
	for _, s := range m.of(m.run.ID, Intended, Done) {
		want = append(want, s.Step)
	}
	if dead != nil {
		got = dead.Steps
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("unsettled steps (-want +got):\n%s", diff)
	}
}

func TestJournalIsWhatItsStepsAddUpTo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		base, err := os.MkdirTemp("", "golem-model")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(base)
		path := filepath.Join(base, "home", "planroom.db")
		j, err := Open(path, Options{})
		if err != nil {
			rt.Fatal(err)
		}
		m := &model{j: j, path: path, last: map[string]int{}, at: map[string]string{}}
		defer func() { _ = m.j.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"intend": m.Intend, "done": m.Done, "fail": m.Fail, "reverse": m.Reverse, "move": m.Move,
			"commit": m.Commit, "abort": m.Abort, "crash": m.Crash, "": m.check,
		})
	})
}
