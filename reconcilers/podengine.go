package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"golem/scrolls"
)

// Labels of what golem makes in an engine: its key, the version it was made as, and a mark
// that no other has, by which golem knows it again.
const (
	labelPrefix = "golem."
	labelKey    = labelPrefix + "key"
	labelCID    = labelPrefix + "cid"
	labelMake   = labelPrefix + "make"
)

// A podEngine is podman or docker. Both know the same words for all that golem asks.
type podEngine struct {
	w    *World
	name string
}

// splitResource parts a resource into its engine and the name in it.
func splitResource(w *World, resource string) (podEngine, string) {
	engine, name, _ := strings.Cut(resource, ":")
	return podEngine{w, engine}, name
}

// enginePackages are the packages that bring an engine.
var enginePackages = map[string][]string{
	"podman": {"podman"},
	"docker": {"docker.io", "docker-ce", "moby-engine", "podman-docker"},
}

// A NoEngineError says that the program is not there.
type NoEngineError struct{ Engine string }

func (e *NoEngineError) Error() string {
	return fmt.Sprintf("ask %s: it is not installed on this host", e.Engine)
}

// Hint says what to do.
func (e *NoEngineError) Hint() string {
	return fmt.Sprintf("install it, or declare apt %q before it", enginePackages[e.Engine][0])
}

// comes says that this run installs the engine, so that there is nothing in it yet.
func (e podEngine) comes() bool {
	return !e.w.Acts && slices.ContainsFunc(enginePackages[e.name], func(name string) bool {
		return e.w.InForce(scrolls.MakeKey(aptKindName, name)) != nil
	})
}

// ask runs the engine to read.
func (e podEngine) ask(ctx context.Context, args ...string) (string, error) {
	out, err := e.w.Host.Run(ctx, lookTime, append([]string{e.name}, args...)...)
	return string(out.Stdout), e.missing(err)
}

// do runs the engine to change something.
func (e podEngine) do(ctx context.Context, secret bool, args ...string) (string, error) {
	e.forget()
	out, err := e.w.Host.Do(ctx, Command{Argv: append([]string{e.name}, args...), Changes: true, Secret: secret, Timeout: e.w.Timeout})
	return string(out.Stdout), e.missing(err)
}

func (e podEngine) missing(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return &NoEngineError{e.name}
	}
	return err
}

// A pod is a container as the engine tells of it.
type pod struct {
	ID     string
	Name   string
	Image  string // an id
	Config struct {
		Image  string
		Cmd    []string
		Env    []string
		Labels map[string]string
	}
	State struct {
		Running   bool
		Paused    bool
		Status    string
		ExitCode  int
		Error     string
		StartedAt string
	}
	HostConfig struct {
		NetworkMode   string
		RestartPolicy struct {
			Name              string
			MaximumRetryCount int
		}
		PortBindings map[string][]struct{ HostIP, HostPort string }
	}
	Mounts []struct {
		Type, Name, Source, Destination string
		RW                              bool
	}
	NetworkSettings struct{ Networks map[string]any }

	// inherited says that its labels are its image's: somebody made it from an image that was
	// made of a container of golem's.
	inherited bool
}

// mark is the mark of a container that golem made; "" for somebody else's.
func (p *pod) mark() string {
	if p == nil || p.inherited {
		return ""
	}
	return p.Config.Labels[labelMake]
}

// up says that it was started and has not ended: one that is paused counts, of which
// only docker says that it runs.
func (p *pod) up() bool { return p.State.Running || p.State.Paused }

// networks are the names of those it is on.
func (p *pod) networks() []string {
	var all []string
	for name := range p.NetworkSettings.Networks {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// podDesk is what a world knows of an engine.
type podDesk struct {
	mu    sync.Mutex
	asked bool
	err   error
	names map[string]string // of every container, by id
	ours  map[string]bool   // ids that bear a label of golem's
	pods  map[string]*pod   // those looked at, by id
}

func (e podEngine) deskName() string { return "pods:" + e.name }

func (e podEngine) desk() *podDesk {
	return keepAt(e.w, e.deskName(), func() *podDesk {
		return &podDesk{names: map[string]string{}, ours: map[string]bool{}, pods: map[string]*pod{}}
	})
}

// forget has the engine asked again.
func (e podEngine) forget() {
	e.w.desk.mu.Lock()
	defer e.w.desk.mu.Unlock()
	delete(e.w.desk.on, e.deskName())
}

// pods looks at the containers of some names, and at all that golem made. What is not
// there is left out.
func (e podEngine) pods(ctx context.Context, names ...string) ([]*pod, error) {
	d := e.desk()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.asked {
		d.asked = true
		d.err = e.list(ctx, d)
	}
	if d.err != nil {
		return nil, d.err
	}
	var look []string
	for id, name := range d.names {
		if d.pods[id] == nil && (d.ours[id] || slices.Contains(names, name)) {
			look = append(look, id)
		}
	}
	slices.Sort(look)
	if err := e.inspect(ctx, d, look); err != nil {
		return nil, err
	}
	var all []*pod
	for _, p := range d.pods {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *pod) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// list reads which containers there are.
func (e podEngine) list(ctx context.Context, d *podDesk) error {
	out, err := e.ask(ctx, "ps", "--all", "--no-trunc", "--format", "{{.ID}}\t{{.Names}}\t{{.Labels}}")
	if errors.As(err, new(*NoEngineError)) && e.comes() {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimRight(line, "\r\n"), "\t", 3)
		if len(f) < 3 {
			return fmt.Errorf("ask %s for its containers: it answered %q", e.name, line)
		}
		d.names[f[0]], _, _ = strings.Cut(f[1], ",")
		d.ours[f[0]] = strings.Contains(f[2], labelMake)
	}
	return nil
}

// inspect looks at containers by their ids.
func (e podEngine) inspect(ctx context.Context, d *podDesk, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	out, err := e.ask(ctx, append([]string{"inspect", "--type", "container"}, ids...)...)
	var found []*pod
	if jerr := json.Unmarshal([]byte(out), &found); jerr != nil {
		return errors.Join(err, fmt.Errorf("ask %s about containers: %w", e.name, jerr))
	}
	images := map[string]bool{}
	for _, p := range found { // one may be gone by now
		p.Name = strings.TrimPrefix(p.Name, "/")
		d.pods[p.ID] = p
		if d.names[p.ID] = p.Name; p.Config.Labels[labelMake] != "" {
			images[p.Image] = true
		}
	}
	for _, id := range ids {
		if d.pods[id] == nil {
			delete(d.names, id)
		}
	}
	for image := range images {
		labels, err := e.imageLabels(ctx, image)
		if err != nil {
			return err
		}
		for _, p := range found {
			p.inherited = p.inherited || p.Image == image && labels[labelMake] != "" && labels[labelMake] == p.Config.Labels[labelMake]
		}
	}
	return nil
}

// byName is the container of a name; nil for none.
func byName(all []*pod, name string) *pod {
	return podWhere(all, func(p *pod) bool { return p.Name == name })
}

// A picked container is one that a filter of the engine's names; pod is nil if it is known by
// no more than that.
type picked struct {
	id, name string
	pod      *pod
}

// picked are the containers that a filter picks, those that do not run too.
func (e podEngine) picked(ctx context.Context, filter string) ([]picked, error) {
	out, err := e.ask(ctx, "ps", "--all", "--no-trunc", "--filter", filter, "--format", "{{.ID}}\t{{.Names}}")
	if err != nil {
		return nil, err
	}
	pods, err := e.pods(ctx)
	if err != nil {
		return nil, err
	}
	var all []picked
	for line := range strings.Lines(out) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		all = append(all, picked{id, name, byID(pods, id)})
	}
	return all, nil
}

// byID is the container with an id; nil for none.
func byID(all []*pod, id string) *pod {
	return podWhere(all, func(p *pod) bool { return id != "" && p.ID == id })
}

// byMark is the container with golem's mark; nil for none.
func byMark(all []*pod, mark string) *pod {
	return podWhere(all, func(p *pod) bool { return mark != "" && p.mark() == mark })
}

func podWhere(all []*pod, is func(*pod) bool) *pod {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i]
	}
	return nil
}
