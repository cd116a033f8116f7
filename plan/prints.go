package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golem/reconcilers"
	"golem/state"
)

// A Print is what a plan rests on, of one resource in one leaf's turn, as hashes.
type Print struct {
	Leaf string `json:"leaf"`
	// What is named for people: the keys, or the resource of what is about none.
	What string `json:"what"`
	Name string `json:"name"` // the record's
	Seen string `json:"seen"` // on the host
	// Record is what the journal holds of it: the layers of every lineage, too.
	Record string `json:"record"`
	Does   string `json:"does"` // what the run would do
}

// Prints are what the plan rests on, in the order of the run.
func (p *Plan) Prints() ([]Print, error) {
	var all []Print
	add := func(leaf string, turns []*reconcilers.Turn) error {
		for _, t := range turns {
			one, err := printOf(leaf, t)
			if err != nil {
				return err
			}
			all = append(all, one)
		}
		return nil
	}
	for _, leaf := range p.Leaves {
		if err := add(leaf.Path, leaf.Turns); err != nil {
			return nil, err
		}
	}
	if err := add(WaveLeaf, p.Wave); err != nil {
		return nil, err
	}
	rest, err := p.restPrint()
	return append(all, rest), err
}

// printOf is the print of one turn: hashes of its record, of what it saw and of what it would
// do.
func printOf(leaf string, t *reconcilers.Turn) (Print, error) {
	record, err := recordPrint(t.Record)
	if err != nil {
		return Print{}, err
	}
	does, err := hashOf(t.Changes, t.Noops, t.Acts, t.Postpone, t.Makes(), t.Via, t.Units, t.JointPrint())
	if err != nil {
		return Print{}, err
	}
	seen, err := hashOf(t.Print())
	if err != nil {
		return Print{}, err
	}
	var keys []string
	for _, c := range t.Changes {
		keys = append(keys, string(c.Key))
	}
	for _, key := range t.Noops {
		keys = append(keys, string(key))
	}
	if len(keys) == 0 {
		keys = []string{t.Resource}
	}
	return Print{
		Leaf: leaf, What: strings.Join(slices.Compact(keys), ", "), Name: reconcilers.RecordKey(t.Sort, t.Resource),
		Seen: seen, Record: record, Does: does,
	}, nil
}

// restPrint is what the plan has beside turns.
func (p *Plan) restPrint() (Print, error) {
	var due, checks []string
	for _, d := range p.Due {
		due = append(due, fmt.Sprint(d.Leaf, d.Name(), d.Because, d.Late))
	}
	for _, c := range p.Checks {
		checks = append(checks, c.Leaf+c.Name())
	}
	var updates []string
	for _, u := range p.Updates {
		updates = append(updates, string(u.Key)+u.Leaf)
	}
	does, err := hashOf(due, checks, updates, p.Effects(), p.Summary(), p.LeftOut)
	return Print{What: "what is due, checked, or brought up to date", Name: "(rest)", Does: does}, err
}

// recordPrint is what the journal holds of a resource; "" for nothing.
func recordPrint(r *state.Record) (string, error) {
	if r == nil {
		return "", nil
	}
	parts := []any{r.Found, r.After}
	for _, l := range r.Layers {
		body, err := l.Glyph.MarshalStored()
		if err != nil {
			return "", err
		}
		parts = append(parts, l.Key, l.Lineage, string(body), l.Changed, l.Inverse)
	}
	return hashOf(parts...)
}

func hashOf(parts ...any) (string, error) {
	h := sha256.New()
	for _, part := range parts {
		body, err := json.Marshal(part)
		if err != nil {
			return "", fmt.Errorf("take a plan's fingerprint: %w", err)
		}
		fmt.Fprintf(h, "%d:", len(body))
		h.Write(body)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Moved tells how what a plan rests on differs from what another rested on; none for not
// at all.
func Moved(was, is []Print) []string {
	key := func(p Print) string { return p.Leaf + "\x00" + p.Name }
	now := map[string]Print{}
	for _, p := range is {
		now[key(p)] = p
	}
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, w := range was {
		i, there := now[key(w)]
		delete(now, key(w))
		switch {
		case !there:
			add("%s: there is nothing to do about it any more", w.What)
		case w.Record != i.Record:
			add("%s: the journal has something else of it", w.What)
		case w.Seen != i.Seen:
			add("%s: it is not as it was", w.What)
		case w.Does != i.Does:
			add("%s: something else would be done about it", w.What)
		}
	}
	for _, p := range is {
		if _, fresh := now[key(p)]; fresh {
			add("%s: the plan does not have it", p.What)
		}
	}
	if n := len(all); n > 1 && strings.HasPrefix(all[n-1], "what is due") {
		all = all[:n-1] // which follows from the others
	}
	return all
}

// MovedOnHost is Moved, of what the journal has as it had: there the host alone has moved.
func MovedOnHost(was, is []Print) []string {
	now, looked := map[string]Print{}, map[string]bool{}
	for _, p := range is {
		if _, again := now[p.Name]; !again { // a later turn sees what an earlier one will leave
			now[p.Name] = p
		}
	}
	var all []string
	for _, w := range was {
		i, there := now[w.Name]
		if there && !looked[w.Name] && i.Record == w.Record && i.Seen != w.Seen {
			all = append(all, w.What+": it is not as it was")
		}
		looked[w.Name] = true
	}
	return all
}

// A StaleError says that a saved plan is not what would be done now. Nothing was touched.
type StaleError struct{ Why []string }

func (e *StaleError) Error() string {
	why := e.Why
	if more := len(why) - maxLeftTold; more > 1 {
		why = append(slices.Clone(why[:maxLeftTold]), fmt.Sprintf("and %d more", more))
	}
	return "the saved plan is stale, and nothing was changed:\n" + strings.Join(why, "\n")
}

// Hint says what to do.
func (*StaleError) Hint() string { return "golem plan --out makes a new one from what is there now" }
