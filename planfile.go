package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"golem/apply"
	"golem/plan"
	"golem/scrolls"
	"golem/state"
)

// sealKeyMeta is where the journal has the key that plan files are sealed with.
const sealKeyMeta = "plan_key"

// sealKey reads the journal's key for plan files; an empty one where it has none.
func sealKey(r interface {
	Meta(name string) (string, error)
},
) (plan.SealKey, error) {
	var key plan.SealKey
	text, err := r.Meta(sealKeyMeta)
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &key)
	}
	if err != nil {
		return key, fmt.Errorf("read the key for plan files: %w", err)
	}
	return key, nil
}

// makeSealKey is sealKey, and makes one where there is none, and a journal to keep it in.
func (s *session) makeSealKey(ctx context.Context) (plan.SealKey, error) {
	r, err := s.read()
	if err != nil {
		return plan.SealKey{}, err
	}
	key, err := sealKey(r)
	if err = errors.Join(err, r.Close()); err != nil || key.Identity != "" {
		return key, err
	}
	journal, err := s.write(ctx)
	if err != nil {
		return key, err
	}
	key, err = sealKey(journal) // another plan may have made one meanwhile
	if err == nil && key.Identity == "" {
		key, err = addSealKey(journal)
	}
	return key, errors.Join(err, journal.Close())
}

func addSealKey(journal *state.Journal) (plan.SealKey, error) {
	key, err := plan.NewSealKey()
	if err != nil {
		return key, err
	}
	text, err := json.Marshal(key)
	if err != nil {
		return key, fmt.Errorf("keep the key for plan files: %w", err)
	}
	return key, journal.Do(func(tx *state.Tx) error { return tx.SetMeta(sealKeyMeta, string(text)) })
}

// savePlan writes a plan with all that applying it takes to a file.
func (s *session) savePlan(file string, g goal, p *plan.Plan, key plan.SealKey) error {
	if p.Busy != nil {
		return &hintedError{"save the plan: another golem is at work, and what it leaves is not known before it has ended", "plan again once it has"}
	}
	if p.Recovers != nil {
		return &hintedError{
			"save the plan: an earlier run is to be settled first, and what it leaves is not known before that",
			"golem recover settles it",
		}
	}
	reader, err := s.read()
	if err != nil {
		return err
	}
	id, err := reader.Meta("id")
	if err = errors.Join(err, reader.Close()); err != nil {
		return err
	}
	document, err := json.Marshal(p.Document())
	if err != nil {
		return fmt.Errorf("save the plan: %w", err)
	}
	o := s.options()
	head := plan.SavedHead{
		Golem: version, Made: time.Now().UTC().Format(time.RFC3339), Command: "apply", Lineage: g.lineage, Host: p.Host,
		Machine: o.Machine, Root: o.Root, Journal: id, Revision: p.Revision, View: p.View(), Document: document,
	}
	body := plan.SavedBody{Policies: g.policies, Blind: s.c.Bool("no-observe"), Destroy: g.destroy, Choice: s.choice()}
	if g.destroy {
		head.Command = "destroy"
	}
	if g.scroll != nil {
		head.Source, body.Digest = g.scroll.Source, g.scroll.Digest
		body.Inputs = s.inputs(g.scroll.Source)
	}
	if scroll := g.wanted(); scroll != nil {
		own := *scroll
		own.Files = nil // sources are for snippets
		body.Scroll = &own
	}
	if body.Prints, err = p.Prints(); err == nil {
		err = body.Collect()
	}
	if err != nil {
		return err
	}
	return plan.Save(file, head, body, key)
}

// inputs are what the scroll was loaded with.
func (s *session) inputs(path string) plan.SavedInputs {
	in := plan.SavedInputs{Path: path, Name: s.c.String("name"), Vars: s.c.StringSlice("var")}
	for _, file := range s.c.StringSlice("var-file") {
		if full, err := filepath.Abs(file); err == nil {
			file = full
		}
		in.VarFiles = append(in.VarFiles, file)
	}
	for _, line := range os.Environ() {
		if strings.HasPrefix(line, "GOLEM_VAR_") {
			in.Environ = append(in.Environ, line)
		}
	}
	return in
}

// fixed are the flags that a saved plan has decided.
var fixed = []string{"target", "exclude", "no-observe", "var", "var-file", "name"}

// applySaved is golem apply PLANFILE.
func (a *app) applySaved(ctx context.Context, c *cli.Command) error {
	if c.Args().Len() > 1 {
		return &usageError{command: c.FullName(), err: fmt.Errorf("one plan file, not %d", c.Args().Len())}
	}
	for _, name := range fixed {
		if c.IsSet(name) {
			return &usageError{command: c.FullName(), err: fmt.Errorf("--%s is part of the saved plan, and cannot be given anew", name)}
		}
	}
	s, err := open(c)
	if err != nil {
		return err
	}
	saved, key, err := s.openSaved(c.Args().First(), func(saved *plan.Saved, why []string) error {
		return &plan.StaleError{Why: append(why, otherGolem(saved)...)}
	})
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "golem-plan-") // 0700
	if err != nil {
		return fmt.Errorf("unpack the plan file: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := saved.Unpack(dir, key); err != nil {
		return err
	}
	moved := append(otherGolem(saved), s.scrollMoved(ctx, saved)...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	b := saved.Body
	return a.enact(ctx, s, goal{
		command: saved.Head.Command, scroll: b.Scroll, lineage: saved.Head.Lineage, destroy: b.Destroy, policies: b.Policies, saved: saved, moved: moved,
	})
}

// otherGolem tells whether another golem made a plan: what that would do is not known to be
// what this one would.
func otherGolem(saved *plan.Saved) []string {
	if saved.Head.Golem == version {
		return nil
	}
	return []string{fmt.Sprintf("it was made by golem %s, and this is golem %s", plan.Printable(saved.Head.Golem), version)}
}

// openSaved reads a plan file and unseals it with the journal's key. elsewhere is the error
// for one that was made for another host, root or journal.
func (s *session) openSaved(file string, elsewhere func(saved *plan.Saved, why []string) error) (*plan.Saved, plan.SealKey, error) {
	var key plan.SealKey
	saved, err := plan.OpenSaved(file)
	if err != nil {
		return nil, key, err
	}
	r, err := s.readAnybodys() // whose it is, the plan tells
	if err != nil {
		return nil, key, err
	}
	id, err := r.Meta("id")
	if err == nil {
		key, err = sealKey(r)
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, key, err
	}
	o := s.options()
	if why := saved.Elsewhere(id, o.Machine, o.Root); len(why) > 0 {
		return nil, key, elsewhere(saved, why)
	}
	return saved, key, saved.Unseal(key)
}

// scrollMoved tells whether the scroll that a plan was made of is another by now; none for
// no. One that is not there any more is none: the plan has all it takes.
func (s *session) scrollMoved(ctx context.Context, saved *plan.Saved) []string {
	in := saved.Body.Inputs
	if in.Path == "" {
		return nil
	}
	for _, file := range append([]string{in.Path}, in.VarFiles...) {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	o := s.loading(ctx)
	o.Environ, o.VarFiles, o.Vars, o.Name = in.Environ, in.VarFiles, in.Vars, in.Name
	now, err := scrolls.Load(in.Path, o)
	if err != nil {
		return []string{fmt.Sprintf("the scroll %s has changed, and cannot be read any more", plan.Printable(in.Path))}
	}
	if now.Digest != saved.Body.Digest {
		return []string{fmt.Sprintf("the scroll %s has changed", plan.Printable(in.Path))}
	}
	return nil
}

// enactSaved makes a run one of a saved plan: it was approved, and must still stand.
func (g goal) enactSaved(o *apply.Options, show func(*plan.Plan) error) {
	b := g.saved.Body
	o.Blind, o.Choice, o.Unattended = b.Blind, b.Choice, false
	o.Saved = &apply.Saved{Journal: g.saved.Head.Journal, Revision: g.saved.Head.Revision, Prints: b.Prints, Moved: g.moved}
	o.Run.Source, o.Run.Digest = g.saved.Head.Source, b.Digest
	o.Approve = func(p *plan.Plan) (bool, error) { return true, show(p) }
}

// showSaved is golem show PLANFILE.
func (a *app) showSaved(c *cli.Command) error {
	s, err := open(c)
	if err != nil {
		return err
	}
	file := c.Args().First()
	saved, _, err := s.openSaved(file, func(_ *plan.Saved, why []string) error {
		return &plan.FileError{File: file, Why: strings.Join(why, "; ")}
	})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return plan.WriteJSON(a.out, saved.Head.Document)
	}
	return saved.Head.View.Text(a.printer(a.out))
}
