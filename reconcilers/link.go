package reconcilers

import (
	"strings"

	"github.com/zclconf/go-cty/cty"

	"golem/scrolls"
)

var linkKind = Kind{
	Sort: PathSort,
	Kind: scrolls.Kind{
		Name: "link", Version: 1, LabelAttr: "path",
		Doc: "A symbolic link with this text. A file or another link at the path is captured whole and put back when " +
			"the link is undeclared. The target need not exist, and is never touched.",
		Attrs: []scrolls.Attr{
			pathAttr,
			{Name: "target", Type: cty.String, Required: true, Doc: "The link's text, absolute or relative to the link's directory."},
		},
		Identity: func(a scrolls.Attrs) []string { return []string{str(a, "path")} },
		Check: func(a scrolls.Attrs) []scrolls.Problem {
			problems := checkPath("path", str(a, "path"))
			switch target := str(a, "target"); {
			case target == "":
				problems = append(problems, scrolls.Problem{
					Attr: "target", Summary: "Target is empty", Detail: "A link needs a text: the path it leads to.",
				})
			case strings.ContainsRune(target, 0):
				problems = append(problems, scrolls.Problem{
					Attr: "target", Summary: "Target holds a NUL byte", Detail: "No path can have one.",
				})
			case len(target) > 4000:
				problems = append(problems, scrolls.Problem{
					Attr: "target", Summary: "Target is too long", Detail: "A link's text has at most 4,000 bytes here.",
				})
			}
			return problems
		},
		Surface: func(a scrolls.Attrs) (string, bool) { return str(a, "path"), true },
	},
	base: &base{
		typ: Link,
		make: func(_ *World, g, _ *scrolls.Glyph, beneath, now Node) (Node, error) {
			n := Node{Type: Link, Target: Bytes(str(g.Attrs, "target")), UID: Any, GID: Any, Mode: Any, Flags: Any}
			for _, there := range []Node{now, beneath} {
				if there.Type == Link {
					n.UID, n.GID, n.Xattrs = there.UID, there.GID, there.Xattrs
					break
				}
			}
			return n, nil
		},
	},
}
