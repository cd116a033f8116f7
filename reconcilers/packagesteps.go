package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golem/state"
)

// A pkgInverse is what a step on a package holds for taking it back.
type pkgInverse struct {
	Now Pkg `json:"now"`
	// Whole is all that the step's transaction does, on the step of it that is taken
	// back first: what depends on each other goes back at once.
	Whole []pkgEffect `json:"whole,omitempty"`
	// Purge is how a package goes that was not there.
	Purge string `json:"purge,omitempty"`
}

// A pkgExpect is what will be there.
type pkgExpect struct {
	Want    Pkg         `json:"want"`
	Effects []pkgEffect `json:"effects,omitempty"` // on the step that apt runs for
}

// encodeStep writes both inverses of the step.
func (k *pkgWork) encodeStep(t *Turn) {
	inv := pkgInverse{Now: k.now, Purge: purgeAuto}
	for _, g := range k.r.Set {
		if m := purgeOf(g); m != purgeAuto {
			inv.Purge = m
		}
	}
	exp := pkgExpect{Want: k.want}
	if k.ends {
		inv.Whole = k.tx.effects
	}
	if k.leads {
		exp.Effects = k.tx.effects
	}
	t.Step.Inverse, t.Step.Expect = encode(inv), encode(exp)
}

// tellBeside tells, on the first of its glyphs, what the transaction does beside them.
func (k *pkgWork) tellBeside(t *Turn) {
	if !k.leads || len(t.Changes) == 0 {
		return
	}
	c := &t.Changes[0]
	lists := map[string][]string{}
	for _, e := range k.tx.effects {
		switch {
		case e.Own:
		case !e.To.there():
			lists["removes"] = append(lists["removes"], strings.TrimSpace(e.Resource+" "+e.From.Version))
		case !e.From.there() && k.back(e):
			lists["restores"] = append(lists["restores"], e.Resource+" "+e.To.Version)
		case !e.From.there():
			lists["installs"] = append(lists["installs"], e.Resource+" "+e.To.Version)
		default:
			what := e.Resource + " " + e.From.Version + " → " + e.To.Version
			lists["upgrades"] = append(lists["upgrades"], what)
			c.Irreversible = append(slices.Clone(c.Irreversible), what+" comes with it and stays so")
		}
	}
	for _, what := range []string{"installs", "upgrades", "removes", "restores"} {
		if names := lists[what]; len(names) > 0 {
			c.Reason += "; " + what + " " + strings.Join(names, ", ") + " with it"
			if c.After == nil {
				c.After = map[string]any{}
			}
			c.After[what] = names
		}
	}
}

// back says that an effect gives a package back that had made way.
func (k *pkgWork) back(e pkgEffect) bool {
	body, ok := k.w.pkgLedger(e.Resource)
	return ok && body.Found.there()
}

const archives = "/var/cache/apt/archives/"

// waysBack sees to it that every version which goes can be brought back, and says so
// where none can.
func (j *joining) waysBack() error {
	for i := range j.tx.effects {
		e := &j.tx.effects[i]
		if !e.From.there() || e.To.there() && !e.Own {
			continue // nothing was there; or an upgrade for another's sake, which stays
		}
		k := j.work(e.Resource)
		if k != nil && k.want.there() {
			e.Deb = k.source()
		}
		if j.d.at(e.Resource) == nil {
			continue // this very run brings it
		}
		if e.Back = j.kept(*e); e.Back != nil || j.w.Host.cachedDeb(j.d.at(e.Resource)) != "" {
			continue
		}
		said, err := j.w.Host.list(j.ctx, e.Resource)
		if err != nil {
			return err
		}
		if said != nil && slices.Contains(said.versions, e.From.Version) {
			continue
		}
		if k == nil {
			k = j.asker()
		}
		k.irreversible = append(k.irreversible, fmt.Sprintf("%s %s could not be brought back: no archive on this host has it", e.Resource, e.From.Version))
	}
	return nil
}

// at is the package as it is on the host.
func (d *aptDesk) at(resource string) *dpkgEntry {
	if e := d.real.packages[resource]; e != nil && e.there() {
		return e
	}
	return nil
}

// kept is the journal's own package of a version that goes.
func (j *joining) kept(e pkgEffect) *deb {
	var debs map[string]deb
	if k := j.work(e.Resource); k != nil {
		debs = k.rec.Debs
	} else if body, ok := j.w.pkgLedger(e.Resource); ok {
		debs = body.Debs
	}
	if d, ok := debs[e.From.Version]; ok {
		return &d
	}
	return nil
}

// cachedDeb is the file in apt's cache of the version that is there; "" for none.
func (h *Host) cachedDeb(e *dpkgEntry) string { return h.cached(e.name, e.Version, e.arch) }

func (h *Host) cached(pkg, version, arch string) string {
	name := archives + pkg + "_" + strings.ReplaceAll(version, ":", "%3a") + "_" + arch + ".deb"
	f, err := h.openAt(name)
	if err != nil {
		return ""
	}
	_ = f.Close()
	return name
}

// Capture implements Reconciler: the packages of versions that go are put into the
// journal, from apt's cache, or from the archive.
func (packages) Capture(ctx context.Context, w *World, store Store, turns []*Turn) error {
	d, err := w.aptDesk(ctx)
	if err != nil {
		return err
	}
	for i, t := range turns {
		k, ok := t.work.(*pkgWork)
		if !ok || !k.leads {
			continue
		}
		for n := range k.tx.effects {
			e := &k.tx.effects[n]
			if e.Back != nil || !e.From.there() || e.To.there() && !e.Own || d.at(e.Resource) == nil {
				continue
			}
			if e.Back, err = w.Host.captureDeb(ctx, store, d.at(e.Resource)); err != nil {
				return &TurnError{i, err}
			}
		}
		if err := k.captureFiles(store, turns); err != nil {
			return &TurnError{i, err}
		}
		k.encode(turns)
	}
	return nil
}

// encode writes what was captured into the steps that need it.
func (k *pkgWork) encode(turns []*Turn) {
	for _, t := range turns {
		own, ok := t.work.(*pkgWork)
		if !ok {
			continue
		}
		if e := k.tx.effect(t.Resource); e != nil && t.Step.After != nil && own.rec.found != nil {
			if e.Back != nil && own.rec.found.Version == e.From.Version {
				own.rec.Debs = map[string]deb{e.From.Version: *e.Back}
			}
			if own.rec.Before == nil {
				own.rec.Before = append([]pkgFile{}, e.Files...)
			}
			t.Step.After = own.after()
		}
		own.encodeStep(t)
		for i := range t.Step.Ledger {
			change := &t.Step.Ledger[i]
			e := k.tx.effect(change.Resource)
			var body pkgLedger
			if e == nil || change.After == nil || json.Unmarshal(change.After.Body, &body) != nil {
				continue
			}
			if e.Back != nil && body.Found.there() {
				body.Debs = map[string]deb{e.From.Version: *e.Back}
			}
			if body.Before == nil {
				body.Before = append([]pkgFile{}, e.Files...)
			}
			change.After.Body = encode(body)
		}
	}
}

// captureDeb puts the package of what is installed into the journal. A version that
// cannot be had, the plan has said so, has none.
func (h *Host) captureDeb(ctx context.Context, store Store, e *dpkgEntry) (*deb, error) {
	if name := h.cachedDeb(e); name != "" {
		f, err := h.openAt(name)
		if err != nil {
			return nil, err
		}
		return keepDeb(store, f, e)
	}
	resource := e.name
	if e.arch != "all" {
		resource += ":" + e.arch
	}
	dir, err := h.scratchDir("debs")
	if err != nil {
		return nil, fmt.Errorf("fetch %s %s: %w", e.name, e.Version, err)
	}
	defer os.RemoveAll(dir)
	out, err := h.Do(ctx, Command{Argv: []string{"apt-get", "-q", "download", resource + "=" + e.Version}, Dir: dir, Changes: true, Timeout: downloadTimeout})
	var failed *CommandError
	if errors.As(err, &failed) && failed.Code > 0 {
		said, asked := h.list(ctx, e.name)
		if asked == nil && (said == nil || !slices.Contains(said.versions, e.Version)) {
			return nil, nil
		}
		return nil, fmt.Errorf("fetch %s %s, so that it can be brought back: %w", e.name, e.Version, aptSaid(out, err))
	}
	if err != nil {
		return nil, err
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("fetch %s %s: apt-get download left %d files", e.name, e.Version, len(found))
	}
	f, err := os.Open(found[0])
	if err != nil {
		return nil, fmt.Errorf("fetch %s %s: %w", e.name, e.Version, err)
	}
	return keepDeb(store, f, e)
}

func keepDeb(store Store, f *os.File, e *dpkgEntry) (*deb, error) {
	hash, err := store.PutFile(f, "")
	err = errors.Join(err, f.Close())
	if err != nil {
		return nil, wrap(err, "keep", e.name+" "+e.Version)
	}
	return &deb{Blob: hash, Arch: e.arch}, nil
}

// readPkgStep decodes a step on a package.
func readPkgStep(s *state.Step) (inv pkgInverse, exp pkgExpect, err error) {
	if err := json.Unmarshal(s.Inverse, &inv); err != nil {
		return inv, exp, fmt.Errorf("read the inverse of %s: %w", s.Resource, err)
	}
	if err := json.Unmarshal(s.Expect, &exp); err != nil {
		return inv, exp, fmt.Errorf("read the step on %s: %w", s.Resource, err)
	}
	return inv, exp, nil
}

// Foresee implements Reconciler.
func (packages) Foresee(w *World, s *state.Step) error {
	inv, _, err := readPkgStep(s)
	if err != nil {
		return err
	}
	d := w.bareAptDesk()
	d.recovers = true
	for _, e := range inv.Whole {
		if !e.stays() {
			d.predict(e.Resource, e.From)
		}
	}
	d.predict(s.Resource, inv.Now)
	return nil
}
