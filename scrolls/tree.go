package scrolls

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/agext/levenshtein"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// reserved are words that the language has, or will have, and that this version does
// not enact.
var reserved = map[string]bool{
	"data": true, "hook": true, "report": true,
}

// rootBlocks may stand only at the top of a scroll or a module.
var rootBlocks = map[string]bool{"variable": true, "locals": true, "output": true}

// body reads one scroll of the tree: its policy, and either its glyphs or the scrolls
// in it. path is its name below the root, "" for the root itself.
func (l *loader) body(body *hclsyntax.Body, path string, policy Policy) {
	policy = l.policyOf(body, policy)
	l.s.Policies[path] = policy
	var glyphs, checks, scrolls []*hclsyntax.Block
	for _, block := range body.Blocks {
		switch {
		case block.Type == "scroll":
			scrolls = append(scrolls, block)
		case block.Type == "check":
			checks = append(checks, block)
		case block.Type == "policy":
		case block.Type == "adopt":
			l.adopts(block)
		case rootBlocks[block.Type] && body == l.in.body:
		case rootBlocks[block.Type]:
			l.fail("Block in the wrong place", fmt.Sprintf("A %s block stands at the top of a scroll or a module, not in a scroll block.", block.Type), block.DefRange())
		case reserved[block.Type]:
			l.fail("Not available in this version", fmt.Sprintf("%q is a word of the language that this golem does not enact yet.", block.Type), block.DefRange())
		case l.kinds[block.Type] != nil:
			glyphs = append(glyphs, block)
		default:
			l.fail("Unsupported block type", fmt.Sprintf("There is no kind of glyph called %q.%s", block.Type, l.meantKind(block.Type)), block.DefRange())
		}
	}
	if len(glyphs) > 0 && len(scrolls) > 0 {
		l.mixed(glyphs[0], scrolls[0])
		return
	}
	if len(glyphs) > 0 {
		l.leaf(body, glyphs, checks, path, policy)
		return
	}
	for _, block := range checks {
		l.fail("Check without a leaf", "A check says when a leaf's glyphs are well; it stands beside them.", block.DefRange())
	}
	l.scrolls(scrolls, path, policy)
}

// mixed refuses a scroll that holds both glyphs and scrolls, and shows one of each.
func (l *loader) mixed(glyph, scroll *hclsyntax.Block) {
	l.clash(scroll.DefRange(), glyph.DefRange(), "Glyphs and scrolls mixed",
		"A scroll holds either glyphs or further scrolls, never both. Put the glyphs into a scroll block of their own.")
}

// meantKind offers the likeliest block, or says what kinds there are.
func (l *loader) meantKind(given string) string {
	if instead := otherBlocks[given]; instead != "" {
		return other(otherBlocks, given)
	}
	kinds := slices.Sorted(maps.Keys(l.kinds))
	if given == "import" {
		return ` What is there is taken over with adopt { key = "file:/etc/motd" }.`
	}
	if meant := didYouMean(given, append(kinds, "scroll", "policy", "variable", "locals", "adopt")); meant != "" {
		return meant
	}
	return fmt.Sprintf(" The kinds are %s.", strings.Join(kinds, ", "))
}

// scrolls reads the scrolls in a scroll.
func (l *loader) scrolls(blocks []*hclsyntax.Block, path string, policy Policy) {
	first := map[string]*hclsyntax.Block{}
	for _, block := range blocks {
		label, ok := l.label(block)
		if !ok {
			continue
		}
		if strings.Contains(label, "/") {
			l.fail("Label is not valid", "A scroll's label is one step of its leaves' paths, and cannot hold a \"/\".", block.LabelRanges[0])
			continue
		}
		if strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsPrint(r) }) {
			l.fail("Label is not valid", "A scroll's label is shown everywhere, and cannot hold what is not printable.", block.LabelRanges[0])
			continue
		}
		if other := first[label]; other != nil {
			l.clash(block.DefRange(), other.DefRange(), "Duplicate scroll",
				fmt.Sprintf("There is a scroll %q here already. Give one of them another label.", label))
			continue
		}
		first[label] = block
		l.checkCall(block)
		all, known := l.in.repeats[join(path, label)]
		if !known {
			all = l.instances(block)
		}
		for _, i := range all {
			if !i.absent && !l.full {
				l.scroll(block, join(path, i.keyed(label)), policy, i.ctx)
			}
		}
	}
}

// checkCall refuses what a scroll block cannot hold: arguments without a source, and
// glyphs and scrolls with one.
func (l *loader) checkCall(block *hclsyntax.Block) {
	if source := block.Body.Attributes["source"]; source != nil {
		for _, inner := range block.Body.Blocks {
			if inner.Type != "policy" {
				l.clash(inner.DefRange(), source.NameRange, "Block in the wrong place",
					"What a scroll block with a source declares stands in the files of its module; beside the module's inputs it holds a policy block at most.")
			}
		}
		return
	}
	for _, name := range sortedAttrs(block.Body) {
		if !slices.Contains(callArguments, name) {
			l.fail("Unsupported argument", fmt.Sprintf("A scroll block has no argument %q; it holds glyphs or scrolls, and inputs only beside the source of a module.%s%s",
				name, other(otherArguments, name), didYouMean(name, callArguments)), block.Body.Attributes[name].NameRange)
		}
	}
}

// scroll reads one instance of a scroll block: what stands in it, or its module.
func (l *loader) scroll(block *hclsyntax.Block, path string, policy Policy, ctx *hcl.EvalContext) {
	defer l.enter(l.in, ctx)()
	if block.Body.Attributes["source"] == nil {
		l.body(block.Body, path, policy)
		return
	}
	module := l.in.modules[path]
	if module == nil {
		return // the mistake is noted
	}
	policy = l.policyOf(block.Body, policy)
	defer l.enter(module, module.ctx)()
	l.body(module.body, path, policy)
}

// label is a block's only label.
func (l *loader) label(block *hclsyntax.Block) (string, bool) {
	switch {
	case len(block.Labels) == 0:
		l.fail("Label is missing", fmt.Sprintf("A %s block has one label: %s \"…\" { }.", block.Type, block.Type), block.DefRange())
		return "", false
	case len(block.Labels) > 1:
		l.fail("Too many labels", fmt.Sprintf("A %s block has one label.", block.Type), block.LabelRanges[1])
		return "", false
	case block.Labels[0] == "":
		l.fail("Label is empty", fmt.Sprintf("A %s block's label must say something.", block.Type), block.LabelRanges[0])
		return "", false
	}
	return block.Labels[0], true
}

// leaf reads the glyphs of one leaf.
func (l *loader) leaf(body *hclsyntax.Body, blocks, checks []*hclsyntax.Block, path string, policy Policy) {
	leaf := &Leaf{Path: path, Policy: policy, At: body.SrcRange}
	if path == "" {
		leaf.Path = l.s.Name // the only leaf of a flat scroll
	}
	for _, block := range blocks {
		for _, g := range l.glyphs(block) {
			g.Leaf = leaf.Path
			leaf.Glyphs = append(leaf.Glyphs, g)
		}
	}
	leaf.Checks = l.checksOf(checks, leaf.Path)
	if len(leaf.Glyphs) > 0 { // else nothing of it is declared
		l.s.Leaves = append(l.s.Leaves, leaf)
	}
}

// checksOf reads a leaf's checks. Two that say the same are one; two that ask the same
// thing for different answers are a mistake.
func (l *loader) checksOf(blocks []*hclsyntax.Block, leaf string) []*Glyph {
	var all []*Glyph
	for _, block := range blocks {
		label, ok := l.label(block)
		if !ok {
			continue
		}
		kind := l.checks[label]
		if kind == nil {
			known := slices.Sorted(maps.Keys(l.checks))
			l.fail("Unknown check", fmt.Sprintf("There is no check %q; there are %s.%s", label, strings.Join(known, ", "), didYouMean(label, known)), block.LabelRanges[0])
			continue
		}
		for _, g := range l.repeated(block, kind, label) {
			g.Leaf = leaf
			all = l.addCheck(all, g, kind)
		}
	}
	return all
}

// addCheck adds a check to a leaf's, unless it is there already.
func (l *loader) addCheck(all []*Glyph, g *Glyph, kind *kindInfo) []*Glyph {
	at := slices.IndexFunc(all, func(o *Glyph) bool { return o.Key == g.Key })
	if at < 0 {
		return append(all, g)
	}
	other := all[at]
	if CID(kind.Kind, g) != CID(kind.Kind, other) {
		l.clash(g.At, other.At, "Duplicate check", fmt.Sprintf("The check %s stands twice in the leaf %q, with different contents. Remove one of the two.", g.Key, g.Leaf))
	}
	other.Secret = union(other.Secret, g.Secret)
	return all
}

// checkKeys refuses a key that stands twice, and two glyphs that each want to be the
// whole object at one path. Identical twins in one leaf are one glyph.
func (l *loader) checkKeys() {
	byKey := map[Key]*Glyph{}
	bases := map[string]*Glyph{}
	for _, leaf := range l.s.Leaves {
		leaf.Glyphs = slices.DeleteFunc(leaf.Glyphs, func(g *Glyph) bool {
			other := byKey[g.Key]
			if other == nil {
				byKey[g.Key] = g
				l.checkBase(g, bases)
				return false
			}
			same := CID(l.kinds[g.Kind].Kind, g) == CID(l.kinds[other.Kind].Kind, other)
			if same && other.Leaf == g.Leaf {
				other.Secret = union(other.Secret, g.Secret) // what one hides, the other must not show
				return true
			}
			if g.At == other.At {
				l.fail("Duplicate glyph", duplicateDetail(g, other, same), g.At)
			} else {
				l.clash(g.At, other.At, "Duplicate glyph", duplicateDetail(g, other, same))
			}
			return false
		})
	}
}

func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

func duplicateDetail(g, other *Glyph, same bool) string {
	switch {
	case g.At == other.At && g.Each != other.Each:
		return fmt.Sprintf("for_each makes %s for the keys %q and %q. Let what names it hold each.key.", g.Key, other.Each, g.Each)
	case g.At == other.At:
		return fmt.Sprintf("The leaves %q and %q, which this block is in, both declare %s. Let what names it hold what tells them apart.", other.Leaf, g.Leaf, g.Key)
	}
	if same {
		return fmt.Sprintf("%s is declared in the leaf %q too. A key belongs to one leaf: remove one of the two.", g.Key, other.Leaf)
	}
	return fmt.Sprintf("%s is declared twice, with different contents. Remove one of the two.", g.Key)
}

func (l *loader) checkBase(g *Glyph, bases map[string]*Glyph) {
	kind := l.kinds[g.Kind]
	if kind.Surface == nil {
		return
	}
	path, base := kind.Surface(g.Attrs)
	if !base {
		return
	}
	if other := bases[path]; other != nil {
		l.clash(g.At, other.At, "Two glyphs for one path",
			fmt.Sprintf("A %s and a %s both say what %q is. Remove one of the two.", other.Kind, g.Kind, path))
		return
	}
	bases[path] = g
}

// clash notes two places that cannot stand together.
func (l *loader) clash(at, also Place, summary, detail string) {
	p := PlacedProblem{At: at, Also: &also, Problem: Problem{Summary: summary, Detail: detail}}
	l.diags = append(l.diags, p.diagnostics()...)
}

// didYouMean is a sentence that offers the likeliest of the known words, or "".
func didYouMean(given string, known []string) string {
	if best := Likeliest(given, known); best != "" {
		return fmt.Sprintf(" Did you mean %q?", best)
	}
	return ""
}

// Likeliest is the one of the known words that a mistyped one most likely stands for, or "".
// Of a key the kind may be missing.
func Likeliest(given string, known []string) string {
	best, least := "", min(2, len(given)/2)+1
	for _, word := range slices.Sorted(slices.Values(known)) {
		if _, identity, ok := strings.Cut(word, ":"); ok && identity == given && given != "" {
			return word
		}
		d := levenshtein.Distance(given, word, nil)
		if d == 2 && swapped(given, word) || strings.EqualFold(given, word) {
			d = 1
		}
		if d < least {
			best, least = word, d
		}
	}
	return best
}

// swapped says whether two words differ by two neighbouring letters that changed places.
func swapped(a, b string) bool {
	for i := 1; i < len(a) && len(a) == len(b); i++ {
		if a[:i-1] == b[:i-1] && a[i-1] == b[i] && a[i] == b[i-1] && a[i+1:] == b[i+1:] {
			return true
		}
	}
	return false
}
