package reconcilers

import "maps"

// Print is what a turn saw, in words that can be kept with a plan and compared with what
// another turn saw: nothing in them changes by itself, not by a reboot either.
func (t *Turn) Print() string { return sightText(t.Seen) }

// JointPrint is Print of what the turn's batch does together, where it is the first of it.
func (t *Turn) JointPrint() string { return sightText(t.Joint) }

// sightText spells what a turn saw, the same for the same sight; a sort that needs more than
// its JSON has a case here.
func sightText(seen any) string {
	switch seen := seen.(type) {
	case nil:
		return ""
	case Node:
		return string(encode(nodePrint(seen)))
	case Pkg:
		seen.Triple = ""
		return string(encode(seen))
	case processSight:
		nodes, running := map[string]Node{}, map[string]bool{}
		for name, n := range seen.now {
			nodes[name] = nodePrint(n)
		}
		for name, active := range maps.All(seen.active) {
			running[name] = isRunning(active)
		}
		return string(encode([]any{nodes, running}))
	case archiveSight:
		nodes := map[string]Node{}
		for name, n := range seen.now {
			nodes[name] = nodePrint(n)
		}
		return string(encode([]any{nodes, seen.unseen}))
	case *transaction:
		var effects []pkgEffect
		for _, e := range seen.effects {
			e.From.Triple, e.To.Triple = "", ""
			effects = append(effects, pkgEffect{Resource: e.Resource, From: e.From, To: e.To, Purge: e.Purge})
		}
		return string(encode(effects))
	}
	return string(encode(seen))
}

// nodePrint is a node without what does not tell one sight from another.
func nodePrint(n Node) Node {
	return Node{
		Type: n.Type, Mode: n.Mode, UID: n.UID, GID: n.GID, Size: n.Size, Hash: n.Hash, Target: n.Target, Xattrs: n.Xattrs,
		Flags: n.Flags,
	}
}
