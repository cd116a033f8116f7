package fake

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
)

// Pods plays podman, or docker, each with containers, networks, volumes and images of its
// own. All it knows is kept in a file, so that a process that is killed finds it again.
//
// The first word of a container's command says how it behaves: "end" ends at once with
// the exit code that is its second, and where it is always started again, so at every
// look; whatever else runs until it is stopped.
type Pods struct {
	State string // the file; "" for none
	held  *podMemory
	looks atomic.Int64 // how often it was asked
}

// A podMemory is what the engines know.
type podMemory struct {
	Engines map[string]*Engine
	Next    int
	Calls   []string // what changed something, with the engine
}

// An Engine is one of them.
type Engine struct {
	Containers map[string]*Container // by id
	Networks   map[string]*Network   // by name
	Volumes    map[string]bool       // by name; true for anonymous ones
	Images     map[string]*Image     // by id
	// Registry is what can be pulled: a name's image.
	Registry map[string]*Image
}

// A Container is one of an engine's.
type Container struct {
	ID, Name, Image, Ref string
	Cmd, Env             []string
	Labels               map[string]string
	Ports                []string
	Mounts               []string
	Networks             []string
	Mode                 string
	Restart              string
	Anonymous            string // a volume that came with it
	Running, Paused      bool
	Started              int
	Code                 int
	Data                 string // what was written inside
}

// ends says that the container's program ends at once.
func (c *Container) ends() bool { return len(c.Cmd) > 1 && c.Cmd[0] == "end" }

// A Network is one of an engine's.
type Network struct {
	ID, Name, Driver, Subnet, Gateway string
	Internal                          bool
	Labels, Options                   map[string]string
}

// An Image is one of an engine's.
type Image struct {
	ID     string
	Names  []string
	Labels map[string]string
	Volume bool // containers made from it come with a volume
}

func (p *Pods) memory() *podMemory {
	m := &podMemory{Engines: map[string]*Engine{}}
	if p.held != nil {
		m = p.held
	}
	if p.State != "" {
		if data, err := os.ReadFile(p.State); err == nil {
			m = &podMemory{Engines: map[string]*Engine{}}
			if err := json.Unmarshal(data, m); err != nil {
				panic(err) // the test's own file
			}
		}
	}
	for _, name := range []string{"podman", "docker"} {
		if m.Engines[name] == nil {
			m.Engines[name] = &Engine{
				Containers: map[string]*Container{}, Volumes: map[string]bool{}, Images: map[string]*Image{}, Registry: map[string]*Image{},
				Networks: map[string]*Network{name: {ID: strings.Repeat("0", 63) + "1", Name: name, Driver: "bridge"}},
			}
		}
	}
	return m
}

func (p *Pods) save(m *podMemory) {
	if p.held = m; p.State == "" {
		return
	}
	data, err := json.Marshal(m)
	if err == nil {
		err = os.WriteFile(p.State+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(p.State+".new", p.State)
	}
	if err != nil {
		panic(err)
	}
}

// Change lets a test, or somebody on the host, change what an engine has.
func (p *Pods) Change(engine string, change func(e *Engine)) {
	m := p.memory()
	change(m.Engines[engine])
	p.save(m)
}

// Calls are the commands so far that changed something.
func (p *Pods) Calls() []string { return p.memory().Calls }

// Print is a fingerprint of all that the engines have. An id of what bears a label is not
// in it: that is new whenever the thing is made.
func (p *Pods) Print() string {
	m := p.memory()
	var lines []string
	for engine, e := range m.Engines {
		for id, c := range e.Containers {
			labels := maps.Clone(c.Labels)
			if labels["golem.make"] != "" {
				id = "-"
				delete(labels, "golem.make")
			}
			nets := slices.Clone(c.Networks)
			slices.Sort(nets)
			env := slices.Clone(c.Env)
			slices.Sort(env)
			lines = append(lines, fmt.Sprintf("%s container %s %s %s %v %v %v %v %v %v %s %v %s", engine, c.Name, id, c.Ref, c.Cmd, env,
				labels, c.Ports, c.Mounts, nets, c.Restart, status(c), c.Data))
		}
		for _, n := range e.Networks {
			id, labels := n.ID, maps.Clone(n.Labels)
			if labels["golem.make"] != "" {
				id = "-"
				delete(labels, "golem.make")
			}
			lines = append(lines, fmt.Sprintf("%s network %s %s %s %s %s %v %v %v", engine, n.Name, id, n.Driver, n.Subnet, n.Gateway, n.Internal, labels, n.Options))
		}
		for name, anonymous := range e.Volumes {
			if anonymous {
				name = "-"
			}
			lines = append(lines, fmt.Sprintf("%s volume %s", engine, name))
		}
		for id, i := range e.Images {
			lines = append(lines, fmt.Sprintf("%s image %s %v", engine, id, i.Names))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// podError is what an engine says and ends with.
type podError string

func (e podError) Error() string { return string(e) }

// Run answers one command; false for a program that it does not play.
func (p *Pods) Run(argv ...string) (Answer, bool) {
	m := p.memory()
	if m.Engines[argv[0]] == nil {
		return Answer{}, false
	}
	run := podRun{m: m, e: m.Engines[argv[0]], engine: argv[0], look: int(p.looks.Add(1))}
	out, err := run.act(argv[1:])
	if run.changed {
		m.Calls = append(m.Calls, strings.Join(argv, " "))
		p.save(m)
	}
	var said podError
	if errors.As(err, &said) {
		return Answer{Out: out, Err: "Error: " + string(said), Code: 125}, true
	}
	return Answer{Out: out}, true
}

// Host runs commands as somebody on the host does, who gets it right.
func (p *Pods) Host(argv ...string) string {
	a, _ := p.Run(argv...)
	if a.Code != 0 {
		panic(strings.Join(argv, " ") + ": " + a.Err)
	}
	return strings.TrimSpace(a.Out)
}
