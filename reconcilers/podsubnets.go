package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
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

// fit implements fitter: the engine has the driver of a new network, and no other network of
// the engine, and no interface of the host's, has
// addresses in the subnet of a new one by then.
func (networkOwner) fit(w *World, t *Turn, m motion[networkState]) error {
	if w.Acts || len(t.Set) == 0 || m.to.Make == "" || m.to.Make == m.from.Make {
		return nil
	}
	e, _ := splitResource(w, m.resource)
	if err := e.hasDriver(context.Background(), m.glyph); err != nil {
		return err
	}
	p, ok := bridged(m.glyph)
	if !ok {
		return nil
	}
	all, err := e.allNetworks(context.Background())
	if err != nil {
		return err
	}
	taken := func(format string, args ...any) error {
		return &AttrError{Glyph: m.glyph, Attr: "subnet", Summary: "Subnet is in use", Err: fmt.Errorf(format+". Choose another subnet", args...)}
	}
	bridges := map[string]bool{} // of the engine's networks: these come and go with them
	for _, n := range all {
		for _, name := range n.interfaces() {
			bridges[name] = true
		}
		s, foreseen := networkKeeper.foreseen(w, e.name+":"+n.Name)
		if n.ID == m.from.ID || foreseen && s.ID != n.ID || n.Driver != "bridge" {
			continue
		}
		for _, has := range n.subnets() {
			o, err := netip.ParsePrefix(has.Subnet)
			if err != nil || !p.Overlaps(o) {
				continue
			}
			return taken("the network %s has %s, and %s overlaps with that", quote(n.Name), o, p)
		}
	}
	if w.Stirred {
		return nil // an earlier step may take an address away
	}
	for _, has := range w.Host.addresses() {
		if !bridges[has.name] && p.Overlaps(has.of.Masked()) {
			return taken("the host's interface %s has the address %s, and %s overlaps with its subnet", quote(has.name), has.of, p)
		}
	}
	return nil
}

// hasDriver refuses a network whose driver the engine does not have. Where it cannot be asked,
// it will tell.
func (e podEngine) hasDriver(ctx context.Context, g *scrolls.Glyph) error {
	driver := str(g.Attrs, "driver")
	if driver == "" || driver == "bridge" || e.comes() {
		return nil
	}
	out, err := e.ask(ctx, "info", "--format", "{{range .Plugins.Network}}{{.}} {{end}}")
	if has := strings.Fields(out); err == nil && len(has) > 0 && !slices.Contains(has, driver) {
		return &AttrError{Glyph: g, Attr: "driver", Summary: "Unknown driver", Err: fmt.Errorf("%s has no driver %q here; it has %s", e.name, driver, strings.Join(has, ", "))}
	}
	return nil
}

// interfaces are what the host may call its own end of a network.
func (n *podNetwork) interfaces() []string {
	names := []string{n.Interface, n.Options["com.docker.network.bridge.name"]}
	if len(n.ID) >= 12 {
		names = append(names, "br-"+n.ID[:12])
	}
	return names
}

// A hostAddress is an address of one of the host's interfaces, with its subnet.
type hostAddress struct {
	name string
	of   netip.Prefix
}

// addresses are those of the host's interfaces; none of what is no live host, or where the
// kernel does not tell: then the engine will.
func (h *Host) addresses() []hostAddress {
	if !h.Live() || h.Exec != nil {
		return nil
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var all []hostAddress
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				all = append(all, hostAddress{i.Name, p})
			}
		}
	}
	return all
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
