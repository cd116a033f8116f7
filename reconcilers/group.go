package reconcilers

import (
	"maps"

	"github.com/zclconf/go-cty/cty"

	"golem/scrolls"
)

var groupKind = Kind{
	Sort: groupSort,
	Kind: scrolls.Kind{
		Name: "group", Version: 1, LabelAttr: "name",
		Doc: "A local group. Who is in it is said by the users (`groups`). One that is there is taken as it is. " +
			"Undeclared, a group that golem made is removed, unless it is a user's primary group, has members, something " +
			"runs with it or files belong to it: then it is left, and the plan names them.",
		Attrs: []scrolls.Attr{
			{Name: "name", Type: cty.String, Doc: "The group's name. The label by default."},
			{Name: "gid", Type: cty.Number, Default: "the next free one", Doc: "Its number. golem renumbers no group: files would keep the old one."},
			{Name: "system", Type: cty.Bool, Default: "`false`", Doc: "Gives a new group a low number. Of no account once it is there."},
		},
		Identity: func(a scrolls.Attrs) []string { return []string{str(a, "name")} },
		Check: func(a scrolls.Attrs) []scrolls.Problem {
			return append(checkAccountName("name", str(a, "name")), checkID(a, "gid")...)
		},
		Canonical: func(a scrolls.Attrs) scrolls.Attrs {
			c := maps.Clone(a)
			if c["system"] == false {
				delete(c, "system")
			}
			return c
		},
	},
}
