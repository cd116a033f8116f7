package plan

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"golem/scrolls"
	"golem/state"
)

// A Choice says which part of a scroll a run is about, by keys, patterns of keys, and
// leaves with what lies beneath them. Nil is all of it.
type Choice struct {
	Targets  []string // --target; none: everything
	Excludes []string // --exclude
}

// MakeChoice is the choice that flags make; nil where there are none.
func MakeChoice(targets, excludes []string) *Choice {
	if len(targets)+len(excludes) == 0 {
		return nil
	}
	return &Choice{Targets: targets, Excludes: excludes}
}

// An UnmatchedError says that a choice names what there is not.
type UnmatchedError struct {
	Flag, Pattern string
	Like          string // what was meant most likely; "" for nothing
}

func (e *UnmatchedError) Error() string {
	return fmt.Sprintf("%s %q: no glyph in the scroll or in force is called so, and no leaf", e.Flag, e.Pattern)
}

// Hint says what can be named.
func (e *UnmatchedError) Hint() string {
	if e.Like != "" {
		return "did you mean " + e.Like + "? golem state list shows what is in force"
	}
	return `name a key ("file:/etc/motd"), a pattern of keys ("file:/etc/nginx/*"; "/**" takes all beneath) or a leaf ("base"); golem state list shows what is in force`
}

// errNothingChosen says that a choice leaves nothing.
var errNothingChosen = errors.New("--target and --exclude: together they leave nothing to do")

// A named is one glyph that a choice may name: one that is declared, or in force.
type named struct {
	key  scrolls.Key
	leaf string
}

// Picks are the keys of a lineage that a run is about; nil stands for all of them.
type Picks map[scrolls.Key]bool

// Has says whether the run is about a key.
func (p Picks) Has(key scrolls.Key) bool { return p == nil || p[key] }

// Of are those of some glyphs that the run is about.
func (p Picks) Of(glyphs []*scrolls.Glyph) []*scrolls.Glyph {
	if p == nil {
		return glyphs
	}
	return slices.DeleteFunc(slices.Clone(glyphs), func(g *scrolls.Glyph) bool { return !p[g.Key] })
}

// Pick finds what a choice names in a scroll (nil is the empty one), and of what is in
// force in the lineage.
func (c *Choice) Pick(scroll *scrolls.Scroll, lineage string, applied []state.Applied) (Picks, error) {
	if c == nil {
		return nil, nil
	}
	all := namedBy(scroll, lineage, applied)
	var leaves []string
	if scroll != nil {
		for _, leaf := range scroll.Leaves {
			leaves = append(leaves, leaf.Path)
		}
	}
	for _, flag := range []struct {
		name     string
		patterns []string
	}{{"--target", c.Targets}, {"--exclude", c.Excludes}} {
		for _, pattern := range flag.patterns {
			known := slices.ContainsFunc(all, func(n named) bool { return n.matches(pattern) }) ||
				slices.ContainsFunc(leaves, func(leaf string) bool { return inLeaf(leaf, pattern) })
			if known && pattern != "" {
				continue
			}
			if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
				return nil, fmt.Errorf("%s %q: it is not a pattern", flag.name, pattern)
			}
			return nil, &UnmatchedError{flag.name, pattern, likeliest(pattern, all, leaves)}
		}
	}
	picks := Picks{}
	for _, n := range all {
		if c.picks(n) {
			picks[n.key] = true
		}
	}
	c.pair(picks, scroll, all)
	if len(picks) == 0 {
		return nil, errNothingChosen
	}
	return picks, nil
}

// likeliest is what a pattern that matches nothing stands for most likely; "" for nothing.
func likeliest(pattern string, all []named, leaves []string) string {
	known := slices.Clone(leaves)
	for _, n := range all {
		known = append(known, string(n.key), n.leaf)
	}
	return scrolls.Likeliest(pattern, known)
}

// picks says whether any of some glyphs is chosen, and none excluded.
func (c *Choice) picks(of ...named) bool {
	names := func(patterns []string) bool {
		return slices.ContainsFunc(of, func(n named) bool { return slices.ContainsFunc(patterns, n.matches) })
	}
	return (len(c.Targets) == 0 || names(c.Targets)) && !names(c.Excludes)
}

// pair keeps a glyph and the key that it takes the record over from (moved_from) together:
// who names one names both.
func (c *Choice) pair(picks Picks, scroll *scrolls.Scroll, all []named) {
	if scroll == nil {
		return
	}
	at := map[scrolls.Key]named{}
	for _, n := range all {
		at[n.key] = n
	}
	for _, g := range scroll.Glyphs() {
		old, inForce := at[g.MovedFrom]
		if g.MovedFrom == "" || !inForce {
			continue
		}
		for _, key := range []scrolls.Key{g.Key, old.key} {
			if delete(picks, key); c.picks(at[g.Key], old) {
				picks[key] = true
			}
		}
	}
}

// namedBy lists what a choice may name: the scroll's glyphs in source order, then what is
// in force and not declared any more, in the order of application.
func namedBy(scroll *scrolls.Scroll, lineage string, applied []state.Applied) []named {
	var all []named
	declared := map[scrolls.Key]bool{}
	if scroll != nil {
		for _, leaf := range scroll.Leaves {
			for _, g := range leaf.Glyphs {
				declared[g.Key] = true
				all = append(all, named{g.Key, leaf.Path})
			}
		}
	}
	for _, a := range applied {
		if a.Lineage == lineage && !declared[a.Key] {
			all = append(all, named{a.Key, a.Leaf})
		}
	}
	return all
}
