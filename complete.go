package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"golem/plan"
	"golem/reconcilers"
	"golem/state"
)

// The shells' scripts are golem's own: those of the library cut a word at its first colon,
// which every key has, and let bash expand what they are given, so that a file's name in
// the journal could run a command.
//
//go:embed docs/completion/golem.bash docs/completion/golem.zsh docs/completion/golem.fish
var completionScripts embed.FS

var shells = []string{"bash", "zsh", "fish"}

func (a *app) completionCommand() *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print what makes a shell complete golem's words", ArgsUsage: "bash|zsh|fish",
		Description: "What it offers comes from the journal, as far as you may read it.",
		Action: func(_ context.Context, c *cli.Command) error {
			shell := c.Args().First()
			if c.Args().Len() != 1 || !slices.Contains(shells, shell) {
				return &usageError{command: c.FullName(), err: fmt.Errorf("one of %s", strings.Join(shells, ", "))}
			}
			script, err := completionScripts.ReadFile("docs/completion/golem." + shell)
			if err != nil {
				return fmt.Errorf("print completion: %w", err)
			}
			_, err = a.out.Write(script)
			return err
		},
	}
}

// completeCommand is what the shells' scripts call, with the words so far and last the one
// that is being typed. It prints what that may become, each with a tab and what it is; and
// nothing where it is a file's name, or where nothing is known.
func (a *app) completeCommand() *cli.Command {
	return &cli.Command{
		Name: "complete", Hidden: true, SkipFlagParsing: true,
		Action: func(_ context.Context, c *cli.Command) error {
			words := c.Args().Slice()
			if len(words) > 0 && words[0] == "--" {
				words = words[1:]
			}
			// Flags of this very command are those of a wrapper or an alias.
			given := map[string]string{"root": c.String("root"), "state": c.String("state")}
			for _, offer := range complete(c.Root(), given, words) {
				if _, err := fmt.Fprintf(a.out, "%s\t%s\n", offer.word, offer.what); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// An offer is what a word may become.
type offer struct{ word, what string }

// A typing is a command line so far.
type typing struct {
	at    *cli.Command
	flags []cli.Flag // that are understood here
	given map[string]string
	words []string // arguments before the one that is typed
	value string   // the flag whose value is typed; "" for none
	stop  bool     // "--" was typed: no more flags
}

// complete lists what the last word may become. Some flags may be given beforehand.
func complete(root *cli.Command, given map[string]string, words []string) []offer {
	if len(words) == 0 {
		words = []string{""}
	}
	t := &typing{at: root, flags: root.Flags, given: given}
	last := words[len(words)-1]
	for _, word := range words[:len(words)-1] {
		t.read(word)
	}
	lead := ""
	if name, typed, ok := strings.Cut(last, "="); ok && t.value == "" && strings.HasPrefix(last, "--") && !t.stop {
		t.value, lead, last = strings.TrimPrefix(name, "--"), name+"=", typed
	}
	var fit []offer
	for _, o := range t.offers(last) {
		if strings.HasPrefix(o.word, last) && plan.Printable(o.word) == o.word {
			fit = append(fit, offer{lead + o.word, plan.Printable(o.what)})
		}
	}
	return fit
}

// read takes a whole word of the command line.
func (t *typing) read(word string) {
	switch {
	case t.value != "":
		t.given[t.value], t.value = word, ""
	case word == "--" && !t.stop:
		t.stop = true
	case strings.HasPrefix(word, "-") && word != "-" && !t.stop:
		name, value, has := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if has {
			t.given[name] = value
		} else if f, ok := t.flag(name).(cli.DocGenerationFlag); ok && f.TakesValue() {
			t.value = name
		}
	case word == "help" && len(t.words) == 0 && t.at.Root() == t.at: // of a command
	case len(t.words) == 0 && t.at.Command(word) != nil:
		t.at = t.at.Command(word)
		t.flags = append(slices.Clone(t.at.Flags), t.flags...)
	default:
		t.words = append(t.words, word)
	}
}

func (t *typing) flag(name string) cli.Flag {
	for _, f := range t.flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// offers lists what the word may become, whatever is typed of it.
func (t *typing) offers(last string) []offer {
	switch {
	case t.value != "":
		return t.values(t.value)
	case strings.HasPrefix(last, "-") && !t.stop:
		var all []offer
		for _, f := range t.flags {
			if d, ok := f.(cli.DocGenerationFlag); ok {
				all = append(all, offer{"--" + f.Names()[0], strings.ReplaceAll(d.GetUsage(), "`", "")})
			}
		}
		return append(all, offer{"--help", "show help"})
	}
	if len(t.words) == 0 && len(t.at.Commands) > 0 {
		var all []offer
		for _, c := range t.at.Commands {
			if !c.Hidden {
				all = append(all, offer{c.Name, c.Usage})
			}
		}
		return all
	}
	return t.arguments()
}

// values lists what a flag's value may be.
func (t *typing) values(flag string) []offer {
	switch flag {
	case "target", "exclude":
		return append(t.keys(), t.leaves()...)
	case "to":
		if t.at.Name == "rollback" {
			return t.revisions()
		}
	case "against":
		return t.revisions()
	case "name":
		return t.lineages()
	case "format":
		return []offer{{string(plan.Mermaid), "for Markdown"}, {string(plan.Dot), "for Graphviz"}}
	}
	return nil
}

// arguments lists what an argument may be, by the command and its place.
func (t *typing) arguments() []offer {
	switch place := fmt.Sprintf("%s %d", strings.TrimPrefix(t.at.FullName(), "golem "), len(t.words)); place {
	case "explain 0", "adopt 0":
		var all []offer
		for _, kind := range reconcilers.All {
			if kind.NoAdopt == "" || place == "explain 0" {
				all = append(all, offer{kind.Name, gist(kind)})
			}
		}
		return all
	case "completion 0":
		return []offer{{"bash", ""}, {"zsh", ""}, {"fish", ""}}
	case "show 0":
		return t.revisions()
	case "state show 0", "state forget 0", "state move 0":
		return t.keys()
	case "state move 1", "state rename 0":
		return t.lineages()
	case "kept show 0", "kept restore 0":
		return t.kept()
	}
	return nil
}

// journal reads the journal that the flags name. Where it cannot be read nothing is
// offered: a shell has no place to say so.
func (t *typing) journal() *state.Reader {
	journal := t.given["state"]
	if journal == "" {
		journal = os.Getenv("GOLEM_STATE")
	}
	s, err := openAt(t.given["root"], journal)
	if err != nil {
		return nil
	}
	r, err := s.read()
	if err != nil {
		return nil
	}
	return r
}

func (t *typing) snapshot() *state.Snapshot {
	r := t.journal()
	if r == nil {
		return &state.Snapshot{}
	}
	defer r.Close()
	snap, err := r.Snapshot()
	if err != nil {
		return &state.Snapshot{}
	}
	return snap
}

func (t *typing) keys() []offer {
	var all []offer
	for _, a := range t.snapshot().Applied {
		all = append(all, offer{string(a.Key), a.Lineage})
	}
	return all
}

func (t *typing) leaves() []offer {
	var all []offer
	for _, a := range t.snapshot().Applied {
		if o := (offer{a.Leaf, "a leaf of " + a.Lineage}); !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	return all
}

func (t *typing) lineages() []offer {
	var all []offer
	for name, l := range t.snapshot().Lineages {
		all = append(all, offer{name, fmt.Sprintf("revision %d", l.Revision)})
	}
	slices.SortFunc(all, func(a, b offer) int { return strings.Compare(a.word, b.word) })
	return all
}

func (t *typing) revisions() []offer {
	r := t.journal()
	if r == nil {
		return nil
	}
	defer r.Close()
	revisions, err := r.Revisions(t.given["name"])
	if err != nil {
		return nil
	}
	var all []offer
	names := map[string]bool{}
	for _, rev := range revisions {
		names[rev.Lineage] = true
	}
	for _, rev := range revisions {
		word := strconv.Itoa(rev.Number)
		if len(names) > 1 && t.at.Name == "show" {
			word = rev.Lineage + "@" + word
		}
		all = append(all, offer{word, fmt.Sprintf("%s, %s", rev.Lineage, rev.Run.Started.Local().Format("2006-01-02 15:04"))})
	}
	return all
}

func (t *typing) kept() []offer {
	r := t.journal()
	if r == nil {
		return nil
	}
	defer r.Close()
	kept, err := r.KeptList()
	if err != nil {
		return nil
	}
	var all []offer
	for _, k := range kept {
		all = append(all, offer{strconv.FormatInt(k.ID, 10), k.Path})
	}
	return all
}
