package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// drop takes from the copy what goes. It alone may: its triggers are put back.
func (p *pruner) drop() error {
	if err := p.c.script("PRAGMA foreign_keys = 0; BEGIN; " + strings.Join(appendOnlyTriggers("DROP TRIGGER %s_no_%s;"), " ")); err != nil {
		return err
	}
	if err := p.dropHistory(); err != nil {
		return err
	}
	if err := p.dropUnreferenced(); err != nil {
		return err
	}
	return p.c.script(appendOnly() + "COMMIT")
}

// dropHistory takes away the rows of the runs that go. Of a step that stays for what is in
// force only that stays: its inverses were for going back to before it.
func (p *pruner) dropHistory() error {
	err := p.c.script("CREATE TEMP TABLE gone (run INTEGER PRIMARY KEY); CREATE TEMP TABLE stays (step INTEGER PRIMARY KEY)")
	if err != nil {
		return err
	}
	for run := range p.runs {
		if _, err := p.c.exec("INSERT INTO gone (run) VALUES (?)", run); err != nil {
			return err
		}
	}
	for step := range p.keep {
		if _, err := p.c.exec("INSERT INTO stays (step) VALUES (?)", step); err != nil {
			return err
		}
	}
	for run, number := range p.numbers {
		needed, err := p.needed(run)
		if err == nil && needed {
			err = p.c.setMeta(fmt.Sprint(prunedMeta, run), fmt.Sprint(number))
		}
		if err != nil {
			return err
		}
	}
	for _, statement := range dropStatements {
		n, err := p.c.change(statement.sql)
		if err != nil {
			return err
		}
		switch statement.counts {
		case "revisions":
			p.did.Revisions = int(n)
		case "steps":
			p.did.Steps = int(n)
		}
	}
	return nil
}

const (
	slimSteps  = "(SELECT id FROM steps WHERE run IN (SELECT run FROM gone))"
	goneSteps  = "(SELECT id FROM steps WHERE run IN (SELECT run FROM gone) AND id NOT IN (SELECT step FROM stays))"
	looseSteps = "NOT IN (SELECT id FROM steps)"
)

var dropStatements = []struct{ counts, sql string }{
	{"revisions", "DELETE FROM revisions WHERE run IN (SELECT run FROM gone)"},
	{"", "DELETE FROM leaf_ends WHERE run IN (SELECT run FROM gone)"},
	{"", "DELETE FROM step_glyphs WHERE step IN " + goneSteps},
	{"", "DELETE FROM step_ends WHERE step IN " + goneSteps},
	{"steps", "DELETE FROM steps WHERE id IN " + goneSteps},
	{"", "DELETE FROM moves WHERE step " + looseSteps},
	{"", "UPDATE steps SET before = NULL, after = NULL, inverse = NULL, expect = NULL, ledger = NULL WHERE id IN " + slimSteps},
	{"", "UPDATE step_glyphs SET old = NULL WHERE step IN " + slimSteps},
	{"", `UPDATE step_ends SET amend = CASE WHEN json_extract(amend, '$.changed') IS NULL THEN NULL
		ELSE json_object('changed', json_extract(amend, '$.changed')) END WHERE amend IS NOT NULL AND step IN ` + slimSteps},
	{"", "DELETE FROM run_ends WHERE run IN (SELECT run FROM gone) AND run NOT IN (SELECT run FROM steps)"},
	{"", "DELETE FROM runs WHERE id IN (SELECT run FROM gone) AND id NOT IN (SELECT run FROM steps)"},
	{"", "UPDATE kept SET step = NULL WHERE step " + looseSteps},
	{"", "UPDATE kept SET run = NULL WHERE run NOT IN (SELECT id FROM runs)"},
	{"", "DELETE FROM meta WHERE name LIKE '" + prunedMeta + "%' AND CAST(substr(name, " + fmt.Sprint(len(prunedMeta)+1) + ") AS INTEGER) NOT IN (SELECT id FROM runs)"},
}

// dropUnreferenced takes away the glyphs and the bytes that nothing names any more.
func (p *pruner) dropUnreferenced() error {
	glyphs, err := p.glyphRefs()
	if err != nil {
		return err
	}
	blobs, err := p.blobRefs(glyphs)
	if err != nil {
		return err
	}
	if _, err := p.dropBut("glyphs", "id", keysOf(glyphs)); err != nil {
		return err
	}
	p.did.Blobs, err = p.dropBut("blobs", "hash", keysOf(blobs))
	return err
}

func keysOf[K comparable](set map[K]bool) []any {
	all := make([]any, 0, len(set))
	for k := range set {
		all = append(all, k)
	}
	return all
}

// dropBut takes all rows out of a table but those of some ids.
func (p *pruner) dropBut(table, id string, ids []any) (int, error) {
	if err := p.c.script("CREATE TEMP TABLE IF NOT EXISTS named_" + table + " (id PRIMARY KEY)"); err != nil {
		return 0, err
	}
	for _, one := range ids {
		if _, err := p.c.exec("INSERT INTO named_"+table+" (id) VALUES (?)", one); err != nil {
			return 0, err
		}
	}
	n, err := p.c.change("DELETE FROM " + table + " WHERE " + id + " NOT IN (SELECT id FROM named_" + table + ")")
	return int(n), err
}

// glyphRefs are the glyphs that something names.
func (p *pruner) glyphRefs() (map[int64]bool, error) {
	refs := map[int64]bool{}
	err := p.c.query(func(scan scanner) error {
		var id int64
		err := scan(&id)
		refs[id] = true
		return err
	}, `SELECT glyph FROM applied UNION SELECT old FROM step_glyphs WHERE old IS NOT NULL
		UNION SELECT new FROM step_glyphs WHERE new IS NOT NULL UNION SELECT glyph FROM moves WHERE glyph IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	err = eachJSON(p.c, "what a revision declares", func(declared []declaredBody) {
		for _, d := range declared {
			for _, id := range slices.Concat(d.Glyphs, d.Checks) {
				refs[id] = true
			}
		}
	}, "SELECT declared FROM revisions")
	if err != nil {
		return nil, err
	}
	return refs, eachJSON(p.c, "a record", func(body *recordBody) {
		if body != nil {
			for _, l := range body.Layers {
				refs[l.Glyph] = true
			}
		}
	}, `SELECT body FROM records UNION ALL SELECT before FROM steps WHERE before IS NOT NULL
		UNION ALL SELECT after FROM steps WHERE after IS NOT NULL
		UNION ALL SELECT amend ->> 'record' FROM step_ends WHERE amend ->> 'record' IS NOT NULL`)
}

// eachJSON decodes the one column of a query's rows; what is how an error calls it.
func eachJSON[T any](c *conn, what string, use func(T), query string) error {
	return c.query(func(scan scanner) error {
		var text []byte
		if err := scan(&text); err != nil {
			return err
		}
		var body T
		if err := json.Unmarshal(text, &body); err != nil {
			return c.damaged(what+" cannot be decoded", err)
		}
		use(body)
		return nil
	}, query)
}

// blobRefs are the bytes that something names, glyphs that stay among it.
func (p *pruner) blobRefs(glyphs map[int64]bool) (map[string]bool, error) {
	refs := map[string]bool{}
	err := p.c.query(func(scan scanner) error {
		var hash string
		err := scan(&hash)
		refs[hash] = true
		return err
	}, "SELECT blob FROM kept WHERE blob IS NOT NULL")
	if err != nil {
		return nil, err
	}
	for _, col := range jsonColumns {
		err := p.c.query(func(scan scanner) error {
			var row string
			var body []byte
			var record bool
			if err := scan(&row, &body, &record); err != nil {
				return err
			}
			for _, hash := range blobsIn(body) {
				refs[hash] = true
			}
			return nil
		}, col.query)
		if err != nil {
			return nil, err
		}
	}
	d, err := newDecoder(p.c)
	if err != nil {
		return nil, err
	}
	for id := range glyphs {
		if id == 0 {
			continue
		}
		g, err := d.glyph(id)
		if err != nil {
			return nil, err
		}
		for _, hash := range fileRefs(g) {
			refs[hash] = true
		}
	}
	return refs, nil
}
