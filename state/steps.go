package state

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"golem/scrolls"
)

// An intent is what this process journaled of a step, to see at its end what became
// of it otherwise.
type intent struct {
	run, lineage  int64
	after, ledger sql.NullString
	changed       []bool
}

// Intend journals steps before the host is touched and gives them their IDs. All
// bytes that they name must have been put before.
func (tx *Tx) Intend(steps []*Step) error {
	for _, s := range steps {
		if err := tx.intend(s); err != nil {
			return fmt.Errorf("journal step on %q: %w", s.Resource, err)
		}
	}
	return nil
}

// intend is Intend of one step, but for the words before its error.
func (tx *Tx) intend(s *Step) error {
	if err := checkStep(s); err != nil {
		return err
	}
	if err := tx.needBlobs("the step", stepBodies(s, true)...); err != nil {
		return err
	}
	lineage, err := tx.lineage(s.Lineage)
	if err != nil {
		return err
	}
	before, err1 := tx.encodeRecord(s.Before)
	after, err2 := tx.encodeRecord(s.After)
	ledger, err3 := encodeLedger(s.Ledger)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	s.ID, err = tx.c.exec(`INSERT INTO steps (run, lineage, leaf, sort, resource, before, after, inverse, expect, ledger)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, s.Run, lineage, s.Leaf, s.Sort, s.Resource,
		before, after, null(s.Inverse), null(s.Expect), ledger)
	if err != nil {
		return err
	}
	for i := range s.Glyphs {
		if err := tx.intendGlyph(s, lineage, i); err != nil {
			return err
		}
	}
	s.Status = Intended
	tx.j.intents[s.ID] = intent{s.Run, lineage, after, ledger, changes(s)}
	return nil
}

func (tx *Tx) intendGlyph(s *Step, lineage int64, i int) error {
	g := &s.Glyphs[i]
	if err := tx.checkOwner(g.Key, lineage); err != nil {
		return err
	}
	was, err1 := tx.glyph(g.Old)
	is, err2 := tx.glyph(g.New)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	_, err := tx.c.exec(`INSERT INTO step_glyphs (step, position, op, key, cid, old, new, leaf, changed, reason)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, s.ID, i, g.Op, g.Key, g.CID, was, is, g.Leaf, g.Changed, g.Reason)
	return err
}

// checkOwner refuses a key of another lineage before the host is touched for it.
func (tx *Tx) checkOwner(key scrolls.Key, lineage int64) error {
	if tx.lines == 0 {
		var err error
		if tx.lines, err = tx.c.number("SELECT count(*) FROM lineages"); err != nil {
			return err
		}
	}
	if tx.lines == 1 {
		return nil
	}
	owner, err := tx.c.number("SELECT lineage FROM applied WHERE key = ?", key)
	if err == nil && owner != 0 && owner != lineage {
		err = tx.owned(key)
	}
	return err
}

func (tx *Tx) owned(key scrolls.Key) error {
	var name string
	_, err := tx.c.one([]any{&name}, "SELECT l.name FROM applied a JOIN lineages l ON l.id = a.lineage WHERE a.key = ?", key)
	if err != nil {
		return err
	}
	return &OwnedError{key, name}
}

// checkStep refuses a step that could not be read back, or not be reversed.
func checkStep(s *Step) error {
	for _, r := range []*Record{s.Before, s.After} {
		if r != nil && (r.Sort != s.Sort || r.Resource != s.Resource) {
			return fmt.Errorf("its record is of %s:%s", r.Sort, r.Resource)
		}
	}
	for _, c := range s.Ledger {
		for _, e := range []*Entry{c.Before, c.After} {
			if e != nil && (e.Sort != c.Sort || e.Resource != c.Resource) {
				return fmt.Errorf("a ledger entry of %s:%s is of %s:%s", c.Sort, c.Resource, e.Sort, e.Resource)
			}
		}
	}
	for _, g := range s.Glyphs {
		if (g.Op == Remove) != (g.New == nil) {
			return fmt.Errorf("%s of %s does not fit what is declared after it", g.Op, g.Key)
		}
	}
	return checkJSON("step", stepBodies(s, false)...) // layers are checked when they are spelled
}

// stepBodies returns every body of a step that a reconciler wrote, those of layers if asked.
func stepBodies(s *Step, layers bool) []json.RawMessage {
	bodies := []json.RawMessage{s.Inverse, s.Expect}
	for _, r := range []*Record{s.Before, s.After} {
		if r == nil {
			continue
		}
		bodies = append(bodies, r.Found, r.After)
		for i := 0; layers && i < len(r.Layers); i++ {
			bodies = append(bodies, r.Layers[i].Inverse)
		}
	}
	for _, c := range s.Ledger {
		for _, e := range []*Entry{c.Before, c.After} {
			if e != nil {
				bodies = append(bodies, e.Body)
			}
		}
	}
	return bodies
}

func changes(s *Step) []bool {
	all := make([]bool, len(s.Glyphs))
	for i, g := range s.Glyphs {
		all[i] = g.Changed
	}
	return all
}

// Done journals that a step succeeded: its record is After from now on, its ledger
// changes hold, and its glyphs are applied, or gone. After, Ledger and each glyph's
// Changed may have turned out otherwise than intended.
func (tx *Tx) Done(s *Step) error {
	if err := tx.done(s); err != nil {
		return fmt.Errorf("journal end of step %d: %w", s.ID, err)
	}
	s.Status = Done
	return nil
}

// done is Done, but for the words before its error.
func (tx *Tx) done(s *Step) error {
	in, err := tx.intentOf(s)
	if err != nil {
		return err
	}
	after, err1 := tx.encodeRecord(s.After)
	ledger, err2 := encodeLedger(s.Ledger)
	if err := errors.Join(err1, err2, checkStep(s)); err != nil {
		return err
	}
	amend, err := amended(in, after, ledger, changes(s))
	if err != nil {
		return err
	}
	if amend.Valid {
		if err := tx.needBlobs("the step", stepBodies(s, true)...); err != nil {
			return err
		}
	}
	if err := tx.end(s.ID, Done, "", amend); err != nil {
		return err
	}
	if err := tx.setRecord(s.Sort, s.Resource, after); err != nil {
		return err
	}
	for _, c := range s.Ledger {
		if err := tx.setEntry(c.Sort, c.Resource, c.After); err != nil {
			return err
		}
	}
	for i := range s.Glyphs {
		if err := tx.apply(s, in.lineage, i); err != nil {
			return err
		}
	}
	return nil
}

// intentOf returns what was journaled of a step that has no end yet.
func (tx *Tx) intentOf(s *Step) (intent, error) {
	if in, ok := tx.j.intents[s.ID]; ok {
		delete(tx.j.intents, s.ID)
		return in, nil
	}
	var in intent
	var end sql.NullString
	ok, err := tx.c.one([]any{&in.run, &in.lineage, &in.after, &in.ledger, &end},
		"SELECT run, lineage, after, ledger, (SELECT max(status) FROM step_ends WHERE step = id) FROM steps WHERE id = ?", s.ID)
	if err != nil {
		return in, err
	}
	if !ok || end.Valid {
		return in, fmt.Errorf("it is %s, not intended", cmp.Or(end.String, "not journaled"))
	}
	err = tx.c.query(func(scan func(...any) error) error {
		var changed bool
		err := scan(&changed)
		in.changed = append(in.changed, changed)
		return err
	}, "SELECT changed FROM step_glyphs WHERE step = ? ORDER BY position", s.ID)
	return in, err
}

// amended returns what of a step differs from its intent; NULL if nothing does.
func amended(in intent, after, ledger sql.NullString, changed []bool) (sql.NullString, error) {
	var a amendment
	asJSON := func(s sql.NullString) *json.RawMessage {
		body := json.RawMessage(cmp.Or(s.String, "null"))
		return &body
	}
	if after != in.after {
		a.Record = asJSON(after)
	}
	if ledger != in.ledger {
		a.Ledger = asJSON(ledger)
	}
	if !slices.Equal(changed, in.changed) {
		if len(changed) != len(in.changed) {
			return sql.NullString{}, errors.New("it has other glyphs than intended")
		}
		a.Changed = changed
	}
	if a.Record == nil && a.Ledger == nil && a.Changed == nil {
		return sql.NullString{}, nil
	}
	body, err := encode(a)
	return sql.NullString{String: string(body), Valid: true}, err
}

func (tx *Tx) end(step int64, status Status, detail string, amend sql.NullString) error {
	_, err := tx.c.exec("INSERT INTO step_ends (step, status, at, detail, amend) VALUES (?, ?, ?, ?, ?)",
		step, status, tx.now.UnixNano(), detail, amend)
	return err
}

func (tx *Tx) setRecord(sort, resource string, body sql.NullString) error {
	if !body.Valid {
		_, err := tx.c.change("DELETE FROM records WHERE sort = ? AND resource = ?", sort, resource)
		return err
	}
	_, err := tx.c.exec(`INSERT INTO records (sort, resource, body) VALUES (?, ?, ?)
		ON CONFLICT (sort, resource) DO UPDATE SET body = excluded.body`, sort, resource, body)
	return err
}

func (tx *Tx) setEntry(sort, resource string, e *Entry) error {
	if e == nil {
		_, err := tx.c.change("DELETE FROM ledger WHERE sort = ? AND resource = ?", sort, resource)
		return err
	}
	_, err := tx.c.exec(`INSERT INTO ledger (sort, resource, body) VALUES (?, ?, ?)
		ON CONFLICT (sort, resource) DO UPDATE SET body = excluded.body`, sort, resource, null(e.Body))
	return err
}

// apply brings the applied set to what a done step made of its i-th glyph.
func (tx *Tx) apply(s *Step, lineage int64, i int) error {
	g := &s.Glyphs[i]
	if g.New == nil {
		_, err := tx.c.change("DELETE FROM applied WHERE key = ? AND lineage = ?", g.Key, lineage)
		return err
	}
	glyph, err := tx.glyph(g.New)
	if err != nil {
		return err
	}
	return tx.put(appliedRow{
		key: g.Key, lineage: lineage, leaf: g.Leaf, glyph: glyph.Int64, sort: s.Sort, resource: s.Resource,
		step: s.ID, position: i, changed: g.Changed,
	})
}

// Fail journals that a step was tried and taken back, or never begun: the host is as
// it was before.
func (tx *Tx) Fail(s *Step, detail string) error {
	_, err := tx.intentOf(s)
	if err == nil {
		err = tx.end(s.ID, Failed, detail, sql.NullString{})
	}
	if err != nil {
		return fmt.Errorf("journal end of step %d: %w", s.ID, err)
	}
	s.Status, s.Detail = Failed, detail
	return nil
}

// Owe journals that an intended step could not be taken back, though its run ends: its
// receipt stays, and the next run is to try again. Its record is what it was before.
func (tx *Tx) Owe(s *Step) error {
	_, err := tx.c.change("INSERT INTO owed (step) VALUES (?) ON CONFLICT (step) DO NOTHING", s.ID)
	if err != nil {
		return fmt.Errorf("journal that step %d is owed: %w", s.ID, err)
	}
	return nil
}

// Reverse journals that a step, intended or done, was undone from its inverse: its
// record and ledger are as before it, and its keys as the steps that are left say.
// Steps are reversed newest first.
func (tx *Tx) Reverse(s *Step, detail string) error {
	if err := tx.reverse(s, detail); err != nil {
		return fmt.Errorf("journal reverse of step %d: %w", s.ID, err)
	}
	s.Status, s.Detail = Reversed, detail
	return nil
}

// reverse is Reverse, but for the words before its error.
func (tx *Tx) reverse(s *Step, detail string) error {
	var end sql.NullString
	ok, err := tx.c.one([]any{&end}, "SELECT (SELECT max(status) FROM step_ends WHERE step = id) FROM steps WHERE id = ?", s.ID)
	if err != nil {
		return err
	}
	if !ok || (end.Valid && Status(end.String) != Done) {
		return fmt.Errorf("it is %s", cmp.Or(end.String, "not journaled"))
	}
	before, err := tx.encodeRecord(s.Before)
	if err != nil {
		return err
	}
	delete(tx.j.intents, s.ID)
	if err := tx.end(s.ID, Reversed, detail, sql.NullString{}); err != nil {
		return err
	}
	if _, err := tx.c.change("DELETE FROM owed WHERE step = ?", s.ID); err != nil {
		return err
	}
	if err := tx.setRecord(s.Sort, s.Resource, before); err != nil {
		return err
	}
	for i := len(s.Ledger) - 1; i >= 0; i-- {
		c := s.Ledger[i]
		if err := tx.setEntry(c.Sort, c.Resource, c.Before); err != nil {
			return err
		}
	}
	for _, g := range s.Glyphs {
		if err := tx.refold(g.Key); err != nil {
			return err
		}
	}
	return nil
}
