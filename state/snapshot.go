package state

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Snapshot reads everything that a plan needs, as it stood at one instant.
func (s *store) Snapshot() (snap *Snapshot, err error) {
	err = s.with(func(c *conn) error {
		snap = &Snapshot{Lineages: map[string]*Lineage{}, Records: map[string]*Record{}, Ledger: map[string]*Entry{}}
		if c == nil {
			return nil
		}
		d, err := newDecoder(c)
		if err != nil {
			return err
		}
		if snap.Journal, err = c.meta("id"); err != nil {
			return err
		}
		for _, read := range []func(*Snapshot) error{d.readLineages, s.readApplied(d), d.readRecords, d.readLedger, d.readDue, d.readPending, d.readDead, d.readOwed} {
			if err := read(snap); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return snap, nil
}

func (d *decoder) readLineages(snap *Snapshot) error {
	return d.c.query(func(scan scanner) error {
		l := &Lineage{}
		if err := scan(&l.Name, &l.Dir, &l.Revision); err != nil {
			return err
		}
		snap.Lineages[l.Name] = l
		return nil
	}, "SELECT name, dir, (SELECT coalesce(max(number), 0) FROM revisions v WHERE v.lineage = l.id) FROM lineages l")
}

// readApplied reads the applied set; a key of a kind that is not known is only named.
func (s *store) readApplied(d *decoder) func(*Snapshot) error {
	return func(snap *Snapshot) error {
		return d.c.query(func(scan scanner) error {
			var a Applied
			var lineage, glyph int64
			var body sql.RawBytes
			err := scan(&a.Key, &lineage, &a.Leaf, &glyph, &a.Sort, &a.Resource, &a.Step, &a.Position, &a.Revision, &a.Changed, &body)
			if err != nil {
				return err
			}
			if a.Lineage, err = d.lineage(lineage); err != nil {
				return err
			}
			kind, _, _ := strings.Cut(string(a.Key), ":")
			if len(s.o.KnownKinds) > 0 && !slices.Contains(s.o.KnownKinds, kind) {
				snap.Unknown = append(snap.Unknown, a.Key)
				return nil
			}
			if a.Glyph, err = d.keep(glyph, body); err != nil {
				return err
			}
			snap.Applied = append(snap.Applied, a)
			return nil
		}, `SELECT a.key, a.lineage, a.leaf, a.glyph, a.sort, a.resource, a.step, a.position, a.revision, a.changed, g.body
			FROM applied a LEFT JOIN glyphs g ON g.id = a.glyph ORDER BY a.step, a.position`)
	}
}

func (d *decoder) readRecords(snap *Snapshot) error {
	return d.c.query(func(scan scanner) error {
		var sort, resource string
		var body []byte
		if err := scan(&sort, &resource, &body); err != nil {
			return err
		}
		r, err := d.record(sort, resource, body)
		snap.Records[sort+":"+resource] = r
		return err
	}, "SELECT sort, resource, body FROM records")
}

func (d *decoder) readLedger(snap *Snapshot) error {
	return d.c.query(func(scan scanner) error {
		e := &Entry{}
		var body sql.NullString
		if err := scan(&e.Sort, &e.Resource, &body); err != nil {
			return err
		}
		e.Body = raw(body)
		snap.Ledger[e.Sort+":"+e.Resource] = e
		return nil
	}, "SELECT sort, resource, body FROM ledger")
}

func (d *decoder) readDue(snap *Snapshot) error {
	return d.c.query(func(scan scanner) error {
		var due Due
		var lineage int64
		var step sql.NullInt64
		var body sql.NullString
		err := scan(&lineage, &due.Leaf, &due.Name, &step, &body)
		if err != nil {
			return err
		}
		due.Step, due.Body = step.Int64, raw(body)
		due.Lineage, err = d.lineage(lineage)
		snap.Due = append(snap.Due, due)
		return err
	}, "SELECT lineage, leaf, name, step, body FROM due ORDER BY step, lineage, leaf, name")
}

func (d *decoder) readPending(snap *Snapshot) error {
	var p Pending
	var body sql.NullString
	ok, err := d.c.one([]any{&p.Run, &body}, "SELECT run, body FROM pending")
	if ok {
		p.Body = raw(body)
		snap.Pending = &p
	}
	return err
}

func (d *decoder) readOwed(snap *Snapshot) (err error) {
	n, err := d.c.number("SELECT count(*) FROM owed")
	if err == nil && n > 0 {
		snap.Owed, err = d.steps("s.id IN (SELECT step FROM owed)")
	}
	return err
}

// readDead reads the newest run that did not end.
func (d *decoder) readDead(snap *Snapshot) error {
	id, err := d.c.number(deadRun)
	if err != nil || id == 0 {
		return err
	}
	dead := &Dead{}
	var started int64
	_, err = d.c.one(runFields(&dead.Run, &started), "SELECT "+runColumns+" FROM runs r JOIN lineages l ON l.id = r.lineage WHERE r.id = ?", id)
	if err != nil {
		return err
	}
	dead.Run.Started = moment(started)
	ended := map[string]bool{}
	err = d.c.query(func(scan scanner) error {
		var body []byte
		if err := scan(&body); err != nil {
			return err
		}
		var o LeafOutcome
		if err := json.Unmarshal(body, &o); err != nil {
			return d.c.damaged(fmt.Sprintf("a leaf's end in run %d cannot be decoded", id), err)
		}
		ended[o.Leaf] = true
		dead.Leaves = append(dead.Leaves, o)
		return nil
	}, "SELECT body FROM leaf_ends WHERE run = ? ORDER BY id", id)
	if err != nil {
		return err
	}
	steps, err := d.steps("s.run = ?", id)
	for _, s := range steps {
		switch {
		case s.Status == Intended, s.Status == Done && !ended[s.Leaf]:
			dead.Steps = append(dead.Steps, s)
		case s.Status == Done:
			dead.Settled = append(dead.Settled, s)
		}
	}
	snap.Dead = dead
	return err
}
