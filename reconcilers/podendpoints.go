package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// An endpoint is a container on a network.
type endpoint struct {
	id, name string
	// ours says that golem put it there, stays that it will be on it when the run is over.
	ours, stays bool
	resource    string // of golem's container that it is, or is beside; "" for none
}

// endpoints are the containers on a network, those that do not run too.
func (e podEngine) endpoints(ctx context.Context, network string) ([]endpoint, error) {
	picked, err := e.picked(ctx, "network="+network)
	if err != nil {
		return nil, err
	}
	var all []endpoint
	for _, p := range picked {
		at := endpoint{id: p.id, name: p.name, stays: true}
		if left, ok := e.leftAs(p.pod, p.id); ok && !slices.Contains(left.found, network) {
			g := e.w.Declares(ContainerSort, left.resource)
			at.ours, at.resource = true, left.resource
			at.stays = g != nil && slices.Contains(namedNetworks(g), network)
		}
		all = append(all, at)
	}
	slices.SortFunc(all, func(a, b endpoint) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// A leftPod is how golem left a container: its own, one that it adopted, or one that made
// way for its own.
type leftPod struct {
	containerState
	resource string
	found    []string // the networks on which one that golem did not make was found
}

// leftAs is how golem left the container with an id, if it has to do with it. One that it
// made is known by its mark, others by their ids.
func (e podEngine) leftAs(p *pod, id string) (leftPod, bool) {
	if p.mark() != "" {
		left := leftPod{resource: e.resourceOf(p)}
		rec := e.w.Record(ContainerSort, left.resource)
		ok := rec != nil && json.Unmarshal(rec.After, &left.containerState) == nil && left.Make == p.mark()
		return left, ok
	}
	for _, rec := range e.w.Records {
		var left, found containerState
		if rec == nil || rec.Sort != ContainerSort || !strings.HasPrefix(rec.Resource, e.name+":") ||
			json.Unmarshal(rec.After, &left) != nil || json.Unmarshal(rec.Found, &found) != nil {
			continue
		}
		switch {
		case id == left.ID && left.Make == "":
			return leftPod{left, rec.Resource, found.Networks}, true
		case id == left.Aside:
			left.Networks = nil // they are golem's own container's
			return leftPod{left, rec.Resource, found.Networks}, true
		}
	}
	return leftPod{}, false
}

// resourceOf is the resource that a container of golem's is.
func (e podEngine) resourceOf(p *pod) string {
	return e.name + ":" + strings.TrimPrefix(p.Config.Labels[labelKey], containerKind.Name+":")
}

// strangers names the containers that keep a network from going.
func strangers(all []endpoint) string {
	var names []string
	for _, at := range all {
		if !at.ours {
			names = append(names, at.name)
		}
	}
	return nounNames("container", names)
}

// wentBefore says whether the turns before take a container away, or off a network.
func wentBefore(w *World, at endpoint, network string) bool {
	s, ok := containerKeeper.foreseen(w, at.resource)
	return ok && !slices.Contains(s.Networks, network)
}

// reconnect puts those of golem's containers on a network that it left there, and that
// were taken off it when it was made anew, by this run or by one that died.
func (e podEngine) reconnect(ctx context.Context, network string) error {
	var names []string // of containers that are not known by a mark
	for _, rec := range e.w.Records {
		if rec != nil && rec.Sort == ContainerSort {
			_, name := splitResource(e.w, rec.Resource)
			names = append(names, name)
		}
	}
	pods, err := e.pods(ctx, names...)
	if err != nil {
		return err
	}
	for _, p := range pods {
		if left, ok := e.leftAs(p, p.ID); !ok || !slices.Contains(left.Networks, network) || slices.Contains(p.networks(), network) {
			continue
		}
		if _, err := e.do(ctx, false, "network", "connect", network, p.ID); err != nil {
			return fmt.Errorf("put the container %s on the network %s: %w", p.Name, network, err)
		}
	}
	return nil
}
