package reconcilers

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golem/scrolls"
)

// A containerState is what golem knows of the container of one name. What it is made of is
// not in it: a container is known again by its id, and one that golem made by its mark.
type containerState struct {
	// ID is the container's, where it is there already.
	ID string `json:"id,omitempty"`
	// Name is what it is called, where somebody renamed it.
	Name string `json:"name,omitempty"`
	// Make is the mark of what golem made.
	Make     string   `json:"make,omitempty"`
	Running  bool     `json:"running,omitempty"` // or paused
	Paused   bool     `json:"paused,omitempty"`
	Networks []string `json:"networks,omitempty"`
	// Aside is the id of the container that was found and made way, AsideRuns that it was
	// started since.
	Aside     string `json:"aside,omitempty"`
	AsideRuns bool   `json:"aside_runs,omitempty"`
}

func (s containerState) there() bool { return s.ID != "" || s.Make != "" }

// asideName is what a container is called that was found and made way.
func asideName(name string) string { return name + ".found" }

// formerName is what golem's own is called while a new one takes its place.
func formerName(name string) string { return name + ".former" }

// newMark is a mark that nothing else bears.
func newMark() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// containers keeps containers, each by the name that its glyph gives it.
type containers struct{ sole[containerState] }

var (
	containerKeeper = containers{sole[containerState]{sort: ContainerSort, own: containerOwner{}}}
	networkKeeper   = networks{sole[networkState]{sort: NetworkSort, own: networkOwner{}}}
	imageKeeper     = images{sole[imageState]{sort: imageSort, own: imageOwner{}}}
)

// containerOwner tells of one container.
type containerOwner struct{}

func (containerOwner) resource(g *scrolls.Glyph) string {
	return engineOf(g) + ":" + str(g.Attrs, "name")
}

// needsEngine are the mistakes of glyphs on a host that does not run.
func needsEngine(w *World, glyphs []*scrolls.Glyph) []Mistake {
	var mistakes []Mistake
	for _, g := range glyphs {
		if !w.Host.Live() {
			mistakes = append(mistakes, Mistake{Glyph: g, Problem: scrolls.Problem{
				Summary: "Needs a live host", Detail: fmt.Sprintf("A %s needs a host that runs, and this is a file tree.", g.Kind),
			}})
		}
	}
	return mistakes
}

func (containerOwner) prepare(ctx context.Context, w *World, glyphs []*scrolls.Glyph, resources []string) ([]Mistake, error) {
	if mistakes := needsEngine(w, glyphs); len(mistakes) > 0 {
		return mistakes, nil
	}
	names := map[podEngine][]string{}
	for _, resource := range resources {
		e, name := splitResource(w, resource)
		names[e] = append(names[e], name, asideName(name))
	}
	for e, all := range names {
		if _, err := e.pods(ctx, all...); err != nil && ctx.Err() != nil {
			return nil, err // whatever else it is, the turn of each glyph tells it
		}
	}
	return sharedPorts(glyphs), nil
}

func (containerOwner) look(ctx context.Context, w *World, resource string) (containerState, error) {
	e, name := splitResource(w, resource)
	all, err := e.pods(ctx, name, asideName(name))
	if err != nil {
		return containerState{}, err
	}
	var s containerState
	p := byName(all, name)
	if p == nil {
		key := string(scrolls.MakeKey(containerKind.Name, name))
		if p = podWhere(all, func(p *pod) bool { return p.mark() != "" && p.Config.Labels[labelKey] == key }); p != nil {
			s.Name = p.Name
		}
	}
	if p != nil {
		s.ID, s.Make, s.Running, s.Networks = p.ID, p.mark(), p.up(), p.networks()
		s.Paused = p.State.Paused
	}
	if aside := byName(all, asideName(name)); aside != nil {
		s.Aside, s.AsideRuns = aside.ID, aside.up()
	}
	return s, nil
}

func (containerOwner) show(s containerState) map[string]any {
	if !s.there() {
		return nil
	}
	v := map[string]any{"state": s.word()}
	if s.ID != "" {
		v["id"] = s.ID
	}
	return v
}

// TellFound implements Teller.
func (containers) TellFound(found json.RawMessage) string {
	var s containerState
	if json.Unmarshal(found, &s) != nil || !s.there() {
		return "nothing"
	}
	return "a container, " + s.word() + " (" + shortID(s.ID) + ")"
}

// word says in one word whether it runs.
func (s containerState) word() string {
	switch {
	case s.Paused:
		return "paused"
	case s.Running:
		return "running"
	}
	return "stopped"
}

func shortID(id string) string { return id[:min(len(id), 12)] }

// lacking are the names in one list that another has not.
func lacking(want, have []string) []string {
	return slices.DeleteFunc(slices.Clone(want), func(name string) bool { return slices.Contains(have, name) })
}

// joined are two lists as one, in order.
func joined(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// namedNetworks are the networks of the engine that a glyph puts its container on.
func namedNetworks(g *scrolls.Glyph) []string {
	networks := words(g.Attrs, "networks")
	slices.Sort(networks)
	return slices.DeleteFunc(slices.Compact(networks), func(n string) bool { return slices.Contains(podConnected, n) })
}

// shapeOf is all of a glyph that a container is made of, in one text; what can be changed
// in place is no part of it.
func shapeOf(g *scrolls.Glyph) string {
	return string(encode(lessAttrs(canonicalContainer(g.Attrs), "state", "name", "engine")))
}

// reshaped names the attributes in which the shapes of two glyphs differ.
func reshaped(old, next *scrolls.Glyph) []string {
	var names []string
	a, b := canonicalContainer(old.Attrs), canonicalContainer(next.Attrs)
	for _, spec := range containerKind.Attrs {
		if spec.Name == "state" || spec.Name == "adopt" || string(encode(a[spec.Name])) == string(encode(b[spec.Name])) {
			continue
		}
		text := spec.Name
		if spec.Name == "image" && !slices.Contains(old.Secret, "image") && !slices.Contains(next.Secret, "image") {
			text = fmt.Sprintf("image %s → %s", str(old.Attrs, "image"), str(next.Attrs, "image"))
		}
		names = append(names, text)
	}
	return names
}

// unlike names the attributes of a glyph that a container is not like. What the glyph does
// not say is not compared. Networks are: a container can be put on them as it is.
func unlike(ctx context.Context, e podEngine, p *pod, g *scrolls.Glyph) ([]string, error) {
	var names []string
	say := func(name string, alike bool) {
		if !alike {
			names = append(names, name)
		}
	}
	a := g.Attrs
	if image := str(a, "image"); image != "" && image != p.Config.Image {
		id, err := e.imageID(ctx, image)
		if err != nil {
			return nil, err
		}
		say(fmt.Sprintf("image %s, not %s", p.Config.Image, image), id != "" && id == strings.TrimPrefix(p.Image, "sha256:"))
	}
	if _, given := a["command"]; given {
		say("command", slices.Equal(p.Config.Cmd, words(a, "command")))
	}
	for name, value := range object(a, "env") {
		if !slices.Contains(p.Config.Env, fmt.Sprintf("%s=%v", name, value)) {
			say("env", slices.Contains(names, "env"))
		}
	}
	for name, value := range object(a, "labels") {
		if p.Config.Labels[name] != value {
			say("labels", slices.Contains(names, "labels"))
		}
	}
	say("mounts", !slices.ContainsFunc(mountsOf(a), func(m mount) bool { return !p.has(m) }))
	say("ports", !slices.ContainsFunc(portsOf(a), func(o port) bool { return !p.publishes(o) }))
	if want, ok := a["restart"].(string); ok {
		say("restart", want == p.restart())
	}
	if networks := words(a, "networks"); len(networks) == 1 && slices.Contains(podConnected, networks[0]) {
		say("networks", p.HostConfig.NetworkMode == networks[0])
	}
	slices.Sort(names)
	return names, nil
}

// has says whether a container has a mount.
func (p *pod) has(want mount) bool {
	for _, m := range p.Mounts {
		if m.Destination == want.target && m.RW == !want.readOnly &&
			(want.volume != "" && m.Name == want.volume || want.source != "" && m.Type == "bind" && m.Source == want.source) {
			return true
		}
	}
	return false
}

// publishes says whether a port of the host leads into a container.
func (p *pod) publishes(want port) bool {
	for _, b := range p.HostConfig.PortBindings[fmt.Sprintf("%d/%s", want.in, want.via)] {
		ip := b.HostIP
		if ip == "0.0.0.0" {
			ip = ""
		}
		if b.HostPort == fmt.Sprint(want.host) && ip == want.ip {
			return true
		}
	}
	return false
}

func (p *pod) restart() string {
	policy := p.HostConfig.RestartPolicy
	switch {
	case policy.Name == "":
		return "no"
	case policy.MaximumRetryCount > 0:
		return fmt.Sprintf("%s:%d", policy.Name, policy.MaximumRetryCount)
	}
	return policy.Name
}

// anonymous are the volumes without a name of their own, which go with their container.
func (p *pod) anonymous() int {
	n := 0
	for _, m := range p.Mounts {
		if m.Type == "volume" && anonymous(m.Name) {
			n++
		}
	}
	return n
}

// anonymous says that a volume's name was drawn by the engine.
func anonymous(volume string) bool {
	return len(volume) == 64 && strings.Trim(volume, "0123456789abcdef") == ""
}
