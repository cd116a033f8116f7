package reconcilers

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"golem/scrolls"
)

var processKind = Kind{
	Sort: processSort, keeps: processPaths,
	Kind: scrolls.Kind{
		Name: "process", Version: 1, LabelAttr: "name",
		Doc: "A program that systemd runs for golem: a unit of golem's own, with a timer where there is a `schedule`, and " +
			"a bundle of files in `/usr/local/lib/golem`. They are made, changed and removed as one. There must be " +
			"nothing by these names before. Undeclared, it is stopped and disabled, its unit, timer and bundle are " +
			"removed, and systemd is told.",
		Attrs: []scrolls.Attr{
			{Name: "name", Type: cty.String, Doc: "The unit's name without `.service`. The label by default."},
			{
				Name: "command", Type: cty.List(cty.String), Required: true,
				Hint: `Write each word on its own: ["./backup.sh", "--all"].`,
				Doc: "The program and its arguments, each literal: no shell, nothing expanded. The first word is an absolute " +
					"path, a file of the bundle, or, without a bundle, a program's plain name.",
			},
			{
				Name: "bundle", Type: cty.DynamicPseudoType, Folder: true, TypeText: "map of file name to content, or a directory's name",
				Doc: "Files that belong to it: given with their content, or as a directory relative to the scroll's. They lie in " +
					"`/usr/local/lib/golem/NAME`, where the program runs.",
			},
			{Name: "env", Type: cty.Map(cty.String), Doc: "Environment variables. Sensitive ones go to a file that only root reads."},
			{Name: "user", Type: cty.String, Default: "root", Doc: "The user it runs as."},
			{Name: "schedule", Type: cty.String, Doc: "When to run it, as systemd's OnCalendar has it; makes a timer, and each run is one of its own."},
			{
				Name: "restart", Type: cty.String, Default: "`on-failure`; `no` with a schedule",
				Doc: "When systemd starts it again: `no`, `always`, `on-success`, `on-failure`, `on-abnormal`, `on-watchdog` or `on-abort`.",
			},
			{
				Name: "limits", TypeText: "object",
				Type: cty.ObjectWithOptionalAttrs(map[string]cty.Type{"memory": cty.String, "cpu": cty.String, "tasks": cty.Number}, []string{"memory", "cpu", "tasks"}),
				Doc:  "`memory` as `512M`, `cpu` as `50%` of one processor, `tasks` as a number of threads and processes.",
			},
			{
				Name: "settings", Type: cty.DynamicPseudoType, TypeText: "map of setting to value or values",
				Doc: "More lines of the unit's `[Service]` section, as systemd.service(5) and systemd.exec(5) have them.",
			},
			{Name: "enabled", Type: cty.Bool, Default: "`true`", Doc: "Whether it, or its timer, starts with the host."},
			{Name: "state", Type: cty.String, Default: "`running`", Doc: "`running` or `stopped`; of the timer where there is one."},
		},
		NoAdopt: "A process is a unit of golem's own, and golem makes none where there is one already. Declare a unit that is " +
			"there as what it is: a service, and a file for its text.",
		Identity:  func(a scrolls.Attrs) []string { return []string{str(a, "name")} },
		Check:     checkProcess,
		Canonical: canonicalProcess,
	},
}

var (
	processName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,199}$`)
	programName  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*$`)
	envName      = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	settingName  = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	memorySize   = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?[KMGT]?$|^[0-9]+(\.[0-9]+)?%$|^infinity$`)
	cpuShare     = regexp.MustCompile(`^[1-9][0-9]*%$`)
	restartWords = []string{"no", "always", "on-success", "on-failure", "on-abnormal", "on-watchdog", "on-abort"}
)

// checkProcess says what is wrong with a process before any host is looked at.
func checkProcess(a scrolls.Attrs) []scrolls.Problem {
	var problems []scrolls.Problem
	wrong := func(attr, summary, format string, args ...any) {
		problems = append(problems, scrolls.Problem{Attr: attr, Summary: summary, Detail: fmt.Sprintf(format, args...)})
	}
	name := str(a, "name")
	if !processName.MatchString(name) || strings.HasSuffix(name, ".service") || strings.HasSuffix(name, ".timer") {
		wrong("name", "Not a process's name", "%q must be letters, digits, \"_\", \"-\" and \".\", without \".service\": golem makes NAME.service of it.", name)
	}
	problems = append(problems, checkBundle(a)...)
	problems = append(problems, checkCommand(a)...)
	for _, key := range slices.Sorted(maps.Keys(object(a, "env"))) {
		if !envName.MatchString(key) {
			wrong("env", "Not a variable's name", "%q cannot be the name of an environment variable.", key)
		}
	}
	if text, ok := a["restart"].(string); ok && !slices.Contains(restartWords, text) {
		wrong("restart", "Unknown restart", "%q is none of %s.", text, strings.Join(restartWords, ", "))
	}
	if _, timed := a["schedule"]; timed && strings.TrimSpace(str(a, "schedule")) == "" {
		wrong("schedule", "Schedule is empty", "Write it as OnCalendar has it, like \"daily\" or \"Mon *-*-* 03:00\".")
	}
	if text, ok := a["state"].(string); ok && text != "running" && text != "stopped" {
		wrong("state", "Unknown state", "%q is neither \"running\" nor \"stopped\".", text)
	}
	limits := object(a, "limits")
	if text, ok := limits["memory"].(string); ok && !memorySize.MatchString(text) {
		wrong("limits", "Not an amount of memory", "%q is not an amount of memory, like \"512M\".", text)
	}
	if text, ok := limits["cpu"].(string); ok && !cpuShare.MatchString(text) {
		wrong("limits", "Not a share of processors", "%q is not a share of one processor, like \"50%%\" or \"200%%\".", text)
	}
	if n, ok := limits["tasks"].(json.Number); ok {
		if count, err := n.Int64(); err != nil || count < 1 {
			wrong("limits", "Not a number of tasks", "%s is not a whole number above zero.", n)
		}
	}
	return append(problems, checkSettings(a)...)
}

// checkBundle says what is wrong with the files that a process brings along.
func checkBundle(a scrolls.Attrs) []scrolls.Problem {
	value, given := a["bundle"]
	if !given {
		return nil
	}
	one := func(summary, format string, args ...any) []scrolls.Problem {
		return []scrolls.Problem{{Attr: "bundle", Summary: summary, Detail: fmt.Sprintf(format, args...)}}
	}
	files, ok := value.(map[string]any)
	if !ok || len(files) == 0 {
		return one("Not a bundle", "Write a map of file names to contents, { \"run.sh\" = file(\"run.sh\") }, or the name of a directory.")
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch content := files[name].(type) {
		case string, map[string]any:
		default:
			return one("Not a bundle", "%q must have its content, a string; %v is given.", name, content)
		}
		if name == "" || path.Clean(name) != name || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "../") || name == ".." || name == "." ||
			strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return one("Not a file's name", "%q must be a clean name inside the bundle, like \"run.sh\" or \"lib/common.sh\".", name)
		}
		for up := path.Dir(name); up != "."; up = path.Dir(up) {
			if files[up] != nil {
				return one("Not a file's name", "%q is a file, and %q lies in it.", up, name)
			}
		}
	}
	return nil
}

// checkCommand says what is wrong with the command line of a process.
func checkCommand(a scrolls.Attrs) []scrolls.Problem {
	one := func(summary, format string, args ...any) []scrolls.Problem {
		return []scrolls.Problem{{Attr: "command", Summary: summary, Detail: fmt.Sprintf(format, args...)}}
	}
	command := words(a, "command")
	if len(command) == 0 || command[0] == "" {
		return one("Command is empty", "The first word is the program.")
	}
	for _, word := range command {
		if strings.ContainsRune(word, 0) {
			return one("Command holds a NUL byte", "No argument can hold one.")
		}
	}
	program := command[0]
	files := object(a, "bundle")
	switch {
	case path.IsAbs(program):
		if path.Clean(program) != program {
			return one("Path is not clean", "%q holds \"..\", \".\" or a double slash.", program)
		}
	case len(files) > 0:
		if files[path.Clean(program)] == nil {
			return one("Program is not in the bundle", "%q is no file of the bundle, and not an absolute path.", program)
		}
	case !programName.MatchString(program):
		return one("Not a program", "%q must be an absolute path, or a program's plain name. Words of one command are written apart: [\"%s\"].",
			program, strings.Join(strings.Fields(program), "\", \""))
	}
	return nil
}

// checkSettings says what is wrong with the settings that go into the unit as they are.
func checkSettings(a scrolls.Attrs) []scrolls.Problem {
	value, given := a["settings"]
	if !given {
		return nil
	}
	one := func(summary, format string, args ...any) []scrolls.Problem {
		return []scrolls.Problem{{Attr: "settings", Summary: summary, Detail: fmt.Sprintf(format, args...)}}
	}
	settings, ok := value.(map[string]any)
	if !ok {
		return one("Not settings", "Write a map, like { PrivateTmp = \"yes\" }.")
	}
	own := []string{"ExecStart", "User", "Restart", "Environment", "EnvironmentFile", "WorkingDirectory", "Type", "MemoryMax", "CPUQuota", "TasksMax"}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if !settingName.MatchString(name) {
			return one("Not a setting's name", "%q is not a setting of a unit, like \"PrivateTmp\".", name)
		}
		if slices.Contains(own, name) && (name != "Type" && name != "EnvironmentFile") {
			return one("Setting is golem's", "%s is written by golem from the process's own arguments.", name)
		}
		for _, value := range settingValues(settings[name]) {
			if value == "\x00" || strings.ContainsAny(value, "\n\r\x00") {
				return one("Not a setting's value", "%s must be a text of one line, or a list of them.", name)
			}
		}
	}
	return nil
}

// settingValues are the lines of one setting; "\x00" stands for what is no text.
func settingValues(value any) []string {
	switch v := value.(type) {
	case string:
		return []string{v}
	case json.Number:
		return []string{string(v)}
	case bool:
		return []string{map[bool]string{true: "yes", false: "no"}[v]}
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, settingValues(one)...)
		}
		return all
	}
	return []string{"\x00"}
}

// canonicalProcess spells what has a default, and bundle files by their hash: the same
// bytes are the same version, however they were given.
func canonicalProcess(a scrolls.Attrs) scrolls.Attrs {
	c := maps.Clone(a)
	if files := object(a, "bundle"); len(files) > 0 {
		sums := map[string]any{}
		for name, node := range bundleFiles(&scrolls.Glyph{Attrs: a}) {
			sums[name] = map[string]any{"sha256": node.Hash, "mode": fmt.Sprintf("%04o", node.Mode)}
		}
		c["bundle"] = sums
	}
	for name, value := range map[string]any{"enabled": true, "state": "running"} {
		if c[name] == value {
			delete(c, name)
		}
	}
	return c
}
