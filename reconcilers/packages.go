package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golem/scrolls"
	"golem/state"
)

// packages keeps Debian packages: the kind apt.
type packages struct{}

func (packages) Sort() string { return PackageSort }

// An aptDesk is what the reconciler has of the packages on a world's desk: what dpkg
// says, and over that what the run has worked out so far.
type aptDesk struct {
	once sync.Once
	real *dpkgView
	err  error

	mu   sync.Mutex
	over map[string]Pkg
	// done are the packages that the transactions so far bring, change or take, in that
	// order, and who asked for it.
	done []string
	by   map[string]scrolls.Key
	debs map[string]*deb // those that come from the journal
	// declared are the scroll's glyphs, by resource.
	declared map[string][]*scrolls.Glyph
	// recovers says that an interrupted run has to be taken back first.
	recovers bool
}

// aptDesk returns what is known of the packages, asking dpkg if nobody did.
func (w *World) aptDesk(ctx context.Context) (*aptDesk, error) {
	d := w.bareAptDesk()
	d.once.Do(func() {
		if !w.Host.Live() {
			d.err = errText("a package needs a live Debian host, not a file tree")
			return
		}
		d.real, d.err = readDpkg(ctx, w.Host)
	})
	return d, d.err
}

func (w *World) bareAptDesk() *aptDesk {
	return keepAt(w, "packages", func() *aptDesk {
		return &aptDesk{over: map[string]Pkg{}, by: map[string]scrolls.Key{}, debs: map[string]*deb{}, declared: map[string][]*scrolls.Glyph{}}
	})
}

// state is a package's state as the run so far leaves it.
func (d *aptDesk) state(resource string) Pkg {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p, ok := d.over[resource]; ok {
		return p
	}
	return d.real.state(resource)
}

func (d *aptDesk) predict(resource string, p Pkg) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over[resource] = p
}

// pendingPackages are the packages that the run will have installed by this point and
// that are not there yet.
func pendingPackages(w *World) []string {
	d := w.bareAptDesk()
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for resource, p := range d.over {
		if p.there() && d.real != nil && !d.real.state(resource).there() {
			names = append(names, resource)
		}
	}
	slices.Sort(names)
	return names
}

// Locate implements Reconciler: a name is the package that is called so, or the one
// that provides it.
func (p packages) Locate(ctx context.Context, w *World, glyphs []*scrolls.Glyph, gone []Gone) (map[*scrolls.Glyph]Spot, []Mistake, error) {
	if len(glyphs)+len(gone) == 0 {
		return nil, nil, nil
	}
	if !w.Host.Live() && len(glyphs) > 0 {
		return nil, notLive(glyphs), nil
	}
	d, err := w.aptDesk(ctx)
	if err != nil {
		return nil, nil, err
	}
	l := &aptLocator{ctx: ctx, w: w, d: d, spots: map[*scrolls.Glyph]Spot{}}
	if err := l.locate(glyphs); err != nil {
		return nil, nil, err
	}
	l.twins(glyphs)
	if err := l.provided(glyphs); err != nil {
		return nil, nil, err
	}
	for g, spot := range l.spots {
		d.declared[spot.Resource] = append(d.declared[spot.Resource], g)
	}
	return l.spots, l.mistakes, nil
}

func notLive(glyphs []*scrolls.Glyph) []Mistake {
	var mistakes []Mistake
	for _, g := range glyphs {
		mistakes = append(mistakes, Mistake{Glyph: g, Problem: scrolls.Problem{
			Attr: "name", Summary: "Needs a live Debian host",
			Detail: "A package is installed on a running system; this is a file tree (--root).",
		}})
	}
	return mistakes
}

// An aptLocator finds the package for each name.
type aptLocator struct {
	ctx      context.Context
	w        *World
	d        *aptDesk
	spots    map[*scrolls.Glyph]Spot
	mistakes []Mistake
}

// locate finds what is there or known from before without asking apt, and then asks it
// about all other names at once.
func (l *aptLocator) locate(glyphs []*scrolls.Glyph) error {
	var unknown []*scrolls.Glyph
	var names []string
	foreign, err := l.w.Host.architectures()
	if err != nil {
		return err
	}
	for _, g := range glyphs {
		own := l.d.real.own(g)
		if _, arch, ok := strings.Cut(own, ":"); ok && !slices.Contains(foreign, arch) {
			l.mistake(g, "name", "Architecture is not taken", fmt.Sprintf(
				"This host takes packages of %s alone. To have it take others: dpkg --add-architecture %s && apt-get update.", strings.Join(append([]string{l.d.real.native}, foreign...), ", "), arch))
			continue
		}
		if spot, ok := l.known(g, own); ok {
			l.spots[g] = Spot{Resource: spot}
			if is := l.d.state(spot); !is.there() || !versionFits(str(g.Attrs, "version"), is.Version) {
				names = append(names, spot)
			}
			continue
		}
		unknown, names = append(unknown, g), append(names, own)
	}
	if len(names) == 0 {
		return nil
	}
	lists, err := l.w.Host.lists(l.ctx, names...)
	if err != nil {
		return err
	}
	for _, g := range unknown {
		if err := l.ask(g, l.d.real.own(g), lists[l.d.real.own(g)]); err != nil {
			return err
		}
	}
	return nil
}

// own is the resource of a package that is called as a glyph says.
func (v *dpkgView) own(g *scrolls.Glyph) string {
	name, arch, _ := strings.Cut(str(g.Attrs, "name"), ":")
	return v.resource(name, arch)
}

// known finds a glyph's package without apt: one of its name that is there, or the one
// that it is in force on and that is there.
func (l *aptLocator) known(g *scrolls.Glyph, own string) (string, bool) {
	if l.d.state(own).there() {
		return own, true
	}
	last := l.w.Where(g.Key)
	if last == own && last != "" {
		return own, true
	}
	if last != "" && l.d.state(last).there() && l.d.real.provides(last, g) {
		return last, true
	}
	return "", false
}

// provides says whether a package that is there provides a glyph's name.
func (v *dpkgView) provides(resource string, g *scrolls.Glyph) bool {
	name, _, _ := strings.Cut(str(g.Attrs, "name"), ":")
	e := v.packages[resource]
	return e != nil && slices.ContainsFunc(e.provides, func(r relation) bool { return r.name == name })
}

// ask resolves a name that no package on the host has, by what apt said of it.
func (l *aptLocator) ask(g *scrolls.Glyph, own string, said *aptName) error {
	if said != nil && !said.virtual {
		l.spots[g] = Spot{Resource: own}
		return nil
	}
	var there []string
	for resource, e := range l.d.real.packages {
		if e.there() && l.d.real.provides(resource, g) {
			there = append(there, resource)
		}
	}
	if len(there) > 0 {
		l.virtual(g, slices.Min(there))
		return nil
	}
	if said == nil {
		l.mistake(g, "name", "Unknown package", l.unknown(own))
		return nil
	}
	could, err := l.candidates(own)
	if err != nil {
		return err
	}
	last := l.w.Where(g.Key)
	switch {
	case slices.Contains(could, last):
		l.virtual(g, last)
	case len(could) == 1:
		l.virtual(g, could[0])
	case len(could) == 0:
		l.mistake(g, "name", "Unknown package", fmt.Sprintf("%s is only a name that other packages mention; nothing that can be installed is called so or provides it.", own))
	default:
		l.mistake(g, "name", "Several packages provide this", fmt.Sprintf("No package is called %s; these provide it: %s. Name the one that is meant.", own, strings.Join(could, ", ")))
	}
	return nil
}

// virtual takes a package that provides a glyph's name for it.
func (l *aptLocator) virtual(g *scrolls.Glyph, resource string) {
	for _, attr := range []string{"version", "hold"} {
		if _, ok := g.Attrs[attr]; ok {
			l.mistake(g, attr, "Not of a name that others provide", fmt.Sprintf("%s is provided by %s, and has no %s of its own. Name %s itself.", str(g.Attrs, "name"), resource, attr, resource))
			return
		}
	}
	l.spots[g] = Spot{Resource: resource}
}

// candidates are the packages whose candidate provides a name.
func (l *aptLocator) candidates(name string) ([]string, error) {
	all, err := l.w.Host.providers(l.ctx, name)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range all {
		names = append(names, r.name)
	}
	lists, err := l.w.Host.lists(l.ctx, names...)
	if err != nil {
		return nil, err
	}
	could := map[string]bool{}
	for _, r := range all {
		if said := lists[r.name]; said != nil && said.candidate == r.version {
			could[r.name] = true
		}
	}
	return slices.Sorted(maps.Keys(could)), nil
}

// unknown says why a name is not known, and what to do.
func (l *aptLocator) unknown(own string) string {
	why := fmt.Sprintf("Neither dpkg nor apt's package lists know %s.", own)
	if names, err := l.w.Host.readDir("/var/lib/apt/lists"); err == nil && !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, "Packages") }) {
		return why + " There are no lists on this host: run apt-get update first."
	}
	return why + " See that it is spelled right; if it is new in the archive, run apt-get update first."
}

func (l *aptLocator) mistake(g *scrolls.Glyph, attr, summary, detail string) {
	l.mistakes = append(l.mistakes, Mistake{Glyph: g, Problem: scrolls.Problem{Attr: attr, Summary: summary, Detail: detail}})
}

// twins finds one package declared under two spellings of its own name.
func (l *aptLocator) twins(glyphs []*scrolls.Glyph) {
	first := map[string]*scrolls.Glyph{}
	for _, g := range glyphs {
		spot, ok := l.spots[g]
		if !ok || spot.Resource != l.d.real.own(g) {
			continue
		}
		if other := first[spot.Resource]; other != nil {
			l.mistakes = append(l.mistakes, Mistake{Glyph: g, Other: other, Problem: scrolls.Problem{
				Attr: "name", Summary: "Two glyphs for one package",
				Detail: fmt.Sprintf("%s and %s are one package on this host, whose architecture is %s. Remove one of the two.", str(other.Attrs, "name"), str(g.Attrs, "name"), l.d.real.native),
			}})
			continue
		}
		first[spot.Resource] = g
	}
}

// provided finds names that a package does not provide in the version that is declared
// of it.
func (l *aptLocator) provided(glyphs []*scrolls.Glyph) error {
	pins := map[string]*scrolls.Glyph{}
	for _, g := range glyphs {
		if spot, ok := l.spots[g]; ok && str(g.Attrs, "version") != "" {
			pins[spot.Resource] = g
		}
	}
	for _, g := range glyphs {
		resource := l.spots[g].Resource
		pin := pins[resource]
		if pin == nil || pin == g || resource == l.d.real.own(g) {
			continue
		}
		wish := str(pin.Attrs, "version")
		if is := l.d.state(resource); is.there() && versionFits(wish, is.Version) && l.d.real.provides(resource, g) {
			continue
		}
		name, _, _ := strings.Cut(str(g.Attrs, "name"), ":")
		all, err := l.w.Host.providers(l.ctx, name)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(r relation) bool { return r.name == resource && versionFits(wish, r.version) }) {
			l.mistakes = append(l.mistakes, Mistake{Glyph: g, Other: pin, Problem: scrolls.Problem{
				Attr: "name", Summary: "Not provided in the version that is declared",
				Detail: fmt.Sprintf("%s would provide %s, but not in version %s, which is declared of it.", resource, name, wish),
			}})
		}
	}
	return nil
}

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
