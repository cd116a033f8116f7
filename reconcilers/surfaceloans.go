package reconcilers

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"golem/state"
)

// A loan says that what was found at a path belonged to a package that golem itself had
// brought. It is a found state only while the package is there: without it, what was
// there before the package counts.
type loan struct {
	Package string `json:"package,omitempty"`
	// User is the one whose home golem made, where it was there as the skeleton has it.
	User   string `json:"user,omitempty"`
	Before Node   `json:"before"`
}

// lender is the record key of whom a loan is from.
func (l *loan) lender() string {
	if l.User != "" {
		return RecordKey(userSort, l.User)
	}
	return RecordKey(PackageSort, l.Package)
}

// loans are the paths that packages which golem brought have a say in.
func (w *World) loans() map[string]*loan {
	return keepAt(w, "loans", func() map[string]*loan {
		all := map[string]*loan{}
		add := func(resource string, found Pkg, before []pkgFile) {
			if found.there() {
				return
			}
			listed := map[string]bool{}
			for _, f := range before {
				all[f.Path], listed[f.Path] = &loan{Package: resource, Before: f.Node}, true
			}
			for _, f := range before {
				for _, dir := range ancestors(f.Path) {
					if !listed[dir] && !protected[dir] {
						all[dir] = &loan{Package: resource, Before: absent()} // one that was there would be listed
					}
				}
			}
		}
		for _, r := range w.Records {
			var found Pkg
			var left pkgTrace
			if r.Sort == PackageSort && json.Unmarshal(r.Found, &found) == nil && json.Unmarshal(r.After, &left) == nil {
				add(r.Resource, found, left.Before)
			}
			if r.Sort == userSort {
				w.lendHome(all, r)
			}
		}
		for _, entry := range w.Ledger {
			if entry != nil && entry.Sort == PackageSort {
				if body, ok := w.pkgLedger(entry.Resource); ok {
					add(entry.Resource, body.Found, body.Before)
				}
			}
		}
		return all
	})
}

// borrowed notes in what was found at a path whose it is.
func (k *work) borrowed(n Node) Node {
	if h := k.letGo(); h != nil {
		return h.entry.found() // what lay beneath that counts
	}
	if n.Type != Absent {
		n.Lent = k.w.loans()[k.r.Resource]
	}
	return n
}

// letGo is what an archive has at the path and lets go in this run; nil for nothing.
func (k *work) letGo() *holding {
	if k.r.Record != nil {
		return nil
	}
	for _, h := range k.w.heldAt(k.r.Resource) {
		left := h.layer.Glyph.OnUndeclare == "leave" && k.w.InForce(h.layer.Key) == nil
		if h.entry.Type != Dir && !left {
			return &h
		}
	}
	return nil
}

// lender is the record key of whom a surface's found state belongs to; "" for none.
func (s *surface) lender() string {
	switch {
	case s.before == nil:
		return ""
	case s.base != nil && s.under.Lent != nil:
		return s.under.Lent.lender()
	case s.found.Lent != nil:
		return s.found.Lent.lender()
	}
	return ""
}

// lendHome notes what of a home that golem made is there as the skeleton has it.
func (w *World) lendHome(all map[string]*loan, r *state.Record) {
	var left userState
	if json.Unmarshal(r.After, &left) != nil || left.MadeHome == "" {
		return
	}
	skel, err := w.skel()
	if err != nil {
		return // what makes the home says so
	}
	for rel, n := range skel {
		if p := left.MadeHome + rel; n.Type != Dir && !slices.Contains(left.Before, p) {
			all[p] = &loan{User: r.Resource, Before: absent()}
		}
	}
}

// lenderThere says whether a package is installed, or a user is there with a home that golem
// made, as the run so far leaves it.
func (w *World) lenderThere(key string) (bool, error) {
	if name, ok := strings.CutPrefix(key, RecordKey(userSort, "")); ok {
		if s, ok := soleUsers.foreseen(w, name); ok {
			return s.There && s.MadeHome != "", nil
		}
		rec := w.Record(userSort, name)
		if rec == nil { // it was left where it is
			_, there := w.Host.names().users[name]
			return there, nil
		}
		var left userState
		err := json.Unmarshal(rec.After, &left)
		return left.MadeHome != "", err
	}
	return w.packageThere(strings.TrimPrefix(key, RecordKey(PackageSort, "")))
}

// packageThere says whether a package is installed, as the run so far leaves it.
func (w *World) packageThere(resource string) (bool, error) {
	d, err := w.aptDesk(context.Background())
	if err != nil {
		return false, err
	}
	return d.state(resource).there(), nil
}

// callIn puts what was there before a package in place of what was found, where that was
// the package's and the package is gone.
func (k *work) callIn() error {
	k.t.lender = k.s.lender()
	if k.t.lender == "" {
		return nil
	}
	there, err := k.w.lenderThere(k.t.lender)
	if err != nil || there {
		k.t.lent = there
		return err
	}
	for _, n := range []*Node{&k.s.found, &k.s.under} {
		if n.Lent != nil {
			k.orphan = *n
			*n = n.Lent.Before
		}
	}
	return nil
}
