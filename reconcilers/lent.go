package reconcilers

import (
	"context"
	"encoding/json"
)

// A loan says that what was found at a path belonged to a package that golem itself had
// brought. It is a found state only while the package is there: without it, what was
// there before the package counts.
type loan struct {
	Package string `json:"package"`
	Before  Node   `json:"before"`
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
				all[f.Path], listed[f.Path] = &loan{resource, f.Node}, true
			}
			for _, f := range before {
				for _, dir := range ancestors(f.Path) {
					if !listed[dir] && !protected[dir] {
						all[dir] = &loan{resource, absent()} // one that was there would be listed
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

// lender is the package that a surface's found state belongs to; "" for none.
func (s *surface) lender() string {
	switch {
	case s.before == nil:
		return ""
	case s.base != nil && s.under.Lent != nil:
		return s.under.Lent.Package
	case s.found.Lent != nil:
		return s.found.Lent.Package
	}
	return ""
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
	there, err := k.w.packageThere(k.t.lender)
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
