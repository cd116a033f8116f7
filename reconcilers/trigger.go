package reconcilers

import (
	"context"
	"path"
	"strings"

	"golem/scrolls"
)

// A Trigger is what a glyph wants done once any of some keys changed.
type Trigger struct {
	Action string   // "reload", "restart"
	On     []string // keys, or patterns of keys as path.Match has them
}

// Triggers lists a glyph's triggers.
func Triggers(g *scrolls.Glyph) []Trigger {
	kind, ok := KindOf(g.Kind)
	if !ok || kind.triggers == nil {
		return nil
	}
	return kind.triggers(g)
}

// Matches says whether a change of a key pulls the trigger. A pattern that ends in
// "/**" takes everything below, too; "KIND:*" is every key of a kind.
func (t Trigger) Matches(key scrolls.Key) bool {
	for _, pattern := range t.On {
		if pattern == string(key) {
			return true
		}
		if kind, all := strings.CutSuffix(pattern, ":*"); all && !strings.Contains(kind, ":") && strings.HasPrefix(string(key), kind+":") {
			return true // a path's slashes, too
		}
		if below, deep := strings.CutSuffix(pattern, "/**"); deep && strings.HasPrefix(string(key), below+"/") {
			return true
		}
		if ok, err := path.Match(pattern, string(key)); err == nil && ok {
			return true
		}
	}
	return false
}

// checkTrigger says what is wrong with the spelling of a pattern of keys.
func checkTrigger(attr, pattern string) []scrolls.Problem {
	if kind, rest, ok := strings.Cut(pattern, ":"); !ok || kind == "" || rest == "" {
		return []scrolls.Problem{{
			Attr: attr, Summary: "Not a key",
			Detail: "\"" + pattern + "\" is not a key or a pattern of keys, like \"file:/etc/nginx/conf.d/*\".",
		}}
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return []scrolls.Problem{{
			Attr: attr, Summary: "Not a pattern", Detail: "\"" + pattern + "\" has a bracket that is not closed.",
		}}
	}
	return nil
}

// A Firer is a reconciler whose kinds have triggers.
type Firer interface {
	// Foretell says what firing would do to the host as the world has it; nil for
	// nothing.
	Foretell(w *World, g *scrolls.Glyph, resource, action string) (*UnitEffect, error)
	// Fire does it. It is no error if there is nothing to do.
	Fire(ctx context.Context, w *World, g *scrolls.Glyph, resource, action string) error
}

// A Flusher is a reconciler with something to do once after a leaf's changes, before
// anything is triggered: telling a manager to read what changed.
type Flusher interface {
	Flush(ctx context.Context, w *World) error
}

// Flush lets every reconciler do what the changes so far call for.
func Flush(ctx context.Context, w *World) error {
	for _, rec := range Reconcilers {
		if f, ok := rec.(Flusher); ok {
			if err := f.Flush(ctx, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// A UnitEffect is what becomes of one systemd unit.
type UnitEffect struct {
	Do     string // one of UnitVerbs
	Unit   string
	Key    scrolls.Key // the glyph it is about
	Reason string
	// Done is how a report tells it once it is done; "" for the verb and the reason.
	Done string
	// Along are the units that go the same way with it.
	Along []string
}

// UnitVerbs are the things that can become of a unit, the strongest first.
var UnitVerbs = []string{"stop", "restart", "start", "reload", "restore", "forget"}

// A Sight is what a turn saw, where it can be compared with what another saw.
type Sight interface {
	Same(other any) bool
}

// A Parted is a Sight of several parts.
type Parted interface {
	// Among says whether each part has its like in one of others.
	Among(others []any) bool
}

// Moved says whether what a fresh turn saw differs from what the approved plan saw.
func (t *Turn) Moved(planned *Turn) bool {
	now, ok := t.Seen.(Sight)
	return ok && planned.Seen != nil && !now.Same(planned.Seen)
}

// Same implements Sight.
func (n Node) Same(other any) bool {
	was, ok := other.(Node)
	return !ok || sameSight(n, was)
}
