package reconcilers

import (
	"fmt"
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"golem/scrolls"
)

// ContainerSort is the sort of resource that containers are; a resource is the engine's
// name and the container's, "podman:web".
const ContainerSort = "container"

var containerKind = Kind{
	Sort: ContainerSort, keeps: containerKeeps,
	Kind: scrolls.Kind{
		Name: "container", Version: 1, LabelAttr: "name",
		Doc: "A container of podman's, or of docker's. What is not written is not compared. Containers cannot be changed: for all " +
			"but `state`, a new one is made in the place of the old one, whose writable layer and anonymous volumes are lost; named volumes and " +
			"directories of the host stay, whatever happens. A new one that does not stay up for a second fails, with its last " +
			"lines, and the old one runs on. A container of that name that golem did not make is refused unless `adopt`, or an adopt block, " +
			"says that it may be taken over: it stays as long as it is as declared; when a change needs a new one, it is stopped and " +
			"renamed `NAME.found`, and given back when the glyph goes, running if it ran. Golem's own bear the labels " +
			"`golem.key`, `golem.cid` (of all but `state`) and `golem.make`. Undeclared, golem's own is removed with its anonymous volumes, and the " +
			"image that golem pulled for it, unless something else uses that.",
		Attrs: []scrolls.Attr{
			{Name: "name", Type: cty.String, Doc: "The container's name. The label by default."},
			{
				Name: "image", Type: cty.String,
				Doc: "A name or an id, pulled only if the host does not have it; or `oci-archive:/FILE`, `docker-archive:/FILE`. A tag " +
					"that means another image by now is no drift. Required, but for a container that is adopted.",
			},
			{Name: "command", Type: cty.List(cty.String), Hint: `Write each word on its own: ["serve", "--all"].`, Doc: "The words given to the image's entrypoint, or run in its place."},
			{Name: "env", Type: cty.Map(cty.String), Doc: "Environment variables. Sensitive ones stand on no command line and in no output."},
			{
				Name: "mounts", TypeText: "list of { source or volume, target, read_only }",
				Type: cty.List(cty.ObjectWithOptionalAttrs(
					map[string]cty.Type{"source": cty.String, "volume": cty.String, "target": cty.String, "read_only": cty.Bool},
					[]string{"source", "volume", "read_only"})),
				Doc: "Paths of the host (`source`), which have to be there, and named volumes (`volume`), which the engine makes. Neither is ever removed.",
			},
			{Name: "ports", Type: cty.List(cty.String), Doc: "Ports of the host that lead into it: `\"127.0.0.1:8080:80/tcp\"`, `\"8080:80\"`. One that is in use, and that nothing of the run may free before, is refused."},
			{Name: "networks", Type: cty.List(cty.String), Default: "the engine's own", Doc: "Names of networks that it is on; `[\"host\"]` for the host's own, `[\"none\"]` for none."},
			{
				Name: "restart", Type: cty.String, Default: "`no`",
				Doc: "When the engine starts it again: `no`, `on-failure`, `on-failure:N`, `always`, `unless-stopped`. At boot podman starts those " +
					"with `always`, and only if `podman-restart.service` is enabled.",
			},
			{Name: "labels", Type: cty.Map(cty.String), Doc: "More labels."},
			{Name: "state", Type: cty.String, Default: "`running`; of an adopted one, as it is", Doc: "`running` or `stopped`."},
			{Name: "engine", Type: cty.String, Default: "`podman`", Doc: "`podman` or `docker`."},
			{Name: "adopt", Type: cty.Bool, Default: "`false`", Doc: "Whether a container of that name that is there already may be taken over."},
		},
		Identity:  func(a scrolls.Attrs) []string { return []string{str(a, "name")} },
		Check:     checkContainer,
		Canonical: canonicalContainer,
	},
}

var (
	podName      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,199}$`)
	imageName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*$`)
	imageDigest  = regexp.MustCompile(`^(sha256:)?[0-9a-f]{64}$`) // of an image
	podRestart   = regexp.MustCompile(`^(no|always|unless-stopped|on-failure(:[1-9][0-9]*)?)$`)
	podPort      = regexp.MustCompile(`^(?:(\[[0-9A-Fa-f:.]+\]|[0-9.]+):)?([0-9]{1,5}):([0-9]{1,5})(?:/(tcp|udp|sctp))?$`)
	engines      = []string{"podman", "docker"}
	podConnected = []string{"host", "none"} // what stands for no network of the engine's
)

// containerKeeps lists what a container needs beside itself: its image, if golem pulled
// it, and the paths of the host in it.
func containerKeeps(g *scrolls.Glyph) []string {
	var all []string
	if ref := str(g.Attrs, "image"); ref != "" {
		all = append(all, RecordKey(imageSort, engineOf(g)+":"+ref))
	}
	for _, m := range mountsOf(g.Attrs) {
		if m.source != "" {
			all = append(all, m.source)
		}
	}
	return all
}

// checkContainer says what is wrong with a container before any host is looked at.
func checkContainer(a scrolls.Attrs) []scrolls.Problem {
	var c checks
	c.engine(a)
	if name := str(a, "name"); !podName.MatchString(name) {
		c.wrong("name", "Not a container's name", "%q must be letters, digits, \"_\", \".\" and \"-\".", name)
	}
	adopt, _ := a["adopt"].(bool)
	image, given := a["image"].(string)
	switch scheme, file, archive := archiveOf(image); {
	case !given && !adopt:
		c.wrong("", "Missing argument", "A container needs the argument \"image\", unless it is one that is there already and that golem may adopt.")
	case archive && (!path.IsAbs(file) || path.Clean(file) != file):
		c.wrong("image", "Not an archive", "%q must name its file by an absolute path: \"%s:/srv/image.tar\".", image, scheme)
	case given && !archive && !imageName.MatchString(image):
		c.wrong("image", "Not an image", "%q is neither the name of an image, like \"docker.io/library/nginx:1.27\", nor \"oci-archive:/FILE\".", image)
	}
	for _, word := range words(a, "command") {
		if strings.ContainsRune(word, 0) {
			c.wrong("command", "Command holds a NUL byte", "No argument can hold one.")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object(a, "env"))) {
		value, _ := object(a, "env")[key].(string)
		if !envName.MatchString(key) || strings.ContainsRune(value, 0) {
			c.wrong("env", "Not a variable", "%q cannot be the name of an environment variable, or its value holds a NUL byte.", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object(a, "labels"))) {
		if key == "" || strings.HasPrefix(key, labelPrefix) || strings.ContainsAny(key, "= \n") {
			c.wrong("labels", "Not a label", "%q cannot be a label here: no blanks, no \"=\", and nothing that begins with %q, which is golem's.", key, labelPrefix)
		}
	}
	if text, ok := a["restart"].(string); ok && !podRestart.MatchString(text) {
		c.wrong("restart", "Unknown restart", "%q is none of no, on-failure, on-failure:N, always, unless-stopped.", text)
	}
	if text, ok := a["state"].(string); ok && text != "running" && text != "stopped" {
		c.wrong("state", "Unknown state", "%q is neither \"running\" nor \"stopped\".", text)
	}
	if str(a, "state") == "stopped" && str(a, "restart") == "always" {
		c.wrong("restart", "Stopped, and always started again", "With \"always\" the engine starts it when the host boots. Leave out one of the two.")
	}
	c.mounts(a)
	c.ports(a)
	c.networks(a)
	return c.found
}

// checks gathers what is wrong with a glyph.
type checks struct{ found []scrolls.Problem }

func (c *checks) wrong(attr, summary, format string, args ...any) {
	c.found = append(c.found, scrolls.Problem{Attr: attr, Summary: summary, Detail: fmt.Sprintf(format, args...)})
}

func (c *checks) engine(a scrolls.Attrs) {
	if text, ok := a["engine"].(string); ok && !slices.Contains(engines, text) {
		c.wrong("engine", "Unknown engine", "%q is neither \"podman\" nor \"docker\".", text)
	}
}

func (c *checks) mounts(a scrolls.Attrs) {
	seen := map[string]bool{}
	for _, m := range mountsOf(a) {
		switch {
		case (m.source == "") == (m.volume == ""):
			c.wrong("mounts", "Not a mount", "What is mounted on %q must be either a source, a path of the host, or a volume.", m.target)
		case m.source != "" && !cleanMount(m.source):
			c.wrong("mounts", "Not a path", "%q must be an absolute path of the host, clean and without commas.", m.source)
		case m.volume != "" && !podName.MatchString(m.volume):
			c.wrong("mounts", "Not a volume's name", "%q must be letters, digits, \"_\", \".\" and \"-\".", m.volume)
		case !cleanMount(m.target) || m.target == "/":
			c.wrong("mounts", "Not a path", "%q must be an absolute path in the container, clean, without commas, and not \"/\".", m.target)
		case seen[m.target]:
			c.wrong("mounts", "Two mounts on one path", "%q is the target of two mounts.", m.target)
		}
		seen[m.target] = true
	}
}

func cleanMount(p string) bool {
	return path.IsAbs(p) && path.Clean(p) == p && !strings.ContainsAny(p, ",\"\x00\n")
}

func (c *checks) ports(a scrolls.Attrs) {
	var seen []port
	for _, text := range words(a, "ports") {
		p, ok := portOf(text)
		if !ok {
			c.wrong("ports", "Not a port", "%q is not like \"8080:80\" or \"127.0.0.1:8080:80/tcp\": the host's address and port, then the container's.", text)
			continue
		}
		for _, other := range seen {
			if p != other && p.overlaps(other) {
				c.wrong("ports", "Port given twice", "Port %s of the host leads to %d and to %d in the container. Leave out one of the two.", p, other.in, p.in)
			}
		}
		seen = append(seen, p)
	}
}

func (c *checks) networks(a scrolls.Attrs) {
	networks := words(a, "networks")
	for _, n := range networks {
		switch {
		case !podName.MatchString(n):
			c.wrong("networks", "Not a network's name", "%q must be letters, digits, \"_\", \".\" and \"-\".", n)
		case slices.Contains(podConnected, n) && len(networks) > 1:
			c.wrong("networks", "Network is not alone", "%q cannot stand beside others.", n)
		case slices.Contains(podConnected, n) && len(words(a, "ports")) > 0:
			c.wrong("ports", "No ports without a network", "With the network %q no port of the host leads into the container.", n)
		}
	}
}

// canonicalContainer spells defaults, and leaves out what is no part of what it is.
func canonicalContainer(a scrolls.Attrs) scrolls.Attrs {
	c := lessAttrs(a, "adopt")
	for name, value := range map[string]string{"engine": "podman", "restart": "no"} {
		if c[name] == value {
			delete(c, name)
		}
	}
	if adopt, _ := a["adopt"].(bool); !adopt && c["state"] == "running" {
		delete(c, "state")
	}
	for name, value := range c {
		switch v := value.(type) {
		case []any:
			if len(v) == 0 {
				delete(c, name)
			}
		case map[string]any:
			if len(v) == 0 {
				delete(c, name)
			}
		}
	}
	return c
}

// engineOf is the program that keeps what a glyph declares.
func engineOf(g *scrolls.Glyph) string {
	if name := str(g.Attrs, "engine"); name != "" {
		return name
	}
	return "podman"
}

// A mount is one of a container's.
type mount struct {
	source, volume, target string
	readOnly               bool
}

func mountsOf(a scrolls.Attrs) []mount {
	list, _ := a["mounts"].([]any)
	var all []mount
	for _, value := range list {
		o, _ := value.(map[string]any)
		m := mount{}
		m.source, _ = o["source"].(string)
		m.volume, _ = o["volume"].(string)
		m.target, _ = o["target"].(string)
		m.readOnly, _ = o["read_only"].(bool)
		all = append(all, m)
	}
	return all
}

func (m mount) option() string {
	text := "type=bind,source=" + m.source
	if m.volume != "" {
		text = "type=volume,source=" + m.volume
	}
	if text += ",target=" + m.target; m.readOnly {
		text += ",readonly"
	}
	return text
}

// A port of the host leads into a container.
type port struct {
	ip   string // "" for every address
	host int
	in   int
	via  string // tcp, udp, sctp
}

func portOf(text string) (port, bool) {
	m := podPort.FindStringSubmatch(text)
	if m == nil {
		return port{}, false
	}
	p := port{ip: strings.Trim(m[1], "[]"), via: m[4]}
	p.host, _ = strconv.Atoi(m[2]) // digits, at most five
	p.in, _ = strconv.Atoi(m[3])
	if p.via == "" {
		p.via = "tcp"
	}
	if p.ip != "" {
		if _, err := netip.ParseAddr(p.ip); err != nil {
			return port{}, false
		}
	}
	return p, p.host > 0 && p.host < 1<<16 && p.in > 0 && p.in < 1<<16
}

func (p port) String() string {
	text := strconv.Itoa(p.host) + "/" + p.via
	switch {
	case strings.Contains(p.ip, ":"):
		return "[" + p.ip + "]:" + text
	case p.ip != "":
		return p.ip + ":" + text
	}
	return text
}

func portsOf(a scrolls.Attrs) []port {
	var all []port
	for _, text := range words(a, "ports") {
		if p, ok := portOf(text); ok {
			all = append(all, p)
		}
	}
	return all
}
