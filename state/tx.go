package state

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"golem/scrolls"
)

// A Tx is what is written to the journal in one commit. It holds only inside the
// function that Do was given.
type Tx struct {
	j       *Journal
	c       *conn
	now     time.Time
	numbers map[string]int64 // of lineages
	glyphs  map[*scrolls.Glyph]int64
	lines   int64 // how many lineages there are; 0: not counted
}

// lineage returns the number of a lineage, and makes its row if there is none.
func (tx *Tx) lineage(name string) (int64, error) {
	if id := tx.numbers[name]; id != 0 {
		return id, nil
	}
	if name == "" {
		return 0, errors.New("journal lineage: it has no name")
	}
	id, err := tx.c.number("SELECT id FROM lineages WHERE name = ?", name)
	if err == nil && id == 0 {
		id, err = tx.c.exec("INSERT INTO lineages (name) VALUES (?)", name)
		tx.lines = 0
	}
	if err != nil {
		return 0, fmt.Errorf("journal lineage %q: %w", name, err)
	}
	tx.numbers[name] = id
	return id, nil
}

// glyph returns the number of a glyph, which is stored once however often it is
// written; NULL for none.
func (tx *Tx) glyph(g *scrolls.Glyph) (sql.NullInt64, error) {
	if g == nil {
		return sql.NullInt64{}, nil
	}
	if id := tx.glyphs[g]; id != 0 {
		return sql.NullInt64{Int64: id, Valid: true}, nil
	}
	id, err := tx.storeGlyph(g)
	if err != nil {
		return sql.NullInt64{}, fmt.Errorf("journal %s: %w", g.Key, err)
	}
	tx.glyphs[g] = id
	return sql.NullInt64{Int64: id, Valid: true}, nil
}

func (tx *Tx) storeGlyph(g *scrolls.Glyph) (int64, error) {
	body, err := g.MarshalStored()
	if err != nil {
		return 0, err
	}
	sum := sha256.Sum256(body)
	digest := hex.EncodeToString(sum[:])
	if id := tx.j.glyphs[digest]; id != 0 {
		return id, nil
	}
	added, err := tx.c.run("INSERT INTO glyphs (digest, body) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING", digest, string(body))
	if err != nil {
		return 0, err
	}
	id := added.id
	if added.rows == 0 {
		if id, err = tx.c.number("SELECT id FROM glyphs WHERE digest = ?", digest); err != nil {
			return 0, err
		}
	}
	tx.j.glyphs[digest] = id
	return id, nil
}

// Begin writes that a run began and gives it its ID. It belongs in the transaction of
// the run's first intents, so that a run that does nothing leaves nothing. It refuses
// while an earlier run is unsettled, except for a run that recovers it.
func (tx *Tx) Begin(run *Run) error {
	if run.Command != "recover" {
		dead, err := tx.c.number(deadRun)
		if err != nil {
			return err
		}
		if dead != 0 {
			return &UnsettledError{dead}
		}
	}
	lineage, err := tx.lineage(run.Lineage)
	if err != nil {
		return err
	}
	if run.Started.IsZero() {
		run.Started = tx.now
	}
	if run.PID == 0 {
		run.PID = tx.j.o.PID
	}
	if run.Machine == "" {
		run.Machine = tx.j.o.Machine
	}
	run.ID, err = tx.c.exec(`INSERT INTO runs
		(lineage, command, started, uid, sudo_user, version, boot_id, machine, pid, source, digest, target)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		lineage, run.Command, run.Started.UnixNano(), run.UID, run.SudoUser, run.Version, run.BootID,
		run.Machine, run.PID, run.Source, run.Digest, run.Target)
	if err != nil {
		return fmt.Errorf("journal run: %w", err)
	}
	return nil
}

// EndRun says that a run ended without a revision.
func (tx *Tx) EndRun(run int64, outcome Outcome) error {
	_, err := tx.c.exec("INSERT INTO run_ends (run, at, outcome) VALUES (?, ?, ?)", run, tx.now.UnixNano(), outcome)
	if err != nil {
		return fmt.Errorf("end run %d: %w", run, err)
	}
	return nil
}

// LeafEnd says how a leaf of a run ended. What it did is settled from then on:
// recovery leaves it alone.
func (tx *Tx) LeafEnd(run int64, o LeafOutcome) error {
	body, err := encode(o)
	if err == nil {
		_, err = tx.c.exec("INSERT INTO leaf_ends (run, leaf, outcome, body) VALUES (?, ?, ?, ?)", run, o.Leaf, o.Outcome, string(body))
	}
	if err != nil {
		return fmt.Errorf("end leaf %s of run %d: %w", o.Leaf, run, err)
	}
	return nil
}

// BindLineage binds a defaulted name to the directory it was first applied from; an
// empty dir frees it.
func (tx *Tx) BindLineage(name, dir string) error {
	id, err := tx.lineage(name)
	if err == nil {
		_, err = tx.c.change("UPDATE lineages SET dir = ? WHERE id = ?", dir, id)
	}
	if err != nil {
		return fmt.Errorf("bind lineage %q: %w", name, err)
	}
	return nil
}

// RenameLineage gives a lineage another name, throughout its history.
func (tx *Tx) RenameLineage(old, name string) error {
	taken, err := tx.c.number("SELECT id FROM lineages WHERE name = ?", name)
	if err != nil {
		return err
	}
	if taken != 0 || name == "" {
		return fmt.Errorf("rename lineage %q: there is a lineage %q already", old, name)
	}
	n, err := tx.c.change("UPDATE lineages SET name = ? WHERE name = ?", name, old)
	if err == nil && n == 0 {
		err = ErrMissing
	}
	if err != nil {
		return fmt.Errorf("rename lineage %q: %w", old, err)
	}
	delete(tx.numbers, old)
	return nil
}

// Keep records something that golem displaced and gives it its ID. Its bytes must
// have been put before.
func (tx *Tx) Keep(k *Kept) error {
	if err := tx.needBlobs("what is kept of "+k.Path, k.Node); err != nil {
		return err
	}
	if k.Blob != "" {
		if err := tx.needBlob(k.Blob); err != nil {
			return fmt.Errorf("keep %s: %w", k.Path, err)
		}
	}
	if k.At.IsZero() {
		k.At = tx.now
	}
	var err error
	k.ID, err = tx.c.exec("INSERT INTO kept (at, run, step, path, node, blob, size, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		k.At.UnixNano(), sql.NullInt64{Int64: k.Run, Valid: k.Run != 0}, sql.NullInt64{Int64: k.Step, Valid: k.Step != 0},
		k.Path, null(k.Node), sql.NullString{String: k.Blob, Valid: k.Blob != ""}, k.Size, k.Reason)
	if err != nil {
		return fmt.Errorf("keep %s: %w", k.Path, err)
	}
	return nil
}

// SetDue records that a trigger or check must still run. It belongs in the
// transaction of the step that calls for it.
func (tx *Tx) SetDue(d Due) error {
	lineage, err := tx.lineage(d.Lineage)
	if err == nil {
		err = checkJSON("due "+d.Name, d.Body)
	}
	if err == nil {
		_, err = tx.c.exec(`INSERT INTO due (lineage, leaf, name, step, body) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (lineage, leaf, name) DO UPDATE SET step = excluded.step, body = excluded.body`,
			lineage, d.Leaf, d.Name, d.Step, null(d.Body))
	}
	if err != nil {
		return fmt.Errorf("make %s due: %w", d.Name, err)
	}
	return nil
}

// ClearDue records that it ran.
func (tx *Tx) ClearDue(d Due) error {
	lineage, err := tx.lineage(d.Lineage)
	if err == nil {
		_, err = tx.c.change("DELETE FROM due WHERE lineage = ? AND leaf = ? AND name = ?", lineage, d.Leaf, d.Name)
	}
	if err != nil {
		return fmt.Errorf("clear %s: %w", d.Name, err)
	}
	return nil
}

// SetPending records that a run waits to be confirmed; nil, that none does.
func (tx *Tx) SetPending(p *Pending) error {
	_, err := tx.c.change("DELETE FROM pending")
	if err == nil && p != nil {
		if err = checkJSON("pending confirmation", p.Body); err == nil {
			_, err = tx.c.exec("INSERT INTO pending (id, run, body) VALUES (1, ?, ?)", p.Run, null(p.Body))
		}
	}
	if err != nil {
		return fmt.Errorf("journal pending confirmation: %w", err)
	}
	return nil
}

// SetMeta records a named value about the journal itself.
func (tx *Tx) SetMeta(name, value string) error { return tx.c.setMeta(name, value) }

// Commit makes a revision of a run and ends it: it gives the revision its ID, number
// and kind, and what the run applied its number.
func (tx *Tx) Commit(rev *Revision) error {
	lineage, err := tx.lineage(rev.Lineage)
	if err != nil {
		return err
	}
	last, err := tx.c.number("SELECT max(number) FROM revisions WHERE lineage = ?", lineage)
	if err != nil {
		return err
	}
	rev.Number, rev.Kind = int(last)+1, "reconcile"
	if last == 0 {
		rev.Kind = "init"
	}
	if rev.At.IsZero() {
		rev.At = tx.now
	}
	if rev.Counts == nil {
		if rev.Counts, err = countOps(tx.c, rev.Run.ID); err != nil {
			return err
		}
	}
	if err := tx.writeRevision(lineage, rev); err != nil {
		return fmt.Errorf("commit %s@%d: %w", rev.Lineage, rev.Number, err)
	}
	_, err = tx.c.change(`UPDATE applied SET revision = ?
		WHERE lineage = ? AND step IN (SELECT id FROM steps WHERE run = ?)`, rev.Number, lineage, rev.Run.ID)
	if err != nil {
		return err
	}
	return tx.EndRun(rev.Run.ID, rev.Outcome)
}

func (tx *Tx) writeRevision(lineage int64, rev *Revision) error {
	declared := make([]declaredBody, len(rev.Declared))
	for i, d := range rev.Declared {
		declared[i] = declaredBody{Leaf: d.Leaf, Policy: d.Policy}
		var err1, err2 error
		declared[i].Glyphs, err1 = tx.glyphIDs(d.Glyphs)
		declared[i].Checks, err2 = tx.glyphIDs(d.Checks)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
	}
	leaves, err1 := encode(rev.Leaves)
	counts, err2 := encode(rev.Counts)
	body, err3 := encode(declared)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	var err error
	rev.ID, err = tx.c.exec(`INSERT INTO revisions (lineage, number, kind, run, at, outcome, leaves, counts, declared)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, lineage, rev.Number, rev.Kind, rev.Run.ID, rev.At.UnixNano(), rev.Outcome,
		string(leaves), string(counts), string(body))
	return err
}

// glyphIDs returns the numbers of glyphs, in their order.
func (tx *Tx) glyphIDs(glyphs []*scrolls.Glyph) ([]int64, error) {
	ids := make([]int64, len(glyphs))
	for i, g := range glyphs {
		id, err := tx.glyph(g)
		if err != nil {
			return nil, err
		}
		ids[i] = id.Int64
	}
	return ids, nil
}

// countOps counts the glyphs of a run's done steps by op.
func countOps(c *conn, run int64) (map[Op]int, error) {
	counts := map[Op]int{}
	err := c.query(func(scan func(...any) error) error {
		var op Op
		var n int
		if err := scan(&op, &n); err != nil {
			return err
		}
		counts[op] = n
		return nil
	}, `SELECT g.op, count(*) FROM steps s JOIN step_glyphs g ON g.step = s.id WHERE s.run = ?
		AND EXISTS (SELECT 1 FROM step_ends e WHERE e.step = s.id AND e.status = 'done')
		AND NOT EXISTS (SELECT 1 FROM step_ends e WHERE e.step = s.id AND e.status = 'reversed')
		GROUP BY g.op`, run)
	return counts, err
}
