package state

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// prunedMeta names the number of a revision that was dropped, by its run: what is in force
// since then still says so.
const prunedMeta = "pruned:"

// A Pruned says what pruning dropped.
type Pruned struct {
	Revisions int   `json:"revisions"`
	Steps     int   `json:"steps"`
	Blobs     int   `json:"blobs"`
	Before    int64 `json:"bytes_before"` // of the database and the bytes beside it
	After     int64 `json:"bytes_after"`
}

// A pruner works on a copy of the journal.
type pruner struct {
	c       *conn
	before  time.Time
	runs    map[int64]bool  // whose history goes
	keep    map[int64]bool  // steps that stay: all of other runs, and what is in force
	numbers map[int64]int64 // of the revisions that go, by run
	did     Pruned
}

// Prune drops the history of before a moment: revisions, their runs and steps, and the
// glyphs and bytes that nothing refers to any more. Of each lineage the revision that was
// the newest at that moment stays, and all after it. What is in force keeps all that
// undoing it takes, and what golem displaced stays. No run may be unsettled, owed or
// pending.
//
// A new database is written beside the old one and takes its place in one rename, so that
// at every instant there is the one or the other, whole.
func (j *Journal) Prune(before time.Time) (*Pruned, error) {
	p, err := j.prune(before)
	if err != nil {
		return nil, fmt.Errorf("prune journal: %w", explain(j.path, err))
	}
	return p, nil
}

func (j *Journal) prune(before time.Time) (*Pruned, error) {
	if j.broken != nil {
		return nil, j.broken
	}
	if err := j.logEmpty(); err != nil {
		return nil, err
	}
	size, err := j.bytes()
	if err != nil {
		return nil, err
	}
	p := &pruner{before: before, runs: map[int64]bool{}, keep: map[int64]bool{}, numbers: map[int64]int64{}, did: Pruned{Before: size, After: size}}
	p.c = j.c
	if err := p.choose(); err != nil {
		return nil, err
	}
	if len(p.runs) == 0 {
		return &p.did, j.dropLoose(&p.did) // a prune that died may have left some
	}
	f, err := j.pruneCopy(p)
	if err != nil {
		return nil, errors.Join(err, sweep(j.path))
	}
	defer f.Close()
	if err := j.swap(f); err != nil {
		return nil, err
	}
	return &p.did, j.dropLoose(&p.did)
}

// logEmpty brings the log into the database: what is copied and swapped is one file.
func (j *Journal) logEmpty() error {
	if err := j.checkpoint(); err != nil {
		return err
	}
	if st, err := os.Stat(j.path + "-wal"); err == nil && st.Size() > 0 {
		return &DiskError{j.path, ErrBusy, nil}
	}
	return nil
}

// pruneCopy writes the pruned journal under another name, and checks it.
func (j *Journal) pruneCopy(p *pruner) (*os.File, error) {
	if err := j.o.fault("prune"); err != nil {
		return nil, err
	}
	fresh := j.path + ".new"
	f, err := copyFile(j.path, fresh)
	if err != nil {
		return nil, err
	}
	if p.c, err = connect(j.path, fresh, "mode=rw&_pragma=synchronous(off)&_pragma=journal_mode(memory)&_pragma=temp_store(memory)"); err == nil {
		err = p.drop()
		if err == nil {
			err = p.c.script("VACUUM; PRAGMA journal_mode = wal")
		}
		err = errors.Join(err, p.c.close())
	}
	if err == nil {
		err = p.verify(j.path, fresh)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// swap lets the copy take the journal's place.
func (j *Journal) swap(f *os.File) error {
	if err := j.c.close(); err != nil {
		return err
	}
	j.broken = errors.New("the journal was not opened again after it was pruned")
	err := publish(f, j.path, j.o, "prune")
	c, again := connect(j.path, j.path, writing)
	if again != nil {
		j.c = nil
		return errors.Join(err, again)
	}
	j.c, j.broken = c, nil
	j.intents, j.glyphs = map[int64]intent{}, map[string]int64{}
	return err
}

// bytes is how much the journal takes on disk.
func (j *Journal) bytes() (int64, error) {
	st, err := os.Stat(j.path)
	if err != nil {
		return 0, err
	}
	beside, err := j.c.number("SELECT sum(size) FROM blobs WHERE body IS NULL")
	return st.Size() + beside, err
}

// dropLoose removes the bytes beside the database that no row names.
func (j *Journal) dropLoose(did *Pruned) error {
	files, err := filepath.Glob(globbed(j.path+".blobs") + "/??/*")
	if err != nil {
		return err
	}
	gone := map[string]bool{}
	for _, file := range files {
		hash := filepath.Base(file)
		there, err := j.c.number("SELECT 1 FROM blobs WHERE hash = ? AND body IS NULL", hash)
		if err != nil {
			return err
		}
		if there != 0 || !validHash(hash) || file != blobFile(j.path+".blobs", hash) {
			continue
		}
		if err := j.o.fault("blob remove"); err != nil {
			return err
		}
		if err := os.Remove(file); err != nil {
			return err
		}
		gone[filepath.Dir(file)] = true
	}
	for dir := range gone {
		if err := syncPath(dir); err != nil {
			return err
		}
	}
	did.After, err = j.bytes()
	return err
}

// choose finds the runs whose history goes, and which of their steps stay.
func (p *pruner) choose() error {
	stay, err := p.staying()
	if err != nil {
		return err
	}
	err = p.c.query(func(scan scanner) error {
		var run, started int64
		var revision, number sql.NullInt64
		if err := scan(&run, &started, &revision, &number); err != nil {
			return err
		}
		if !stay[run] && moment(started).Before(p.before) {
			p.runs[run] = true
			if revision.Valid {
				p.numbers[run] = number.Int64
			}
		}
		return nil
	}, "SELECT r.id, r.started, v.id, v.number FROM runs r LEFT JOIN revisions v ON v.run = r.id")
	if err != nil {
		return err
	}
	if err := p.steps(); err != nil {
		return err
	}
	for run := range p.runs { // whose history is gone already, and that what is in force needs
		if _, revised := p.numbers[run]; !revised {
			gone, err := p.c.number("SELECT 1 FROM meta WHERE name = ?", fmt.Sprint(prunedMeta, run))
			if err != nil {
				return err
			}
			if gone != 0 {
				needs, err := p.needed(run)
				if err != nil {
					return err
				}
				if needs {
					delete(p.runs, run)
				}
			}
		}
	}
	return nil
}

// needed says whether a run has a step that stays.
func (p *pruner) needed(run int64) (needed bool, err error) {
	err = p.c.query(func(scan scanner) error {
		var step int64
		err := scan(&step)
		needed = needed || p.keep[step]
		return err
	}, "SELECT id FROM steps WHERE run = ?", run)
	return needed, err
}

// staying are the runs of the revisions that stay: of each lineage the one that was the
// newest at the moment, and all after it.
func (p *pruner) staying() (map[int64]bool, error) {
	stay := map[int64]bool{}
	newest := map[int64]int64{} // of each lineage, of before the moment: its run
	err := p.c.query(func(scan scanner) error {
		var lineage, run, at int64
		if err := scan(&lineage, &run, &at); err != nil {
			return err
		}
		if moment(at).Before(p.before) {
			newest[lineage] = run
		} else {
			stay[run] = true
		}
		return nil
	}, "SELECT lineage, run, at FROM revisions ORDER BY lineage, number")
	for _, run := range newest {
		stay[run] = true
	}
	return stay, err
}

// steps finds the steps that stay. What is in force is the last that was done about each
// key, so that with a step that stays the last one of each of its keys stays, too.
func (p *pruner) steps() error {
	keys, last := map[int64][]string{}, map[string]int64{}
	runs := map[int64]int64{}
	err := p.c.query(func(scan scanner) error {
		var step, run int64
		err := scan(&step, &run)
		runs[step] = run
		return err
	}, "SELECT id, run FROM steps")
	if err != nil {
		return err
	}
	err = p.c.query(func(scan scanner) error {
		var key string
		var step int64
		err := scan(&key, &step)
		keys[step] = append(keys[step], key)
		last[key] = step
		return err
	}, `SELECT g.key, g.step FROM step_glyphs g JOIN step_ends e ON e.step = g.step AND e.status = 'done'
		WHERE NOT EXISTS (SELECT 1 FROM step_ends x WHERE x.step = g.step AND x.status = 'reversed') ORDER BY g.step, g.position`)
	if err != nil {
		return err
	}
	var queue []int64
	add := func(step int64) {
		if !p.keep[step] {
			p.keep[step] = true
			queue = append(queue, step)
		}
	}
	for step, run := range runs {
		if !p.runs[run] {
			add(step)
		}
	}
	err = p.c.query(func(scan scanner) error {
		var step int64
		err := scan(&step)
		add(step)
		return err
	}, "SELECT step FROM applied")
	for len(queue) > 0 {
		step := queue[0]
		queue = queue[1:]
		for _, key := range keys[step] {
			add(last[key])
		}
	}
	return err
}

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
	err = p.c.query(func(scan scanner) error {
		var text []byte
		if err := scan(&text); err != nil {
			return err
		}
		var declared []declaredBody
		if err := json.Unmarshal(text, &declared); err != nil {
			return p.c.damaged("what a revision declares cannot be decoded", err)
		}
		for _, d := range declared {
			for _, ids := range [][]int64{d.Glyphs, d.Checks} {
				for _, id := range ids {
					refs[id] = true
				}
			}
		}
		return nil
	}, "SELECT declared FROM revisions")
	if err != nil {
		return nil, err
	}
	return refs, p.c.query(func(scan scanner) error {
		var text []byte
		if err := scan(&text); err != nil {
			return err
		}
		var body *recordBody
		if err := json.Unmarshal(text, &body); err != nil {
			return p.c.damaged("a record cannot be decoded", err)
		}
		if body != nil {
			for _, l := range body.Layers {
				refs[l.Glyph] = true
			}
		}
		return nil
	}, `SELECT body FROM records UNION ALL SELECT before FROM steps WHERE before IS NOT NULL
		UNION ALL SELECT after FROM steps WHERE after IS NOT NULL
		UNION ALL SELECT amend ->> 'record' FROM step_ends WHERE amend ->> 'record' IS NOT NULL`)
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

// verify looks whether the copy is whole, before it takes the journal's place.
func (p *pruner) verify(path, fresh string) error {
	c, err := connect(path, fresh, "mode=ro&immutable=1"+reading)
	if err != nil {
		return err
	}
	defer c.close()
	k := &checker{c: c, dir: path + ".blobs", blobs: map[string]bool{}}
	err = c.query(func(scan scanner) error {
		var hash string
		err := scan(&hash)
		k.blobs[hash] = true
		return err
	}, "SELECT hash FROM blobs")
	for _, check := range []func() error{k.pages, k.schema, k.glyphs, k.bodies, k.applied} {
		if err == nil {
			err = check()
		}
	}
	for _, f := range k.findings {
		if f.Level == Damage && err == nil {
			err = c.damaged(fmt.Sprintf("without its old history, %s: %s", f.What, f.Detail), nil)
		}
	}
	return err
}

// globbed is a path as a pattern that matches just it.
func globbed(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
