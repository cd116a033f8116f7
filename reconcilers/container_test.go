package reconcilers

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"golem/reconcilers/fake"
	"golem/scrolls"
)

// podHost lets fake engines answer for a host.
func podHost(h *Host, p *fake.Pods) {
	h.Booted = true
	h.Exec = func(_ context.Context, c Command) (Output, error) {
		a, ok := p.Run(c.Argv...)
		out := Output{Stdout: []byte(a.Out), Stderr: []byte(a.Err)}
		if !ok {
			return out, fmt.Errorf("run %s: %w", c.Argv[0], exec.ErrNotFound)
		}
		if a.Code != 0 {
			return out, &CommandError{Argv: c.Argv, Code: a.Code, Said: a.Err, Err: fmt.Errorf("exit status %d", a.Code)}
		}
		return out, nil
	}
	h.Sleep = func(context.Context, time.Duration) error { return nil }
}

// newPods makes engines with images, one of them to be pulled, and with what is somebody
// else's: a container, one made of an image of a container of golem's, a network, a volume.
func newPods() *fake.Pods {
	p := &fake.Pods{}
	for _, engine := range engines {
		p.Change(engine, func(e *fake.Engine) {
			e.Images[strings.Repeat("1", 64)] = &fake.Image{ID: strings.Repeat("1", 64), Names: []string{"app:1"}, Volume: true}
			e.Images[strings.Repeat("2", 64)] = &fake.Image{ID: strings.Repeat("2", 64), Names: []string{"app:2"}}
			e.Images[strings.Repeat("3", 64)] = &fake.Image{ID: strings.Repeat("3", 64), Names: []string{"copy:1"}, Labels: map[string]string{labelMake: "x", labelKey: "container:web"}}
			e.Registry["app:3"] = &fake.Image{ID: strings.Repeat("4", 64), Names: []string{"app:3"}}
		})
		p.Host(engine, "create", "--name=beside", "app:1", "serve")
		p.Host(engine, "create", "--name=copy", "copy:1")
		p.Host(engine, "network", "create", "--subnet=10.5.0.0/24", "found")
	}
	return p
}

func (b *bench) bootPods(h *Host) {
	b.pods = newPods()
	podHost(h, b.pods)
	if b.kind == containerKind.Name && rapid.Bool().Draw(b.t, "web is there") {
		for _, engine := range engines {
			b.pods.Host(engine, "create", "--name=web", "--env=A=1", "--publish=80:80", "app:1", "serve")
			if rapid.Bool().Draw(b.t, "web runs") {
				b.pods.Host(engine, "start", "web")
			}
		}
	}
}

func sampleContainer(t *rapid.T) scrolls.Attrs {
	a := scrolls.Attrs{"name": "web", "adopt": true, "image": rapid.SampledFrom([]string{"app:1", "app:2", "app:3"}).Draw(t, "image")}
	wishes := map[string][]any{
		"command": {[]any{"serve"}, []any{"serve", "more"}}, "env": {map[string]any{"A": "1"}, map[string]any{"A": "2"}},
		"ports": {[]any{"80:80"}, []any{"127.0.0.1:81:80/tcp"}}, "networks": {[]any{"found"}, []any{"host"}},
		"restart": {"always", "on-failure:3"}, "state": {"running", "stopped"}, "engine": {"podman", "docker"},
		"mounts": {[]any{map[string]any{"volume": "data", "target": "/data", "read_only": true}}},
	}
	for _, name := range slices.Sorted(maps.Keys(wishes)) {
		if rapid.Bool().Draw(t, "with "+name) {
			a[name] = rapid.SampledFrom(wishes[name]).Draw(t, name)
		}
	}
	if networks := words(a, "networks"); len(networks) == 1 && networks[0] == "host" {
		delete(a, "ports")
	}
	if a["state"] == "stopped" {
		delete(a, "restart")
	}
	return a
}

func sampleNetwork(t *rapid.T) scrolls.Attrs {
	a := scrolls.Attrs{"name": "lan"}
	if rapid.Bool().Draw(t, "found") {
		a = scrolls.Attrs{"name": "found", "subnet": "10.5.0.0/24"}
	} else if rapid.Bool().Draw(t, "subnet") {
		a["subnet"], a["gateway"], a["internal"] = "10.6.0.0/24", "10.6.0.9", true
	}
	a["engine"] = rapid.SampledFrom(engines).Draw(t, "engine")
	return a
}

// printPods is a fingerprint less the named volumes, which stay.
func (b *bench) printPods() string {
	var lines []string
	for line := range strings.Lines(b.pods.Print()) {
		if !strings.HasSuffix(strings.TrimSpace(line), "volume data") {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, ""))
}
