package reconcilers

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// podStorage is where an engine's containers lie: without it there are none, and the engine is not
// asked, which might make it.
var podStorage = map[string]string{"podman": "/var/lib/containers/storage", "docker": "/var/lib/docker"}

// containers lists the engines' networks and containers that somebody made: not golem, and no
// unit, which makes its own anew. An engine that does not answer is noted.
func (s *scanner) containers() ([]Proposal, error) {
	var all []Proposal
	for _, name := range engines {
		if n, err := s.w.look(podStorage[name]); err != nil || n.Type != Dir {
			if err != nil {
				return nil, err
			}
			continue
		}
		found, err := s.podsOf(podEngine{s.w, name})
		switch {
		case errors.As(err, new(*NoEngineError)): // it is gone, and its storage stayed
		case s.ctx.Err() != nil:
			return nil, s.ctx.Err()
		case err != nil:
			s.note("%v: its networks and containers are not told", err)
		default:
			all = append(all, found...)
		}
	}
	return all, nil
}

// podsOf lists those of one engine.
func (s *scanner) podsOf(e podEngine) ([]Proposal, error) {
	if _, err := e.pods(s.ctx); err != nil {
		return nil, err
	}
	pods, err := e.pods(s.ctx, slices.Sorted(maps.Values(e.desk().names))...)
	if err != nil {
		return nil, err
	}
	all, err := s.networks(e)
	for _, p := range pods {
		if p.mark() == "" && p.Config.Labels["PODMAN_SYSTEMD_UNIT"] == "" {
			all = append(all, Proposal{containerKind.Name, p.Name, "made by hand, of " + p.Config.Image})
		}
	}
	return all, err
}

// networks lists those that are not the engine's own.
func (s *scanner) networks(e podEngine) ([]Proposal, error) {
	out, err := e.ask(s.ctx, "network", "ls", "--format", "{{.Name}}")
	if err != nil {
		return nil, err
	}
	var all []Proposal
	for _, name := range strings.Fields(out) {
		if slices.Contains(ownNetworks[e.name], name) {
			continue
		}
		n, err := e.network(s.ctx, name)
		if err != nil {
			return nil, err
		}
		if n != nil && n.Labels[labelMake] == "" {
			all = append(all, Proposal{networkKind.Name, name, "made by hand"})
		}
	}
	return all, nil
}
