package plan

import (
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"

	"golem/reconcilers"
	"golem/scrolls"
)

// locate finds every glyph's resource.
func (m *maker) locate() {
	m.spots = map[*scrolls.Glyph]reconcilers.Spot{}
	declared := map[scrolls.Key]bool{}
	bySort := map[string][]*scrolls.Glyph{}
	for _, g := range m.glyphs {
		declared[g.Key] = true
		kind, _ := reconcilers.KindOf(g.Kind)
		bySort[kind.Sort] = append(bySort[kind.Sort], g)
	}
	gone := map[string][]reconcilers.Gone{}
	for _, a := range m.snap.Applied {
		if a.Lineage == m.in.Lineage && !declared[a.Key] && m.picks.Has(a.Key) {
			record := m.snap.Records[reconcilers.RecordKey(a.Sort, a.Resource)]
			if a.Sort == reconcilers.PathSort && a.Glyph.OnUndeclare == "leave" {
				continue // paths lead through it as they do now
			}
			gone[a.Sort] = append(gone[a.Sort], reconcilers.Gone{Applied: a, Record: record})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(reconcilers.Reconcilers)) {
		spots, mistakes, err := reconcilers.Reconcilers[name].Locate(m.in.Context, m.w, bySort[name], gone[name])
		m.failed = errors.Join(m.failed, err)
		maps.Copy(m.spots, spots)
		for _, wrong := range mistakes {
			m.blame(wrong.Glyph, wrong.Problem, wrong.Other)
		}
	}
}

// work lets every thing's turns be worked out, each thing's in the order of the run,
// things beside each other.
func (m *maker) work() {
	type failure struct {
		r   reconcilers.Request
		err error
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	failures := map[string]failure{}
	next := make(chan string)
	for range min(runtime.GOMAXPROCS(0), 8) {
		wait.Add(1)
		go func() {
			defer wait.Done()
			w := m.w.Fork()
			defer w.Close()
			for name := range next {
				if r, err := m.turns(w, m.things[name]); err != nil {
					mu.Lock()
					failures[name] = failure{r, err}
					mu.Unlock()
				}
			}
		}()
	}
	for _, name := range m.order {
		next <- name
	}
	close(next)
	wait.Wait()
	for _, name := range m.order {
		if f, ok := failures[name]; ok {
			m.fail(f.r, f.err)
		}
	}
}

// turns works out one thing's turns; each takes the one before it for done.
func (m *maker) turns(w *reconcilers.World, x *thing) (reconcilers.Request, error) {
	record := x.record
	var now any
	order := map[scrolls.Key]int{}
	for i, key := range m.layerOrder(x) {
		order[key] = i
	}
	var last *reconcilers.Turn
	for _, at := range slices.Sorted(maps.Keys(x.asks)) {
		a := x.asks[at]
		for _, r := range a.requests() {
			r.Shares, r.Last = len(x.asks) > 1, last
			r.Lineage, r.Leaf, r.Sort, r.Resource = m.in.Lineage, m.leaves[at].Path, x.sort, x.resource
			r.Record, r.Order, r.Blind, r.Now = record, order, m.in.Blind, now
			t, err := reconcilers.Of(r).Turn(m.in.Context, w, r)
			if err != nil {
				return r, err
			}
			x.turns[at] = append(x.turns[at], t)
			if last != nil {
				last.Spent()
			}
			last = t
			if t.Step != nil {
				record = t.Step.After
			}
			if t.Leaves != nil {
				now = t.Leaves
			}
		}
	}
	return reconcilers.Request{}, nil
}

// requests are the turns that a leaf's wishes for a thing take, in order.
func (a *ask) requests() []reconcilers.Request {
	var all []reconcilers.Request
	if len(a.set)+len(a.drop) > 0 {
		all = append(all, reconcilers.Request{Set: a.set, Drop: a.drop, Moves: a.moves, Via: a.via})
	}
	if len(a.leave) > 0 {
		all = append(all, reconcilers.Request{Drop: a.leave, Leave: true})
	}
	return all
}
