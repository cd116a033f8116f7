package reconcilers

import (
	"context"
	"fmt"
)

// lost says what goes with golem's own.
func (k *containerTurn) lost() string {
	if k.now != nil {
		if n := k.now.anonymous(); n == 1 {
			return "its writable layer and its anonymous volume are lost"
		} else if n > 1 {
			return fmt.Sprintf("its writable layer and its %d anonymous volumes are lost", n)
		}
	}
	return "its writable layer is lost"
}

// back is what undeclaring leaves of the container.
func (containerOwner) back(ctx context.Context, w *World, v view[containerState]) (goal[containerState], error) {
	k, err := turnOf(ctx, w, v)
	if err != nil {
		return goal[containerState]{}, err
	}
	var g goal[containerState]
	found := v.found
	mine := k.own()
	switch adopted := v.left.Make == "" && v.now.ID != "" && v.now.ID == found.ID; {
	case adopted && !v.Record.Layers[0].Changed:
		return goal[containerState]{forget: true, reason: "it was there before golem; left as it is"}, nil
	case adopted:
		to := v.now
		to.Running, to.Paused, to.Networks, to.Name = found.Running, found.Paused, lacking(v.now.Networks, k.put()), ""
		k.inPlace(to)
		k.g.effect, k.g.reason = EffectRestore, "it was there before golem: "+found.word()+" again, as it was found"
		return k.g, nil
	case v.now.there() && !mine:
		return goal[containerState]{forget: true, reason: "golem did not make the container that is there now; left as it is"}, nil
	case found.ID != "" && v.now.Aside == found.ID:
		g.to, g.effect, g.wild = found, EffectRestore, true
		g.to.Aside, g.to.AsideRuns = "", false
		g.reason = fmt.Sprintf("golem's own is removed, and %s gets its name back", asideName(k.name))
		if found.Running {
			g.reason += " and is started"
		}
	case found.ID != "":
		g.to, g.effect = containerState{Aside: v.now.Aside, AsideRuns: v.now.AsideRuns}, EffectDelete
		g.reason = fmt.Sprintf("removed: golem made it. The container found (%s) is not there any more", shortID(found.ID))
	default:
		g.to, g.effect = containerState{Aside: v.now.Aside, AsideRuns: v.now.AsideRuns}, EffectDelete
		g.reason = "removed: golem made it"
		if v.now.Running {
			g.reason = "stopped and removed: golem made it"
		}
	}
	if mine {
		if volumes := volumesOf(v.glyph); volumes != "" {
			g.reason += "; what is in " + volumes + " stays"
		}
		g.irreversible = []string{k.lost()}
	} else if g.effect == EffectDelete {
		g.reason = "it is gone already"
	}
	return g, nil
}

// stays implements stayer.
func (containerOwner) stays(m motion[containerState], whole bool) string {
	if !whole || m.to.Make == "" || m.to.Make == m.from.Make {
		return ""
	}
	return "it is made anew: the writable layer of the old one is lost"
}
