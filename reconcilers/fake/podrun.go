package fake

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A podRun is one command of an engine.
type podRun struct {
	m       *podMemory
	e       *Engine
	engine  string
	changed bool
	look    int // which of all looks this is
}

// podArgs parts arguments into options, each as often as it is given, and words. After the
// first word of a create, all are words.
func podArgs(args []string, stop bool) (map[string][]string, []string) {
	options, words := map[string][]string{}, []string{}
	for i := 0; i < len(args); i++ {
		name, value, eq := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		switch {
		case !strings.HasPrefix(args[i], "--"):
			if words = append(words, args[i]); stop {
				return options, append(words, args[i+1:]...)
			}
		case eq || slices.Contains([]string{"all", "no-trunc", "force", "volumes", "internal", "quiet"}, name):
			options[name] = append(options[name], value)
		case i+1 < len(args):
			i++
			options[name] = append(options[name], args[i])
		}
	}
	return options, words
}

func (r *podRun) act(args []string) (string, error) {
	verb, rest := args[0], args[1:]
	if verb == "image" || verb == "network" {
		verb, rest = verb+" "+args[1], args[2:]
	}
	options, words := podArgs(rest, verb == "create")
	switch verb {
	case "ps":
		return r.ps(options), nil
	case "inspect":
		return r.inspect(words)
	case "image inspect":
		return r.inspectImage(options["format"][0], words[0])
	case "network ls":
		return strings.Join(slices.Sorted(maps.Keys(r.e.Networks)), "\n") + "\n", nil
	case "network inspect":
		return r.inspectNetworks(words)
	case "logs":
		return "its last words\n", nil
	}
	r.changed = true
	switch verb {
	case "create":
		return r.create(options, words)
	case "start", "stop", "rename", "rm", "pause", "unpause":
		return "", r.change(verb, words, len(options["force"]) > 0)
	case "pull", "load":
		return "", r.pull(append(options["input"], words...)[0])
	case "rmi":
		return "", r.rmi(words[0])
	case "network create":
		return "", r.makeNetwork(options, words[0])
	case "network rm":
		return "", r.dropNetwork(words[0])
	case "network connect", "network disconnect":
		return "", r.connect(verb == "network connect", words[0], words[1])
	}
	return "", podError("unknown command " + verb)
}

func (r *podRun) id() string {
	r.m.Next++
	return fmt.Sprintf("%064x", 0xabc000+r.m.Next)
}

func (r *podRun) find(name string) *Container {
	if c := r.e.Containers[name]; c != nil {
		return c
	}
	for _, c := range r.e.Containers {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (r *podRun) image(name string) *Image {
	for id, i := range r.e.Images {
		if id == strings.TrimPrefix(name, "sha256:") || slices.Contains(i.Names, name) {
			return i
		}
	}
	return nil
}

func (r *podRun) sha(id string) string {
	if r.engine == "docker" {
		return "sha256:" + id
	}
	return id
}
