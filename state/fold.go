package state

import (
	"database/sql"
	"encoding/json"
	"fmt"

	"golem/scrolls"
)

// An appliedRow is one row of the applied set.
type appliedRow struct {
	key            scrolls.Key
	lineage        int64
	leaf           string
	glyph          int64
	sort, resource string
	step           int64
	position       int
	revision       int
	changed        bool
}

// put writes a row, unless its key belongs to another lineage.
func (tx *Tx) put(r appliedRow) error {
	n, err := tx.c.change(`INSERT INTO applied (key, lineage, leaf, glyph, sort, resource, step, position, revision, changed)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET leaf = excluded.leaf, glyph = excluded.glyph, sort = excluded.sort,
		resource = excluded.resource, step = excluded.step, position = excluded.position,
		revision = excluded.revision, changed = excluded.changed WHERE lineage = excluded.lineage`,
		r.key, r.lineage, r.leaf, r.glyph, r.sort, r.resource, r.step, r.position, r.revision, r.changed)
	if err != nil {
		return err
	}
	if n == 0 {
		return tx.owned(r.key)
	}
	return nil
}

// refold brings one key's row to what the steps say.
func (tx *Tx) refold(key scrolls.Key) error {
	rows, err := fold(tx.c, key)
	if err != nil {
		return err
	}
	if _, err := tx.c.change("DELETE FROM applied WHERE key = ?", key); err != nil {
		return err
	}
	if r, ok := rows[key]; ok {
		return tx.put(r)
	}
	return nil
}

// fold works out the applied set from the steps alone: for each key the last done
// step that was not reversed, and what was moved since. With a key, only that one.
func fold(c *conn, key scrolls.Key) (map[scrolls.Key]appliedRow, error) {
	rows := map[scrolls.Key]appliedRow{}
	steps, moves, args := foldSteps, foldMoved, []any(nil)
	if key != "" {
		steps, moves, args = foldSteps+" AND g.key = ?", foldMoved+" WHERE key = ?", []any{key}
	}
	err := c.query(func(scan func(...any) error) error {
		var r appliedRow
		var glyph, revision sql.NullInt64
		var amend []byte
		err := scan(&r.key, &r.lineage, &r.leaf, &glyph, &r.sort, &r.resource, &r.step, &r.position, &revision, &r.changed, &amend)
		if err != nil {
			return err
		}
		r.glyph, r.revision = glyph.Int64, int(revision.Int64)
		if err := r.amend(c, amend); err != nil {
			return err
		}
		rows[r.key] = r
		if !glyph.Valid {
			delete(rows, r.key)
		}
		return nil
	}, steps+" ORDER BY g.step, g.position", args...)
	if err != nil {
		return nil, err
	}
	return rows, foldMoves(c, rows, moves+" ORDER BY id", args)
}

const foldSteps = `SELECT g.key, s.lineage, g.leaf, g.new, s.sort, s.resource, g.step, g.position, coalesce(r.number, CAST(p.value AS INTEGER)), g.changed, e.amend
	FROM step_glyphs g JOIN steps s ON s.id = g.step JOIN step_ends e ON e.step = g.step AND e.status = 'done'
	LEFT JOIN revisions r ON r.run = s.run LEFT JOIN meta p ON p.name = '` + prunedMeta + `' || s.run
	WHERE NOT EXISTS (SELECT 1 FROM step_ends x WHERE x.step = g.step AND x.status = 'reversed')`

const foldMoved = "SELECT key, step, lineage, leaf, glyph FROM moves"

func (r *appliedRow) amend(c *conn, body []byte) error {
	if body == nil {
		return nil
	}
	var a amendment
	if err := json.Unmarshal(body, &a); err != nil {
		return c.damaged(fmt.Sprintf("the end of step %d cannot be decoded", r.step), err)
	}
	if r.position < len(a.Changed) {
		r.changed = a.Changed[r.position]
	}
	return nil
}

// foldMoves applies to rows what was moved since each was applied.
func foldMoves(c *conn, rows map[scrolls.Key]appliedRow, moves string, args []any) error {
	return c.query(func(scan func(...any) error) error {
		var m appliedRow
		var glyph sql.NullInt64
		if err := scan(&m.key, &m.step, &m.lineage, &m.leaf, &glyph); err != nil {
			return err
		}
		r, ok := rows[m.key]
		if !ok || r.step != m.step {
			return nil
		}
		r.lineage, r.leaf = m.lineage, m.leaf
		if glyph.Valid {
			r.glyph = glyph.Int64
		}
		rows[m.key] = r
		return nil
	}, moves, args...)
}

// UpdateApplied records that a key now stands in another leaf: what lies outside the
// content id moved, and nothing was done to the host.
func (tx *Tx) UpdateApplied(lineage string, key scrolls.Key, leaf string) error {
	return tx.move(lineage, key, lineage, leaf, nil)
}

// UpdateGlyph is UpdateApplied for a glyph whose stored form is another, though its
// content id is the same.
func (tx *Tx) UpdateGlyph(lineage string, key scrolls.Key, leaf string, g *scrolls.Glyph) error {
	return tx.move(lineage, key, lineage, leaf, g)
}

// MoveKey gives a key to another lineage, with its layers.
func (tx *Tx) MoveKey(key scrolls.Key, from, to, leaf string) error {
	if err := tx.move(from, key, to, leaf, nil); err != nil {
		return err
	}
	was, err := tx.lineage(from)
	if err != nil {
		return err
	}
	is, err := tx.lineage(to)
	if err != nil {
		return err
	}
	var sort, resource string
	var body sql.NullString
	ok, err := tx.c.one([]any{&sort, &resource, &body}, `SELECT r.sort, r.resource, r.body FROM applied a
		JOIN records r ON r.sort = a.sort AND r.resource = a.resource WHERE a.key = ?`, key)
	if err != nil || !ok {
		return err
	}
	var rec recordBody
	if err := json.Unmarshal([]byte(body.String), &rec); err != nil {
		return tx.c.damaged(fmt.Sprintf("the record of %q cannot be decoded", resource), err)
	}
	for i, l := range rec.Layers {
		if l.Key == key && l.Lineage == was {
			rec.Layers[i].Lineage = is
		}
	}
	data, err := encode(rec)
	if err != nil {
		return err
	}
	return tx.setRecord(sort, resource, sql.NullString{String: string(data), Valid: true})
}

func (tx *Tx) move(lineage string, key scrolls.Key, to, leaf string, g *scrolls.Glyph) error {
	was, err1 := tx.lineage(lineage)
	is, err2 := tx.lineage(to)
	glyph, err3 := tx.glyph(g)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return err
		}
	}
	n, err := tx.c.change("UPDATE applied SET lineage = ?, leaf = ?, glyph = coalesce(?, glyph) WHERE key = ? AND lineage = ?",
		is, leaf, glyph, key, was)
	if err == nil && n == 0 {
		err = ErrMissing
	}
	if err == nil {
		_, err = tx.c.exec(`INSERT INTO moves (key, step, lineage, leaf, glyph, at)
			SELECT key, step, ?, ?, ?, ? FROM applied WHERE key = ?`, is, leaf, glyph, tx.now.UnixNano(), key)
	}
	if err != nil {
		return fmt.Errorf("move %s: %w", key, err)
	}
	return nil
}
