package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golem/scrolls"
)

// ownNetworks are the networks that an engine has by itself.
var ownNetworks = map[string][]string{"podman": {"podman"}, "docker": {"bridge", "host", "none", "podman"}} // docker may be podman

// whichEngine finds the engine that has a thing, podman first. It is an error if there is none of
// them; where none has it e is the first that is there.
func whichEngine(w *World, has func(e podEngine) (bool, error)) (e podEngine, there bool, err error) {
	var missing error
	for _, name := range engines {
		one := podEngine{w, name}
		there, err := has(one)
		if errors.As(err, new(*NoEngineError)) {
			missing = cmp.Or(missing, err)
			continue
		}
		if e.name == "" {
			e = one
		}
		if there || err != nil {
			return one, there, err
		}
	}
	if e.name == "" {
		return e, false, missing
	}
	return e, false, nil
}

// adoptContainer declares a container of podman's or docker's as it is, but for its environment,
// which may hold what nobody is to read in a scroll.
func adoptContainer(ctx context.Context, w *World, name string) (scrolls.Attrs, error) {
	var p *pod
	e, there, err := whichEngine(w, func(e podEngine) (bool, error) {
		all, err := e.pods(ctx, name)
		p = byName(all, name)
		return p != nil, err
	})
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, &AdoptError{containerKind.Name, name, e.name + " has no such container"}
	}
	a := scrolls.Attrs{"name": name, "adopt": true, "state": "stopped"}
	if e.name != engines[0] {
		a["engine"] = e.name
	}
	if p.up() {
		a["state"] = "running"
	}
	if imageName.MatchString(p.Config.Image) {
		a["image"] = p.Config.Image
	}
	if len(p.Config.Cmd) > 0 {
		a["command"] = listOf(p.Config.Cmd)
	}
	if policy := p.restart(); policy != "no" && a["state"] == "running" {
		a["restart"] = policy
	}
	if ports := p.published(); len(ports) > 0 {
		a["ports"] = listOf(ports)
	}
	if mounts := p.mounts(); len(mounts) > 0 {
		a["mounts"] = mounts
	}
	networks := slices.DeleteFunc(p.networks(), func(name string) bool {
		return slices.Contains(ownNetworks[e.name], name) || !podName.MatchString(name)
	})
	if mode := p.HostConfig.NetworkMode; slices.Contains(podConnected, mode) {
		networks = []string{mode}
	}
	if len(networks) > 0 {
		a["networks"] = listOf(networks)
	}
	return a, nil
}

// published are the ports of the host that lead into a container, as a glyph has them.
func (p *pod) published() []string {
	var all []string
	for in, list := range p.HostConfig.PortBindings {
		for _, b := range list {
			ip := b.HostIP
			if strings.Contains(ip, ":") {
				ip = "[" + ip + "]"
			}
			text := strings.TrimPrefix(fmt.Sprintf("%s:%s:%s", ip, b.HostPort, in), ":")
			if _, ok := portOf(text); ok {
				all = append(all, text)
			}
		}
	}
	slices.Sort(all)
	return all
}

// mounts are a container's paths of the host and named volumes, as a glyph has them.
func (p *pod) mounts() []any {
	var all []any
	for _, m := range p.Mounts {
		o := map[string]any{"target": m.Destination, "read_only": !m.RW}
		switch {
		case m.Type == "bind" && cleanMount(m.Source):
			o["source"] = m.Source
		case m.Type == "volume" && !anonymous(m.Name):
			o["volume"] = m.Name
		default:
			continue
		}
		all = append(all, o)
	}
	return all
}
