package reconcilers

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golem/scrolls"
)

// check refuses what nobody consented to.
func (j *joining) check() error {
	removal := slices.ContainsFunc(j.works, func(k *pkgWork) bool { return k.removal })
	for _, e := range j.tx.effects {
		if err := j.checkProvided(e); err != nil {
			return err
		}
		if e.Own {
			continue
		}
		if err := j.checkBeside(e, removal); err != nil {
			return err
		}
	}
	return nil
}

// checkBeside refuses what a transaction would do beside what is declared.
func (j *joining) checkBeside(e pkgEffect, removal bool) error {
	k := j.asker()
	key := j.d.key(e.Resource)
	entry := j.d.real.packages[e.Resource]
	switch {
	case e.From.Hold:
		return j.at(k, fmt.Errorf("this would change %s, which is on hold at %s", e.Resource, cmp.Or(e.From.Version, "none")))
	case !e.To.there() && entry != nil && entry.essential:
		return j.at(k, fmt.Errorf("this would remove %s, which the system cannot do without", e.Resource))
	case !e.To.there() && j.w.Needed(RecordKey(PackageSort, e.Resource)):
		return j.at(k, fmt.Errorf("this would remove %s, which is declared too (%s): the two cannot be installed together", e.Resource, key))
	case !e.To.there() && j.earlier(e.Resource) != "":
		return j.at(k, fmt.Errorf("this would remove %s, which %s brings earlier in this run", e.Resource, j.earlier(e.Resource)))
	case !e.To.there() && !removal && !slices.Contains(j.along, e.Resource) && !j.w.brought(e.Resource, e.From):
		return j.at(k, &AttrError{Attr: "allow_removal", Summary: "Other packages would be removed", Err: errText(fmt.Sprintf(
			"this would remove %s, which golem did not bring. Write allow_removal = true if that is meant", j.removed()))})
	case e.From.there() && e.To.there() && compareVersions(e.To.Version, e.From.Version) < 0:
		return j.at(k, fmt.Errorf("this would bring %s from %s back to %s", e.Resource, e.From.Version, e.To.Version))
	}
	for _, g := range j.d.declared[e.Resource] {
		if wish := str(g.Attrs, "version"); e.To.there() && !versionFits(wish, e.To.Version) {
			return j.at(k, fmt.Errorf("this would bring %s to %s, and %s wants %s", e.Resource, e.To.Version, g.Key, wish))
		}
	}
	return nil
}

// checkProvided refuses a version that does not provide a name which a glyph knows the
// package by.
func (j *joining) checkProvided(e pkgEffect) error {
	if !e.To.there() {
		return nil
	}
	var entry *dpkgEntry
	for _, g := range j.d.declared[e.Resource] {
		if j.d.real.own(g) == e.Resource {
			continue
		}
		if entry == nil {
			var err error
			if entry, err = j.d.entry(j.ctx, j.w, e.Resource, e.To.Version); err != nil {
				return err
			}
		}
		name, _, _ := strings.Cut(str(g.Attrs, "name"), ":")
		if !entry.satisfies(relation{name: name}) {
			return j.at(j.asker(), fmt.Errorf("this would bring %s to %s, which does not provide %s any more (%s)", e.Resource, e.To.Version, name, g.Key))
		}
	}
	return nil
}

// removed lists the packages of others that would go.
func (j *joining) removed() string {
	var names []string
	for _, e := range j.tx.effects {
		if !e.To.there() && !e.Own && !slices.Contains(j.along, e.Resource) && !j.w.brought(e.Resource, e.From) {
			names = append(names, strings.TrimSpace(e.Resource+" "+e.From.Version))
		}
	}
	return strings.Join(names, ", ")
}

// earlier is the key for which an earlier transaction of the run brings a package.
func (j *joining) earlier(resource string) scrolls.Key {
	j.d.mu.Lock()
	defer j.d.mu.Unlock()
	if p, ok := j.d.over[resource]; ok && p.there() {
		return j.d.by[resource]
	}
	return ""
}

// key is the key that declares a package, for people.
func (d *aptDesk) key(resource string) scrolls.Key {
	if declared := d.declared[resource]; len(declared) > 0 {
		return declared[0].Key
	}
	return packageKey(resource)
}

// packageKey is the key of a glyph for a package.
func packageKey(resource string) scrolls.Key {
	return scrolls.MakeKey(aptKindName, strings.SplitN(resource, ":", 2)...)
}

// asker is the work that a transaction is blamed for: the first that apt runs for.
func (j *joining) asker() *pkgWork {
	for _, k := range j.works {
		if k.brings() || k.takes() {
			return k
		}
	}
	return j.works[0]
}

// at places an error at a turn.
func (j *joining) at(k *pkgWork, err error) error {
	return &TurnError{slices.Index(j.works, k), err}
}

// blame finds the turn that apt refuses a batch for, and what it does not go with.
func (j *joining) blame(err error) error {
	var said *AptError
	if !errors.As(err, &said) {
		return err
	}
	if held := j.d.alsoHeld(said.Said); held != "" {
		said.Said += "; " + held
	}
	if j.d.recovers {
		return fmt.Errorf("%w; the interrupted run has to be taken back first: golem recover", err)
	}
	for i, k := range j.works {
		if _, again := j.ask(j.works[:i+1]); again == nil {
			continue
		}
		for _, other := range j.works[:i] {
			if _, pair := j.ask([]*pkgWork{other, k}); pair != nil {
				return j.at(k, fmt.Errorf("%s and %s do not go together: %w", k.key(), other.key(), err))
			}
		}
		if key := j.clashes(k); key != "" {
			return j.at(k, fmt.Errorf("it does not go together with what %s brings earlier in this run: %w", key, err))
		}
		return j.at(k, err)
	}
	return err
}

// key is a glyph that the work is about.
func (k *pkgWork) key() scrolls.Key {
	if len(k.r.Set) > 0 {
		return k.r.Set[0].Key
	}
	for _, key := range slices.Sorted(maps.Keys(k.r.Drop)) {
		return key
	}
	return scrolls.Key(RecordKey(PackageSort, k.r.Resource))
}
