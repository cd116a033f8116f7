package reconcilers

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"golem/scrolls"
)

// NetworkSort is the sort of resource that engines' networks are; a resource is the
// engine's name and the network's, "podman:lan".
const NetworkSort = "network"

var networkKind = Kind{
	Sort: NetworkSort,
	Kind: scrolls.Kind{
		Name: "network", Version: 1, LabelAttr: "name",
		Doc: "A network of podman's, or of docker's, that containers are on. One that is there already is neither made nor " +
			"removed; if it is not as declared, it is refused. Golem's own is made anew where it has to change: the containers " +
			"of golem's on it are taken off it and put on the new one. With a container on it that golem did not make, " +
			"a network is not changed (which is refused) and not removed (it is left, and named). Undeclared, golem's own is removed.",
		Attrs: []scrolls.Attr{
			{Name: "name", Type: cty.String, Doc: "The network's name. The label by default."},
			{Name: "driver", Type: cty.String, Default: "the engine's, `bridge`", Doc: "What makes the network: `bridge`, `macvlan`, `ipvlan`, or another that the engine has."},
			{Name: "subnet", Type: cty.String, Default: "one that is free", Doc: "Its addresses, like `10.9.0.0/24`."},
			{Name: "gateway", Type: cty.String, Default: "the subnet's first address", Doc: "The host's address in it. Needs a `subnet`."},
			{Name: "internal", Type: cty.Bool, Default: "`false`", Doc: "Whether it leads nowhere but to the containers on it."},
			{Name: "labels", Type: cty.Map(cty.String), Doc: "More labels."},
			{Name: "options", Type: cty.Map(cty.String), Doc: "The driver's options, like `mtu`."},
			{Name: "engine", Type: cty.String, Default: "`podman`", Doc: "`podman` or `docker`."},
		},
		Identity:  func(a scrolls.Attrs) []string { return []string{str(a, "name")} },
		Check:     checkNetwork,
		Canonical: canonicalNetwork,
	},
}

// checkNetwork says what is wrong with a network before any host is looked at.
func checkNetwork(a scrolls.Attrs) []scrolls.Problem {
	var c checks
	c.engine(a)
	name := str(a, "name")
	if !podName.MatchString(name) || slices.Contains(podConnected, name) || name == "bridge" || name == "default" {
		c.wrong("name", "Not a network's name", "%q must be letters, digits, \"_\", \".\" and \"-\", and not a word of the engine's own.", name)
	}
	if text, ok := a["driver"].(string); ok && !podName.MatchString(text) {
		c.wrong("driver", "Not a driver", "%q is not the name of a driver, like \"bridge\".", text)
	}
	subnet, given := a["subnet"].(string)
	prefix, err := netip.ParsePrefix(subnet)
	if given && (err != nil || prefix.Masked() != prefix) {
		c.wrong("subnet", "Not a subnet", "%q is not a subnet, like \"10.9.0.0/24\" or \"fd00:9::/64\".", subnet)
	}
	if text, ok := a["gateway"].(string); ok {
		ip, gerr := netip.ParseAddr(text)
		switch {
		case !given:
			c.wrong("gateway", "Gateway without a subnet", "Write the subnet that %q lies in.", text)
		case gerr != nil || err == nil && !prefix.Contains(ip):
			c.wrong("gateway", "Not a gateway", "%q is not an address in %s.", text, subnet)
		}
	}
	for _, attr := range []string{"labels", "options"} {
		for _, key := range slices.Sorted(maps.Keys(object(a, attr))) {
			if key == "" || strings.ContainsAny(key, "= \n") || attr == "labels" && strings.HasPrefix(key, labelPrefix) {
				c.wrong(attr, "Not a name", "%q cannot stand here: no blanks, no \"=\", and no label that begins with %q, which is golem's.", key, labelPrefix)
			}
		}
	}
	return c.found
}

// canonicalNetwork spells defaults.
func canonicalNetwork(a scrolls.Attrs) scrolls.Attrs {
	c := lessAttrs(a)
	for name, value := range map[string]any{"engine": "podman", "driver": "bridge", "internal": false} {
		if c[name] == value {
			delete(c, name)
		}
	}
	for _, name := range []string{"labels", "options"} {
		if len(object(c, name)) == 0 {
			delete(c, name)
		}
	}
	return c
}
