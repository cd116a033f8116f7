package state

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golem/scrolls"
)

type scanner = func(...any) error

// deadRun finds the newest run that began and did not end. A recovery that did no
// step of its own leaves nothing to recover.
const deadRun = `SELECT r.id FROM runs r WHERE NOT EXISTS (SELECT 1 FROM run_ends e WHERE e.run = r.id)
	AND (r.command <> 'recover' OR EXISTS (SELECT 1 FROM steps s WHERE s.run = r.id))
	ORDER BY r.id DESC LIMIT 1`

const runColumns = `r.id, l.name, r.command, r.started, r.uid, r.sudo_user, r.version, r.boot_id, r.machine, r.pid, r.source, r.digest, r.target`

// runFields are where runColumns go; the time goes through started.
func runFields(r *Run, started *int64) []any {
	return []any{&r.ID, &r.Lineage, &r.Command, started, &r.UID, &r.SudoUser, &r.Version, &r.BootID, &r.Machine, &r.PID, &r.Source, &r.Digest, &r.Target}
}

func moment(nanos int64) time.Time { return time.Unix(0, nanos) }

// Revisions lists a lineage's revisions, or with an empty name all, newest last,
// without what they declare.
func (s *store) Revisions(lineage string) (all []*Revision, err error) {
	err = s.with(func(c *conn) error {
		all = nil
		if c == nil {
			return nil
		}
		return c.query(func(scan scanner) error {
			rev, err := scanRevision(c, scan)
			all = append(all, rev)
			return err
		}, revisionQuery+" WHERE (? = '' OR rl.name = ?) ORDER BY v.id", lineage, lineage)
	})
	return all, err
}

const revisionQuery = `SELECT v.id, rl.name, v.number, v.kind, v.at, v.outcome, v.leaves, v.counts, ` + runColumns + `
	FROM revisions v JOIN lineages rl ON rl.id = v.lineage JOIN runs r ON r.id = v.run JOIN lineages l ON l.id = r.lineage`

func scanRevision(c *conn, scan scanner) (*Revision, error) {
	rev := &Revision{}
	var at, started int64
	var leaves, counts []byte
	fields := []any{&rev.ID, &rev.Lineage, &rev.Number, &rev.Kind, &at, &rev.Outcome, &leaves, &counts}
	if err := scan(append(fields, runFields(&rev.Run, &started)...)...); err != nil {
		return nil, err
	}
	rev.At, rev.Run.Started = moment(at), moment(started)
	for _, p := range []struct {
		from []byte
		to   any
	}{{leaves, &rev.Leaves}, {counts, &rev.Counts}} {
		if err := json.Unmarshal(p.from, p.to); err != nil {
			return nil, c.damaged(fmt.Sprintf("revision %s@%d cannot be decoded", rev.Lineage, rev.Number), err)
		}
	}
	return rev, nil
}

// Revision returns one revision with all that it declares; ErrMissing if there is
// none of that number.
func (s *store) Revision(lineage string, number int) (rev *Revision, err error) {
	err = s.with(func(c *conn) error {
		rev = nil
		if c == nil {
			return ErrMissing
		}
		err := c.query(func(scan scanner) (err error) {
			rev, err = scanRevision(c, scan)
			return err
		}, revisionQuery+" WHERE rl.name = ? AND v.number = ?", lineage, number)
		if err != nil {
			return err
		}
		if rev == nil {
			return ErrMissing
		}
		rev.Declared, err = readDeclared(c, rev.ID)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read revision %s@%d: %w", lineage, number, err)
	}
	return rev, nil
}

// readDeclared reads what a revision declares, leaf by leaf.
func readDeclared(c *conn, revision int64) ([]Declared, error) {
	var text []byte
	if _, err := c.one([]any{&text}, "SELECT declared FROM revisions WHERE id = ?", revision); err != nil {
		return nil, err
	}
	var bodies []declaredBody
	if err := json.Unmarshal(text, &bodies); err != nil {
		return nil, c.damaged("what it declares cannot be decoded", err)
	}
	d, err := newDecoder(c)
	if err != nil {
		return nil, err
	}
	declared := make([]Declared, len(bodies))
	for i, b := range bodies {
		declared[i].Leaf, declared[i].Policy = b.Leaf, b.Policy
		var err1, err2 error
		declared[i].Glyphs, err1 = d.list(b.Glyphs)
		declared[i].Checks, err2 = d.list(b.Checks)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
	}
	return declared, nil
}

func (d *decoder) list(ids []int64) ([]*scrolls.Glyph, error) {
	var all []*scrolls.Glyph
	for _, id := range ids {
		g, err := d.glyph(id)
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

// Schema is the version of the journal's own layout; 0 where there is none.
func (s *store) Schema() (n int, err error) {
	err = s.with(func(c *conn) error {
		if c == nil {
			return nil
		}
		n, err = version(c, len(migrations))
		return err
	})
	return n, err
}

// StepsOf returns every step of a run, oldest first.
func (s *store) StepsOf(run int64) (steps []*Step, err error) {
	err = s.with(func(c *conn) error {
		steps = nil
		if c == nil {
			return nil
		}
		d, err := newDecoder(c)
		if err == nil {
			steps, err = d.steps("s.run = ?", run)
		}
		return err
	})
	return steps, err
}

// steps reads the steps that a condition chooses, oldest first.
func (d *decoder) steps(where string, args ...any) ([]*Step, error) {
	var steps []*Step
	byID := map[int64]*Step{}
	ends := map[int64][]byte{}
	err := d.c.query(func(scan scanner) error {
		s, amend, err := d.step(scan)
		if err != nil {
			return err
		}
		steps = append(steps, s)
		byID[s.ID], ends[s.ID] = s, amend
		return nil
	}, `SELECT s.id, s.run, s.lineage, s.leaf, s.sort, s.resource, s.before, s.after, s.inverse, s.expect, s.ledger,
		coalesce(x.status, e.status, 'intended'), coalesce(x.detail, e.detail, ''), e.amend
		FROM steps s LEFT JOIN step_ends e ON e.step = s.id AND e.status <> 'reversed'
		LEFT JOIN step_ends x ON x.step = s.id AND x.status = 'reversed' WHERE `+where+` ORDER BY s.id`, args...)
	if err != nil {
		return nil, err
	}
	err = d.c.query(func(scan scanner) error {
		var id, position int64
		var old, new sql.NullInt64
		var g StepGlyph
		err := scan(&id, &position, &g.Op, &g.Key, &g.CID, &old, &new, &g.Leaf, &g.Changed, &g.Reason)
		if err != nil {
			return err
		}
		if g.Old, err = d.glyph(old.Int64); err != nil {
			return err
		}
		if g.New, err = d.glyph(new.Int64); err != nil {
			return err
		}
		if byID[id] == nil { // its pages say two things
			return d.c.damaged(fmt.Sprintf("step %d cannot be read", id), nil)
		}
		byID[id].Glyphs = append(byID[id].Glyphs, g)
		return nil
	}, `SELECT g.step, g.position, g.op, g.key, g.cid, g.old, g.new, g.leaf, g.changed, g.reason
		FROM steps s JOIN step_glyphs g ON g.step = s.id WHERE `+where+` ORDER BY g.step, g.position`, args...)
	if err != nil {
		return nil, err
	}
	for _, s := range steps {
		if err := d.amend(s, ends[s.ID]); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

func (d *decoder) step(scan scanner) (*Step, []byte, error) {
	s := &Step{}
	var lineage int64
	var before, after, ledger, amend []byte
	var inverse, expect sql.NullString
	err := scan(&s.ID, &s.Run, &lineage, &s.Leaf, &s.Sort, &s.Resource, &before, &after, &inverse, &expect, &ledger,
		&s.Status, &s.Detail, &amend)
	if err != nil {
		return nil, nil, err
	}
	s.Inverse, s.Expect = raw(inverse), raw(expect)
	if s.Lineage, err = d.lineage(lineage); err != nil {
		return nil, nil, err
	}
	if s.Before, err = d.record(s.Sort, s.Resource, before); err != nil {
		return nil, nil, err
	}
	if s.After, err = d.record(s.Sort, s.Resource, after); err != nil {
		return nil, nil, err
	}
	s.Ledger, err = d.ledger(ledger)
	return s, amend, err
}

// amend brings a step from what it intended to what became of it.
func (d *decoder) amend(s *Step, body []byte) error {
	if body == nil {
		return nil
	}
	var a struct { // a pointer would not tell null from nothing
		Record  json.RawMessage `json:"record"`
		Ledger  json.RawMessage `json:"ledger"`
		Changed []bool          `json:"changed"`
	}
	err := json.Unmarshal(body, &a)
	if err != nil || (a.Changed != nil && len(a.Changed) != len(s.Glyphs)) {
		return d.c.damaged(fmt.Sprintf("the end of step %d cannot be decoded", s.ID), err)
	}
	if a.Record != nil {
		if s.After, err = d.record(s.Sort, s.Resource, orNil(a.Record)); err != nil {
			return err
		}
	}
	if a.Ledger != nil {
		if s.Ledger, err = d.ledger(orNil(a.Ledger)); err != nil {
			return err
		}
	}
	for i, changed := range a.Changed {
		s.Glyphs[i].Changed = changed
	}
	return nil
}

func orNil(body json.RawMessage) []byte {
	if string(body) == "null" {
		return nil
	}
	return body
}

// KeptList lists what golem displaced and kept, oldest first.
func (s *store) KeptList() ([]*Kept, error) { return s.kept("") }

// KeptByID returns one of them; ErrMissing if there is none of that number.
func (s *store) KeptByID(id int64) (*Kept, error) {
	list, err := s.kept(" WHERE id = ?", id)
	if err == nil && len(list) == 0 {
		err = ErrMissing
	}
	if err != nil {
		return nil, fmt.Errorf("read kept %d: %w", id, err)
	}
	return list[0], nil
}

func (s *store) kept(where string, args ...any) (list []*Kept, err error) {
	err = s.with(func(c *conn) error {
		list = nil
		if c == nil {
			return nil
		}
		return c.query(func(scan scanner) error {
			k := &Kept{}
			var at int64
			var run, step sql.NullInt64
			var node, blob sql.NullString
			if err := scan(&k.ID, &at, &run, &step, &k.Path, &node, &blob, &k.Size, &k.Reason); err != nil {
				return err
			}
			k.At, k.Run, k.Step, k.Node, k.Blob = moment(at), run.Int64, step.Int64, raw(node), blob.String
			list = append(list, k)
			return nil
		}, "SELECT id, at, run, step, path, node, blob, size, reason FROM kept"+where+" ORDER BY id", args...)
	})
	return list, err
}
