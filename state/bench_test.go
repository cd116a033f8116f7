package state

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"golem/scrolls"
)

// many are n small steps of one run, each on a file of its own.
func many(n int, run int64) []*Step {
	steps := make([]*Step, n)
	for i := range steps {
		path := fmt.Sprintf("/etc/many/%05d.conf", i)
		key := scrolls.Key("file:" + path)
		g := &scrolls.Glyph{Kind: "file", Key: key, Version: 1, Attrs: scrolls.Attrs{"path": path, "content": fmt.Sprint("n = ", i, "\n"), "mode": "0644"}}
		after := &Record{
			Sort: "path", Resource: path, Found: json.RawMessage(`{"type":"absent","uid":0,"gid":0}`),
			After:  json.RawMessage(`{"type":"file","mode":420,"uid":0,"gid":0,"size":8,"hash":"00"}`),
			Layers: []Layer{{Key: key, Lineage: "web", Glyph: g, Changed: true}},
		}
		steps[i] = &Step{
			Run: run, Lineage: "web", Leaf: "many", Sort: "path", Resource: path, After: after,
			Inverse: json.RawMessage(`{"type":"absent","uid":0,"gid":0}`), Expect: after.After,
			Glyphs: []StepGlyph{{Op: Install, Key: key, CID: "c1d", New: g, Leaf: "many", Changed: true, Reason: "not there"}},
		}
	}
	return steps
}

// enactMany journals a run of n steps and returns how long the two transactions took.
func enactMany(tb testing.TB, j *Journal, n int) time.Duration {
	tb.Helper()
	run := &Run{Lineage: "web", Command: "apply"}
	steps := many(n, 0)
	begin := time.Now()
	err := j.Do(func(tx *Tx) error {
		if err := tx.Begin(run); err != nil {
			return err
		}
		for _, s := range steps {
			s.Run = run.ID
		}
		return tx.Intend(steps)
	})
	if err != nil {
		tb.Fatal(err)
	}
	err = j.Do(func(tx *Tx) error {
		for _, s := range steps {
			if err := tx.Done(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return time.Since(begin)
}

func BenchmarkSteps10000(b *testing.B) {
	for range b.N {
		j, err := Open(filepath.Join(b.TempDir(), "planroom.db"), Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(enactMany(b, j, 10000).Milliseconds()), "ms/run")
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSnapshot10000(b *testing.B) {
	path := filepath.Join(b.TempDir(), "planroom.db")
	j, err := Open(path, Options{})
	if err != nil {
		b.Fatal(err)
	}
	enactMany(b, j, 10000)
	if err := j.Do(func(tx *Tx) error { return tx.EndRun(1, "settled") }); err != nil {
		b.Fatal(err)
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r, err := Read(path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		snap, err := r.Snapshot()
		if err != nil || len(snap.Applied) != 10000 {
			b.Fatal(len(snap.Applied), err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
