package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golem/scrolls"
)

// adoptContainer declares a container of podman's as it is, but for its environment, which
// may hold what nobody is to read in a scroll.
func adoptContainer(ctx context.Context, w *World, name string) (scrolls.Attrs, error) {
	e := podEngine{w, "podman"}
	all, err := e.pods(ctx, name)
	if err != nil {
		return nil, err
	}
	p := byName(all, name)
	if p == nil {
		return nil, &AdoptError{containerKind.Name, name, "podman has no such container"}
	}
	a := scrolls.Attrs{"name": name, "adopt": true, "state": "stopped"}
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
	networks := slices.DeleteFunc(p.networks(), func(name string) bool { return name == e.name || !podName.MatchString(name) })
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
