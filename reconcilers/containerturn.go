package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golem/scrolls"
)

// A containerTurn works out what becomes of one container.
type containerTurn struct {
	w    *World
	e    podEngine
	name string
	v    view[containerState]
	now  *pod // the container that is there; nil for none
	was  *pod // the one that was found and made way; nil for none
	g    goal[containerState]
}

// turnOf reads what is there.
func turnOf(ctx context.Context, w *World, v view[containerState]) (*containerTurn, error) {
	k := &containerTurn{w: w, v: v}
	k.e, k.name = splitResource(w, v.Resource)
	all, err := k.e.pods(ctx, k.name, asideName(k.name))
	if err != nil {
		return nil, err
	}
	k.now = byID(all, v.now.ID)
	if v.now.Aside == v.found.ID {
		k.was = byID(all, v.found.ID)
	}
	return k, nil
}

// own says that the container there is the one that golem made.
func (k *containerTurn) own() bool {
	return !k.v.first() && k.v.left.Make != "" && k.v.now.Make == k.v.left.Make
}

// want is what a declared glyph makes of the container.
func (containerOwner) want(ctx context.Context, w *World, v view[containerState]) (goal[containerState], error) {
	k, err := turnOf(ctx, w, v)
	if err != nil {
		return goal[containerState]{}, err
	}
	changed := v.old == nil || shapeOf(v.old) != shapeOf(v.glyph)
	again := false // the one found is as declared now
	if k.was != nil && (changed || !v.now.there()) && (k.own() || !v.now.there()) {
		names, err := unlike(ctx, k.e, k.was, v.glyph)
		if err != nil {
			return goal[containerState]{}, err
		}
		again = len(names) == 0
	}
	switch {
	case again:
		k.reinstate()
	case !v.now.there():
		err = k.create(ctx)
	case k.own() && changed:
		err = k.renew(ctx)
	case k.own():
		k.keep()
	default:
		err = k.adopt(ctx)
	}
	if err == nil {
		k.boot(ctx)
	}
	return k.g, err
}

// runs says whether the glyph wants the container to run.
func (k *containerTurn) runs() bool { return str(k.v.glyph.Attrs, "state") != "stopped" }

// fresh is the state of a container that golem is to make.
func (k *containerTurn) fresh() containerState {
	return containerState{Make: newMark(), Running: k.runs(), Networks: namedNetworks(k.v.glyph), Aside: k.v.now.Aside, AsideRuns: k.v.now.AsideRuns}
}

// create makes a container where there is none.
func (k *containerTurn) create(ctx context.Context) error {
	if str(k.v.glyph.Attrs, "image") == "" {
		return &AttrError{Attr: "name", Summary: "No such container", Err: fmt.Errorf(
			"%s has no container %s to adopt, and no image says what to make one of", k.e.name, quote(k.name))}
	}
	k.g.to, k.g.effect, k.g.wild = k.fresh(), EffectWrite, true
	k.g.to.AsideRuns = false
	text, err := k.making(ctx)
	if k.v.old != nil && k.v.left.there() && CID(k.v.old) == CID(k.v.glyph) {
		text = "it is gone; " + text
	}
	k.g.reason = text
	return err
}

// making says what a new container is made from, and what that takes.
func (k *containerTurn) making(ctx context.Context) (string, error) {
	g := k.v.glyph
	if err := envFits(g); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("made")
	if !slices.Contains(g.Secret, "image") {
		b.WriteString(" from " + str(g.Attrs, "image"))
	}
	id, err := k.e.imageID(ctx, str(g.Attrs, "image"))
	if err != nil {
		return "", &AttrError{Attr: "image", Summary: "Image cannot be used", Err: err}
	}
	if image := str(g.Attrs, "image"); id == "" && imageDigest.MatchString(image) {
		return "", &AttrError{Attr: "image", Summary: "Image is not there", Err: fmt.Errorf(
			"%s has no image with the id %s, and by its id none can be pulled. Write its name, with @sha256: and its digest if it has to be that very one", k.e.name, shortID(strings.TrimPrefix(image, "sha256:")))}
	}
	if id == "" {
		b.WriteString(", which is pulled first,")
	}
	if k.runs() {
		b.WriteString(" and started")
	}
	if command := words(g.Attrs, "command"); len(command) > 0 && !slices.Contains(g.Secret, "command") {
		b.WriteString(": " + commandText(command))
	}
	if busy := k.busy(); len(busy) > 0 && k.runs() {
		b.WriteString("; " + nounNames("port", busy) + " of the host is in use now")
	}
	if volumes := volumesOf(g, k.v.old); len(volumes) > 0 {
		b.WriteString("; what is in " + volumes + " stays whatever becomes of it")
	}
	return b.String(), nil
}

// busy are the ports that a new container needs and that somebody else has: it may let go of
// them before, by this run or not.
func (k *containerTurn) busy() []string {
	var all []string
	sockets := k.w.Host.listening()
	for _, p := range portsOf(k.v.glyph.Attrs) {
		if own := k.now; sockets.has(p) && (own == nil || !own.up() || !own.publishes(p)) {
			all = append(all, p.String())
		}
	}
	return all
}

// volumesOf names what a glyph mounts that outlives its container.
func volumesOf(glyphs ...*scrolls.Glyph) string {
	var all []string
	for _, g := range glyphs {
		if g == nil || slices.Contains(g.Secret, "mounts") {
			continue
		}
		for _, m := range mountsOf(g.Attrs) {
			name := quote(m.source)
			if m.volume != "" {
				name = "the volume " + m.volume
			}
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return sentence(all)
}

// keep lets golem's own be, and puts right what can be put right in place.
func (k *containerTurn) keep() {
	now := k.v.now
	to := now
	to.Name, to.AsideRuns, to.Paused = "", false, false
	to.Running = k.runs()
	to.Networks = joined(now.Networks, namedNetworks(k.v.glyph))
	k.inPlace(to)
}

// inPlace tells what becomes of a container that stays.
func (k *containerTurn) inPlace(to containerState) {
	now := k.v.now
	var does []string
	k.g.to, k.g.effect = to, EffectWrite
	if to.Name != now.Name {
		does = append(does, fmt.Sprintf("it was renamed %s; it gets its name back", quote(now.Name)))
	}
	if cut := lacking(to.Networks, now.Networks); len(cut) > 0 {
		does = append(does, "it is not on "+nounNames("network", cut)+"; it is put there")
	}
	if off := lacking(now.Networks, to.Networks); len(off) > 0 {
		does = append(does, "it is taken off "+nounNames("network", off))
	}
	if now.AsideRuns && !to.AsideRuns {
		does = append(does, fmt.Sprintf("%s, which made way for it, was started; it is stopped", asideName(k.name)))
	}
	switch {
	case to.Running && !now.Running:
		k.g.effect, does = "start", append(does, "it does not run; started")
	case !to.Running && now.Running:
		k.g.effect, does = "stop", append(does, "it runs; stopped")
	case now.Paused && !to.Paused:
		k.g.effect, does = "start", append(does, "it is paused; it goes on")
	}
	k.g.reason = strings.Join(does, "; ")
	if k.g.reason == "" {
		k.g.reason = "it is as declared"
	}
}

// nounNames is a noun with a name, or with several.
func nounNames(noun string, names []string) string {
	if len(names) > 1 {
		noun += "s"
	}
	return "the " + noun + " " + sentence(names)
}

// renew makes a new container in the place of golem's own.
func (k *containerTurn) renew(ctx context.Context) error {
	if str(k.v.glyph.Attrs, "image") == "" {
		return &AttrError{Attr: "name", Summary: "Container cannot be changed", Err: fmt.Errorf(
			"the container %s needs a new one in its place, and no image says what to make it from", quote(k.name))}
	}
	all, err := k.e.pods(ctx, formerName(k.name))
	if err != nil {
		return err
	}
	if byName(all, formerName(k.name)) != nil {
		return &AttrError{Attr: "name", Summary: "Name is taken", Err: fmt.Errorf(
			"while a new one is made, the container %s is called %s, and there is one of that name", quote(k.name), quote(formerName(k.name)))}
	}
	made, err := k.making(ctx)
	k.g.to, k.g.effect, k.g.wild = k.fresh(), EffectWrite, true
	k.g.to.AsideRuns = false
	k.g.reason = sentence(reshaped(k.v.old, k.v.glyph)) + " cannot be changed in a container: the old one is stopped and removed, a new one is " + made
	k.g.irreversible, k.g.destroys = []string{k.lost()}, true
	return err
}

// adopt takes over a container that somebody else made, if it may.
func (k *containerTurn) adopt(ctx context.Context) error {
	v := k.v
	known := !v.first() && v.left.Make == "" && v.left.ID == v.now.ID // it was adopted before
	if may, _ := v.glyph.Attrs["adopt"].(bool); !may && !v.glyph.Adopt && !known {
		return &AttrError{Attr: "name", Summary: "Container is there already", Err: fmt.Errorf(
			"%s has a container %s that golem did not make (%s). Write adopt = true, or an adopt block, to take it over, or choose another name", k.e.name, quote(k.name), k.brief())}
	}
	if !v.first() && !known {
		k.g.found = &k.v.now // it came since, and is what golem's own takes the place of
	}
	names, err := unlike(ctx, k.e, k.now, v.glyph)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		k.stay()
		return nil
	}
	if str(v.glyph.Attrs, "image") == "" {
		attr, _, _ := strings.Cut(names[0], " ")
		return &AttrError{Attr: attr, Summary: "Container cannot be changed", Err: fmt.Errorf(
			"the container %s differs in %s. That needs a new one, and no image says what to make it from", quote(k.name), sentence(names))}
	}
	if v.now.Aside != "" {
		return &AttrError{Attr: "name", Summary: "Name is taken", Err: fmt.Errorf(
			"the container %s would have to make way as %s, and there is one of that name", quote(k.name), quote(asideName(k.name)))}
	}
	made, err := k.making(ctx)
	k.g.to, k.g.effect, k.g.wild = k.fresh(), EffectWrite, true
	k.g.to.Aside = v.now.ID
	k.g.reason = fmt.Sprintf("the container found differs in %s: it is stopped and kept as %s, a new one is %s", sentence(names), asideName(k.name), made)
	return err
}

// reinstate gives the container that was found its place back: it is as declared.
func (k *containerTurn) reinstate() {
	to := k.v.found
	if _, says := k.v.glyph.Attrs["state"]; says {
		to.Running, to.Paused = k.runs(), false
	}
	to.Networks = joined(to.Networks, namedNetworks(k.v.glyph))
	to.Aside, to.AsideRuns = "", false
	k.g.to, k.g.effect = to, EffectRestore
	k.g.reason = fmt.Sprintf("%s, which golem found, is as declared now: it gets its name back", asideName(k.name))
	if k.own() {
		k.g.reason += ", and golem's own is removed"
		k.g.irreversible, k.g.destroys = []string{k.lost()}, true
	}
}

// stay lets an adopted container be as it is.
func (k *containerTurn) stay() {
	to := k.v.now
	if _, says := k.v.glyph.Attrs["state"]; says {
		to.Running, to.Paused = k.runs(), false
	}
	named := namedNetworks(k.v.glyph)
	if !k.v.first() {
		to.Networks = lacking(to.Networks, lacking(k.put(), named))
	}
	to.Networks = joined(to.Networks, named)
	k.inPlace(to)
	if k.v.first() {
		k.g.reason = "adopted as it was found; " + k.g.reason
	}
}

// put are the networks on which golem put a container that was found.
func (k *containerTurn) put() []string {
	if k.v.old == nil {
		return nil
	}
	return lacking(namedNetworks(k.v.old), k.v.found.Networks)
}

// brief says in a few words what somebody else's container is.
func (k *containerTurn) brief() string {
	return strings.Join([]string{"image " + k.now.Config.Image, k.now.State.Status}, ", ")
}

// boot says where a container will not come up with the host, though it is to.
func (k *containerTurn) boot(ctx context.Context) {
	const unit = "podman-restart.service"
	if k.e.name != "podman" || str(k.v.glyph.Attrs, "restart") != "always" || !k.w.Host.systemd() {
		return
	}
	if g := k.w.InForce(scrolls.MakeKey(serviceKind.Name, unit)); g != nil {
		return
	}
	u, err := k.w.unit(ctx, unit)
	if err != nil || u.known() && u.File == "enabled" {
		return // what systemd does not say is not told
	}
	k.g.reason += "; it does not start with the host: " + unit + " is not enabled"
}

// A ContainerError is a container that did not stay up.
type ContainerError struct {
	Name, Why string
	Lines     []string // its last words
}

func (e *ContainerError) Error() string {
	return strings.Join(append([]string{fmt.Sprintf("start the container %s: %s", e.Name, e.Why)}, e.Lines...), "\n")
}
