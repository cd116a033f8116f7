package fake

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

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
			"NetworkMode": c.Mode, "RestartPolicy": map[string]any{"Name": policy, "MaximumRetryCount": retries}, "PortBindings": c.portBindings(),
		},
		"Mounts": c.mounted(), "NetworkSettings": map[string]any{"Networks": networks},
	}
}

// portBindings are the published ports, by the port inside.
func (c *Container) portBindings() map[string][]map[string]string {
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
	return ports
}

// mounted are the mounts that were asked for, and the image's own volume.
func (c *Container) mounted() []map[string]any {
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
	return mounts
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
