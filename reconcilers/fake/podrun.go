package fake

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
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

func (r *podRun) ps(options map[string][]string) string {
	var lines []string
	for id, c := range r.e.Containers {
		shows := true
		for _, filter := range options["filter"] {
			what, value, _ := strings.Cut(filter, "=")
			switch what {
			case "network":
				shows = shows && slices.Contains(c.Networks, value)
			case "ancestor":
				i := r.image(value)
				shows = shows && i != nil && c.Image == i.ID
			}
		}
		if !shows {
			continue
		}
		var labels []string
		for key, value := range c.Labels {
			labels = append(labels, key+map[string]string{"podman": ":", "docker": "="}[r.engine]+value)
		}
		slices.Sort(labels)
		text := strings.NewReplacer("{{.ID}}", id, "{{.Names}}", c.Name, "{{.Labels}}", strings.Join(labels, ",")).Replace(options["format"][0])
		lines = append(lines, text+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func (r *podRun) inspect(names []string) (string, error) {
	all, missing := []any{}, ""
	for _, name := range names {
		c := r.find(name)
		if c == nil {
			missing = name
			continue
		}
		all = append(all, r.tell(c))
	}
	out, _ := json.Marshal(all)
	if missing != "" {
		return string(out), podError("no such container " + missing)
	}
	return string(out), nil
}

// tell is a container as inspect tells of it.
func (r *podRun) tell(c *Container) any {
	name, ref := c.Name, c.Ref
	if r.engine == "docker" {
		name = "/" + name
	}
	networks := map[string]any{}
	for _, n := range c.Networks {
		networks[n] = map[string]any{}
	}
	ports := map[string][]map[string]string{}
	for _, text := range c.Ports {
		host, in, _ := cutLast(text, ":")
		if !strings.Contains(in, "/") {
			in += "/tcp"
		}
		ip, n, found := cutLast(host, ":")
		if !found {
			ip, n = "", host
		}
		ports[in] = append(ports[in], map[string]string{"HostIp": ip, "HostPort": n})
	}
	mounts := []map[string]any{}
	for _, text := range c.Mounts {
		m := map[string]any{"RW": !strings.Contains(text, ",readonly")}
		for _, part := range strings.Split(text, ",") {
			key, value, _ := strings.Cut(part, "=")
			switch key {
			case "type":
				m["Type"] = value
			case "target":
				m["Destination"] = value
			case "source":
				m["Source"] = value
			}
		}
		if m["Type"] == "volume" {
			m["Name"] = m["Source"]
		}
		mounts = append(mounts, m)
	}
	if c.Anonymous != "" {
		mounts = append(mounts, map[string]any{"Type": "volume", "Name": c.Anonymous, "Destination": "/data", "RW": true})
	}
	started := c.Started
	if c.ends() && c.Running {
		started += r.look // it was started again since
	}
	policy, count, _ := strings.Cut(c.Restart, ":")
	retries, _ := strconv.Atoi(count)
	return map[string]any{
		"Id": c.ID, "Name": name, "Image": r.sha(c.Image),
		"Config": map[string]any{"Image": ref, "Cmd": c.Cmd, "Env": c.Env, "Labels": c.Labels},
		"State":  map[string]any{"Running": c.Running && (!c.Paused || r.engine == "docker"), "Paused": c.Paused, "Status": status(c), "ExitCode": c.Code, "StartedAt": strconv.Itoa(started)},
		"HostConfig": map[string]any{
			"NetworkMode": c.Mode, "RestartPolicy": map[string]any{"Name": policy, "MaximumRetryCount": retries}, "PortBindings": ports,
		},
		"Mounts": mounts, "NetworkSettings": map[string]any{"Networks": networks},
	}
}

func status(c *Container) string {
	switch {
	case c.Paused:
		return "paused"
	case c.Running:
		return "running"
	}
	return "exited"
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

func (r *podRun) inspectImage(format, name string) (string, error) {
	i := r.image(name)
	switch {
	case i == nil:
		return "", podError(name + ": image not known")
	case format == "{{.Id}}":
		return r.sha(i.ID) + "\n", nil
	case format == "{{json .RepoTags}}":
		names, _ := json.Marshal(i.Names)
		return string(names) + "\n", nil
	}
	labels, _ := json.Marshal(i.Labels)
	return string(labels) + "\n", nil
}

func (r *podRun) inspectNetworks(names []string) (string, error) {
	all := []any{}
	for _, name := range names {
		n := r.e.Networks[name]
		if n == nil {
			return "[]\n", podError("network " + name + " not found")
		}
		all = append(all, r.tellNetwork(n))
	}
	out, _ := json.Marshal(all)
	return string(out), nil
}

// tellNetwork is a network as inspect tells of it.
func (r *podRun) tellNetwork(n *Network) any {
	subnets := []map[string]string{}
	if n.Subnet != "" {
		subnets = append(subnets, map[string]string{"subnet": n.Subnet, "gateway": n.Gateway})
	}
	told := map[string]any{"name": n.Name, "id": n.ID, "driver": n.Driver, "internal": n.Internal, "labels": n.Labels, "options": n.Options, "subnets": subnets}
	if r.engine == "docker" {
		told = map[string]any{"Name": n.Name, "Id": n.ID, "Driver": n.Driver, "Internal": n.Internal, "Labels": n.Labels, "Options": n.Options, "IPAM": map[string]any{"Config": subnets}}
	}
	return told
}

func pairs(list []string) map[string]string {
	all := map[string]string{}
	for _, text := range list {
		key, value, _ := strings.Cut(text, "=")
		all[key] = value
	}
	return all
}

func (r *podRun) create(options map[string][]string, words []string) (string, error) {
	name := options["name"][0]
	i := r.image(words[0])
	switch {
	case r.find(name) != nil:
		return "", podError("the container name " + name + " is already in use")
	case i == nil:
		return "", podError(words[0] + ": image not known")
	}
	c := &Container{
		ID: r.id(), Name: name, Image: i.ID, Ref: words[0], Cmd: words[1:], Labels: pairs(options["label"]),
		Env: options["env"], Ports: options["publish"], Mounts: options["mount"], Networks: options["network"],
	}
	if len(i.Names) > 0 {
		c.Ref = i.Names[0]
	}
	for key, value := range i.Labels {
		if _, own := c.Labels[key]; !own {
			c.Labels[key] = value
		}
	}
	for _, n := range c.Networks {
		if c.Mode = n; n != "host" && n != "none" && r.e.Networks[n] == nil {
			return "", podError("unable to find network with name or ID " + n + ": network not found")
		}
	}
	switch {
	case len(c.Networks) == 0:
		c.Mode, c.Networks = "bridge", []string{r.engine}
	case c.Mode == "host" || c.Mode == "none":
		c.Networks = nil
	}
	for _, file := range options["env-file"] {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", podError(err.Error())
		}
		c.Env = append(c.Env, strings.Split(strings.TrimSpace(string(data)), "\n")...)
	}
	if list := options["restart"]; len(list) > 0 {
		c.Restart = list[0]
	}
	for _, m := range c.Mounts {
		if rest, ok := strings.CutPrefix(m, "type=volume,source="); ok {
			volume, _, _ := strings.Cut(rest, ",")
			if _, there := r.e.Volumes[volume]; !there {
				r.e.Volumes[volume] = false
			}
		}
	}
	if i.Volume {
		c.Anonymous = r.id()
		r.e.Volumes[c.Anonymous] = true
	}
	r.e.Containers[c.ID] = c
	return c.ID + "\n", nil
}

func (r *podRun) change(verb string, words []string, force bool) error {
	c := r.find(words[0])
	if c == nil {
		return podError("no container with name or ID " + words[0] + " found: no such container")
	}
	switch verb {
	case "start":
		if c.Paused {
			return podError("container state improper")
		}
		r.m.Next++
		c.Running, c.Started, c.Code = true, r.m.Next, 0
		if c.ends() && c.Restart != "always" {
			c.Running = false
			c.Code, _ = strconv.Atoi(c.Cmd[1])
		}
	case "stop":
		if c.Paused {
			return podError("is running or paused, refusing to clean up: container state improper")
		}
		c.Running = false
	case "pause", "unpause":
		if !c.Running || c.Paused == (verb == "pause") {
			return podError("can only pause what runs, and let go on what is paused: container state improper")
		}
		c.Paused = verb == "pause"
	case "rename":
		if r.find(words[1]) != nil {
			return podError("name " + words[1] + " is in use")
		}
		c.Name = words[1]
	case "rm":
		if c.Running && !force {
			return podError("cannot remove a running container")
		}
		if delete(r.e.Containers, c.ID); c.Anonymous != "" {
			delete(r.e.Volumes, c.Anonymous)
		}
	}
	return nil
}

// pull takes an image from the registry: by its name, or by its file.
func (r *podRun) pull(name string) error {
	for key, i := range r.e.Registry {
		if key == name || strings.HasSuffix(key, ":"+name) {
			r.e.Images[i.ID] = i
			return nil
		}
	}
	return podError("initializing source " + name + ": connection refused")
}

func (r *podRun) rmi(name string) error {
	i := r.image(name)
	if i == nil {
		return podError(name + ": image not known")
	}
	for _, c := range r.e.Containers {
		if c.Image == i.ID {
			return podError("image used by " + c.ID)
		}
	}
	delete(r.e.Images, i.ID)
	return nil
}

func (r *podRun) makeNetwork(options map[string][]string, name string) error {
	if r.e.Networks[name] != nil {
		return podError("network name " + name + " already used")
	}
	n := &Network{ID: r.id(), Name: name, Driver: "bridge", Labels: pairs(options["label"]), Options: pairs(options["opt"])}
	for option, field := range map[string]*string{"driver": &n.Driver, "subnet": &n.Subnet, "gateway": &n.Gateway} {
		if list := options[option]; len(list) > 0 {
			*field = list[0]
		}
	}
	n.Internal = len(options["internal"]) > 0
	r.e.Networks[name] = n
	return nil
}

func (r *podRun) dropNetwork(name string) error {
	if r.e.Networks[name] == nil {
		return podError("unable to find network with name or ID " + name + ": network not found")
	}
	for _, c := range r.e.Containers {
		if slices.Contains(c.Networks, name) {
			return podError("network " + name + " has associated containers with it")
		}
	}
	delete(r.e.Networks, name)
	return nil
}

func (r *podRun) connect(on bool, network, name string) error {
	c := r.find(name)
	switch {
	case c == nil:
		return podError("no such container " + name)
	case on && r.e.Networks[network] == nil:
		return podError("network " + network + " not found")
	case slices.Contains(c.Networks, network) == on:
		return podError("container " + name + " is connected to the network, or not")
	case on:
		c.Networks = append(c.Networks, network)
	default:
		c.Networks = slices.DeleteFunc(c.Networks, func(n string) bool { return n == network })
	}
	return nil
}
