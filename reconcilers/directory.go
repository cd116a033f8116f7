package reconcilers

import (
	"fmt"

	"golem/scrolls"
)

var directoryKind = Kind{
	Sort: PathSort,
	Kind: scrolls.Kind{
		Name: "directory", Version: 1, LabelAttr: "path",
		Doc: "A directory; what is in it is no part of it. Undeclared, it is removed only if golem made it and it is " +
			"empty, after everything else of the run; what it still holds is named. A directory that was there gets its " +
			"mode, owner and group back.",
		Attrs: []scrolls.Attr{
			pathAttr,
			withDefault(modeAttr, "what is there; `0755` for a new one"),
			withDefault(ownerAttr, "what is there; golem's own user for a new one"),
			withDefault(groupAttr, "what is there; golem's own group for a new one"),
		},
		Identity: func(a scrolls.Attrs) []string { return []string{str(a, "path")} },
		Check: func(a scrolls.Attrs) []scrolls.Problem {
			return append(checkPath("path", str(a, "path")), checkMode(a)...)
		},
		Canonical: func(a scrolls.Attrs) scrolls.Attrs {
			mode, ok := modeOf(a)
			if !ok {
				return a
			}
			c := scrolls.Attrs{}
			for name, value := range a {
				c[name] = value
			}
			c["mode"] = fmt.Sprintf("%04o", mode)
			return c
		},
		Surface: func(a scrolls.Attrs) (string, bool) { return str(a, "path"), true },
	},
	base: &base{
		typ: Dir,
		make: func(w *World, g, was *scrolls.Glyph, beneath, now Node) (Node, error) {
			return dress(w, Node{Type: Dir}, g, was, beneath, now, defaultDirMode)
		},
	},
}
