package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golem/scrolls"
)

// bridged is the subnet that a glyph's network has to itself; false for one that says none,
// or whose driver may share it.
func bridged(g *scrolls.Glyph) (netip.Prefix, bool) {
	if driver := str(g.Attrs, "driver"); driver != "" && driver != "bridge" {
		return netip.Prefix{}, false
	}
	p, err := netip.ParsePrefix(str(g.Attrs, "subnet"))
	return p, err == nil
}

// sharedSubnets finds networks of a scroll that cannot be there at once.
func sharedSubnets(glyphs []*scrolls.Glyph) []Mistake {
	var mistakes []Mistake
	for i, g := range glyphs {
		p, ok := bridged(g)
		for _, other := range glyphs[:i] {
			o, too := bridged(other)
			if !ok || !too || !p.Overlaps(o) {
				continue
			}
			mistakes = append(mistakes, Mistake{Glyph: g, Other: other, Problem: scrolls.Problem{
				Attr: "subnet", Summary: "Subnet declared twice",
				Detail: fmt.Sprintf("%s has addresses of %s in it. Give each its own.", p, other.Key),
			}})
		}
	}
	return mistakes
}

// fit implements fitter: no other network of the engine has addresses in the subnet of a new
// one by then.
func (networkOwner) fit(w *World, t *Turn, m motion[networkState]) error {
	if w.Acts || len(t.Set) == 0 || m.to.Make == "" || m.to.Make == m.from.Make {
		return nil
	}
	p, ok := bridged(m.glyph)
	if !ok {
		return nil
	}
	e, _ := splitResource(w, m.resource)
	all, err := e.allNetworks(context.Background())
	if err != nil {
		return err
	}
	for _, n := range all {
		s, foreseen := networkKeeper.foreseen(w, e.name+":"+n.Name)
		if n.ID == m.from.ID || foreseen && s.ID != n.ID || n.Driver != "bridge" {
			continue
		}
		for _, has := range n.subnets() {
			o, err := netip.ParsePrefix(has.Subnet)
			if err != nil || !p.Overlaps(o) {
				continue
			}
			return &AttrError{Glyph: m.glyph, Attr: "subnet", Summary: "Subnet is in use", Err: fmt.Errorf(
				"the network %s has %s, and %s overlaps with that. Choose another subnet", quote(n.Name), o, p)}
		}
	}
	return nil
}

// allNetworks looks at every network that the engine has.
func (e podEngine) allNetworks(ctx context.Context) ([]*podNetwork, error) {
	out, err := e.ask(ctx, "network", "ls", "--format", "{{.Name}}")
	if errors.As(err, new(*NoEngineError)) && e.comes() {
		return nil, nil
	}
	names := strings.Fields(out)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	out, err = e.ask(ctx, append([]string{"network", "inspect"}, names...)...)
	if err != nil {
		return nil, err
	}
	var all []*podNetwork
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		return nil, fmt.Errorf("ask %s about its networks: %w", e.name, err)
	}
	return all, nil
}
