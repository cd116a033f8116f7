package reconcilers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golem/scrolls"
	"golem/state"
)

// A pkgTrace is what a record says golem left.
type pkgTrace struct {
	Left Pkg `json:"left"`
	// Debs are the packages that the journal has of versions that golem replaced.
	Debs map[string]deb `json:"debs,omitempty"`
	// Before are the package's configuration files as they were before golem first had
	// apt touch it; nil: it never did.
	Before []pkgFile `json:"before,omitempty"`
	// Without names the packages that recommend or suggest it and did without before
	// golem brought it.
	Without []string `json:"without,omitempty"`
	// Accounts are the users and groups that scripts made when golem had apt install it,
	// its own or those of what came with it: "user www".
	Accounts []string `json:"accounts,omitempty"`
}

// A deb is a package file in the journal.
type deb struct {
	Blob string `json:"blob"`
	Arch string `json:"arch"`
}

// A pkgRecord is the reconciler's reading of a record.
type pkgRecord struct {
	pkgTrace
	found  *Pkg // nil: not known
	layers []state.Layer
	fresh  bool // there is none yet
	lent   bool // golem brought it as a by-product before
}

// readPkgRecord reads the record of a package. A by-product's found state is inherited.
func readPkgRecord(w *World, r Request, now Pkg) (*pkgRecord, error) {
	k := &pkgRecord{}
	if r.Record == nil {
		k.fresh, k.found = true, &now
		if body, ok := w.pkgLedger(r.Resource); ok {
			k.lent, k.found, k.pkgTrace = true, &body.Found, body.pkgTrace
		}
		return k, nil
	}
	k.layers = r.Record.Layers
	if len(r.Record.After) > 0 {
		if err := json.Unmarshal(r.Record.After, &k.pkgTrace); err != nil {
			return nil, fmt.Errorf("read what was left of %s: %w", r.Resource, err)
		}
	}
	if IsUnknown(r.Record.Found) {
		return k, nil
	}
	k.found = &Pkg{}
	if err := json.Unmarshal(r.Record.Found, k.found); err != nil {
		return nil, fmt.Errorf("read what was found of %s: %w", r.Resource, err)
	}
	return k, nil
}

// layer finds a key's layer.
func (k *pkgRecord) layer(key scrolls.Key) *state.Layer {
	for i := range k.layers {
		if k.layers[i].Key == key {
			return &k.layers[i]
		}
	}
	return nil
}

// changed says whether any glyph's step ever did something to the package.
func (k *pkgRecord) changed() bool {
	return slices.ContainsFunc(k.layers, func(l state.Layer) bool { return l.Changed })
}

// A pkgLedger is a line of the ledger about a package: what it was before a transaction
// brought it along, or took it away, for another's sake.
type pkgLedger struct {
	pkgTrace
	Found Pkg `json:"found"`
	// For names the packages it made way for, "name=version"; none for one that was
	// brought.
	For []string `json:"for,omitempty"`
	// Purge is how the glyphs that brought it say that their packages go; "" for auto.
	Purge string `json:"purge,omitempty"`
}

// mode is how a by-product goes: as the glyph that brought it.
func (l pkgLedger) mode() string {
	if l.Purge == "" {
		return purgeAuto
	}
	return l.Purge
}

func (w *World) pkgLedger(resource string) (pkgLedger, bool) {
	entry := w.Ledger[RecordKey(PackageSort, resource)]
	var body pkgLedger
	if entry == nil || json.Unmarshal(entry.Body, &body) != nil {
		return body, false
	}
	return body, true
}

// madeWayFor says whether a package made way for another as that is now.
func (l pkgLedger) madeWayFor(resource string, now Pkg) bool {
	return now.there() && slices.Contains(l.For, resource+"="+now.Version)
}

// pinnedName is the package of "name=version".
func pinnedName(pinned string) string {
	name, _, _ := strings.Cut(pinned, "=")
	return name
}

// brought says that golem brought a package along and that it is still apt's to take.
func (w *World) brought(resource string, now Pkg) bool {
	body, ok := w.pkgLedger(resource)
	return ok && !body.Found.there() && now.Auto
}

// idle says that a package which golem brought along is there for nothing but what needs it.
func (w *World) idle(resource string, now Pkg) bool {
	return w.brought(resource, now) && !now.Hold && !w.Needed(RecordKey(PackageSort, resource))
}

// TellFound implements Teller.
func (packages) TellFound(found json.RawMessage) string {
	var p Pkg
	if json.Unmarshal(found, &p) != nil {
		return "something this golem cannot read"
	}
	switch {
	case p.Status == dpkgConfigFiles:
		return "not installed; its configuration was there"
	case !p.there():
		return "not installed"
	}
	text := "version " + p.Version
	if p.Auto {
		text += ", installed for another's sake"
	}
	if p.Hold {
		text += ", on hold"
	}
	return text
}
