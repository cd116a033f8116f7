package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"golem/scrolls"
	"golem/state"
)

// A usageError is a command line that golem does not understand.
type usageError struct {
	command string
	err     error
	way     string // what to write instead; "" where the command's help is to say it
}

func (e *usageError) Error() string {
	if e.command == "golem" {
		return e.err.Error()
	}
	return strings.TrimPrefix(e.command, "golem ") + ": " + e.err.Error()
}

// Hint says what to write, or where it is listed.
func (e *usageError) Hint() string {
	if e.way != "" {
		return e.way
	}
	return e.command + " --help lists what there is"
}

// elsewhere are the words that people bring along from terraform, with golem's for them.
var elsewhere = map[string]string{
	"golem init":         "nothing has to be prepared: golem plan is the first step",
	"golem import":       "golem adopt KIND ID records what is there",
	"golem query":        "golem adopt --scan looks for what somebody made of the host",
	"golem taint":        "what drifted is repaired by itself; golem state forget drops a record",
	"golem untaint":      "nothing is ever tainted: a glyph that failed is tried again",
	"golem refresh":      "every plan looks at the host; golem plan --drift shows what moved",
	"golem output":       "golem console evaluates what a script needs",
	"golem workspace":    "lineages stand beside each other: --name, or name = … in the scroll",
	"golem force-unlock": "the lock goes with the process that holds it; --lock-timeout waits",
	"golem get":          "a module is a directory beside the scroll: nothing is fetched",
	"golem test":         "golem plan --root DIR tries a scroll on a file tree",
	"golem undo":         "golem rollback goes back a revision; golem destroy gives everything back",
	"golem diff":         "golem plan shows what would change, golem show what did",
	"golem status":       "golem plan --drift shows what moved, golem history what was done",
	"golem list":         "golem state list shows the keys in force",
	"golem check":        "golem validate checks a scroll, golem state check the journal",
	"golem lint":         "golem validate checks a scroll, golem fmt --check how it is laid out",
	"golem doctor":       "golem state check verifies the journal",
	"golem restore":      "golem kept restore ID",
	"golem modules":      "a module is a directory beside the scroll: golem graph draws them",
	"golem providers":    "every kind is in golem itself: golem explain lists them",
	"golem state rm":     "golem state forget KEY",
	"golem state mv":     "golem state move KEY LINEAGE; renaming in a scroll needs nothing",
	"golem state pull":   "golem state export",
	"golem state push":   "a journal is a file: copy it, then golem state rebind",
	"golem state verify": "golem state check",
}

// otherFlags are the flags that people bring along, with golem's for them.
var otherFlags = map[string]string{
	"refresh":             "--no-observe compares with the journal only",
	"refresh-only":        "golem plan --drift shows what moved; nothing has to be refreshed",
	"destroy":             "golem destroy takes back everything",
	"replace":             "what drifted is repaired by itself",
	"input":               "golem asks for a \"yes\" only, and only at a terminal",
	"parallelism":         "everything runs in the order written",
	"lock":                "two runs at once would lose an undo; --lock-timeout waits",
	"chdir":               "every command takes the scroll's PATH",
	"recursive":           "golem fmt takes many paths: golem fmt . modules/*",
	"write":               "--check and --diff change nothing",
	"list":                "--check and --diff change nothing",
	"generate-config-out": "golem adopt KIND ID prints the scroll for what is there",
	"dry-run":             "golem plan shows what apply would do",
	"yes":                 "--auto-approve",
	"force":               "--auto-approve, and what a policy allows",
	"verbose":             "the report tells each step; golem show has it later",
}

// unknownCommand is the error for a command that there is not.
func unknownCommand(c *cli.Command, name string) error {
	var known []string
	for _, sub := range c.Commands {
		if !sub.Hidden {
			known = append(known, sub.Name)
		}
	}
	err := &usageError{command: c.FullName(), err: fmt.Errorf("there is no command %q", name), way: elsewhere[c.FullName()+" "+name]}
	if like := scrolls.Likeliest(name, known); like != "" && err.way == "" {
		err.err = fmt.Errorf("there is no command %q; did you mean %q?", name, like)
	}
	return err
}

// misusedFlag tells what is wrong with a flag in golem's words.
func misusedFlag(c *cli.Command, err error) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		name, _, _ = strings.Cut(strings.TrimLeft(name, "-"), "=")
		var known []string
		for _, f := range slices.Concat(c.Flags, c.Root().Flags) {
			known = append(known, f.Names()[0])
		}
		err = fmt.Errorf("there is no flag --%s", name)
		if way := otherFlags[name]; way != "" {
			return &usageError{command: c.FullName(), err: err, way: way}
		}
		if like := scrolls.Likeliest(name, known); like != "" {
			err = fmt.Errorf("there is no flag --%s; did you mean --%s?", name, like)
		}
	} else if rest, ok := strings.CutPrefix(text, "invalid value "); ok {
		value, rest, _ := strings.Cut(rest, " for flag -")
		name, why, _ := strings.Cut(rest, ": ")
		if strings.HasPrefix(why, "time: ") {
			why = "it is no time, like 30s or 5m"
		}
		err = fmt.Errorf("--%s %s: %s", name, strings.Trim(value, `"`), why)
	} else if name, ok := strings.CutPrefix(text, "flag needs an argument: "); ok {
		err = fmt.Errorf("--%s needs a value", strings.TrimLeft(name, "-"))
	}
	return &usageError{command: c.FullName(), err: err}
}

// unknownKind is the error for a kind that this golem does not have.
func unknownKind(verb, name string) error {
	return &hintedError{fmt.Sprintf("%s: there is no kind %q", verb, name), meant(name, kindNames(), "golem explain lists the kinds there are")}
}

// meant offers the likeliest of the words there are before what else there is to say.
func meant(given string, known []string, more string) string {
	if like := scrolls.Likeliest(given, known); like != "" {
		return fmt.Sprintf("did you mean %s? %s", like, more)
	}
	return more
}

// A hintedError is an error with what the user can do about it.
type hintedError struct{ what, hint string }

func (e *hintedError) Error() string { return e.what }

// Hint says what to do.
func (e *hintedError) Hint() string { return e.hint }

// knownLineage refuses a --name that there is not.
func knownLineage(what, name string, snap *state.Snapshot) error {
	if name == "" || snap.Lineages[name] != nil {
		return nil
	}
	names := slices.Collect(maps.Keys(snap.Lineages))
	return &hintedError{fmt.Sprintf("%s: there is no lineage %q here", what, name), meant(name, names, "golem history lists the names there are")}
}

// neverApplied is the error for a lineage that a command is to act on, and that the journal
// has nothing of.
func neverApplied(command, name string, snap *state.Snapshot) error {
	names := slices.Collect(maps.Keys(snap.Lineages))
	return &hintedError{
		fmt.Sprintf("%s: nothing was ever applied under the name %q here", command, name),
		meant(name, names, "golem history lists the names there are"),
	}
}

// unknownKey is the error for a key that is not in force.
func unknownKey(verb string, key scrolls.Key, snap *state.Snapshot) error {
	var keys []string
	for _, a := range snap.Applied {
		keys = append(keys, string(a.Key))
	}
	return &hintedError{fmt.Sprintf("%s %s: no such key is in force", verb, key), meant(string(key), keys, "golem state list shows the keys there are")}
}

// unnamed is the error of a command that could not read the scroll to learn its name.
func unnamed(command string) error {
	return &hintedError{
		command + ": the scroll cannot be read, so its name is not known",
		"golem " + command + " --name NAME needs no scroll",
	}
}
