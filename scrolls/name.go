package scrolls

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// CheckName says why something cannot be a lineage's name; nil: it can.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("%q is not a name. %s", name, nameRule)
	}
	return nil
}

// validName is what a lineage may be called.
var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// name finds the lineage's name: the flag's, the scroll's, or the directory's. It says
// whether one is written in the scroll.
func (l *loader) name(root *hclsyntax.Body) (written bool) {
	for _, key := range sortedAttrs(root) {
		attr := root.Attributes[key]
		bare, _, twice := strings.Cut(key, "\x00")
		switch {
		case twice:
			l.clash(attr.NameRange, root.Attributes[bare].NameRange, "Argument written twice", fmt.Sprintf("%q is written in another file of this scroll too. Keep one.", bare))
		case bare == "name":
			written = true
			l.writtenName(attr)
		default:
			l.fail("Unsupported argument", "At the top of a scroll only name is an argument."+didYouMean(bare, []string{"name"}), attr.NameRange)
		}
	}
	if l.o.Name != "" {
		l.s.Name = l.o.Name
		if !validName.MatchString(l.o.Name) {
			l.fail("Name is not valid", fmt.Sprintf("%q, from --name, is not a name. %s", l.o.Name, nameRule), top(root))
		}
		return written
	}
	if written {
		return true
	}
	l.s.Defaulted = true
	l.s.Name = strings.TrimSuffix(filepath.Base(l.s.Source), ".hcl")
	if !validName.MatchString(l.s.Name) {
		l.fail("Name is missing", fmt.Sprintf("%q, after which the scroll would be named, is not a name. Write name = \"…\" at the top. %s", l.s.Name, nameRule), top(root))
	}
	return false
}

const nameRule = "A name has letters, digits, \".\", \"_\" and \"-\", begins with a letter or digit, and is at most 64 long."

func (l *loader) writtenName(attr *hclsyntax.Attribute) {
	value, ok := l.value(attr.Expr, l.ctx)
	if !ok {
		return
	}
	if value.IsMarked() {
		l.fail("Name is sensitive", "A name is shown everywhere, so it cannot come from a sensitive value.", attr.Expr.Range())
		return
	}
	if value.IsNull() || value.Type() != cty.String || !validName.MatchString(value.AsString()) {
		l.fail("Name is not valid", nameRule, attr.Expr.Range())
		return
	}
	l.s.Name = value.AsString()
}
