package plan

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"golem/reconcilers"
	"golem/state"
)

// assemble puts each leaf's turns in order, its removes first, and fits them to what
// the turns before them leave.
func (m *maker) assemble() {
	things := m.thingsByLeaf()
	for at, leaf := range m.leaves {
		type entry struct {
			t *reconcilers.Turn
			a *ask
		}
		var removes, sets, left []entry
		for _, x := range things[at] {
			for _, t := range x.turns[at] {
				switch a := x.asks[at]; {
				case t.Leave:
					left = append(left, entry{t, a})
				case len(a.set) == 0:
					removes = append(removes, entry{t, a})
				default:
					sets = append(sets, entry{t, a})
				}
			}
		}
		sort.SliceStable(removes, func(i, j int) bool { return removes[i].a.last > removes[j].a.last })
		sort.SliceStable(sets, func(i, j int) bool { return sets[i].a.at < sets[j].a.at })
		turns := make([]*reconcilers.Turn, 0, len(removes)+len(sets)+len(left))
		for _, e := range slices.Concat(removes, sets, left) {
			turns = append(turns, e.t)
		}
		reconcilers.StopBeforeFiles(turns[:len(removes)])
		m.fit(leaf, turns)
		for _, t := range leaf.Turns {
			m.call(t)
		}
		m.failed = errors.Join(m.failed, m.fire(leaf.Path, false))
	}
	m.failed = errors.Join(m.failed, m.fire("", true))
}

// thingsByLeaf lists for each leaf what it has a turn about, in order of first mention.
func (m *maker) thingsByLeaf() [][]*thing {
	all := make([][]*thing, len(m.leaves))
	for _, name := range m.order {
		x := m.things[name]
		for at := range x.turns {
			all[at] = append(all[at], x)
		}
	}
	return all
}

// fit fits a leaf's turns to what the turns before them leave, batch by batch.
func (m *maker) fit(leaf *Leaf, turns []*reconcilers.Turn) {
	for len(turns) > 0 {
		if turns[0].Step == nil {
			m.fitBatch(leaf, turns[:1])
			turns = turns[1:]
			continue
		}
		batch := reconcilers.Batch(turns)
		m.fitBatch(leaf, batch)
		turns = turns[len(batch):]
	}
}

func (m *maker) fitBatch(leaf *Leaf, batch []*reconcilers.Turn) {
	rec := reconcilers.Of(batch[0].Request)
	var acting []*reconcilers.Turn
	failed := false
	for _, t := range batch {
		if err := rec.Fit(m.w, t); err != nil {
			m.fail(t.Request, err)
			failed = true
			continue
		}
		m.w.Stirred = m.w.Stirred || t.Acts
		m.w.Loose = m.w.Loose || reconcilers.Loosens(t)
		m.tellMoves(t)
		leaf.Turns = append(leaf.Turns, t)
		if t.Step != nil {
			acting = append(acting, t)
		}
	}
	if len(acting) > 0 && !failed {
		m.join(acting)
	}
}

// join lets the turns of a batch be completed with what they do together.
func (m *maker) join(batch []*reconcilers.Turn) {
	err := reconcilers.Of(batch[0].Request).Join(m.in.Context, m.w, batch)
	if err == nil {
		return
	}
	at := 0
	var turn *reconcilers.TurnError
	if errors.As(err, &turn) {
		at = turn.At
	}
	m.fail(batch[at].Request, err)
}

// tellMoves tells an edit that leaves one resource for another where it goes: as a
// replace.
func (m *maker) tellMoves(t *reconcilers.Turn) {
	for i := range t.Changes {
		c := &t.Changes[i]
		was, known := m.own[c.Key]
		if c.Op == state.Install && known && was.Resource != t.Resource {
			c.Op = state.Replace
			c.Reason = fmt.Sprintf("moves from %s: %s", reconcilers.Quote(was.Resource), c.Reason)
		}
	}
}

// wave works out the run's last wave: directories that golem made, deepest first.
func (m *maker) wave() {
	postponed := map[string]*reconcilers.Turn{}
	var turns []*reconcilers.Turn
	for _, leaf := range m.leaves {
		for _, t := range leaf.Turns {
			if !t.Postpone {
				continue
			}
			r := t.Request
			r.Late, r.Now = true, nil
			late, err := reconcilers.Reconcilers[t.Sort].Turn(m.in.Context, m.w, r)
			if err != nil {
				m.fail(r, err)
				continue
			}
			postponed[reconcilers.RecordKey(t.Sort, r.Resource)] = t
			turns = append(turns, late)
		}
	}
	for _, rec := range reconcilers.Reconcilers {
		swept, err := rec.Sweep(m.in.Context, m.w)
		if err != nil {
			m.failed = err
			return
		}
		turns = append(turns, swept...)
	}
	reconcilers.SortLate(turns)
	m.fitWave(turns, postponed)
}

// fitWave fits the turns of the last wave, batch by batch.
func (m *maker) fitWave(turns []*reconcilers.Turn, postponed map[string]*reconcilers.Turn) {
	var acting []*reconcilers.Turn
	for _, t := range turns {
		t.Lineage = m.in.Lineage
		if t.Step != nil {
			t.Step.Lineage = m.in.Lineage
		}
		if err := reconcilers.Reconcilers[t.Sort].Fit(m.w, t); err != nil {
			m.fail(t.Request, err)
			continue
		}
		m.w.Predict(t)
		if told := postponed[reconcilers.RecordKey(t.Sort, t.Resource)]; told != nil {
			told.Changes = t.Changes
		}
		m.plan.Wave = append(m.plan.Wave, t)
		if t.Step != nil {
			acting = append(acting, t)
		}
	}
	for len(acting) > 0 {
		batch := reconcilers.Batch(acting)
		m.join(batch)
		acting = acting[len(batch):]
	}
}
