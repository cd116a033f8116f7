package reconcilers

import (
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"golem/scrolls"
)

// accessSort is the sort of golem's entries in access lists; a resource is a path and whose
// entry it is, as the scroll has them.
const accessSort = "access"

var accessKind = Kind{
	Sort: accessSort, shape: "access:PATH:user:USER` or `access:PATH:group:GROUP",
	Kind: scrolls.Kind{
		Name: "access", Version: 1, LabelAttr: "path",
		Doc: "What one user or group may do with a file or directory of somebody's, as an entry of its POSIX ACL. Golem adds and " +
			"takes back only this entry; it never makes or deletes the path, and touches neither data nor owner. An entry that " +
			"was there for the same user or group comes back when it is undeclared, the mask too, unless somebody set that since " +
			"(with chmod), and a path without an ACL has none again. The mask is made as wide as the entry needs, and no wider; " +
			"where other entries gain by that, the plan says so. An entry that somebody changed, took away or masked is repaired. On a " +
			"path that golem declares as a `file` or `directory`, its `mode` says what the file's own group may do, and the entry stands beside " +
			"that. A link is followed. With `recursive`, everything beneath is granted too: no links, nothing on other " +
			"file systems, and no file with a second name where others than root may write. What is made there later is granted " +
			"at the next apply, or at once with `default`. The file system has to keep ACLs.",
		Attrs: []scrolls.Attr{
			{Name: "path", Type: cty.String, Doc: "Where it is: an absolute, clean path. The label by default."},
			{Name: "user", Type: cty.String, Doc: "The user it is for, by name or number; this or `group`."},
			{Name: "group", Type: cty.String, Doc: "The group it is for, by name or number; this or `user`."},
			{
				Name: "perms", Type: cty.String, Required: true,
				Doc: "What is granted: `r`, `w` and `x`; `X` for `x` only on directories and on files that somebody may execute.",
			},
			{Name: "default", Type: cty.Bool, Default: "`false`", Doc: "Whether what is made in the directory later is granted, too: the entry stands in its default ACL as well."},
			{Name: "recursive", Type: cty.Bool, Default: "`false`", Doc: "Whether everything beneath is granted, too."},
		},
		Identity: func(a scrolls.Attrs) []string {
			what, who := granteeOf(a)
			return []string{str(a, "path"), what, who}
		},
		Check: checkAccess,
		Canonical: func(a scrolls.Attrs) scrolls.Attrs {
			c := lessAttrs(a)
			for _, attr := range []string{"default", "recursive"} {
				if c[attr] == false {
					delete(c, attr)
				}
			}
			return c
		},
	},
}

// granteeOf is whom a glyph is about: "user" or "group", and the name.
func granteeOf(a scrolls.Attrs) (what, who string) {
	if group, ok := a["group"].(string); ok {
		return "group", group
	}
	return "user", str(a, "user")
}

func checkAccess(a scrolls.Attrs) []scrolls.Problem {
	problems := checkPath("path", str(a, "path"))
	wrong := func(attr, summary, format string, args ...any) {
		problems = append(problems, scrolls.Problem{Attr: attr, Summary: summary, Detail: fmt.Sprintf(format, args...)})
	}
	_, user := a["user"]
	_, group := a["group"]
	switch what, who := granteeOf(a); {
	case user && group:
		wrong("group", "Granted to two", "Both user and group say whom it is for. Declare each on its own.")
	case !user && !group:
		wrong("", "Granted to nobody", "Write user = \"…\" or group = \"…\".")
	case who == "" || strings.ContainsAny(who, ":\n\x00"):
		wrong(what, "Not a name", "%q is no %s's name or number.", who, what)
	}
	perms := str(a, "perms")
	if perms == "" || strings.Trim(perms, "rwxX") != "" || strings.Contains(perms, "x") && strings.Contains(perms, "X") || repeats(perms) {
		wrong("perms", "Not permissions", "%q must be some of r, w and x, each once, like \"rx\"; X stands for x where somebody may execute.", perms)
	}
	return problems
}

func repeats(text string) bool {
	for i := range text {
		if strings.IndexByte(text[i+1:], text[i]) >= 0 {
			return true
		}
	}
	return false
}

// permsOf are the permissions that a glyph grants on a thing with some list.
func permsOf(g *scrolls.Glyph, dir bool, a acl) int {
	perm := 0
	for _, letter := range str(g.Attrs, "perms") {
		switch letter {
		case 'r':
			perm |= 4
		case 'w':
			perm |= 2
		case 'x':
			perm |= 1
		case 'X':
			if dir || a.mode(0)&0o111 != 0 {
				perm |= 1
			}
		}
	}
	return perm
}
