package reconcilers

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"golem/scrolls"
)

// Where a process lies.
const (
	unitDir   = "/etc/systemd/system"
	bundleDir = "/usr/local/lib/golem"
)

// A processPlan is what a process glyph asks for: every path with what must stand
// there, and the unit that is started.
type processPlan struct {
	name  string
	paths map[string]Node
	// main is the unit that runs or stops with the process's state: the timer where
	// there is one.
	main    string
	timed   bool
	running bool
}

func serviceOf(name string) string { return name + ".service" }
func timerOf(name string) string   { return name + ".timer" }

// planProcess works out a glyph's paths.
func planProcess(g *scrolls.Glyph) processPlan {
	p := processPlan{name: str(g.Attrs, "name"), paths: map[string]Node{}, running: str(g.Attrs, "state") != "stopped"}
	p.main = serviceOf(p.name)
	own := func(n Node, mode int) Node {
		n.Mode, n.UID, n.GID = mode, 0, 0
		return n
	}
	p.paths[unitDir+"/"+p.main] = own(fileNode([]byte(serviceText(g))), 0o644)
	if hidden := hiddenEnv(g); hidden != "" {
		p.paths[envFile(p.name)] = own(fileNode([]byte(hidden)), 0o600)
	}
	for name, node := range bundleFiles(g) {
		p.paths[path.Join(bundleDir, p.name, name)] = own(node, node.Mode)
	}
	target := "multi-user.target"
	if when, ok := g.Attrs["schedule"].(string); ok {
		p.main, p.timed, target = timerOf(p.name), true, "timers.target"
		p.paths[unitDir+"/"+p.main] = own(fileNode([]byte(timerText(p.name, when))), 0o644)
	}
	if on, ok := g.Attrs["enabled"].(bool); !ok || on {
		link := Node{Type: Link, Target: Bytes(unitDir + "/" + p.main), UID: 0, GID: 0}
		p.paths[unitDir+"/"+target+".wants/"+p.main] = link
	}
	return p
}

// processPaths are the paths that a glyph keeps, for what has to know what is needed.
func processPaths(g *scrolls.Glyph) []string {
	p := planProcess(g)
	paths := slices.Collect(maps.Keys(p.paths))
	if p.timed {
		paths = append(paths, stamp(p.name))
	}
	slices.Sort(paths)
	return paths
}

func envFile(name string) string { return bundleDir + "/" + name + ".env" }

// bundleFiles are the bundle's files by name, each with its bytes or where they are,
// and mode 0755 for what is to be executed.
func bundleFiles(g *scrolls.Glyph) map[string]Node {
	files := map[string]Node{}
	command := words(g.Attrs, "command")
	for name, value := range object(g.Attrs, "bundle") {
		var n Node
		exec := len(command) > 0 && path.Clean(command[0]) == name
		switch v := value.(type) {
		case string:
			n = fileNode([]byte(v))
			exec = exec || strings.HasPrefix(v, "#!")
		case map[string]any:
			n = fileNode(nil)
			n.data = nil
			n.Hash, _ = v["sha256"].(string)
			if size, ok := v["size"].(json.Number); ok {
				n.Size, _ = size.Int64()
			}
			if n.local = g.Files["bundle/"+name]; n.local == "" {
				n.Blob = n.Hash // a glyph from the journal: its bytes are there
			}
			if n.Size == 0 {
				n.data = []byte{}
			}
			marked, _ := v["exec"].(bool)
			exec = exec || marked
		}
		n.Mode = 0o644
		if exec {
			n.Mode = 0o755
		}
		files[name] = n
	}
	return files
}

// serviceText is the text of the process's service.
func serviceText(g *scrolls.Glyph) string {
	a := g.Attrs
	name := str(a, "name")
	_, timed := a["schedule"]
	var b strings.Builder
	b.WriteString("# Made by golem: change the scroll, not this file.\n")
	fmt.Fprintf(&b, "[Unit]\nDescription=%s, a process of golem\n\n[Service]\n", literal(name))
	if values, ok := object(a, "settings")["Type"]; !ok {
		typ := "exec"
		if timed {
			typ = "oneshot"
		}
		fmt.Fprintf(&b, "Type=%s\n", typ)
	} else {
		fmt.Fprintf(&b, "Type=%s\n", strings.Join(settingValues(values), ""))
	}
	fmt.Fprintf(&b, "ExecStart=%s\n", execLine(g))
	if len(object(a, "bundle")) > 0 {
		fmt.Fprintf(&b, "WorkingDirectory=%s\n", literal(path.Join(bundleDir, name)))
	}
	if user := str(a, "user"); user != "" {
		fmt.Fprintf(&b, "User=%s\n", literal(user))
	}
	envLines(&b, g)
	restart := str(a, "restart")
	if restart == "" && !timed {
		restart = "on-failure"
	}
	if restart != "" && restart != "no" {
		fmt.Fprintf(&b, "Restart=%s\n", restart)
	}
	limits := object(a, "limits")
	for _, l := range [][2]string{{"memory", "MemoryMax"}, {"cpu", "CPUQuota"}, {"tasks", "TasksMax"}} {
		if v := limits[l[0]]; v != nil {
			fmt.Fprintf(&b, "%s=%v\n", l[1], v)
		}
	}
	settings := object(a, "settings")
	for _, setting := range slices.Sorted(maps.Keys(settings)) {
		if setting == "Type" {
			continue
		}
		for _, value := range settingValues(settings[setting]) {
			fmt.Fprintf(&b, "%s=%s\n", setting, value)
		}
	}
	if !timed {
		b.WriteString("\n[Install]\nWantedBy=multi-user.target\n")
	}
	return b.String()
}

func timerText(name, when string) string {
	return fmt.Sprintf("# Made by golem: change the scroll, not this file.\n[Unit]\nDescription=When %s runs, a process of golem\n\n"+
		"[Timer]\nOnCalendar=%s\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n", literal(name), when)
}

// execLine is the command as ExecStart has it, every word literal
// (systemd.service(5), "Command lines").
func execLine(g *scrolls.Glyph) string {
	command := words(g.Attrs, "command")
	program := command[0]
	if !path.IsAbs(program) && len(object(g.Attrs, "bundle")) > 0 {
		program = path.Join(bundleDir, str(g.Attrs, "name"), program)
	}
	line := []string{unitWord(program)}
	for _, word := range command[1:] {
		line = append(line, strings.ReplaceAll(unitWord(word), "$", "$$"))
	}
	return strings.Join(line, " ")
}

// literal keeps systemd from expanding a text's specifiers.
func literal(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// unitWord is one word of a unit's line, quoted where it has to be.
func unitWord(s string) string {
	s = literal(s)
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune(`"'\;`, r)
	}) {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// envLines writes the environment: plainly, or as the name of a file that only root
// reads, since anybody may ask systemd for a unit's environment.
func envLines(b *strings.Builder, g *scrolls.Glyph) {
	if slices.Contains(g.Secret, "env") {
		fmt.Fprintf(b, "EnvironmentFile=%s\n", literal(envFile(str(g.Attrs, "name"))))
		return
	}
	env := object(g.Attrs, "env")
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value, _ := env[name].(string)
		fmt.Fprintf(b, "Environment=%s\n", unitWord(name+"="+value))
	}
}

// hiddenEnv is the file of sensitive variables, as EnvironmentFile reads it
// (systemd.exec(5)); "" where there are none.
func hiddenEnv(g *scrolls.Glyph) string {
	env := object(g.Attrs, "env")
	if !slices.Contains(g.Secret, "env") {
		return ""
	}
	var b strings.Builder
	b.WriteString("# Made by golem: change the scroll, not this file.\n")
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value, _ := env[name].(string)
		fmt.Fprintf(&b, "%s=\"%s\"\n", name, quoted.Replace(value))
	}
	return b.String()
}
