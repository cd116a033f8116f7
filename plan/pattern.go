package plan

import (
	"path"
	"strings"

	"golem/reconcilers"
)

// matches says whether a pattern names the glyph: by its key, as a trigger's does, or by
// its leaf.
func (n named) matches(pattern string) bool {
	if (reconcilers.Trigger{On: []string{pattern, literal(pattern)}}).Matches(n.key) {
		return true
	}
	return inLeaf(n.leaf, pattern)
}

// inLeaf says whether a leaf is the one that a pattern names, or lies beneath it. A step
// without a key names every instance of a block with for_each.
func inLeaf(leaf, pattern string) bool {
	for at := leaf; at != ""; at = parentLeaf(at) {
		if at == pattern {
			return true
		}
		if ok, err := path.Match(pattern, at); err == nil && ok {
			return true
		}
	}
	has, wants := stepsOf(leaf), stepsOf(pattern)
	if len(has) < len(wants) {
		return false
	}
	for i, want := range wants {
		if !want.names(has[i]) {
			return false
		}
	}
	return true
}

// A leafStep is one step of a leaf's path: a block, and the key of its instance with the
// brackets; none has "".
type leafStep struct{ block, key string }

// names says whether a step of a pattern names a leaf's. A star stands for any key, also
// one that holds a slash.
func (s leafStep) names(other leafStep) bool {
	if ok, err := path.Match(s.block, other.block); s.block != other.block && (err != nil || !ok) {
		return false
	}
	if s.key == "" || s.key == other.key {
		return true
	}
	flat := strings.NewReplacer("/", "\x00")
	ok, err := path.Match(flat.Replace(literal(s.key)), flat.Replace(other.key))
	return err == nil && ok
}

// stepsOf are the steps of a leaf's path, or of a pattern of one.
func stepsOf(path string) []leafStep {
	var all []leafStep
	for _, step := range leafSteps(path) {
		block, _, _ := strings.Cut(step, "[")
		all = append(all, leafStep{block, step[len(block):]})
	}
	return all
}

// literal is a pattern whose brackets stand for themselves, as in the key of a member.
func literal(pattern string) string {
	return strings.NewReplacer(`[`, `\[`, `]`, `\]`).Replace(pattern)
}
