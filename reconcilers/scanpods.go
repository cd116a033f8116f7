package reconcilers

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// podStorage is where root's containers lie: without it there are none, and podman is not
// asked, which would make it.
const podStorage = "/var/lib/containers/storage"

// containers lists podman's networks and containers that somebody made: not golem, and no
// unit, which makes its own anew.
func (s *scanner) containers() ([]Proposal, error) {
	if n, err := s.w.look(podStorage); err != nil || n.Type != Dir {
		return nil, err
	}
	e := podEngine{s.w, "podman"}
	if _, err := e.pods(s.ctx); err != nil {
		if errors.As(err, new(*NoEngineError)) {
			return nil, nil // podman is gone, and its storage stayed
		}
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
	out, err := e.ask(s.ctx, "network", "ls", "--format", "json")
	if err != nil {
		return nil, err
	}
	var found []podNetwork
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return nil, fmt.Errorf("ask %s for its networks: %w", e.name, err)
	}
	var all []Proposal
	for _, n := range found {
		if n.Name != e.name && n.Labels[labelMake] == "" {
			all = append(all, Proposal{networkKind.Name, n.Name, "made by hand"})
		}
	}
	return all, nil
}
