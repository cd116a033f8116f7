package reconcilers

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"golem/scrolls"
)

// commandSort is the sort of what commands did; a resource is a command's name.
const commandSort = "command"

var commandKind = Kind{
	Sort: commandSort,
	Kind: scrolls.Kind{
		Name: "command", Local: true, Renames: true, Version: 1, LabelAttr: "name",
		Doc: "A command that golem runs: once, and again where `run`, `env`, `user` or `dir` change, or a key in `triggered_by` " +
			"does. Undeclared, its `undo` runs, if golem ever ran it; without one the plan says beforehand that it cannot be undone. " +
			"Where what is run changes, the `undo` of the version that ran runs first; where only `undo` or the guards change, nothing " +
			"is run. `creates`, `unless` and `onlyif` are guards: it is run only if all that are written ask for it. Once it has run, a " +
			"guard that asks again is drift, and the next run repairs it; one that still asks right after the run is a failure, since " +
			"the command would run at every apply. Guards are asked by `plan`, too: they must change nothing. What another glyph of " +
			"the same run changes, a guard may see only at the next run: name its key in `triggered_by`. A failing `run` is " +
			"tried again as the leaf's policy says, and its `undo` runs in between. When a run of golem is interrupted or its leaf fails, " +
			"`undo` runs though `run` may have come to no end, and `run` may be run anew after an `undo` that is taken back: `undo` has " +
			"to cope with both, and with running twice. Without an `undo`, golem says that it is not known whether the command took effect. " +
			"Commands and guards run without a shell, with no standard input, in `dir`, with golem's environment, without `GOLEM_VAR_x`, and `env`.",
		Attrs: []scrolls.Attr{
			{Name: "name", Type: cty.String, Doc: "The command's name, by which golem knows it again. The label by default."},
			commandAttr("run", "What is run: the program and its arguments, each literal. The program is an absolute path, or a name that "+
				"is looked up where root's programs are.", true),
			commandAttr("undo", "What takes it back, written as `run` is.", false),
			{Name: "creates", Type: cty.String, Doc: "A path that the command makes: it is not run while that is there."},
			commandAttr("unless", "A command that says with status 0 that there is nothing to do.", false),
			commandAttr("onlyif", "A command that says with status 0 that there is something to do.", false),
			{
				Name: "triggered_by", Type: cty.List(cty.String),
				Doc: "Keys, or patterns of keys, whose change runs it again, behind the leaf's other glyphs. Of the guards only `onlyif` is asked then.",
			},
			{Name: "env", Type: cty.Map(cty.String), Doc: "Environment variables, beside golem's own."},
			{Name: "user", Type: cty.String, Default: "who runs golem", Doc: "The user who runs it, by name or number, with that user's groups and home."},
			{Name: "dir", Type: cty.String, Default: "`/`", Doc: "The directory in which it runs."},
			{Name: "timeout", Type: cty.String, Default: "the policy's; a minute for a guard", Doc: "How long it may take, each of its commands. Then it is killed with all that it started."},
			{Name: "sensitive", Type: cty.Bool, Default: "`false`", Doc: "What it prints is never shown, nor written to the journal."},
		},
		NoAdopt: "What a command did cannot be seen on the host. Say when it is not to run, with creates, unless or onlyif: " +
			"then it is recorded, and nothing is run.",
		Identity: func(a scrolls.Attrs) []string { return []string{str(a, "name")} },
		Check:    checkCommandGlyph,
		Canonical: func(a scrolls.Attrs) scrolls.Attrs {
			return lessAttrs(a, "name", "timeout", "triggered_by", "sensitive")
		},
	},
	triggers: func(g *scrolls.Glyph) []Trigger {
		if on := words(g.Attrs, "triggered_by"); len(on) > 0 {
			return []Trigger{{Action: "run", On: on}}
		}
		return nil
	},
}

func commandAttr(name, doc string, required bool) scrolls.Attr {
	return scrolls.Attr{
		Name: name, Type: cty.List(cty.String), Required: required, Doc: doc,
		Hint: `Write each word on its own: ["make", "-C", "/srv/app"]. A shell is ["sh", "-c", "…"].`,
	}
}

// checkCommandGlyph says what is wrong with a command before any host is looked at.
func checkCommandGlyph(a scrolls.Attrs) []scrolls.Problem {
	var problems []scrolls.Problem
	wrong := func(attr, summary, format string, args ...any) {
		problems = append(problems, scrolls.Problem{Attr: attr, Summary: summary, Detail: fmt.Sprintf(format, args...)})
	}
	if name := str(a, "name"); name == "" || len(name) > 200 {
		wrong("name", "Not a command's name", "A name has 1 to 200 characters.")
	}
	for _, attr := range []string{"run", "undo", "unless", "onlyif"} {
		if _, written := a[attr]; written {
			problems = append(problems, checkArgv(attr, words(a, attr))...)
		}
	}
	for _, attr := range []string{"creates", "dir"} {
		if p, ok := a[attr].(string); ok && (!path.IsAbs(p) || path.Clean(p) != p || strings.ContainsRune(p, 0)) {
			wrong(attr, "Not an absolute path", "%q must be written from the root, without \"..\", \".\" or a double slash.", p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object(a, "env"))) {
		if !envName.MatchString(name) {
			wrong("env", "Not a variable's name", "%q cannot be the name of an environment variable.", name)
		}
		if strings.ContainsRune(str(object(a, "env"), name), 0) {
			wrong("env", "Variable holds a NUL byte", "No environment variable can hold one.")
		}
	}
	if user, ok := a["user"].(string); ok && user == "" {
		wrong("user", "User is empty", "Write a user's name or number, or leave it out.")
	}
	for _, pattern := range words(a, "triggered_by") {
		problems = append(problems, checkTrigger("triggered_by", pattern)...)
	}
	return append(problems, checkDuration(a, "timeout")...)
}

// checkArgv says what is wrong with a list of words that is to be run.
func checkArgv(attr string, argv []string) []scrolls.Problem {
	one := func(summary, format string, args ...any) []scrolls.Problem {
		return []scrolls.Problem{{Attr: attr, Summary: summary, Detail: fmt.Sprintf(format, args...)}}
	}
	if len(argv) == 0 || argv[0] == "" {
		return one("Command is empty", "The first word is the program.")
	}
	program := argv[0]
	switch {
	case strings.ContainsRune(strings.Join(argv, ""), 0):
		return one("Command holds a NUL byte", "No argument can hold one.")
	case path.IsAbs(program) && path.Clean(program) != program:
		return one("Path is not clean", "%q holds \"..\", \".\" or a double slash.", program)
	case !path.IsAbs(program) && !programName.MatchString(program):
		return one("Not a program", "%q must be an absolute path, or a program's plain name. Words of one command are written apart: [\"%s\"].",
			program, strings.Join(strings.Fields(program), "\", \""))
	}
	return nil
}

// deedAttrs are what a run of a command is made of.
var deedAttrs = []string{"run", "env", "user", "dir"}

// deed names what a glyph runs: as long as it is the same, it need not run again.
func deed(g *scrolls.Glyph) string {
	of := map[string]any{}
	for _, attr := range deedAttrs {
		if value, ok := g.Attrs[attr]; ok {
			of[attr] = value
		}
	}
	return hashText(string(encode(of)))
}
