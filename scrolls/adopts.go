package scrolls

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// adoptArguments are those of an adopt block.
var adoptArguments = []string{"key", "for_each", "when"}

// An adoption is what one instance of an adopt block says: that the thing of a key is there,
// and that golem takes it over.
type adoption struct {
	key Key
	at  Place // of the key
}

// adopts reads an adopt block. What it names is looked for once all glyphs are known.
func (l *loader) adopts(block *hclsyntax.Block) {
	if len(block.Labels) > 0 {
		l.fail("Too many labels", "An adopt block has no label: its key says what is adopted.", block.LabelRanges[0])
	}
	for _, inner := range block.Body.Blocks {
		l.fail("Unsupported block type", "An adopt block has no blocks in it.", inner.DefRange())
	}
	for _, name := range sortedAttrs(block.Body) {
		if slices.Contains(adoptArguments, name) {
			continue
		}
		hint := didYouMean(name, adoptArguments)
		if name == "to" || name == "id" {
			hint = " A key says both which glyph it is and what on the host."
		}
		l.fail("Unsupported argument", fmt.Sprintf("An adopt block has no argument %q.%s", name, hint), block.Body.Attributes[name].NameRange)
	}
	attr := block.Body.Attributes["key"]
	if attr == nil {
		l.fail("Missing argument", `An adopt block needs the argument "key": the key of a glyph, like key = "file:/etc/motd".`, block.DefRange())
		return
	}
	for _, i := range l.instances(block) {
		if i.absent {
			continue
		}
		key, ok := l.adoptedKey(attr, i.ctx)
		if !ok {
			return // the next ones would say the same
		}
		l.adopted = append(l.adopted, adoption{key, attr.Expr.Range()})
	}
}

// adoptedKey evaluates the key of an adopt block.
func (l *loader) adoptedKey(attr *hclsyntax.Attribute, ctx *hcl.EvalContext) (Key, bool) {
	value, ok := l.value(attr.Expr, ctx)
	if !ok {
		return "", false
	}
	switch {
	case value.IsMarked():
		l.fail("Key is sensitive", "A key is shown everywhere, so it cannot come from a sensitive value.", attr.Expr.Range())
	case value.IsNull() || value.Type() != cty.String || !value.IsKnown():
		l.fail("Wrong type of value", fmt.Sprintf("The key of what is adopted is a text; %s is given.", whatIs(value)), attr.Expr.Range())
	default:
		return Key(value.AsString()), true
	}
	return "", false
}

// markAdopted marks the glyphs that adopt blocks name.
func (l *loader) markAdopted() {
	if len(l.adopted) == 0 {
		return
	}
	byKey := map[Key]*Glyph{}
	for _, g := range l.s.Glyphs() {
		byKey[g.Key] = g
	}
	for _, a := range l.adopted {
		g := byKey[a.key]
		switch {
		case g == nil:
			l.notDeclared(a, slices.Collect(maps.Keys(byKey)))
		case l.kinds[g.Kind].NoAdopt != "":
			l.fail("Cannot be adopted", l.kinds[g.Kind].NoAdopt, a.at)
		case g.Adopt && a.at == g.AdoptAt:
			l.fail("Adopted twice", fmt.Sprintf("for_each says %s for several of its keys. Let the key hold what tells them apart.", a.key), a.at)
		case g.Adopt:
			l.clash(a.at, g.AdoptAt, "Adopted twice", fmt.Sprintf("There is an adopt block for %s already. Remove one of the two.", a.key))
		default:
			g.Adopt, g.AdoptAt = true, a.at
		}
	}
}

// notDeclared says why no glyph has the key of an adopt block.
func (l *loader) notDeclared(a adoption, declared []Key) {
	keys := make([]string, len(declared))
	for i, key := range declared {
		keys[i] = string(key)
	}
	kind := a.key.Kind()
	switch {
	case len(a.key.Parts()) == 0:
		l.fail("Not a key", fmt.Sprintf("%q is not a key: that is a kind, a colon and what the host calls the thing, like \"file:/etc/motd\".%s", a.key, didYouMean(string(a.key), keys)), a.at)
	case l.kinds[kind] == nil:
		l.fail("Not a key", fmt.Sprintf("There is no kind of glyph called %q.%s", kind, l.meantKind(kind)), a.at)
	default:
		l.fail("Nothing declares it", fmt.Sprintf("An adopt block is about a glyph, and no glyph here has the key %s.%s Declare what is there; golem adopt prints how.", a.key, didYouMean(string(a.key), keys)), a.at)
	}
}
