package reconcilers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golem/scrolls"
)

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
