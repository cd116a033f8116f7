package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golem/scrolls"
)

// A networkState is what golem knows of the network of one name: it cannot be changed,
// so that it is known again by its id, and golem's own by its mark.
type networkState struct {
	ID   string `json:"id,omitempty"`
	Make string `json:"make,omitempty"`
}

func (s networkState) there() bool { return s.ID != "" || s.Make != "" }

// A podNetwork is a network as the engine tells of it: podman's words are small.
type podNetwork struct {
	ID       string
	Name     string
	Driver   string
	Internal bool
	Labels   map[string]string
	Options  map[string]string
	Subnets  []podSubnet
	// Interface is the host's own on it, where the engine says so.
	Interface string `json:"network_interface"`
	IPAM      struct{ Config []podSubnet }
}

type podSubnet struct{ Subnet, Gateway string }

func (n *podNetwork) subnets() []podSubnet { return slices.Concat(n.Subnets, n.IPAM.Config) }

// networks keeps networks, each by its name.
type networks struct{ sole[networkState] }

// networkOwner tells of one network.
type networkOwner struct{}

func (networkOwner) resource(g *scrolls.Glyph) string {
	return engineOf(g) + ":" + str(g.Attrs, "name")
}

func (networkOwner) prepare(_ context.Context, w *World, glyphs []*scrolls.Glyph, _ []string) ([]Mistake, error) {
	return append(needsEngine(w, glyphs), sharedSubnets(glyphs)...), nil
}

// network looks at one network; nil where there is none.
func (e podEngine) network(ctx context.Context, name string) (*podNetwork, error) {
	out, err := e.ask(ctx, "network", "inspect", name)
	var failed *CommandError
	switch {
	case errors.As(err, new(*NoEngineError)) && e.comes():
		return nil, nil
	case errors.As(err, &failed) && strings.Contains(failed.Said, "not found"):
		return nil, nil
	case err != nil:
		return nil, err
	}
	var found []*podNetwork
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return nil, fmt.Errorf("ask %s about the network %s: %w", e.name, name, err)
	}
	for _, n := range found {
		if n.Name == name { // it may be the beginning of another's id
			return n, nil
		}
	}
	return nil, nil
}

// hasNetwork says whether there will be a network by then.
func (e podEngine) hasNetwork(ctx context.Context, name string) (bool, error) {
	if s, ok := networkKeeper.foreseen(e.w, e.name+":"+name); ok {
		return s.there(), nil
	}
	n, err := e.network(ctx, name)
	return n != nil, err
}

func (networkOwner) look(ctx context.Context, w *World, resource string) (networkState, error) {
	e, name := splitResource(w, resource)
	n, err := e.network(ctx, name)
	if n == nil || err != nil {
		return networkState{}, err
	}
	return networkState{ID: n.ID, Make: n.Labels[labelMake]}, nil
}

func (networkOwner) show(s networkState) map[string]any {
	if s.ID == "" {
		return nil
	}
	return map[string]any{"id": s.ID}
}

// TellFound implements Teller.
func (networks) TellFound(found json.RawMessage) string {
	var s networkState
	if json.Unmarshal(found, &s) != nil || !s.there() {
		return "nothing"
	}
	return "a network (" + shortID(s.ID) + ")"
}

// unlikeNetwork names the attributes of a glyph that a network is not like.
func unlikeNetwork(n *podNetwork, g *scrolls.Glyph) []string {
	var names []string
	say := func(name string, alike bool) {
		if !alike {
			names = append(names, name)
		}
	}
	a := g.Attrs
	if driver, ok := a["driver"].(string); ok {
		say(fmt.Sprintf("driver %s, not %s", n.Driver, driver), n.Driver == driver)
	}
	if subnet, ok := a["subnet"].(string); ok {
		have := ""
		for _, s := range n.subnets() {
			if have = s.Subnet; have == subnet {
				break
			}
		}
		say(fmt.Sprintf("subnet %s, not %s", have, subnet), have == subnet)
	}
	if gateway, ok := a["gateway"].(string); ok {
		say("gateway, not "+gateway, slices.ContainsFunc(n.subnets(), func(s podSubnet) bool { return s.Gateway == gateway }))
	}
	if internal, ok := a["internal"].(bool); ok {
		say(fmt.Sprintf("internal %v, not %v", n.Internal, internal), n.Internal == internal)
	}
	for _, attr := range []string{"labels", "options"} {
		have := map[string]map[string]string{"labels": n.Labels, "options": n.Options}[attr]
		for key, value := range object(a, attr) {
			say(attr+" "+key, have[key] == value)
		}
	}
	slices.Sort(names)
	return names
}

// want is what a declared glyph makes of the network.
func (networkOwner) want(ctx context.Context, w *World, v view[networkState]) (goal[networkState], error) {
	e, name := splitResource(w, v.Resource)
	own := !v.first() && v.left.Make != "" && v.now.Make == v.left.Make
	made := "made" + networkText(v.glyph)
	switch {
	case !v.now.there():
		g := goal[networkState]{to: networkState{Make: newMark()}, effect: EffectWrite, reason: made}
		if v.old != nil && CID(v.old) == CID(v.glyph) {
			g.reason = "it is gone; " + made
		}
		return g, nil
	case own && CID(v.old) == CID(v.glyph):
		return goal[networkState]{to: v.now, reason: "it is as declared"}, nil
	case own:
		return renewNetwork(ctx, e, name, made)
	}
	n, err := e.network(ctx, name)
	if err != nil || n == nil {
		return goal[networkState]{to: v.now}, err
	}
	if names := unlikeNetwork(n, v.glyph); len(names) > 0 {
		attr, _, _ := strings.Cut(names[0], " ")
		return goal[networkState]{}, &AttrError{Attr: strings.TrimSuffix(attr, ","), Summary: "Network is there already", Err: fmt.Errorf(
			"the network %s is there, golem did not make it, and it is not as declared: %s", quote(name), sentence(names))}
	}
	g := goal[networkState]{to: v.now, reason: "it is there already, as declared; golem leaves it"}
	if !v.first() && v.left.Make != "" {
		g.found = &v.now // golem's own is gone, and somebody made this one
	}
	return g, nil
}

// renewNetwork makes golem's own network anew, unless somebody else's containers are on it.
func renewNetwork(ctx context.Context, e podEngine, name, made string) (goal[networkState], error) {
	all, err := e.endpoints(ctx, name)
	if err != nil {
		return goal[networkState]{}, err
	}
	if slices.ContainsFunc(all, func(at endpoint) bool { return !at.ours }) {
		return goal[networkState]{}, &AttrError{Attr: "name", Summary: "Network is in use", Err: fmt.Errorf(
			"the network %s cannot be changed, only made anew, and golem did not make %s on it. Take that off it first", quote(name), strangers(all))}
	}
	g := goal[networkState]{to: networkState{Make: newMark()}, effect: EffectWrite, reason: "a network cannot be changed: it is removed, and a new one " + made}
	var moved []string
	for _, at := range all {
		moved = append(moved, at.name)
	}
	if len(moved) > 0 {
		g.reason += "; " + nounNames("container", moved) + " is cut off from it and put on the new one"
	}
	return g, nil
}

// networkText says in a few words what a network is.
func networkText(g *scrolls.Glyph) string {
	var parts []string
	if subnet := str(g.Attrs, "subnet"); subnet != "" {
		parts = append(parts, subnet)
	}
	if driver := str(g.Attrs, "driver"); driver != "" && driver != "bridge" {
		parts = append(parts, driver)
	}
	if internal, _ := g.Attrs["internal"].(bool); internal {
		parts = append(parts, "internal")
	}
	if len(parts) == 0 || secret(g) {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// back is what undeclaring leaves of the network.
func (networkOwner) back(ctx context.Context, w *World, v view[networkState]) (goal[networkState], error) {
	e, name := splitResource(w, v.Resource)
	switch {
	case !v.now.there():
		return goal[networkState]{forget: true, reason: "it is gone already"}, nil
	case v.left.Make == "":
		return goal[networkState]{forget: true, reason: "it was there before golem; left as it is"}, nil
	case v.now.Make != v.left.Make:
		return goal[networkState]{forget: true, reason: "golem did not make the network that is there now; left as it is"}, nil
	}
	all, err := e.endpoints(ctx, name)
	if err != nil {
		return goal[networkState]{}, err
	}
	if slices.ContainsFunc(all, func(at endpoint) bool { return !at.ours }) {
		return goal[networkState]{forget: true, reason: "left as it is: " + strangers(all) + " is on it, and golem did not make that"}, nil
	}
	for _, at := range all {
		switch {
		case at.stays:
			return goal[networkState]{forget: true, reason: "left as it is: the container " + at.name + " is on it"}, nil
		case v.Late && w.Acts, !v.Late && !wentBefore(w, at, name): // late, and still there: it could not go
			return goal[networkState]{postpone: true}, nil
		}
	}
	return goal[networkState]{effect: EffectDelete, reason: "removed: golem made it"}, nil
}

// move implements owner.
func (networkOwner) move(ctx context.Context, w *World, _ Store, m motion[networkState]) error {
	e, name := splitResource(w, m.resource)
	now, err := networkOwner{}.look(ctx, w, m.resource)
	if err != nil {
		return err
	}
	if now.there() && now.Make != "" && now.Make == m.from.Make && m.from.Make != m.to.Make {
		if err := e.dropNetwork(ctx, name, m.to.there()); err != nil {
			return err
		}
		now = networkState{}
	}
	switch {
	case !m.to.there():
		return nil
	case now.there() && (now.Make == m.to.Make && now.Make != "" || now.ID == m.to.ID):
	case now.there():
		return fmt.Errorf("make the network %s: %w: somebody made one of that name", name, ErrMoved)
	case m.to.Make == "":
		return fmt.Errorf("give the network %s back: it is not there any more", name)
	default:
		if err := e.makeNetwork(ctx, m.glyphOf(), m.to.Make); err != nil {
			return err
		}
	}
	return e.reconnect(ctx, name)
}

// dropNetwork removes a network, and takes golem's containers off it before, where it comes
// again.
func (e podEngine) dropNetwork(ctx context.Context, name string, again bool) error {
	if again {
		all, err := e.endpoints(ctx, name)
		if err != nil {
			return err
		}
		for _, at := range all {
			if !at.ours {
				return fmt.Errorf("remove the network %s: %w: %s is on it", name, ErrMoved, strangers(all))
			}
			if _, err := e.do(ctx, false, "network", "disconnect", name, at.id); err != nil {
				return fmt.Errorf("take the container %s off the network %s: %w", at.name, name, err)
			}
		}
	}
	n, err := e.network(ctx, name)
	if err != nil {
		return err
	}
	if _, err := e.do(ctx, false, "network", "rm", name); err != nil {
		return fmt.Errorf("remove the network %s: %w", name, err)
	}
	return e.dropInterface(ctx, n)
}

// dropInterface removes what a network had on the host, if it is still there: an engine that
// was killed while it started a container leaves it, and then nobody can have its addresses.
func (e podEngine) dropInterface(ctx context.Context, n *podNetwork) error {
	if n == nil || n.Interface == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(e.w.Host.Root, "sys/class/net", n.Interface, "bridge")); err != nil {
		return nil // it went with its last container, or is nothing that the engine made
	}
	_, err := e.w.Host.Do(ctx, Command{Argv: []string{"ip", "link", "delete", "dev", n.Interface}, Changes: true, Timeout: e.w.Timeout})
	if errors.Is(err, exec.ErrNotFound) {
		return nil // there is no tool for it here
	}
	if err != nil {
		return fmt.Errorf("remove what the network %s left: %w", n.Name, err)
	}
	return nil
}

func (e podEngine) makeNetwork(ctx context.Context, g *scrolls.Glyph, mark string) error {
	a := g.Attrs
	args := []string{
		"network", "create", "--label=" + labelKey + "=" + string(g.Key),
		"--label=" + labelCID + "=" + string(CID(g)), "--label=" + labelMake + "=" + mark,
	}
	for _, attr := range []string{"driver", "subnet", "gateway"} {
		if value := str(a, attr); value != "" {
			args = append(args, "--"+attr+"="+value)
		}
	}
	if internal, _ := a["internal"].(bool); internal {
		args = append(args, "--internal")
	}
	for attr, flag := range map[string]string{"labels": "--label=", "options": "--opt="} {
		for key, value := range object(a, attr) {
			args = append(args, fmt.Sprintf("%s%s=%v", flag, key, value))
		}
	}
	if _, err := e.do(ctx, secret(g), append(args, str(a, "name"))...); err != nil {
		return fmt.Errorf("make the network %s: %w", str(a, "name"), err)
	}
	return nil
}
