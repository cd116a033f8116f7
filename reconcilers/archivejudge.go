package reconcilers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golem/scrolls"
	"golem/state"
)

// archiveTold is what a turn does for one glyph, as it is told: names inside the
// directory.
type archiveTold struct {
	files, dirs, same int // of the archive; same: files that are so already
	size              int64
	fresh, changed    []string // files that are made, and golem's own that change
	replaced          []string // found ones
	gone, restored    []string // files that the archive no longer has
	left, handed      []string // the same, where they stay, and where another glyph has them now
	madeDirs, goneDirs,
	dirMeta []string
	drift []string // what somebody else did
}

// count gathers what is told about a glyph; old are the keys that it stands for now.
func (k *archiveWork) count(g *scrolls.Glyph, old ...scrolls.Key) *archiveTold {
	a := &archiveTold{}
	for _, p := range k.order {
		name := below(k.r.Resource, p.abs)
		switch {
		case p.want != nil && p.by == g:
			a.wanted(p, name)
		case p.want == nil && p.was != nil && slices.Contains(old, p.was.Key):
			a.released(p, name)
		}
	}
	return a
}

// wanted counts what the turn does to one path that the archive has.
func (a *archiveTold) wanted(p *archivePath, name string) {
	if name == "" {
		name = "the directory itself"
	}
	if p.want.Type == Dir {
		if name != "the directory itself" {
			a.dirs++
		}
		switch {
		case !p.changes():
		case p.now.Type == Dir:
			a.dirMeta = append(a.dirMeta, name)
			a.drift = append(a.drift, fmt.Sprintf("%s has mode %04o", quote(name), p.now.Mode))
		default:
			a.madeDirs = append(a.madeDirs, name)
			a.drift = append(a.drift, quote(name)+" is gone")
		}
		return
	}
	a.files++
	a.size += p.want.Size
	switch {
	case !p.changes():
		a.same++
	case p.old == nil && p.now.Type != Absent:
		a.replaced = append(a.replaced, name)
	case p.now.Type == Absent:
		a.fresh = append(a.fresh, name)
	default:
		a.changed = append(a.changed, name)
	}
	if p.changes() {
		a.drift = append(a.drift, p.driftText(name))
	}
}

// driftText says what somebody else did to a file of the archive.
func (p *archivePath) driftText(name string) string {
	switch why := differs(p.now, p.to); {
	case p.now.Type == Absent:
		return quote(name) + " is gone"
	case why == "type":
		return fmt.Sprintf("%s is a %s", quote(name), p.now.Type)
	case why == "mode":
		return fmt.Sprintf("%s has mode %04o", quote(name), p.now.Mode)
	case why == "bytes", why == "target":
		return quote(name) + " was changed by hand"
	default:
		return quote(name) + " has another " + why
	}
}

func (a *archiveTold) released(p *archivePath, name string) {
	switch {
	case p.old.Type == Dir && p.now.Type == Dir && p.to.Type == Absent:
		a.goneDirs = append(a.goneDirs, name)
	case p.old.Type == Dir:
	case p.handed:
		a.handed = append(a.handed, name)
	case p.stays:
		a.left = append(a.left, name)
	case !p.changes():
	case p.to.Type == Absent:
		a.gone = append(a.gone, name)
	default:
		a.restored = append(a.restored, name)
	}
}

// acts says whether anything changes for the glyph.
func (a *archiveTold) acts() bool {
	for _, names := range [][]string{a.fresh, a.changed, a.replaced, a.gone, a.restored, a.madeDirs, a.goneDirs, a.dirMeta} {
		if len(names) > 0 {
			return true
		}
	}
	return false
}

// judge works out each glyph's op, and how it is told.
func (k *archiveWork) judge() {
	k.t.Noops = nil
	var drops []scrolls.Key
	for _, key := range slices.Sorted(maps.Keys(k.r.Drop)) {
		if !k.r.Moves[key] {
			drops = append(drops, key)
		}
	}
	for _, g := range k.r.Set {
		switch l := k.layer(g.Key); {
		case l == nil && len(drops) > 0: // the next version, by another file name
			k.t.Step.Glyphs = append(k.t.Step.Glyphs, state.StepGlyph{
				Op: state.Remove, Key: drops[0], CID: CID(k.r.Drop[drops[0]]), Old: k.r.Drop[drops[0]], Leaf: k.r.Leaf,
				Reason: "another glyph takes its place",
			})
			k.judgeReplace(g, k.r.Drop[drops[0]], drops[0])
			drops = drops[1:]
		case l == nil:
			k.judgeInstall(g)
		case CID(l.Glyph) != CID(g):
			k.judgeReplace(g, l.Glyph, g.Key)
		default:
			k.judgeRepair(g, l.Glyph)
		}
	}
	for _, key := range drops {
		k.judgeRemove(key)
	}
}

// files is how many files something is, in words.
func files(n int) string { return number(n, "file", "files") }

func number(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// brief says what an archive holds.
func (a *archiveTold) brief() string {
	text := files(a.files)
	if a.dirs > 0 {
		text += " and " + number(a.dirs, "directory", "directories")
	}
	return text + ", " + bytesText(a.size)
}

func (k *archiveWork) judgeInstall(g *scrolls.Glyph) {
	a := k.count(g)
	c := Change{Effect: EffectWrite, After: k.view(g, a), Reason: a.brief()}
	if n := len(a.replaced); n > 0 {
		c.Reason += fmt.Sprintf("; replaces %s not made by golem (%s); what was there is kept", files(n), shownNames(a.replaced))
	}
	if a.same > 0 {
		c.Reason += fmt.Sprintf("; %d of the files are so already", a.same)
	}
	if !a.acts() {
		c.Effect, c.Reason = EffectRecord, a.brief()+"; it is so already, nothing to change"
	}
	k.t.part(g.Key, nil, g, state.Install, c, a.acts())
}

// judgeReplace tells of an archive, or its options, that takes the place of another.
func (k *archiveWork) judgeReplace(g, old *scrolls.Glyph, key scrolls.Key) {
	a := k.count(g, key)
	c := Change{Effect: EffectWrite, Before: k.viewOf(old), After: k.view(g, a)}
	var parts []string
	for _, part := range []struct {
		names []string
		one   string
	}{
		{a.fresh, "new"},
		{a.changed, "changed"},
		{a.replaced, "not made by golem and replaced, what was there is kept"},
		{a.gone, "removed"},
		{a.restored, "put back as found"},
		{a.left, "left alone"},
		{a.handed, "handed over to what declares them now"},
	} {
		if n := len(part.names); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", n, part.one, shownNames(part.names)))
		}
	}
	if a.same > 0 {
		parts = append(parts, fmt.Sprintf("%d as before", a.same))
	}
	if n := len(a.madeDirs) + len(a.dirMeta) + len(a.goneDirs); n > 0 {
		parts = append(parts, number(n, "directory", "directories")+" with them")
	}
	c.Reason = "files: " + strings.Join(parts, ", ") + k.keepsText()
	if !a.acts() {
		c.Effect, c.Reason = EffectRecord, "the host is so already; nothing to change"
	}
	k.t.part(g.Key, old, g, state.Replace, c, a.acts())
}

func (k *archiveWork) judgeRepair(g, old *scrolls.Glyph) {
	a := k.count(g, g.Key)
	if !a.acts() || k.r.Blind {
		k.t.Noops = append(k.t.Noops, g.Key)
		return
	}
	c := Change{Effect: EffectWrite, Drift: true, Before: k.viewOf(old), After: k.view(g, a)}
	c.Reason = fmt.Sprintf("drifted: %s", first(a.drift))
	if len(a.drift) > 1 {
		c.Reason += fmt.Sprintf("; %d of its %d paths", len(a.drift), a.files+a.dirs)
	}
	c.Reason += k.keepsText()
	k.t.part(g.Key, old, g, state.Repair, c, true)
}

// first lists what somebody did, the first few.
func first(told []string) string {
	const most = 3
	text := strings.Join(told[:min(len(told), most)], ", ")
	if more := len(told) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// keepsText says how many files that were changed by hand are kept, of those that the
// turn displaces.
func (k *archiveWork) keepsText() string {
	if n := len(k.t.Keeps); n > 0 {
		return fmt.Sprintf("; %s changed by hand: kept first", files(n))
	}
	return ""
}

func (k *archiveWork) judgeRemove(key scrolls.Key) {
	g := k.r.Drop[key]
	a := k.count(nil, key)
	c := Change{Effect: EffectDelete, Before: k.viewOf(g), After: k.names(map[string]any{"path": k.r.Resource}, a)}
	var parts []string
	if n := len(a.gone); n > 0 {
		parts = append(parts, files(n)+" removed")
	}
	if n := len(a.restored); n > 0 {
		parts = append(parts, fmt.Sprintf("%d put back as found (%s)", n, shownNames(a.restored)))
		c.Effect = EffectRestore
	}
	if n := len(a.goneDirs); n > 0 {
		parts = append(parts, number(n, "directory", "directories")+" removed")
	}
	if n := len(a.left); n > 0 {
		parts = append(parts, fmt.Sprintf("%d left alone (%s)", n, shownNames(a.left)))
	}
	if n := len(a.handed); n > 0 {
		parts = append(parts, fmt.Sprintf("%d handed over to what declares them now (%s)", n, shownNames(a.handed)))
	}
	c.Reason = strings.Join(parts, ", ") + k.keepsText()
	if !a.acts() {
		c.Effect, c.Reason = EffectForget, "nothing of it is golem's to take away"
		if len(a.left)+len(a.handed) == 0 {
			c.Reason = "it is gone already"
		}
	}
	k.t.part(key, g, nil, state.Remove, c, a.acts())
}

// tell is judge for archives that are not here yet.
func (k *archiveWork) tell(reason func(*scrolls.Glyph) string) {
	for _, g := range k.r.Set {
		l := k.layer(g.Key)
		switch {
		case l == nil:
			k.t.part(g.Key, nil, g, state.Install, Change{Effect: EffectWrite, Reason: reason(g), After: k.viewOf(g)}, true)
		case CID(l.Glyph) != CID(g):
			k.t.part(g.Key, l.Glyph, g, state.Replace, Change{Effect: EffectWrite, Reason: reason(g), Before: k.viewOf(l.Glyph), After: k.viewOf(g)}, true)
		default:
			k.t.Noops = append(k.t.Noops, g.Key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(k.r.Drop)) {
		if !k.r.Moves[key] {
			g := k.r.Drop[key]
			k.t.part(key, g, nil, state.Remove, Change{Effect: EffectDelete, Reason: "its files go, but those that the new archive has", Before: k.viewOf(g)}, true)
		}
	}
}

// viewOf is a glyph for JSON.
func (k *archiveWork) viewOf(g *scrolls.Glyph) map[string]any {
	return map[string]any{"path": k.r.Resource, "sha256": archiveSum(g.Attrs)}
}

// view is a glyph for JSON with what the turn does for it, by name.
func (k *archiveWork) view(g *scrolls.Glyph, a *archiveTold) map[string]any {
	v := k.viewOf(g)
	v["files"], v["directories"], v["bytes"] = a.files, a.dirs, a.size
	return k.names(v, a)
}

func (k *archiveWork) names(v map[string]any, a *archiveTold) map[string]any {
	for word, names := range map[string][]string{
		"made": a.fresh, "changed": a.changed, "replaced": a.replaced, "removed": a.gone, "restored": a.restored, "left": a.left, "handed_over": a.handed,
		"made_directories": a.madeDirs, "removed_directories": a.goneDirs, "changed_directories": a.dirMeta,
	} {
		if len(names) > 0 {
			shown := make([]string, len(names))
			for i, name := range names {
				shown[i] = strings.ToValidUTF8(name, "\uFFFD")
			}
			v[word] = shown
		}
	}
	if len(a.drift) > 0 {
		v["drift"] = a.drift
	}
	return v
}
