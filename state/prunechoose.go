package state

import (
	"database/sql"
	"fmt"
)

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
	keys, last, err := p.doneSteps()
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
	err = p.c.query(func(scan scanner) error {
		var step, run int64
		err := scan(&step, &run)
		if err == nil && !p.runs[run] {
			add(step)
		}
		return err
	}, "SELECT id, run FROM steps")
	if err != nil {
		return err
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

// doneSteps are the keys that each step that is done was about, and the last step of each key.
func (p *pruner) doneSteps() (keys map[int64][]string, last map[string]int64, err error) {
	keys, last = map[int64][]string{}, map[string]int64{}
	err = p.c.query(func(scan scanner) error {
		var key string
		var step int64
		err := scan(&key, &step)
		keys[step] = append(keys[step], key)
		last[key] = step
		return err
	}, `SELECT g.key, g.step FROM step_glyphs g JOIN step_ends e ON e.step = g.step AND e.status = 'done'
		WHERE NOT EXISTS (SELECT 1 FROM step_ends x WHERE x.step = g.step AND x.status = 'reversed') ORDER BY g.step, g.position`)
	return keys, last, err
}
