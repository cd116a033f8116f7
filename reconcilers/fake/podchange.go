package fake

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// pairs are options like KEY=VALUE, by key.
func pairs(list []string) map[string]string {
	all := map[string]string{}
	for _, text := range list {
		key, value, _ := strings.Cut(text, "=")
		all[key] = value
	}
	return all
}

// create makes a container that does not run yet, and prints its id.
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
	if err := r.network(c); err != nil {
		return "", err
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
	r.makeVolumes(c, i)
	r.e.Containers[c.ID] = c
	return c.ID + "\n", nil
}

// network settles what a new container is connected to.
func (r *podRun) network(c *Container) error {
	for _, n := range c.Networks {
		if c.Mode = n; n != "host" && n != "none" && r.e.Networks[n] == nil {
			return podError("unable to find network with name or ID " + n + ": network not found")
		}
	}
	switch {
	case len(c.Networks) == 0:
		c.Mode, c.Networks = "bridge", []string{r.engine}
	case c.Mode == "host" || c.Mode == "none":
		c.Networks = nil
	}
	return nil
}

// makeVolumes makes the volumes of a new container that are not there yet.
func (r *podRun) makeVolumes(c *Container, i *Image) {
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
}

// change does to a container what has no result but that.
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
