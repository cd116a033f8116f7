package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golem/scrolls"
	"golem/state"
)

// A containerMove brings the container of one name from one state to another.
type containerMove struct {
	w    *World
	e    podEngine
	name string
	m    motion[containerState]
	// glyph is what a new container is made of.
	glyph *scrolls.Glyph
}

func moveOf(w *World, m motion[containerState]) *containerMove {
	k := &containerMove{w: w, m: m, glyph: m.glyphOf()}
	k.e, k.name = splitResource(w, m.resource)
	return k
}

// move implements owner. A new container is made and started while the one whose place it
// takes waits under another name, so that what goes wrong with the new one loses nothing.
func (containerOwner) move(ctx context.Context, w *World, _ Store, m motion[containerState]) error {
	k := moveOf(w, m)
	target, err := k.target(ctx)
	if err != nil {
		return err
	}
	var image string
	if target == nil && m.to.Make != "" {
		if image, err = k.prepare(ctx); err != nil {
			return err
		}
	}
	if err := k.clear(ctx, target, image != ""); err != nil {
		return err
	}
	switch {
	case image != "":
		if err := k.create(ctx, image); err != nil {
			return err
		}
	case target != nil && target.Name != k.name:
		if err := k.rename(ctx, target, k.name); err != nil {
			return err
		}
	}
	if m.to.there() {
		if err := k.connect(ctx, image != ""); err != nil {
			return err
		}
		if err := k.run(ctx); err != nil {
			return err
		}
	}
	if err := k.settleAside(ctx); err != nil {
		return err
	}
	return k.removeFormer(ctx)
}

// all are the containers that the move is about, as they are now.
func (k *containerMove) all(ctx context.Context) ([]*pod, error) {
	return k.e.pods(ctx, k.name, asideName(k.name), formerName(k.name))
}

// target is the container that is to be there afterwards; nil where it has to be made.
func (k *containerMove) target(ctx context.Context) (*pod, error) {
	k.e.forget()
	all, err := k.all(ctx)
	if err != nil || !k.m.to.there() {
		return nil, err
	}
	to := k.m.to
	p := byID(all, to.ID)
	if p == nil {
		p = byMark(all, to.Make)
	}
	if p == nil && to.Make == "" {
		return nil, fmt.Errorf("give %s back: the container %s is not there any more", k.name, shortID(to.ID))
	}
	return p, nil
}

// clear makes room: whatever stands there under the name, and golem may move, goes aside.
func (k *containerMove) clear(ctx context.Context, target *pod, making bool) error {
	all, err := k.all(ctx)
	if err != nil {
		return err
	}
	p := byName(all, k.name)
	from, to := k.m.from, k.m.to
	switch {
	case p == nil || target != nil && p.ID == target.ID:
		return nil
	case to.Aside != "" && p.ID == to.Aside:
		return k.aside(ctx, p, asideName(k.name))
	case from.Make == "" || p.mark() != from.Make:
		return fmt.Errorf("make room for %s: %w: somebody else's container has that name now", k.name, ErrMoved)
	case making:
		return k.aside(ctx, p, formerName(k.name))
	default:
		return k.remove(ctx, p)
	}
}

// aside stops a container and gives it another name.
func (k *containerMove) aside(ctx context.Context, p *pod, name string) error {
	if err := k.stop(ctx, p); err != nil {
		return err
	}
	return k.rename(ctx, p, name)
}

func (k *containerMove) rename(ctx context.Context, p *pod, name string) error {
	if _, err := k.e.do(ctx, false, "rename", p.ID, name); err != nil {
		return fmt.Errorf("rename the container %s: %w", p.Name, err)
	}
	return nil
}

func (k *containerMove) stop(ctx context.Context, p *pod) error {
	if !p.up() {
		return nil
	}
	if err := k.unpause(ctx, p); err != nil { // what is paused cannot be stopped
		return err
	}
	if _, err := k.e.do(ctx, false, "stop", p.ID); err != nil {
		return fmt.Errorf("stop the container %s: %w", p.Name, err)
	}
	return nil
}

// unpause lets a container that is paused go on.
func (k *containerMove) unpause(ctx context.Context, p *pod) error {
	if !p.State.Paused {
		return nil
	}
	if _, err := k.e.do(ctx, false, "unpause", p.ID); err != nil {
		return fmt.Errorf("let the container %s go on: %w", p.Name, err)
	}
	return nil
}

// remove removes a container of golem's own, with the volumes that came with it.
func (k *containerMove) remove(ctx context.Context, p *pod) error {
	if err := k.stop(ctx, p); err != nil {
		return err
	}
	if _, err := k.e.do(ctx, false, "rm", "--force", "--volumes", p.ID); err != nil {
		return fmt.Errorf("remove the container %s: %w", p.Name, err)
	}
	return nil
}

// connect puts the container on the networks that it is to be on, and takes it off those
// that the step being taken back put it on.
func (k *containerMove) connect(ctx context.Context, made bool) error {
	p, err := k.here(ctx)
	if err != nil {
		return err
	}
	for _, n := range lacking(k.m.to.Networks, p.networks()) {
		if _, err := k.e.do(ctx, false, "network", "connect", n, p.ID); err != nil {
			return fmt.Errorf("put the container %s on the network %s: %w", k.name, n, err)
		}
	}
	if made {
		return nil
	}
	for _, n := range lacking(k.m.from.Networks, k.m.to.Networks) {
		if !slices.Contains(p.networks(), n) {
			continue
		}
		if _, err := k.e.do(ctx, false, "network", "disconnect", n, p.ID); err != nil {
			return fmt.Errorf("take the container %s off the network %s: %w", k.name, n, err)
		}
	}
	return nil
}

// here is the container under the name.
func (k *containerMove) here(ctx context.Context) (*pod, error) {
	all, err := k.all(ctx)
	if err != nil {
		return nil, err
	}
	p := byName(all, k.name)
	if p == nil {
		return nil, fmt.Errorf("look for the container %s: %w: it is gone", k.name, ErrMoved)
	}
	return p, nil
}

// run starts or stops the container.
func (k *containerMove) run(ctx context.Context) error {
	p, err := k.here(ctx)
	if err != nil {
		return err
	}
	if !k.m.to.Running {
		return k.stop(ctx, p)
	}
	if !p.up() {
		if _, err := k.e.do(ctx, false, "start", p.ID); err != nil {
			return k.broken(ctx, p, fmt.Errorf("start the container %s: %w", k.name, err))
		}
	}
	if k.m.to.Paused {
		return k.pause(ctx, p)
	}
	if err := k.unpause(ctx, p); err != nil || k.m.reverse {
		return err
	}
	return k.watch(ctx)
}

// pause lets a container wait again, as it was found.
func (k *containerMove) pause(ctx context.Context, p *pod) error {
	if p.State.Paused {
		return nil
	}
	if _, err := k.e.do(ctx, false, "pause", p.ID); err != nil {
		return fmt.Errorf("pause the container %s again: %w", k.name, err)
	}
	return nil
}

// podUpTime is how long a started container has to stay up.
const podUpTime = time.Second

// watch looks whether the container stays up.
func (k *containerMove) watch(ctx context.Context) error {
	started := ""
	for waited := time.Duration(0); ; waited += podUpTime / 2 {
		k.e.forget()
		p, err := k.here(ctx)
		if err != nil {
			return err
		}
		if started == "" {
			started = p.State.StartedAt
		}
		switch {
		case !p.up() && p.State.Error != "":
			return k.broken(ctx, p, &ContainerError{Name: k.name, Why: p.State.Error})
		case !p.up():
			return k.broken(ctx, p, &ContainerError{Name: k.name, Why: fmt.Sprintf("it ended at once, with exit code %d", p.State.ExitCode)})
		case p.State.StartedAt != started:
			return k.broken(ctx, p, &ContainerError{Name: k.name, Why: "it ended at once, and is started again and again"})
		case waited >= podUpTime:
			return nil
		}
		if err := k.w.Host.Wait(ctx, podUpTime/2); err != nil {
			return err
		}
	}
}

// broken adds to an error what the container said last, less what is sensitive.
func (k *containerMove) broken(ctx context.Context, p *pod, err error) error {
	var bad *ContainerError
	if !errors.As(err, &bad) {
		return err
	}
	out, lerr := k.e.w.Host.Run(ctx, lookTime, k.e.name, "logs", fmt.Sprintf("--tail=%d", maxDiagnosticLines), p.ID)
	if lerr != nil {
		return err // it says enough without them
	}
	text := k.glyph.Hush(string(out.Stdout) + string(out.Stderr))
	if slices.Contains(k.glyph.Secret, "command") {
		text = "(its command is sensitive: what it said is not shown)"
	}
	bad.Lines = said(text)
	return err
}

// settleAside stops what made way and was started since; taking a step back, it is started.
func (k *containerMove) settleAside(ctx context.Context) error {
	if k.m.to.Aside == "" {
		return nil
	}
	all, err := k.all(ctx)
	if err != nil {
		return err
	}
	p := byID(all, k.m.to.Aside)
	switch {
	case p == nil || p.up() == k.m.to.AsideRuns:
		return nil
	case p.up():
		return k.stop(ctx, p)
	case k.m.from.Aside != k.m.to.Aside:
		return nil
	}
	if _, err := k.e.do(ctx, false, "start", p.ID); err != nil {
		return fmt.Errorf("start the container %s: %w", p.Name, err)
	}
	return nil
}

// removeFormer removes golem's own that is not to be there any more, whatever it is called.
func (k *containerMove) removeFormer(ctx context.Context) error {
	all, err := k.all(ctx)
	if err != nil {
		return err
	}
	p := byMark(all, k.m.from.Make)
	if p == nil || k.m.from.Make == k.m.to.Make || p.ID == k.m.to.Aside {
		return nil
	}
	return k.remove(ctx, p)
}

// Halt implements Halter: what a step made goes, and what it started stops.
func (r containers) Halt(ctx context.Context, w *World, s *state.Step) error {
	m, acts, err := r.inverse(s)
	if err != nil || !acts {
		return err
	}
	defer w.forget()
	k := moveOf(w, m)
	k.e.forget()
	all, err := k.all(ctx)
	if err != nil {
		return err
	}
	p := byMark(all, m.from.Make)
	switch {
	case p == nil && m.from.ID == m.to.ID && !m.to.Running: // one that was there, and was started
		if p = byID(all, m.to.ID); p == nil {
			return nil
		}
		return k.stop(ctx, p)
	case p == nil:
		return nil
	case m.from.Make != m.to.Make && p.ID != m.to.Aside && p.ID != m.to.ID:
		return k.remove(ctx, p)
	case !m.to.Running:
		return k.stop(ctx, p)
	}
	return nil
}

// Undo implements Reconciler. An image that the step pulled goes with the container that
// it was pulled for.
func (r containers) Undo(ctx context.Context, w *World, store Store, s *state.Step) error {
	if err := r.sole.Undo(ctx, w, store, s); err != nil {
		return err
	}
	for _, change := range s.Ledger {
		if change.Sort != imageSort || change.Before != nil || change.After == nil {
			continue
		}
		var body imageBody
		if err := json.Unmarshal(change.After.Body, &body); err != nil {
			return fmt.Errorf("read what is known of the image %s: %w", change.Resource, err)
		}
		e, image := splitResource(w, change.Resource)
		if err := e.removeImage(ctx, image, body); err != nil {
			return err
		}
	}
	return nil
}
