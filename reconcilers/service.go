package reconcilers

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"golem/scrolls"
)

// UnitSort is the sort of resource that systemd's units are.
const UnitSort = "unit"

var serviceKind = Kind{
	Sort: UnitSort,
	Kind: scrolls.Kind{
		Name: "service", Version: 1, LabelAttr: "unit",
		Doc: "The state of a unit of systemd that exists: one of a package, of a file in the same scroll, or the operator's. " +
			"The state it was found in is recorded once, before golem's first touch. Undeclared, a unit that golem started is " +
			"stopped again and one that it enabled or masked loses exactly the links that made; a unit found running is left " +
			"running, and nothing is started on the way out. Without `state` golem never starts or stops the unit: it only " +
			"reloads or restarts it while it runs. Stopping a service also stops the sockets, timers and paths that would start " +
			"it again. What is started because golem starts a unit stops with it, once nothing else needs it. Any type of unit can be named; without a suffix a `.service` is meant.",
		Attrs: []scrolls.Attr{
			{Name: "unit", Type: cty.String, Doc: "The unit's name. The label by default."},
			{Name: "state", Type: cty.String, Default: "not golem's", Doc: "`\"running\"` or `\"stopped\"`."},
			{Name: "enabled", Type: cty.Bool, Default: "not golem's", Doc: "Whether it is started at boot."},
			{Name: "masked", Type: cty.Bool, Default: "not golem's", Doc: "Whether starting it is made impossible. Masking stops nothing."},
			{Name: "reload_on", Type: cty.List(cty.String), Doc: "Keys, or patterns of keys, whose change reloads the unit if it runs."},
			{Name: "restart_on", Type: cty.List(cty.String), Doc: "Keys, or patterns of keys, whose change restarts the unit if it runs."},
		},
		Identity: func(a scrolls.Attrs) []string { return []string{unitName(str(a, "unit"))} },
		Check:    checkService,
		Canonical: func(a scrolls.Attrs) scrolls.Attrs {
			c := scrolls.Attrs{}
			for name, value := range a {
				if name != "reload_on" && name != "restart_on" { // when to act is no part of what it is
					c[name] = value
				}
			}
			c["unit"] = unitName(str(a, "unit"))
			return c
		},
	},
	triggers: func(g *scrolls.Glyph) []Trigger {
		var all []Trigger
		for _, action := range []string{"reload", "restart"} {
			if on := words(g.Attrs, action+"_on"); len(on) > 0 {
				all = append(all, Trigger{Action: action, On: on})
			}
		}
		return all
	},
}

// checkService says what is wrong with a service before any host is looked at.
func checkService(a scrolls.Attrs) []scrolls.Problem {
	problems := checkUnitName("unit", str(a, "unit"))
	state, hasState := a["state"].(string)
	if hasState && state != "running" && state != "stopped" {
		problems = append(problems, scrolls.Problem{
			Attr: "state", Summary: "Unknown state",
			Detail: fmt.Sprintf("%q is not a state. Write \"running\" or \"stopped\", or leave it out: then golem neither starts nor stops the unit.", state),
		})
	}
	for _, attr := range []string{"reload_on", "restart_on"} {
		for _, pattern := range words(a, attr) {
			problems = append(problems, checkTrigger(attr, pattern)...)
		}
	}
	if masked := boolOf(a, "masked"); masked != nil && *masked {
		const why = "A masked unit can be neither started nor enabled. Leave out one of the two."
		if state == "running" {
			problems = append(problems, scrolls.Problem{Attr: "masked", Summary: "Masked and running", Detail: why})
		}
		if enabled := boolOf(a, "enabled"); enabled != nil && *enabled {
			problems = append(problems, scrolls.Problem{Attr: "masked", Summary: "Masked and enabled", Detail: why})
		}
	}
	says := hasState
	for _, name := range []string{"enabled", "masked"} {
		says = says || boolOf(a, name) != nil
	}
	if !says && len(words(a, "reload_on")) == 0 && len(words(a, "restart_on")) == 0 {
		problems = append(problems, scrolls.Problem{
			Summary: "Service without a wish",
			Detail:  "It says nothing about the unit. Write at least one of state, enabled, masked, reload_on and restart_on.",
		})
	}
	return problems
}
